"""How far edges join samples of one class: weights of graphs, and of single edges."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

# Edges worked on at a time, so that the gathered rows stay small.
BLOCK = 2**17


def homophily(graph: csr_array, classes: np.ndarray) -> float:
    """Share of the weight of a graph that joins samples of one class; -1 is not a class."""
    graph = graph.tocoo()
    # Unknown classes are equal to each other, but agree on nothing.
    same = (classes[graph.row] == classes[graph.col]) & (classes[graph.row] >= 0)
    total = float(graph.data.sum())
    return float(graph.data[same].sum()) / total if total > 0 else 0.0


def homophily_weights(graphs: Sequence[csr_array], classes: np.ndarray, power: float) -> np.ndarray:
    """``(q_g / max q)^power`` for the homophily ``q_g`` of each graph, (n_graphs,).

    These take the role of AGF-TI's view weights ``alpha``: a graph that contradicts the current
    classes counts for less. Where no graph has any edge within a class, all weights are one.
    """
    shares = np.array([homophily(graph, classes) for graph in graphs])
    best = shares.max()
    return np.asarray((shares / best) ** power) if best > 0 else np.ones(len(graphs))


def class_affinities(W: csr_array, classes: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Share (n_samples, n_classes) of every class among the neighbours of a sample.

    Labelled samples, which have a one-hot row in ``Y``, keep it; see `neighbour_shares`.
    """
    return np.where(Y.any(axis=1, keepdims=True), Y, neighbour_shares(W, classes, Y.shape[1]))


def neighbour_shares(W: csr_array, classes: np.ndarray, n_classes: int) -> np.ndarray:
    """Share of every class among the weights of a row, (n_rows, n_classes).

    ``W`` (n_rows, n_samples) holds edges to samples of ``classes`` (n_samples,), -1 if unknown.
    """
    degrees = W.sum(axis=1)[:, None]
    votes = W @ (classes[:, None] == np.arange(n_classes)).astype(W.dtype)
    return np.divide(votes, degrees, out=np.zeros_like(votes), where=degrees > 0)


def guide_edges(
    W: csr_array, A: np.ndarray, B: np.ndarray, floor: float, power: float
) -> csr_array:
    """``W_ij (floor + <a_i, b_j>)^power``: edges between samples of unlike affinities fade.

    It takes the role of AGF-TI's label-guided update of its graph, in multiplicative form. ``A``
    (n_rows, n_classes) and ``B`` (n_columns, n_classes) are those of `class_affinities`, the same
    for a graph between samples.
    """
    # The floor keeps edges between samples that nothing is known of.
    scale = (floor + edge_agreement(W, A, B)) ** power
    return csr_array((W.data * scale, W.indices, W.indptr), shape=W.shape)


def edge_agreement(W: csr_array, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """``<a_i, b_j>`` for every stored entry of a graph, in the order of ``W.data``."""
    rows = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    agreement = np.empty(W.nnz)
    for start in range(0, W.nnz, BLOCK):
        edges = slice(start, start + BLOCK)
        agreement[edges] = np.einsum("ij,ij->i", A[rows[edges]], B[W.indices[edges]])
    return agreement
