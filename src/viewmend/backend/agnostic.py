"""The kernels in plain array API: the readable reference, and the oracle of the fast ones.

Every function takes the namespace ``xp`` as its last keyword and never writes to its inputs.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from viewmend.backend.namespace import Array

__all__ = [
    "inner",
    "nearest_anchor_weights",
    "polar_factor",
    "project_positive_rows",
    "project_ragged_rows",
    "project_simplex_rows",
    "solve_spd",
    "squared_distances",
]


def project_simplex_rows(B: Array, *, xp: Any) -> Array:
    """Row-wise argmin ``|p - b|^2`` subject to ``p >= 0, sum(p) = 1``.

    The answer is ``max(b - tau, 0)``. With the entries of a row in falling order and
    ``tau_j = (b_1 + ... + b_j - 1) / j``, the right ``tau`` is that of the last ``j`` with
    ``b_j > tau_j``. Shifting a row changes nothing, and keeps large numbers from cancelling.
    """
    B = B - xp.max(B, axis=1, keepdims=True)
    falling = xp.sort(B, axis=1, descending=True)
    taus = _thresholds(falling, xp)
    size = xp.sum(xp.astype(falling > taus, xp.int64), axis=1, keepdims=True)
    return xp.maximum(B - xp.take_along_axis(taus, size - 1, axis=1), xp.zeros_like(B))


def project_positive_rows(B: Array, previous: Array, *, xp: Any) -> Array:
    """Row-wise projection on the face of the simplex spanned by the positive entries of ``b``.

    A row without a positive entry keeps its value in ``previous``.
    """
    positive = B > 0
    # Entries off the face sink below any threshold: tau is at least max(b) - 1.
    lowest = xp.max(B, axis=1, keepdims=True) - 2
    projected = project_simplex_rows(xp.where(positive, B, xp.minimum(B, lowest)), xp=xp)
    return xp.where(xp.any(positive, axis=1, keepdims=True), projected, previous)


def project_ragged_rows(data: Array, starts: Array, *, xp: Any) -> Array:
    """`project_simplex_rows` of rows of unequal length: ``data`` cut at ``starts``."""
    bounds = [int(start) for start in starts]
    rows = [data[a:b] for a, b in pairwise(bounds) if b > a]
    return xp.concat([project_simplex_rows(row[None, :], xp=xp)[0, :] for row in rows])


def _thresholds(falling: Array, xp: Any) -> Array:
    counts = xp.arange(1, falling.shape[1] + 1, dtype=falling.dtype)
    return (xp.cumulative_sum(falling, axis=1) - 1) / counts


def squared_distances(X: Array, A: Array, *, xp: Any) -> Array:
    """Squared Euclidean distances between the rows of ``X`` (n, d) and of ``A`` (m, d)."""
    norms = xp.sum(X * X, axis=1)[:, None] + xp.sum(A * A, axis=1)[None, :]
    return xp.maximum(norms - 2 * (X @ A.T), xp.zeros_like(norms))


def nearest_anchor_weights(E: Array, k: int, *, xp: Any) -> Array:
    """Closed-form weights of the ``k`` nearest columns from distances ``E`` (n, m), ``k < m``.

    With ``e_1 <= e_2 <= ...`` the sorted row, ``z_j = (e_{k+1} - e_j)_+ / sum of these``. The
    sum vanishes where the ``k + 1`` nearest tie; such a row is uniform over all that tie.
    """
    border = xp.sort(E, axis=1)[:, k : k + 1]
    gaps = xp.maximum(border - E, xp.zeros_like(E))
    total = xp.sum(gaps, axis=1, keepdims=True)
    tied = xp.astype(border >= E, E.dtype)
    uniform = tied / xp.sum(tied, axis=1, keepdims=True)
    return xp.where(total > 0, gaps / xp.where(total > 0, total, xp.ones_like(total)), uniform)


def inner(A: Array, B: Array, *, xp: Any) -> float:
    """``<A, B> = sum_ij A_ij B_ij``."""
    return float(xp.sum(A * B))


def solve_spd(A: Array, B: Array, *, xp: Any) -> Array:
    """Solution of ``A X = B`` for a symmetric positive definite ``A``."""
    return xp.linalg.solve(A, B)


def polar_factor(A: Array, *, xp: Any) -> Array:
    """Orthogonal polar factor ``U V^T`` of ``A = U S V^T``: argmax ``tr(T^T A)``, ``T^T T = I``."""
    U, _, Vh = xp.linalg.svd(A, full_matrices=False)
    return U @ Vh
