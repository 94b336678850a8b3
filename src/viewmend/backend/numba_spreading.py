"""Compiled steps of the conjugate gradients that spread labels, for NumPy arrays.

Sums over rows are added block by block, so that they do not depend on the number of threads.
"""

from __future__ import annotations

import numpy as np

from viewmend.backend.compiling import jit
from viewmend.backend.numba_cpu import SUMS
from viewmend.backend.threads import over_rows, parallel_map, row_blocks

__all__ = ["cg_direction", "cg_step", "column_dots", "energies", "group_sums"]

# Labels that come from far arrive as numbers like this, and grow: no row is too small to wait for.
SMALLEST = np.finfo(np.float32).smallest_subnormal


def column_dots(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """``sum_i a_ij b_ij`` of every column, (n_columns,) of float64."""
    parts = parallel_map(lambda rows: _column_dots(A[rows], B[rows]), row_blocks(*A.shape))
    return np.sum(parts, axis=0)


def energies(R: np.ndarray, degrees: np.ndarray) -> np.ndarray:
    """``sum_i r_ij^2 / degrees_i`` of every column, (n_columns,) of float64."""
    parts = parallel_map(lambda rows: _energies(R[rows], degrees[rows]), row_blocks(*R.shape))
    return np.sum(parts, axis=0)


def group_sums(A: np.ndarray, groups: np.ndarray, n_groups: int) -> np.ndarray:
    """Sum of the rows of each group, (n_groups, n_columns) of float64; rows of group -1 in none."""
    blocks = row_blocks(*A.shape)
    parts = parallel_map(lambda rows: _group_sums(A[rows], groups[rows], n_groups), blocks)
    return np.sum(parts, axis=0)


def cg_step(
    X: np.ndarray, R: np.ndarray, P: np.ndarray, Q: np.ndarray, step: np.ndarray
) -> np.ndarray:
    """``X += step P``, ``R -= step Q``; the largest change of a row relative to its size."""
    step = step.astype(X.dtype)

    def work(rows: slice) -> float:
        return _cg_step(X[rows], R[rows], P[rows], Q[rows], step)

    return np.max(parallel_map(work, row_blocks(*X.shape)))


def cg_direction(
    P: np.ndarray,
    R: np.ndarray,
    degrees: np.ndarray,
    coarse: tuple[np.ndarray, np.ndarray],
    beta: np.ndarray,
) -> None:
    """``P = R / degrees + correction of the row's group + beta P``; none for group -1."""
    groups, corrections = coarse[0], coarse[1].astype(P.dtype)
    beta = beta.astype(P.dtype)
    over_rows(_cg_direction, *P.shape, P, R, degrees, groups, corrections, beta)


@jit(fastmath=SUMS)
def _column_dots(A, B):  # type: ignore[no-untyped-def]
    out = np.zeros(A.shape[1])
    for i in range(A.shape[0]):
        for c in range(A.shape[1]):
            out[c] += np.float64(A[i, c]) * np.float64(B[i, c])
    return out


@jit(fastmath=SUMS)
def _energies(R, degrees):  # type: ignore[no-untyped-def]
    out = np.zeros(R.shape[1])
    for i in range(R.shape[0]):
        inverse = 1 / np.float64(degrees[i])
        for c in range(R.shape[1]):
            out[c] += np.float64(R[i, c]) * np.float64(R[i, c]) * inverse
    return out


@jit()
def _group_sums(A, groups, n_groups):  # type: ignore[no-untyped-def]
    out = np.zeros((n_groups, A.shape[1]))
    for i in range(A.shape[0]):
        if groups[i] >= 0:
            for c in range(A.shape[1]):
                out[groups[i], c] += np.float64(A[i, c])
    return out


@jit(fastmath=SUMS)
def _cg_step(X, R, P, Q, step):  # type: ignore[no-untyped-def]
    largest = 0.0
    for i in range(X.shape[0]):
        size = change = X.dtype.type(0)
        for c in range(X.shape[1]):
            move = step[c] * P[i, c]
            X[i, c] += move
            R[i, c] -= step[c] * Q[i, c]
            size = max(size, abs(X[i, c]))
            change = max(change, abs(move))
        if change > largest * size:
            largest = change / max(size, SMALLEST)
    return largest


@jit(fastmath=SUMS)
def _cg_direction(rows, P, R, degrees, groups, corrections, beta):  # type: ignore[no-untyped-def]
    for i in range(rows[0], rows[1]):
        inverse = P.dtype.type(1) / degrees[i]
        for c in range(P.shape[1]):
            P[i, c] = R[i, c] * inverse + beta[c] * P[i, c]
        if groups[i] >= 0:
            for c in range(P.shape[1]):
                P[i, c] += corrections[groups[i], c]
