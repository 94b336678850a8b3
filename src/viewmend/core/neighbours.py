"""Sparse graphs between samples: nearest neighbours, weighted by one of several rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.sparse import csr_array
from sklearn.neighbors import NearestNeighbors

from viewmend.backend import dispatch

__all__ = ["EDGE_WEIGHTS", "directed_neighbour_graph", "neighbour_graph", "union_graph"]


def closed_form_weights(E: np.ndarray, k: int) -> np.ndarray:
    """``(e_{k+1} - e_j)_+`` over the sum of these, as in Eq. (anchor_construction)."""
    return np.asarray(dispatch.nearest_anchor_weights(E, k))


def gaussian_weights(E: np.ndarray, k: int) -> np.ndarray:
    """``exp(-4 e_j / e_k)`` to the ``k`` nearest: a kernel as wide as the sample is lonely."""
    widest = E[:, k - 1 : k]
    # Duplicates of the sample fill the neighbourhood where it has no width.
    relative = np.divide(E, widest, out=np.zeros_like(E), where=widest > 0)
    return np.where(np.arange(E.shape[1]) < k, np.exp(-4 * relative), 0.0)


def uniform_weights(E: np.ndarray, k: int) -> np.ndarray:
    """One to each of the ``k`` nearest."""
    return np.broadcast_to(np.arange(E.shape[1]) < k, E.shape).astype(E.dtype)


# Squared distances (n_rows, k + 1) to the nearest rows, ascending, to weights of the same shape,
# of which the last column may be zero.
EDGE_WEIGHTS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "closed_form": closed_form_weights,
    "gaussian": gaussian_weights,
    "uniform": uniform_weights,
}


def directed_neighbour_graph(X: np.ndarray, k: int, weights: str = "closed_form") -> csr_array:
    """k-nearest-neighbour graph.

    Parameters
    ----------
    X : array (n_rows, n_features)
    k : int
        Lowered to ``n_rows - 2`` where there are fewer rows.
    weights : str
        Row of `EDGE_WEIGHTS`.

    Returns
    -------
    sparse array (n_rows, n_rows)
        None of its entries on the diagonal; with closed-form weights, rows sum to one.
    """
    n_rows = X.shape[0]
    k = min(k, n_rows - 2)
    if k < 1:
        return csr_array((n_rows, n_rows), dtype=X.dtype)
    # Without an argument, a row is never its own neighbour, even among duplicates.
    distances, columns = NearestNeighbors(n_neighbors=k + 1).fit(X).kneighbors()
    data = EDGE_WEIGHTS[weights](distances**2, k)
    starts = np.arange(0, data.size + 1, k + 1)
    graph = csr_array((data.ravel(), columns.ravel(), starts), shape=(n_rows, n_rows))
    graph.eliminate_zeros()
    return graph


def neighbour_graph(X: np.ndarray, k: int, weights: str = "closed_form") -> csr_array:
    """Symmetric k-nearest-neighbour graph: mean of the directed one and its transpose.

    Parameters and shapes as in `directed_neighbour_graph`.
    """
    graph = directed_neighbour_graph(X, k, weights)
    return csr_array((graph + graph.T) / 2)


def union_graph(
    views: Sequence[np.ndarray], observed: np.ndarray, k: int, weights: str = "closed_form"
) -> csr_array:
    """Sum over the views of their neighbour graphs, each among the samples that the view has.

    Parameters
    ----------
    views : sequence of array (n_samples, n_features_v)
    observed : array (n_samples, n_views) of bool
    k : int
    weights : str
        Row of `EDGE_WEIGHTS`.

    Returns
    -------
    sparse array (n_samples, n_samples)
    """
    n_samples = observed.shape[0]
    union = csr_array((n_samples, n_samples))
    for v, X_v in enumerate(views):
        rows = np.flatnonzero(observed[:, v])
        graph = neighbour_graph(X_v[rows], k, weights).tocoo()
        where = (rows[graph.row], rows[graph.col])
        union = union + csr_array((graph.data, where), shape=union.shape)
    return union
