"""Classes of unseen samples: one step of the recipe, with everything else held as it was fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from viewmend.core.graphs.nearest import nearest_rows
from viewmend.core.graphs.neighbours import edges_to_neighbours
from viewmend.core.mend.components import as_dense_rows
from viewmend.core.mend.evidence import Evidence, combine, evidence_shares, hellinger_points
from viewmend.core.mend.geometry import MendGeometry
from viewmend.core.mend.homophily import guide_edges, neighbour_shares
from viewmend.core.mend.recipe import MendSettings, Stage


@dataclass(frozen=True, eq=False)
class MendInduction:
    """All that new samples need of a fit: its last stage, and what that was made from."""

    geometry: MendGeometry
    stage: Stage
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


def induce_classes(
    fit: MendInduction, views: Sequence[np.ndarray | csr_array], observed: np.ndarray
) -> np.ndarray:
    """Scores (n_new, n_classes) of new samples, from any subset of the views, on the scale of fit.

    A new sample is joined to its nearest samples of fit, in every representation of every view it
    has and in the evidence. Its soft labels are those that spreading gives an unlabelled sample
    with these edges, ``f = sum_j w_j F_j / d_j^{1/2}``, up to a factor. The samples of fit do not
    change.
    """
    new = represent_new(fit.geometry, views, observed)
    W = view_edges(fit, new)
    if fit.stage.evidence is None:
        return spread_to(fit, W)
    evidence = new_evidence(fit.geometry, fit.stage.evidence, new)
    consensus = consensus_edges(fit.stage.evidence.P, evidence, fit.settings)
    W = csr_array(W + fit.stage.consensus_scale * consensus)
    return combine(spread_to(fit, W), evidence, fit.prior, fit.settings.evidence_power)


def view_edges(fit: MendInduction, new: NewSamples) -> csr_array:
    """Weighted sum over views and representations of the edges to samples of fit."""
    n_new, n_samples = len(new.observed), len(fit.geometry.observed)
    # In the order of `view_graphs`: views, and within a view its representations.
    weights = iter(fit.stage.graph_weights)
    total = csr_array((n_new, n_samples))
    for view, mapped, rows in zip(fit.geometry.views, new.mapped, new.rows, strict=True):
        k = fit.settings.neighbours(len(view.rows), len(fit.prior))
        for name, representation in view.representations.items():
            near = nearest_rows(representation(view.X), k + 1, queries=mapped[name])
            edges = edges_to_neighbours(near, k, len(view.rows)).tocoo()
            where = (rows[edges.row], view.rows[edges.col])
            among_all = csr_array((edges.data, where), shape=(n_new, n_samples))
            total = total + next(weights) * among_all
    return csr_array(total)


def new_evidence(geometry: MendGeometry, evidence: Evidence, new: NewSamples) -> np.ndarray:
    """Evidence of the views of new samples, by the regressions of fit, (n_new, n_classes)."""
    n_classes = len(evidence.gaussian.prior)
    Z = np.zeros((*new.observed.shape, n_classes))
    for v, (view, fit) in enumerate(zip(geometry.views, evidence.fits, strict=True)):
        Z[new.rows[v], v] = fit.predict(view.features.map(new.mapped[v]))
    return evidence_shares(Z, new.observed, evidence.view_weights, evidence.gaussian)


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
    stage, settings = fit.stage, fit.settings
    if stage.A is not None:
        A = neighbour_shares(W, stage.classes, len(fit.prior))
        W = guide_edges(W, A, stage.A, settings.edge_floor, settings.edge_power)
    # The factor d^{-1/2} of the new sample itself is left out: it scales its row, no more.
    degrees = stage.W.sum(axis=1)[:, None]
    scaled = np.divide(stage.F, np.sqrt(degrees), out=np.zeros_like(stage.F), where=degrees > 0)
    # The column sums of fit, not of the new samples: their scores must not depend on each other.
    mass = stage.F.sum(axis=0)
    return np.asarray(W @ np.divide(scaled, mass, out=np.zeros_like(scaled), where=mass > 0))


def represent_new(
    geometry: MendGeometry, views: Sequence[np.ndarray | csr_array], observed: np.ndarray
) -> NewSamples:
    """New rows of every view through the representations that the fit made of it."""
    rows = tuple(np.flatnonzero(column) for column in observed.T)
    mapped = []
    for view, X_v, seen in zip(geometry.views, views, rows, strict=True):
        X = as_dense_rows(X_v[seen], view.components)
        mapped.append({name: each(X) for name, each in view.representations.items()})
    return NewSamples(tuple(mapped), rows, observed)
