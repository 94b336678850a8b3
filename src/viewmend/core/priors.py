"""Class weights that make soft labels agree with known class shares."""

from __future__ import annotations

import numpy as np

__all__ = ["class_weights", "normalise_rows"]


def normalise_rows(F: np.ndarray) -> np.ndarray:
    """Rows of a non-negative array divided by their sums; zero rows stay zero."""
    total = F.sum(axis=1, keepdims=True)
    return np.divide(F, total, out=np.zeros_like(F), where=total > 0)


def class_weights(
    F: np.ndarray, prior: np.ndarray, tol: float = 1e-9, max_iter: int = 1000
) -> np.ndarray:
    """Weights ``w`` such that the rows of ``F * w``, normalised, have ``prior`` as their mean.

    They minimise the convex function ``mean_i log sum_c F_ic w_c - sum_c prior_c log w_c`` of
    ``log w``; the fixed-point iteration divides each weight by how much its class exceeds its
    share.

    Parameters
    ----------
    F : array (n_samples, n_classes)
        Non-negative; zero rows are left out.
    prior : array (n_classes,)
        Positive, sums to one.
    tol : float
        Largest deviation of a share at which to stop.
    max_iter : int

    Returns
    -------
    array (n_classes,)
        Scaled to a geometric mean of one.
    """
    F = F[F.sum(axis=1) > 0]
    weights = np.ones_like(prior)
    for _ in range(max_iter):
        shares = normalise_rows(F * weights).mean(axis=0)
        weights = weights * prior / np.maximum(shares, np.finfo(F.dtype).tiny)
        weights = weights / np.exp(np.mean(np.log(weights)))
        if np.abs(shares - prior).max() <= tol:
            break
    return weights
