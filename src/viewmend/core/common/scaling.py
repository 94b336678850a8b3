"""Scaling of the rows of a view."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def unit_rows(X_v: np.ndarray) -> np.ndarray:
    """Rows scaled to unit Euclidean length; zero rows stay zero, and missing ones NaN."""
    lengths = np.linalg.norm(X_v, axis=1, keepdims=True)
    return X_v / np.where(lengths == 0, 1, lengths)


def standardise_rows(X_v: np.ndarray) -> np.ndarray:
    """Rows with mean 0 and deviation 1 (n - 1 in its divisor); a constant row becomes zero."""
    centred = X_v - X_v.mean(axis=1, keepdims=True)
    deviations = np.sqrt((centred**2).sum(axis=1, keepdims=True) / max(X_v.shape[1] - 1, 1))
    # A deviation of rounding errors alone is none.
    flat = deviations <= 1e-12 * np.abs(X_v).max(axis=1, keepdims=True)
    return np.where(flat, 0.0, centred / np.where(flat, 1.0, deviations))


# What the parameter `normalize` may be.
NORMALIZERS: dict[str | None, Callable[[np.ndarray], np.ndarray]] = {
    "l2": unit_rows,
    None: lambda X_v: X_v,
}
