"""How large and how small the numbers of a view may be, and which number type holds them."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import issparse

from viewmend.backend.numba_scans import column_ends, row_ends
from viewmend.data.input_arrays import some_of
from viewmend.exceptions import InvalidViewsError

# Between these, squares, and ratios of a value to a deviation, neither overflow nor vanish.
SMALLEST, LARGEST = 1e-140, 1e140
# The same for float32, with room for new samples.
SMALLEST_SINGLE, LARGEST_SINGLE = 1e-12, 1e12
# Spread of a column over its largest value below which float32 keeps too little of the spread.
NARROW = 2.0**-10


def check_finite(view: np.ndarray, observed: np.ndarray, title: str) -> None:
    """Refuse observed rows with infinite values, or with some whose squares would overflow."""
    # Unlike max and min these pass over missing cells; missing rows may be anything.
    low, high = row_ends(view)
    peaks = np.where(observed, np.maximum(high, -low), 0)
    infinite = np.flatnonzero(np.isinf(peaks))
    if len(infinite):
        msg = (
            f"{title} has infinite values in {len(infinite)} row(s) (rows {some_of(infinite)}), "
            f"expected finite {view.dtype} values; clip or rescale them, or mark the rows missing"
        )
        raise InvalidViewsError(msg)
    _check_largest(peaks, LARGEST, title)


def check_seen(view: np.ndarray, seen: np.ndarray, title: str) -> None:
    """Refuse a view to fit on that no sample has, or whose numbers are too small to square."""
    if not seen.any():
        msg = (
            f"{title} has no observed sample: expected at least one row that is neither NaN nor "
            f"masked, got {len(seen)} missing rows; leave the view out"
        )
        raise InvalidViewsError(msg)
    largest = _largest(view)
    if 0 < largest < SMALLEST:
        msg = (
            f"{title} has no value above {SMALLEST:.0e}, its largest is {largest:.0e}, and squares "
            f"of so small numbers vanish; multiply the view by a constant"
        )
        raise InvalidViewsError(msg)


def kept_dtype(view: np.ndarray, dtype: DTypeLike) -> DTypeLike:
    """``dtype``, or float64 if float32 would lose the differences between the rows of a view.

    That is so for columns that vary little around a large value, as times in seconds since 1970 do,
    and for numbers whose squares do not fit. Missing rows and cells are NaN.
    """
    if np.dtype(dtype) == np.float64 or issparse(view):
        return np.float64
    # Unlike max and min these pass over NaN; a column without any value counts as zeros.
    low, high = np.nan_to_num(column_ends(view).astype(np.float64))
    peaks, spreads = np.maximum(high, -low), high - low
    fits = SMALLEST_SINGLE <= peaks.max() <= LARGEST_SINGLE
    varied = (spreads == 0) | (spreads >= NARROW * peaks)
    return dtype if fits and varied.all() else np.float64


def as_kept(view: np.ndarray, dtype: DTypeLike, title: str) -> np.ndarray:
    """A view of new samples in the number type that the fit kept it in."""
    limit = float(np.finfo(dtype).max)
    if limit < LARGEST and _largest(view) > limit:
        peaks = np.fmax.reduce(np.abs(view), axis=1)
        _check_largest(peaks, limit, title)
    return view.astype(dtype, copy=False)


def _largest(view: np.ndarray) -> float:
    """Largest absolute value; missing rows are NaN."""
    low, high = column_ends(view)
    return float(max(np.fmax.reduce(high), -np.fmin.reduce(low)))


def _check_largest(peaks: np.ndarray, limit: float, title: str) -> None:
    """Refuse rows whose largest absolute values ``peaks`` (n_rows,) are above the limit."""
    beyond = np.flatnonzero(peaks.astype(np.float64) > limit)
    if len(beyond):
        msg = (
            f"{title} has values beyond {limit:.0e} in {len(beyond)} row(s) (rows "
            f"{some_of(beyond)}), the largest {peaks[beyond].max():.0e}, expected values whose "
            f"squares do not overflow; rescale the view, or mark the rows missing in mask if the "
            f"number means missing"
        )
        raise InvalidViewsError(msg)
