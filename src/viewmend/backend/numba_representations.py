"""Rows of a view, scaled and moved entry by entry, in one pass over them.

Rows are independent, so the result depends neither on the number of threads nor on other rows.
"""

from __future__ import annotations

import numpy as np

from viewmend.backend.compiling import jit
from viewmend.backend.threads import over_rows

__all__ = ["scaled_rows"]


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
    centre, scale = moved
    row = np.empty(X.shape[1], dtype=np.float64)
    for i in range(rows[0], rows[1]):
        for j in range(row.size):
            x = np.float64(X[i, j])
            row[j] = np.copysign(np.sqrt(abs(x)), x) if root else x
        if unit_first:
            _to_unit_length(row)
        for j in range(row.size):
            row[j] = min(max((row[j] - centre[j]) * scale[j], -farthest), farthest)
        if unit:
            _to_unit_length(row)
        for j in range(row.size):
            out[i, j] = row[j]


@jit()
def _to_unit_length(row):  # type: ignore[no-untyped-def]
    peak = 0.0
    for j in range(row.size):
        peak = max(peak, abs(row[j]))
    if peak > 0:
        # Largest entries of one first: their squares neither overflow nor vanish.
        squares = 0.0
        for j in range(row.size):
            row[j] /= peak
            squares += row[j] * row[j]
        length = np.sqrt(squares)
        for j in range(row.size):
            row[j] /= length
