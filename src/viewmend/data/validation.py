"""From user input to checked arrays; every input error is worded here or in `input_arrays`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from viewmend.data.container import MultiViewData
from viewmend.data.input_arrays import (
    as_mask,
    as_matrices,
    as_matrix,
    common_rows,
    is_one_array,
    named_arrays,
    some_of,
    split_columns,
    view_title,
    with_blank_rows,
)
from viewmend.data.magnitudes import as_kept, check_finite, check_seen, kept_dtype
from viewmend.exceptions import DataWarning, InvalidLabelsError, InvalidViewsError

# Warnings come from three calls below the public functions.
_STACKLEVEL = 4


def check_views(
    X: object,
    *,
    mask: ArrayLike | None = None,
    view_sizes: Sequence[int] | None = None,
    dtype: DTypeLike = np.float64,
) -> MultiViewData:
    """Views in any accepted form, as one checked container.

    A sample is missing from a view where its row is all NaN, False in ``mask`` or, with a
    `DataWarning`, all zero. NaN in other rows are missing cells, which stay for a ``fit`` to fill.
    The input is never modified.

    Parameters
    ----------
    X : list or dict of arrays (n_samples, n_features_v), MultiViewData, or one 2-D array
        Sparse matrices are made dense. Rows given as plain nested lists are one 2-D array. What a
        MultiViewData holds beside its views stays with them.
    mask : array (n_samples, n_views) of bool, optional
        False marks a missing sample, whose row is then ignored.
    view_sizes : sequence of int, optional
        Columns of every view inside one 2-D array; without it the array is a single view.
    dtype : floating dtype
        Of the views in the result; float64 where float32 would lose what tells rows apart, see
        `viewmend.data.magnitudes.kept_dtype`.

    Raises
    ------
    InvalidViewsError
        If the views cannot be used as they are.
    """
    if is_one_array(X):
        matrix = as_matrix(X, "X")
        given = split_columns(matrix, (matrix.shape[1],) if view_sizes is None else view_sizes)
    else:
        given = named_arrays(X, view_sizes)
    checked = _assemble(as_matrices(given), mask)
    for name, view, seen in zip(checked.names, checked.views, checked.observed.T, strict=True):
        check_seen(view, seen, view_title(name))
    kept = tuple(view.astype(kept_dtype(view, dtype), copy=False) for view in checked.views)
    return _with_the_rest(X, replace(checked, views=kept))


def check_complete_data(X: object, y: ArrayLike | None) -> MultiViewData:
    """Data to hide parts of: every sample in every view, and a class for each.

    Values must be finite and classes non-negative integers; rows of zeros are kept as they are.
    The result has float64 views, which may share memory with the input, and int64 labels.
    """
    views = as_matrices(named_arrays(X, None), np.float64)
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
    checked = _with_the_rest(X, MultiViewData(tuple(views.values()), observed, tuple(views)))
    return replace(checked, y=_check_class_numbers(y, n_samples))


def _with_the_rest(X: object, checked: MultiViewData) -> MultiViewData:
    """Checked views, with what a MultiViewData that they came from holds beside its views."""
    if not isinstance(X, MultiViewData):
        return checked
    return replace(X, views=checked.views, observed=checked.observed)


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
    *,
    mask: ArrayLike | None,
    view_sizes: Sequence[int] | None,
    names: Sequence[str],
    n_features: Sequence[int],
    dtypes: Sequence[DTypeLike] | None = None,
) -> MultiViewData:
    """Views for prediction, which must fit those seen in ``fit``: its ``names`` and widths.

    As `check_views`, but a view may be missing from all samples: None in place of its array, or
    left out of a dict. A dict is put in the order of ``names``, and so is a `MultiViewData` with
    the same names; columns of ``mask`` always follow ``names``. One 2-D array is split into blocks
    of ``n_features`` columns. ``dtypes`` are those of the views in the result, by default float64.
    """
    if is_one_array(X):
        matrix = as_matrix(X, "X")
        if matrix.shape[1] != sum(n_features):
            msg = (
                f"X has {matrix.shape[1]} features, but predict is expecting {sum(n_features)} "
                f"features as input, views of {tuple(n_features)} columns; pass the columns of fit"
            )
            raise InvalidViewsError(msg)
        given = split_columns(matrix, n_features)
    else:
        given = named_arrays(X, view_sizes)
    same_names = isinstance(X, MultiViewData) and set(given) == set(names)
    match = _match_names if isinstance(X, Mapping) or same_names else _match_positions
    by_name = zip(names, match(given, names), strict=True)
    given_views = as_matrices({name: view for name, view in by_name if view is not None})
    n_samples = common_rows(given_views)
    views = {}
    for name, columns in zip(names, n_features, strict=True):
        views[name] = given_views.get(name, np.full((n_samples, columns), np.nan))
        if views[name].shape[1] != columns:
            msg = (
                f"{view_title(name)} has {views[name].shape[1]} columns but had {columns} in fit; "
                f"pass the columns of fit in the same order"
            )
            raise InvalidViewsError(msg)
    checked = _assemble(views, mask)
    kept = zip(checked.names, checked.views, dtypes or [np.float64] * len(views), strict=True)
    return replace(checked, views=tuple(as_kept(view, d, view_title(n)) for n, view, d in kept))


def _match_names(given: dict[str, object], names: Sequence[str]) -> list[object]:
    unknown = [name for name in given if name not in names]
    if unknown:
        msg = (
            f"unknown view {some_of([repr(name) for name in unknown])}: fit saw the views "
            f"{list(names)}; use these names, and leave out views that are missing"
        )
        raise InvalidViewsError(msg)
    return [given.get(name) for name in names]


def _match_positions(given: dict[str, object], names: Sequence[str]) -> list[object]:
    if len(given) != len(names):
        msg = (
            f"X has {len(given)} views, but fit saw {len(names)} ({some_of(names)}); pass them all "
            f"in the same order, with None for a view that is missing"
        )
        raise InvalidViewsError(msg)
    return list(given.values())


def _assemble(views: dict[str, np.ndarray], mask: ArrayLike | None) -> MultiViewData:
    """Find, check and blank the missing rows."""
    observed = as_mask(mask, (common_rows(views), len(views)))
    zero = np.zeros_like(observed)
    for v, (name, view) in enumerate(views.items()):
        observed[:, v] &= ~np.isnan(view).all(axis=1)
        zero[:, v] = _zero_rows(view, observed[:, v], view_title(name))
    observed &= ~zero
    _check_every_sample_seen(observed, zero)
    blanked = tuple(with_blank_rows(view, ~observed[:, v]) for v, view in enumerate(views.values()))
    return MultiViewData(blanked, observed, tuple(views))


def _zero_rows(view: np.ndarray, observed: np.ndarray, title: str) -> np.ndarray:
    """All-zero rows among the observed ones, which must be finite but for missing cells."""
    check_finite(view, observed, title)
    zero = observed & ~view.any(axis=1)
    if zero.any():
        # Of no direction, such a row would be the nearest neighbour of almost every sparse one.
        rows = np.flatnonzero(zero)
        msg = (
            f"{title} has {len(rows)} all-zero row(s) (rows {some_of(rows)}), which are treated as "
            f"missing; set them to NaN to say so, or add a constant column to keep them"
        )
        warnings.warn(msg, DataWarning, stacklevel=_STACKLEVEL)
    return zero


def _check_every_sample_seen(observed: np.ndarray, zero: np.ndarray) -> None:
    unseen = ~observed.any(axis=1)
    if not unseen.any():
        return
    rows = np.flatnonzero(unseen)
    emptied = np.flatnonzero(unseen & zero.any(axis=1))
    cause = f", {len(emptied)} of them for all-zero rows ({some_of(emptied)})"
    msg = (
        f"{len(rows)} sample(s) have no view at all (samples {some_of(rows)})"
        f"{cause if len(emptied) else ''}; every sample needs at least one observed row: drop "
        f"these samples"
    )
    raise InvalidViewsError(msg)
