"""Views as Dask collections: recognised, aligned in blocks of rows, and read block by block."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from viewmend.data.cells import refuse_missing_cells
from viewmend.data.column_names import columns_of_data
from viewmend.data.container import MultiViewData
from viewmend.data.input_arrays import some_of
from viewmend.data.matching import ViewsOfFit, in_layout_of_fit, table_in_order_of_fit
from viewmend.data.opening import TABLE, blocks, opened
from viewmend.data.validation import check_new_views, without_zero_rows
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


def is_lazy(X: object) -> bool:
    """Whether ``X`` is or holds a Dask collection; without Dask nothing does.

    Parameters
    ----------
    X : views in any form

    Returns
    -------
    bool
    """
    if "dask" not in sys.modules:
        return False
    from dask import is_dask_collection

    return any(is_dask_collection(entry) for entry in _entries(X))


def lazy_views(
    X: Any, mask: Any, view_sizes: Sequence[int] | None
) -> tuple[dict[str, Any], Any | None]:
    """The views as Dask arrays by name, with one chunk of columns and aligned chunks of rows.

    Views may be Dask arrays, Dask data frames, arrays in memory among them, and None, which stays
    None. The mask (n_samples, n_views) may be in memory or of Dask.
    """
    import dask.array as da

    if isinstance(X, MultiViewData):
        mask = X.observed if mask is None else X.observed & mask
    named = _named(X, view_sizes)
    arrays = {name: _as_array(entry) for name, entry in named.items() if entry is not None}
    rows = next(array for array in arrays.values() if isinstance(array, da.Array)).chunks[0]
    _check_rows({name: array.shape[0] for name, array in arrays.items()})
    aligned = {name: _aligned(arrays[name], rows) if name in arrays else None for name in named}
    if mask is None:
        return aligned, None
    mask = _as_array(mask)
    _check_mask(mask, (sum(rows), len(named)))
    return aligned, _aligned(mask, rows)


def lazy_columns(X: Any, n_features: Sequence[int]) -> dict[str, np.ndarray]:
    """Names of the columns (n_features_v,) by view, of those that are frames with names."""
    if isinstance(X, MultiViewData):
        return columns_of_data(X)
    given = opened(X)
    if not given.one_table or TABLE not in given.columns:
        return dict(given.columns)
    return blocks(given.columns[TABLE], n_features)


def lazy_like_fit(X: Any, fit: ViewsOfFit) -> tuple[Any, dict[str, np.ndarray]]:
    """Views with columns in the order of fit, and the names of those columns that have any."""
    if isinstance(X, MultiViewData):
        return X, columns_of_data(X)
    given = opened(X)
    if given.one_table:
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
    views, mask = lazy_views(X, mask, view_sizes)
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
    return Chunks(parts, tuple(int(size) for size in sizes if size), layout)


def read_chunk(
    parts: Sequence[np.ndarray], number: Number, layout: ChunkLayout
) -> tuple[MultiViewData, list[str]]:
    """The checked rows of a chunk, and what there is to warn of; errors name chunk and rows."""
    n_views, (index, start) = len(layout.names), number
    views, mask = list(parts[:n_views]), parts[n_views] if len(parts) > n_views else None
    where = f"chunk {index} (rows {start} to {start + len(views[0]) - 1} of the data)"
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


def open_views(paths: Mapping[str, str | Path]) -> MultiViewData:
    """Open views in Zarr or Parquet files without reading them.

    Parameters
    ----------
    paths : mapping of view name to path
        A folder or file that ends in ``.zarr`` or ``.parquet``. All of them must have the same
        samples in the same order; a row of NaN means that the sample does not have this view.

    Returns
    -------
    MultiViewData
        A container of Dask arrays.
    """
    import dask.array as da

    unknown = [str(path) for path in paths.values() if Path(path).suffix not in READERS]
    if unknown:
        msg = f"views must end in one of {sorted(READERS)}, got {unknown}; convert these files"
        raise InvalidViewsError(msg)
    views = {name: READERS[Path(path).suffix](str(path)) for name, path in paths.items()}
    aligned, _ = lazy_views(views, None, None)
    missing = [da.isnan(view).all(axis=1) for view in aligned.values()]
    observed = ~da.stack(missing, axis=1).rechunk({1: -1})
    data = MultiViewData(tuple(aligned.values()), observed, tuple(aligned))
    return opened(views).described(data)


def _from_zarr(path: str) -> Any:
    import dask.array as da

    return da.from_zarr(path)


def _from_parquet(path: str) -> Any:
    import dask.dataframe as dd

    return dd.read_parquet(path)


READERS: dict[str, Callable[[str], Any]] = {".zarr": _from_zarr, ".parquet": _from_parquet}


def _entries(X: Any) -> Sequence[Any]:
    if isinstance(X, MultiViewData):
        return X.views
    if isinstance(X, Mapping):
        return list(X.values())
    return X if isinstance(X, (list, tuple)) else (X,)


def _named(X: Any, view_sizes: Sequence[int] | None) -> dict[str, Any]:
    if isinstance(X, MultiViewData):
        return dict(zip(X.names, X.views, strict=True))
    if isinstance(X, Mapping):
        return {str(name): array for name, array in X.items()}
    if isinstance(X, (list, tuple)):
        return {f"view {v}": array for v, array in enumerate(X)}
    array = _as_array(X)
    ends = [*accumulate(view_sizes or (array.shape[1],))]
    if ends[-1] != array.shape[1]:
        msg = (
            f"view_sizes={tuple(view_sizes or ())} must sum to the number of columns, but sums to "
            f"{ends[-1]} and X has {array.shape[1]}; list the columns of every view"
        )
        raise InvalidViewsError(msg)
    bounds = zip([0, *ends], ends, strict=False)
    return {f"view {v}": array[:, start:stop] for v, (start, stop) in enumerate(bounds)}


def _as_array(entry: Any) -> Any:
    """A Dask data frame as a Dask array of known rows; a Dask array with unknown ones counted."""
    if hasattr(entry, "to_dask_array"):
        entry = entry.to_dask_array(lengths=True)
    if hasattr(entry, "compute_chunk_sizes") and np.isnan(entry.shape[0]):
        entry = entry.compute_chunk_sizes()
    return entry if hasattr(entry, "chunks") else np.asarray(entry)


def _aligned(array: Any, rows: tuple[int, ...]) -> Any:
    import dask.array as da

    columns = array.shape[1:]
    return da.asarray(array).rechunk((rows, *((size,) for size in columns)))


def _with_smaller_chunks(array: Any, most: int) -> Any:
    """An array whose chunks of more rows than ``most`` are cut into equal parts."""
    rows: list[int] = []
    for size in array.chunks[0]:
        n_parts = max(-(-size // most), 1)
        rows += [size // n_parts + (part < size % n_parts) for part in range(n_parts)]
    return array.rechunk({0: tuple(rows)})


def _check_mask(mask: Any, shape: tuple[int, int]) -> None:
    if mask.dtype != bool or mask.shape != shape:
        msg = (
            f"mask must be bool of shape {shape} (n_samples, n_views), got {mask.dtype} of shape "
            f"{mask.shape}; pass True where a sample was observed"
        )
        raise InvalidViewsError(msg)


def _check_rows(rows: dict[str, int]) -> None:
    (first, n_samples), *others = rows.items()
    for name, count in others:
        if count != n_samples:
            msg = (
                f"view {name!r} has {count} rows but view {first!r} has {n_samples}; pass all "
                f"views with the same samples and fill the rows of missing ones with NaN"
            )
            raise InvalidViewsError(msg)
