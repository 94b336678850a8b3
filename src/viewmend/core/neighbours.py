"""Sparse graphs between samples: nearest neighbours with closed-form weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array
from sklearn.neighbors import NearestNeighbors

from viewmend.backend import dispatch

__all__ = ["directed_neighbour_graph", "neighbour_graph", "union_graph"]


def neighbour_graph(X: np.ndarray, k: int) -> csr_array:
    """Symmetric k-nearest-neighbour graph: mean of the directed one and its transpose.

    Parameters and shapes as in `directed_neighbour_graph`.
    """
    graph = directed_neighbour_graph(X, k)
    return csr_array((graph + graph.T) / 2)


def directed_neighbour_graph(X: np.ndarray, k: int) -> csr_array:
    """k-nearest-neighbour graph with the closed-form weights of Eq. (anchor_construction).

    Parameters
    ----------
    X : array (n_rows, n_features)
    k : int
        Lowered to ``n_rows - 2`` where there are fewer rows.

    Returns
    -------
    sparse array (n_rows, n_rows)
        Rows sum to one and have at most ``k`` entries, none on the diagonal.
    """
    n_rows = X.shape[0]
    k = min(k, n_rows - 2)
    if k < 1:
        return csr_array((n_rows, n_rows), dtype=X.dtype)
    # Without an argument, a row is never its own neighbour, even among duplicates.
    distances, columns = NearestNeighbors(n_neighbors=k + 1).fit(X).kneighbors()
    weights = dispatch.nearest_anchor_weights(distances**2, k)
    starts = np.arange(0, weights.size + 1, k + 1)
    graph = csr_array((weights.ravel(), columns.ravel(), starts), shape=(n_rows, n_rows))
    graph.eliminate_zeros()
    return graph


def union_graph(views: Sequence[np.ndarray], observed: np.ndarray, k: int) -> csr_array:
    """Sum over the views of their neighbour graphs, each among the samples that the view has.

    Parameters
    ----------
    views : sequence of array (n_samples, n_features_v)
    observed : array (n_samples, n_views) of bool
    k : int

    Returns
    -------
    sparse array (n_samples, n_samples)
    """
    n_samples = observed.shape[0]
    union = csr_array((n_samples, n_samples))
    for v, X_v in enumerate(views):
        rows = np.flatnonzero(observed[:, v])
        graph = neighbour_graph(X_v[rows], k).tocoo()
        where = (rows[graph.row], rows[graph.col])
        union = union + csr_array((graph.data, where), shape=union.shape)
    return union
