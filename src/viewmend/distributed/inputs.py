"""Views as Dask collections: in chunks of rows, each of which is read and checked by itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from viewmend.data.cells import refuse_missing_cells
from viewmend.data.column_names import columns_of_data
from viewmend.data.container import MultiViewData
from viewmend.data.input_arrays import some_of, width
from viewmend.data.matching import (
    ViewsOfFit,
    check_width_of_table,
    in_layout_of_fit,
    table_in_order_of_fit,
)
from viewmend.data.opening import TABLE, blocks, opened
from viewmend.data.validation import check_new_views, without_zero_rows
from viewmend.distributed.lazy import lazy_views
from viewmend.distributed.row_indices import RowIndex
from viewmend.exceptions import DataWarning, InvalidViewsError

# Number of a chunk and of its first row.
Number = tuple[int, int]


@dataclass(frozen=True, eq=False)
class ChunkLayout:
    """What every chunk of rows must look like."""

    names: tuple[str, ...]
    n_features: tuple[int, ...]
    dtype: DTypeLike
    columns: Mapping[str, np.ndarray]  # names by view, as far as there are any


@dataclass(frozen=True, eq=False)
class Chunks:
    """Rows of all views, chunk by chunk."""

    # Of every chunk, its rows in all views, then in the mask if there is one: Delayed arrays.
    parts: list[list[Any]]
    sizes: tuple[int, ...]  # rows of every chunk
    layout: ChunkLayout
    # Of the frames among the views.
    index: RowIndex | None = None

    @property
    def n_samples(self) -> int:
        return sum(self.sizes)

    @property
    def starts(self) -> list[int]:
        return [0, *accumulate(self.sizes)][:-1]

    @property
    def numbers(self) -> list[Number]:
        return list(enumerate(self.starts))

    def split(self, rows: np.ndarray) -> list[np.ndarray]:
        """An array with one entry per sample, as one array per chunk."""
        return np.split(rows, self.starts[1:])

    def parted(self, rows: np.ndarray) -> list[np.ndarray]:
        """Ascending numbers of samples, as their numbers within each chunk."""
        parts = np.split(rows, np.searchsorted(rows, self.starts[1:]))
        return [part - start for part, start in zip(parts, self.starts, strict=True)]


def lazy_columns(X: Any, n_features: Sequence[int]) -> dict[str, np.ndarray]:
    """Names of the columns (n_features_v,) by view, of those that are frames with names."""
    if isinstance(X, MultiViewData):
        return columns_of_data(X)
    given = opened(X)
    if not given.one_table or TABLE not in given.columns:
        return dict(given.columns)
    return blocks(given.columns[TABLE], n_features)


def lazy_like_fit(
    X: Any, fit: ViewsOfFit, view_sizes: Sequence[int] | None
) -> tuple[Any, dict[str, np.ndarray]]:
    """Views with columns in the order of fit, and the names of those columns that have any."""
    if isinstance(X, MultiViewData):
        return X, columns_of_data(X)
    given = opened(X, view_sizes)
    if given.one_table:
        check_width_of_table(width(given.arrays[TABLE], TABLE), fit)
        table = table_in_order_of_fit(given, fit)
        return table.arrays[TABLE], lazy_columns(table, fit.n_features)
    # It has warned of names that are missing, which the chunks need not do again.
    return in_layout_of_fit(given, fit).arrays, dict(fit.columns)


def as_chunks(
    X: Any,
    mask: Any,
    view_sizes: Sequence[int] | None,
    dtype: DTypeLike,
    most_rows: Callable[[int], int] | None = None,
) -> Chunks:
    """`lazy_views` as one task per chunk and view; chunks without rows are left out.

    Those of more than ``most_rows(n_views)`` are cut.
    """
    lazy = lazy_views(X, mask, view_sizes)
    views, mask = lazy.arrays, lazy.mask
    absent = [name for name, view in views.items() if view is None]
    if absent:
        msg = f"views {absent} are None, so they have no observed sample; leave them out"
        raise InvalidViewsError(msg)
    arrays = [*views.values()] if mask is None else [*views.values(), mask]
    if most_rows is not None:
        arrays = [_with_smaller_chunks(array, most_rows(len(views))) for array in arrays]
    columns = [array.to_delayed().ravel() for array in arrays]
    sizes = arrays[0].chunks[0]
    parts = [
        list(part) for part, size in zip(zip(*columns, strict=True), sizes, strict=True) if size
    ]
    if not parts:
        msg = "the views have 0 samples, expected at least 1; pass some rows"
        raise InvalidViewsError(msg)
    widths = tuple(view.shape[1] for view in views.values())
    layout = ChunkLayout(tuple(views), widths, dtype, lazy_columns(X, widths))
    return Chunks(parts, tuple(int(size) for size in sizes if size), layout, lazy.index)


def read_chunk(
    parts: Sequence[np.ndarray], number: Number, layout: ChunkLayout
) -> tuple[MultiViewData, list[str]]:
    """The checked rows of a chunk, and what there is to warn of; errors name chunk and rows."""
    n_views, (index, start) = len(layout.names), number
    views, mask = list(parts[:n_views]), parts[n_views] if len(parts) > n_views else None
    # Blocks may be sparse, which have no length.
    last = start + views[0].shape[0] - 1
    where = f"chunk {index} (rows {start} to {last} of the data), counting its rows from 0"
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", DataWarning)
        try:
            data = check_new_views(
                views,
                ViewsOfFit(layout.names, layout.n_features),
                mask=mask,
                dtypes=[layout.dtype] * n_views,
            )
            # What fills them would have to be learned from all chunks first.
            refuse_missing_cells(data, "fill the cells first, which a fit on Dask does not")
            data = without_zero_rows(data, "in a fit on Dask collections")
            _check_every_sample_seen(data)
        except InvalidViewsError as error:
            msg = f"{where}: {error}"
            raise type(error)(msg) from error
    return data, [f"{where}: {note.message}" for note in notes]


def _check_every_sample_seen(data: MultiViewData) -> None:
    rows = np.flatnonzero(data.unseen)
    if len(rows):
        msg = (
            f"{len(rows)} sample(s) have no view with a value other than zero (samples "
            f"{some_of(rows)}), which only a fit in memory can take; drop these samples"
        )
        raise InvalidViewsError(msg)


def _with_smaller_chunks(array: Any, most: int) -> Any:
    """An array whose chunks of more rows than ``most`` are cut into equal parts."""
    rows: list[int] = []
    for size in array.chunks[0]:
        n_parts = max(-(-size // most), 1)
        rows += [size // n_parts + (part < size % n_parts) for part in range(n_parts)]
    return array.rechunk({0: tuple(rows)})
