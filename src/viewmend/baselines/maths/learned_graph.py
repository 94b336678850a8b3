"""A sparse graph learned from those of the views and from soft labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from viewmend.core.common.simplex import project_support
from viewmend.core.graphs.spreading import label_gaps


def on_common_support(graphs: Sequence[csr_array]) -> tuple[csr_array, np.ndarray]:
    """The union of the graphs' stored entries, and the entries (n_graphs, n_stored) on it."""
    n_samples = graphs[0].shape[0]
    # Of every stored entry, row after row.
    positions = []
    for graph in graphs:
        rows = np.repeat(np.arange(n_samples), np.diff(graph.indptr))
        positions.append(rows * n_samples + graph.indices)
    union = np.unique(np.concatenate(positions))
    A = np.zeros((len(graphs), len(union)))
    for v, graph in enumerate(graphs):
        A[v, np.searchsorted(union, positions[v])] = graph.data
    starts = np.searchsorted(union, np.arange(n_samples + 1) * n_samples)
    columns = union % n_samples
    return csr_array((np.ones(len(union)), columns, starts), (n_samples, n_samples)), A


def with_entries(support: csr_array, entries: np.ndarray) -> csr_array:
    """A graph that stores the given entries where ``support`` stores its own."""
    return csr_array((entries, support.indices, support.indptr), support.shape)


def learn_graph(
    fused: csr_array, F: np.ndarray, smoothness: float, G: np.ndarray | None = None
) -> csr_array:
    """Argmin over ``S`` of ``|S - fused|^2 + smoothness / 2 sum_ij s_ij |f_i - g_j|^2``.

    Rows of ``S`` lie in the simplex, so row by row this is the projection of
    ``fused_ij - smoothness / 4 |f_i - g_j|^2``. Between samples, where ``G = F``, the last term is
    ``smoothness tr(F^T L F)`` with ``L`` the Laplacian of ``(S + S^T) / 2``. The stored entries of
    ``fused`` (n_rows, n_columns) are the support of ``S``; ``F`` (n_rows, n_classes), ``G``
    (n_columns, n_classes).
    """
    target = fused.data - smoothness / 4 * label_gaps(fused, F, G)
    return project_support(with_entries(fused, target))
