"""Euclidean projections of rows on the probability simplex, and small problems over it."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from viewmend.backend import dispatch
from viewmend.backend.namespace import Array


def project_simplex(B: Array) -> Array:
    """Row-wise argmin ``|p - b|^2`` subject to ``p >= 0, sum(p) = 1`` (Eq. subp_P), like ``B``."""
    return dispatch.project_simplex_rows(B)


def project_support(S: csr_array) -> csr_array:
    """`project_simplex` of sparse rows, each over its stored entries alone.

    Stored zeros belong to the support; a row without any stored entry stays empty.
    """
    return csr_array((dispatch.project_ragged_rows(S.data, S.indptr), S.indices, S.indptr), S.shape)


def simplex_qp(M: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Argmin over the simplex of ``a^T M a - 2 a^T b``, exactly, by an active-set method.

    All weights start inside. A step towards the optimum of those inside stops where one of them
    becomes zero, which then leaves; where the optimum is reached, the steepest outside enters.
    Equal views keep equal weights, because the smallest solution of each system is taken. ``M``
    (n_views, n_views) is symmetric and positive semi-definite.
    """
    inside = np.ones(len(b), dtype=bool)
    a = np.full(len(b), 1 / len(b))
    # Rounding could let a weight enter and leave for ever; no problem this small needs as many.
    for _ in range(100 * len(b)):
        best = _optimum_inside(M, b, inside)
        leaving = inside & (best <= 0)
        if leaving.any():
            ratios = np.where(leaving, a / np.where(leaving, a - best, 1.0), np.inf)
            first = int(np.argmin(ratios))
            a = np.maximum(a + ratios[first] * (best - a), 0.0)
            a[first], inside[first] = 0.0, False
            continue
        a = best
        slope = M @ a - b
        # At the optimum all weights inside have the same slope, and none outside a smaller one.
        entering = int(np.argmin(np.where(inside, np.inf, slope)))
        if inside.all() or slope[entering] >= slope[inside].mean() - 1e-12 * np.abs(slope).max():
            break
        inside[entering] = True
    return a / a.sum()


def _optimum_inside(M: np.ndarray, b: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Argmin of ``a^T M a - 2 a^T b`` with ``sum(a) = 1`` and zeros outside, signs left free."""
    n_inside = int(inside.sum())
    system = np.ones((n_inside + 1, n_inside + 1))
    system[:-1, :-1] = M[np.ix_(inside, inside)]
    system[-1, -1] = 0.0
    # Lagrange's conditions; by least squares, because M may be singular (equal views).
    best = np.zeros(len(b))
    best[inside] = np.linalg.lstsq(system, np.append(b[inside], 1.0), rcond=None)[0][:-1]
    return best


def power_weights(costs: np.ndarray, r: float) -> np.ndarray:
    """Argmin over the simplex of ``sum_v a_v^r costs_v``, ``r > 1``: ``a_v ~ costs_v^{1/(1-r)}``.

    The costs (n_views,) are positive up to rounding.
    """
    # In logarithms, shifted by the largest: the powers may overflow otherwise.
    logs = np.log(np.maximum(costs, 1e-300)) / (1 - r)
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()
