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
    digits_kept,
    input_device,
    kept_on,
    memory_errors_named,
    on_host,
)
from viewmend.models.explanation import Explanation, explain_mended
from viewmend.models.fitted_state import MendState
from viewmend.models.inductive import InductiveMixin
from viewmend.models.mend_fit import MendFitting
from viewmend.models.mend_problem import make_settings
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
    """Find the class of every sample, with few labels and with views that many samples lack.

    Samples are joined to their nearest neighbours in every view that they have, in several
    representations of the view. Labels spread over the sum of these graphs. A regression on each
    view then predicts every sample from the others; samples with similar predictions are joined by
    one more graph, even if they have no view in common. This repeats for some rounds. Nothing is
    imputed, and the result does not depend on the order of the rows.

    The defaults are meant for all data. Look at ``class_prior`` first if the numbers of labels per
    class do not reflect how large the classes are, at ``class_weight`` if rare classes matter most,
    and at ``label_noise`` if some labels may be wrong.

    Parameters
    ----------
    class_prior : "auto", "labeled", "uniform", array (n_classes,) or dict, default="auto"
        Class shares: the fraction of all samples in each class. The rounds learn from classes in
        these shares; the final classes need not have them. Pass a dict if you know the shares.
        "uniform" makes all classes equally large. "labeled" takes the shares of the labelled
        samples: right if labels were drawn within each class. "auto", or None, weights three
        guesses by how well they agree: equal shares, those of the labels and those of the scores.
        It is as good as "labeled" where that is right, and much better where labels were drawn
        from all samples without regard to class.
    class_weight : None, "balanced" or dict of class to float, default=None
        Weights of the classes in decisions: ``transduction_`` and ``predict`` return the class with
        the largest product of probability and weight. The probabilities do not change. "balanced"
        is one over the share of the class among all samples, according to the probabilities: more
        samples of rare classes are found, with more false alarms. Classes that a dict leaves out
        have weight 1. ``estimated_accuracy_`` stays that of the most probable classes.
    label_noise : float in [0, 1) or "auto", default=0.0
        Share of the given labels that may be wrong, at most as many as if they had been guessed:
        half of them with two classes. 0 keeps all labels. Above 0, a label counts less the more
        the views of its sample contradict it, and may be overruled. "auto" estimates the share from
        labels that are contradicted more often than hard classes explain.
    n_rounds : int, default=8
        Number of rounds with regressions on the views. Fewer rounds are faster; 0 uses the
        neighbour graphs only.
    calibration : {"cross_fit", None}, default="cross_fit"
        "cross_fit" runs up to three shorter fits, each without a third of the labels, until 200
        labels were held out, and compares their predictions with the held-out labels. This gives
        ``estimated_accuracy_``, and one temperature for all probabilities, which can lower
        confidence but never raises it. It changes no class, and usually takes less than half of
        the time of a fit. None leaves the scores as they are.
    missing_cells : {"low_rank", "median", "error"}, default="low_rank"
        How to fill missing cells, which are NaN in rows that are otherwise there, in ``fit`` and in
        new samples: by a low-rank matrix, from the other cells of the row, or by the median of the
        column. Both are learned from the view alone. "error" refuses such rows.
    view_sizes : sequence of int, optional
        Number of columns of every view, if ``X`` is one stacked array.
    graph_samples : int, optional
        Largest number of samples in the neighbour graphs. Set it, to 20 000 for example, to fit
        hundreds of thousands of samples. Labelled samples come first, then others chosen by their
        content; if there are too many labels, each class has at least three of them in the graphs.
        All other samples are joined to their nearest neighbours among these. Regressions and class
        shares still use all samples. None uses all samples in memory, and 20 000 of views that are
        Dask collections.
    device : {None, "auto", "cpu", "cuda"}, default=None
        Where ``fit`` and ``predict`` run. None uses NumPy, or PyTorch on the device of the views
        if they are tensors. "cpu" and "cuda" use PyTorch there. "auto" uses a GPU if there is one,
        else NumPy. Input is checked on the CPU, and fitted attributes are NumPy arrays.
    n_jobs : int, optional
        Number of threads. None uses as many as Numba has, -1 every core. The result does not
        depend on it.
    random_state : int, numpy Generator or None, default=0
        Seed for choosing the landmarks.
    verbose : int, default=0
        If above 0, one line per stage is logged on standard error.
    dtype : {"float64", "float32"}, default="float64"
        Type in which the views are stored; a view that would lose digits in float32 stays float64.
        Representations and kernels are always float32.
    representations : "all" or sequence of str, default="all"
        Ways to scale the rows of a view before they are compared: "unit", "standard",
        "standard_unit", "centred_unit", "hellinger" and "half_whitened". "all" only scales the
        columns where they have different units, or where there are two or three of them: the length
        of a row then tells as much as its direction. See `viewmend.core.mend.representations`.
    n_neighbors : int or (int, int), default=(3, 10)
        Number of neighbours of a sample in each graph. A pair gives bounds: the number is then half
        of the mean number of observed samples per class, within these bounds.
    spreading : float in [0, 1), default=0.99
        How far labels spread over the graphs; the larger, the further.
    homophily_power : float, default=2.0
        Each graph is weighted by the share of its edges that join samples of one class, to this
        power. The larger, the less do poor graphs count.
    edge_power, edge_floor : float, default=0.0, 0.05
        Each edge is multiplied by the agreement of the classes around its two ends plus
        ``edge_floor``, to the power ``edge_power``. 0 turns this off. It can help with one or two
        labels per class.
    n_landmarks : int, default=1000
        Number of landmarks per view: samples that the kernel regression compares all others with.
        Fewer are faster and less accurate.
    kernel_width : float, default=0.2
        Exponent of the kernel at the mean distance; the smaller, the smoother the regression.
    consensus_weight : float, default=0.5
        Total weight of the consensus graph, which joins samples with similar evidence, relative to
        all other graphs together.
    evidence_power : float, default=0.5
        Power of the evidence, the class scores of the regressions, in its product with the scores
        of the graphs.

    Attributes
    ----------
    classes_ : array (n_classes,)
        The classes, in the order of the columns of ``label_distributions_``.
    transduction_ : array (n_samples,)
        Classes of the samples of ``fit``. Given labels are kept. ``predict`` treats samples as new
        ones and may differ on the same samples.
    label_distributions_ : array (n_samples, n_classes)
        Class probabilities of the samples of ``fit``; rows sum to one.
    confidence_ : array (n_samples,)
        Probability of the class in ``transduction_``; see `decide`.
    estimated_accuracy_ : viewmend.core.common.accuracy.AccuracyEstimate or None
        Estimated accuracy on samples like the labelled ones, with an interval, beside chance and
        the most frequent class. None if every class has a single label, or ``calibration=None``.
    calibration_ : viewmend.core.common.calibration.Calibration
        The temperature of the probabilities, and the held-out labels that it was fitted to.
    decision_weights_ : array (n_classes,)
        Weights that follow from ``class_weight``; ones by default.
    unreachable_ : array (n_samples,) of bool
        Samples that no label reaches by graphs, regressions or rows of zeros, such as samples
        without any view. Their probabilities are the class shares of the labelled samples.
    off_graph_ : array (n_samples,) of bool
        Samples that no path in the graph joins to a label. Their class comes from the regressions.
    class_prior_ : array (n_classes,)
        The class shares that the last round used.
    label_noise_ : float
        Share of the given labels that were assumed to be wrong: ``label_noise`` or its estimate.
    view_weights_ : array (n_views,)
        Weight of the regression on each view, explained over unexplained variance; sums to one.
    graph_weights_ : dict of dict of float
        Weight of each graph, by view and representation; the largest is one.
    graph_ : sparse array (n_samples, n_samples)
        The last graph that labels were spread over. Samples that ``graph_samples`` leaves out have
        no edges in it.
    history_ : tuple of viewmend.core.mend.stage.StageRecord
        One record per stage.
    n_iter_ : int
        Number of stages.
    status_ : str
        "done"; or "stopped" or "interrupted" if a callback ended the fit early.
    zero_row_evidence_ : array (n_views, n_classes) or None
        What a row of zeros in a view adds to the logarithms of the class probabilities. Such rows
        are not compared with others. None if some class has labelled samples with zero rows only:
        rows of zeros are then compared like all others.
    observed_ : array (n_samples, n_views) of bool
        Which sample has which view.
    sample_ids_ : array (n_samples,) of str
        Identifiers of the samples; absent where ``fit`` saw none, such as the index of frames.
    n_features_in_, view_n_features_, view_names_, feature_names_in_, view_feature_names_
        Sizes and names of the views and columns in ``fit``. Names of columns exist only if the
        views had any.
    cell_fills_ : tuple of viewmend.data.cells.CellFill
        What fills missing cells, one per view; empty if ``missing_cells`` is "error".
    fitted_state_ : viewmend.models.fitted_state.MendState
        Everything else that ``predict`` and ``explain`` need.

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
        self, X: Any, y: Any, mask: Any, dtype: DTypeLike = np.float64, groups: Any = None
    ) -> tuple[MultiViewData, Labels]:
        X, self._input_device = on_host(X)
        check_device(self.device, self._input_device)
        y, mask, groups = (on_host(told)[0] for told in (y, mask, groups))
        return super()._check_fit(X, y, mask, dtype, groups)

    def _check_predict(self, X: Any, mask: Any) -> MultiViewData:
        return super()._check_predict(on_host(X)[0], on_host(mask)[0])

    def _max_rounds(self) -> int:
        return n_stages(make_settings(self))

    def _temperature(self, shares: np.ndarray, codes: np.ndarray) -> float:
        return proven_temperature(shares, codes)

    def _score_new(self, data: MultiViewData, X: Any) -> np.ndarray:
        """Scores of new samples: one step of the recipe, with the samples of fit unchanged."""
        device, state = check_device(self.device, input_device(X)), self.fitted_state_
        to_device = mover_to(device)
        remedy = "pass fewer samples at a time"
        named = memory_errors_named("predict", remedy)
        with limited_threads(self.n_jobs), digits_kept(device), named:
            fit = kept_on(device, state.induction, partial(on_device, to_device=to_device))
            scores = induce_classes(fit, data.views, data.observed, to_device)
        return to_numpy(scores).astype(np.float64) * state.class_weights

    def _explained(self, rows: np.ndarray) -> Explanation:
        return explain_mended(self, rows)
