"""What SciPy does with graphs, for NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

__all__ = ["renumbered"]

Triple = tuple[np.ndarray, np.ndarray, np.ndarray]


def renumbered(parts: Sequence[tuple[float, Triple]], rows: np.ndarray, n: int) -> Triple:
    """The sum of graphs ``(indptr, indices, data)``, each times a factor, of which node ``i`` is
    node ``rows[i]`` among ``n``; columns ascend in every row, data is of float64.
    """
    size = len(rows)
    total = csr_array((size, size))
    for scale, (indptr, indices, data) in parts:
        graph = csr_array((data.astype(np.float64), indices, indptr), shape=(size, size))
        total = total + scale * graph
    edges = total.tocoo()
    graph = csr_array((edges.data, (rows[edges.row], rows[edges.col])), shape=(n, n))
    graph.sort_indices()
    return graph.indptr, graph.indices, graph.data
