"""MendClassifier: the recipe of `viewmend.core.mend.recipe` as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from viewmend.backend.namespace import to_numpy, torch_device
from viewmend.backend.threads import limited_threads, serial_blas
from viewmend.backend.torch_gpu import mover_to
from viewmend.callbacks.notify import kept_or_made, starting_point
from viewmend.core.common.calibration import proven_temperature
from viewmend.core.common.content_order import canonical_order
from viewmend.core.common.records import converted
from viewmend.core.common.rows import RowsInMemory
from viewmend.core.graphs.graph import in_order_of_fit
from viewmend.core.graphs.spreading import reached_by_labels
from viewmend.core.mend.geometry import MendGeometry, Tell, build_geometry
from viewmend.core.mend.held_out import N_FOLDS, scores_without
from viewmend.core.mend.induction import induce_classes, make_induction, on_device
from viewmend.core.mend.labelling import Labelling
from viewmend.core.mend.recipe import final_weights, mend, n_stages
from viewmend.core.mend.representations import REPRESENTATIONS
from viewmend.core.mend.resuming import GeometryProblem, MendProblem
from viewmend.core.mend.samples import MendSamples, samples_of
from viewmend.core.mend.stage import Mended, MendSettings
from viewmend.data.cells import DEFAULT, MISSING_CELLS
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels
from viewmend.data.sparse import DENSE_COLUMNS
from viewmend.models.base import WITHOUT_EFFECT, TwoStepClassifier
from viewmend.models.calibrated import CROSS_FIT, CalibratedMixin
from viewmend.models.cross_fit import label_folds
from viewmend.models.decisions import CLASS_WEIGHT, ClassWeight
from viewmend.models.devices import check_device, input_device, kept_on, on_host
from viewmend.models.explanation import Explanation, explain_mended
from viewmend.models.fitted_state import MendState
from viewmend.models.inductive import InductiveMixin
from viewmend.models.mend_problem import (
    check_room,
    make_geometry_settings,
    make_labelling,
    make_settings,
    ordered_rows,
    representation_names,
    tell_components,
)
from viewmend.parameters import AnyOf, Each, Integer, OneOf, Real, Rule
from viewmend.protocols import ClassPrior, Seed


class MendClassifier(CalibratedMixin, InductiveMixin, TwoStepClassifier):
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
        these are a fair sample of the classes. "auto", which None stands for too, goes from there
        towards the shares that the scores have by themselves, the further the less the two
        agree: as good where labels are a fair sample, and much better where they are not.
    calibration : {"cross_fit", None}, default="cross_fit"
        "cross_fit" asks three shorter fits, each without a third of the labels, for the classes of
        the held-out samples. That tells how accurate the model is, and one temperature for all
        probabilities, which can take confidence away and never adds any; it changes no class and
        takes less than half the time of a fit. None leaves the scores as they are.
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
    view_weights_ : array (n_views,)
        Trust in the regression on each view, explained over unexplained variance; sums to one.
    graph_weights_ : dict of dict of float
        Trust in each graph by view and representation, the largest one.
    graph_ : sparse array (n_samples, n_samples)
        The graph that the labels last spread over.
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
        "calibration": OneOf(CROSS_FIT, None),
        "class_weight": CLASS_WEIGHT,
        "missing_cells": OneOf(*MISSING_CELLS),
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
        calibration: str | None = CROSS_FIT,
        class_weight: ClassWeight = None,
        missing_cells: str = DEFAULT,
        view_sizes: Sequence[int] | None = None,
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
        self.calibration = calibration
        self.class_weight = class_weight
        self.missing_cells = missing_cells
        self.view_sizes = view_sizes
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

    def build_geometry(
        self, data: MultiViewData, labels: Labels
    ) -> tuple[np.ndarray, MendGeometry]:
        """Canonical order of the samples, and what is known of them, in it, without labels."""
        settings = make_geometry_settings(self)
        check_room(self, data, settings)
        tell_components(data)
        order = canonical_order(data.views, data.observed, labels.codes)
        device = check_device(self.device, self._input_device)
        views, observed = ordered_rows(data, order), data.observed[order]
        make = partial(build_geometry, views, observed, settings, mover_to(device), self.tell_stage)
        if device is not None:
            return order, make()
        problem = GeometryProblem(views, observed, settings)
        return order, kept_or_made(self._all_callbacks(), problem, make)

    def _fit_labels(self, geometry: tuple[np.ndarray, MendGeometry], labels: Labels) -> None:
        order, ordered = geometry
        settings = make_settings(self)
        to_device = mover_to(torch_device(ordered.observed))
        labelling = make_labelling(self.class_prior, labels, order, to_device)
        self.tell_stage("graphs")
        samples = samples_of(RowsInMemory(), ordered, labels.n_classes, settings.neighbours)
        mended = self._mended(samples, ordered, labelling, settings)
        stage, inverse_order = mended.stage, np.argsort(order)
        for_new = make_induction(samples, ordered, stage, stage.shares, settings)
        state = MendState(
            labels.codes,
            labels.shares(),
            final_weights(stage),
            converted(for_new, to_numpy),
            order,
        )
        self._store_graph(mended, order)
        reached = to_numpy(reached_by_labels(stage.graph.parts, samples.in_graph(labelling.Y)))
        self.off_graph_ = ~reached[inverse_order]
        hold_out = partial(cross_fitted_scores, samples, labelling, settings, self.tell_stage)
        P = to_numpy(stage.P)[inverse_order].astype(np.float64)
        scored = np.asarray(P.any(axis=1))
        self._store_calibrated(
            P * state.class_weights, labels, scored, state, {CROSS_FIT: hold_out}
        )

    def _mended(
        self,
        samples: MendSamples,
        geometry: MendGeometry,
        labelling: Labelling,
        settings: MendSettings,
    ) -> Mended:
        """The recipe, from its beginning or from where a callback says that it stopped."""
        callbacks = self._all_callbacks()
        problem = MendProblem(geometry, labelling.Y, labelling.prior, labelling.trust)
        start: Any = starting_point(callbacks, problem)
        if start is not None:
            start = start.converted(mover_to(torch_device(geometry.observed)))
        with serial_blas():
            return mend(samples, labelling, settings, callbacks, start)

    def _max_rounds(self) -> int:
        return n_stages(make_settings(self))

    def _temperature(self, shares: np.ndarray, codes: np.ndarray) -> float:
        return proven_temperature(shares, codes)

    def _score_new(self, data: MultiViewData, X: Any) -> np.ndarray:
        """One step of the recipe, with the samples of fit held as they are."""
        device, state = check_device(self.device, input_device(X)), self.fitted_state_
        to_device = mover_to(device)
        with limited_threads(self.n_jobs):
            fit = kept_on(device, state.induction, partial(on_device, to_device=to_device))
            scores = induce_classes(fit, data.views, data.observed, to_device)
        return to_numpy(scores).astype(np.float64) * state.class_weights

    def _explained(self, rows: np.ndarray) -> Explanation:
        return explain_mended(self, rows)

    def _store_graph(self, mended: Mended, order: np.ndarray) -> None:
        """Symbols become words again, and the samples come back in the order of fit."""
        stage = mended.stage
        self.class_prior_ = stage.shares
        self.graph_ = in_order_of_fit(stage.graph.parts, order)
        self.graph_weights_ = self._named_weights(stage.graph_weights)
        self.history_ = mended.history
        self.n_iter_ = len(mended.history)
        self.status_ = mended.status
        if stage.evidence is not None:
            trust = stage.evidence.view_weights
            self.view_weights_ = trust / trust.sum()

    def _named_weights(self, weights: np.ndarray) -> dict[str, dict[str, float]]:
        names = representation_names(self.representations)
        table = weights.reshape(len(self.view_names_), len(names))
        return {
            view: dict(zip(names, map(float, row), strict=True))
            for view, row in zip(self.view_names_, table, strict=True)
        }


def cross_fitted_scores(
    samples: MendSamples, labelling: Labelling, settings: MendSettings, tell: Tell
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of labelled samples by runs that do not see their labels, and their codes.

    Scores are (n_held_out, n_classes), codes (n_held_out,); classes of a single label are left out.
    """
    Y = to_numpy(labelling.Y)
    codes = np.where(Y.any(axis=1), np.argmax(Y, axis=1), -1)
    if Y.sum(axis=0).max() < 2:
        return np.empty((0, Y.shape[1])), np.empty(0, dtype=np.int64)
    folds = label_folds(codes, np.arange(len(codes)), N_FOLDS)
    scores = []
    with serial_blas():
        for turn, fold in enumerate(folds):
            tell(f"calibration {turn + 1} of {len(folds)}", turn, len(folds))
            scores.append(to_numpy(scores_without(fold, samples, labelling, settings)))
    return np.concatenate(scores).astype(np.float64), codes[np.concatenate(folds)]
