"""The Fourier step of the tensor norm on the CPU, by transforms that add whole rows to rows.

A library's transform along the samples gathers one column after the other, from entries that lie
a row apart. The steps of `viewmend.backend.numba_steps` take rows, whose entries lie side by side,
and work in place. Two real columns are one complex column: the left half of a row holds real parts,
and the right half imaginary ones.

What is done at a time does not depend on the number of threads, and so no digit does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.fft
from numba import njit

from viewmend.backend.frequencies import conjugate_pairs, prime_factors
from viewmend.backend.numba_cpu import SUMS
from viewmend.backend.numba_rounds import NEGLIGIBLE, filter_gram
from viewmend.backend.numba_steps import backward, forward, parts
from viewmend.backend.threads import over_rows

__all__ = ["Plan", "shrink_fourier", "transform", "transform_back", "transform_plan"]

# Rows that are passed over again and again, and bytes that are taken of each at a time, once for
# real and once for imaginary parts: together they stay in a core's cache.
GROUP_ROWS = 128
RUN_BYTES = 1024
# Steps of a larger radix take longer than the convolution that does the same.
LARGEST_RADIX = 64


def shrink_fourier(
    Y: np.ndarray, tau: Any, out: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """See `viewmend.backend.agnostic.shrink_fourier`."""
    rows = _packed(Y, out)
    plan = transform_plan(Y.shape[1], rows.dtype)
    transform(rows, plan)
    norms = _shrink(rows, tau, plan)
    transform_back(rows, plan)
    return rows[:, :, : Y.shape[2]], norms


def _packed(Y: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    """``Y`` with an even number of columns, in ``out`` where it can take them."""
    if Y.shape[2] % 2:
        return np.pad(Y, ((0, 0), (0, 0), (0, 1)))
    if out is None or not out.flags.c_contiguous:
        return np.array(Y, order="C")
    if out is not Y:
        out[...] = Y
    return out


@dataclass(frozen=True, eq=False)
class Plan:
    """The steps of a transform of ``n`` rows, and where they leave the frequencies.

    Attributes
    ----------
    levels : tuple of Level
    frequencies : array (n,) of int
        Of every row after the transform.
    firsts, seconds : array (n // 2 + 1,) of int
        Rows of opposite frequencies.
    smaller : array (n // 2 + 1,) of int
        The smaller frequency of these.
    """

    levels: tuple[Level, ...]
    frequencies: np.ndarray
    firsts: np.ndarray
    seconds: np.ndarray
    smaller: np.ndarray


@dataclass(frozen=True, eq=False)
class Level:
    """Steps that are taken on ``size`` rows, ``stride`` apart, before others are touched.

    Attributes
    ----------
    size, stride : int
    run_bytes : int
        See `RUN_BYTES`.
    forward, backward : compiled kernel
        Called as ``kernel((start, stop), rows, width, stride, *tables)``, see `_over_groups`.
    tables : tuple of array
    """

    size: int
    stride: int
    run_bytes: int
    forward: Callable[..., None]
    backward: Callable[..., None]
    tables: tuple[np.ndarray, ...]


@lru_cache(maxsize=8)
def transform_plan(n: int, dtype: np.dtype) -> Plan:
    """The plan for ``n`` rows."""
    groups = _groups_of_radices(n)
    frequencies = _frequencies(groups)
    tables = frequencies, _roots(n, dtype)
    levels, stride = [], n
    for radices in groups:
        stride //= int(np.prod(radices))
        levels.append(_level(radices, stride, tables, dtype))
    return Plan(tuple(levels), frequencies, *conjugate_pairs(frequencies))


def _level(
    radices: list[int], stride: int, tables: tuple[np.ndarray, ...], dtype: np.dtype
) -> Level:
    if radices[0] <= LARGEST_RADIX:
        tables = *tables, np.array(radices)
        kernels = _forward_groups, _backward_groups
        return Level(int(np.prod(radices)), stride, RUN_BYTES, *kernels, tables)
    (size,) = radices
    tables = *tables, *_convolution(size, dtype)
    # Convolutions take room of their own, twice as long as what they transform.
    return Level(size, stride, RUN_BYTES // 2, _forward_long, _backward_long, tables)


def _groups_of_radices(n: int) -> list[list[int]]:
    """Radices of every level, their products about equal; large primes are alone and last."""
    primes = prime_factors(n)
    large = [[prime] for prime in primes if prime > LARGEST_RADIX]
    radices = _radices([prime for prime in primes if prime <= LARGEST_RADIX])
    n_groups = int(np.ceil(np.log(np.prod(radices, dtype=float)) / np.log(GROUP_ROWS)))
    groups: list[list[int]] = [[] for _ in range(n_groups)]
    for radix in radices:
        min(groups, key=np.prod).append(radix)
    return groups + large


def _radices(primes: list[int]) -> list[int]:
    """Primes in falling order, twos in pairs: a step of radix 4 is two of radix 2."""
    n_twos = primes.count(2)
    odd = [prime for prime in primes if prime != 2]
    return sorted([*odd, *[4] * (n_twos // 2), *[2] * (n_twos % 2)], reverse=True)


def _frequencies(groups: list[list[int]]) -> np.ndarray:
    """Frequency of every row after all steps."""
    found = np.zeros(1, dtype=np.int64)
    for radix in reversed([radix for radices in groups for radix in radices]):
        found = (np.arange(radix)[:, None] + radix * found).ravel()
    return found


def _roots(n: int, dtype: np.dtype) -> np.ndarray:
    """``exp(-2 pi i k / n)`` for all ``k``."""
    return _of_kind(np.exp(-2j * np.pi * np.arange(n) / n), dtype)


def _of_kind(numbers: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return numbers.astype(np.result_type(dtype, np.complex64))


def _convolution(size: int, dtype: np.dtype) -> tuple[np.ndarray, ...]:
    """Bluestein's tables: a transform of any length is a convolution with a chirp.

    ``jk = (j^2 + k^2 - (k - j)^2) / 2``, so that with ``c_j = exp(-pi i j^2 / size)`` the transform
    is ``c_k sum_j (c_j x_j) conj(c_{k-j})``, for which transforms of any length serve that is large
    enough.

    Returns
    -------
    chirp : complex array (size,)
    spectrum : complex array (length,)
        Of the conjugate chirp, divided by the length.
    frequencies, roots, radices, ends : array
        Of the transforms that convolve: those of `forward`, and where the radices of every level
        end.
    """
    length = int(scipy.fft.next_fast_len(2 * size - 1, real=True))
    # The squares may be taken modulo the period, which keeps the angles exact.
    chirp = np.exp(-1j * np.pi * (np.arange(size) ** 2 % (2 * size)) / size)
    kernel = np.zeros(length, dtype=complex)
    kernel[:size] = kernel[-np.arange(size)] = chirp.conj()
    groups = _groups_of_radices(length)
    frequencies = _frequencies(groups)
    spectrum = scipy.fft.fft(kernel)[frequencies] / length
    radices = np.array([radix for radices in groups for radix in radices])
    ends = np.cumsum([len(radices) for radices in groups])
    numbers = _of_kind(chirp, dtype), _of_kind(spectrum, dtype)
    return *numbers, frequencies, _roots(length, dtype), radices, ends


def transform(rows: np.ndarray, plan: Plan) -> None:
    """Fourier transforms of packed columns (V, n, 2 M) along the rows, in place."""
    for level in plan.levels:
        _over_groups(level.forward, rows, level)


def transform_back(rows: np.ndarray, plan: Plan) -> None:
    """``n`` times the inverse of `transform`, in place."""
    for level in reversed(plan.levels):
        _over_groups(level.backward, rows, level)


def _over_groups(kernel: Callable[..., None], rows: np.ndarray, level: Level) -> None:
    """Run a kernel on runs of columns of every group of rows."""
    n_views, n, n_columns = rows.shape
    width = min(level.run_bytes // rows.itemsize, n_columns // 2)
    n_runs = -(-n_columns // (2 * width)) * n_views * (n // level.size)
    size = 2 * width * level.size
    over_rows(kernel, n_runs, size, rows, width, level.stride, *level.tables)


def _shrink(rows: np.ndarray, tau: Any, plan: Plan) -> np.ndarray:
    """Shrink the slices of all frequencies, and divide by ``n`` for the way back; their norms."""
    n_views, _, n_columns = rows.shape
    n_pairs = plan.smaller.size
    taus = np.broadcast_to(np.asarray(tau, dtype=np.float64), n_pairs)[plan.smaller]
    norms = np.empty(n_pairs)
    small = NEGLIGIBLE * float(np.finfo(rows.dtype).eps)
    arguments = rows, plan.firsts, plan.seconds, taus, norms, small
    over_rows(_shrink_pairs, n_pairs, 2 * n_views * n_columns, *arguments)
    in_order = np.empty_like(norms)
    in_order[plan.smaller] = norms
    return in_order


@njit(cache=True, nogil=True)
def _run(number, Y, width, size):  # type: ignore[no-untyped-def]
    """View, group, and where real and imaginary parts begin, of a run of columns."""
    half = Y.shape[2] // 2
    n_runs = -(-half // width)
    group, run = divmod(number, n_runs)
    view, group = divmod(group, Y.shape[1] // size)
    start = run * width
    return view, group, (start, half + start, min(width, half - start))


@njit(cache=True, nogil=True)
def _exchanged(columns):  # type: ignore[no-untyped-def]
    re, im, width = columns
    return im, re, width


@njit(cache=True, nogil=True)
def _forward_groups(runs, Y, width, stride, frequencies, roots, radices):  # type: ignore[no-untyped-def]
    for number in range(runs[0], runs[1]):
        view, group, columns = _run(number, Y, width, radices.prod())
        forward(Y[view], columns, group, stride, frequencies, roots, radices)


@njit(cache=True, nogil=True)
def _backward_groups(runs, Y, width, stride, _, roots, radices):  # type: ignore[no-untyped-def]
    for number in range(runs[0], runs[1]):
        view, group, columns = _run(number, Y, width, radices.prod())
        backward(Y[view], _exchanged(columns), group, stride, roots, radices)


@njit(cache=True, nogil=True)
def _forward_long(runs, Y, width, stride, frequencies, roots, *tables):  # type: ignore[no-untyped-def]
    size = tables[0].size
    work = np.empty((tables[1].size, 2 * width), dtype=Y.dtype)
    for number in range(runs[0], runs[1]):
        view, group, columns = _run(number, Y, width, size)
        top = group // stride * size * stride
        turns = roots[frequencies[top] * stride * np.arange(size)]
        _convolve(Y[view], columns, top + group % stride, stride, turns, tables, work)


@njit(cache=True, nogil=True)
def _backward_long(runs, Y, width, stride, _, roots, *tables):  # type: ignore[no-untyped-def]
    size = tables[0].size
    work = np.empty((tables[1].size, 2 * width), dtype=Y.dtype)
    for number in range(runs[0], runs[1]):
        view, group, columns = _run(number, Y, width, size)
        top, offset = group // stride * size * stride, group % stride
        turns = roots[offset * (roots.size // (size * stride)) * np.arange(size)]
        _convolve(Y[view], _exchanged(columns), top + offset, stride, turns, tables, work)


@njit(cache=True, nogil=True)
def _convolve(Y, columns, first, step, turns, tables, work):  # type: ignore[no-untyped-def]
    """Transform the rows ``first + step s``, as many as there are turns, after turning them."""
    chirp, spectrum, frequencies, roots, radices, ends = tables
    inside = 0, work.shape[1] // 2, columns[2]
    for s in range(chirp.size):
        _turn(parts(Y, columns, first + s * step), turns[s] * chirp[s], parts(work, inside, s))
    work[chirp.size :] = 0
    _forward_all(work, inside, frequencies, roots, radices, ends)
    for k in range(spectrum.size):
        _turn(parts(work, inside, k), spectrum[k], parts(work, inside, k))
    _backward_all(work, inside, roots, radices, ends)
    for s in range(chirp.size):
        _turn(parts(work, inside, s), chirp[s], parts(Y, columns, first + s * step))


@njit(cache=True, nogil=True)
def _forward_all(work, columns, frequencies, roots, radices, ends):  # type: ignore[no-untyped-def]
    """All levels of a transform, one after the other; ``ends`` cut the radices into levels."""
    stride, start = roots.size, 0
    for end in ends:
        steps = radices[start:end]
        stride //= steps.prod()
        for group in range(roots.size // steps.prod()):
            forward(work, columns, group, stride, frequencies, roots, steps)
        start = end


@njit(cache=True, nogil=True)
def _backward_all(work, columns, roots, radices, ends):  # type: ignore[no-untyped-def]
    stride = 1
    for level in range(ends.size - 1, -1, -1):
        steps = radices[ends[level - 1] if level else 0 : ends[level]]
        for group in range(roots.size // steps.prod()):
            backward(work, _exchanged(columns), group, stride, roots, steps)
        stride *= steps.prod()


@njit(cache=True, nogil=True)
def _turn(row, turn, out):  # type: ignore[no-untyped-def]
    (a_re, a_im), (b_re, b_im) = row, out
    for j in range(a_re.size):
        z = turn * complex(a_re[j], a_im[j])
        b_re[j], b_im[j] = z.real, z.imag


@njit(cache=True, nogil=True)
def _shrink_pairs(pairs, Y, firsts, seconds, taus, norms, small):  # type: ignore[no-untyped-def]
    """Slices of opposite frequencies, whose filters are conjugate to each other.

    With ``E + iO`` the transforms of two packed columns, the opposite frequency holds the conjugate
    of ``E - iO``: the mean of their Gram matrices is that of ``E`` and ``O``, and what acts on
    views acts on ``E`` and ``O`` alike.
    """
    n_views = Y.shape[0]
    for pair in range(pairs[0], pairs[1]):
        first, second = firsts[pair], seconds[pair]
        gram = np.zeros((n_views, n_views), dtype=np.complex128)
        _add_gram(Y, second, gram)
        gram[:] = np.conj(gram)
        _add_gram(Y, first, gram)
        gram *= 0.5
        norms[pair] = filter_gram(gram, taus[pair], small)
        gram /= Y.shape[1]
        _mix_views(Y, first, gram)
        if second != first:
            _mix_views(Y, second, np.conj(gram))


@njit(cache=True, nogil=True, fastmath=SUMS)
def _add_gram(Y, k, gram):  # type: ignore[no-untyped-def]
    """Add ``Y_u^H Y_v`` of the views of row ``k``, in double precision."""
    half = Y.shape[2] // 2
    for u in range(gram.shape[0]):
        for v in range(u, gram.shape[0]):
            real, imaginary = 0.0, 0.0
            for j in range(half):
                a, b = np.float64(Y[u, k, j]), np.float64(Y[u, k, half + j])
                c, d = np.float64(Y[v, k, j]), np.float64(Y[v, k, half + j])
                real += a * c + b * d
                imaginary += a * d - b * c
            gram[u, v] += complex(real, imaginary)
            gram[v, u] = np.conj(gram[u, v])


@njit(cache=True, nogil=True)
def _mix_views(Y, k, mixing):  # type: ignore[no-untyped-def]
    """``Y_u <- sum_v Y_v mixing_vu`` in row ``k``."""
    n_views, _, n_columns = Y.shape
    columns = 0, n_columns // 2, n_columns // 2
    mixed = np.zeros((n_views, n_columns), dtype=Y.dtype)
    for u in range(n_views):
        out_re, out_im = parts(mixed, columns, u)
        for v in range(n_views):
            re, im = parts(Y[v], columns, k)
            a, b = Y.dtype.type(mixing[v, u].real), Y.dtype.type(mixing[v, u].imag)
            for j in range(re.size):
                out_re[j] += a * re[j] - b * im[j]
                out_im[j] += a * im[j] + b * re[j]
    Y[:, k, :] = mixed
