"""The Fourier step of the tensor norm on NVIDIA GPUs: tables, transforms, packed columns.

Two real columns are transformed as the real and the imaginary part of one complex column. Samples
lie side by side in memory, which is the layout that cuFFT works in.
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
from viewmend.backend.frequencies import conjugate_pairs, prime_factors
from viewmend.backend.namespace import Array
from viewmend.backend.triton_jacobi import filter_grams

__all__ = [
    "FrequencyPlan",
    "coprime_factors",
    "frequency_plan",
    "shrink_fourier",
    "transform",
    "transform_back",
]

# Samples and columns of one tile of a transposition.
TILE = 32
# Columns per program of the mixing of slices.
COLUMNS = 32
# The largest small and the largest middle-sized prime factor: cuFFT is best at lengths of the
# former, and slow beyond the latter.
PRIME_SIZES = (13, 127)
# Bytes of a view beyond which views are transformed one by one: saves memory, costs launches.
LARGE = 1 << 25


def shrink_fourier(Y: Array, tau: Any, out: Array = None, *, xp: Any) -> tuple[Array, Array]:
    """See `viewmend.backend.agnostic.shrink_fourier`.

    With ``c = a + i b`` the transforms of ``a`` and ``b`` are mixed in those of ``c`` at ``k`` and
    at its mirror ``-k``. They need not be separated: the mean of the Gram matrix at ``k`` and the
    conjugate of that at ``-k`` is the Gram matrix of ``a`` and ``b``, and mixing views is linear.
    """
    if Y.shape[2] % 2 or not Y.is_contiguous():
        return torch_gpu.shrink_fourier(Y, tau, out=out, xp=xp)
    plan = frequency_plan(Y.shape[1], Y.device)
    out = torch.empty_like(Y) if out is None else out
    Y_hat = transform(Y, plan, out)
    grams = _packed_grams(Y_hat, plan)
    norms = filter_grams(grams, _thresholds(tau, plan), torch.finfo(Y.dtype).eps)
    _mix_views(Y_hat, grams, plan)
    in_order = torch.empty_like(norms)
    in_order[plan.frequencies] = norms
    return transform_back(Y_hat, plan, out), in_order


def _thresholds(tau: Any, plan: FrequencyPlan) -> Array:
    """Thresholds of all pairs; a single number is a kernel argument, which needs no transfer."""
    like = {"dtype": torch.float64, "device": plan.frequencies.device}
    if np.ndim(tau) == 0:
        return torch.full(plan.frequencies.shape, float(tau), **like)
    return torch.as_tensor(tau, **like)[plan.frequencies]


@dataclass(frozen=True, eq=False)
class FrequencyPlan:
    """Where the samples go for a transform, and where its frequencies end up.

    The length is split into coprime factors, large primes apart from the others, so that a
    transform over all axes of a table of that shape is that of the whole length (the algorithm of
    Good and Thomas), and primes that cuFFT is slow at occur in short transforms only.

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
    # Chinese remainder theorem: the frequency at a place is, modulo each factor, its position on
    # that axis.
    inverses = [rest * pow(rest, -1, size) if size > 1 else 0 for rest, size in factors]
    frequencies = np.asarray(inverses) @ axes % n
    firsts, mirrors, smaller = conjugate_pairs(frequencies)
    halves = np.empty(n, dtype=np.int64)
    halves[firsts] = halves[mirrors] = np.arange(firsts.size)
    arrays = samples, halves, firsts, mirrors, smaller
    return FrequencyPlan(shape, *(torch.tensor(array, device=device) for array in arrays))


def coprime_factors(n: int) -> tuple[int, ...]:
    """``n`` as a product: of its small, its middle-sized and its large primes."""
    factors = [1] * (len(PRIME_SIZES) + 1)
    for prime in prime_factors(n):
        factors[int(np.searchsorted(PRIME_SIZES, prime))] *= prime
    return tuple(factor for factor in factors if factor > 1) or (1,)


def transform(Y: Array, plan: FrequencyPlan, room: Array) -> Array:
    """Fourier transform along the samples of packed columns, (V, m // 2, n).

    ``room``, an array like ``Y`` or ``Y`` itself, is written to where that saves much memory.
    """
    if Y[0].nbytes <= LARGE:
        return _transform(Y, plan)
    n_views, n, n_columns = Y.shape
    spectrum = torch.view_as_complex(room.view(n_views, n_columns // 2, n, 2))
    for v in range(n_views):
        spectrum[v] = _transform(Y[v : v + 1], plan)[0]
    return spectrum


def transform_back(Y_hat: Array, plan: FrequencyPlan, out: Array) -> Array:
    """The inverse of `transform`, into ``out``, where ``Y_hat`` may be."""
    n_views = out.shape[0]
    together = n_views if out[0].nbytes <= LARGE else 1
    for v in range(0, n_views, together):
        _transform_back(Y_hat[v : v + together], plan, out[v : v + together])
    return out


def _transform(Y: Array, plan: FrequencyPlan) -> Array:
    n_views, n, n_columns = Y.shape
    table = torch.empty((n_views, n_columns // 2, n, 2), dtype=Y.dtype, device=Y.device)
    _transpose(Y, table, plan.samples, to_table=True)
    return _over_table(torch.fft.fftn, torch.view_as_complex(table), plan)


def _transform_back(Y_hat: Array, plan: FrequencyPlan, out: Array) -> None:
    table = torch.view_as_real(_over_table(torch.fft.ifftn, Y_hat, plan))
    _transpose(out, table, plan.samples, to_table=False)


def _over_table(fft: Callable[..., Array], columns: Array, plan: FrequencyPlan) -> Array:
    """A transform over the axes of the table that the last axis stands for."""
    axes = tuple(range(2, 2 + len(plan.shape)))
    return fft(columns.view(*columns.shape[:2], *plan.shape), dim=axes).view(columns.shape)


def _transpose(by_sample: Array, table: Array, samples: Array, to_table: bool) -> None:
    """Copy between columns by sample (V, n, m) and the table (V, m // 2, n, 2), either way."""
    n_views, M, n, _ = table.shape
    # Copied as words of eight bytes, one or two of which are a complex number.
    words = by_sample.view(torch.int64), table.view(torch.int64)
    grid = (triton.cdiv(n, TILE), triton.cdiv(M, TILE), n_views)
    size = table.element_size() // 4
    _transpose_tiles[grid](*words, samples, n, M, TO_TABLE=to_table, TILE=TILE, WORDS=size)


def _packed_grams(Y_hat: Array, plan: FrequencyPlan) -> Array:
    """Gram matrices (n // 2 + 1, V, V, 2) of the slices, mean of frequency ``k`` and its mirror."""
    n_views, n_columns, n = Y_hat.shape
    n_pairs = plan.firsts.shape[0]
    grams = torch.empty((n_pairs, n_views, n_views, 2), dtype=torch.float64, device=Y_hat.device)
    block = _slices(n_pairs)
    _gram_slices[(triton.cdiv(n_pairs, block),)](
        torch.view_as_real(Y_hat), grams, plan.firsts, plan.mirrors, n, n_columns, n_pairs,
        V=n_views, V_PAD=triton.next_power_of_2(n_views), BLOCK=block,
    )  # fmt: skip
    return grams


def _mix_views(Y_hat: Array, filters: Array, plan: FrequencyPlan) -> None:
    """``Y_u <- sum_v Y_v filter_vu`` in every slice, in place."""
    n_views, n_columns, n = Y_hat.shape
    block = _slices(n)
    _mix_slices[(triton.cdiv(n, block), triton.cdiv(n_columns, COLUMNS))](
        torch.view_as_real(Y_hat), filters, plan.halves, plan.firsts, n, n_columns,
        V=n_views, V_PAD=triton.next_power_of_2(n_views), BLOCK=block, COLUMNS=COLUMNS,
    )  # fmt: skip


def _slices(n: int) -> int:
    """Slices per program: fewer if there are few in all, to keep all processors busy."""
    return 64 if n > 1 << 15 else 16


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
    # Offsets in 64 bits: V M n exceeds 2^31 for large data.
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
def _mix_slices(  # type: ignore[no-untyped-def]
    Y_hat, filters, halves, firsts, n, M,
    V: tl.constexpr, V_PAD: tl.constexpr, BLOCK: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    half = tl.load(halves + place, mask=place < n, other=0)
    # The filter of a mirror frequency is the conjugate of that of its partner.
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
