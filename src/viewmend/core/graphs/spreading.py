"""Label spreading on a sparse graph between samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.csgraph import connected_components

from viewmend.backend.namespace import Array, array_namespace
from viewmend.core.common.linear_systems import block_cg
from viewmend.core.graphs.graph import Graph

# Largest change of a sample's soft labels in one step, relative to the largest of them, at which
# the steps end; the steps between two looks at it, and the most steps.
ENOUGH = 1e-3
STEPS_UNASKED = 4
MOST_STEPS = 2000
# Soft labels below this are as good as none.
SMALLEST = 1e-30


def normalise_graph(graph: csr_array) -> csr_array:
    """``D^{-1/2} W D^{-1/2}``; isolated samples keep a zero row."""
    degrees = graph.sum(axis=1)
    scale = np.divide(1, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
    return csr_array(diags_array(scale) @ graph @ diags_array(scale))


def laplacian(graph: csr_array) -> csr_array:
    """``D - W`` of the symmetric part of a graph."""
    W = (graph + graph.T) / 2
    return csr_array(diags_array(W.sum(axis=1)) - W)


def weighted_sum(weights: np.ndarray, matrices: Sequence[csr_array]) -> csr_array:
    """``sum_v weights_v matrices_v``."""
    total = csr_array(matrices[0].shape)
    for weight, matrix in zip(weights, matrices, strict=True):
        total = total + weight * matrix
    return total


def label_gaps(graph: csr_array, F: np.ndarray, G: np.ndarray | None = None) -> np.ndarray:
    """``|f_i - g_j|^2`` for every stored entry of a graph, in the order of ``graph.data``.

    The graph is (n_rows, n_columns), ``F`` (n_rows, n_classes) and ``G`` (n_columns, n_classes),
    which is ``F`` itself for a graph between samples.
    """
    rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    gaps = F[rows] - (F if G is None else G)[graph.indices]
    return np.einsum("ij,ij->i", gaps, gaps)


def spread_labels(
    graph: csr_array, Y: np.ndarray, spreading: float, tol: float = 1e-6
) -> np.ndarray:
    """Solution of ``(I - spreading D^{-1/2} W D^{-1/2}) F = Y`` (Zhou et al. 2004).

    ``graph`` (n_samples, n_samples) holds the symmetric weights ``W``, ``Y`` (n_samples, n_classes)
    one-hot rows of labelled samples and zero rows of the others. The larger ``spreading``, in [0,
    1), the further labels travel. ``tol`` is the relative residual of the conjugate gradients.
    """
    # Eigenvalues of the normalised graph are at most 1, so the system is positive definite. Its
    # solution has no negative entry, but rounding may give it some.
    system = eye_array(graph.shape[0]) - spreading * normalise_graph(graph)
    return np.maximum(block_cg(csr_array(system), Y, tol), 0)


def spread_over(
    parts: Sequence[tuple[float, Graph]], Y: Array, spreading: float, start: Array | None = None
) -> Array:
    """Solution of ``(I - spreading D^{-1/2} W D^{-1/2}) F = Y`` for ``W = sum scale * graph``.

    Parameters
    ----------
    parts : sequence of (float, Graph (n_samples, n_samples))
        Scales, none of them negative, and symmetric graphs.
    Y : array (n_samples, n_columns)
        Labels; none of them negative. Columns do not depend on each other.
    spreading : float
        How far labels travel, in [0, 1).
    start : array (n_samples, n_columns), optional
        Soft labels of a similar graph, from where it is not far.

    Returns
    -------
    array (n_samples, n_columns) of float32
        Soft labels, none of them negative; zero for samples that no label of the column reaches.
    """
    xp = array_namespace(Y)
    degrees = sum(scale * graph.row_sums() for scale, graph in parts)
    # Without edges there is nothing to divide by, and the labels stay as they are.
    degrees = xp.where(degrees > 0, degrees, xp.ones_like(degrees))[:, None]
    root = xp.astype(xp.sqrt(degrees), xp.float32)
    # With F = D^{1/2} G it is G = spreading D^{-1} W G + B: means over neighbours.
    B = xp.astype(Y, xp.float32) / root
    shrink = xp.astype(spreading / degrees, xp.float32)

    def mean(G: Array) -> Array:
        return shrink * sum(scale * graph.multiply(G) for scale, graph in parts)

    before = B if start is None else start * _reached(parts, Y) / root
    G = mean(before) + B
    factor = 2.0
    for step in range(MOST_STEPS):
        factor = 1 / (1 - spreading**2 * factor / 4)
        before, G = G, factor * (mean(G) + B - before) + before
        if step % STEPS_UNASKED == 0 and float(_largest_change(before, G, xp)) < ENOUGH:
            break
    return xp.maximum(G, xp.zeros_like(G)) * root


def _largest_change(before: Array, G: Array, xp: Any) -> Array:
    """Of any row, relative to its largest entry."""
    size = xp.max(xp.abs(G), axis=1)
    change = xp.max(xp.abs(G - before), axis=1)
    return xp.max(change / xp.maximum(size, xp.full_like(size, SMALLEST)))


def _reached(parts: Sequence[tuple[float, Graph]], Y: Array) -> Array:
    """Whether a label of a column reaches a sample: (n_samples, n_columns) or (1, n_columns)."""
    xp = array_namespace(Y)
    if any(scale > 0 and graph.is_connected for scale, graph in parts):
        return xp.astype(xp.any(Y > 0, axis=0, keepdims=True), xp.float32)
    reached = xp.astype(Y > 0, xp.float32)
    n_before, n_reached = -1.0, float(xp.sum(reached, dtype=xp.float64))
    while n_before < n_reached:
        for _ in range(STEPS_UNASKED):
            joined = sum(scale * graph.multiply(reached) for scale, graph in parts)
            reached = xp.astype(reached + joined > 0, xp.float32)
        n_before, n_reached = n_reached, float(xp.sum(reached, dtype=xp.float64))
    return reached


def reached_by_labels(parts: Sequence[tuple[float, Graph]], Y: Array) -> Array:
    """Samples (n_samples,) of bool that a path joins to some label of ``Y``."""
    xp = array_namespace(Y)
    some = xp.astype(xp.any(Y > 0, axis=1, keepdims=True), xp.float32)
    reached = _reached(parts, some)
    return xp.broadcast_to(reached > 0, some.shape)[:, 0]


def joined_to_label(graph: csr_array, labelled: np.ndarray) -> np.ndarray:
    """Nodes (n_nodes,) of bool that a path of the graph joins to some labelled node."""
    _, component = connected_components(graph, directed=False)
    return np.isin(component, component[labelled])
