"""Compiled kernels that cut points into leaves, and search leaves and other cells.

Every kernel takes its rows one by one, so that the result does not depend on the number of threads.
"""

from __future__ import annotations

import math

import numpy as np

from viewmend.backend.compiling import inlined, jit
from viewmend.backend.numba_cpu import SUMS
from viewmend.backend.numba_neighbours import GROUP, insert, is_nearer

__all__ = ["halve_parts", "lay_out_cells", "propose_in_cells", "rank_cells", "scan_leaves"]

# Rows that the direction of a cut is found from, and rounds of power iteration for it.
DIRECTION_ROWS = 256
DIRECTION_ROUNDS = 3


@jit(fastmath=SUMS)
def _gaps_to(x, columns, gaps):  # type: ignore[no-untyped-def]
    """``|x - y_j|^2`` for the rows ``y_j`` that ``columns`` (n_columns, n_rows) has as columns."""
    gaps[:] = 0
    for c in range(x.size):
        for j in range(gaps.size):
            gap = x[c] - columns[c, j]
            gaps[j] += gap * gap


@inlined
def _any_within(gaps, limit):  # type: ignore[no-untyped-def]
    """Whether any gap is at most the limit, as a number, as in `keep_nearest`.

    Of equal ones the lower row is kept.
    """
    found = np.int32(0)
    for j in range(gaps.size):
        found |= np.int32(gaps[j] <= limit)
    return found


@jit()
def _merge_gaps(gaps, rows, excluded, distances, indices):  # type: ignore[no-untyped-def]
    """Merge some rows at these distances into the nearest of one query, all but one of them."""
    worst = distances[distances.size - 1]
    for start in range(0, rows.size, GROUP):
        stop = min(start + GROUP, rows.size)
        if not _any_within(gaps[start:stop], worst):
            continue
        for j in range(start, stop):
            if rows[j] != excluded and is_nearer(gaps[j], rows[j], distances, indices):
                insert(distances, indices, gaps[j], rows[j])
                worst = distances[distances.size - 1]


@jit()
def rank_cells(queries, Q, centres, reaches, gaps, indices):  # type: ignore[no-untyped-def]
    """Merge all cells into the nearest of each query by ``|q - centre| - reach``.

    ``centres`` (n_columns, n_cells) are columns.
    """
    rows = np.arange(centres.shape[1]).astype(np.int32)
    every = np.empty(rows.size, dtype=np.float32)
    for i in range(queries[0], queries[1]):
        _gaps_to(Q[i], centres, every)
        for j in range(rows.size):
            every[j] = math.sqrt(every[j]) - reaches[j]
        _merge_gaps(every, rows, -1, gaps[i], indices[i])


@jit()
def lay_out_cells(cells, X, starts, places, columns):  # type: ignore[no-untyped-def]
    """Write the rows of some ``cells`` of ``X`` (n_rows, n_columns) column by column.

    Cell ``c`` has the rows ``starts[c]`` to ``starts[c + 1]``. Its numbers are those of the flat
    array ``columns`` from ``places[c]`` on.
    """
    for c in cells:
        size = starts[c + 1] - starts[c]
        for j in range(size):
            for column in range(X.shape[1]):
                columns[places[c] + column * size + j] = X[starts[c] + j, column]


@jit()
def propose_in_cells(queries, Q, near, layout, distances, indices):  # type: ignore[no-untyped-def]
    """Merge the rows of the cells ``near`` (n_queries, n_probes) into the nearest of each query.

    ``layout`` are ``starts``, ``places`` and ``columns`` of `lay_out_cells`, and all row numbers.
    """
    starts, places, columns, rows = layout
    largest = 0
    for c in range(starts.size - 1):
        largest = max(largest, starts[c + 1] - starts[c])
    gaps = np.empty(largest, dtype=np.float32)
    for i in range(queries[0], queries[1]):
        for c in near[i]:
            there = rows[starts[c] : starts[c + 1]]
            stop = places[c] + Q.shape[1] * there.size
            cell = columns[places[c] : stop].reshape(Q.shape[1], there.size)
            _gaps_to(Q[i], cell, gaps[: there.size])
            _merge_gaps(gaps[: there.size], there, -1, distances[i], indices[i])


@jit()
def scan_leaves(cells, P, starts, near, distances, indices):  # type: ignore[no-untyped-def]
    """Merge the points of nearby leaves into the nearest of the points of each leaf, in place.

    ``cells`` are the first and the last but one. Leaf ``c`` has the points ``starts[c]`` to
    ``starts[c + 1]`` of ``P``, which are compared with those of the leaves ``near[c]``.
    """
    largest = 0
    for c in range(starts.size - 1):
        largest = max(largest, starts[c + 1] - starts[c])
    rows = np.empty(largest * near.shape[1], dtype=np.int32)
    columns = np.empty((P.shape[1], rows.size), dtype=np.float32)
    gaps = np.empty(rows.size, dtype=np.float32)
    for c in range(cells[0], cells[1]):
        n_rows = 0
        for leaf in near[c]:
            for j in range(starts[leaf], starts[leaf + 1]):
                rows[n_rows] = j
                for column in range(P.shape[1]):
                    columns[column, n_rows] = P[j, column]
                n_rows += 1
        some = columns[:, :n_rows]
        for i in range(starts[c], starts[c + 1]):
            _gaps_to(P[i], some, gaps[:n_rows])
            _merge_gaps(gaps[:n_rows], rows[:n_rows], i, distances[i], indices[i])


@jit(fastmath=SUMS)
def _dot(x, y):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(x.size):
        total += x[j] * y[j]
    return total


@jit()
def _direction(P, rows):  # type: ignore[no-untyped-def]
    """The direction in which some rows vary most, about; any one where they do not vary."""
    step = max(rows.size // DIRECTION_ROWS, 1)
    n_some, n_columns = (rows.size + step - 1) // step, P.shape[1]
    some = np.empty((n_some, n_columns))
    for i in range(n_some):
        some[i] = P[rows[i * step]]
    for c in range(n_columns):
        some[:, c] -= some[:, c].mean()
    lengths = (some**2).sum(axis=1)
    direction = some[np.argmax(lengths)].copy()
    for _ in range(DIRECTION_ROUNDS):
        length = math.sqrt(_dot(direction, direction))
        if not length > 0.0:
            return np.ones(n_columns)
        direction /= length
        ahead = np.zeros(n_columns)
        for i in range(n_some):
            product = _dot(some[i], direction)
            for c in range(n_columns):
                ahead[c] += product * some[i, c]
        direction = ahead
    return direction


@jit()
def halve_parts(parts, P, order, starts):  # type: ignore[no-untyped-def]
    """Sort each part of ``order``, rows of ``P``, in a lower and an upper half along its length.

    Part ``p`` is ``order[starts[p]:starts[p + 1]]``, its lower half the first ``size // 2``.
    """
    for p in range(parts[0], parts[1]):
        rows = order[starts[p] : starts[p + 1]].copy()
        if rows.size < 2:
            continue
        direction = _direction(P, rows)
        along = np.empty(rows.size)
        for i in range(rows.size):
            along[i] = _dot(P[rows[i]], direction)
        n_lower = rows.size // 2
        border = np.partition(along, n_lower)[n_lower]
        # Those on the border fill the lower half, in their order.
        n_on_border = n_lower - (along < border).sum()
        lower, upper = starts[p], starts[p] + n_lower
        for i in range(rows.size):
            is_lower = along[i] < border
            if along[i] == border and n_on_border > 0:
                is_lower = True
                n_on_border -= 1
            if is_lower:
                order[lower] = rows[i]
                lower += 1
            else:
                order[upper] = rows[i]
                upper += 1
