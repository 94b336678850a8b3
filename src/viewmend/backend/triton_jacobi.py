"""Filters of many small Gram matrices on NVIDIA GPUs, by Jacobi's method.

PyTorch's eigenvalue solver would take a megabyte of memory for each of them.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from viewmend.backend.namespace import Array

__all__ = ["filter_grams"]

# Sweeps end at off-diagonal entries below this share of the trace, in units of the rounding of the
# numbers that a matrix is made from: more digits would be noise.
NEGLIGIBLE = 0.05
MAX_SWEEPS = tl.constexpr(30)


def filter_grams(grams: Array, taus: Array, rounding: float) -> Array:
    """Turn ``R diag(sigma^2) R^H`` into ``R diag((1 - tau/sigma)_+) R^H``; their nuclear norms.

    Of ``grams`` (n, V, V, 2), real and imaginary parts, changed in place, and ``taus`` (n,);
    ``rounding`` is that of the numbers that the matrices are made from. The norms (n,) are sums of
    ``(sigma - tau)_+``.
    """
    n_pairs, n_views = grams.shape[:2]
    norms = torch.empty_like(taus)
    padded = triton.next_power_of_2(n_views)
    # As many matrices as the registers of one warp hold: a single warp needs no barriers.
    block = max(1, 256 // padded**2)
    _filter_slices[(triton.cdiv(n_pairs, block),)](
        grams, taus, norms, n_pairs,
        V=n_views, V_PAD=padded, BLOCK=block, SMALL=NEGLIGIBLE * rounding, num_warps=1,
    )  # fmt: skip
    return norms


@triton.jit
def _picked(M, chosen, axis: tl.constexpr):  # type: ignore[no-untyped-def]
    """The chosen row or column; Triton has no indexing of tensors, so all others are masked out."""
    return tl.sum(tl.where(chosen, M, 0.0), axis=axis)


@triton.jit
def _root(x):  # type: ignore[no-untyped-def]
    """Square root; the compiler's has few digits, whose number doubles in each Newton step."""
    positive = x > 0
    safe = tl.where(positive, x, 1.0)
    root = tl.sqrt(safe)
    root = 0.5 * (root + safe / root)
    root = 0.5 * (root + safe / root)
    return tl.where(positive, root, 0.0)


@triton.jit
def _filter_slices(  # type: ignore[no-untyped-def]
    grams, taus, norms, n_pairs,
    V: tl.constexpr, V_PAD: tl.constexpr, BLOCK: tl.constexpr, SMALL: tl.constexpr,
):  # fmt: skip
    """Jacobi's method on one matrix per lane; see `viewmend.backend.numba_rounds`."""
    pair = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.arange(0, V_PAD)[:, None, None]
    b = tl.arange(0, V_PAD)[None, :, None]
    entry = grams + 2 * (pair[None, None, :].to(tl.int64) * V * V + a * V + b)
    inside = (a < V) & (b < V) & (pair[None, None, :] < n_pairs)
    M_re = tl.load(entry, mask=inside, other=0.0)
    M_im = tl.load(entry + 1, mask=inside, other=0.0)
    # Triton has no complex numbers: real and imaginary parts are apart. R starts as the identity;
    # the products with zero only give the constants the shape of M.
    R_re, R_im = tl.where(a == b, 1.0, 0.0) + 0.0 * M_re, 0.0 * M_im
    limit = SMALL * tl.sum(tl.sum(tl.where(a == b, M_re, 0.0), axis=0), axis=0)
    # All matrices of a program go on until the last has converged; a rotation by zero changes
    # nothing in the others.
    moving, sweeps = 1, 0
    while (moving > 0) & (sweeps < MAX_SWEEPS):
        moving, sweeps = 0, sweeps + 1
        for p in range(V - 1):
            for q in range(p + 1, V):
                c, s, f_re, f_im, n_moves = _rotation(M_re, M_im, p, q, limit, V_PAD)
                moving += n_moves
                M_re, M_im = _turn_columns(M_re, M_im, b == p, b == q, c, s, f_re, -f_im)
                R_re, R_im = _turn_columns(R_re, R_im, b == p, b == q, c, s, f_re, -f_im)
                M_re, M_im = _turn_rows(M_re, M_im, a == p, a == q, c, s, f_re, f_im)
    sigma = _root(tl.sum(tl.where(a == b, M_re, 0.0), axis=0))
    left = tl.maximum(sigma - tl.load(taus + pair, mask=pair < n_pairs, other=0.0)[None, :], 0.0)
    tl.store(norms + pair, tl.sum(left, axis=0), mask=pair < n_pairs)
    F_re, F_im = _recombined(R_re, R_im, left / tl.where(sigma > 0, sigma, 1.0), V, V_PAD)
    tl.store(entry, F_re, mask=inside)
    tl.store(entry + 1, F_im, mask=inside)


@triton.jit
def _rotation(M_re, M_im, p, q, limit, V_PAD: tl.constexpr):  # type: ignore[no-untyped-def]
    """Cosine, sine and phase that make entry ``(p, q)`` zero, and how many lanes need them."""
    a = tl.arange(0, V_PAD)[:, None, None]
    lane = tl.arange(0, V_PAD)[:, None]
    row_re, row_im = _picked(M_re, a == p, 0), _picked(M_im, a == p, 0)
    m_pp = _picked(row_re, lane == p, 0)
    m_qq = _picked(_picked(M_re, a == q, 0), lane == q, 0)
    re, im = _picked(row_re, lane == q, 0), _picked(row_im, lane == q, 0)
    # As in `numba_rounds._rotate`: the phase makes the entry real, the smaller angle is taken.
    size = _root(re * re + im * im)
    moves = size > limit
    safe = tl.where(moves, size, 1.0)
    slant = (m_qq - m_pp) / (2 * safe)
    tangent = 1 / (tl.abs(slant) + _root(slant * slant + 1))
    tangent = tl.where(moves, tl.where(slant < 0, -tangent, tangent), 0.0)
    c = 1 / _root(tangent * tangent + 1)
    f_re, f_im = tl.where(moves, re / safe, 1.0), tl.where(moves, im / safe, 0.0)
    n_moves = tl.sum(moves.to(tl.int32))
    return c[None, :], (tangent * c)[None, :], f_re[None, :], f_im[None, :], n_moves


@triton.jit
def _recombined(R_re, R_im, share, V: tl.constexpr, V_PAD: tl.constexpr):  # type: ignore[no-untyped-def]
    """``R diag(share) R^H``."""
    b = tl.arange(0, V_PAD)[None, :, None]
    F_re, F_im = 0.0 * R_re, 0.0 * R_im
    for v in range(V):
        x_re, x_im = _picked(R_re, b == v, 1), _picked(R_im, b == v, 1)
        part = _picked(share, tl.arange(0, V_PAD)[:, None] == v, 0)[None, None, :]
        left_re, left_im = x_re[:, None, :], x_im[:, None, :]
        right_re, right_im = x_re[None, :, :], x_im[None, :, :]
        F_re += part * (left_re * right_re + left_im * right_im)
        F_im += part * (left_im * right_re - left_re * right_im)
    return F_re, F_im


@triton.jit
def _turn_columns(M_re, M_im, is_p, is_q, c, s, f_re, f_im):  # type: ignore[no-untyped-def]
    """Columns ``p`` and ``q``, of which the second is first multiplied by ``f``, rotate."""
    x_re, x_im = _picked(M_re, is_p, 1), _picked(M_im, is_p, 1)
    q_re, q_im = _picked(M_re, is_q, 1), _picked(M_im, is_q, 1)
    y_re, y_im = q_re * f_re - q_im * f_im, q_re * f_im + q_im * f_re
    M_re = tl.where(is_p, (c * x_re - s * y_re)[:, None, :], M_re)
    M_im = tl.where(is_p, (c * x_im - s * y_im)[:, None, :], M_im)
    M_re = tl.where(is_q, (s * x_re + c * y_re)[:, None, :], M_re)
    M_im = tl.where(is_q, (s * x_im + c * y_im)[:, None, :], M_im)
    return M_re, M_im


@triton.jit
def _turn_rows(M_re, M_im, is_p, is_q, c, s, f_re, f_im):  # type: ignore[no-untyped-def]
    """Rows ``p`` and ``q``, of which the second is first multiplied by ``f``, rotate."""
    x_re, x_im = _picked(M_re, is_p, 0), _picked(M_im, is_p, 0)
    q_re, q_im = _picked(M_re, is_q, 0), _picked(M_im, is_q, 0)
    y_re, y_im = q_re * f_re - q_im * f_im, q_re * f_im + q_im * f_re
    M_re = tl.where(is_p, (c * x_re - s * y_re)[None, :, :], M_re)
    M_im = tl.where(is_p, (c * x_im - s * y_im)[None, :, :], M_im)
    M_re = tl.where(is_q, (s * x_re + c * y_re)[None, :, :], M_re)
    M_im = tl.where(is_q, (s * x_im + c * y_im)[None, :, :], M_im)
    return M_re, M_im
