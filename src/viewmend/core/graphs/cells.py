"""Rows gathered in cells, so that a search need look into the nearest of them only.

Two kinds. Cells around centres suit rows with many columns: rows that are near one another mostly
share a centre. Leaves, cut in halves again and again, suit points that crowd in a few places: all
have the same number of points, however unevenly these lie. Nothing is drawn at random.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from viewmend.backend import numba_leaves, numba_neighbours
from viewmend.backend.threads import parallel_map

# Cells around centres, as a multiple of the square root of the rows.
CELLS_PER_ROOT = 2.0
# Rows above which cells are finer, and by how much: rows then look for the nearest cells by
# themselves (`probes`).
MANY, FINER = 100_000, 2
# The centres need not be good: few rounds, on few rows per cell.
CELL_ROUNDS = 3
ROWS_PER_CELL = 24
# A cell with more rows than this many mean ones is cut into leaves.
LARGEST = 4
# Rows that are compared with all centres at once.
BLOCK_ROWS = 2048
# The share of a cell's radius, the root of the mean squared distance from its centre.
REACH = 0.5
# Pieces that small work on many leaves is cut into at most.
MOST_TASKS = 64
# Queries of a cell that are compared with other rows at once.
BLOCK_QUERIES = 512


@dataclass(frozen=True, eq=False)
class Cells:
    """Rows cell by cell.

    Attributes
    ----------
    order : array (n_rows,) of int32
        The rows; those of cell ``c`` are ``order[starts[c]:starts[c + 1]]``.
    starts : array (n_cells + 1,) of int64
    centres : array (n_cells, n_columns) of float32
        Means of the cells. Cells that follow one another lie near one another.
    reaches : array (n_cells,) of float32
        By how much nearer than its centre a cell is taken to be: a share of its radius. Wide cells
        next to a crowd have rows near to it, though their centres are far.
    """

    order: np.ndarray
    starts: np.ndarray
    centres: np.ndarray
    reaches: np.ndarray

    def positions(self, cells: np.ndarray) -> np.ndarray:
        """Places in ``order`` of the rows of some cells, ascending within each."""
        return np.concatenate(
            [np.arange(self.starts[c], self.starts[c + 1], dtype=np.int32) for c in cells]
        )


def are_many(n_rows: int) -> bool:
    """Whether rows are so many that each looks for the nearest cells by itself."""
    return n_rows > MANY


def fineness(n_rows: int) -> int:
    """By how much finer than others the cells of so many rows are, and more numerous the probes."""
    return FINER if are_many(n_rows) else 1


def cells_around_centres(P: np.ndarray) -> Cells:
    """Cells of the rows of ``P`` (n_rows, n_columns) of float32, about ``2 n_rows ** (1/2)``.

    Twice as many of more than `MANY` rows. A few rounds of k-means on evenly spaced rows find the
    centres; crowded cells are cut.
    """
    n_cells = max(round(CELLS_PER_ROOT * fineness(len(P)) * math.sqrt(len(P))), 1)
    sample = P[:: max(len(P) // (n_cells * ROWS_PER_CELL), 1)]
    centres = sample[:: max(len(sample) // n_cells, 1)][:n_cells]
    for _ in range(CELL_ROUNDS):
        centres = _means(sample, _nearest_centre(sample, centres))
    # In the order of leaves of one centre each, neighbouring cells share the rows they look into.
    centres = centres[_leaves(centres, 1)[0]]
    cell = _nearest_centre(P, centres)
    order = np.argsort(cell, kind="stable").astype(np.int32)
    starts = np.searchsorted(cell[order], np.arange(len(centres) + 1))
    return _cells(P, *_cut_crowded(P, order, starts))


def cells_of_leaves(P: np.ndarray, largest: int) -> Cells:
    """Cells of at most ``largest`` and at least half as many rows, each cut along its length."""
    return _cells(P, *_leaves(P, largest))


def nearest_cells(cells: Cells, n_probes: int, points: np.ndarray | None = None) -> np.ndarray:
    """The ``n_probes`` cells nearest to each point, or to each centre, (n_points, n_probes).

    By differences: crowded cells are so close together that products could not tell them apart.
    """
    Q = cells.centres if points is None else points
    columns = np.ascontiguousarray(cells.centres.T)
    shape = (len(Q), min(n_probes, len(cells.centres)))
    gaps = np.full(shape, np.inf, dtype=np.float32)
    near = np.full(shape, -1, dtype=np.int32)

    def work(part: tuple[int, int]) -> None:
        numba_leaves.rank_cells(part, Q, columns, cells.reaches, gaps, near)

    parallel_map(work, tasks(len(Q)))
    return near


def tasks(n_items: int) -> list[tuple[int, int]]:
    """Items in at most `MOST_TASKS` runs, each from its first to its last but one."""
    step = -(-n_items // MOST_TASKS) or 1
    return [(first, min(first + step, n_items)) for first in range(0, n_items, step)]


def propose(P: np.ndarray, cells: Cells, n_probes: int, n_proposals: int) -> np.ndarray:
    """For each row, the nearest rows of the cells nearest to its own, about, nearest first.

    ``P`` (n_rows, n_columns) of float32 are the rows in the order of the cells. The result
    (n_rows, n_proposals) has positions in this order, -1 where there are fewer.
    """
    norms = np.einsum("ij,ij->i", P, P)
    near = nearest_cells(cells, n_probes)
    scores = np.full((len(P), n_proposals), np.inf, dtype=np.float32)
    found = np.full(scores.shape, -1, dtype=np.int32)
    itself = np.arange(len(P), dtype=np.int32)

    def work(cell: int) -> None:
        rows = cells.positions(near[cell])
        # Where nearby cells have too few rows, all are looked at.
        rows = rows if rows.size > n_proposals else itself
        there, there_norms = P[rows].T, norms[rows]
        for start in range(cells.starts[cell], cells.starts[cell + 1], BLOCK_QUERIES):
            part = slice(start, min(start + BLOCK_QUERIES, cells.starts[cell + 1]))
            products = P[part] @ there
            numba_neighbours.keep_nearest(
                products, there_norms, rows, itself[part], scores[part], found[part]
            )

    parallel_map(work, range(len(near)))
    return found


def _cells(P: np.ndarray, order: np.ndarray, starts: np.ndarray) -> Cells:
    """With the means of the cells, none of which is empty, and how far they reach."""
    cell, rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts)), P[order]
    centres = _means(rows, cell)
    rows -= centres[cell]
    squares = np.bincount(cell, np.einsum("ij,ij->i", rows, rows))
    reaches = REACH * np.sqrt(squares / np.diff(starts))
    return Cells(order, starts, centres, reaches.astype(np.float32))


def _nearest_centre(X: np.ndarray, centres: np.ndarray) -> np.ndarray:
    norms = np.einsum("ij,ij->i", centres, centres)

    def work(start: int) -> np.ndarray:
        scores = X[start : start + BLOCK_ROWS] @ centres.T
        scores *= -2
        scores += norms
        return np.argmin(scores, axis=1)

    return np.concatenate(parallel_map(work, range(0, len(X), BLOCK_ROWS)))


def _means(X: np.ndarray, cell: np.ndarray) -> np.ndarray:
    """Mean of the rows of each cell that has rows, of float32.

    Cells without rows, mostly duplicates of a centre, would only waste a probe.
    """
    _, cell, sizes = np.unique(cell, return_inverse=True, return_counts=True)
    members = csr_array(((1 / sizes)[cell].astype(X.dtype), (cell, np.arange(len(X)))))
    return np.asarray(members @ X)


def _cut_crowded(
    P: np.ndarray, order: np.ndarray, starts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Cells of more than `LARGEST` mean sizes in leaves of the mean size; empty ones left out."""
    mean_size = max(len(order) // (len(starts) - 1), 1)
    orders, sizes = [], []
    for rows in np.split(order, starts[1:-1]):
        if rows.size <= LARGEST * mean_size:
            orders.append(rows)
            sizes.append([rows.size] if rows.size else [])
            continue
        within, ends = _leaves(P[rows], mean_size)
        orders.append(rows[within])
        sizes.append(np.diff(ends).tolist())
    ends = np.concatenate([[0], np.cumsum([size for some in sizes for size in some])])
    return np.concatenate(orders), ends.astype(np.int64)


def _leaves(P: np.ndarray, largest: int) -> tuple[np.ndarray, np.ndarray]:
    """Order of the rows leaf by leaf, and where each leaf starts and the last ends."""
    order = np.arange(len(P), dtype=np.int32)
    starts = np.array([0, len(P)], dtype=np.int64)
    while np.diff(starts).max() > largest:

        def halve(parts: tuple[int, int], starts: np.ndarray = starts) -> None:
            numba_leaves.halve_parts(parts, P, order, starts)

        parallel_map(halve, tasks(len(starts) - 1))
        middles = starts[:-1] + np.diff(starts) // 2
        # A part of one row has an empty lower half.
        starts = np.unique(np.concatenate([starts, middles]))
    return order, starts
