"""Compiled kernels of the searches for nearest rows.

Every kernel takes its rows one by one, so that the result does not depend on the number of threads.
Lists of neighbours are two arrays (n_rows, k): squared distances, ascending, and indices, -1 where
a list is not full; rows at equal distance are ordered by their index.
"""

from __future__ import annotations

import numpy as np

from viewmend.backend.compiling import inlined, jit
from viewmend.backend.numba_cpu import SUMS

__all__ = [
    "GROUP",
    "fill_reverse",
    "insert",
    "is_nearer",
    "keep_nearest",
    "keep_nearest_of_some",
    "look_around",
    "measure_candidates",
    "measure_proposals",
    "order_exactly",
    "scan_rows",
]

# Columns summed between two looks at the limit, and entries compared with it at once.
STRIDE = 64
GROUP = 16
# Lanes that a long row of scores is dealt to, and scores in each from which on this is of use.
LANES, MANY_LANES = 128, 8


@jit(fastmath=SUMS)
def _partial_distance(x, y):  # type: ignore[no-untyped-def]
    """``|x - y|^2``, differences and sum in float64 whatever the entries."""
    total = 0.0
    for j in range(x.size):
        gap = np.float64(x[j]) - np.float64(y[j])
        total += gap * gap
    return total


@inlined
def _squared_distance(x, y, limit):  # type: ignore[no-untyped-def]
    """``|x - y|^2``, or any number above ``limit`` if it is above."""
    total = _partial_distance(x[:STRIDE], y[:STRIDE])
    for start in range(STRIDE, x.size, STRIDE):
        if total > limit:
            break
        total += _partial_distance(x[start : start + STRIDE], y[start : start + STRIDE])
    return total


@jit()
def insert(distances, indices, distance, index):  # type: ignore[no-untyped-def]
    """Put a pair in its place in the order of (distance, index), dropping the last."""
    place = distances.size - 1
    while place > 0 and (
        distances[place - 1] > distance
        or (distances[place - 1] == distance and indices[place - 1] > index)
    ):
        distances[place] = distances[place - 1]
        indices[place] = indices[place - 1]
        place -= 1
    distances[place] = distance
    indices[place] = index


@jit()
def _any_below(products, norms, limit):  # type: ignore[no-untyped-def]
    """Whether any of ``norms - 2 products`` is below a limit, as a number.

    Without a branch, and of integers: minima of numbers that may be NaN are not vectorised.
    """
    found = np.int32(0)
    for j in range(products.size):
        found |= np.int32(norms[j] - np.float32(2) * products[j] < limit)
    return found


@jit()
def _lower_to(lowest, products, norms):  # type: ignore[no-untyped-def]
    """Lower each number to ``norms - 2 products`` at its place."""
    for j in range(products.size):
        score = norms[j] - np.float32(2) * products[j]
        lowest[j] = score if score < lowest[j] else lowest[j]


@jit()
def _limit(products, norms, lowest, k):  # type: ignore[no-untyped-def]
    """A number that at least ``k`` of ``norms - 2 products`` are not above, and few more.

    Every `LANES`-th score is in one lane: the ``k``-th least of the lowest of all lanes is one.
    """
    lowest[:] = np.float32(np.inf)
    for start in range(0, products.size, LANES):
        some = products[start : start + LANES]
        _lower_to(lowest[: some.size], some, norms[start : start + some.size])
    return np.partition(lowest, k - 1)[k - 1]


@jit()
def keep_nearest(products, norms, rows, excluded, scores, indices):  # type: ignore[no-untyped-def]
    """Merge ``|x_j|^2 - 2 q_i . x_j`` over ``j`` in ``rows`` into the lowest scores of each ``i``.

    ``products`` (n_queries, n_rows), ``norms`` and ``rows`` (n_rows,), ``excluded`` (n_queries,)
    the row not to count; ``scores`` and ``indices`` (n_queries, k) ascending, changed in place.
    """
    k = scores.shape[1]
    lowest = np.empty(LANES, dtype=np.float32)
    for i in range(products.shape[0]):
        worst = scores[i, -1]
        limit = worst
        if worst == np.inf and rows.size >= MANY_LANES * LANES and 2 * k < LANES:
            # Of one more than wanted, as the excluded row may be among them; and itself included.
            limit = np.nextafter(_limit(products[i], norms, lowest, k + 1), np.float32(np.inf))
        for start in range(0, rows.size, GROUP):
            stop = min(start + GROUP, rows.size)
            # Nearly all groups hold nothing of use.
            if not _any_below(products[i, start:stop], norms[start:stop], limit):
                continue
            for j in range(start, stop):
                score = norms[j] - np.float32(2) * products[i, j]
                if score < worst and score < limit and rows[j] != excluded[i]:
                    insert(scores[i], indices[i], score, rows[j])
                    worst = scores[i, -1]
            limit = min(limit, worst)


@jit()
def keep_nearest_of_some(products, norms, first, queries, scores, indices):  # type: ignore[no-untyped-def]
    """As `keep_nearest`, of rows that follow ``first``, for some queries of many.

    ``queries`` are which they are, (n_some,), and the rows that all of them are, (n_queries,), none
    of which counts for itself.
    """
    some, itself = queries
    for place in range(some.size):
        i = some[place]
        worst = scores[i, -1]
        for start in range(0, norms.size, GROUP):
            stop = min(start + GROUP, norms.size)
            if not _any_below(products[place, start:stop], norms[start:stop], worst):
                continue
            for j in range(start, stop):
                score = norms[j] - np.float32(2) * products[place, j]
                if score < worst and first + j != itself[i]:
                    insert(scores[i], indices[i], score, first + j)
                    worst = scores[i, -1]


@jit()
def measure_candidates(Q, X, candidates, distances, indices):  # type: ignore[no-untyped-def]
    """The ``k`` nearest of each query's candidates by (distance, index), into the last two.

    Candidates of -1 are none.
    """
    for i in range(Q.shape[0]):
        for place in range(distances.shape[1]):
            distances[i, place] = np.inf
            indices[i, place] = X.shape[0]
        for j in candidates[i]:
            if j < 0:
                continue
            distance = _squared_distance(Q[i], X[j], distances[i, -1])
            if distance < distances[i, -1] or (distance == distances[i, -1] and j < indices[i, -1]):
                insert(distances[i], indices[i], distance, j)


@jit()
def scan_rows(Q, X, rows, starts, distances, indices):  # type: ignore[no-untyped-def]
    """Merge ``rows[starts[i]:starts[i + 1]]``, ascending, into the nearest of each query ``i``.

    The last two are (n_queries, k), ascending, and changed in place. Of equal distances the row
    that came first stays.
    """
    for i in range(Q.shape[0]):
        for j in rows[starts[i] : starts[i + 1]]:
            # Nothing is nearer than a duplicate.
            if distances[i, -1] == 0.0:
                break
            distance = _squared_distance(Q[i], X[j], distances[i, -1])
            if distance < distances[i, -1]:
                insert(distances[i], indices[i], distance, j)


# Columns of float32 summed between two looks at the limit.
LONG_STRIDE = 128


@jit(fastmath=SUMS)
def _partial_rough(x, y):  # type: ignore[no-untyped-def]
    """``|x - y|^2`` in float32."""
    total = np.float32(0)
    for j in range(x.size):
        gap = x[j] - y[j]
        total += gap * gap
    return total


@inlined
def _rough_distance(x, y, limit):  # type: ignore[no-untyped-def]
    """``|x - y|^2`` in float32, or any number above ``limit`` if it is above."""
    total = _partial_rough(x[:LONG_STRIDE], y[:LONG_STRIDE])
    for start in range(LONG_STRIDE, x.size, LONG_STRIDE):
        if total > limit:
            break
        total += _partial_rough(x[start : start + LONG_STRIDE], y[start : start + LONG_STRIDE])
    return total


@inlined
def is_nearer(distance, index, distances, indices):  # type: ignore[no-untyped-def]
    """Whether a pair comes before the last of a list."""
    worst = distances[distances.size - 1]
    return distance < worst or (distance == worst and index < indices[indices.size - 1])


@inlined
def _try(x, y, j, distances, indices, fresh):  # type: ignore[no-untyped-def]
    """Put row ``j``, which is ``y``, among the nearest of ``x`` if it belongs there."""
    distance = _rough_distance(x, y, distances[distances.size - 1])
    if not is_nearer(distance, j, distances, indices):
        return
    place = distances.size - 1
    while place > 0 and (
        distances[place - 1] > distance
        or (distances[place - 1] == distance and indices[place - 1] > j)
    ):
        distances[place] = distances[place - 1]
        indices[place] = indices[place - 1]
        fresh[place] = fresh[place - 1]
        place -= 1
    distances[place], indices[place], fresh[place] = distance, j, 1


@jit()
def _note(seen, mark, rows):  # type: ignore[no-untyped-def]
    """Mark the rows of a list; -1 is none."""
    for j in rows:
        if j >= 0:
            seen[j] = mark


@jit()
def measure_proposals(rows, X, proposals, lists):  # type: ignore[no-untyped-def]
    """Merge the proposals (n_rows, n_proposals), -1 for none, into the nearest of each row.

    ``rows`` are the first and the last but one; ``X`` is (n_rows, n_features) of float32. ``lists``
    are distances, indices, and which entries are fresh, (n_rows, k) each.
    """
    distances, indices, fresh = lists
    seen = np.full(X.shape[0], -1, dtype=np.int32)
    for i in range(rows[0], rows[1]):
        seen[i] = i
        _note(seen, i, indices[i])
        for j in proposals[i]:
            if j >= 0 and seen[j] != i:
                seen[j] = i
                _try(X[i], X[j], j, distances[i], indices[i], fresh[i])


@jit()
def fill_reverse(indices, fresh, most):  # type: ignore[no-untyped-def]
    """For every row, at most ``most`` rows that have it in their list, and whether this is fresh.

    Nearer ones come first: the first entries of all lists are taken before the second ones.
    """
    n_rows, k = indices.shape
    holders = np.full((n_rows, most), -1, dtype=np.int32)
    new = np.zeros((n_rows, most), dtype=np.uint8)
    n_held = np.zeros(n_rows, dtype=np.int32)
    for place in range(k):
        for i in range(n_rows):
            j = indices[i, place]
            if j >= 0 and n_held[j] < most:
                holders[j, n_held[j]] = i
                new[j, n_held[j]] = fresh[i, place]
                n_held[j] += 1
    return holders, new


@jit()
def look_around(rows, X, known, near, near_fresh, lists):  # type: ignore[no-untyped-def]
    """Merge the neighbours of the neighbours of each row into its list, in place.

    ``near`` (n_rows, n_near) are the neighbours of every row in either direction, as they were
    before, -1 for none; pairs of which neither is fresh have been tried already. ``known``
    (n_rows, n_known) need not be measured again. ``lists`` as in `measure_proposals`.
    """
    distances, indices, fresh = lists
    seen = np.full(X.shape[0], -1, dtype=np.int32)
    for i in range(rows[0], rows[1]):
        seen[i] = i
        _note(seen, i, known[i])
        _note(seen, i, indices[i])
        fresh[i, :] = 0
        for place in range(near.shape[1]):
            j = near[i, place]
            if j < 0:
                continue
            if seen[j] != i:
                seen[j] = i
                _try(X[i], X[j], j, distances[i], indices[i], fresh[i])
            for further in range(near.shape[1]):
                end = near[j, further]
                if end < 0 or seen[end] == i:
                    continue
                if near_fresh[i, place] or near_fresh[j, further]:
                    seen[end] = i
                    _try(X[i], X[end], end, distances[i], indices[i], fresh[i])


@jit()
def order_exactly(rows, X, order, lists, distances, indices):  # type: ignore[no-untyped-def]
    """The ``k`` nearest of each list by float64 distances of ``X``, ties by row number.

    Entry ``i`` of ``lists`` (n_rows, n_listed) is of row ``order[i]`` and holds positions in
    ``order``; the results (n_rows, k) are of rows and hold rows.
    """
    for i in range(rows[0], rows[1]):
        row = order[i]
        distances[row, :] = np.inf
        indices[row, :] = X.shape[0]
        for position in lists[i]:
            if position < 0:
                continue
            j = order[position]
            distance = _squared_distance(X[row], X[j], distances[row, -1])
            if is_nearer(distance, j, distances[row], indices[row]):
                insert(distances[row], indices[row], distance, j)
