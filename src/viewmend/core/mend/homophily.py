"""How far edges join samples of one class: weights of graphs, and of single edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from viewmend.backend.namespace import Array, array_namespace, to_numpy
from viewmend.core.graphs.graph import Edges, Graph, GraphUnion

# Edges worked on at a time, so that the gathered rows stay small.
BLOCK = 2**20

# A graph as the sum of several, each with a factor.
Parts = Sequence[tuple[float, Graph]]


@dataclass(frozen=True, eq=False)
class Guide:
    """What guided the edges of a graph: see `guide_edges`.

    ``classes`` (n_samples,) are those of the samples, -1 where unknown, and ``A`` (n_samples,
    n_classes) their class affinities.
    """

    classes: Array
    A: Array
    floor: float
    power: float


def homophily_weights(graphs: GraphUnion, classes: Array, power: float) -> np.ndarray:
    """``(q_g / max q)^power`` for the homophily ``q_g`` of each graph, (n_graphs,).

    These take the role of AGF-TI's view weights ``alpha``: a graph that contradicts the current
    classes (n_samples,) counts for less. Where no graph has any edge within a class, all weights
    are one.
    """
    shares = to_numpy(graphs.homophily(classes))
    best = shares.max()
    return np.asarray((shares / best) ** power) if best > 0 else np.ones(len(shares))


def homophily_above_chance(graphs: GraphUnion, classes: Array) -> float:
    """Homophily of the best graph: 0 where edges ignore the classes, 1 where they never leave one.

    Chance is that of two ends of edges, see `chance_within`. Edges of samples of unknown class, -1
    in ``classes`` (n_samples,), leave theirs. A graph in which one class meets itself alone tells
    nothing; 1 where that is true of every graph.
    """
    within, chance = to_numpy(graphs.homophily(classes)), chance_within(graphs, classes)
    best = float(_above(within, chance).max())
    return best if np.isfinite(best) else 1.0


def homophily_of_known(graphs: GraphUnion, classes: Array) -> np.ndarray:
    """Homophily above chance (n_graphs,) of the edges between samples of known class alone.

    -inf where there is no such edge, or one class alone.
    """
    among = _edges_among(graphs, classes >= 0)
    within, chance = to_numpy(among.homophily(classes)), chance_within(among, classes)
    return _above(within, chance)


def chance_within(graphs: GraphUnion, classes: Array) -> np.ndarray:
    """How often two ends of edges, drawn by chance, are of one class in every graph, (n_graphs,).

    By the weights that meet in the classes, as in the assortativity of Newman (2003), not by their
    sizes: where many rows of a view are equal, all edges may lead to a few samples, which are of
    one class more often than not. 1 where no end has a known class.
    """
    xp, degrees = array_namespace(classes), graphs.degrees()
    members = classes[:, None] == xp.unique_values(classes[classes >= 0])
    mass = to_numpy(degrees @ xp.astype(members, degrees.dtype))
    total = mass.sum(axis=1)
    shares = mass / np.where(total > 0, total, 1)[:, None]
    return np.where(total > 0, np.sum(shares**2, axis=1), 1.0)


def _above(within: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """``(q - c) / (1 - c)``, and -inf where there is but one class to meet."""
    told = chance < 1
    return np.where(told, (within - chance) / np.where(told, 1 - chance, 1), -np.inf)


def _edges_among(graphs: GraphUnion, known: Array) -> GraphUnion:
    """The graphs without edges of samples that are not ``known`` (n_samples,)."""
    xp = array_namespace(known)

    def kept(edges: Edges, rows: Array) -> Edges:
        there = xp.astype(known[rows], edges.weights.dtype)
        return Edges(edges.indices, edges.weights * there[:, None] * there[edges.indices])

    pairs = zip(graphs.edges, graphs.rows, strict=True)
    return replace(graphs, edges=tuple(kept(*pair) for pair in pairs))


def class_affinities(parts: Parts, classes: Array, Y: Array) -> Array:
    """Share (n_samples, n_classes) of every class among the neighbours of a sample.

    Labelled samples, which have a one-hot row in ``Y``, keep it; see `neighbour_shares`.
    """
    xp = array_namespace(Y)
    labelled = xp.any(Y > 0, axis=1, keepdims=True)
    return xp.where(labelled, Y, neighbour_shares(parts, classes, Y.shape[1]))


def neighbour_shares(parts: Parts, classes: Array, n_classes: int) -> Array:
    """Share of every class among the weights of a row, (n_rows, n_classes).

    The graphs (n_rows, n_samples) hold edges to samples of ``classes`` (n_samples,), -1 if unknown.
    """
    xp = array_namespace(classes)
    dtype = parts[0][1].data.dtype
    members = classes[:, None] == xp.arange(n_classes, device=classes.device)
    votes = sum(scale * graph.multiply(xp.astype(members, dtype)) for scale, graph in parts)
    degrees = xp.astype(row_sums(parts), dtype)[:, None]
    return xp.where(degrees > 0, votes / xp.where(degrees > 0, degrees, 1), 0.0)


def row_sums(parts: Parts) -> Array:
    """Degrees (n_rows,) of the sum of some graphs."""
    return sum(scale * graph.row_sums() for scale, graph in parts)


def total_weight(parts: Parts) -> float:
    """Sum of all weights."""
    return float(sum(float(row_sums([part]).sum()) for part in parts))


def guide_edges(graph: Graph, guide: Guide) -> Graph:
    """``W_ij (floor + <a_i, a_j>)^power``: edges between samples of unlike affinities fade.

    It takes the role of AGF-TI's label-guided update of its graph, in multiplicative form.
    """
    # The floor keeps edges between samples that nothing is known of.
    scale = (guide.floor + edge_agreement(graph, guide.A)) ** guide.power
    xp = array_namespace(guide.A)
    return graph.reweighted(graph.data * xp.astype(scale, graph.data.dtype))


def guide_directed(edges: Edges, A: Array, B: Array, guide: Guide) -> Edges:
    """The same for edges from rows of affinities ``A`` to others of affinities ``B``."""
    xp = array_namespace(A)
    agreement = xp.zeros(edges.indices.shape, dtype=A.dtype, device=A.device)
    for t in range(edges.indices.shape[1]):
        agreement[:, t] = xp.sum(A * B[edges.indices[:, t]], axis=1)
    factor = (guide.floor + agreement) ** guide.power
    return Edges(edges.indices, edges.weights * xp.astype(factor, edges.weights.dtype))


def guide_union(graphs: GraphUnion, guide: Guide) -> GraphUnion:
    """Every graph with its edges guided; the agreement of two samples is that of the same two."""
    pairs = zip(graphs.edges, (guide.A[rows] for rows in graphs.rows), strict=True)
    return replace(graphs, edges=tuple(guide_directed(edges, A, A, guide) for edges, A in pairs))


def edge_agreement(graph: Graph, A: Array) -> Array:
    """``<a_i, a_j>`` for every stored entry of a graph, in the order of its data."""
    xp = array_namespace(A)
    every_row = xp.arange(graph.shape[0], device=A.device)
    rows = xp.repeat(every_row, graph.indptr[1:] - graph.indptr[:-1])
    agreement = xp.empty((rows.shape[0],), dtype=A.dtype, device=A.device)
    for start in range(0, rows.shape[0], BLOCK):
        edges = slice(start, start + BLOCK)
        agreement[edges] = xp.sum(A[rows[edges]] * A[graph.indices[edges]], axis=1)
    return agreement
