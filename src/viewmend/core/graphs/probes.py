"""Proposals for very many rows: each row looks into the cells nearest to itself.

With fewer rows, all rows of a cell look into the cells nearest to its centre. This saves the search
for cells, but a row is farther from the centre of its cell than from its neighbours, so that two to
four times as many rows must be compared to find the same neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from viewmend.backend import numba_neighbours
from viewmend.backend.threads import parallel_map
from viewmend.core.graphs.cells import Cells

# Rows in the order of cells whose probes are taken together: nearby rows look into the same cells.
TOGETHER = 8192
# Rows that are compared with all centres at once.
BLOCK_ROWS = 512


def propose_each(
    P: np.ndarray, cells: Cells, n_probes: int, n_proposals: int, limits: np.ndarray | None = None
) -> np.ndarray:
    """For each row, the nearest rows of the cells nearest to it, nearest first.

    Parameters
    ----------
    P : array (n_rows, n_columns) of float32
        In the order of the cells.
    cells : Cells
    n_probes, n_proposals : int
    limits : array (n_rows,) of float32, optional
        Squared distances that proposals must be below.

    Returns
    -------
    array (n_rows, n_proposals) of int32
        Positions in the order of the cells. With limits, -1 where there are fewer.
    """
    norms = np.einsum("ij,ij->i", P, P)
    found = np.full((len(P), n_proposals), -1, dtype=np.int32)

    def look_into(
        probed: Iterator[tuple[int, np.ndarray]], itself: np.ndarray, scores: np.ndarray
    ) -> None:
        near = found[itself[0] : itself[-1] + 1]
        for c, queries in probed:
            there = slice(cells.starts[c], cells.starts[c + 1])
            products = P[itself[queries]] @ P[there].T
            numba_neighbours.keep_nearest_of_some(
                products, norms[there], there.start, (queries, itself), scores, near
            )

    def work(start: int) -> None:
        itself = np.arange(start, min(start + TOGETHER, len(P)), dtype=np.int32)
        scores = np.full((itself.size, n_proposals), np.inf, dtype=np.float32)
        if limits is not None:
            scores[:] = (limits[itself] - norms[itself])[:, None]
        look_into(_probed(P[itself], cells.centres, n_probes), itself, scores)
        # Where nearby cells have too few rows, all are looked at.
        short = np.flatnonzero(scores[:, -1] == np.inf).astype(np.int32)
        if short.size:
            scores[short], found[itself[short]] = np.inf, -1
            look_into(((c, short) for c in range(len(cells.centres))), itself, scores)

    parallel_map(work, range(0, len(P), TOGETHER))
    return found


def _probed(
    rows: np.ndarray, centres: np.ndarray, n_probes: int
) -> Iterator[tuple[int, np.ndarray]]:
    """Every cell that is among the nearest of any row, and these rows; cells ascend."""
    near = _nearest_centres(rows, centres, n_probes)
    order = np.argsort(near, axis=None, kind="stable").astype(np.int32)
    probed, starts = np.unique(near.ravel()[order], return_index=True)
    for c, queries in zip(probed, np.split(order // near.shape[1], starts[1:]), strict=True):
        yield int(c), queries


def _nearest_centres(rows: np.ndarray, centres: np.ndarray, n_probes: int) -> np.ndarray:
    """The nearest centres of each row, (n_rows, n_probes) of int32."""
    norms = np.einsum("ij,ij->i", centres, centres)
    numbers = np.arange(len(centres), dtype=np.int32)
    near = np.full((len(rows), min(n_probes, len(centres))), -1, dtype=np.int32)
    scores = np.full(near.shape, np.inf, dtype=np.float32)
    nobody = np.full(BLOCK_ROWS, -1, dtype=np.int32)
    for start in range(0, len(rows), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        products = rows[part] @ centres.T
        numba_neighbours.keep_nearest(products, norms, numbers, nobody, scores[part], near[part])
    return near
