"""One look at every cell of a table: hashes of rows, missing cells, smallest and largest ones.

Rows are independent, so the result does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from viewmend.backend.compiling import jit
from viewmend.backend.threads import parallel_map, row_blocks

__all__ = [
    "GOLDEN",
    "MIX_1",
    "MIX_2",
    "column_ends",
    "count_missing_cells",
    "hash_rows",
    "row_ends",
]

# Of the finaliser of splitmix64 (Steele, Lea, Flood 2014): every input bit reaches every output
# bit. Arithmetic of unsigned integers wraps around, which is what a hash wants.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
# Cells that a thread looks at between two questions for more.
BLOCK = 1 << 19
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)


def hash_rows(X: np.ndarray, salts: np.ndarray) -> np.ndarray:
    """``sum_j mix(bits of x_ij) salts_j`` (n_rows,) of uint64, for rows of float32 or float64.

    Numbers of float32 have the bits of the same number in float64, both zeros the same bits, and
    all NaN too.
    """
    out = np.empty(X.shape[0], dtype=np.uint64)
    _over_rows(_hash_rows, X, salts, out)
    return out


def count_missing_cells(X: np.ndarray) -> np.ndarray:
    """How many cells of every row of ``X`` (n_rows, n_features) are NaN, (n_rows,)."""
    out = np.empty(X.shape[0], dtype=np.int64)
    _over_rows(_count_missing_cells, X, out)
    return out


def row_ends(X: np.ndarray) -> np.ndarray:
    """Smallest and largest cell (2, n_rows) of every row; NaN where all cells are."""
    out = np.empty((2, X.shape[0]), dtype=X.dtype)
    _over_rows(_row_ends, X, out)
    return out


def column_ends(X: np.ndarray) -> np.ndarray:
    """Smallest and largest cell (2, n_features) of every column; NaN where all cells are."""
    blocks = row_blocks(X.shape[0], X.shape[1], BLOCK)
    out = np.full((len(blocks), 2, X.shape[1]), np.nan, dtype=X.dtype)
    parallel_map(
        lambda job: _column_ends((job[1].start, job[1].stop), X, out[job[0]]), enumerate(blocks)
    )
    return np.stack([np.fmin.reduce(out[:, 0]), np.fmax.reduce(out[:, 1])])


def _over_rows(kernel: Callable[..., None], X: np.ndarray, *arguments: np.ndarray) -> None:
    """``kernel((start, stop), X, ...)`` on blocks of rows, on all available threads."""
    blocks = row_blocks(X.shape[0], X.shape[1], BLOCK)
    parallel_map(lambda rows: kernel((rows.start, rows.stop), X, *arguments), blocks)


@jit()
def _row_ends(rows, X, out):  # type: ignore[no-untyped-def]
    for i in range(rows[0], rows[1]):
        low = high = np.nan
        for j in range(X.shape[1]):
            # Comparisons with NaN are false, so that the first number is taken and no NaN is.
            x = X[i, j]
            low = low if low <= x or x != x else x
            high = high if high >= x or x != x else x
        out[0, i] = low
        out[1, i] = high


@jit()
def _column_ends(rows, X, out):  # type: ignore[no-untyped-def]
    for i in range(rows[0], rows[1]):
        for j in range(X.shape[1]):
            x = X[i, j]
            out[0, j] = out[0, j] if out[0, j] <= x or x != x else x
            out[1, j] = out[1, j] if out[1, j] >= x or x != x else x


@jit()
def _hash_rows(rows, X, salts, out):  # type: ignore[no-untyped-def]
    cell = np.empty(1, dtype=np.float64)
    bits = cell.view(np.uint64)
    for i in range(rows[0], rows[1]):
        total = np.uint64(0)
        for j in range(X.shape[1]):
            # Adding zero turns -0.0, which equals 0.0, into it.
            cell[0] = X[i, j] + 0.0 if X[i, j] == X[i, j] else np.nan
            z = bits[0] * GOLDEN
            z = (z ^ (z >> _30)) * MIX_1
            z = (z ^ (z >> _27)) * MIX_2
            total += (z ^ (z >> _31)) * salts[j]
        out[i] = total


@jit()
def _count_missing_cells(rows, X, out):  # type: ignore[no-untyped-def]
    for i in range(rows[0], rows[1]):
        n_missing = 0
        for j in range(X.shape[1]):
            n_missing += X[i, j] != X[i, j]
        out[i] = n_missing
