"""Compiled versions of the row kernels for NumPy arrays.

Rows are independent, so the result does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import get_num_threads, njit, prange, set_num_threads

__all__ = [
    "nearest_anchor_weights",
    "project_positive_rows",
    "project_ragged_rows",
    "project_simplex_rows",
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


@njit(cache=True)
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
            if b > lower:
                total += b
                count += 1
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
