"""A sparse graph learned from those of the views and from soft labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from viewmend.core.common.simplex import project_support
from viewmend.core.graphs.spreading import label_gaps

__all__ = ["learn_graph", "on_common_support"]


def on_common_support(graphs: Sequence[csr_array]) -> tuple[csr_array, np.ndarray]:
    """The union of the graphs' stored entries, and the entries of every graph on it.

    Returns
    -------
    support : sparse array (n_samples, n_samples)
    A : array (n_graphs, n_stored)
    """
    n_samples = graphs[0].shape[0]
    places = []
    for graph in graphs:
        rows = np.repeat(np.arange(n_samples), np.diff(graph.indptr))
        places.append(rows * n_samples + graph.indices)
    union = np.unique(np.concatenate(places))
    A = np.zeros((len(graphs), len(union)))
    for v, graph in enumerate(graphs):
        A[v, np.searchsorted(union, places[v])] = graph.data
    starts = np.searchsorted(union, np.arange(n_samples + 1) * n_samples)
    columns = union % n_samples
    return csr_array((np.ones(len(union)), columns, starts), (n_samples, n_samples)), A


def learn_graph(fused: csr_array, F: np.ndarray, smoothness: float) -> csr_array:
    """Argmin over ``S`` with rows in the simplex of ``|S - fused|^2 + smoothness tr(F^T L F)``.

    ``L`` is the Laplacian of ``(S + S^T) / 2``, so row by row this is the projection of
    ``fused_ij - smoothness / 4 |f_i - f_j|^2``.

    Parameters
    ----------
    fused : sparse array (n_samples, n_samples)
        Its stored entries are the support of ``S``.
    F : array (n_samples, n_classes)
    smoothness : float

    Returns
    -------
    sparse array (n_samples, n_samples)
        With the same stored pattern.
    """
    target = fused.data - smoothness / 4 * label_gaps(fused, F)
    return project_support(csr_array((target, fused.indices, fused.indptr), fused.shape))
