"""From user input to checked arrays; every input error is worded here or in `input_arrays`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from viewmend.backend.numba_scans import count_missing_cells
from viewmend.data.container import MultiViewData
from viewmend.data.indices import check_same_rows, identifying, index_of
from viewmend.data.input_arrays import (
    as_mask,
    as_matrices,
    common_rows,
    some_of,
    view_title,
    with_blank_rows,
)
from viewmend.data.magnitudes import as_kept, check_finite, check_seen, kept_dtype
from viewmend.data.matching import ViewsOfFit, all_views, in_layout_of_fit
from viewmend.data.opening import opened, views_in
from viewmend.data.sparse import row_extremes
from viewmend.exceptions import DataWarning, InvalidLabelsError, InvalidViewsError

# Warnings come from three calls below the public functions.
_STACKLEVEL = 4


def check_views(
    X: object,
    *,
    mask: ArrayLike | None = None,
    view_sizes: Sequence[int] | None = None,
    dtype: DTypeLike = np.float64,
    dense_columns: int | None = None,
) -> MultiViewData:
    """Check views in any accepted form, and return them as one container.

    A sample does not have a view if its row is all NaN, or False in ``mask``; a row of zeros is
    data. NaN in other rows are missing cells, which ``fit`` fills later. Some samples may lack all
    views. The input is never modified.

    Parameters
    ----------
    X : list or dict of arrays (n_samples, n_features_v), MultiViewData, or one 2-D array
        The views. Arrays may be anything that NumPy can read, pandas and polars frames, sparse
        matrices, which become dense, and tensors. Plain nested lists of rows are one 2-D array.
        Every modality of a MuData is a view, and every numeric matrix in ``obsm`` of an AnnData, or
        ``X`` if there is none. Identifiers, labels and column names of a MultiViewData are kept,
        and so are the column names of frames and their index, unless it just counts rows.
    mask : array (n_samples, n_views) of bool, optional
        False where a sample does not have a view; its row is then ignored.
    view_sizes : sequence of int, optional
        Number of columns of every view in one 2-D array; without it the array is a single view.
    dtype : floating dtype
        Number type of the views in the result; float64 if float32 would lose too many digits, see
        `viewmend.data.magnitudes.kept_dtype`.
    dense_columns : int, optional
        Sparse views with more columns stay sparse (CSR), with empty rows for missing ones.

    Returns
    -------
    MultiViewData

    Raises
    ------
    InvalidViewsError
        If the views cannot be used as they are.
    """
    given = views_in(X, view_sizes)
    arrays = as_matrices(given.arrays, dense_columns=dense_columns)
    checked = _assemble(arrays, given.mask(mask))
    for name, view, seen in zip(checked.names, checked.views, checked.observed.T, strict=True):
        check_seen(row_extremes(view), seen, view_title(name))
    kept = tuple(view.astype(kept_dtype(view, dtype), copy=False) for view in checked.views)
    return given.described(replace(checked, views=kept))


def check_complete_data(X: object, y: ArrayLike | None) -> MultiViewData:
    """Data to hide parts of: every sample in every view, and a class for each.

    Values must be finite and classes non-negative integers; rows of zeros are kept as they are.
    The result has float64 views, which may share memory with the input, and int64 labels.
    """
    given = views_in(X)
    views = as_matrices(given.arrays, np.float64)
    n_samples = common_rows(views)
    for key, view in views.items():
        n_bad = np.count_nonzero(~np.isfinite(view))
        if n_bad:
            msg = (
                f"{view_title(key)} must be complete but {n_bad} of its values are NaN or infinite;"
                " fill or remove these first: only whole rows are hidden, and only from complete "
                "data"
            )
            raise InvalidViewsError(msg)
    observed = np.ones((n_samples, len(views)), dtype=bool)
    checked = given.described(MultiViewData(tuple(views.values()), observed, tuple(views)))
    check_same_rows(index_of(y), given.rows, "y", InvalidLabelsError)
    return replace(checked, y=_check_class_numbers(y, n_samples))


def _check_class_numbers(y: ArrayLike | None, n_samples: int) -> np.ndarray:
    """One non-negative integer per sample, (n_samples,) of int64."""
    classes = np.asarray(y)
    if classes.dtype.kind not in "iu":
        msg = (
            f"y must hold integers but has dtype {classes.dtype}; "
            "number the classes with np.unique(y, return_inverse=True)[1]"
        )
        raise InvalidLabelsError(msg)
    if classes.shape != (n_samples,):
        msg = (
            f"y must have one label per row, shape ({n_samples},), but has shape {classes.shape}; "
            "pass the true labels of all samples as a 1-D array"
        )
        raise InvalidLabelsError(msg)
    if classes.min() < 0:
        msg = (
            f"y must be non-negative but holds {classes.min()}; a negative number marks a sample "
            "without label, so give every sample its true class, numbered from 0"
        )
        raise InvalidLabelsError(msg)
    return classes.astype(np.int64)


def check_new_views(
    X: object,
    fit: ViewsOfFit,
    *,
    mask: ArrayLike | None = None,
    view_sizes: Sequence[int] | None = None,
    dtypes: Sequence[DTypeLike] | None = None,
    dense_columns: int | None = None,
) -> MultiViewData:
    """Views for prediction, which must be those that ``fit`` saw, in names and widths.

    As `check_views`, but a view may be missing from all samples: None in place of its array, or
    left out of a dict. A dict is put in the order of fit, and so is a `MultiViewData` whose views
    have names; columns of ``mask`` always follow that order, unless it is a frame. One 2-D array is
    split as in fit. Columns with names are put in the order of those of fit, and others refused.
    ``dtypes`` are those of the views in the result, by default float64; ``dense_columns`` as in
    `check_views`.
    """
    given = in_layout_of_fit(opened(X, view_sizes), fit)
    present = {name: array for name, array in given.arrays.items() if array is not None}
    views = all_views(as_matrices(present, dense_columns=dense_columns), fit)
    checked = _assemble(views, given.mask(mask))
    kept = zip(checked.names, checked.views, dtypes or [np.float64] * len(views), strict=True)
    return replace(
        checked,
        views=tuple(as_kept(view, d, view_title(n)) for n, view, d in kept),
        ids=identifying(given.rows),
        columns=given.all_columns(checked),
    )


def _assemble(views: dict[str, Any], mask: ArrayLike | None) -> MultiViewData:
    """Find, check and blank the missing rows."""
    observed = as_mask(mask, (common_rows(views), len(views)))
    for v, (name, view) in enumerate(views.items()):
        rows = row_extremes(view)
        observed[:, v] &= count_missing_cells(rows) < rows.shape[1]
        check_finite(rows, observed[:, v], view_title(name))
    blanked = tuple(with_blank_rows(view, ~observed[:, v]) for v, view in enumerate(views.values()))
    return MultiViewData(blanked, observed, tuple(views))


def without_zero_rows(data: MultiViewData, why: str) -> MultiViewData:
    """The data with rows of zeros marked missing, which a `DataWarning` counts by view.

    For data and methods in which a row of zeros stands for a missing one; ``why`` names them.
    """
    observed = data.observed.copy()
    for v, (name, view) in enumerate(zip(data.names, data.views, strict=True)):
        zero = np.flatnonzero(observed[:, v] & ~view.any(axis=1))
        observed[zero, v] = False
        if len(zero):
            msg = (
                f"{view_title(name)} has {len(zero)} all-zero row(s) (rows {some_of(zero)}), which "
                f"count as missing {why}"
            )
            warnings.warn(msg, DataWarning, stacklevel=_STACKLEVEL)
    seen = zip(data.views, observed.T, strict=True)
    return replace(data, views=tuple(with_blank_rows(v, ~s) for v, s in seen), observed=observed)
