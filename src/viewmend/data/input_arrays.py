"""Views as matrices of numbers, whatever form they come in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, DTypeLike

from viewmend.data.container import MultiViewData
from viewmend.data.sparse import as_csr, as_dense_array, check_sparse, with_empty_rows
from viewmend.exceptions import InvalidViewsError
from viewmend.parameters import Each, Integer

_SIZES = Each(Integer(1))


class _NonNumericViewsError(InvalidViewsError, TypeError):
    """Also a TypeError, which scikit-learn expects of an estimator fed with objects."""


def is_one_array(X: object) -> bool:
    """Tell whether ``X`` is one array rather than a collection of views."""
    if not isinstance(X, (list, tuple)):
        return not isinstance(X, (Mapping, MultiViewData))
    # Rows of plain numbers, as in ``array.tolist()``, can only be one array.
    nested = (list, tuple, np.ndarray)
    return (
        bool(X) and isinstance(X[0], (list, tuple)) and not any(isinstance(x, nested) for x in X[0])
    )


def view_title(name: str) -> str:
    """What messages call a view."""
    return name if name.startswith("view ") else f"view {name!r}"


def some_of(values: np.ndarray | Sequence[object], limit: int = 5) -> str:
    """The first few values, for messages."""
    shown = ", ".join(str(value) for value in values[:limit])
    return shown + ", ..." if len(values) > limit else shown


def split_columns(matrix: Any, view_sizes: Sequence[int]) -> dict[str, object]:
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
    ends = np.cumsum(sizes)
    return {f"view {v}": matrix[:, end - sizes[v] : end] for v, end in enumerate(ends)}


def as_table(X: object, title: str = "X") -> Any:
    """One array `as_matrix`, or by rows if it is sparse: some of its blocks may stay so."""
    if not scipy.sparse.issparse(X) or width(X, title) == 0:
        return as_matrix(X, title)
    check_sparse(X, title)
    return scipy.sparse.csr_array(X)


def named_arrays(X: Any, view_sizes: Sequence[int] | None) -> dict[str, object]:
    """The entries of a collection of views, by name and not yet checked."""
    # What an imputer makes of a stacked array knows its views already.
    if view_sizes is not None and not (
        isinstance(X, MultiViewData) and np.array_equal(X.n_features, view_sizes)
    ):
        msg = (
            f"view_sizes={view_sizes!r} splits one 2-D array, but X is a {type(X).__name__} with "
            f"its own views; leave view_sizes out or pass one array"
        )
        raise InvalidViewsError(msg)
    if isinstance(X, MultiViewData):
        arrays = [with_blank_rows(view, ~X.observed[:, v]) for v, view in enumerate(X.views)]
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
                f"{view_title(name)} and {view_title(frames[0][0])} are frames with different row "
                f"indices; align them first, as in frame.reindex(all_ids), which fills missing "
                f"rows with NaN"
            )
            raise InvalidViewsError(msg)


def as_matrices(
    given: Mapping[str, object], dtype: DTypeLike | None = None, dense_columns: int | None = None
) -> dict[str, Any]:
    """Every view `as_matrix`, by name; sparse ones of more than ``dense_columns`` as they are."""

    def read(array: Any, title: str) -> Any:
        if dense_columns is None or not scipy.sparse.issparse(array):
            return as_matrix(array, title, dtype)
        wide = width(array, title) > dense_columns
        return as_csr(array, title) if wide else as_matrix(array, title, dtype)

    return {name: read(array, view_title(name)) for name, array in given.items()}


def as_matrix(raw: object, title: str, dtype: DTypeLike | None = None) -> np.ndarray:
    """One view as a C-contiguous float array; the input itself where it already is one.

    Without a ``dtype``, float32 stays what it is, and all other numbers become float64.
    """
    if raw is None:
        msg = (
            f"{title} is None, so it has no observed sample; expected an array "
            f"(n_samples, n_features): leave the view out or pass its rows"
        )
        raise InvalidViewsError(msg)
    array = as_dense(raw, title)
    if width(array, title) == 0:
        msg = (
            f"{title} has 0 feature(s) (shape={array.shape}) while a minimum of 1 is required; "
            f"leave the view out"
        )
        raise InvalidViewsError(msg)
    if dtype is None:
        dtype = np.float32 if array.dtype == np.float32 else np.float64
    return np.ascontiguousarray(_as_floats(array, title, dtype))


def width(array: Any, title: str) -> int:
    """Number of columns; an array that is not 2-D is refused."""
    shape = tuple(np.shape(array))
    if len(shape) != 2:
        msg = (
            f"{title} must be 2-D (n_samples, n_features), got {len(shape)}-D of shape {shape}. "
            f"Reshape your data, with reshape(-1, 1) if it is a single feature"
        )
        raise InvalidViewsError(msg)
    return shape[1]


def as_dense(raw: Any, title: str) -> np.ndarray:
    """An array of NumPy from sparse matrices, masked arrays, tensors and nested lists."""
    if scipy.sparse.issparse(raw):
        raw = as_dense_array(raw, title)
    if type(raw).__module__.partition(".")[0] == "torch":
        # NumPy has no bfloat16; every other number type of torch fits as well.
        real = raw.detach() if raw.is_complex() else raw.detach().double()
        raw = real.to_dense().cpu()
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
        if array.dtype.kind in "mM":
            # NumPy would count days or nanoseconds since 1970 without a word.
            msg = "dates and durations need a unit"
            raise TypeError(msg)
        if array.dtype.kind == "O":
            array = np.where(_is_na(array), np.nan, array)
        # Values too large for float32 become infinite and are reported as such.
        with np.errstate(over="ignore"):
            return array.astype(dtype, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        msg = (
            f"{title} must be numeric, got dtype {array.dtype} ({error}); encode its columns as "
            f"numbers, for example with sklearn.preprocessing.OneHotEncoder"
        )
        raise _NonNumericViewsError(msg) from error


def _is_na(array: np.ndarray) -> np.ndarray:
    """True at ``pandas.NA``, told by the name of its type so that pandas need not be there."""
    is_na = np.frompyfunc(lambda value: type(value).__name__ == "NAType", 1, 1)
    return np.asarray(is_na(array), dtype=bool)


def common_rows(views: dict[str, np.ndarray]) -> int:
    """Number of samples, the same in all views and not zero."""
    if not views:
        msg = "no views: expected at least one array, got None for every view; pass a view"
        raise InvalidViewsError(msg)
    sizes = [(view_title(name), view.shape[0]) for name, view in views.items()]
    (first, n_samples), *others = sizes
    for title, rows in others:
        if rows != n_samples:
            msg = (
                f"{title} has {rows} rows but {first} has {n_samples}; pass all views with the "
                f"same samples, one per row (transpose a view stored as features x samples), and "
                f"fill the rows of missing ones with NaN"
            )
            raise InvalidViewsError(msg)
    if n_samples == 0:
        msg = f"{first} has 0 samples, expected at least 1; pass some rows"
        raise InvalidViewsError(msg)
    return n_samples


def as_mask(mask: ArrayLike | None, shape: tuple[int, int]) -> np.ndarray:
    """A mask of (sample, view) pairs that are seen; all of them where there is none."""
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


def with_blank_rows(view: Any, missing: np.ndarray) -> Any:
    """``view`` with NaN, or if sparse nothing, in the missing rows; copied only if that differs."""
    if scipy.sparse.issparse(view):
        return with_empty_rows(view, missing)
    if np.isnan(view[missing]).all():
        return view
    return np.where(missing[:, None], np.nan, view)
