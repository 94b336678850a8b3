"""Scaling and centring of the rows of a view."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from viewmend.backend.namespace import Array, array_namespace

# Squared distance of the mean from the origin over that of the rows from their mean, from which the
# mean is taken off: products then keep about 14 digits of 24 in float32, and 43 of 53 in float64.
FAR = 2.0**10


def unit_rows(X_v: np.ndarray) -> np.ndarray:
    """Rows scaled to unit Euclidean length; zero rows stay zero, and missing ones NaN."""
    # Squares that overflow or vanish are noticed by their sum, and mended below.
    with np.errstate(over="ignore", under="ignore"):
        lengths = np.linalg.norm(X_v, axis=1, keepdims=True)
    limits = np.finfo(X_v.dtype)
    lowest = np.sqrt(limits.tiny / limits.eps)
    odd = np.flatnonzero((lengths < lowest) | (lengths > np.sqrt(limits.max)))
    if odd.size and X_v[odd].any():
        X_v, lengths = X_v.copy(), lengths.copy()
        # A power of two changes no digit.
        _, exponents = np.frexp(np.abs(X_v[odd]).max(axis=1, keepdims=True))
        X_v[odd] = np.ldexp(X_v[odd], -exponents)
        lengths[odd] = np.linalg.norm(X_v[odd], axis=1, keepdims=True)
    return X_v / np.where(lengths == 0, 1, lengths)


def as_given(X_v: np.ndarray) -> np.ndarray:
    """Rows as they are, cut where their squares would overflow."""
    limit = np.sqrt(np.finfo(X_v.dtype).max) / X_v.dtype.type(1024)
    return np.clip(X_v, -limit, limit)


def standardise_rows(X_v: np.ndarray) -> np.ndarray:
    """Rows with mean 0 and deviation 1 (n - 1 in its divisor); a constant row becomes zero."""
    centred = X_v - X_v.mean(axis=1, keepdims=True)
    deviations = np.sqrt((centred**2).sum(axis=1, keepdims=True) / max(X_v.shape[1] - 1, 1))
    # A deviation of rounding errors alone is none.
    flat = deviations <= 1e-12 * np.abs(X_v).max(axis=1, keepdims=True)
    return np.where(flat, 0.0, centred / np.where(flat, 1.0, deviations))


def far_centre(A: Array) -> Array | None:
    """Mean (d,) of the rows of ``A`` (m, d) if they lie close together and far from the origin.

    Products of such rows lose the digits in which they differ, unless the mean is taken off first.
    Other rows are better left as they are, which changes no digit of theirs.
    """
    xp = array_namespace(A)
    centre = xp.mean(A, axis=0)
    gaps = A - centre
    is_far = A.shape[0] * xp.sum(centre * centre) > FAR * xp.sum(gaps * gaps)
    return centre if bool(is_far) else None


# What the parameter `normalize` may be.
NORMALIZERS: dict[str | None, Callable[[np.ndarray], np.ndarray]] = {
    "l2": unit_rows,
    None: as_given,
}
