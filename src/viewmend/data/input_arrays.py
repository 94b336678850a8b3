"""Views as matrices of numbers, whatever form they come in."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, DTypeLike

from viewmend.backend.numba_scans import count_missing_cells
from viewmend.data.sparse import as_csr, as_dense_array, check_sparse, with_empty_rows
from viewmend.exceptions import InvalidViewsError

_DATES = (np.datetime64, np.timedelta64)


class _NonNumericViewsError(InvalidViewsError, TypeError):
    """Also a TypeError, which scikit-learn expects of an estimator fed with objects."""


def view_title(name: str) -> str:
    """What messages call a view."""
    return name if name.startswith("view ") else f"view {name!r}"


def some_of(values: np.ndarray | Sequence[object], limit: int = 5) -> str:
    """The first few values, for messages."""
    shown = ", ".join(str(value) for value in values[:limit])
    return shown + ", ..." if len(values) > limit else shown


def as_table(X: object, title: str) -> Any:
    """One array `as_matrix`, or by rows if it is sparse: some of its columns may stay so."""
    if not scipy.sparse.issparse(X) or width(X, title) == 0:
        return as_matrix(X, title)
    check_sparse(X, title)
    return scipy.sparse.csr_array(X)


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
    filled_width(array, title)
    if dtype is None:
        dtype = np.float32 if array.dtype == np.float32 else np.float64
    try:
        return np.ascontiguousarray(_as_floats(array, title, dtype))
    except _NonNumericViewsError as error:
        raise _of_columns(raw, array, title) or error from error.__cause__


def _of_columns(raw: Any, array: np.ndarray, title: str) -> _NonNumericViewsError | None:
    """The error that names the columns of a frame that are no numbers; None for other arrays."""
    names = getattr(raw, "columns", None)
    if names is None or callable(names):
        return None
    wrong = [name for name, column in zip(names, array.T, strict=True) if not _are_floats(column)]
    msg = (
        f"{title} must be numeric, but its column(s) {some_of(wrong)} are not; "
        f"viewmend.data.from_frames turns categories into columns of 0 and 1; write NaN in empty "
        f"cells, make numbers of dates, or leave the columns out"
    )
    return _NonNumericViewsError(msg)


def _are_floats(column: np.ndarray) -> bool:
    try:
        _as_floats(column, "", np.float64)
    except _NonNumericViewsError:
        return False
    return True


def width(array: Any, title: str) -> int:
    """Number of columns; an array that is not 2-D is refused."""
    shape = tuple(array.shape if hasattr(array, "shape") else as_dense(array, title).shape)
    if len(shape) != 2:
        msg = (
            f"{title} must be 2-D (n_samples, n_features), got {len(shape)}-D of shape {shape}. "
            f"Reshape your data, with reshape(-1, 1) if it is a single feature"
        )
        raise InvalidViewsError(msg)
    return shape[1]


def filled_width(array: Any, title: str) -> int:
    """`width`, which must not be zero."""
    n_columns = width(array, title)
    if n_columns == 0:
        msg = (
            f"{title} has 0 feature(s) (shape={tuple(array.shape)}) while a minimum of 1 is "
            f"required; leave the view out"
        )
        raise InvalidViewsError(msg)
    return n_columns


def as_dense(raw: Any, title: str) -> np.ndarray:
    """An array of NumPy from sparse matrices, masked arrays, tensors, frames and nested lists."""
    _check_readable(raw, title)
    if scipy.sparse.issparse(raw):
        raw = as_dense_array(raw, title)
    try:
        if _library(raw) == "torch":
            raw = _as_numbers_of_numpy(raw)
        if isinstance(raw, np.ma.MaskedArray):
            raw = np.ma.filled(
                raw.astype(np.float64 if raw.dtype.kind in "biuf" else object), np.nan
            )
        return np.asarray(raw)
    except ValueError as error:
        msg = f"{title} must be 2-D, got {error}; pass rows of equal length"
        raise InvalidViewsError(msg) from error
    except (TypeError, NotImplementedError, RuntimeError) as error:
        # Arrays that NumPy may not touch, such as those of CuPy or of PyTorch's "meta" device.
        msg = (
            f"{title} is a {type(raw).__name__} that cannot be read ({error}); pass a NumPy array "
            f"of its values"
        )
        raise InvalidViewsError(msg) from error


def _library(thing: object) -> str:
    """Name of the package that the type of a thing is from."""
    return type(thing).__module__.partition(".")[0]


def _as_numbers_of_numpy(tensor: Any) -> Any:
    """A tensor on the host; NumPy has no bfloat16, and every other number type fits into double."""
    host = tensor.detach().cpu().to_dense().resolve_neg()
    return host if host.is_complex() else host.double()


def collected(array: Any) -> Any:
    """The frame that a LazyFrame of polars stands for; anything else as it is."""
    return array.collect() if _library(array) == "polars" and hasattr(array, "collect") else array


def _check_readable(raw: Any, title: str) -> None:
    """Refuse what is no array, before NumPy asks it for one item after the other.

    NumPy takes anything with ``__getitem__`` for a sequence, and some have no end.
    """
    if isinstance(raw, np.ndarray) or scipy.sparse.issparse(raw):
        return
    if _library(raw) == "polars":
        _check_no_dates(raw, title)
    if isinstance(raw, (list, tuple)):
        strange = next((kind for kind in _kinds_within(raw) if not _is_value(kind)), None)
    else:
        known = _is_array(type(raw)) or isinstance(raw, (numbers.Number, str, bytes))
        strange = None if known else type(raw)
    if strange is not None:
        msg = (
            f"{title} must be an array of numbers, a sparse matrix, a frame of pandas or polars or "
            f"a tensor, got {strange.__module__}.{strange.__qualname__}; convert it, as with "
            f"to_pandas() or to_numpy() where it has that"
        )
        raise InvalidViewsError(msg)


def _check_no_dates(frame: Any, title: str) -> None:
    """Refuse columns of polars that it would make numbers of, as days or microseconds since 1970.

    Those of pandas become objects, which are refused later.
    """
    dtypes = zip(getattr(frame, "columns", ()), getattr(frame, "dtypes", ()), strict=True)
    dates = [name for name, dtype in dtypes if dtype.is_temporal()]
    if dates:
        msg = (
            f"{title} must be numeric, but its column(s) {some_of(dates)} are dates or durations; "
            f"make numbers of them, as with dt.total_days(), or leave them out"
        )
        raise _NonNumericViewsError(msg)


def _kinds_within(nested: Sequence[Any]) -> set[type]:
    """Types of what is in lists, at any depth."""
    lists, kinds = [nested], set()
    # As deep as NumPy goes, which tells lists that hold themselves from others.
    for _ in range(64):
        found = set().union(*(map(type, entries) for entries in lists))
        kinds |= found - {list, tuple}
        if not found & {list, tuple}:
            break
        lists = [entry for entries in lists for entry in entries if type(entry) in (list, tuple)]
    return kinds


def _is_value(kind: type) -> bool:
    """Whether values of a type can stand in a list: rows and numbers, and nothing to walk into.

    Rows under an index, as a series of pandas is one, could have their columns in any order.
    """
    if hasattr(kind, "reindex"):
        return False
    return not hasattr(kind, "__getitem__") or issubclass(kind, (str, bytes)) or _is_array(kind)


def _is_array(kind: type) -> bool:
    """Whether a type says by itself which array it is.

    Containers of other libraries that name their columns, as those of xarray and pyarrow do, would
    lose these names on the way.
    """
    if hasattr(kind, "to_pandas") and not hasattr(kind, "lazy"):
        return False
    return any(hasattr(kind, name) for name in ("__array__", "__array_interface__", "__dlpack__"))


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
            _check_no_dates_within(array)
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


def _check_no_dates_within(array: np.ndarray) -> None:
    """Raise a TypeError at objects that NumPy would make numbers of, as of its own dates."""
    dates = {kind for kind in map(type, array.flat) if issubclass(kind, _DATES)}
    if dates:
        msg = f"{dates.pop().__name__} needs a unit"
        raise TypeError(msg)


def _is_na(array: np.ndarray) -> np.ndarray:
    """True at None and ``pandas.NA``, told by its type's name so that pandas need not be there."""
    is_na = np.frompyfunc(lambda value: value is None or type(value).__name__ == "NAType", 1, 1)
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
    if _library(mask) == "torch":
        mask = mask.detach().cpu()  # type: ignore[union-attr]
    # Where nothing is known, nothing was seen.
    array = np.array(np.ma.filled(mask, False) if np.ma.isMaskedArray(mask) else mask)
    if array.dtype.kind == "O" and array.ndim == 2:
        # So frames hold it that have empty cells, or whose types have some.
        known = ~_is_na(array)
        flags = set(map(type, array[known])) <= {bool, np.bool_}
        array = np.where(known, array, False).astype(bool) if flags else array
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
    if (count_missing_cells(view)[missing] == view.shape[1]).all():
        return view
    return np.where(missing[:, None], np.nan, view)
