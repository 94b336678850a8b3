"""Checks of sparse matrices, which compiled code follows wherever their indices point."""

from __future__ import annotations

from typing import Any

import numpy as np

from viewmend.exceptions import InvalidViewsError

# Rows (0) or columns (1) that the starts of a format count.
COMPRESSED = {"csr": 0, "bsr": 0, "csc": 1}


def check_sparse(matrix: Any, title: str) -> None:
    """Refuse a SciPy matrix whose indices lie outside of it, before anything follows them.

    SciPy's own check passes over starts that are wrong where nothing is stored in all.
    """
    if matrix.format == "coo":
        for indices, size in zip(matrix.coords, matrix.shape, strict=True):
            _check_indices(np.asarray(indices), size, len(matrix.data), title)
    elif matrix.format in COMPRESSED:
        blocks = getattr(matrix, "blocksize", (1, 1))
        lines, width = (n // size for n, size in zip(matrix.shape, blocks, strict=True))
        if COMPRESSED[matrix.format] == 1:
            lines, width = width, lines
        check_compressed(matrix.indptr, matrix.indices, len(matrix.data), (lines, width), title)


def check_compressed(
    starts: Any, indices: Any, n_values: int, shape: tuple[int, int], title: str
) -> None:
    """Refuse starts (n_lines + 1,) and indices (n_values,) that lead out of a matrix.

    ``shape`` is (lines, entries of a line): rows and columns, or the other way round.
    """
    starts, indices = np.asarray(starts), np.asarray(indices)
    if starts.dtype.kind not in "iu" or starts.shape != (shape[0] + 1,):
        raise _wrong(title, f"{starts.dtype} starts of shape {starts.shape} for {shape[0]} lines")
    if starts[0] != 0 or np.any(starts[1:] < starts[:-1]):
        raise _wrong(title, "starts that do not ascend from 0")
    if starts[-1] > n_values:
        raise _wrong(title, f"starts up to {starts[-1]} for {n_values} values")
    if indices.shape != (n_values,):
        raise _wrong(title, f"indices of shape {indices.shape} for {n_values} values")
    # What lies behind the last line is not used.
    _check_indices(indices[: starts[-1]], shape[1], int(starts[-1]), title)


def _check_indices(indices: np.ndarray, size: int, n_values: int, title: str) -> None:
    if indices.dtype.kind not in "iu" or indices.shape != (n_values,):
        raise _wrong(title, f"{indices.dtype} indices of {indices.shape} for {n_values} values")
    if n_values and (indices.min() < 0 or indices.max() >= size):
        raise _wrong(title, f"indices {indices.min()} to {indices.max()} for a size of {size}")


def _wrong(title: str, reason: str) -> InvalidViewsError:
    msg = f"{title} is a sparse matrix that contradicts itself: it has {reason}; build it again"
    return InvalidViewsError(msg)
