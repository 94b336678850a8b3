"""Nearest rows: exact, or among the rows of nearby cells where there are many.

Rows with few columns are looked up in a tree. Otherwise there are three steps. Products in float32,
which are fast, propose a few more rows than wanted. Differences in float64 decide among these. A
bound on the rounding of the first step singles out the queries for which it may have overlooked a
row; for these, all rows are measured that the bound does not rule out. So the result is that of
float64, ties included.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import KDTree

from viewmend.backend import numba_cpu, torch_nearest
from viewmend.backend.namespace import torch_device
from viewmend.backend.threads import parallel_map, row_blocks
from viewmend.exceptions import InvalidViewsError

# Numbers of the queries of one block, and of the rows to search for them, ascending.
SearchBlock = tuple[np.ndarray, np.ndarray]


# Rows above which cells are searched: there, two to three times faster, and faster with more.
EXACT_UP_TO = 20_000
# Columns up to which a tree is faster than products: at 20 still six times, at 100 no longer.
TREE_COLUMNS = 20
# Candidates beyond k: with more of them fewer queries are in doubt, but more rows are measured.
SPARE = 8
# Queries and rows whose products are held at once (4 MiB of them per thread).
BLOCK_QUERIES = 512
BLOCK_ROWS = 2048
# Entries of the rows that are compared at once, so that the copies of wide ones stay small.
BLOCK_ENTRIES = 2**22
# Columns multiplied at once: the rounding of a product grows with its terms, that of the sum of
# these products with their number.
BLOCK_COLUMNS = 256
# Cells, as a multiple of the square root of the rows, and how many a row looks into.
CELLS_PER_ROOT = 3.0
PROBES = 6
# The centres of the cells need not be good: few rounds, on few rows per cell.
CELL_ROUNDS = 3
ROWS_PER_CELL = 24
# Rows may lie this far apart: squared distances of as many as 2^20 columns do not overflow.
FARTHEST = 2.0**500
# Of float32.
UNIT_ROUNDOFF = 2.0**-24
SMALLEST_NORMAL = 2.0**-126


@dataclass(frozen=True)
class Neighbours:
    """The ``k`` nearest rows of each query, nearest first, equal ones by their number.

    Attributes
    ----------
    indices : array (n_queries, k) of int
    squared_distances : array (n_queries, k) of float64
    """

    indices: np.ndarray
    squared_distances: np.ndarray


@dataclass(frozen=True)
class _Rows:
    """Rows as given, and in float32 with a common centre and scale, with squared norms of these."""

    given: np.ndarray
    rough: np.ndarray
    norms: np.ndarray
    scale: float

    def __getitem__(self, rows: np.ndarray) -> _Rows:
        return _Rows(self.given[rows], self.rough[rows], self.norms[rows], self.scale)


@dataclass(frozen=True)
class _Scaling:
    """Centre and scale of `_Rows`, with which products lose few digits and cannot overflow."""

    centre: np.ndarray
    scale: float

    @classmethod
    def of(cls, X: np.ndarray, *others: np.ndarray) -> _Scaling:
        centre = X.mean(axis=0, dtype=np.float64)
        # NumPy's maximum is NaN where anything is, which that of Python is not.
        ends = [end for A in (X, *others) for end in (A.max(axis=0), A.min(axis=0))]
        spread = np.max(np.abs(np.array(ends) - centre))
        # In float32 the centre is taken off before the rows are scaled.
        if not spread < min(FARTHEST, float(np.finfo(X.dtype).max) / 4):
            msg = (
                f"rows to compare must be finite and less than {FARTHEST:.0e} apart, got a distance"
                f" of {spread:.0e} in {X.dtype}; rescale the view"
            )
            raise InvalidViewsError(msg)
        return cls(centre, float(spread) or 1.0)

    def rows(self, X: np.ndarray) -> _Rows:
        rough = X - self.centre.astype(X.dtype)
        rough /= self.scale
        rough = rough.astype(np.float32, copy=False)
        norms = np.einsum("ij,ij->i", rough, rough, dtype=np.float64).astype(np.float32)
        return _Rows(X, rough, norms, self.scale)


@dataclass(frozen=True)
class _Task:
    """Rows to search, queries, the row that each query excludes (or -1), neighbours wanted."""

    data: _Rows
    query_rows: _Rows
    excluded: np.ndarray
    k: int

    def __getitem__(self, queries: np.ndarray) -> _Task:
        return _Task(self.data, self.query_rows[queries], self.excluded[queries], self.k)


def nearest_rows(X: np.ndarray, k: int, *, queries: np.ndarray | None = None) -> Neighbours:
    """The ``k`` rows ``x_j`` of least ``|q_i - x_j|^2`` for each query, exactly.

    ``X`` is (n_rows, n_features) of float32 or float64, ``queries`` (n_queries, n_features).
    Without these the queries are the rows themselves, none of which is its own neighbour. ``k`` is
    lowered to the rows there are. The result is the same whatever the number of threads.
    """
    # One type for both: otherwise their centre would be rounded differently.
    X, query_rows = _as_floats(X, X if queries is None else queries)
    k = min(k, X.shape[0] - (queries is None))
    if k < 1 or len(query_rows) == 0:
        none = np.empty((len(query_rows), max(k, 0)))
        return Neighbours(none.astype(np.int32), none)
    scaling = _Scaling.of(X, query_rows)
    rows = scaling.rows(X)
    everything = np.arange(X.shape[0], dtype=np.int32)
    if queries is None:
        return _search(_Task(rows, rows, everything, k), _in_blocks(len(X), everything))
    no_row = np.full(len(query_rows), -1, dtype=np.int32)
    task = _Task(rows, scaling.rows(query_rows), no_row, k)
    return _search(task, _in_blocks(len(query_rows), everything))


def nearest_rows_in_cells(X: np.ndarray, k: int, *, n_probes: int = PROBES) -> Neighbours:
    """The ``k`` nearest other rows of ``X`` (n_rows, n_features), looked for in nearby cells only.

    Rows are gathered around ``O(sqrt(n_rows))`` centres. The rows of a cell are compared with those
    of every cell that is among the ``n_probes`` nearest of one of them; more cells find more of the
    neighbours, in more time. Distances are exact; of the neighbours, a few are missed. Nothing is
    drawn at random.
    """
    # With no more rows than candidates a search among some rows would find fewer than asked for.
    n_enough = k + SPARE
    if X.shape[0] <= n_enough:
        return nearest_rows(X, k)
    (X,) = _as_floats(X)
    centres = _cell_centres(X, round(CELLS_PER_ROOT * math.sqrt(X.shape[0])))
    near = nearest_rows(centres, n_probes, queries=X).indices
    rows = _Scaling.of(X).rows(X)
    itself = np.arange(X.shape[0], dtype=np.int32)
    return _search(_Task(rows, rows, itself, k), _cell_blocks(near, n_enough))


def nearest_rows_by_tree(X: np.ndarray, k: int) -> Neighbours:
    """The ``k`` nearest other rows by a k-d tree, exactly: for rows with few columns.

    Where rows tie with the ``k``-th, which of them is taken is up to the tree.
    """
    n_rows = X.shape[0]
    k = min(k, n_rows - 1)
    if k < 1:
        return nearest_rows(X, k)
    tree = KDTree(X, balanced_tree=False)
    # In pieces, each in one of our threads: those of the tree itself go on after Ctrl-C, with
    # memory that is free by then.
    pieces = parallel_map(
        lambda rows: tree.query(X[rows], k + 1), row_blocks(n_rows, 1, BLOCK_QUERIES)
    )
    distances, indices = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    # Among more than k duplicates a row need not find itself; then the last one goes.
    itself = indices == np.arange(n_rows)[:, None]
    itself[~itself.any(axis=1), -1] = True
    shape = (n_rows, k)
    return Neighbours(
        indices[~itself].reshape(shape).astype(np.int32), distances[~itself].reshape(shape) ** 2
    )


def neighbour_search(
    representations: Mapping[str, np.ndarray], k: int, *, exact_up_to: int = EXACT_UP_TO
) -> dict[str, Neighbours]:
    """The ``k`` nearest other rows in each representation (n_rows, n_features_r) of the same rows.

    With more than ``exact_up_to`` rows, by `nearest_rows_in_cells`, which misses about two
    neighbours in a hundred and takes time of the order of ``n_rows ** 1.5``, not ``n_rows ** 2``.
    With few columns a tree is searched instead, exactly, whatever the number of rows.
    """

    if torch_device(next(iter(representations.values()))):
        found = torch_nearest.neighbour_search(representations, k)
        return {name: Neighbours(*near) for name, near in found.items()}

    def search(X: np.ndarray) -> Neighbours:
        if X.shape[1] <= TREE_COLUMNS:
            return nearest_rows_by_tree(X, k)
        return nearest_rows(X, k) if X.shape[0] <= exact_up_to else nearest_rows_in_cells(X, k)

    return {name: search(X) for name, X in representations.items()}


def recall(approximate: Neighbours, exact: Neighbours) -> float:
    """Share of the approximate neighbours that are no farther than the true ``k``-th one.

    Both are of the same queries and the same ``k``. Rows at equal distance count as equally good.
    """
    return float(np.mean(approximate.squared_distances <= exact.squared_distances[:, -1:]))


def _as_floats(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """The arrays in one floating type that holds them all."""
    dtype = np.result_type(np.float32, *arrays)
    return tuple(np.ascontiguousarray(A, dtype=dtype) for A in arrays)


def _in_blocks(n_queries: int, rows: np.ndarray) -> Iterator[SearchBlock]:
    """A few queries at a time, each with all the rows."""
    for start in range(0, n_queries, BLOCK_QUERIES):
        yield np.arange(start, min(start + BLOCK_QUERIES, n_queries)), rows


def _search(task: _Task, blocks: Iterable[SearchBlock]) -> Neighbours:
    """Nearest of the rows of its block for each query."""
    shape = (task.excluded.size, task.k)
    neighbours = Neighbours(np.empty(shape, dtype=np.int32), np.empty(shape))

    def work(block: SearchBlock) -> None:
        queries, rows = block
        near = _nearest_among(task[queries], rows)
        neighbours.indices[queries] = near.indices
        neighbours.squared_distances[queries] = near.squared_distances

    # Blocks have different queries, so that no two threads write to one row.
    parallel_map(work, blocks)
    return neighbours


def _nearest_among(task: _Task, rows: np.ndarray) -> Neighbours:
    """Exact nearest of the ascending ``rows`` for every query of the task."""
    candidates, border = _propose(task, rows)
    shape = (task.excluded.size, task.k)
    distances, indices = np.empty(shape), np.empty(shape, dtype=np.int32)
    Q, X = task.query_rows.given, task.data.given
    numba_cpu.measure_candidates(Q, X, candidates, distances, indices)
    farthest = _farthest(task, distances[:, -1])
    doubtful = np.flatnonzero(border <= farthest)
    if doubtful.size:
        found = _measure_within(task[doubtful], rows, farthest[doubtful], distances[doubtful, -1])
        indices[doubtful], distances[doubtful] = found.indices, found.squared_distances
    return Neighbours(indices, distances)


def _propose(task: _Task, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A few rows more than wanted, of least rounded distance, and the largest such distance.

    Where these are all the rows there are, it is infinite: none can have been overlooked.
    """
    # A query among the rows excludes itself, and then all queries do.
    available = rows.size - int(task.excluded[0] >= 0)
    n_candidates = min(task.k + SPARE, available)
    scores = np.full((task.excluded.size, n_candidates), np.inf, dtype=np.float32)
    candidates = np.full(scores.shape, -1, dtype=np.int32)
    for part, products in _products(task, rows):
        norms = task.data.norms[part]
        numba_cpu.keep_nearest(products, norms, part, task.excluded, scores, candidates)
    if n_candidates == available:
        return candidates, np.full(task.excluded.size, np.inf)
    # Scores leave out |q|^2, which is the same for all rows of a query; here it is added again.
    return candidates, task.query_rows.norms.astype(np.float64) + scores[:, -1]


def _products(task: _Task, rows: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Some of the rows at a time, and the rounded products (n_queries, n_some) with them."""
    Q, X = task.query_rows.rough, task.data.rough
    n_features = X.shape[1]
    step = min(BLOCK_ROWS, max(BLOCK_ENTRIES // n_features, 1))
    for start in range(0, rows.size, step):
        part = rows[start : start + step]
        block = X[part]
        products = Q[:, :BLOCK_COLUMNS] @ block[:, :BLOCK_COLUMNS].T
        for first in range(BLOCK_COLUMNS, n_features, BLOCK_COLUMNS):
            columns = slice(first, first + BLOCK_COLUMNS)
            products += Q[:, columns] @ block[:, columns].T
        yield part, products


def _farthest(task: _Task, worst: np.ndarray) -> np.ndarray:
    """Rounded distance that no row can have which is as near as the ``k``-th candidate.

    ``worst`` are the exact distances of the ``k``-th candidates. A row as near as that has a norm
    of at most ``|q| + sqrt(worst)``, so that its rounded distance is off by at most ``(n_terms +
    16) u (2 |q| + sqrt(worst))^2``: the rounding of products of ``BLOCK_COLUMNS`` terms and of the
    sum of these, of norms, and of centring and scaling.
    """
    n_features = task.data.rough.shape[1]
    n_terms = min(n_features, BLOCK_COLUMNS) + n_features // BLOCK_COLUMNS
    exact = np.sqrt(worst) / task.data.scale
    reach = 2 * np.sqrt(task.query_rows.norms, dtype=np.float64) + exact
    # Underflow, unlike rounding, can befall every term.
    rounding = (n_terms + 16) * UNIT_ROUNDOFF * reach**2 + (n_features + 16) * SMALLEST_NORMAL
    return exact**2 + rounding


def _measure_within(
    task: _Task, rows: np.ndarray, farthest: np.ndarray, worst: np.ndarray
) -> Neighbours:
    """Nearest of the ascending ``rows`` whose rounded distance is at most ``farthest``.

    At least ``k`` rows are no farther than ``worst``; both are (n_queries,).
    """
    # Upper bounds, just above what is looked for, which let the scan give up a row early.
    distances = np.repeat(np.nextafter(worst, np.inf)[:, None], task.k, axis=1)
    indices = np.full(distances.shape, len(task.data.given), dtype=np.int32)
    limits = (farthest - task.query_rows.norms)[:, None]
    for part, products in _products(task, rows):
        near = task.data.norms[part] - np.float32(2) * products <= limits
        near &= part != task.excluded[:, None]
        starts = np.concatenate([[0], np.cumsum(near.sum(axis=1))])
        within = part[np.nonzero(near)[1]]
        Q, X = task.query_rows.given, task.data.given
        numba_cpu.scan_rows(Q, X, within, starts, distances, indices)
    return Neighbours(indices, distances)


def _cell_centres(X: np.ndarray, n_cells: int) -> np.ndarray:
    """Centres (n_cells, n_features) of a few rounds of k-means on evenly spaced rows."""
    step = max(1, X.shape[0] // (n_cells * ROWS_PER_CELL))
    sample = X[::step]
    centres = sample[:: max(1, len(sample) // n_cells)][:n_cells]
    for _ in range(CELL_ROUNDS):
        nearest = nearest_rows(centres, 1, queries=sample).indices[:, 0]
        centres = _means(sample, nearest)
    return centres


def _means(X: np.ndarray, cell: np.ndarray) -> np.ndarray:
    """Mean of the rows of each cell that has rows.

    Cells without rows, mostly duplicates of a centre, would only waste a probe.
    """
    _, cell, sizes = np.unique(cell, return_inverse=True, return_counts=True)
    members = csr_array(((1 / sizes)[cell].astype(X.dtype), (cell, np.arange(len(X)))))
    return np.asarray(members @ X)


def _cell_blocks(near: np.ndarray, n_enough: int) -> Iterator[SearchBlock]:
    """The queries of each cell, with the rows of all the cells that they look into.

    ``near`` (n_rows, n_probes) has the nearest cells of each row, its own first. A cell that would
    not see more than ``n_enough`` rows sees them all.
    """
    cell = near[:, 0]
    # A stable sort by cell lists the members of each cell in ascending order.
    order = np.argsort(cell, kind="stable").astype(np.int32)
    members = np.split(order, np.cumsum(np.bincount(cell, minlength=near.max() + 1))[:-1])
    everything = np.arange(cell.size, dtype=np.int32)
    for queries in (rows for rows in members if rows.size):
        rows = np.sort(np.concatenate([members[c] for c in np.unique(near[queries])]))
        for start in range(0, queries.size, BLOCK_QUERIES):
            part = queries[start : start + BLOCK_QUERIES]
            yield part, rows if rows.size > n_enough else everything


@dataclass(frozen=True, eq=False)
class Pivot:
    """Rows of fit."""

    points: np.ndarray


def make_pivot(_representations: Mapping[str, object], X: np.ndarray) -> Pivot:
    """Shim."""
    return Pivot(X)


def nearest_points(points: np.ndarray, k: int, *, queries: np.ndarray | None = None) -> Neighbours:
    """Shim."""
    if torch_device(points):
        return Neighbours(*torch_nearest.nearest_points(points, k, queries))
    if queries is None:
        return neighbour_search({"points": points}, k)["points"]
    return nearest_rows(points, k, queries=queries)


def nearest_of_new(
    new: Mapping[str, np.ndarray], k: int, pivot: Pivot, mapped: Any
) -> dict[str, Neighbours]:
    """Shim."""
    if torch_device(pivot.points):
        found = torch_nearest.nearest_of_new(new, k, pivot.points, mapped)
        return {name: Neighbours(*near) for name, near in found.items()}
    every = np.arange(len(pivot.points))
    return {name: nearest_rows(mapped(name, every), k, queries=X) for name, X in new.items()}
