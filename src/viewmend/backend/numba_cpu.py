"""Compiled versions of the row kernels for NumPy arrays.

Rows are independent, so the result does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import get_num_threads, njit, prange, set_num_threads

__all__ = [
    "keep_nearest",
    "measure_candidates",
    "nearest_anchor_weights",
    "project_positive_rows",
    "project_ragged_rows",
    "project_simplex_rows",
    "scan_rows",
]


# Entries below which waking the threads takes longer than the work.
SMALL = 1 << 15


def _run(kernel: Callable[..., None], *arguments: Any) -> None:
    """Call a parallel kernel, on one thread where its first argument is small."""
    before = get_num_threads()
    if arguments[0].size < SMALL:
        set_num_threads(1)
    try:
        kernel(*arguments)
    finally:
        set_num_threads(before)


def project_simplex_rows(B: np.ndarray) -> np.ndarray:
    """See `viewmend.backend.agnostic.project_simplex_rows`."""
    out = np.empty_like(B, order="C")
    _run(_project_rows, np.ascontiguousarray(B), -np.inf, out, out)
    return out


def project_positive_rows(B: np.ndarray, previous: np.ndarray) -> np.ndarray:
    """See `viewmend.backend.agnostic.project_positive_rows`."""
    out = np.empty_like(B, order="C")
    _run(_project_rows, np.ascontiguousarray(B), 0.0, np.ascontiguousarray(previous), out)
    return out


def project_ragged_rows(data: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """See `viewmend.backend.agnostic.project_ragged_rows`."""
    out = np.empty_like(data)
    _run(_project_ragged, np.ascontiguousarray(data), starts, out)
    return out


def nearest_anchor_weights(E: np.ndarray, k: int) -> np.ndarray:
    """See `viewmend.backend.agnostic.nearest_anchor_weights`."""
    border = np.partition(E, k, axis=1)[:, k]
    out = np.empty_like(E, order="C")
    _run(_anchor_weights, np.ascontiguousarray(E), border, out)
    return out


@njit(cache=True, parallel=True)
def _project_rows(B, floor, previous, out):  # type: ignore[no-untyped-def]
    """Project each row on the face of its entries above ``floor``; none: take ``previous``."""
    for i in prange(B.shape[0]):
        row = B[i]
        highest = row[0]
        for b in row:
            highest = max(highest, b)
        if not highest > floor:
            out[i] = previous[i]
            continue
        tau = _threshold(row, max(floor, highest - 1.0))
        for j in range(row.size):
            out[i, j] = max(row[j] - tau, 0.0) if row[j] > floor else 0.0


@njit(cache=True, parallel=True)
def _project_ragged(data, starts, out):  # type: ignore[no-untyped-def]
    for i in prange(starts.size - 1):
        row = data[starts[i] : starts[i + 1]]
        if row.size:
            tau = _threshold(row, row.max() - 1.0)
            for j in range(row.size):
                out[starts[i] + j] = max(row[j] - tau, 0.0)


# The order of the sums may change, which lets the passes be vectorised.
@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def _threshold(row, lower):  # type: ignore[no-untyped-def]
    """Michelot's iteration: the mean excess of the active entries, until none drops out.

    ``lower`` starts at ``max - 1`` or above, which no threshold of the simplex falls below, so
    that few entries are ever active and large numbers do not cancel.
    """
    active = 0
    while True:
        total = 0.0
        count = 0
        for b in row:
            above = b > lower
            total += b if above else 0.0
            count += 1 if above else 0
        tau = (total - 1.0) / count
        if count == active:
            return tau
        active = count
        lower = max(lower, tau)


@njit(cache=True, parallel=True)
def _anchor_weights(E, border, out):  # type: ignore[no-untyped-def]
    for i in prange(E.shape[0]):
        total = 0.0
        ties = 0
        for e in E[i]:
            total += max(border[i] - e, 0.0)
            ties += e <= border[i]
        for j in range(E.shape[1]):
            if total > 0.0:
                out[i, j] = max(border[i] - E[i, j], 0.0) / total
            else:
                out[i, j] = 1.0 / ties if E[i, j] <= border[i] else 0.0


# Columns summed between two looks at the limit, and entries compared with it at once.
STRIDE = 64
GROUP = 16


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _partial_distance(x, y):  # type: ignore[no-untyped-def]
    """``|x - y|^2``, differences and sum in float64 whatever the entries."""
    total = 0.0
    for j in range(x.size):
        gap = np.float64(x[j]) - np.float64(y[j])
        total += gap * gap
    return total


@njit(cache=True, nogil=True)
def _squared_distance(x, y, limit):  # type: ignore[no-untyped-def]
    """``|x - y|^2``, or any number above ``limit`` if it is above."""
    total = 0.0
    for start in range(0, x.size, STRIDE):
        total += _partial_distance(x[start : start + STRIDE], y[start : start + STRIDE])
        if total > limit:
            break
    return total


@njit(cache=True, nogil=True)
def _insert(distances, indices, distance, index):  # type: ignore[no-untyped-def]
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


@njit(cache=True, nogil=True)
def keep_nearest(products, norms, rows, own, scores, indices):  # type: ignore[no-untyped-def]
    """Merge ``|x_j|^2 - 2 q_i . x_j`` over ``j`` in ``rows`` into the lowest scores of each ``i``.

    ``products`` (n_queries, n_rows), ``norms`` and ``rows`` (n_rows,), ``own`` (n_queries,) the
    row not to count; ``scores`` and ``indices`` (n_queries, k) ascending, changed in place.
    """
    for i in range(products.shape[0]):
        worst = scores[i, -1]
        for start in range(0, rows.size, GROUP):
            stop = min(start + GROUP, rows.size)
            # Nearly all groups hold nothing of use, and their minimum is vectorised.
            lowest = np.float32(np.inf)
            for j in range(start, stop):
                lowest = min(lowest, norms[j] - np.float32(2) * products[i, j])
            if lowest >= worst:
                continue
            for j in range(start, stop):
                score = norms[j] - np.float32(2) * products[i, j]
                if score < worst and rows[j] != own[i]:
                    _insert(scores[i], indices[i], score, rows[j])
                    worst = scores[i, -1]


@njit(cache=True, nogil=True)
def measure_candidates(Q, X, candidates, distances, indices):  # type: ignore[no-untyped-def]
    """The ``k`` nearest of each query's candidates by (distance, index), into the last two."""
    for i in range(Q.shape[0]):
        distances[i] = np.inf
        indices[i] = X.shape[0]
        for j in candidates[i]:
            distance = _squared_distance(Q[i], X[j], distances[i, -1])
            if distance < distances[i, -1] or (distance == distances[i, -1] and j < indices[i, -1]):
                _insert(distances[i], indices[i], distance, j)


@njit(cache=True, nogil=True)
def scan_rows(Q, X, rows, own, distances, indices):  # type: ignore[no-untyped-def]
    """The ``k`` nearest of the ascending ``rows``, of which the last two hold upper bounds."""
    for i in range(Q.shape[0]):
        limit = distances[i, -1]
        distances[i] = np.inf
        indices[i] = X.shape[0]
        for j in rows:
            if j == own[i]:
                continue
            distance = _squared_distance(Q[i], X[j], min(limit, distances[i, -1]))
            # Of equal distances the first row stays, and nothing is nearer than a duplicate.
            if distance <= limit and distance < distances[i, -1]:
                _insert(distances[i], indices[i], distance, j)
                if distances[i, -1] == 0.0:
                    break
