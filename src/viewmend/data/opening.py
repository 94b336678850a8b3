"""The only module that knows containers of views: it turns any of them into `GivenViews`.

A list of arrays, a dict, frames, one stacked table, `MultiViewData`, AnnData and MuData all become
arrays by name, with the names of their columns and the identifiers of their rows where they have
any. Everything above sees no container.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from viewmend.data.annotated import anndata_views, mudata_views
from viewmend.data.column_names import columns_of_data
from viewmend.data.container import MultiViewData
from viewmend.data.given_views import GivenViews, named_columns
from viewmend.data.indices import index_of, same_rows
from viewmend.data.input_arrays import as_table, collected, view_title, with_blank_rows
from viewmend.exceptions import InvalidViewsError
from viewmend.parameters import Each, Integer

_SIZES = Each(Integer(1))

# What a stacked table is called before it is split.
TABLE = "X"

# Containers of other libraries that hold several views, by the package of their type.
READERS: Mapping[str, Callable[[Any], GivenViews]] = {
    "anndata": anndata_views,
    "mudata": mudata_views,
}


def views_in(X: Any, view_sizes: Sequence[int] | None = None) -> GivenViews:
    """The views of any container, by name; one table is split by ``view_sizes``, or is one view."""
    given = opened(X, view_sizes)
    return split(given, view_sizes) if given.one_table else given


def opened(X: Any, view_sizes: Sequence[int] | None = None) -> GivenViews:
    """The views of any container; one table is left whole.

    Unknown objects become a table, which is refused as soon as its numbers are needed. Where there
    are several views, ``view_sizes`` must not say otherwise.
    """
    given = _open(X)
    if given.one_table:
        return given
    check_no_sizes(X, given.source, view_sizes)
    if not given.arrays:
        msg = f"no views: expected at least one array, got an empty {type(X).__name__}; pass a view"
        raise InvalidViewsError(msg)
    return given


def _open(X: Any) -> GivenViews:
    if isinstance(X, GivenViews):
        return X
    if isinstance(X, MultiViewData):
        return _of_container(X)
    # One of the formats of sparse matrices is a dict of their entries.
    if isinstance(X, Mapping) and not scipy.sparse.issparse(X):
        return _of_entries([(str(key), array) for key, array in X.items()], has_names=True)
    if isinstance(X, (list, tuple)) and not _is_rows(X):
        return _of_entries([(default_name(v), array) for v, array in enumerate(X)])
    package = _annotated_by(X)
    return _of_table(X) if package is None else READERS[package](X)


def rows_of(X: Any) -> Any:
    """What tells the samples of any container apart, (n_samples,), None where nothing does."""
    return X.ids if isinstance(X, MultiViewData) else opened(X).rows


def is_annotated(X: object) -> bool:
    """Whether it is an AnnData or a MuData, which know more of the samples than views."""
    return _annotated_by(X) is not None


def _annotated_by(X: object) -> str | None:
    return next((package for package in _packages(X) if package in READERS), None)


def _is_rows(X: Sequence[Any]) -> bool:
    """Whether it is rows of plain numbers, as in ``array.tolist()``: they can only be one array."""
    nested = (list, tuple, np.ndarray)
    return (
        bool(X) and isinstance(X[0], (list, tuple)) and not any(isinstance(x, nested) for x in X[0])
    )


def _packages(thing: object) -> list[str]:
    return [kind.__module__.partition(".")[0] for kind in type(thing).__mro__]


def default_name(v: int) -> str:
    """Default name of a view that was given by position."""
    return f"view {v}"


def _of_table(X: Any) -> GivenViews:
    arrays = {TABLE: collected(X)}
    return GivenViews(arrays, named_columns(arrays), index_of(X), one_table=True)


def _of_container(data: MultiViewData) -> GivenViews:
    tables = {
        name: as_table(view, view_title(name))
        for name, view in zip(data.names, data.views, strict=True)
    }
    missing = ~data.observed.T
    return GivenViews(
        {
            name: with_blank_rows(table, rows)
            for (name, table), rows in zip(tables.items(), missing, strict=True)
        },
        columns_of_data(data),
        data.ids,
        has_names=data.names != tuple(map(default_name, range(data.n_views))),
        source=data,
    )


def _of_entries(named: Sequence[tuple[str, Any]], has_names: bool = False) -> GivenViews:
    names = [name for name, _ in named]
    if len(set(names)) < len(names):
        msg = f"two views have the same name, got names {names}; give every view its own name"
        raise InvalidViewsError(msg)
    arrays = {name: collected(array) for name, array in named}
    return GivenViews(arrays, named_columns(arrays), common_index(arrays), has_names=has_names)


def common_index(arrays: Mapping[str, Any]) -> Any:
    """The index of all frames; rows of other samples, or in another order, must not pass."""
    frames = {name: index_of(array) for name, array in arrays.items()}
    (first, shared), *others = [item for item in frames.items() if item[1] is not None] or [
        ("", None)
    ]
    for name, index in others:
        if not same_rows(index, shared):
            msg = (
                f"{view_title(name)} and {view_title(first)} are frames with different row "
                f"indices, expected one index for all; viewmend.data.from_frames joins them by "
                f"their identifiers, or frame.reindex(all_ids) fills missing rows with NaN"
            )
            raise InvalidViewsError(msg)
    return shared


def check_no_sizes(X: Any, source: MultiViewData | None, view_sizes: Sequence[int] | None) -> None:
    """Refuse ``view_sizes`` of what is no table; ``source`` is ``X`` if that is a MultiViewData."""
    # What an imputer makes of a stacked array knows its views already.
    if view_sizes is None:
        return
    if source is None or not np.array_equal(source.n_features, view_sizes):
        msg = (
            f"view_sizes={view_sizes!r} splits one 2-D array, but X is a {type(X).__name__} with "
            f"its own views; leave view_sizes out or pass one array"
        )
        raise InvalidViewsError(msg)


def split(given: GivenViews, view_sizes: Sequence[int] | None) -> GivenViews:
    """One table as blocks of ``view_sizes`` columns under their default names, all by default."""
    matrix, names = as_table(given.arrays[TABLE], TABLE), given.columns.get(TABLE)
    sizes = checked_sizes(view_sizes, matrix.shape[1])
    columns = {} if names is None else blocks(names, sizes)
    return GivenViews(blocks(matrix, sizes), columns, given.rows)


def checked_sizes(view_sizes: Sequence[int] | None, n_columns: int) -> Sequence[int]:
    """Columns of the views of a table, which is a single view by default."""
    sizes = (n_columns,) if view_sizes is None else view_sizes
    sizes = sizes.tolist() if isinstance(sizes, np.ndarray) else sizes
    if not _SIZES.accepts(sizes):
        msg = f"view_sizes must be {_SIZES.expected}, got {view_sizes!r}; list the columns per view"
        raise InvalidViewsError(msg)
    if sum(sizes) != n_columns:
        msg = (
            f"view_sizes={tuple(sizes)} must sum to the number of columns, but sums to "
            f"{sum(sizes)} and X has {n_columns}; list the columns of every view"
        )
        raise InvalidViewsError(msg)
    return sizes


def blocks(array: Any, sizes: Sequence[int]) -> dict[str, Any]:
    """Columns of a matrix, which may be sparse, or their names, view by view."""
    ends = np.cumsum(sizes)
    parts = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    return {
        default_name(v): array[part] if array.ndim == 1 else array[:, part]
        for v, part in enumerate(parts)
    }
