"""Views as Dask collections: recognised, and aligned in chunks of rows."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from viewmend.data.container import MultiViewData
from viewmend.data.given_views import in_order_of_views, names_in, places_of_views
from viewmend.data.input_arrays import filled_width, view_title
from viewmend.data.opening import TABLE, check_no_sizes, checked_sizes, default_name
from viewmend.distributed.row_indices import (
    RowIndex,
    check_index_of,
    check_same_index,
    has_index,
    index_of_ids,
    read_index,
)
from viewmend.exceptions import InvalidViewsError


def is_lazy(X: object) -> bool:
    """Whether ``X`` is or holds a Dask collection; without Dask nothing does.

    Parameters
    ----------
    X : views in any form
        Nothing of it is computed.

    Returns
    -------
    bool
    """
    if "dask" not in sys.modules:
        return False
    from dask import is_dask_collection

    return any(is_dask_collection(entry) for entry in _entries(X).values())


def check_index_with(X: Any, values: Any, what: str) -> None:
    """`check_index_of` for values (n_samples,) about the samples of lazy views."""
    if isinstance(X, MultiViewData):
        index = index_of_ids(X.ids)
    else:
        frames = (entry for entry in _entries(X).values() if has_index(entry))
        index = next((read_index(frame)[1] for frame in frames), None)
    check_index_of(values, index, what)


def is_table(X: Any) -> bool:
    """Whether views are columns of one array or frame."""
    return not isinstance(X, (MultiViewData, Mapping, list, tuple))


@dataclass(frozen=True, eq=False)
class LazyViews:
    """Views as Dask arrays by name, with one chunk of columns and aligned chunks of rows.

    None stands for a view that is missing. ``mask`` (n_samples, n_views) is an array of Dask, or
    None. ``index`` is that of the frames among the views.
    """

    arrays: dict[str, Any]
    mask: Any | None
    index: RowIndex | None

    @property
    def row_chunks(self) -> tuple[int, ...]:
        """Rows of every chunk."""
        return next(tuple(array.chunks[0]) for array in self.arrays.values() if array is not None)


def lazy_views(X: Any, mask: Any, view_sizes: Sequence[int] | None) -> LazyViews:
    """The views as Dask arrays; the first of these gives the chunks of rows.

    Views may be Dask arrays, Dask data frames, arrays in memory among them, and None. The mask
    (n_samples, n_views) may be in memory or of Dask. One table is split by ``view_sizes``.
    """
    import dask.array as da

    read = {
        name: None if entry is None else _as_array(entry, name)
        for name, entry in _entries(X).items()
    }
    index = check_same_index({name: found[1] for name, found in read.items() if found is not None})
    arrays = {name: None if found is None else found[0] for name, found in read.items()}
    if is_table(X):
        arrays = _split(arrays[TABLE], view_sizes)
    else:
        check_no_sizes(X, X if isinstance(X, MultiViewData) else None, view_sizes)
    there = {name: array for name, array in arrays.items() if array is not None}
    rows = next(array for array in there.values() if isinstance(array, da.Array)).chunks[0]
    _check_rows({name: array.shape[0] for name, array in there.items()})
    aligned = {
        name: None if array is None else _aligned(array, rows) for name, array in arrays.items()
    }
    return LazyViews(aligned, _lazy_mask(X, mask, [*arrays], rows, index), index)


def _entries(X: Any) -> dict[str, Any]:
    """The views as they are given, by name; a table under the name `TABLE`."""
    if isinstance(X, MultiViewData):
        return dict(zip(X.names, X.views, strict=True))
    if isinstance(X, Mapping):
        return {str(name): array for name, array in X.items()}
    if isinstance(X, (list, tuple)):
        return {default_name(v): array for v, array in enumerate(X)}
    return {TABLE: X}


def _as_array(entry: Any, name: str) -> tuple[Any, RowIndex | None]:
    """An array whose chunks have known rows, and the index that it has if it is a frame."""
    index = None
    if has_index(entry):
        lengths, index = read_index(entry)
        if hasattr(entry, "to_dask_array"):
            entry = entry.to_dask_array(lengths=lengths)
    if hasattr(entry, "compute_chunk_sizes") and np.isnan(entry.shape[0]):
        entry = entry.compute_chunk_sizes()
    array = entry if hasattr(entry, "chunks") else np.asarray(entry)
    filled_width(array, name if name == TABLE else view_title(name))
    return array, index


def _split(table: Any, view_sizes: Sequence[int] | None) -> dict[str, Any]:
    """Columns of a table as the views that they are."""
    ends = [*accumulate(checked_sizes(view_sizes, table.shape[1]))]
    bounds = zip([0, *ends], ends, strict=False)
    return {default_name(v): table[:, start:stop] for v, (start, stop) in enumerate(bounds)}


def _lazy_mask(
    X: Any, mask: Any, names: Sequence[str], rows: tuple[int, ...], index: RowIndex | None
) -> Any:
    """A mask in the chunks of the views, with what a container knows to be missing."""
    shape = sum(rows), len(names)
    known = _aligned(X.observed, rows) if isinstance(X, MultiViewData) else None
    if mask is None:
        return known
    named = index_of_ids(X.ids) if isinstance(X, MultiViewData) else index
    check_index_of(mask, named, "mask", InvalidViewsError)
    mask = _mask_array(mask, names)
    if mask.dtype != bool or mask.shape != shape:
        msg = (
            f"mask must be bool of shape {shape} (n_samples, n_views), got {mask.dtype} of shape "
            f"{mask.shape}; pass True where a sample was observed"
        )
        raise InvalidViewsError(msg)
    mask = _aligned(mask, rows)
    return mask if known is None else known & mask


def _mask_array(mask: Any, names: Sequence[str]) -> Any:
    """A mask with its columns in the order of the views, where it has names for them."""
    if not hasattr(mask, "to_dask_array"):
        mask = in_order_of_views(mask, names, None, "mask")
        return mask if hasattr(mask, "compute_chunk_sizes") else np.asarray(mask)
    given = names_in(mask)
    if given is not None:
        mask = mask.iloc[:, places_of_views(given, names, "mask", InvalidViewsError)]
    return mask.to_dask_array(lengths=True)


def _aligned(array: Any, rows: tuple[int, ...]) -> Any:
    import dask.array as da

    columns = array.shape[1:]
    return da.asarray(array).rechunk((rows, *((size,) for size in columns)))


def _check_rows(rows: dict[str, int]) -> None:
    (first, n_samples), *others = rows.items()
    for name, count in others:
        if count != n_samples:
            msg = (
                f"view {name!r} has {count} rows but view {first!r} has {n_samples}; pass all "
                f"views with the same samples and fill the rows of missing ones with NaN"
            )
            raise InvalidViewsError(msg)
