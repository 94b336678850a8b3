"""Rows of a view, scaled and moved entry by entry, in one pass over them.

Rows are independent, so the result depends neither on the number of threads nor on other rows.
"""

from __future__ import annotations

import numpy as np

from viewmend.backend.compiling import jit
from viewmend.backend.numba_cpu import SUMS
from viewmend.backend.threads import over_rows

__all__ = ["scaled_rows"]

# Sums of squares of float64 that have lost no digit, and whose inverses have not.
SMALLEST_SQUARES = 1e-250


def scaled_rows(
    X: np.ndarray,
    first: tuple[bool, bool],
    moved: tuple[np.ndarray, np.ndarray],
    farthest: float,
    unit: bool,
) -> np.ndarray:
    """``u((f(x) - centre) * scale)`` of float32 for every row ``x`` of ``X`` (n_rows, n_features).

    ``moved`` are centre and scale, each (n_features,) or (). ``first`` says whether ``f`` takes
    signed roots, and whether it then scales rows to unit length; ``unit`` whether ``u`` does. In
    between, entries are cut to ``farthest``. All arithmetic is of
    float64; rows of zeros stay zero where their length is scaled.
    """
    out = np.empty(X.shape, dtype=np.float32)
    columns = tuple(np.broadcast_to(each, X.shape[1:]).astype(np.float64) for each in moved)
    over_rows(_scale_rows, *X.shape, X, first, columns, farthest, unit, out)
    return out


@jit()
def _scale_rows(rows, X, first, moved, farthest, unit, out):  # type: ignore[no-untyped-def]
    root, unit_first = first
    row = np.empty(X.shape[1], dtype=np.float64)
    for i in range(rows[0], rows[1]):
        _take(X[i], root, row)
        factor = _to_unit_length(row) if unit_first else 1.0
        _move(row, factor, moved, farthest)
        factor = _to_unit_length(row) if unit else 1.0
        _put(row, factor, out[i])


# Loops of their own, because only so does the compiler work on several entries at a time.


@jit()
def _take(x, root, row):  # type: ignore[no-untyped-def]
    if root:
        for j in range(row.size):
            row[j] = np.copysign(np.sqrt(abs(np.float64(x[j]))), np.float64(x[j]))
    else:
        for j in range(row.size):
            row[j] = x[j]


@jit()
def _move(row, factor, moved, farthest):  # type: ignore[no-untyped-def]
    centre, scale = moved
    for j in range(row.size):
        value = (row[j] * factor - centre[j]) * scale[j]
        value = farthest if value > farthest else value
        row[j] = -farthest if value < -farthest else value


@jit()
def _put(row, factor, out):  # type: ignore[no-untyped-def]
    for j in range(row.size):
        out[j] = np.float32(row[j] * factor)


@jit(fastmath=SUMS)
def _sum_of_squares(row):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(row.size):
        total += row[j] * row[j]
    return total


@jit()
def _to_unit_length(row):  # type: ignore[no-untyped-def]
    """The factor that gives a row unit length; entries far from one are divided by the largest."""
    squares = _sum_of_squares(row)
    if SMALLEST_SQUARES < squares < 1 / SMALLEST_SQUARES:
        return 1 / np.sqrt(squares)
    # Squares that overflow or vanish.
    peak = 0.0
    for j in range(row.size):
        peak = max(peak, abs(row[j]))
    if peak == 0:
        return 1.0
    for j in range(row.size):
        row[j] /= peak
    return 1 / np.sqrt(_sum_of_squares(row))
