"""Kernels for NVIDIA GPUs in Triton, each of which passes over its arrays once.

PyTorch alone writes every intermediate of these steps to memory. The row kernels keep a row in the
registers of one program; the Fourier kernels work on packed columns, as those of
`viewmend.backend.numba_rounds` do. Triton comes with the CUDA builds of PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from viewmend.backend import torch_gpu
from viewmend.backend.namespace import Array, to_numpy

__all__ = ["KERNELS"]

# Entries that one program of an entry-wise kernel takes.
PIECE = 4096
# Samples and columns of one tile of a transposition.
TILE = 32
# Slices, and columns of them, that one program of a Fourier kernel takes.
SLICES = 64
COLUMNS = 32
# Off-diagonal entries below this share of the diagonal are rounding.
NEGLIGIBLE = tl.constexpr(1e-15)
# The largest small and the largest middle-sized prime factor: the library's transforms are best
# at lengths of the former, and slow beyond the latter.
PRIME_SIZES = (13, 127)


def project_simplex_rows(B: Array, *, xp: Any) -> Array:
    """See `viewmend.backend.agnostic.project_simplex_rows`."""
    B = B.contiguous()
    out = torch.empty_like(B)
    if B.shape[0]:
        _project[(B.shape[0],)](B, out, B.shape[1], BLOCK=_block(B.shape[1]))
    return out


def answer_rows(
    A: Array, H: Array, weights: np.ndarray, scale: float, *, xp: Any
) -> tuple[Array, np.ndarray, np.ndarray, np.ndarray]:
    """See `viewmend.backend.agnostic.answer_rows`; all sums reach the host in one transfer."""
    n_views, n_rows, n_columns = A.shape
    A, H = A.contiguous(), H.contiguous()
    P = torch.empty_like(H)
    factors = torch.tensor(np.append(scale * weights, -scale), dtype=H.dtype, device=H.device)
    sums = torch.empty((n_rows, n_views + 2 + n_views**2), dtype=H.dtype, device=H.device)
    _answer[(n_rows,)](A, H, factors, P, sums, n_columns, V=n_views, BLOCK=_block(n_columns))
    totals = to_numpy(torch.sum(sums, dim=0, dtype=torch.float64))
    agreements, penalties, spread = np.split(totals, [n_views, n_views + 2])
    return P, agreements, penalties, spread.reshape(n_views, n_views)


def ascend(
    W: Array,
    Z: Array,
    G: Array,
    eta: float,
    *,
    out: Array = None,
    xp: Any,
) -> tuple[Array, float, float]:
    """See `viewmend.backend.agnostic.ascend`; both sums in one transfer."""
    W, Z, G = W.contiguous(), Z.contiguous(), G.contiguous()
    if out is None or not out.is_contiguous():
        out = torch.empty_like(W)
    n_programs = triton.cdiv(W.numel(), PIECE)
    sums = torch.empty((2, n_programs), dtype=torch.float64, device=W.device)
    # As a tensor: numbers reach a kernel in single precision.
    factor = torch.tensor([eta], dtype=W.dtype, device=W.device)
    _ascend[(n_programs,)](W, Z, G, factor, out, sums, W.numel(), BLOCK=PIECE)
    along_W, squared = to_numpy(torch.sum(sums, dim=1))
    return out, float(along_W), float(squared)


def shrink_fourier(Y: Array, tau: Any, *, out: Array = None, xp: Any) -> tuple[Array, Array]:
    """See `viewmend.backend.agnostic.shrink_fourier`.

    Two neighbouring columns are transformed as the real and the imaginary part of one.
    """
    if Y.shape[2] % 2 or not Y.is_contiguous():
        return torch_gpu.shrink_fourier(Y, tau, out=out, xp=xp)
    plan = frequency_plan(Y.shape[1], Y.device)
    Y_hat = transform(Y, plan)
    taus = torch.as_tensor(tau, dtype=torch.float64, device=Y.device)
    taus = taus.expand(plan.firsts.shape)[plan.frequencies]
    grams = _packed_grams(Y_hat, plan)
    norms = _filter(grams, taus)
    _mix_views(Y_hat, grams, plan)
    in_order = torch.empty_like(norms)
    in_order[plan.frequencies] = norms
    return transform_back(Y_hat, plan, torch.empty_like(Y) if out is None else out), in_order


@dataclass(frozen=True, eq=False)
class FrequencyPlan:
    """Where the samples go for a transform, and where its frequencies end up.

    The length is split into coprime factors, large primes apart from the others, so that a
    transform over all axes of a table of that shape is that of the whole length (Good and
    Thomas), and primes that the library is slow at are met in short transforms only.

    Attributes
    ----------
    shape : tuple of int
        The factors.
    samples : array (n,) of int
        Sample of every place of the table.
    halves : array (n,) of int
        For every place, which of the ``n // 2 + 1`` conjugate pairs its frequency is of.
    firsts, mirrors : array (n // 2 + 1,) of int
        Places of the two frequencies of a pair; the first is met first.
    frequencies : array (n // 2 + 1,) of int
        The smaller frequency of every pair.
    """

    shape: tuple[int, ...]
    samples: Array
    halves: Array
    firsts: Array
    mirrors: Array
    frequencies: Array


@lru_cache(maxsize=8)
def frequency_plan(n: int, device: torch.device) -> FrequencyPlan:
    """The plan for ``n`` samples."""
    shape = coprime_factors(n)
    axes = np.indices(shape).reshape(len(shape), -1)
    factors = [(n // size, size) for size in shape]
    samples = sum(rest * i for (rest, _), i in zip(factors, axes, strict=True)) % n
    # Divided by a factor, the frequency at a place leaves its position on that axis.
    inverses = [rest * pow(rest, -1, size) if size > 1 else 0 for rest, size in factors]
    frequencies = sum(inverse * i for inverse, i in zip(inverses, axes, strict=True)) % n
    places = np.arange(n)
    opposite = tuple(-i % size for i, size in zip(axes, shape, strict=True))
    mirrors = np.ravel_multi_index(opposite, shape)
    firsts = places[places <= mirrors]
    halves = np.empty(n, dtype=np.int64)
    halves[firsts] = halves[mirrors[firsts]] = np.arange(firsts.size)
    smaller = np.minimum(frequencies, n - frequencies)[firsts]
    arrays = samples, halves, firsts, mirrors[firsts], smaller
    return FrequencyPlan(shape, *(torch.tensor(array, device=device) for array in arrays))


def coprime_factors(n: int) -> tuple[int, ...]:
    """``n`` as a product: of its small, its middle-sized and its large primes."""
    factors = [1] * (len(PRIME_SIZES) + 1)
    rest, prime = n, 2
    while rest > 1:
        prime = prime if prime * prime <= rest else rest
        while rest % prime == 0:
            rest //= prime
            factors[int(np.searchsorted(PRIME_SIZES, prime))] *= prime
        prime += 1
    return tuple(factor for factor in factors if factor > 1) or (1,)


def transform(Y: Array, plan: FrequencyPlan) -> Array:
    """Fourier transform along the samples of packed columns, (V, m // 2, n)."""
    n_views, n, n_columns = Y.shape
    table = torch.empty((n_views, n_columns // 2, n, 2), dtype=Y.dtype, device=Y.device)
    _transpose(Y, table, plan.samples, to_table=True)
    columns = torch.view_as_complex(table)
    return _over_table(torch.fft.fftn, columns, plan)


def transform_back(Y_hat: Array, plan: FrequencyPlan, out: Array) -> Array:
    """The inverse of `transform`, into ``out``."""
    table = torch.view_as_real(_over_table(torch.fft.ifftn, Y_hat, plan))
    _transpose(out, table, plan.samples, to_table=False)
    return out


def _over_table(fft: Callable[..., Array], columns: Array, plan: FrequencyPlan) -> Array:
    """A transform over the axes of the table that the last axis stands for."""
    axes = tuple(range(2, 2 + len(plan.shape)))
    return fft(columns.view(*columns.shape[:2], *plan.shape), dim=axes).view(columns.shape)


def _transpose(by_sample: Array, table: Array, samples: Array, to_table: bool) -> None:
    """Copy between columns by sample (V, n, m) and the table (V, m // 2, n, 2), either way."""
    n_views, M, n, _ = table.shape
    # Words of eight bytes, one or two of which are a complex number.
    words = by_sample.view(torch.int64), table.view(torch.int64)
    grid = (triton.cdiv(n, TILE), triton.cdiv(M, TILE), n_views)
    size = table.element_size() // 4
    _transpose_tiles[grid](*words, samples, n, M, TO_TABLE=to_table, TILE=TILE, WORDS=size)


def _packed_grams(Y_hat: Array, plan: FrequencyPlan) -> Array:
    """Gram matrices (n // 2 + 1, V, V, 2) of the slices, mean of frequency ``k`` and its mirror."""
    n_views, n_columns, n = Y_hat.shape
    n_pairs = plan.firsts.shape[0]
    grams = torch.empty((n_pairs, n_views, n_views, 2), dtype=torch.float64, device=Y_hat.device)
    _gram_slices[(triton.cdiv(n_pairs, SLICES),)](
        torch.view_as_real(Y_hat), grams, plan.firsts, plan.mirrors, n, n_columns, n_pairs,
        V=n_views, V_PAD=triton.next_power_of_2(n_views), BLOCK=SLICES,
    )  # fmt: skip
    return grams


def _filter(grams: Array, taus: Array) -> Array:
    """Matrices ``R diag(sigma^2) R^H`` become ``R diag((1 - tau/sigma)_+) R^H``; what is kept.

    The library's eigenvalues of many small matrices would take a megabyte of memory for each.
    """
    n_pairs, n_views = grams.shape[:2]
    norms = torch.empty_like(taus)
    padded = triton.next_power_of_2(n_views)
    # What a program holds must stay in its registers.
    block = max(1, 512 // padded**2)
    _filter_slices[(triton.cdiv(n_pairs, block),)](
        grams, taus, norms, n_pairs,
        V=n_views, V_PAD=padded, BLOCK=block,
    )  # fmt: skip
    return norms


def _mix_views(Y_hat: Array, filters: Array, plan: FrequencyPlan) -> None:
    """``Y_u <- sum_v Y_v filter_vu`` in every slice, in place."""
    n_views, n_columns, n = Y_hat.shape
    _mix_slices[(triton.cdiv(n, SLICES), triton.cdiv(n_columns, COLUMNS))](
        torch.view_as_real(Y_hat), filters, plan.halves, plan.firsts, n, n_columns,
        V=n_views, V_PAD=triton.next_power_of_2(n_views), BLOCK=SLICES, COLUMNS=COLUMNS,
    )  # fmt: skip


def _block(n_columns: int) -> int:
    return max(16, triton.next_power_of_2(n_columns))


@triton.jit
def _threshold(b, inside):  # type: ignore[no-untyped-def]
    """Newton's method for the ``tau`` that the entries exceed by 1 in all."""
    count = tl.sum(tl.where(inside, 1.0, 0.0))
    tau = (tl.sum(tl.where(inside, b, 0.0)) - 1.0) / count
    before = count + 1.0
    while count < before:
        before = count
        above = inside & (b > tau)
        count = tl.sum(tl.where(above, 1.0, 0.0))
        tau += (tl.sum(tl.where(above, b - tau, 0.0)) - 1.0) / count
    return tau


@triton.jit
def _project(B, out, n_columns, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0).to(tl.int64) * n_columns
    j = tl.arange(0, BLOCK)
    inside = j < n_columns
    b = tl.load(B + row + j, mask=inside, other=0.0)
    # Shifting a row changes nothing, and keeps large numbers from cancelling.
    b -= tl.max(tl.where(inside, b, float("-inf")))
    tl.store(out + row + j, tl.maximum(b - _threshold(b, inside), 0.0), mask=inside)


@triton.jit
def _answer(A, H, factors, P, sums, n_columns, V: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0).to(tl.int64)
    stride = tl.num_programs(0).to(tl.int64) * n_columns
    j = tl.arange(0, BLOCK)
    inside = j < n_columns
    place = i * n_columns + j
    H_i = tl.load(H + place, mask=inside, other=0.0)
    aim = tl.load(factors + V) * H_i
    for v in tl.static_range(V):
        aim += tl.load(factors + v) * tl.load(A + v * stride + place, mask=inside, other=0.0)
    p = tl.where(inside, tl.maximum(aim - _threshold(aim, inside), 0.0), 0.0)
    tl.store(P + place, p, mask=inside)
    support = p > 0
    size = tl.sum(tl.where(support, 1.0, 0.0))
    target = sums + i * (V + 2 + V * V)
    tl.store(target + V, tl.sum(p * p))
    tl.store(target + V + 1, tl.sum(p * H_i))
    for v in tl.static_range(V):
        a = tl.load(A + v * stride + place, mask=inside, other=0.0)
        tl.store(target + v, tl.sum(p * a))
        centred = tl.where(support, a - tl.sum(tl.where(support, a, 0.0)) / size, 0.0)
        for u in tl.static_range(V):
            b = tl.load(A + u * stride + place, mask=inside, other=0.0)
            tl.store(target + V + 2 + v * V + u, tl.sum(centred * b))


@triton.jit
def _ascend(W, Z, G, eta, out, sums, size, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    program = tl.program_id(0)
    place = program.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < size
    w = tl.load(W + place, mask=inside, other=0.0)
    gap = tl.load(Z + place, mask=inside, other=0.0) - tl.load(G + place, mask=inside, other=0.0)
    tl.store(out + place, w + tl.load(eta) * gap, mask=inside)
    tl.store(sums + program, tl.sum(w * gap).to(tl.float64))
    tl.store(sums + tl.num_programs(0) + program, tl.sum(gap * gap).to(tl.float64))


@triton.jit
def _transpose_tiles(  # type: ignore[no-untyped-def]
    by_sample, table, samples, n, M,
    TO_TABLE: tl.constexpr, TILE: tl.constexpr, WORDS: tl.constexpr,
):  # fmt: skip
    place = tl.program_id(0) * TILE + tl.arange(0, TILE)
    j = tl.program_id(1) * TILE + tl.arange(0, TILE)
    view = tl.program_id(2).to(tl.int64) * n * M
    sample = tl.load(samples + place, mask=place < n, other=0)
    # One tile with columns side by side, and the same with places side by side.
    flat = by_sample + WORDS * (view + sample[:, None] * M + j[None, :])
    flat_inside = (place[:, None] < n) & (j[None, :] < M)
    tall = table + WORDS * (view + j[:, None].to(tl.int64) * n + place[None, :])
    tall_inside = (j[:, None] < M) & (place[None, :] < n)
    for word in tl.static_range(WORDS):
        if TO_TABLE:
            tile = tl.load(flat + word, mask=flat_inside)
            tl.store(tall + word, tl.trans(tile), mask=tall_inside)
        else:
            tile = tl.load(tall + word, mask=tall_inside)
            tl.store(flat + word, tl.trans(tile), mask=flat_inside)


@triton.jit
def _gram_slices(  # type: ignore[no-untyped-def]
    Y_hat, grams, firsts, mirrors, n, M, n_pairs,
    V: tl.constexpr, V_PAD: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    pair = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.arange(0, V_PAD)
    inside = (v[:, None] < V) & (pair[None, :] < n_pairs)
    first = tl.load(firsts + pair, mask=pair < n_pairs, other=0)
    mirror = tl.load(mirrors + pair, mask=pair < n_pairs, other=0)
    start = v[:, None].to(tl.int64) * M * n
    real = tl.zeros((V_PAD, V_PAD, BLOCK), dtype=tl.float64)
    imaginary = tl.zeros((V_PAD, V_PAD, BLOCK), dtype=tl.float64)
    for j in range(M):
        row = start + tl.cast(j, tl.int64) * n
        a = Y_hat + 2 * (row + first[None, :])
        b = Y_hat + 2 * (row + mirror[None, :])
        a_re = tl.load(a, mask=inside, other=0.0).to(tl.float64)
        a_im = tl.load(a + 1, mask=inside, other=0.0).to(tl.float64)
        b_re = tl.load(b, mask=inside, other=0.0).to(tl.float64)
        b_im = tl.load(b + 1, mask=inside, other=0.0).to(tl.float64)
        real += a_re[:, None, :] * a_re[None, :, :] + a_im[:, None, :] * a_im[None, :, :]
        real += b_re[:, None, :] * b_re[None, :, :] + b_im[:, None, :] * b_im[None, :, :]
        # The Gram matrix of the mirror image is the conjugate.
        imaginary += a_re[:, None, :] * a_im[None, :, :] - a_im[:, None, :] * a_re[None, :, :]
        imaginary -= b_re[:, None, :] * b_im[None, :, :] - b_im[:, None, :] * b_re[None, :, :]
    u = tl.arange(0, V_PAD)
    entry = u[:, None, None] * V + v[None, :, None]
    target = grams + 2 * (pair[None, None, :].to(tl.int64) * V * V + entry)
    stored = (u[:, None, None] < V) & (v[None, :, None] < V) & (pair[None, None, :] < n_pairs)
    tl.store(target, 0.5 * real, mask=stored)
    tl.store(target + 1, 0.5 * imaginary, mask=stored)


@triton.jit
def _picked(M, chosen, axis: tl.constexpr):  # type: ignore[no-untyped-def]
    """The one row or column of small matrices that is chosen."""
    return tl.sum(tl.where(chosen, M, 0.0), axis=axis)


@triton.jit
def _root(x):  # type: ignore[no-untyped-def]
    """Square root; that of the compiler has few digits, which two steps of Newton's square."""
    positive = x > 0
    safe = tl.where(positive, x, 1.0)
    root = tl.sqrt(safe)
    root = 0.5 * (root + safe / root)
    root = 0.5 * (root + safe / root)
    return tl.where(positive, root, 0.0)


@triton.jit
def _filter_slices(  # type: ignore[no-untyped-def]
    grams, taus, norms, n_pairs,
    V: tl.constexpr, V_PAD: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Jacobi's method on one matrix per lane; see `viewmend.backend.numba_rounds`."""
    pair = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.arange(0, V_PAD)[:, None, None]
    b = tl.arange(0, V_PAD)[None, :, None]
    place = grams + 2 * (pair[None, None, :].to(tl.int64) * V * V + a * V + b)
    inside = (a < V) & (b < V) & (pair[None, None, :] < n_pairs)
    M_re = tl.load(place, mask=inside, other=0.0)
    M_im = tl.load(place + 1, mask=inside, other=0.0)
    R_re = tl.where(a == b, 1.0, 0.0) + 0.0 * M_re
    R_im = 0.0 * M_im
    moving = 1
    while moving > 0:
        moving = 0
        for p in range(V - 1):
            for q in range(p + 1, V):
                row_p_re, row_p_im = _picked(M_re, a == p, 0), _picked(M_im, a == p, 0)
                row_q_re = _picked(M_re, a == q, 0)
                lane = tl.arange(0, V_PAD)[:, None]
                m_pp, m_qq = _picked(row_p_re, lane == p, 0), _picked(row_q_re, lane == q, 0)
                re, im = _picked(row_p_re, lane == q, 0), _picked(row_p_im, lane == q, 0)
                size = _root(re * re + im * im)
                moves = size > NEGLIGIBLE * (tl.abs(m_pp) + tl.abs(m_qq))
                moving += tl.sum(moves.to(tl.int32))
                safe = tl.where(moves, size, 1.0)
                slant = (m_qq - m_pp) / (2 * safe)
                tangent = 1 / (tl.abs(slant) + _root(slant * slant + 1))
                tangent = tl.where(moves, tl.where(slant < 0, -tangent, tangent), 0.0)
                c = (1 / _root(tangent * tangent + 1))[None, :]
                s = tangent[None, :] * c
                f_re = tl.where(moves, re / safe, 1.0)[None, :]
                f_im = tl.where(moves, im / safe, 0.0)[None, :]
                M_re, M_im = _turn_columns(M_re, M_im, b == p, b == q, c, s, f_re, -f_im)
                R_re, R_im = _turn_columns(R_re, R_im, b == p, b == q, c, s, f_re, -f_im)
                M_re, M_im = _turn_rows(M_re, M_im, a == p, a == q, c, s, f_re, f_im)
    squares = tl.sum(tl.where(a == b, M_re, 0.0), axis=0)
    sigma = _root(squares)
    kept = tl.maximum(sigma - tl.load(taus + pair, mask=pair < n_pairs, other=0.0)[None, :], 0.0)
    tl.store(norms + pair, tl.sum(kept, axis=0), mask=pair < n_pairs)
    share = kept / tl.where(sigma > 0, sigma, 1.0)
    F_re, F_im = 0.0 * M_re, 0.0 * M_im
    for v in range(V):
        x_re, x_im = _picked(R_re, b == v, 1), _picked(R_im, b == v, 1)
        part = _picked(share, tl.arange(0, V_PAD)[:, None] == v, 0)[None, None, :]
        left_re, left_im = x_re[:, None, :], x_im[:, None, :]
        right_re, right_im = x_re[None, :, :], x_im[None, :, :]
        F_re += part * (left_re * right_re + left_im * right_im)
        F_im += part * (left_im * right_re - left_re * right_im)
    tl.store(place, F_re, mask=inside)
    tl.store(place + 1, F_im, mask=inside)


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


@triton.jit
def _mix_slices(  # type: ignore[no-untyped-def]
    Y_hat, filters, halves, firsts, n, M,
    V: tl.constexpr, V_PAD: tl.constexpr, BLOCK: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    half = tl.load(halves + place, mask=place < n, other=0)
    sign = tl.where(tl.load(firsts + half, mask=place < n, other=0) == place, 1.0, -1.0)
    v = tl.arange(0, V_PAD)
    kind = Y_hat.dtype.element_ty
    f = filters + 2 * ((half[None, None, :] * V + v[:, None, None]) * V + v[None, :, None])
    known = (v[:, None, None] < V) & (v[None, :, None] < V) & (place[None, None, :] < n)
    f_re = tl.load(f, mask=known, other=0.0).to(kind)
    f_im = (sign[None, None, :] * tl.load(f + 1, mask=known, other=0.0)).to(kind)
    view = v[:, None].to(tl.int64) * n * M
    for column in range(COLUMNS):
        j = tl.program_id(1) * COLUMNS + column
        y = Y_hat + 2 * (view + tl.cast(j, tl.int64) * n + place[None, :])
        inside = (v[:, None] < V) & (place[None, :] < n) & (j < M)
        y_re = tl.load(y, mask=inside, other=0.0)[:, None, :]
        y_im = tl.load(y + 1, mask=inside, other=0.0)[:, None, :]
        tl.store(y, tl.sum(f_re * y_re - f_im * y_im, axis=0), mask=inside)
        tl.store(y + 1, tl.sum(f_re * y_im + f_im * y_re, axis=0), mask=inside)


KERNELS = {
    "answer_rows": answer_rows,
    "ascend": ascend,
    "project_simplex_rows": project_simplex_rows,
    "shrink_fourier": shrink_fourier,
}
