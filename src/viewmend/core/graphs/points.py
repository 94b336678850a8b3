"""Nearest of many points with few columns, which may crowd in a few places."""

from __future__ import annotations

import numpy as np

from viewmend.backend import numba_leaves, numba_neighbours
from viewmend.backend.threads import parallel_map
from viewmend.core.graphs.cells import (
    Cells,
    cells_around_centres,
    cells_of_leaves,
    fineness,
    nearest_cells,
    tasks,
)
from viewmend.core.graphs.exact import Neighbours
from viewmend.core.graphs.proposals import prepare_pivot, search_from
from viewmend.exceptions import InvalidViewsError

# Points per leaf at most, and leaves whose points are compared.
LEAF = 32
PROBES = 32
# Neighbours beyond k that are kept until distances are exact.
SPARE = 2
# Columns up to which leaves are searched.
LEAF_COLUMNS = 16


def search_points(points: np.ndarray, k: int) -> Neighbours:
    """The ``k`` nearest other points in the leaves nearest to that of each point.

    Points with more columns, where leaves have too many neighbours, are searched as rows of a view.
    """
    P = _finite(points)
    if P.shape[1] > LEAF_COLUMNS:
        return search_from(prepare_pivot({"points": P}), {"points": P}, k)["points"]
    cells = cells_of_leaves(P, max(LEAF, k))
    near = nearest_cells(cells, PROBES)
    arranged = P[cells.order]
    distances, found = _no_neighbours(len(P), k + SPARE)

    def work(leaves: tuple[int, int]) -> None:
        numba_leaves.scan_leaves(leaves, arranged, cells.starts, near, distances, found)

    parallel_map(work, tasks(len(near)))
    own = np.empty_like(found)
    own[cells.order] = cells.order[found]
    return _measured(P, P, own, k)


def point_cells(points: np.ndarray, k: int) -> Cells:
    """Cells of the points, for `search_among_points` with up to ``k`` neighbours."""
    P = _finite(points)
    narrow = P.shape[1] <= LEAF_COLUMNS
    return cells_of_leaves(P, max(LEAF, k)) if narrow else cells_around_centres(P)


def search_among_points(
    points: np.ndarray, k: int, queries: np.ndarray, cells: Cells
) -> Neighbours:
    """The ``k`` nearest points in the cells nearest to each query, whatever the other queries."""
    P = np.ascontiguousarray(points, dtype=np.float32)
    Q = np.ascontiguousarray(queries, dtype=np.float32)
    # Leaves do not become finer.
    n_probes = PROBES * (fineness(len(P)) if P.shape[1] > LEAF_COLUMNS else 1)
    return _measured(Q, P, cells.order[nearest_in_cells(Q, P[cells.order], cells, n_probes, k)], k)


def nearest_in_cells(
    Q: np.ndarray, rows: np.ndarray, cells: Cells, n_probes: int, k: int
) -> np.ndarray:
    """The nearest rows of the cells nearest to each query, nearest first, (n_queries, k + 2).

    ``rows`` (n_rows, n_columns) are in the order of the cells, and so are the results. Each query
    is compared by itself, so that its bits do not depend on the others.
    """
    near = nearest_cells(cells, n_probes, Q)
    found = _nearest_of_cells(Q, rows, cells, near, k)
    # Where nearby cells have too few rows, all are looked at.
    short = np.flatnonzero(found[:, -1] < 0)
    if short.size:
        every = np.broadcast_to(np.arange(len(cells.centres)), (short.size, len(cells.centres)))
        found[short] = _nearest_of_cells(Q[short], rows, cells, every, k)
    return found


def _nearest_of_cells(
    Q: np.ndarray, rows: np.ndarray, cells: Cells, near: np.ndarray, k: int
) -> np.ndarray:
    """The same, of the cells ``near`` (n_queries, n_probes); -1 where these have fewer rows."""
    distances, found = _no_neighbours(len(Q), k + SPARE)
    near = np.ascontiguousarray(near, dtype=np.int32)
    layout = _layout(rows, cells, near)

    def work(part: tuple[int, int]) -> None:
        numba_leaves.propose_in_cells(part, Q, near, layout, distances, found)

    parallel_map(work, tasks(len(Q)))
    return found


def _layout(rows: np.ndarray, cells: Cells, near: np.ndarray) -> tuple[np.ndarray, ...]:
    """The rows of all cells that are ``near`` to a query, column by column.

    Distances to all rows of a cell are then computed side by side, which is ten times as fast.
    """
    starts = cells.starts
    wanted = np.zeros(len(starts) - 1, dtype=bool)
    wanted[near] = True
    sizes = np.where(wanted, np.diff(starts), 0) * rows.shape[1]
    ends = np.cumsum(sizes)
    places = ends - sizes
    columns = np.empty(ends[-1], dtype=np.float32)
    numbers = np.flatnonzero(wanted)

    def work(part: tuple[int, int]) -> None:
        numba_leaves.lay_out_cells(numbers[slice(*part)], rows, starts, places, columns)

    parallel_map(work, tasks(len(numbers)))
    return starts, places, columns, np.arange(len(rows), dtype=np.int32)


def _finite(points: np.ndarray) -> np.ndarray:
    """Points of float32 that can be cut: NaN is on neither side, and halves would have no end."""
    P = np.ascontiguousarray(points, dtype=np.float32)
    n_odd = len(P) - int(np.count_nonzero(np.isfinite(P).all(axis=1)))
    if n_odd:
        msg = (
            f"points to compare must be finite, got NaN or infinity in {n_odd} of {len(P)}; "
            f"rescale the views that they come from"
        )
        raise InvalidViewsError(msg)
    return P


def _no_neighbours(n_queries: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    shape = (n_queries, k)
    return np.full(shape, np.inf, dtype=np.float32), np.full(shape, -1, dtype=np.int32)


def _measured(Q: np.ndarray, P: np.ndarray, candidates: np.ndarray, k: int) -> Neighbours:
    """The ``k`` nearest of the candidates (n_queries, n_candidates) by float64 distances."""
    distances = np.empty((len(Q), k))
    indices = np.empty(distances.shape, dtype=np.int32)

    def work(ends: tuple[int, int]) -> None:
        part = slice(*ends)
        numba_neighbours.measure_candidates(
            Q[part], P, candidates[part], distances[part], indices[part]
        )

    parallel_map(work, tasks(len(Q)))
    return Neighbours(indices, distances)
