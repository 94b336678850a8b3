"""The fit of a `MendClassifier`: in memory with all samples in the graph or some, and on Dask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from viewmend.backend.namespace import to_numpy, torch_device
from viewmend.backend.threads import limited_threads, serial_blas
from viewmend.backend.torch_gpu import mover_to, to_host
from viewmend.callbacks.notify import kept_or_made, starting_point
from viewmend.core.advice.set_levels import SetLevels, set_levels
from viewmend.core.common.class_shares import normalise_rows
from viewmend.core.common.content_order import canonical_order, drawn_rows, sample_hashes
from viewmend.core.common.records import converted
from viewmend.core.common.rows import RowsInMemory
from viewmend.core.graphs.graph import in_order_of_fit
from viewmend.core.mend.components import as_dense_rows
from viewmend.core.mend.geometry import (
    GeometrySettings,
    MendGeometry,
    RawBlock,
    Tell,
    build_geometry,
)
from viewmend.core.mend.held_out import ENOUGH_LABELS, MOST_COMPARED, N_FOLDS, scores_without
from viewmend.core.mend.induction import make_induction
from viewmend.core.mend.labelling import Labelling, doubted_rows
from viewmend.core.mend.outside import graph_alone, join_rows, rows_in_graph
from viewmend.core.mend.recipe import final_weights, mend
from viewmend.core.mend.resuming import GeometryProblem, MendProblem
from viewmend.core.mend.samples import MendSamples, reached_samples, samples_of
from viewmend.core.mend.stage import Mended, MendSettings
from viewmend.data.cells import learn_fills
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels
from viewmend.distributed.lazy import is_lazy
from viewmend.models.apart import warn_of_unreachable
from viewmend.models.base import TwoStepClassifier, ViewLayout
from viewmend.models.calibrated import CROSS_FIT
from viewmend.models.cross_fit import HeldOut
from viewmend.models.devices import (
    check_device,
    keep_copy,
    keeping_digits,
    memory_errors_named,
)
from viewmend.models.fitted_state import MendState
from viewmend.models.label_folds import label_folds, some_can_be_held_out
from viewmend.models.mend_problem import (
    SMALLER,
    check_graph_samples,
    check_room,
    check_views_in_graph,
    make_geometry_settings,
    make_labelling,
    make_settings,
    representation_names,
    seen_rows,
    tell_components,
    warn_of_untold,
)
from viewmend.models.suspects import judged_labels


@dataclass(frozen=True, eq=False)
class Found:
    """What a fit found, wherever it ran.

    The samples of the graph are ``rows`` (n_graph,) of ``fit``. Of all samples, in their order:
    scores ``P`` (n_samples, n_classes), and whether a path joins them to a label, ``reached``
    (n_samples,) of bool.
    """

    mended: Mended
    samples: MendSamples
    geometry: MendGeometry
    rows: np.ndarray
    P: np.ndarray
    reached: np.ndarray


@dataclass(frozen=True, eq=False)
class HeldOutRuns:
    """Scores by runs that hold labels out, each some of them.

    ``labelled`` are those of labelled samples by the run that does not see their label. ``others``
    (n_runs, n_compared, n_classes) are of the samples ``compared`` (n_compared,) of the graph,
    which have no label, by all runs.
    """

    labelled: HeldOut
    others: np.ndarray
    compared: np.ndarray


class MendFitting(TwoStepClassifier):
    """The fit of a `MendClassifier`, apart from its parameters."""

    _input_device: str | None = None
    # Of `viewmend.distributed.mixin.DaskMixin`.
    check_callbacks_in_memory: Callable[[], None]
    fitted_state_: MendState
    zero_row_evidence_: np.ndarray | None

    def keeps_labels(self) -> bool:
        """Whether samples keep the labels they were given: unless ``label_noise`` doubts them."""
        return self.label_noise == 0

    @keeping_digits
    def build_geometry(
        self, data: MultiViewData, labels: Labels
    ) -> tuple[np.ndarray, MendGeometry]:
        """Canonical order of the samples, and what is known of them, in it, without labels.

        Which samples are in the graph depends on which have a label, if not all are.
        """
        settings = make_geometry_settings(self)
        check_graph_samples(self.graph_samples, labels.n_classes)
        order = canonical_order(data.views, data.observed, labels.codes)
        graph = rows_to_draw(data, labels.codes, order, self.graph_samples)
        check_views_in_graph(data, order[graph])
        device = check_device(self.device, self._input_device)
        check_room(self, data, order[graph], settings, labels.n_classes, device)
        tell_components(data)
        sample = self._geometry_of(data, order[graph], settings)
        if len(graph) == len(order):
            return order, sample
        self.tell_stage("samples outside the graph")
        block = raw_block(data, order, graph, sample)
        return order, join_rows(sample, block, settings.most_neighbours + 1)

    def _geometry_of(
        self, data: MultiViewData, rows: np.ndarray, settings: GeometrySettings
    ) -> MendGeometry:
        """The geometry of some samples, all of them in the graph."""
        device = check_device(self.device, self._input_device)
        views, observed = seen_rows(data, rows), data.observed[rows]
        make = partial(build_geometry, views, observed, settings, mover_to(device), self.tell_stage)
        if device is not None:
            return make()
        problem = GeometryProblem(views, observed, settings)
        return kept_or_made(self._all_callbacks(), problem, make)

    def _fit_views(self, X: Any, y: Any, mask: ArrayLike | None, groups: Any) -> None:
        if not is_lazy(X):
            self.check_callbacks_in_memory()
            with memory_errors_named("MendClassifier", SMALLER):
                super()._fit_views(X, y, mask, groups)
        else:
            from viewmend.distributed.kept_blocks import files_of_fit

            with limited_threads(self.n_jobs), files_of_fit() as folder:
                self._fit_blocks((X, y, mask), groups, folder)
        warn_of_untold(self)

    @keeping_digits
    def _fit_labels(self, geometry: tuple[np.ndarray, MendGeometry], labels: Labels) -> None:
        order, ordered = geometry
        settings, inverse_order = make_settings(self), np.argsort(order)
        to_device = mover_to(torch_device(ordered.observed))
        labelling = make_labelling(self, labels, order, to_device)
        self.tell_stage("graphs")
        samples = samples_of(RowsInMemory(), ordered, labels.n_classes, settings.neighbours)
        mended = self._mended(samples, ordered, labelling, settings)
        P = to_numpy(mended.stage.P)[inverse_order].astype(np.float64)
        reached = to_numpy(reached_samples(samples, mended.stage, labelling))[inverse_order]
        rows = order[rows_in_graph(ordered)]
        self._store_found(Found(mended, samples, ordered, rows, P, reached), labels, settings)

    def _fit_blocks(self, views: tuple[Any, Any, Any], groups: Any, folder: str) -> None:
        """Fit on Dask collections; the samples of the graph are gathered here.

        ``views`` are ``X``, ``y`` and the mask. Workers keep blocks in a ``folder`` of that name.
        """
        from viewmend.distributed.mend_estimator import SampleGeometry, fit_blocks, gather_blocks

        callbacks, settings = self._all_callbacks(), make_settings(self)
        given = gather_blocks(self, views, groups, callbacks)
        layout, labels = given.chunks.layout, given.labels
        order, geometry = self.build_geometry(given.sample.data, given.sampled_labels)
        rows = given.sample.rows[order]
        k = make_geometry_settings(self).most_neighbours + 1
        sample = SampleGeometry(geometry, rows, k, folder)
        labelling = make_labelling(self, labels, rows[:0], mover_to(None))
        fit = fit_blocks(self, given, sample, labelling, settings, callbacks)
        self.cell_fills_ = learn_fills(given.sample.data, self.missing_cells)
        seen = ViewLayout(layout.names, layout.n_features, fit.observed, layout.columns)
        self._remember_layout(seen, labels)
        self._remember_ids(views[0].ids if isinstance(views[0], MultiViewData) else None)
        found = fit.mended, fit.samples, fit.geometry, rows, fit.P.astype(np.float64), fit.reached
        self._store_found(Found(*found), labels, settings)
        self.zero_row_evidence_ = np.zeros((len(layout.names), labels.n_classes))
        warn_of_unreachable(self, np.zeros(len(labels.codes), dtype=bool))

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
            start = start.on_device(mover_to(torch_device(geometry.observed)))
        with serial_blas():
            return mend(samples, labelling, settings, callbacks, start)

    def _store_found(self, found: Found, labels: Labels, settings: MendSettings) -> None:
        stage, samples = found.mended.stage, found.samples
        for_new = make_induction(samples, found.geometry, stage, stage.shares, settings)
        codes, shares, weights = labels.codes, labels.shares(), final_weights(stage)
        kept = converted(for_new, to_host)
        state = MendState(codes, shares, weights, kept, found.rows)
        if self.calibration is not None:
            labelled = np.flatnonzero(codes[found.rows] >= 0)
            groups = None if labels.groups is None else labels.groups[found.rows[labelled]]
            state = replace(state, labelled=labelled, label_groups=groups)
        keep_copy(torch_device(found.geometry.observed), state.induction, for_new)
        self._store_graph(found.mended, found.rows, len(labels.codes))
        self.off_graph_ = ~found.reached
        hold_out = cache(partial(self._held_out, found, labels, settings))
        scores, scored = found.P * weights, np.asarray(found.P.any(axis=1))
        if not self.keeps_labels():
            scores = doubted_scores(scores, state, self.graph_, self.label_noise_)
        held_out = {CROSS_FIT: lambda: hold_out().labelled}
        self._store_calibrated(scores, labels, scored, state, held_out)
        if self.calibration is not None:
            levels = self._set_levels(hold_out(), found.rows)
            self.fitted_state_ = replace(self.fitted_state_, levels=levels)

    def _set_levels(self, runs: HeldOutRuns, rows: np.ndarray) -> SetLevels | None:
        """What prediction sets compare shares by; ``rows`` (n_graph,) are those of the graph.

        Where every sample has a label, the samples held out stand for others.
        """
        if len(runs.labelled.codes) == 0:
            return None
        compared = rows[runs.compared]
        fit = self.label_distributions_[compared[~self.unreachable_[compared]]]
        others = runs.others[runs.others.any(axis=2)]
        if len(fit) == 0 or len(others) == 0:
            held_out = self._distributions(runs.labelled.scores)
            return set_levels(held_out, held_out)
        return set_levels(self._distributions(others), fit)

    def _held_out(self, found: Found, labels: Labels, settings: MendSettings) -> HeldOutRuns:
        """`cross_fitted_scores` of the samples of the graph, which are in memory, alone."""
        geometry, samples = graph_alone(found.geometry), found.samples
        to_device = mover_to(torch_device(geometry.observed))
        labelling = make_labelling(self, labels, found.rows, to_device)
        if geometry is not found.geometry:
            samples = samples_of(RowsInMemory(), geometry, labels.n_classes, settings.neighbours)
        groups = None if labels.groups is None else labels.groups[found.rows]
        return cross_fitted_scores(samples, labelling, settings, self.tell_stage, groups)

    def _store_graph(self, mended: Mended, rows: np.ndarray, n_samples: int) -> None:
        """Store the results as attributes, in the order of fit."""
        stage = mended.stage
        self.class_prior_ = stage.shares
        self.label_noise_ = stage.noise
        self.graph_ = in_order_of_fit(stage.graph.parts, rows, n_samples)
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


def doubted_scores(
    scores: np.ndarray, state: MendState, graph: csr_array, noise: float
) -> np.ndarray:
    """Scores (n_samples, n_classes) in which labels count as much as they deserve.

    What is said of a labelled sample without its label is the prior of its class. Outside the graph
    that is what its scores are.
    """
    others = normalise_rows(scores)
    rows, shares = judged_labels(state, graph)
    others[rows] = shares
    Y = np.asarray(state.label_codes[:, None] == np.arange(scores.shape[1]), dtype=float)
    return np.where(Y.any(axis=1, keepdims=True), doubted_rows(Y, others, noise), scores)


def rows_to_draw(
    data: MultiViewData, codes: np.ndarray, order: np.ndarray, size: int | None
) -> np.ndarray:
    """Numbers in the canonical ``order`` of the samples that are in the graph, ascending."""
    if size is None or len(order) <= size:
        return np.arange(len(order))
    hashes = sample_hashes(data.views, data.observed)
    return np.argsort(order)[drawn_rows(hashes, codes, codes >= 0, size)]


def raw_block(
    data: MultiViewData, order: np.ndarray, graph: np.ndarray, sample: MendGeometry
) -> RawBlock:
    """All samples in canonical order, with the places of those in the graph, where that is."""
    to_device = mover_to(torch_device(sample.observed))
    observed, place = data.observed[order], np.full(len(order), -1)
    place[graph] = np.arange(len(graph))
    views = tuple(
        to_device(as_dense_rows(X_v[order[seen]], view.components))
        for X_v, seen, view in zip(data.views, observed.T, sample.views, strict=True)
    )
    return RawBlock(views, to_device(observed), to_device(place))


def cross_fitted_scores(
    samples: MendSamples,
    labelling: Labelling,
    settings: MendSettings,
    tell: Tell,
    groups: np.ndarray | None = None,
) -> HeldOutRuns:
    """Scores of labelled samples by runs that do not see their labels.

    All samples are in memory, in the order of the graph; so are their ``groups`` (n_samples,).
    """
    Y = to_numpy(labelling.Y)
    codes = np.where(Y.any(axis=1), np.argmax(Y, axis=1), -1)
    compared, n_classes = some_of(np.flatnonzero(codes < 0), MOST_COMPARED), Y.shape[1]
    if not some_can_be_held_out(codes, groups):
        none = HeldOut(np.empty((0, n_classes)), codes[:0])
        return HeldOutRuns(none, np.empty((0, len(compared), n_classes)), compared)
    folds = enough_folds(label_folds(codes, np.arange(len(codes)), N_FOLDS, groups))
    scores, others = [], []
    with serial_blas():
        for turn, fold in enumerate(folds):
            tell(f"calibration {turn + 1} of {len(folds)}", turn, len(folds))
            P = to_numpy(scores_without(fold, samples, labelling, settings))
            scores.append(P[fold].astype(np.float64))
            others.append(P[compared].astype(np.float64))
    labels = Labels(np.arange(n_classes), codes, groups)
    return HeldOutRuns(HeldOut.of_folds(scores, folds, labels), np.stack(others), compared)


def some_of(rows: np.ndarray, most: int) -> np.ndarray:
    """At most so many of the rows (n_rows,), at equal steps."""
    steps = min(len(rows), most)
    return np.asarray(rows[np.arange(steps) * len(rows) // max(steps, 1)])


def enough_folds(folds: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The first folds that hold out `ENOUGH_LABELS` labels together, or all of them."""
    n_before = np.cumsum([0, *map(len, folds)])[:-1]
    return [fold for fold, n in zip(folds, n_before, strict=True) if n < ENOUGH_LABELS]
