"""Compiled kernels of a round of Algorithm 2, each of which passes over its arrays once.

Rows and slices are independent, and what is summed over them is summed in their order, so the
result does not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.fft
from numba import njit, prange

from viewmend.backend.numba_cpu import _run, _threshold
from viewmend.backend.threads import available_threads

__all__ = ["answer_rows", "gap_products", "shrink_fourier", "shrink_slices"]

# Sums may be taken in any order within a row, which lets them be vectorised.
SUMS = {"reassoc", "contract", "nsz"}

# Off-diagonal entries of a Gram matrix below this share of its largest are rounding.
NEGLIGIBLE = 1e-17
MAX_SWEEPS = 30


def answer_rows(
    A: np.ndarray, H: np.ndarray, weights: np.ndarray, scale: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """See `viewmend.backend.agnostic.answer_rows`."""
    n_views, n_rows, _ = A.shape
    P = np.empty_like(H, order="C")
    sums = np.empty((n_rows, n_views + 2))
    spread = np.empty((n_rows, n_views, n_views))
    weights = np.asarray(weights, dtype=H.dtype)
    A, H = np.ascontiguousarray(A), np.ascontiguousarray(H)
    _run(_answer_rows, A, H, weights, H.dtype.type(scale), P, sums, spread)
    totals = sums.sum(axis=0)
    return P, totals[:-2], totals[-2:], spread.sum(axis=0)


def gap_products(A: np.ndarray, B: np.ndarray, W: np.ndarray) -> tuple[float, float]:
    """See `viewmend.backend.agnostic.gap_products`."""
    flat = [np.ascontiguousarray(array).reshape(-1, A.shape[-1]) for array in (A, B, W)]
    sums = np.empty((flat[0].shape[0], 2))
    _run(_gap_products, *flat, sums)
    along_W, squared = sums.sum(axis=0)
    return float(along_W), float(squared)


def shrink_slices(Y_hat: np.ndarray, tau: Any) -> tuple[np.ndarray, np.ndarray]:
    """See `viewmend.backend.agnostic.shrink_slices`."""
    G_hat = np.array(Y_hat, order="C")
    return G_hat, _shrink(_shrink_slices, G_hat, tau, G_hat.shape[1])


def shrink_fourier(Y: np.ndarray, tau: Any) -> tuple[np.ndarray, np.ndarray]:
    """See `viewmend.backend.agnostic.shrink_fourier`.

    Two neighbouring columns are transformed as the real and the imaginary part of one: half the
    work of two real transforms where the length has a large prime factor, and no more elsewhere.
    """
    n_samples, n_columns = Y.shape[1:]
    threads = available_threads()
    Y_hat = scipy.fft.fft(_as_complex(Y), axis=1, workers=threads)
    kept = _shrink(_shrink_packed, Y_hat, tau, n_samples // 2 + 1)
    G = scipy.fft.ifft(Y_hat, axis=1, overwrite_x=True, workers=threads)
    return G.view(Y.dtype)[:, :, :n_columns], kept


def _shrink(kernel: Any, Y_hat: np.ndarray, tau: Any, n_slices: int) -> np.ndarray:
    """Run a kernel on ``Y_hat`` in place; what it keeps of every slice."""
    n_views = Y_hat.shape[0]
    taus = np.broadcast_to(np.asarray(tau, dtype=np.float64), (n_slices,)).copy()
    grams = np.zeros((n_slices, n_views, n_views), np.result_type(Y_hat.dtype, np.float64))
    kept = np.empty(n_slices)
    _run(kernel, Y_hat, taus, grams, kept)
    return kept


def _as_complex(Y: np.ndarray) -> np.ndarray:
    """Columns 0, 2, ... as real and columns 1, 3, ... as imaginary parts; a zero column if odd."""
    if Y.shape[2] % 2:
        Y = np.pad(Y, ((0, 0), (0, 0), (0, 1)))
    return np.ascontiguousarray(Y).view(np.result_type(Y.dtype, np.complex64))


@njit(cache=True, parallel=True)
def _answer_rows(A, H, weights, scale, P, sums, spread):  # type: ignore[no-untyped-def]
    for i in prange(H.shape[0]):
        row = P[i]
        _aim(A, H[i], weights, scale, i, row)
        tau = _threshold(row, row.max() - 1.0)
        for j in range(row.size):
            row[j] = max(row[j] - tau, 0.0)
        _row_sums(A, H[i], row, i, sums[i])
        _row_spread(A, row, i, spread[i])


@njit(cache=True, fastmath=SUMS)
def _aim(A, H_i, weights, scale, i, row):  # type: ignore[no-untyped-def]
    """``scale (sum_v weights_v A_v - H)`` of one row."""
    for j in range(row.size):
        row[j] = -scale * H_i[j]
    for v in range(A.shape[0]):
        weight = scale * weights[v]
        for j in range(row.size):
            row[j] += weight * A[v, i, j]


@njit(cache=True, fastmath=SUMS)
def _row_sums(A, H_i, row, i, sums):  # type: ignore[no-untyped-def]
    """``<p, A_v>`` of every view, then ``<p, p>`` and ``<p, H>``."""
    n_views = A.shape[0]
    for v in range(n_views):
        total = 0.0
        for j in range(row.size):
            total += row[j] * A[v, i, j]
        sums[v] = total
    squares = 0.0
    along_H = 0.0
    for j in range(row.size):
        squares += row[j] * row[j]
        along_H += row[j] * H_i[j]
    sums[n_views] = squares
    sums[n_views + 1] = along_H


@njit(cache=True, fastmath=SUMS)
def _row_spread(A, row, i, spread):  # type: ignore[no-untyped-def]
    """Scatter matrix of the views over the positive entries of one row."""
    n_views = A.shape[0]
    size = 0.0
    for j in range(row.size):
        size += 1.0 if row[j] > 0 else 0.0
    for v in range(n_views):
        total = 0.0
        for j in range(row.size):
            total += A[v, i, j] if row[j] > 0 else 0.0
        mean = total / size
        for u in range(v, n_views):
            total = 0.0
            for j in range(row.size):
                total += (A[v, i, j] - mean) * A[u, i, j] if row[j] > 0 else 0.0
            spread[u, v] = total
            spread[v, u] = total


@njit(cache=True, parallel=True, fastmath=SUMS)
def _gap_products(A, B, W, sums):  # type: ignore[no-untyped-def]
    for i in prange(A.shape[0]):
        along_W = 0.0
        squared = 0.0
        for j in range(A.shape[1]):
            gap = A[i, j] - B[i, j]
            along_W += W[i, j] * gap
            squared += gap * gap
        sums[i, 0] = along_W
        sums[i, 1] = squared


@njit(cache=True, parallel=True)
def _shrink_slices(Y_hat, taus, grams, kept):  # type: ignore[no-untyped-def]
    for k in prange(taus.size):
        _add_gram(Y_hat, k, grams[k])
        kept[k] = _filter(grams[k], taus[k])
        _mix_views(Y_hat, k, grams[k])


@njit(cache=True, parallel=True)
def _shrink_packed(Y_hat, taus, grams, kept):  # type: ignore[no-untyped-def]
    """Slices ``k`` and ``-k`` of packed columns, whose filters are conjugate to each other.

    With ``Y_hat_k = E + iO`` the transforms of both columns, the slice ``-k`` is the conjugate of
    ``E - iO``: the mean of their Gram matrices is that of ``E`` and ``O``, and what acts on views
    acts on ``E`` and ``O`` alike.
    """
    n_samples = Y_hat.shape[1]
    for k in prange(taus.size):
        mirror = (n_samples - k) % n_samples
        gram = grams[k]
        _add_gram(Y_hat, mirror, gram)
        gram[:] = np.conj(gram)
        _add_gram(Y_hat, k, gram)
        gram *= 0.5
        kept[k] = _filter(gram, taus[k])
        _mix_views(Y_hat, k, gram)
        if mirror != k:
            _mix_views(Y_hat, mirror, np.conj(gram))


@njit(cache=True, fastmath=SUMS)
def _add_gram(Y_hat, k, gram):  # type: ignore[no-untyped-def]
    """Add ``Y_u^H Y_v`` of the views of slice ``k``, in double precision."""
    n_views = Y_hat.shape[0]
    for u in range(n_views):
        for v in range(u, n_views):
            total = gram[u, v]
            for j in range(Y_hat.shape[2]):
                total += np.conj(Y_hat[u, k, j]) * Y_hat[v, k, j]
            gram[u, v] = total
            gram[v, u] = np.conj(total)


@njit(cache=True)
def _filter(gram, tau):  # type: ignore[no-untyped-def]
    """Turn ``R diag(sigma^2) R^H`` into ``R diag((1 - tau/sigma)_+) R^H``; the sum that is kept."""
    R = _eigenvectors(gram)
    squares = np.diag(gram).real.copy()
    gram[:] = 0.0
    kept = 0.0
    for v in range(squares.size):
        sigma = np.sqrt(max(squares[v], 0.0))
        if sigma > tau:
            kept += sigma - tau
            for a in range(squares.size):
                for b in range(squares.size):
                    gram[a, b] += (1.0 - tau / sigma) * R[a, v] * np.conj(R[b, v])
    return kept


@njit(cache=True)
def _eigenvectors(gram):  # type: ignore[no-untyped-def]
    """Jacobi's method: diagonalise a small Hermitian matrix in place, and return the basis."""
    n_views = gram.shape[0]
    R = np.zeros_like(gram)
    for v in range(n_views):
        R[v, v] = 1.0
    limit = NEGLIGIBLE * np.abs(gram).max()
    for _ in range(MAX_SWEEPS):
        done = True
        for p in range(n_views):
            for q in range(p + 1, n_views):
                if abs(gram[p, q]) > limit:
                    done = False
                    _rotate(gram, R, p, q)
        if done:
            break
    return R


@njit(cache=True)
def _rotate(gram, R, p, q):  # type: ignore[no-untyped-def]
    """Make entry ``(p, q)`` zero by a unitary rotation of two views."""
    size = abs(gram[p, q])
    phase = gram[p, q] / size
    slant = (gram[q, q].real - gram[p, p].real) / (2 * size)
    tangent = 1.0 / (abs(slant) + np.sqrt(slant * slant + 1.0))
    if slant < 0:
        tangent = -tangent
    c = 1.0 / np.sqrt(tangent * tangent + 1.0)
    s = tangent * c
    for M in (gram, R):
        for a in range(M.shape[0]):
            x, y = M[a, p], M[a, q] * np.conj(phase)
            M[a, p], M[a, q] = c * x - s * y, s * x + c * y
    for a in range(gram.shape[0]):
        x, y = gram[p, a], gram[q, a] * phase
        gram[p, a], gram[q, a] = c * x - s * y, s * x + c * y
    gram[p, q] = 0.0
    gram[q, p] = 0.0


@njit(cache=True, fastmath=SUMS)
def _mix_views(Y_hat, k, mixing):  # type: ignore[no-untyped-def]
    """``Y_u <- sum_v Y_v mixing_vu`` in slice ``k``."""
    n_views, _, size = Y_hat.shape
    mixed = np.zeros((n_views, size), dtype=Y_hat.dtype)
    for u in range(n_views):
        for v in range(n_views):
            factor = mixing[v, u]
            for j in range(size):
                mixed[u, j] += factor * Y_hat[v, k, j]
    Y_hat[:, k, :] = mixed
