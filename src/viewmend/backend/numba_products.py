"""Products with the sparse rows of a dense array; the caller multiplies the other rows.

Observed rows of a graph have as many non-zero entries as neighbours, which is few; imputed rows
have few or all. So whether sparse or dense arithmetic is faster differs from row to row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from viewmend.backend.compiling import jit
from viewmend.backend.numba_cpu import SUMS

__all__ = ["add_sparse_products", "multiply_sparse"]

# Below this share of its entries a row is multiplied faster entry by entry than by the library.
FEW = 1 / 12

# Entries read between two checks whether the row has too many non-zeros.
STRIDE = 64


def multiply_sparse(A: np.ndarray, B: np.ndarray, out: np.ndarray) -> np.ndarray:
    """``A B`` for the rows of ``A`` (n, m) with few entries, into ``out``; the other rows."""
    return _left_over(_multiply_sparse, A, B, out)


def add_sparse_products(A: np.ndarray, B: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Add ``A_i^T B_i`` of the rows of ``A`` (n, m) with few entries to ``out``; the other rows."""
    return _left_over(_add_sparse_products, A, B, out)


def _left_over(kernel: Any, A: np.ndarray, B: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Rows of ``A`` that a kernel left alone because they have too many entries."""
    full = np.empty(A.shape[0], dtype=np.int64)
    return full[: kernel(A, B, int(FEW * A.shape[1]), out, full)]


@jit(fastmath=SUMS)
def _multiply_sparse(A, B, limit, out, full):  # type: ignore[no-untyped-def]
    n_full = 0
    # The limit is checked after every stride, until when a row may exceed it by one.
    places = np.empty(limit + STRIDE, dtype=np.int64)
    for i in range(A.shape[0]):
        size = _find_entries(A[i], limit, places)
        if size > limit:
            full[n_full] = i
            n_full += 1
            continue
        for j in range(out.shape[1]):
            out[i, j] = 0
        # Two entries at a time: every entry of the result is read and written half as often.
        for p in range(0, size - 1, 2):
            k, l = places[p], places[p + 1]  # noqa: E741
            a, b = A[i, k], A[i, l]
            for j in range(out.shape[1]):
                out[i, j] += a * B[k, j] + b * B[l, j]
        if size % 2:
            k = places[size - 1]
            a = A[i, k]
            for j in range(out.shape[1]):
                out[i, j] += a * B[k, j]
    return n_full


@jit(fastmath=SUMS)
def _add_sparse_products(A, B, limit, out, full):  # type: ignore[no-untyped-def]
    n_full = 0
    places = np.empty(limit + STRIDE, dtype=np.int64)
    for i in range(A.shape[0]):
        size = _find_entries(A[i], limit, places)
        if size > limit:
            full[n_full] = i
            n_full += 1
            continue
        for p in range(size):
            k = places[p]
            a = A[i, k]
            for j in range(out.shape[1]):
                out[k, j] += a * B[i, j]
    return n_full


@jit()
def _find_entries(row, limit, places):  # type: ignore[no-untyped-def]
    """Write where a row is not zero, and count it; beyond the limit some number above it."""
    size = 0
    for start in range(0, row.size, STRIDE):
        for j in range(start, min(start + STRIDE, row.size)):
            # Written in any case, and overwritten if it does not count: no branch to mispredict.
            places[size] = j
            size += row[j] != 0
        if size > limit:
            break
    return size
