"""Nearest rows, exactly: every query is compared with every row.

There are three steps. Products in float32, which are fast, propose a few more rows than wanted.
Differences in float64 decide among these. A bound on the rounding of the first step singles out the
queries for which it may have overlooked a row; for these, all rows are measured that the bound does
not rule out. So the result is that of float64, ties included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from viewmend.backend import numba_neighbours
from viewmend.backend.threads import parallel_map
from viewmend.exceptions import InvalidViewsError

# Numbers of the queries of one block, and of the rows to search for them, ascending.
SearchBlock = tuple[np.ndarray, np.ndarray]

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
    numba_neighbours.measure_candidates(Q, X, candidates, distances, indices)
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
        numba_neighbours.keep_nearest(products, norms, part, task.excluded, scores, candidates)
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
        numba_neighbours.scan_rows(Q, X, within, starts, distances, indices)
    return Neighbours(indices, distances)
