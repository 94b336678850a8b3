"""From user input to checked arrays; every input error is worded here."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, DTypeLike

from viewmend.containers import MultiViewData
from viewmend.exceptions import DataWarning, InvalidViewsError
from viewmend.parameters import Each, Integer

__all__ = ["check_new_views", "check_views"]

_SIZES = Each(Integer(1))
# Warnings come from three calls below the public functions.
_STACKLEVEL = 4


class _NonNumericViewsError(InvalidViewsError, TypeError):
    """Also a TypeError, which scikit-learn expects of an estimator fed with objects."""


def check_views(
    X: object,
    *,
    mask: ArrayLike | None = None,
    view_sizes: Sequence[int] | None = None,
    dtype: DTypeLike = np.float64,
) -> MultiViewData:
    """Views in any accepted form, as one checked container.

    A sample is missing from a view where its row is all NaN, False in ``mask`` or, with a
    `DataWarning`, all zero. The input is never modified.

    Parameters
    ----------
    X : list or dict of arrays (n_samples, n_features_v), MultiViewData, or one 2-D array
        Sparse matrices are made dense. Rows given as plain nested lists are one 2-D array.
    mask : array (n_samples, n_views) of bool, optional
        False marks a missing sample, whose row is then ignored.
    view_sizes : sequence of int, optional
        Columns of every view inside one 2-D array; without it the array is a single view.
    dtype : floating dtype
        Of the views in the result.

    Raises
    ------
    InvalidViewsError
        If the views cannot be used as they are.
    """
    if _is_one_array(X):
        matrix = _as_matrix(X, "X", dtype)
        given = _split(matrix, (matrix.shape[1],) if view_sizes is None else view_sizes)
    else:
        given = _named_arrays(X, view_sizes)
    views = {name: _as_matrix(array, _title(name), dtype) for name, array in given.items()}
    return _assemble(views, mask, every_view=True)


def check_new_views(
    X: object,
    *,
    mask: ArrayLike | None,
    view_sizes: Sequence[int] | None,
    names: Sequence[str],
    n_features: Sequence[int],
    dtype: DTypeLike = np.float64,
) -> MultiViewData:
    """Views for prediction, which must fit those seen in ``fit``.

    As `check_views`, but a view may be missing from all samples: None in place of its array, or
    left out of a dict. A dict is put in the order of ``names``, and so is a `MultiViewData` with
    the same names; columns of ``mask`` always follow ``names``.

    Parameters
    ----------
    X, mask, view_sizes, dtype
        As in `check_views`; one 2-D array is split into blocks of ``n_features`` columns.
    names : sequence of str (n_views,)
        Names of the views in ``fit``.
    n_features : sequence of int (n_views,)
        Columns of the views in ``fit``.
    """
    if _is_one_array(X):
        matrix = _as_matrix(X, "X", dtype)
        if matrix.shape[1] != sum(n_features):
            msg = (
                f"X has {matrix.shape[1]} features, but predict is expecting {sum(n_features)} "
                f"features as input, views of {tuple(n_features)} columns; pass the columns of fit"
            )
            raise InvalidViewsError(msg)
        given = _split(matrix, n_features)
    else:
        given = _named_arrays(X, view_sizes)
    same_names = isinstance(X, MultiViewData) and set(given) == set(names)
    match = _match_names if isinstance(X, Mapping) or same_names else _match_positions
    found = {
        name: _as_matrix(array, _title(name), dtype)
        for name, array in zip(names, match(given, names), strict=True)
        if array is not None
    }
    n_samples = _common_rows(found)
    views = {}
    for name, columns in zip(names, n_features, strict=True):
        views[name] = found.get(name, np.full((n_samples, columns), np.nan, dtype))
        if views[name].shape[1] != columns:
            msg = (
                f"{_title(name)} has {views[name].shape[1]} columns but had {columns} in fit; "
                f"pass the columns of fit in the same order"
            )
            raise InvalidViewsError(msg)
    return _assemble(views, mask, every_view=False)


def _is_one_array(X: object) -> bool:
    """Tell whether ``X`` is one array rather than a collection of views."""
    if not isinstance(X, (list, tuple)):
        return not isinstance(X, (Mapping, MultiViewData))
    # Rows of plain numbers, as in ``array.tolist()``, can only be one array.
    nested = (list, tuple, np.ndarray)
    return (
        bool(X) and isinstance(X[0], (list, tuple)) and not any(isinstance(x, nested) for x in X[0])
    )


def _title(name: str) -> str:
    return name if name.startswith("view ") else f"view {name!r}"


def _some(values: np.ndarray | Sequence[object], limit: int = 5) -> str:
    """The first few values, for messages."""
    shown = ", ".join(str(value) for value in values[:limit])
    return shown + ", ..." if len(values) > limit else shown


def _split(matrix: np.ndarray, view_sizes: Sequence[int]) -> dict[str, object]:
    """Blocks of ``view_sizes`` columns under their default names."""
    sizes = view_sizes.tolist() if isinstance(view_sizes, np.ndarray) else view_sizes
    if not _SIZES.accepts(sizes):
        msg = f"view_sizes must be {_SIZES.expected}, got {view_sizes!r}; list the columns per view"
        raise InvalidViewsError(msg)
    if sum(sizes) != matrix.shape[1]:
        msg = (
            f"view_sizes={tuple(sizes)} must sum to the number of columns, but sums to "
            f"{sum(sizes)} and X has {matrix.shape[1]}; list the columns of every view"
        )
        raise InvalidViewsError(msg)
    blocks = np.split(matrix, np.cumsum(sizes)[:-1], axis=1)
    return {f"view {v}": block for v, block in enumerate(blocks)}


def _named_arrays(X: Any, view_sizes: Sequence[int] | None) -> dict[str, object]:
    """The entries of a collection of views, by name and not yet checked."""
    if view_sizes is not None:
        msg = (
            f"view_sizes={view_sizes!r} splits one 2-D array, but X is a {type(X).__name__} with "
            f"its own views; leave view_sizes out or pass one array"
        )
        raise InvalidViewsError(msg)
    if isinstance(X, MultiViewData):
        arrays = [_blank(view, ~X.observed[:, v]) for v, view in enumerate(X.views)]
        named = list(zip(X.names, arrays, strict=True))
    elif isinstance(X, Mapping):
        named = [(str(key), array) for key, array in X.items()]
    else:
        named = [(f"view {v}", array) for v, array in enumerate(X)]
    if not named:
        msg = f"no views: expected at least one array, got an empty {type(X).__name__}; pass a view"
        raise InvalidViewsError(msg)
    names = [name for name, _ in named]
    if len(set(names)) < len(names):
        msg = f"two views have the same name, got names {names}; give every view its own name"
        raise InvalidViewsError(msg)
    _check_same_index(named)
    return dict(named)


def _check_same_index(named: Sequence[tuple[str, Any]]) -> None:
    """Frames whose rows are other samples, or stand in another order, must not pass as aligned."""
    # Told by what pandas frames have and lists, which have a method `index`, do not.
    frames = [(name, frame.index) for name, frame in named if hasattr(frame, "reindex")]
    for name, index in frames[1:]:
        if not index.equals(frames[0][1]):
            msg = (
                f"{_title(name)} and {_title(frames[0][0])} are frames with different row indices; "
                f"align them first, as in frame.reindex(all_ids), which fills missing rows with NaN"
            )
            raise InvalidViewsError(msg)


def _match_names(given: dict[str, object], names: Sequence[str]) -> list[object]:
    unknown = [name for name in given if name not in names]
    if unknown:
        msg = (
            f"unknown view {_some([repr(name) for name in unknown])}: fit saw the views "
            f"{list(names)}; use these names, and leave out views that are missing"
        )
        raise InvalidViewsError(msg)
    return [given.get(name) for name in names]


def _match_positions(given: dict[str, object], names: Sequence[str]) -> list[object]:
    if len(given) != len(names):
        msg = (
            f"X has {len(given)} views, but fit saw {len(names)} ({_some(names)}); pass them all "
            f"in the same order, with None for a view that is missing"
        )
        raise InvalidViewsError(msg)
    return list(given.values())


def _as_matrix(raw: object, title: str, dtype: DTypeLike) -> np.ndarray:
    """One view as a C-contiguous float array; the input itself where it already is one."""
    if raw is None:
        msg = (
            f"{title} is None, so it has no observed sample; expected an array "
            f"(n_samples, n_features): leave the view out or pass its rows"
        )
        raise InvalidViewsError(msg)
    array = _as_dense(raw, title)
    if array.ndim != 2:
        msg = (
            f"{title} must be 2-D (n_samples, n_features), got {array.ndim}-D of shape "
            f"{array.shape}. Reshape your data, with reshape(-1, 1) if it is a single feature"
        )
        raise InvalidViewsError(msg)
    if array.shape[1] == 0:
        msg = (
            f"{title} has 0 feature(s) (shape={array.shape}) while a minimum of 1 is required; "
            f"leave the view out"
        )
        raise InvalidViewsError(msg)
    return np.ascontiguousarray(_as_floats(array, title, dtype))


def _as_dense(raw: Any, title: str) -> np.ndarray:
    if scipy.sparse.issparse(raw):
        raw = raw.toarray()
    if isinstance(raw, np.ma.MaskedArray):
        raw = np.ma.filled(raw.astype(object), np.nan)
    try:
        return np.asarray(raw)
    except ValueError as error:
        msg = f"{title} must be 2-D, got {error}; pass rows of equal length"
        raise InvalidViewsError(msg) from error


def _as_floats(array: np.ndarray, title: str, dtype: DTypeLike) -> np.ndarray:
    if array.dtype.kind == "c":
        msg = (
            f"Complex data not supported: {title} must be real, got dtype {array.dtype}; "
            f"pass the real and imaginary parts as columns"
        )
        raise InvalidViewsError(msg)
    try:
        return _cast(array, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        msg = (
            f"{title} must be numeric, got dtype {array.dtype} ({error}); encode its columns as "
            f"numbers, for example with sklearn.preprocessing.OneHotEncoder"
        )
        raise _NonNumericViewsError(msg) from error


def _cast(array: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    if array.dtype.kind in "mM":
        # NumPy would count days or nanoseconds since 1970 without a word.
        msg = "dates and durations need a unit"
        raise TypeError(msg)
    if array.dtype.kind == "O":
        array = np.where(_is_na(array), np.nan, array)
    # Values too large for float32 become infinite and are reported as such.
    with np.errstate(over="ignore"):
        return array.astype(dtype, copy=False)


def _is_na(array: np.ndarray) -> np.ndarray:
    """True at ``pandas.NA``, told by the name of its type so that pandas need not be there."""
    is_na = np.frompyfunc(lambda value: type(value).__name__ == "NAType", 1, 1)
    return np.asarray(is_na(array), dtype=bool)


def _common_rows(views: dict[str, np.ndarray]) -> int:
    """Number of samples, the same in all views and not zero."""
    if not views:
        msg = "no views: expected at least one array, got None for every view; pass a view"
        raise InvalidViewsError(msg)
    (first, n_samples), *others = [(_title(name), len(view)) for name, view in views.items()]
    for title, rows in others:
        if rows != n_samples:
            msg = (
                f"{title} has {rows} rows but {first} has {n_samples}; pass all views with the "
                f"same samples and fill the rows of missing ones with NaN"
            )
            raise InvalidViewsError(msg)
    if n_samples == 0:
        msg = f"{first} has 0 samples, expected at least 1; pass some rows"
        raise InvalidViewsError(msg)
    return n_samples


def _assemble(
    views: dict[str, np.ndarray], mask: ArrayLike | None, *, every_view: bool
) -> MultiViewData:
    """Find, check and blank the missing rows; ``every_view`` wants some rows in each."""
    observed = _as_mask(mask, (_common_rows(views), len(views)))
    zero = np.zeros_like(observed)
    for v, (name, view) in enumerate(views.items()):
        observed[:, v] &= ~np.isnan(view).all(axis=1)
        zero[:, v] = _zero_rows(view, observed[:, v], _title(name))
    observed &= ~zero
    if every_view:
        _check_every_view_seen(observed, tuple(views))
    _check_every_sample_seen(observed, zero)
    blanked = tuple(_blank(view, ~observed[:, v]) for v, view in enumerate(views.values()))
    return MultiViewData(blanked, observed, tuple(views))


def _as_mask(mask: ArrayLike | None, shape: tuple[int, int]) -> np.ndarray:
    if mask is None:
        return np.ones(shape, dtype=bool)
    array = np.array(mask)
    if array.dtype != bool or array.shape != shape:
        msg = (
            f"mask must be bool of shape {shape} (n_samples, n_views), got {array.dtype} of shape "
            f"{array.shape}; pass True where a sample was observed, as np.asarray(mask, dtype=bool)"
        )
        raise InvalidViewsError(msg)
    return array


def _zero_rows(view: np.ndarray, observed: np.ndarray, title: str) -> np.ndarray:
    """All-zero rows among the observed ones, which must be complete and finite."""
    broken = np.flatnonzero(observed & np.isnan(view).any(axis=1))
    if len(broken):
        msg = (
            f"{title} has {len(broken)} partly NaN row(s) (rows {_some(broken)}), expected "
            f"complete or all-NaN rows; impute the features first, or mark the rows missing in mask"
        )
        raise InvalidViewsError(msg)
    infinite = np.flatnonzero(observed & np.isinf(view).any(axis=1))
    if len(infinite):
        msg = (
            f"{title} has infinite values in {len(infinite)} row(s) (rows {_some(infinite)}), "
            f"expected finite {view.dtype} values; clip or rescale them, or mark the rows missing"
        )
        raise InvalidViewsError(msg)
    zero = observed & ~view.any(axis=1)
    if zero.any():
        # Of no direction, such a row would be the nearest neighbour of almost every sparse one.
        rows = np.flatnonzero(zero)
        msg = (
            f"{title} has {len(rows)} all-zero row(s) (rows {_some(rows)}), which are treated as "
            f"missing; set them to NaN to say so, or add a constant column to keep them"
        )
        warnings.warn(msg, DataWarning, stacklevel=_STACKLEVEL)
    return zero


def _check_every_view_seen(observed: np.ndarray, names: Sequence[str]) -> None:
    for v, name in enumerate(names):
        if not observed[:, v].any():
            msg = (
                f"{_title(name)} has no observed sample: expected at least one row that is neither "
                f"NaN, masked nor all zero, got {len(observed)} missing rows; leave the view out"
            )
            raise InvalidViewsError(msg)


def _check_every_sample_seen(observed: np.ndarray, zero: np.ndarray) -> None:
    unseen = ~observed.any(axis=1)
    if not unseen.any():
        return
    lost = np.flatnonzero(unseen)
    emptied = np.flatnonzero(unseen & zero.any(axis=1))
    cause = f", {len(emptied)} of them for all-zero rows ({_some(emptied)})" if len(emptied) else ""
    msg = (
        f"{len(lost)} sample(s) have no view at all (samples {_some(lost)}){cause}; every sample "
        f"needs at least one observed row: drop these samples"
    )
    raise InvalidViewsError(msg)


def _blank(view: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """``view`` with NaN in the missing rows, copied only if that changes it."""
    if np.isnan(view[missing]).all():
        return view
    return np.where(missing[:, None], np.nan, view)
