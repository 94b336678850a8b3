"""The kernels in plain array API: the readable reference, and the oracle of the fast ones.

Every function takes the namespace ``xp`` as its last keyword and never writes to its inputs. Some
have ``out``, an array, which may be one of the inputs, whose memory may be used for the result. A
kernel is free not to use it, as those here; callers go by what is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from viewmend.backend.namespace import Array, to_numpy
from viewmend.backend.threads import for_each

__all__ = [
    "aim_rows",
    "ascend",
    "best_response_rows",
    "column_sums",
    "cross_products",
    "gram",
    "imputed_rows",
    "inners",
    "leading_eigenvectors",
    "multiply",
    "nearest_anchor_weights",
    "polar_factors",
    "project_positive_rows",
    "project_ragged_rows",
    "project_simplex_rows",
    "shifted",
    "shrink_fourier",
    "shrink_slices",
    "solve_spd",
    "sparse_cross_products",
    "split_parts",
    "squared_distances",
    "squared_gap",
]

# Rounds of one two-way split; the authors' number, and splits settle earlier as a rule.
SPLIT_ROUNDS = 10


def project_simplex_rows(B: Array, *, xp: Any) -> Array:
    """Row-wise argmin ``|p - b|^2`` subject to ``p >= 0, sum(p) = 1``.

    The solution is ``max(b - tau, 0)``. With the entries of a row in falling order and
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


def aim_rows(
    G: Array, W: Array, rows: Array, pull: Array, weight: float, eta: float, *, xp: Any
) -> Array:
    """Rows of ``G - (W - weight pull) / eta``; ``pull`` holds those rows alone.

    ``rows`` is a mask or positions, see `viewmend.backend.namespace.row_selector`.
    """
    if rows.dtype == xp.bool:
        G, W = G[rows], W[rows]
    else:
        G, W = xp.take(G, rows, axis=0), xp.take(W, rows, axis=0)
    return G - (W - weight * pull) / eta


def imputed_rows(
    G: Array, W: Array, rows: Array, pull: Array, weight: float, eta: float, *, xp: Any
) -> Array:
    """Rows on the simplex nearest those of `aim_rows`."""
    return project_simplex_rows(aim_rows(G, W, rows, pull, weight, eta, xp=xp), xp=xp)


def project_ragged_rows(data: Array, starts: Array, *, xp: Any) -> Array:
    """`project_simplex_rows` of rows of unequal length: ``data`` cut at ``starts``."""
    bounds = [int(start) for start in starts]
    rows = [data[a:b] for a, b in pairwise(bounds) if b > a]
    return xp.concat([project_simplex_rows(row[None, :], xp=xp)[0, :] for row in rows])


def _thresholds(falling: Array, xp: Any) -> Array:
    counts = xp.arange(1, falling.shape[1] + 1, dtype=falling.dtype, device=falling.device)
    return (xp.cumulative_sum(falling, axis=1) - 1) / counts


def squared_distances(X: Array, A: Array, centre: Array | None = None, *, xp: Any) -> Array:
    """Squared Euclidean distances between the rows of ``X`` (n, d) and of ``A`` (m, d).

    Rows far from the origin need a ``centre`` (d,), which is taken off both, or products lose
    the digits in which they differ.
    """
    if centre is not None:
        X, A = X - centre, A - centre
    # |x|^2 + |a|^2 - 2 x a, which rounding may take below zero where rows are equal.
    norms = xp.sum(X * X, axis=1)[:, None] + xp.sum(A * A, axis=1)[None, :]
    return xp.maximum(norms - 2 * (X @ A.T), xp.zeros_like(norms))


def nearest_anchor_weights(E: Array, k: int, *, xp: Any) -> Array:
    """Closed-form weights of the ``k`` nearest columns from distances ``E`` (n, m), ``k < m``.

    With ``e_1 <= e_2 <= ...`` the sorted row, ``z_j = (e_{k+1} - e_j)_+ / sum of these``. The
    sum vanishes where the ``k + 1`` nearest tie; such a row is uniform over all that tie.
    """
    return weights_within(xp.sort(E, axis=1)[:, k : k + 1], E, xp)


def weights_within(border: Array, E: Array, xp: Any) -> Array:
    """The weights for given distances (n, 1) of the first neighbour without one."""
    gaps = xp.maximum(border - E, xp.zeros_like(E))
    total = xp.sum(gaps, axis=1, keepdims=True)
    tied = xp.astype(border >= E, E.dtype)
    uniform = tied / xp.sum(tied, axis=1, keepdims=True)
    return xp.where(total > 0, gaps / xp.where(total > 0, total, xp.ones_like(total)), uniform)


def inners(pairs: Sequence[tuple[Array, Array]], *, xp: Any) -> Array:
    """``<A, B> = sum_ij A_ij B_ij`` of every pair, in double precision, on their device."""
    return xp.stack([xp.sum(a * b, dtype=xp.float64) for a, b in pairs])


def solve_spd(A: Array, B: Array, *, xp: Any) -> Array:
    """Solution of ``A X = B`` for a symmetric positive definite ``A``."""
    return xp.linalg.solve(A, B)


def multiply(A: Array, B: Array, out: Array = None, *, xp: Any) -> Array:  # noqa: ARG001
    """``A B`` of a tall ``A`` (n, m), or of every matrix of two stacks."""
    return A @ B


def column_sums(A: Array, *, xp: Any) -> Array:
    """Sums (m,) over the rows of a tall ``A`` (n, m)."""
    return xp.sum(A, axis=0)


def cross_products(A: Array, B: Array, *, xp: Any) -> Array:
    """``A_v^T B`` of a tall ``A_v`` (n, p), one or a stack, and ``B`` (n, q)."""
    return xp.matrix_transpose(A) @ B


def sparse_cross_products(A: Array, B: Array, *, xp: Any) -> Array:
    """``A^T B`` of a tall ``A`` (n, p), nearly all of whose entries are zero, and ``B`` (n, q)."""
    return A.T @ xp.astype(B, A.dtype, copy=False)


def leading_eigenvectors(A: Array, size: int, *, xp: Any) -> tuple[Array, Array]:
    """The ``size`` largest eigenvalues of a symmetric ``A`` (m, m), falling, and their vectors."""
    values, vectors = xp.linalg.eigh(A)
    size = min(size, A.shape[0])
    return xp.flip(values)[:size], xp.flip(vectors, axis=1)[:, :size]


def split_parts(
    X: Array, parts: Sequence[Array], starts: Sequence[np.ndarray], balanced: bool, *, xp: Any
) -> list[Array]:
    """Split every part of the rows in two by Lloyd's rounds.

    Parameters
    ----------
    X : array (n, d)
    parts : sequence of array (n_rows,) of int
        Rows of ``X``, at least two in a part.
    starts : sequence of array (n_rows,) of bool
        Rows of every part that begin on the left, some of them and not all.
    balanced : bool
        Whether the sides are of one size; else a row goes to the centre it is nearer to.

    Returns
    -------
    list of array of int
        Left and right side of the first part, of the second, ...
    """

    def halves(part: tuple[Array, np.ndarray]) -> tuple[Array, Array]:
        rows, start = part
        left = xp.asarray(start, device=X.device)
        left = _two_means(xp.take(X, rows, axis=0), left, balanced, xp)
        return rows[left], rows[~left]

    pairs = for_each(halves, zip(parts, starts, strict=True), xp)
    return [side for pair in pairs for side in pair]


def _two_means(X: Array, left: Array, balanced: bool, xp: Any) -> Array:
    """Rows (n,) of bool that end on the left."""
    total = xp.sum(X, axis=0)
    for _ in range(SPLIT_ROUNDS):
        gap = _distance_gap(X, total, left, xp)
        before, left = left, gap < 0
        # Equal rows are equally far from both centres, and no side may be empty.
        if balanced or not bool(xp.any(left)) or bool(xp.all(left)):
            left = _lower_half(gap, xp)
        if bool(xp.all(before == left)):
            break
    return left


def _distance_gap(X: Array, total: Array, left: Array, xp: Any) -> Array:
    """``q_i = |x_i - c_1|^2 - |x_i - c_2|^2`` for the means of the two sides."""
    n_left = int(xp.sum(xp.astype(left, xp.int64)))
    # A product with the mask reads the rows once and copies none.
    sum_1 = xp.astype(left, X.dtype) @ X
    centre_1, centre_2 = sum_1 / n_left, (total - sum_1) / (X.shape[0] - n_left)
    # Linear algebra may compute on what lies behind the last of few columns, and drop it: that
    # raises flags for numbers that are finite.
    with np.errstate(invalid="ignore"):
        return 2 * (X @ (centre_2 - centre_1)) + centre_1 @ centre_1 - centre_2 @ centre_2


def _lower_half(gap: Array, xp: Any) -> Array:
    """The floor(n / 2) rows with the smallest gap; of equal ones the first."""
    size = gap.shape[0] // 2
    cut = xp.sort(gap)[size - 1]
    below, at = gap < cut, gap == cut
    left_over = size - xp.sum(xp.astype(below, xp.int64))
    return below | (at & (xp.cumulative_sum(xp.astype(at, xp.int64)) <= left_over))


def gram(A: Array, weights: Array, *, xp: Any) -> Array:
    """``A^T diag(weights) A`` of ``A`` (n, m) and positive weights (n,)."""
    half = A * xp.sqrt(weights)[:, None]
    return half.T @ half


def shifted(A: Array, B: Array, scale: float, out: Array = None, *, xp: Any) -> Array:  # noqa: ARG001
    """``A + scale B``."""
    return A + scale * B


def polar_factors(C: Array, *, xp: Any) -> Array:
    """Of every ``C_v = U S V^T`` (V, m, m) the orthogonal polar factor ``U V^T``.

    It is the argmax of ``tr(T^T C_v)`` subject to ``T^T T = I``.
    """
    U, _, Vh = xp.linalg.svd(C, full_matrices=False)
    return U @ Vh


def best_response_rows(
    A: Array, H: Array, weights: np.ndarray, scale: float, *, xp: Any
) -> tuple[Array, np.ndarray, np.ndarray, np.ndarray]:
    """Rows ``P`` on the simplex nearest ``scale (sum_v weights_v A_v - H)``, and sums over them.

    Parameters
    ----------
    A : array (V, n, m)
    H : array (n, m)
    weights : array (V,)
    scale : float

    Returns
    -------
    P : array (n, m)
    agreements : array (V,)
        ``<P, A_v>``.
    penalties : array (2,)
        ``<P, P>`` and ``<P, H>``.
    spread : array (V, V)
        Scatter matrix of the entries of the views where ``P`` is positive, each row around its
        own mean: ``scale`` times it is the derivative of the agreements in the weights.
    """
    weights = xp.asarray(weights, dtype=A.dtype, device=A.device)
    P = project_simplex_rows(scale * (xp.tensordot(weights, A, axes=1) - H), xp=xp)
    views = [A[v, ...] for v in range(A.shape[0])]
    support = xp.astype(P > 0, P.dtype)
    # A row so large that subtracting one is lost to rounding is projected to zero.
    sizes = xp.sum(support, axis=1)[:, None]
    sizes = xp.maximum(sizes, xp.ones_like(sizes))
    centred = [(A_v - xp.sum(A_v * support, axis=1)[:, None] / sizes) * support for A_v in views]
    sums = to_numpy(inners([(P, array) for array in [*views, P, H]], xp=xp))
    spread = to_numpy(inners([(a, b) for a in centred for b in centred], xp=xp))
    return P, sums[:-2], sums[-2:], spread.reshape(len(views), len(views))


def ascend(
    W: Array,
    Z: Array,
    G: Array,
    eta: float,
    out: Array = None,  # noqa: ARG001
    *,
    xp: Any,
) -> tuple[Array, Array]:
    """``W + eta (Z - G)``; and ``<W, Z - G>`` and ``|Z - G|^2`` (2,) of the same pass."""
    gap = Z - G
    return W + eta * gap, inners([(W, gap), (gap, gap)], xp=xp)


def squared_gap(A: Array, B: Array, *, xp: Any) -> Array:
    """``|A - B|^2``, on the device of the arrays."""
    gap = A - B
    return xp.sum(gap * gap, dtype=xp.float64)


def shrink_slices(Y_hat: Array, tau: Any, *, xp: Any) -> tuple[Array, Array]:
    """Argmin of ``tau |G_k|_* + |G_k - Y_k|_F^2 / 2`` for every slice, and ``|G_k|_*``.

    The slice ``Y_k = Y_hat[:, k, :].T`` (m, V) is shrunk through its small Gram matrix
    ``Y_k^H Y_k = R diag(sigma^2) R^H``: the solution is ``Y_k R diag((1 - tau/sigma)_+) R^H``.

    Parameters
    ----------
    Y_hat : array (V, n_slices, m)
        Real or complex.
    tau : float or array (n_slices,)

    Returns
    -------
    G_hat : array (V, n_slices, m)
    norms : array (n_slices,)
    """
    Y_k = xp.permute_dims(Y_hat, (1, 2, 0))
    sigma, R = _slice_spectra(Y_k, xp)
    tau = xp.asarray(tau, dtype=sigma.dtype, device=sigma.device)[..., None] + xp.zeros_like(sigma)
    left = xp.maximum(sigma - tau, xp.zeros_like(sigma))
    # A singular value of zero stays zero, whatever it is multiplied by.
    shrink = left / xp.where(sigma > 0, sigma, xp.ones_like(sigma))
    filters = (R * xp.astype(shrink[:, None, :], R.dtype)) @ xp.conj(xp.matrix_transpose(R))
    G_k = Y_k @ xp.astype(filters, Y_hat.dtype)
    return xp.permute_dims(G_k, (2, 0, 1)), xp.sum(left, axis=1)


def _slice_spectra(Y_k: Array, xp: Any) -> tuple[Array, Array]:
    """Singular values (n_slices, V) and right vectors (n_slices, V, V) of the slices."""
    gram = xp.conj(xp.matrix_transpose(Y_k)) @ Y_k
    # Small singular values are square roots of small differences: keep them in double precision.
    double = xp.complex128 if xp.isdtype(gram.dtype, "complex floating") else xp.float64
    squares, R = xp.linalg.eigh(xp.astype(gram, double))
    return xp.sqrt(xp.maximum(squares, xp.zeros_like(squares))), R


def shrink_fourier(
    Y: Array,
    tau: Any,
    out: Array = None,  # noqa: ARG001
    *,
    xp: Any,
    shrink: Callable[..., tuple[Array, Array]] = shrink_slices,
) -> tuple[Array, Array]:
    """`shrink_slices` of the ``n // 2 + 1`` non-negative frequencies of ``Y``, and back.

    ``Y`` (V, n, m) is transformed along its samples. ``shrink`` is a version of `shrink_slices`.
    """
    G_hat, norms = shrink(xp.fft.rfft(Y, axis=1), tau, xp=xp)
    G = xp.fft.irfft(G_hat, n=Y.shape[1], axis=1)
    return xp.astype(G, Y.dtype, copy=False), norms
