"""Euclidean projections of rows on the probability simplex, and small problems over it."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from viewmend.backend import dispatch
from viewmend.backend.namespace import Array

__all__ = ["power_weights", "project_simplex", "project_support", "simplex_qp"]


def project_simplex(B: Array) -> Array:
    """Row-wise argmin ``|p - b|^2`` subject to ``p >= 0, sum(p) = 1`` (Eq. subp_P).

    Parameters
    ----------
    B : array (n_samples, n_anchors)

    Returns
    -------
    array (n_samples, n_anchors)
        Rows are non-negative and sum to one.
    """
    return dispatch.project_simplex_rows(B)


def project_support(S: csr_array) -> csr_array:
    """`project_simplex` of sparse rows, each over its stored entries alone.

    Parameters
    ----------
    S : sparse array (n_rows, n_columns)
        Stored zeros belong to the support; a row without any stored entry stays empty.

    Returns
    -------
    sparse array (n_rows, n_columns)
        With the same stored pattern.
    """
    return csr_array((dispatch.project_ragged_rows(S.data, S.indptr), S.indices, S.indptr), S.shape)


def simplex_qp(M: np.ndarray, b: np.ndarray, max_iter: int = 20_000) -> np.ndarray:
    """Argmin over the simplex of ``a^T M a - 2 a^T b`` by accelerated projected gradients.

    Parameters
    ----------
    M : array (n_views, n_views)
        Symmetric, positive semi-definite.
    b : array (n_views,)

    Returns
    -------
    array (n_views,)
    """
    step = 1 / (2 * max(float(np.linalg.eigvalsh(M)[-1]), np.finfo(float).tiny))
    a = ahead = np.full(len(b), 1 / len(b))
    momentum = 1.0
    for _ in range(max_iter):
        a_old, a = a, project_simplex((ahead - 2 * step * (M @ ahead - b))[None, :])[0]
        momentum_old, momentum = momentum, (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        # Start the momentum anew where it points uphill: the rate becomes linear.
        if (ahead - a) @ (a - a_old) > 0:
            momentum = momentum_old = 1.0
        ahead = a + (momentum_old - 1) / momentum * (a - a_old)
        if np.abs(a - a_old).max() < 1e-14:
            break
    return a


def power_weights(costs: np.ndarray, r: float) -> np.ndarray:
    """Argmin over the simplex of ``sum_v a_v^r costs_v``, ``r > 1``: ``a_v ~ costs_v^{1/(1-r)}``.

    Parameters
    ----------
    costs : array (n_views,)
        Positive up to rounding.
    r : float

    Returns
    -------
    array (n_views,)
    """
    logs = np.log(np.maximum(costs, 1e-300)) / (1 - r)
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()
