"""Products of tall matrices, block of rows by block of rows, on all threads.

Blocks are the same whatever the number of threads, and what is summed over them is summed in
their order, so the digits are the same as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from scipy.sparse import csr_array

from viewmend.backend.numba_products import add_sparse_products, multiply_sparse
from viewmend.backend.polar import N_COURSES, SMALLEST_SHARE, quintics
from viewmend.backend.threads import BLOCK, parallel_map, row_blocks

__all__ = [
    "column_sums",
    "cross_products",
    "gram",
    "leading_eigenvectors",
    "multiply",
    "polar_factors",
    "shifted",
    "solve_spd",
    "sparse_cross_products",
]

# Partial sums over the rows: enough for many threads, few enough to cost no memory.
N_PARTS = 8
# Entries of a block of rows: large enough for a product to run at full speed.
PRODUCT_BLOCK = 1 << 18
# Columns of a graph whose rows may have few entries for its size.
WIDE = 32
# Products of columns that are this many roundings from 0 or 1 are those of an orthogonal matrix:
# each is a sum of some hundred terms, and errors of a step before the last would be far larger.
ORTHOGONAL = 1e3
# Of the squared singular values, the smallest over the largest: below it, their rounding reaches
# the ninth digit of the factor.
SMALLEST_SQUARE = 1e-7


def multiply(A: np.ndarray, B: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """See `viewmend.backend.agnostic.multiply`."""
    if out is None:
        out = np.empty((*A.shape[:-1], B.shape[-1]), np.result_type(A, B))
    blocks = row_blocks(A.shape[-2], A.shape[-1] + B.shape[-1], PRODUCT_BLOCK)

    def work(task: tuple[tuple[int, ...], slice]) -> None:
        view, rows = task
        _multiply(A[view][rows], B[view], out[view][rows])

    parallel_map(work, [(view, rows) for view in _views(A) for rows in blocks])
    return out


def _multiply(A: np.ndarray, B: np.ndarray, out: np.ndarray) -> None:
    if not _are_worth_a_look(A, B, out):
        np.matmul(A, B, out=out)
        return
    full = multiply_sparse(A, B, out)
    if full.size == A.shape[0]:
        np.matmul(A, B, out=out)
    elif full.size:
        out[full] = A[full] @ B


def solve_spd(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """See `viewmend.backend.agnostic.solve_spd`; by a Cholesky factor."""
    return scipy.linalg.cho_solve(scipy.linalg.cho_factor(A, check_finite=False), B)


def column_sums(A: np.ndarray) -> np.ndarray:
    """See `viewmend.backend.agnostic.column_sums`."""

    def part(_view: tuple[int, ...], rows: slice) -> np.ndarray:
        block = A[rows]
        return np.ones(block.shape[0], dtype=A.dtype) @ block

    return _summed_over_rows(A, part)


def cross_products(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """See `viewmend.backend.agnostic.cross_products`."""
    return _summed_over_rows(A, lambda view, rows: _cross_product(A[view][rows], B[rows]))


def _cross_product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    if not _are_worth_a_look(A, B):
        return A.T @ B
    products = np.zeros((A.shape[1], B.shape[1]), dtype=A.dtype)
    full = add_sparse_products(A, B, products)
    if full.size == A.shape[0]:
        return A.T @ B
    if full.size:
        products += A[full].T @ B[full]
    return products


def _are_worth_a_look(*arrays: np.ndarray) -> bool:
    """Whether to look for sparse rows: in wide arrays of one type, stored by rows."""
    return all(
        array.flags.c_contiguous and array.shape[1] >= WIDE and array.dtype == arrays[0].dtype
        for array in arrays
    )


def gram(A: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """See `viewmend.backend.agnostic.gram`; of a matrix and its transpose half is computed."""
    roots = np.sqrt(weights)[:, None]

    def part(_view: tuple[int, ...], rows: slice) -> np.ndarray:
        half = A[rows] * roots[rows]
        return half.T @ half

    return _summed_over_rows(A, part)


def sparse_cross_products(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """See `viewmend.backend.agnostic.sparse_cross_products`."""
    product: np.ndarray = csr_array(A).T @ B
    return product


def leading_eigenvectors(A: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """See `viewmend.backend.agnostic.leading_eigenvectors`; finds no others."""
    last = A.shape[0] - 1
    values, vectors = scipy.linalg.eigh(A, subset_by_index=(max(0, last + 1 - size), last))
    return values[::-1], vectors[:, ::-1]


def polar_factors(C: np.ndarray) -> np.ndarray:
    """See `viewmend.backend.agnostic.polar_factors`; a thread per matrix.

    Singular values are exact and slow. In double precision there are digits enough to square them,
    and eigenvectors take three quarters of the time; in single precision matrix products, which are
    twice as fast there, take half of it.
    """
    polar = _polar_by_products if C.dtype == np.float32 else _polar_by_eigenvectors
    return np.stack(parallel_map(polar, C))


def _polar_by_eigenvectors(C: np.ndarray) -> np.ndarray:
    """``C (C^T C)^{-1/2}``; a matrix that is nearly singular falls back to singular values."""
    squares, V = np.linalg.eigh(C.T @ C)
    if squares[0] <= SMALLEST_SQUARE * squares[-1]:
        return _polar_by_singular_values(C)
    X = (C @ (V / np.sqrt(squares))) @ V.T
    # A step of Newton and Schulz for the digits of orthogonality that the squares have lost.
    return np.asarray(1.5 * X - (0.5 * X) @ (X.T @ X))


def _polar_by_singular_values(C: np.ndarray) -> np.ndarray:
    U, _, Vh = np.linalg.svd(C, full_matrices=False)
    return np.asarray(U @ Vh)


def _polar_by_products(C: np.ndarray) -> np.ndarray:
    """In single precision; a matrix that is nearly singular falls back to singular values."""
    eps = float(np.finfo(np.float32).eps)
    X = C / max(float(np.linalg.norm(C)), float(np.finfo(np.float32).tiny))
    for _ in range(N_COURSES):
        for a, b, c in quintics(SMALLEST_SHARE, eps):
            gram = X.T @ X
            # The product with its own transpose takes half the work.
            step = np.float32(c) * (gram.T @ gram) + np.float32(b) * gram
            np.fill_diagonal(step, step.diagonal() + np.float32(a))
            X = X @ step
        gap = X.T @ X
        np.fill_diagonal(gap, gap.diagonal() - 1)
        if np.abs(gap).max() < ORTHOGONAL * eps:
            return X
    return _polar_by_singular_values(C)


def shifted(
    A: np.ndarray, B: np.ndarray, scale: float, out: np.ndarray | None = None
) -> np.ndarray:
    """See `viewmend.backend.agnostic.shifted`."""
    if out is None:
        out = np.empty_like(A)

    def work(task: tuple[tuple[int, ...], slice]) -> None:
        view, rows = task
        block = np.multiply(B[view][rows], A.dtype.type(scale), out=out[view][rows])
        block += A[view][rows]

    blocks = row_blocks(A.shape[-2], A.shape[-1])
    parallel_map(work, [(view, rows) for view in _views(A) for rows in blocks])
    return out


def _views(A: np.ndarray) -> list[tuple[int, ...]]:
    """Positions of the matrices of a stack; of one matrix, the empty position."""
    return list(np.ndindex(A.shape[:-2]))


def _summed_over_rows(
    A: np.ndarray, part: Callable[[tuple[int, ...], slice], np.ndarray]
) -> np.ndarray:
    """Sum of ``part`` over blocks of rows, for every matrix of a stack."""
    n_rows, n_columns = A.shape[-2:]
    parts = row_blocks(n_rows, 1, max(-(-n_rows // N_PARTS), BLOCK // n_columns))
    views = _views(A)
    sums: list[Any] = parallel_map(
        lambda task: part(*task), [(view, rows) for view in views for rows in parts]
    )
    totals = [sum(sums[i : i + len(parts)][1:], sums[i]) for i in range(0, len(sums), len(parts))]
    return np.stack(totals).reshape(*A.shape[:-2], *totals[0].shape)
