"""The Fourier step of the tensor norm on the CPU: transforms by ducc0, slices by compiled passes.

Transforms are real and in place. Along the samples, ``n`` real entries become ``n`` real numbers
in the order of FFTPACK: the mean, then real and imaginary part of every frequency in turn, and
for an even ``n`` the real last one. No complex copy of the graphs is ever made.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from ducc0.fft import r2r_fftpack

from viewmend.backend.compiling import jit
from viewmend.backend.numba_cpu import SUMS
from viewmend.backend.numba_rounds import NEGLIGIBLE, filter_gram
from viewmend.backend.threads import over_rows, parallel_map

__all__ = ["shrink_fourier"]

# Transformed at once: a multiple of what a processor adds at once.
COLUMNS = 32


def shrink_fourier(
    Y: np.ndarray, tau: Any, out: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """See `viewmend.backend.agnostic.shrink_fourier`."""
    if out is None or not out.flags.c_contiguous:
        out = np.empty(Y.shape, Y.dtype)
    _transform(Y, out, forward=True)
    norms = _shrink(out, tau)
    _transform(out, out, forward=False)
    return out, norms


def _transform(Y: np.ndarray, out: np.ndarray, *, forward: bool) -> None:
    """Real transforms of all columns, or back, in blocks that do not depend on the threads.

    Left to itself, ducc0 cuts the columns by the number of threads, and rounds those at the end
    of a cut otherwise.
    """

    def transform(block: tuple[int, slice]) -> None:
        v, columns = block
        given, result = Y[v, :, columns], out[v, :, columns]
        r2r_fftpack(given, [0], real2hermitian=forward, forward=forward, out=result, nthreads=1)

    n_views, _, n_columns = Y.shape
    columns = [slice(start, start + COLUMNS) for start in range(0, n_columns, COLUMNS)]
    parallel_map(transform, itertools.product(range(n_views), columns))


def _shrink(halves: np.ndarray, tau: Any) -> np.ndarray:
    """Shrink the slices of all frequencies, and divide by ``n`` for the way back; their norms."""
    n_views, n_rows, n_columns = halves.shape
    n_slices = n_rows // 2 + 1
    taus = np.broadcast_to(np.asarray(tau, dtype=np.float64), n_slices).copy()
    norms = np.empty(n_slices)
    small = NEGLIGIBLE * float(np.finfo(halves.dtype).eps)
    over_rows(_shrink_slices, n_slices, 2 * n_views * n_columns, halves, taus, norms, small)
    return norms


@jit()
def _shrink_slices(slices, Y, taus, norms, small):  # type: ignore[no-untyped-def]
    """Slices of frequency ``k``, in the rows ``2 k - 1`` and ``2 k``."""
    n_views, n_rows, _ = Y.shape
    gram = np.empty((n_views, n_views), dtype=np.complex128)
    for k in range(slices[0], slices[1]):
        re, im = max(2 * k - 1, 0), min(2 * k, n_rows - 1)
        _set_gram(Y, re, im, gram)
        if re == im:
            # The first and the last slice are real: their only row has been counted twice.
            gram *= 0.5
        norms[k] = filter_gram(gram, taus[k], small)
        gram /= n_rows
        _mix_views(Y, re, im, gram)


@jit(fastmath=SUMS)
def _set_gram(Y, re, im, gram):  # type: ignore[no-untyped-def]
    """``Y_u^H Y_v`` of the views of a slice, in double precision."""
    for u in range(gram.shape[0]):
        for v in range(u, gram.shape[0]):
            real, imaginary = 0.0, 0.0
            for j in range(Y.shape[2]):
                a, b = np.float64(Y[u, re, j]), np.float64(Y[u, im, j])
                c, d = np.float64(Y[v, re, j]), np.float64(Y[v, im, j])
                real += a * c + b * d
                imaginary += a * d - b * c
            gram[u, v] = complex(real, imaginary)
            gram[v, u] = np.conj(gram[u, v])


@jit()
def _mix_views(Y, re, im, mixing):  # type: ignore[no-untyped-def]
    """``Y_u <- sum_v Y_v mixing_vu`` in a slice; with one row, the mixing is real."""
    n_views, _, n_columns = Y.shape
    mixed = np.zeros((2, n_views, n_columns), dtype=Y.dtype)
    for u in range(n_views):
        for v in range(n_views):
            a, b = Y.dtype.type(mixing[v, u].real), Y.dtype.type(mixing[v, u].imag)
            for j in range(n_columns):
                mixed[0, u, j] += a * Y[v, re, j] - b * Y[v, im, j]
                mixed[1, u, j] += a * Y[v, im, j] + b * Y[v, re, j]
    for u in range(n_views):
        for j in range(n_columns):
            Y[u, re, j] = mixed[0, u, j]
            Y[u, im, j] = mixed[1, u, j]
