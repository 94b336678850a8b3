"""Label spreading on a sparse graph between samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.csgraph import connected_components

from viewmend.core.common.linear_systems import block_cg


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


def joined_to_label(graph: csr_array, labelled: np.ndarray) -> np.ndarray:
    """Nodes (n_nodes,) of bool that a path of the graph joins to some labelled node."""
    _, component = connected_components(graph, directed=False)
    return np.isin(component, component[labelled])
