"""Sparse views: checks of their indices, which compiled code follows, and rows that stay sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from viewmend.exceptions import InvalidViewsError
from viewmend.memory import check_memory

# Columns up to which a sparse view is made dense: its rows are then compared in full.
DENSE_COLUMNS = 4096
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


def as_dense_array(matrix: Any, title: str) -> np.ndarray:
    """All cells of a checked sparse matrix, unless they would fill the memory."""
    check_sparse(matrix, title)
    n_rows, n_columns = matrix.shape
    check_memory(
        8.0 * n_rows * n_columns,
        title,
        f"as a dense array of {n_rows} x {n_columns}",
        "reduce its columns with sklearn.decomposition.TruncatedSVD, or use MendClassifier, which "
        "compares components of wide sparse views",
    )
    return np.asarray(matrix.toarray())


def as_csr(matrix: Any, title: str) -> csr_array:
    """A checked sparse matrix by rows, in float64, each entry stored once and in order.

    A row is missing where every cell of it is NaN; NaN in some cells is refused.
    """
    check_sparse(matrix, title)
    rows = csr_array(matrix, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    broken = np.isnan(row_extremes(rows))
    n_broken = int(np.sum(broken.any(axis=1) & ~broken.all(axis=1)))
    if n_broken:
        msg = (
            f"{title} is sparse and has NaN in some cells of {n_broken} row(s), expected numbers "
            f"or rows of NaN alone; drop these entries, which makes them zero, or fill them"
        )
        raise InvalidViewsError(msg)
    return rows


def row_extremes(view: np.ndarray | csr_array) -> np.ndarray:
    """What checks of rows look at: a dense view itself, of a sparse one its extremes by row.

    These (n_rows, 2) are all NaN, partly NaN, infinite or zero where the row is.
    """
    if isinstance(view, np.ndarray):
        return view
    extremes = np.stack([view.max(axis=1).toarray(), view.min(axis=1).toarray()], axis=1)
    missing = np.isnan(view.data)
    n_missing = np.bincount(np.repeat(np.arange(view.shape[0]), np.diff(view.indptr))[missing])
    n_missing = np.pad(n_missing, (0, view.shape[0] - len(n_missing)))
    extremes[n_missing > 0] = np.nan
    extremes[(n_missing > 0) & (n_missing < view.shape[1]), 1] = 0
    return extremes


def with_empty_rows(view: csr_array, missing: np.ndarray) -> csr_array:
    """A sparse view without the entries of the missing rows, (n_rows,) of bool."""
    kept = ~np.repeat(missing, np.diff(view.indptr))
    ends = np.concatenate([[0], np.cumsum(kept)])[view.indptr]
    return csr_array((view.data[kept], view.indices[kept], ends), shape=view.shape)
