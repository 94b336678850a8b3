"""Classes of new samples: one step of the recipe, with everything else unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from viewmend.backend.namespace import Array, array_namespace, is_numpy
from viewmend.backend.threads import row_blocks
from viewmend.core.common.small_sums import beside
from viewmend.core.graphs.graph import Edges, edges_of
from viewmend.core.graphs.nearest import PointIndex, nearest_of_new
from viewmend.core.mend.components import SparseComponents, as_dense_rows
from viewmend.core.mend.evidence import (
    Evidence,
    combine,
    evidence_shares,
    hellinger_points,
    labelled_shares,
)
from viewmend.core.mend.explanation import view_degrees
from viewmend.core.mend.geometry import ComparedRows, MendGeometry, MendView, ToDevice, left_there
from viewmend.core.mend.homophily import Guide, guide_union, row_sums
from viewmend.core.mend.joining import JoinedRows, guided, spread_to, stacked
from viewmend.core.mend.kernel_features import linear_map, mean_kernel
from viewmend.core.mend.label_reading import LabelReading, ViewReading
from viewmend.core.mend.representations import Representation
from viewmend.core.mend.samples import MendSamples, scaled_columns
from viewmend.core.mend.stage import MendSettings, Stage
from viewmend.core.mend.view_gaussian import ViewGaussian

# Numbers that new rows become, in all representations and as a kernel, at a time: 1 GiB of float32
# in NumPy, and 8 GiB elsewhere.
PIECE, LARGE_PIECE = 2**28, 2**31


@dataclass(frozen=True, eq=False)
class ViewRegression:
    """The regression of the classes on a view, in the kernel at landmarks.

    ``landmarks`` (n_landmarks,) are rows of the view, ``scales`` by representation those of a
    `KernelMap`. Scores of a row are ``(k - centre) coefficients + intercept``, with its kernel
    ``k`` (n_landmarks,) and coefficients (n_landmarks, n_classes). ``scores`` (n_rows, n_classes)
    are those of the rows of fit, each without itself, and ``weight`` is that of the view.
    ``by_labels`` is there where given labels alone are read too.
    """

    landmarks: np.ndarray
    scales: Mapping[str, float]
    centre: np.ndarray
    coefficients: np.ndarray
    intercept: np.ndarray
    scores: np.ndarray
    weight: float
    by_labels: ViewReading | None = None

    def predict(self, kernel: Array) -> Array:
        """Scores (n_new, n_classes) of rows with kernels (n_new, n_landmarks)."""
        scores = linear_map(kernel, self.centre, self.coefficients)
        return scores + beside(self.intercept, kernel)


@dataclass(frozen=True, eq=False)
class FittedView(ComparedRows):
    """What new samples are compared with in a view: parts of a `MendView`, and its regression."""

    X: Array
    rows: Array
    representations: Mapping[str, Representation]
    components: SparseComponents | None
    regression: ViewRegression | None


@dataclass(frozen=True, eq=False)
class FittedEvidence:
    """The evidence ``P`` (n_samples, n_classes), its model, its factor within the graph.

    ``label_intercept`` (n_classes,) is that of the reading of given labels, if there is one.
    """

    P: np.ndarray
    gaussian: ViewGaussian
    consensus_scale: float
    label_intercept: np.ndarray | None = None

    @cached_property
    def _indices(self) -> dict[int, PointIndex]:
        return {}

    def index(self, k: int) -> PointIndex:
        """What finds the samples of most similar evidence, made when it is first asked for."""
        if k not in self._indices:
            self._indices[k] = PointIndex(hellinger_points(self.P), k)
        return self._indices[k]


@dataclass(frozen=True, eq=False)
class MendInduction:
    """All that new samples, and explanations, need of a fit: no more, because models are saved.

    ``F``, ``mass``, ``classes``, ``A`` and ``graph_weights`` are those of the last `Stage`. Of its
    graph, ``degrees`` (n_samples,) are the sums of rows, and ``view_degrees`` (n_samples, n_views)
    what each view adds to them. ``prior`` (n_classes,) are the class shares.
    """

    views: tuple[FittedView, ...]
    observed: np.ndarray
    F: np.ndarray
    mass: np.ndarray
    classes: np.ndarray
    A: np.ndarray | None
    graph_weights: np.ndarray
    degrees: np.ndarray
    view_degrees: np.ndarray
    evidence: FittedEvidence | None
    prior: np.ndarray
    settings: MendSettings


@dataclass(frozen=True, eq=False)
class NewSamples:
    """New samples as far as they are ``observed`` (n_new, n_views).

    ``rows`` are those that a view has, (n_seen_v,) of int, and ``X`` their values or components,
    (n_seen_v, n_features_v); ``mapped`` are these in each representation of the view, (n_seen_v,
    n_components).
    """

    X: tuple[Array, ...]
    mapped: tuple[Mapping[str, np.ndarray], ...]
    rows: tuple[np.ndarray, ...]
    observed: np.ndarray


def make_induction(
    samples: MendSamples,
    geometry: MendGeometry,
    stage: Stage,
    prior: np.ndarray,
    settings: MendSettings,
) -> MendInduction:
    """What to keep of a fit for new samples."""
    graphs, evidence = samples.graphs, None
    if stage.guide is not None:
        graphs = guide_union(graphs, stage.guide)
    regressions: Sequence[ViewRegression | None] = [None] * len(geometry.views)
    if stage.evidence is not None:
        regressions = _regressions(samples, geometry.views, stage.evidence)
        evidence = _fitted_evidence(samples, stage.evidence, stage.graph.consensus_scale)
    return MendInduction(
        views=tuple(map(_fitted_view, geometry.views, regressions)),
        observed=geometry.observed,
        F=stage.F,
        mass=stage.mass,
        classes=samples.in_graph(stage.classes),
        A=None if stage.guide is None else stage.guide.A,
        graph_weights=stage.graph_weights,
        degrees=row_sums(stage.graph.parts),
        view_degrees=view_degrees(graphs, stage.graph_weights, len(geometry.views)),
        evidence=evidence,
        prior=prior,
        settings=settings,
    )


def _regressions(
    samples: MendSamples, views: Sequence[MendView], evidence: Evidence
) -> list[ViewRegression]:
    """The regressions on the views, as maps of the kernel at landmarks."""
    Z, readings = samples.in_graph(evidence.Z), _readings(samples, views, evidence.by_labels)
    return [
        ViewRegression(
            view.landmarks,
            view.kernel.scales,
            view.kernel.centre,
            # Features (k - centre) linear and scores of these are one linear map of the kernel.
            view.kernel.linear @ fit.coefficients,
            fit.intercept,
            Z[view.rows, v],
            fit.weight,
            reading,
        )
        for v, (view, fit, reading) in enumerate(zip(views, evidence.fits, readings, strict=True))
    ]


def _readings(
    samples: MendSamples, views: Sequence[MendView], reading: LabelReading | None
) -> list[ViewReading | None]:
    """What each view has to do with the reading of given labels, if there is one."""
    if reading is None:
        return [None] * len(views)
    Z = samples.in_graph(reading.Z)
    return [
        ViewReading(columns, coefficients, Z[view.rows, v])
        for v, (view, columns, coefficients) in enumerate(
            zip(views, reading.columns, reading.coefficients, strict=True)
        )
    ]


def _fitted_evidence(samples: MendSamples, evidence: Evidence, scale: float) -> FittedEvidence:
    intercept = None if evidence.by_labels is None else evidence.by_labels.intercept
    return FittedEvidence(samples.in_graph(evidence.P), evidence.gaussian, scale, intercept)


def _fitted_view(view: MendView, regression: ViewRegression | None) -> FittedView:
    return FittedView(view.X, view.rows, view.representations, view.components, regression)


def view_scores(fit: MendInduction, places: np.ndarray) -> np.ndarray:
    """Scores (n_places, n_views, n_classes) of samples of fit by the regressions, each without it.

    They are zero where a view is missing.
    """
    Z = np.zeros((*fit.observed.shape, len(fit.prior)))
    for v, view in enumerate(fit.views):
        if view.regression is not None:
            Z[view.rows, v] = view.regression.scores
    return Z[places]


def label_parts(fit: MendInduction, places: np.ndarray) -> np.ndarray:
    """What views, and last the intercept, add to the logarithms by given labels alone.

    Of samples of fit, (n_places, n_views + 1, n_classes); zero where labels are not read.
    """
    Z = np.zeros((len(fit.observed), len(fit.views) + 1, len(fit.prior)))
    if fit.evidence is None or fit.evidence.label_intercept is None:
        return Z[places]
    for v, view in enumerate(fit.views):
        if view.regression is not None and view.regression.by_labels is not None:
            Z[view.rows, v] = view.regression.by_labels.scores
    Z[:, -1] = fit.evidence.label_intercept
    return Z[places]


def on_device(fit: MendInduction, to_device: ToDevice) -> MendInduction:
    """The same with all that has a row per sample copied to a device."""
    evidence = fit.evidence
    if evidence is not None:
        evidence = replace(evidence, P=to_device(evidence.P))
    return replace(
        fit,
        views=tuple(
            replace(view, X=to_device(view.X), rows=to_device(view.rows)) for view in fit.views
        ),
        F=to_device(fit.F),
        classes=to_device(fit.classes),
        A=None if fit.A is None else to_device(fit.A),
        degrees=to_device(fit.degrees),
        evidence=evidence,
    )


def induce_classes(
    fit: MendInduction,
    views: Sequence[np.ndarray | csr_array],
    observed: np.ndarray,
    to_device: ToDevice = left_there,
) -> Array:
    """Scores (n_new, n_classes) of new samples, from any subset of the views, on the scale of fit.

    A new sample is joined to its nearest samples of fit, in every representation of every view it
    has and in the evidence. Its soft labels are those that spreading gives an unlabelled sample
    with these edges. The samples of fit do not change. They are where ``to_device`` copies the new
    ones.
    """
    size = PIECE if is_numpy(array_namespace(fit.F)) else LARGE_PIECE
    pieces = row_blocks(len(observed), _numbers_of_row(fit), size)
    scores = [
        _induced(fit, represent_new(fit.views, [X_v[rows] for X_v in views], seen, to_device))
        for rows, seen in ((rows, observed[rows]) for rows in pieces)
    ]
    return scores[0] if len(scores) == 1 else array_namespace(fit.F).concat(scores)


def _numbers_of_row(fit: MendInduction) -> int:
    """Numbers that a new row becomes while it is worked on, if it has all views."""
    in_maps = sum(len(view.representations) * view.X.shape[1] for view in fit.views)
    regressions = [view.regression for view in fit.views if view.regression is not None]
    return in_maps + max((len(each.landmarks) for each in regressions), default=0)


def _induced(fit: MendInduction, new: NewSamples) -> Array:
    """Scores of new samples that are worked on at once."""
    joined = view_edges(fit, new)
    if fit.evidence is None:
        return spread_to_new(fit, joined)
    evidence = new_evidence(fit.views, fit.evidence, new)
    joined = join_by_evidence(fit, joined, evidence)
    return combine(spread_to_new(fit, joined), evidence, fit.prior, fit.settings.evidence_power)


def view_edges(fit: MendInduction, new: NewSamples) -> JoinedRows:
    """Edges to samples of fit in every representation of every view."""
    # In the order of the graphs: views, and within a view its representations.
    edges, rows = [], []
    for view, mapped, seen in zip(fit.views, new.mapped, new.rows, strict=True):
        k = fit.settings.neighbours(view.rows.shape[0], len(fit.prior))
        near = nearest_of_new(mapped, k + 1, view.pivot, view.mapped)
        for name in view.representations:
            found = edges_of(near[name], k)
            edges.append(Edges(view.rows[found.indices], found.weights))
            rows.append(seen)
    return stacked(edges, rows, fit.graph_weights, new.observed.shape[0])


def new_evidence(views: Sequence[FittedView], evidence: FittedEvidence, new: NewSamples) -> Array:
    """Evidence of the views of new samples, by the regressions of fit, (n_new, n_classes)."""
    Z = scores_of_new(views, new, len(evidence.gaussian.prior))
    weights = np.array([view.regression.weight for view in views if view.regression is not None])
    P = evidence_shares(Z, new.observed, weights, evidence.gaussian)
    if evidence.label_intercept is None:
        return P
    parts = label_parts_of_new(views, evidence, new)
    return labelled_shares(P, array_namespace(parts).sum(parts, axis=1))


def scores_of_new(views: Sequence[FittedView], new: NewSamples, n_classes: int) -> Array:
    """Scores (n_new, n_views, n_classes) by the regressions of fit; zero in missing views."""
    xp = array_namespace(new.observed)
    shape = (*new.observed.shape, n_classes)
    Z = xp.zeros(shape, dtype=xp.float32, device=new.observed.device)
    for v, (regression, kernel) in enumerate(_kernels_of_new(views, new)):
        Z[new.rows[v], v] = regression.predict(kernel)
    return Z


def label_parts_of_new(
    views: Sequence[FittedView], evidence: FittedEvidence, new: NewSamples
) -> Array:
    """`label_parts` of new samples, (n_new, n_views + 1, n_classes) of float32."""
    xp, n_classes = array_namespace(new.observed), len(evidence.gaussian.prior)
    shape = (new.observed.shape[0], len(views) + 1, n_classes)
    parts = xp.zeros(shape, dtype=xp.float32, device=new.observed.device)
    if evidence.label_intercept is None:
        return parts
    for v, view in enumerate(views):
        if view.regression is not None and view.regression.by_labels is not None:
            parts[new.rows[v], v] = view.regression.by_labels(new.X[v])
    parts[:, -1] = beside(evidence.label_intercept, parts)
    return parts


def _kernels_of_new(
    views: Sequence[FittedView], new: NewSamples
) -> Iterator[tuple[ViewRegression, Array]]:
    """Regression on every view, and the kernel (n_seen_v, n_landmarks) of new rows for it."""
    regressions = [view.regression for view in views if view.regression is not None]
    for view, mapped, regression in zip(views, new.mapped, regressions, strict=True):
        landmarks = {name: view.mapped(name, regression.landmarks) for name in mapped}
        yield regression, mean_kernel(mapped, landmarks, regression.scales)


def join_by_evidence(fit: MendInduction, joined: JoinedRows, evidence: Array) -> JoinedRows:
    """Add edges to the samples of fit with the most similar evidence (n_samples, n_classes)."""
    assert fit.evidence is not None, "asked for where there is evidence"
    k = fit.settings.neighbours(*fit.evidence.P.shape)
    # One more than k: the weights are relative to the distance of the next neighbour.
    near = fit.evidence.index(k + 1).nearest(hellinger_points(evidence))
    xp = array_namespace(evidence)
    rows = xp.arange(joined.n_rows, device=evidence.device)
    return joined.with_edges(edges_of(near, k), rows, fit.evidence.consensus_scale)


def spread_to_new(fit: MendInduction, joined: JoinedRows) -> Array:
    """Soft labels over the edges, guided as those of fit were, columns scaled as there."""
    # The column sums of fit, not of the new samples: their scores must not depend on each other.
    return scaled_columns(spread_to(guided_edges(fit, joined), fit.F, fit.degrees), fit.mass)


def guided_edges(fit: MendInduction, joined: JoinedRows) -> JoinedRows:
    """Edges of new samples, times the agreement of classes that those of fit were multiplied by."""
    if fit.A is None:
        return joined
    settings = fit.settings
    return guided(joined, Guide(fit.classes, fit.A, settings.edge_floor, settings.edge_power))


def represent_new(
    fitted: Sequence[FittedView],
    views: Sequence[np.ndarray | csr_array],
    observed: np.ndarray,
    to_device: ToDevice = left_there,
) -> NewSamples:
    """New rows of every view through the representations that the fit made of it."""
    given, rows, mapped = [], [], []
    for view, X_v, column in zip(fitted, views, observed.T, strict=True):
        seen = np.flatnonzero(column)
        X = to_device(as_dense_rows(X_v[seen], view.components))
        given.append(X)
        mapped.append({name: each(X) for name, each in view.representations.items()})
        rows.append(to_device(seen))
    return NewSamples(tuple(given), tuple(mapped), tuple(rows), to_device(observed))
