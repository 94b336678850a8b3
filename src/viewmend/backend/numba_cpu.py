"""Compiled versions of the row kernels for NumPy arrays.

Rows are independent, so the result does not depend on the number of threads.
"""

from __future__ import annotations

import numpy as np

from viewmend.backend.compiling import jit
from viewmend.backend.threads import over_rows

__all__ = [
    "SUMS",
    "nearest_anchor_weights",
    "project_positive_rows",
    "project_ragged_rows",
    "project_row",
    "project_simplex_rows",
]


# The order of sums may change, which lets the passes be vectorised.
SUMS = {"reassoc", "contract", "nsz"}


def project_simplex_rows(B: np.ndarray) -> np.ndarray:
    """See `viewmend.backend.agnostic.project_simplex_rows`."""
    out = np.empty_like(B, order="C")
    over_rows(_project_rows, *B.shape, np.ascontiguousarray(B), -np.inf, out, out)
    return out


def project_positive_rows(B: np.ndarray, previous: np.ndarray) -> np.ndarray:
    """See `viewmend.backend.agnostic.project_positive_rows`."""
    out = np.empty_like(B, order="C")
    previous = np.ascontiguousarray(previous)
    over_rows(_project_rows, *B.shape, np.ascontiguousarray(B), 0.0, previous, out)
    return out


def project_ragged_rows(data: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """See `viewmend.backend.agnostic.project_ragged_rows`."""
    out = np.empty_like(data)
    n_rows = starts.size - 1
    row_size = data.size // max(1, n_rows)
    over_rows(_project_ragged, n_rows, row_size, np.ascontiguousarray(data), starts, out)
    return out


def nearest_anchor_weights(E: np.ndarray, k: int) -> np.ndarray:
    """See `viewmend.backend.agnostic.nearest_anchor_weights`."""
    # The (k + 1)-th smallest distance of every row: the first that gets no weight.
    border = np.partition(E, k, axis=1)[:, k]
    out = np.empty_like(E, order="C")
    over_rows(_anchor_weights, *E.shape, np.ascontiguousarray(E), border, out)
    return out


@jit()
def _project_rows(rows, B, floor, previous, out):  # type: ignore[no-untyped-def]
    """Project each row on the face of its entries above ``floor``; none: take ``previous``."""
    for i in range(rows[0], rows[1]):
        row = B[i]
        # No entry above the floor: there is no face to project on.
        if _excess(row, row.dtype.type(0), row.dtype.type(floor))[1] == 0:
            for j in range(row.size):
                out[i, j] = previous[i, j]
            continue
        tau = _threshold(row, floor)
        for j in range(row.size):
            out[i, j] = max(row[j] - tau, 0.0) if row[j] > floor else 0.0


@jit()
def _project_ragged(rows, data, starts, out):  # type: ignore[no-untyped-def]
    for i in range(rows[0], rows[1]):
        row = data[starts[i] : starts[i + 1]]
        if row.size:
            project_row(row, out[starts[i] : starts[i + 1]])


@jit()
def project_row(row, out):  # type: ignore[no-untyped-def]
    """The nearest row on the simplex."""
    _excesses(row, _threshold(row, -np.inf), out)


@jit()
def _threshold(row, floor):  # type: ignore[no-untyped-def]
    """The ``tau`` at which the entries above ``floor`` exceed it by 1 in all (Newton's method).

    The excess is convex and piecewise linear in ``tau``, so that steps from below never overshoot
    and end when none of the active entries drops out. Every step sums what is left above the last
    ``tau``, which keeps large numbers from cancelling. The last is in double precision: rounding
    of ``tau`` shifts all entries of a row alike, and sums over the graph would show it.
    """
    one = row.dtype.type(1)
    tau, bound, active = row.dtype.type(0), row.dtype.type(floor), row.dtype.type(0)
    while True:
        excess, count = _excess(row, tau, bound)
        # Only for entries so large that rounding loses the 1.
        if count == 0:
            return np.float64(tau)
        if count == active:
            return _last_step(row, np.float64(tau), bound)
        tau += (excess - one) / count
        active = count
        bound = max(bound, tau)


@jit(fastmath=SUMS | {"nnan"})
def _excesses(row, tau, out):  # type: ignore[no-untyped-def]
    """``max(b - tau, 0)`` of every entry."""
    for j in range(row.size):
        excess = row[j] - tau
        out[j] = excess if excess > 0.0 else 0.0


@jit(fastmath=SUMS | {"nnan"})
def _last_step(row, tau, bound):  # type: ignore[no-untyped-def]
    excess = 0.0
    count = 0.0
    for j in range(row.size):
        above = row[j] > bound
        excess += row[j] - tau if above else 0.0
        count += 1.0 if above else 0.0
    return tau + (excess - 1.0) / count


# Without NaN, which validation keeps out, and with a count and a sum of the kind of the entries,
# the loop is vectorised.
@jit(fastmath=SUMS | {"nnan"})
def _excess(row, tau, bound):  # type: ignore[no-untyped-def]
    """Sum of ``b - tau`` over the entries above ``bound``, and their number."""
    zero, one = row.dtype.type(0), row.dtype.type(1)
    total, count = zero, zero
    for j in range(row.size):
        above = row[j] > bound
        total += row[j] - tau if above else zero
        count += one if above else zero
    return total, count


@jit()
def _anchor_weights(rows, E, border, out):  # type: ignore[no-untyped-def]
    for i in range(rows[0], rows[1]):
        total = 0.0
        ties = 0
        for e in E[i]:
            total += max(border[i] - e, 0.0)
            ties += e <= border[i]
        # A total of zero means that the k + 1 nearest tie: uniform over all that do.
        for j in range(E.shape[1]):
            if total > 0.0:
                out[i, j] = max(border[i] - E[i, j], 0.0) / total
            else:
                out[i, j] = 1.0 / ties if E[i, j] <= border[i] else 0.0
