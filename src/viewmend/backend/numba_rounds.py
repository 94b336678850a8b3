"""Compiled kernels of a round of Algorithm 2, each of which passes over its arrays once.

Rows and slices are independent, and what is summed over them is summed in their order, so the
result does not depend on the number of threads. Entries are copied one by one: an assignment of
whole arrays would compile for seconds, for the message that their shapes differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from viewmend.backend.compiling import jit
from viewmend.backend.numba_cpu import SUMS, project_row
from viewmend.backend.threads import over_rows, parallel_map, row_blocks

__all__ = [
    "ascend",
    "best_response_rows",
    "filter_gram",
    "imputed_rows",
    "inners",
    "shrink_slices",
    "squared_gap",
]

# Jacobi's method stops at off-diagonal entries below this share of the largest entry, in units of
# the rounding of the numbers that the Gram matrix is made from: more digits would be noise.
NEGLIGIBLE = 0.05
MAX_SWEEPS = 30


def best_response_rows(
    A: np.ndarray, H: np.ndarray, weights: np.ndarray, scale: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """See `viewmend.backend.agnostic.best_response_rows`."""
    n_views, n_rows, _ = A.shape
    P = np.empty_like(H, order="C")
    sums = np.empty((n_rows, n_views + 2))
    spread = np.empty((n_rows, n_views, n_views))
    # scale (sum_v weights_v A_v - H) is one linear combination, with H as a last view.
    weights = np.append(scale * weights, -scale).astype(H.dtype)
    A, H = np.ascontiguousarray(A), np.ascontiguousarray(H)
    row_size = (n_views + 1) * H.shape[1]
    over_rows(_best_response_rows, n_rows, row_size, A, H, weights, P, sums, spread)
    # Summed here, in the order of the rows, whichever threads computed them.
    totals = sums.sum(axis=0)
    return P, totals[:-2], totals[-2:], spread.sum(axis=0)


def imputed_rows(
    G: np.ndarray, W: np.ndarray, rows: np.ndarray, pull: np.ndarray, weight: float, eta: float
) -> np.ndarray:
    """See `viewmend.backend.agnostic.imputed_rows`."""
    out = np.empty_like(pull, order="C")
    kind = pull.dtype.type
    _imputed_rows(G, W, rows, np.ascontiguousarray(pull), kind(weight / eta), kind(1 / eta), out)
    return out


def ascend(
    W: np.ndarray, Z: np.ndarray, G: np.ndarray, eta: float, out: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """See `viewmend.backend.agnostic.ascend`."""
    if out is None or not out.flags.c_contiguous:
        out = np.empty_like(W, order="C")
    rows = [_as_rows(array) for array in (W, Z, G, out)]
    sums = np.empty((rows[0].shape[0], 2))
    over_rows(_ascend, *rows[0].shape, *rows, W.dtype.type(eta), sums)
    return out, sums.sum(axis=0)


def inners(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """See `viewmend.backend.agnostic.inners`."""
    rows = [(_as_rows(A), _as_rows(B)) for A, B in pairs]
    sums = [np.empty(A.shape[0]) for A, _ in rows]
    tasks = [(i, block) for i, (A, _) in enumerate(rows) for block in row_blocks(*A.shape)]

    def work(task: tuple[int, slice]) -> None:
        i, block = task
        _inner_rows((block.start, block.stop), *rows[i], sums[i])

    # All pairs in one call, because waking the threads costs more than a small sum.
    parallel_map(work, tasks)
    return np.array([total.sum() for total in sums])


def squared_gap(A: np.ndarray, B: np.ndarray) -> float:
    """See `viewmend.backend.agnostic.squared_gap`."""
    rows = [_as_rows(array) for array in (A, B)]
    sums = np.empty(rows[0].shape[0])
    over_rows(_squared_gap, *rows[0].shape, *rows, sums)
    return float(sums.sum())


def _as_rows(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1, array.shape[-1])


def shrink_slices(Y_hat: np.ndarray, tau: Any) -> tuple[np.ndarray, np.ndarray]:
    """See `viewmend.backend.agnostic.shrink_slices`."""
    G_hat = np.array(Y_hat, order="C")
    n_views, n_slices, n_columns = G_hat.shape
    taus = np.broadcast_to(np.asarray(tau, dtype=np.float64), (n_slices,)).copy()
    grams = np.zeros((n_slices, n_views, n_views), np.result_type(G_hat.dtype, np.float64))
    norms = np.empty(n_slices)
    small = NEGLIGIBLE * float(np.finfo(G_hat.dtype).eps)
    over_rows(_shrink_slices, n_slices, n_views * n_columns, G_hat, taus, grams, norms, small)
    return G_hat, norms


@jit()
def _best_response_rows(rows, A, H, weights, P, sums, spread):  # type: ignore[no-untyped-def]
    for i in range(rows[0], rows[1]):
        # All of it for one row at a time: its entries are then in the cache.
        row = P[i]
        _aim(A, H[i], weights, i, row)
        project_row(row, row)
        _row_sums(A, H[i], row, i, sums[i])
        _row_spread(A, row, i, spread[i])


@jit(fastmath=SUMS)
def _aim(A, H_i, weights, i, row):  # type: ignore[no-untyped-def]
    """``sum_v weights_v A_v - scale H`` of one row, the last of the weights being ``-scale``."""
    for j in range(row.size):
        row[j] = weights[-1] * H_i[j]
    for v in range(A.shape[0]):
        weight = weights[v]
        for j in range(row.size):
            row[j] += weight * A[v, i, j]


# Sums over one row are taken in the precision of its entries, which vectorises them; sums over
# all rows in double precision.
@jit()
def _row_sums(A, H_i, row, i, sums):  # type: ignore[no-untyped-def]
    """``<p, A_v>`` of every view, then ``<p, p>`` and ``<p, H>``."""
    n_views = A.shape[0]
    for v in range(n_views):
        sums[v] = _dot(row, A[v, i])
    sums[n_views] = _dot(row, row)
    sums[n_views + 1] = _dot(row, H_i)


@jit()
def _row_spread(A, row, i, spread):  # type: ignore[no-untyped-def]
    """Scatter matrix of the views over the positive entries of one row, around their means."""
    n_views = A.shape[0]
    # A row so large that subtracting one is lost to rounding is projected to zero.
    size = max(_support_size(row), 1)
    for v in range(n_views):
        # sum (a - mean a) (b - mean b) = sum a b - mean a sum b, over the support.
        mean = _sums_inside(row, A[v, i], A[v, i])[1] / size
        for u in range(v, n_views):
            products, total = _sums_inside(row, A[v, i], A[u, i])
            spread[u, v] = products - mean * total
            spread[v, u] = spread[u, v]


@jit(fastmath=SUMS)
def _dot(a, b):  # type: ignore[no-untyped-def]
    total = a.dtype.type(0)
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@jit(fastmath=SUMS | {"nnan"})
def _support_size(row):  # type: ignore[no-untyped-def]
    zero, one = row.dtype.type(0), row.dtype.type(1)
    size = zero
    for j in range(row.size):
        size += one if row[j] > zero else zero
    return size


@jit(fastmath=SUMS | {"nnan"})
def _sums_inside(row, a, b):  # type: ignore[no-untyped-def]
    """Sums of ``a b`` and of ``b`` where ``row`` is positive."""
    zero = row.dtype.type(0)
    products = zero
    total = zero
    # A selection instead of a branch, which would keep the loop from being vectorised.
    for j in range(row.size):
        inside = b[j] if row[j] > zero else zero
        products += a[j] * inside
        total += inside
    return products, total


@jit()
def _imputed_rows(G, W, rows, pull, weight, inverse, out):  # type: ignore[no-untyped-def]
    for i in range(rows.size):
        row = out[i]
        _aim_row(G[rows[i]], W[rows[i]], pull[i], weight, inverse, row)
        project_row(row, row)


@jit(fastmath=SUMS)
def _aim_row(G_i, W_i, pull_i, weight, inverse, row):  # type: ignore[no-untyped-def]
    for j in range(row.size):
        row[j] = G_i[j] - inverse * W_i[j] + weight * pull_i[j]


@jit(fastmath=SUMS)
def _ascend(rows, W, Z, G, out, eta, sums):  # type: ignore[no-untyped-def]
    zero = W.dtype.type(0)
    for i in range(rows[0], rows[1]):
        along_W, squared = zero, zero
        for j in range(W.shape[1]):
            gap = Z[i, j] - G[i, j]
            along_W += W[i, j] * gap
            squared += gap * gap
            out[i, j] = W[i, j] + eta * gap
        sums[i, 0] = along_W
        sums[i, 1] = squared


@jit()
def _inner_rows(rows, A, B, sums):  # type: ignore[no-untyped-def]
    for i in range(rows[0], rows[1]):
        sums[i] = _dot(A[i], B[i])


@jit(fastmath=SUMS)
def _squared_gap(rows, A, B, sums):  # type: ignore[no-untyped-def]
    zero = A.dtype.type(0)
    for i in range(rows[0], rows[1]):
        squared = zero
        for j in range(A.shape[1]):
            gap = A[i, j] - B[i, j]
            squared += gap * gap
        sums[i] = squared


@jit()
def _shrink_slices(slices, Y_hat, taus, grams, norms, small):  # type: ignore[no-untyped-def]
    for k in range(slices[0], slices[1]):
        _add_gram(Y_hat, k, grams[k])
        norms[k] = filter_gram(grams[k], taus[k], small)
        _mix_views(Y_hat, k, grams[k])


@jit(fastmath=SUMS)
def _add_gram(Y_hat, k, gram):  # type: ignore[no-untyped-def]
    """Add ``Y_u^H Y_v`` of the views of slice ``k``, in double precision."""
    n_views = Y_hat.shape[0]
    for u in range(n_views):
        for v in range(u, n_views):
            # The sum is of the type of the Gram matrix, double precision also for float32 views.
            total = gram[u, v]
            for j in range(Y_hat.shape[2]):
                total += np.conj(Y_hat[u, k, j]) * Y_hat[v, k, j]
            gram[u, v] = total
            gram[v, u] = np.conj(total)


@jit()
def filter_gram(gram, tau, small):  # type: ignore[no-untyped-def]
    """Turn ``R diag(sigma^2) R^H`` into ``R diag((1 - tau/sigma)_+) R^H``; its nuclear norm."""
    R = _eigenvectors(gram, small)
    # The method leaves the eigenvalues on the diagonal; rounding may take a zero below zero.
    squares = np.empty(gram.shape[0])
    for a in range(squares.size):
        squares[a] = gram[a, a].real
        for b in range(squares.size):
            gram[a, b] = 0.0
    norm = 0.0
    for v in range(squares.size):
        sigma = np.sqrt(max(squares[v], 0.0))
        if sigma > tau:
            norm += sigma - tau
            for a in range(squares.size):
                for b in range(squares.size):
                    gram[a, b] += (1.0 - tau / sigma) * R[a, v] * np.conj(R[b, v])
    return norm


@jit()
def _eigenvectors(gram, small):  # type: ignore[no-untyped-def]
    """Jacobi's method: diagonalise a small Hermitian matrix in place, and return the basis."""
    n_views = gram.shape[0]
    R = np.empty(gram.shape, gram.dtype)
    largest = 0.0
    for u in range(n_views):
        for v in range(n_views):
            R[u, v] = 1.0 if u == v else 0.0
            largest = max(largest, abs(gram[u, v]))
    limit = small * largest
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


@jit()
def _rotate(gram, R, p, q):  # type: ignore[no-untyped-def]
    """Make entry ``(p, q)`` zero by a unitary rotation of two views."""
    # The phase makes the entry real; then the classical rotation by the smaller of two angles,
    # whose tangent solves t^2 + 2 slant t - 1 = 0.
    size = abs(gram[p, q])
    phase = gram[p, q] / size
    slant = (gram[q, q].real - gram[p, p].real) / (2 * size)
    tangent = 1.0 / (abs(slant) + np.sqrt(slant * slant + 1.0))
    if slant < 0:
        tangent = -tangent
    c = 1.0 / np.sqrt(tangent * tangent + 1.0)
    s = tangent * c
    # Columns of the matrix and of the basis, then rows of the matrix: gram <- J^H gram J.
    for M in (gram, R):
        for a in range(M.shape[0]):
            x, y = M[a, p], M[a, q] * np.conj(phase)
            M[a, p], M[a, q] = c * x - s * y, s * x + c * y
    for a in range(gram.shape[0]):
        x, y = gram[p, a], gram[q, a] * phase
        gram[p, a], gram[q, a] = c * x - s * y, s * x + c * y
    # Zero but for rounding, which would keep the sweeps going.
    gram[p, q] = 0.0
    gram[q, p] = 0.0


@jit(fastmath=SUMS)
def _mix_views(Y_hat, k, mixing):  # type: ignore[no-untyped-def]
    """``Y_u <- sum_v Y_v mixing_vu`` in slice ``k``."""
    n_views, _, size = Y_hat.shape
    # A copy, because every new view needs all the old ones.
    mixed = np.zeros((n_views, size), dtype=Y_hat.dtype)
    for u in range(n_views):
        for v in range(n_views):
            factor = mixing[v, u]
            for j in range(size):
                mixed[u, j] += factor * Y_hat[v, k, j]
    for u in range(n_views):
        for j in range(size):
            Y_hat[u, k, j] = mixed[u, j]
