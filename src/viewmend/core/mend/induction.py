"""Classes of unseen samples: one step of the recipe, with everything else held as it was fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from viewmend.core.graphs.nearest import nearest_rows
from viewmend.core.graphs.neighbours import edges_to_neighbours
from viewmend.core.mend.components import SparseComponents, as_dense_rows
from viewmend.core.mend.evidence import combine, evidence_shares, hellinger_points
from viewmend.core.mend.explanation import view_degrees
from viewmend.core.mend.geometry import MendGeometry, MendView
from viewmend.core.mend.homophily import guide_edges, neighbour_shares
from viewmend.core.mend.kernel_features import mean_kernel
from viewmend.core.mend.loo_ridge import LeaveOneOut
from viewmend.core.mend.recipe import MendSettings, Stage
from viewmend.core.mend.representations import Representation
from viewmend.core.mend.view_gaussian import ViewGaussian


@dataclass(frozen=True, eq=False)
class ViewRegression:
    """The regression of the classes on a view, in the kernel at landmarks.

    ``landmarks`` (n_landmarks,) are rows of the view, ``scales`` by representation those of a
    `KernelMap`. Scores of a row are ``(k - centre) coefficients + intercept``, with its kernel
    ``k`` (n_landmarks,) and coefficients (n_landmarks, n_classes). ``scores`` (n_rows, n_classes)
    are those of the rows of fit, each without itself, and ``weight`` is that of the view.
    """

    landmarks: np.ndarray
    scales: Mapping[str, float]
    centre: np.ndarray
    coefficients: np.ndarray
    intercept: np.ndarray
    scores: np.ndarray
    weight: float


@dataclass(frozen=True, eq=False)
class FittedView:
    """What new samples are compared with in a view: parts of a `MendView`, and its regression."""

    X: np.ndarray
    rows: np.ndarray
    representations: Mapping[str, Representation]
    components: SparseComponents | None
    regression: ViewRegression | None


@dataclass(frozen=True, eq=False)
class FittedEvidence:
    """The evidence ``P`` (n_samples, n_classes), its model, its factor within the graph."""

    P: np.ndarray
    gaussian: ViewGaussian
    consensus_scale: float


@dataclass(frozen=True, eq=False)
class MendInduction:
    """All that new samples, and explanations, need of a fit: no more, because models are saved.

    ``F``, ``classes``, ``A`` and ``graph_weights`` are those of the last `Stage`. Of its graph,
    ``degrees`` (n_samples,) are the sums of rows, and ``view_degrees`` (n_samples, n_views) what
    each view adds to them. ``prior`` (n_classes,) are the class shares.
    """

    views: tuple[FittedView, ...]
    observed: np.ndarray
    F: np.ndarray
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

    ``rows`` are those that a view has, (n_seen_v,) of int; ``mapped`` are these in each
    representation of the view, (n_seen_v, n_components).
    """

    mapped: tuple[Mapping[str, np.ndarray], ...]
    rows: tuple[np.ndarray, ...]
    observed: np.ndarray


def make_induction(
    graphs: Sequence[csr_array],
    geometry: MendGeometry,
    stage: Stage,
    prior: np.ndarray,
    settings: MendSettings,
) -> MendInduction:
    """What is left of a fit once it has ended; ``graphs`` are those of `view_graphs`."""
    n_views = len(geometry.views)
    if stage.A is not None:
        A, floor, power = stage.A, settings.edge_floor, settings.edge_power
        graphs = [guide_edges(graph, A, A, floor, power) for graph in graphs]
    fits = [None] * n_views if stage.evidence is None else stage.evidence.fits
    evidence = None
    if stage.evidence is not None:
        evidence = FittedEvidence(stage.evidence.P, stage.evidence.gaussian, stage.consensus_scale)
    return MendInduction(
        views=tuple(map(_fitted_view, geometry.views, fits)),
        observed=geometry.observed,
        F=stage.F,
        classes=stage.classes,
        A=stage.A,
        graph_weights=stage.graph_weights,
        degrees=np.asarray(stage.W.sum(axis=1)),
        view_degrees=view_degrees(graphs, stage.graph_weights, n_views),
        evidence=evidence,
        prior=prior,
        settings=settings,
    )


def _fitted_view(view: MendView, fit: LeaveOneOut | None) -> FittedView:
    regression, kernel = None, view.features.map
    if fit is not None:
        # Features (k - centre) linear and scores of these are one linear map of the kernel.
        regression = ViewRegression(
            kernel.rows,
            kernel.scales,
            kernel.centre,
            kernel.linear @ fit.coefficients.astype(np.float64),
            fit.intercept,
            fit.scores,
            fit.weight,
        )
    return FittedView(view.X, view.rows, view.representations, view.components, regression)


def induce_classes(
    fit: MendInduction, views: Sequence[np.ndarray | csr_array], observed: np.ndarray
) -> np.ndarray:
    """Scores (n_new, n_classes) of new samples, from any subset of the views, on the scale of fit.

    A new sample is joined to its nearest samples of fit, in every representation of every view it
    has and in the evidence. Its soft labels are those that spreading gives an unlabelled sample
    with these edges, ``f = sum_j w_j F_j / d_j^{1/2}``, up to a factor. The samples of fit do not
    change.
    """
    new = represent_new(fit.views, views, observed)
    W = view_edges(fit, new)
    if fit.evidence is None:
        return spread_to(fit, W)
    evidence = new_evidence(fit.views, fit.evidence, new)
    consensus = consensus_edges(fit.evidence.P, evidence, fit.settings)
    W = csr_array(W + fit.evidence.consensus_scale * consensus)
    return combine(spread_to(fit, W), evidence, fit.prior, fit.settings.evidence_power)


def view_edges(fit: MendInduction, new: NewSamples) -> csr_array:
    """Weighted sum over views and representations of the edges to samples of fit."""
    n_new, n_samples = len(new.observed), len(fit.observed)
    # In the order of `view_graphs`: views, and within a view its representations.
    weights = iter(fit.graph_weights)
    total = csr_array((n_new, n_samples))
    for view, mapped, rows in zip(fit.views, new.mapped, new.rows, strict=True):
        k = fit.settings.neighbours(len(view.rows), len(fit.prior))
        for name, representation in view.representations.items():
            near = nearest_rows(representation(view.X), k + 1, queries=mapped[name])
            edges = edges_to_neighbours(near, k, len(view.rows)).tocoo()
            where = (rows[edges.row], view.rows[edges.col])
            among_all = csr_array((edges.data, where), shape=(n_new, n_samples))
            total = total + next(weights) * among_all
    return csr_array(total)


def new_evidence(
    views: Sequence[FittedView], evidence: FittedEvidence, new: NewSamples
) -> np.ndarray:
    """Evidence of the views of new samples, by the regressions of fit, (n_new, n_classes)."""
    regressions = [view.regression for view in views if view.regression is not None]
    Z = np.zeros((*new.observed.shape, len(evidence.gaussian.prior)))
    for v, (view, regression) in enumerate(zip(views, regressions, strict=True)):
        points = view.X[regression.landmarks]
        landmarks = {name: each(points) for name, each in view.representations.items()}
        kernel = mean_kernel(new.mapped[v], landmarks, regression.scales)
        scores = (kernel - regression.centre) @ regression.coefficients
        Z[new.rows[v], v] = scores + regression.intercept
    weights = np.array([regression.weight for regression in regressions])
    return evidence_shares(Z, new.observed, weights, evidence.gaussian)


def consensus_edges(P: np.ndarray, new_P: np.ndarray, settings: MendSettings) -> csr_array:
    """Edges from new samples to those of fit with the most similar evidence, (n_new, n_samples)."""
    k = settings.neighbours(*P.shape)
    near = nearest_rows(hellinger_points(P), k + 1, queries=hellinger_points(new_P))
    edges = edges_to_neighbours(near, k, len(P))
    # In what order SciPy adds depends on whether all rows happen to be sorted: without this, the
    # last bits of one sample would depend on the others.
    edges.sort_indices()
    return edges


def spread_to(fit: MendInduction, W: csr_array) -> np.ndarray:
    """Soft labels over edges (n_new, n_samples), guided as those of fit were, columns scaled."""
    if fit.A is not None:
        A = neighbour_shares(W, fit.classes, len(fit.prior))
        W = guide_edges(W, A, fit.A, fit.settings.edge_floor, fit.settings.edge_power)
    # The factor d^{-1/2} of the new sample itself is left out: it scales its row, no more.
    degrees = fit.degrees[:, None]
    scaled = np.divide(fit.F, np.sqrt(degrees), out=np.zeros_like(fit.F), where=degrees > 0)
    # The column sums of fit, not of the new samples: their scores must not depend on each other.
    mass = fit.F.sum(axis=0)
    return np.asarray(W @ np.divide(scaled, mass, out=np.zeros_like(scaled), where=mass > 0))


def represent_new(
    fitted: Sequence[FittedView], views: Sequence[np.ndarray | csr_array], observed: np.ndarray
) -> NewSamples:
    """New rows of every view through the representations that the fit made of it."""
    rows = tuple(np.flatnonzero(column) for column in observed.T)
    mapped = []
    for view, X_v, seen in zip(fitted, views, rows, strict=True):
        X = as_dense_rows(X_v[seen], view.components)
        mapped.append({name: each(X) for name, each in view.representations.items()})
    return NewSamples(tuple(mapped), rows, observed)
