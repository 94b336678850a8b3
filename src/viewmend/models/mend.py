"""MendClassifier: the recipe of `viewmend.core.mend.recipe` as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from viewmend.backend.namespace import to_numpy
from viewmend.backend.threads import limited_threads
from viewmend.backend.torch_gpu import mover_to
from viewmend.core.common.calibration import proven_temperature
from viewmend.core.mend.induction import induce_classes, on_device
from viewmend.core.mend.recipe import n_stages
from viewmend.core.mend.representations import REPRESENTATIONS
from viewmend.data.cells import DEFAULT, MISSING_CELLS
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels
from viewmend.data.sparse import DENSE_COLUMNS
from viewmend.distributed.mixin import DaskMixin
from viewmend.models.advice import AdviceMixin
from viewmend.models.base import WITHOUT_EFFECT
from viewmend.models.calibrated import CROSS_FIT, CalibratedMixin
from viewmend.models.decisions import CLASS_WEIGHT, ClassWeight
from viewmend.models.devices import (
    check_device,
    input_device,
    kept_on,
    memory_errors_named,
    on_host,
)
from viewmend.models.explanation import Explanation, explain_mended
from viewmend.models.fitted_state import MendState
from viewmend.models.inductive import InductiveMixin
from viewmend.models.mend_fit import MendFitting
from viewmend.models.mend_problem import (
    make_settings,
)
from viewmend.models.new_explanation import NewExplanationMixin
from viewmend.models.prediction_sets import PredictionSetsMixin
from viewmend.models.suspects import SuspectsMixin
from viewmend.models.unknown import UnknownMixin
from viewmend.models.view_explanation import ViewColumnsMixin
from viewmend.parameters import AnyOf, Each, Integer, OneOf, Real, Rule
from viewmend.protocols import ClassPrior, Seed


class MendClassifier(
    AdviceMixin,
    SuspectsMixin,
    PredictionSetsMixin,
    UnknownMixin,
    NewExplanationMixin,
    ViewColumnsMixin,
    DaskMixin,
    CalibratedMixin,
    InductiveMixin,
    MendFitting,
):
    """Classify samples of which most have no label and many miss some of the views.

    Every view is looked at through several representations, each of which joins the samples that
    the view has to their nearest neighbours. Labels spread over the sum of these graphs; graphs
    and edges that contradict the classes found lose weight. A regression on each view then
    predicts every sample without itself, and what the views of a sample say together joins it to
    samples it shares no view with. Nothing is imputed, nothing depends on the order of the rows,
    and the defaults are meant for all data.

    Parameters
    ----------
    representations : "all" or sequence of str, default="all"
        Ways to compare the rows of a view, of "unit", "standard", "standard_unit",
        "centred_unit", "hellinger" and "half_whitened"; see `viewmend.core.mend.representations`.
    n_neighbors : int or (int, int), default=(3, 10)
        Neighbours of a sample in each graph: that many, or half the mean number of observed
        samples per class within these bounds.
    spreading : float in [0, 1), default=0.99
        The larger, the further labels travel.
    homophily_power : float, default=2.0
        Graphs are weighted by the share of their edges within a class, to this power.
    edge_power, edge_floor : float, default=0.0, 0.05
        An edge is multiplied by the agreement of the classes around its ends plus the floor, to
        this power. Zero turns this off; with one or two labels per class it can help.
    n_rounds : int, default=8
        Rounds with regressions on the views; zero leaves them out.
    n_landmarks : int, default=1000
        Samples per view that its kernel regression is expanded in.
    kernel_width : float, default=0.2
        Exponent of the kernel at the mean distance: the smaller, the smoother.
    consensus_weight : float, default=0.5
        Weight of the graph that joins samples of similar evidence, relative to all others.
    evidence_power : float, default=0.5
        Power of the evidence in its product with what the graphs say.
    class_prior : "auto", "labeled", "uniform", array (n_classes,) or dict, default="auto"
        Shares of the classes among all samples, which the classes that the rounds learn from
        have; the final ones need not. "labeled" takes those of the labelled samples, right where
        these are a fair sample of the classes. "auto", which None stands for too, takes a mean of
        equal shares, those of the labels and those that the scores have by themselves, each
        weighted by how far it is to be trusted, as their agreement tells: as good where labels
        have the shares of the classes, and much better where they were drawn at random.
    label_noise : float in [0, 1) or "auto", default=0.0
        Share of the given labels that may be wrong. Above 0, a label counts as far as the views of
        its sample agree with it: it is no longer kept where they contradict it. "auto" estimates
        the share, of labels that are wrong beyond what hard classes explain; 0 keeps all labels.
    calibration : {"cross_fit", None}, default="cross_fit"
        "cross_fit" asks up to three shorter fits, each without a third of the labels, for the
        classes of the held-out samples; no more than it takes to hold out 200. That tells how
        accurate the model is, and one temperature for all probabilities, which can take confidence
        away and never adds any; it changes no class and takes less than half the time of a fit.
        None leaves the scores as they are.
    class_weight : None, "balanced" or dict of class to float, default=None
        What the classes count in decisions: ``transduction_`` and ``predict`` are the class whose
        probability times weight is largest, and the probabilities stay as they are. "balanced"
        takes one over the share of the class among all samples, as the probabilities have it, so
        that rare classes are found at the price of some false alarms; classes that a dict leaves
        out have weight 1. ``estimated_accuracy_`` remains that of the most probable classes.
    missing_cells : {"low_rank", "median", "error"}, default="low_rank"
        What fills NaN in rows that a view otherwise has, in ``fit`` and for new samples: a matrix
        of low rank through the other cells of the row, or the median of the column, both learned
        from the view alone. "error" refuses such rows.
    view_sizes : sequence of int, optional
        Columns of every view where ``X`` is one stacked array.
    graph_samples : int, optional
        Samples that the graphs are between, at most: those with a label, then others chosen by
        their content. The others are joined to their nearest samples of the graph, and receive
        soft labels from these; regressions and class shares take all alike. None is all samples in
        memory, and 20 000 of views that are Dask collections.
    dtype : {"float64", "float32"}, default="float64"
        Of the views as they are kept; one that float32 cannot hold stays float64. Representations
        and kernels are float32 in any case.
    device : {None, "auto", "cpu", "cuda"}, default=None
        Where the fit and ``predict`` run. None: NumPy, or PyTorch where the views are tensors, on
        their device. "cpu", "cuda": PyTorch there. "auto": a GPU if there is one, else NumPy. Input
        is checked on the host, and fitted attributes are NumPy arrays.
    random_state : int, numpy Generator or None, default=0
        Of the landmarks.
    n_jobs : int, optional
        Threads; None takes as many as Numba has, -1 every core. Bits do not depend on it.
    verbose : int, default=0
        Above 0, one line per stage on standard error.

    Attributes
    ----------
    classes_ : array (n_classes,)
    transduction_ : array (n_samples,)
        Classes of the samples of ``fit``; given labels are kept. ``predict`` is induction and may
        differ on the same samples.
    label_distributions_ : array (n_samples, n_classes)
        Class probabilities of every sample; rows sum to one.
    confidence_ : array (n_samples,)
        Those of the classes in ``transduction_``; see `decide`.
    decision_weights_ : array (n_classes,)
        What ``class_weight`` came to; ones by default.
    calibration_ : viewmend.core.common.calibration.Calibration
    estimated_accuracy_ : viewmend.core.common.accuracy.AccuracyEstimate or None
        Of the samples that are like the labelled ones, with an interval, beside chance and the
        most frequent class; None where every class has a single label.
    unreachable_ : array (n_samples,) of bool
        Samples of which neither graphs, regressions nor rows of zeros say anything, those without
        any view among them; they get the class shares of the labelled samples.
    off_graph_ : array (n_samples,) of bool
        Samples that no path joins to a label; what is said of them rests on regression.
    class_prior_ : array (n_classes,)
        The class shares last aimed at.
    label_noise_ : float
        Share of the given labels that were taken for wrong: ``label_noise``, or its estimate.
    view_weights_ : array (n_views,)
        Trust in the regression on each view, explained over unexplained variance; sums to one.
    graph_weights_ : dict of dict of float
        Trust in each graph by view and representation, the largest one.
    graph_ : sparse array (n_samples, n_samples)
        The graph that the labels last spread over; without edges where ``graph_samples`` leaves
        a sample out.
    history_ : tuple of viewmend.core.mend.stage.StageRecord
    n_iter_ : int
        Stages.
    status_ : str
        "done", or "stopped" or "interrupted" by a callback.
    zero_row_evidence_ : array (n_views, n_classes) or None
        What a row of zeros in a view adds to the logarithms of the class shares; zero rows are not
        compared with others. None where some class is known by zero rows alone, which are then
        compared like all rows.
    observed_ : array (n_samples, n_views) of bool
    sample_ids_ : array (n_samples,) of str
        Identifiers of the samples; absent where ``fit`` saw none, such as the index of frames.
    n_features_in_, view_n_features_, view_names_, feature_names_in_, view_feature_names_
        The layout of ``fit``; names of columns are absent where it saw none.
    cell_fills_ : tuple of viewmend.data.cells.CellFill
        What fills missing cells, one per view; empty with "error".
    fitted_state_ : viewmend.models.fitted_state.MendState
        What ``predict`` and ``explain`` need besides.

    Examples
    --------
    >>> from viewmend import MendClassifier
    >>> from viewmend.datasets import hide, make_multiview_blobs
    >>> blobs = make_multiview_blobs(random_state=0)
    >>> task = hide(blobs.views, blobs.y, missing_rate=0.5, label_rate=0.05, random_state=0)
    >>> model = MendClassifier().fit(task.data, task.y)
    >>> accuracy = (model.transduction_ == task.y_true)[task.unlabelled].mean()
    >>> bool(accuracy > 0.9)
    True
    """

    fitted_state_: MendState

    _of_samples: ClassVar = {"graph_": (0, 1), "off_graph_": (0,)}

    grid: ClassVar = {
        "spreading": (0.9, 0.99),
        "homophily_power": (2.0, 8.0),
        "edge_power": (0.0, 1.0),
        "n_rounds": (8,),
    }
    # Parameters that decide what is computed before any label is looked at.
    geometry_parameters = (
        "representations",
        "n_neighbors",
        "n_landmarks",
        "kernel_width",
        "random_state",
        "dtype",
        "device",
        "graph_samples",
    )
    search_limits: ClassVar = {"n_rounds": 1}
    _dense_columns = DENSE_COLUMNS
    _without_effect_on_rounds = WITHOUT_EFFECT | {"device", "n_rounds"}
    _input_device: str | None = None

    _rules: ClassVar[dict[str, Rule]] = {
        "representations": AnyOf(OneOf("all"), Each(OneOf(*REPRESENTATIONS))),
        "n_neighbors": AnyOf(Integer(1), Each(Integer(1), size=2)),
        "spreading": Real(0, 1, high_open=True),
        "homophily_power": Real(0),
        "edge_power": Real(0),
        "edge_floor": Real(0, low_open=True),
        "n_rounds": Integer(0),
        "n_landmarks": Integer(2),
        "kernel_width": Real(0, low_open=True),
        "consensus_weight": Real(0),
        "evidence_power": Real(0),
        "label_noise": AnyOf(OneOf("auto"), Real(0, 1, high_open=True)),
        "calibration": OneOf(CROSS_FIT, None),
        "class_weight": CLASS_WEIGHT,
        "missing_cells": OneOf(*MISSING_CELLS),
        "graph_samples": AnyOf(OneOf(None), Integer(2)),
        "dtype": OneOf("float64", "float32"),
        "device": OneOf(None, "auto", "cpu", "cuda"),
        "n_jobs": AnyOf(OneOf(None, -1), Integer(1)),
        "verbose": AnyOf(Integer(0), OneOf(True, False)),
    }

    def __init__(
        self,
        representations: str | Sequence[str] = "all",
        n_neighbors: int | Sequence[int] = (3, 10),
        spreading: float = 0.99,
        homophily_power: float = 2.0,
        edge_power: float = 0.0,
        edge_floor: float = 0.05,
        n_rounds: int = 8,
        n_landmarks: int = 1000,
        kernel_width: float = 0.2,
        consensus_weight: float = 0.5,
        evidence_power: float = 0.5,
        class_prior: ClassPrior = "auto",
        label_noise: float | str = 0.0,
        calibration: str | None = CROSS_FIT,
        class_weight: ClassWeight = None,
        missing_cells: str = DEFAULT,
        view_sizes: Sequence[int] | None = None,
        graph_samples: int | None = None,
        dtype: str = "float64",
        device: str | None = None,
        random_state: Seed = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.representations = representations
        self.n_neighbors = n_neighbors
        self.spreading = spreading
        self.homophily_power = homophily_power
        self.edge_power = edge_power
        self.edge_floor = edge_floor
        self.n_rounds = n_rounds
        self.n_landmarks = n_landmarks
        self.kernel_width = kernel_width
        self.consensus_weight = consensus_weight
        self.evidence_power = evidence_power
        self.class_prior = class_prior
        self.label_noise = label_noise
        self.calibration = calibration
        self.class_weight = class_weight
        self.missing_cells = missing_cells
        self.view_sizes = view_sizes
        self.graph_samples = graph_samples
        self.dtype = dtype
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_fit(
        self, X: Any, y: Any, mask: Any, dtype: DTypeLike = np.float64
    ) -> tuple[MultiViewData, Labels]:
        X, self._input_device = on_host(X)
        check_device(self.device, self._input_device)
        return super()._check_fit(X, on_host(y)[0], on_host(mask)[0], dtype)

    def _check_predict(self, X: Any, mask: Any) -> MultiViewData:
        return super()._check_predict(on_host(X)[0], on_host(mask)[0])

    def _max_rounds(self) -> int:
        return n_stages(make_settings(self))

    def _temperature(self, shares: np.ndarray, codes: np.ndarray) -> float:
        return proven_temperature(shares, codes)

    def _score_new(self, data: MultiViewData, X: Any) -> np.ndarray:
        """One step of the recipe, with the samples of fit held as they are."""
        device, state = check_device(self.device, input_device(X)), self.fitted_state_
        to_device = mover_to(device)
        remedy = "pass fewer samples at a time"
        with limited_threads(self.n_jobs), memory_errors_named("predict", remedy):
            fit = kept_on(device, state.induction, partial(on_device, to_device=to_device))
            scores = induce_classes(fit, data.views, data.observed, to_device)
        return to_numpy(scores).astype(np.float64) * state.class_weights

    def _explained(self, rows: np.ndarray) -> Explanation:
        return explain_mended(self, rows)
