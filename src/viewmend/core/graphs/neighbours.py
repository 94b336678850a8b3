"""Sparse graphs between samples: nearest neighbours, weighted by one of several rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.sparse import csr_array

from viewmend.backend import dispatch
from viewmend.core.graphs.nearest import Neighbours, nearest_rows


def closed_form_weights(E: np.ndarray, k: int) -> np.ndarray:
    """``(e_{k+1} - e_j)_+`` over the sum of these, as in Eq. (anchor_construction)."""
    return np.asarray(dispatch.nearest_anchor_weights(E, k))


def gaussian_weights(E: np.ndarray, k: int) -> np.ndarray:
    """``exp(-4 e_j / e_k)`` to the ``k`` nearest: a kernel as wide as the neighbourhood."""
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


def edges_to_neighbours(
    neighbours: Neighbours, k: int, n_rows: int, weights: str = "closed_form"
) -> csr_array:
    """Weighted edges (n_queries, n_rows) from every query to its ``k`` nearest rows.

    The neighbours are ``k + 1`` or more of each query; where they are fewer, ``k`` is lowered.
    ``weights`` is a row of `EDGE_WEIGHTS`; with closed-form ones, rows sum to one.
    """
    n_queries, n_known = neighbours.indices.shape
    k = min(k, n_known - 1)
    if k < 1:
        return csr_array((n_queries, n_rows))
    columns = neighbours.indices[:, : k + 1]
    # SciPy does not look, and its compiled code would write elsewhere in the memory.
    if columns.size and not 0 <= columns.min() <= columns.max() < n_rows:
        msg = (
            f"neighbours must be rows 0 to {n_rows - 1}, got {columns.min()} to {columns.max()}; "
            f"the search or the file that they come from is damaged"
        )
        raise IndexError(msg)
    data = EDGE_WEIGHTS[weights](neighbours.squared_distances[:, : k + 1], k)
    starts = np.arange(0, data.size + 1, k + 1)
    edges = csr_array((data.ravel(), columns.ravel(), starts), shape=(n_queries, n_rows))
    # The (k + 1)-th neighbour has weight zero, and so have those as far as it.
    edges.eliminate_zeros()
    return edges


def graph_from_neighbours(
    neighbours: Neighbours, k: int, weights: str = "closed_form"
) -> csr_array:
    """Symmetric graph of the rows: mean of `edges_to_neighbours` and its transpose."""
    edges = edges_to_neighbours(neighbours, k, len(neighbours.indices), weights)
    return csr_array((edges + edges.T) / 2)


def directed_neighbour_graph(X: np.ndarray, k: int, weights: str = "closed_form") -> csr_array:
    """Edges (n_rows, n_rows) from the rows of ``X`` to their ``k`` nearest, never to themselves.

    ``k`` is lowered to ``n_rows - 2`` where rows are fewer; weights as in `edges_to_neighbours`.
    """
    return edges_to_neighbours(nearest_rows(X, k + 1), k, X.shape[0], weights)


def neighbour_graph(X: np.ndarray, k: int, weights: str = "closed_form") -> csr_array:
    """Symmetric graph: mean of `directed_neighbour_graph` and its transpose."""
    return graph_from_neighbours(nearest_rows(X, k + 1), k, weights)


def scatter_graph(graph: csr_array, rows: np.ndarray, n_samples: int) -> csr_array:
    """The graph (n_rows, n_rows) between the samples ``rows``, among all the samples."""
    edges = graph.tocoo()
    return csr_array((edges.data, (rows[edges.row], rows[edges.col])), shape=(n_samples,) * 2)


def union_graph(
    views: Sequence[np.ndarray], observed: np.ndarray, k: int, weights: str = "closed_form"
) -> csr_array:
    """Sum over the views of their neighbour graphs, each among the samples that the view has.

    ``views`` are (n_samples, n_features_v) each; weights as in `edges_to_neighbours`.
    """
    n_samples = observed.shape[0]
    union = csr_array((n_samples, n_samples))
    for v, X_v in enumerate(views):
        rows = np.flatnonzero(observed[:, v])
        graph = neighbour_graph(X_v[rows], k, weights)
        union = union + scatter_graph(graph, rows, n_samples)
    return union
