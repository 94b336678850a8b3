"""Views in files that are opened as Dask collections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from viewmend.data.container import MultiViewData
from viewmend.data.indices import identifying
from viewmend.data.input_arrays import as_matrix, some_of
from viewmend.data.io.border import reading
from viewmend.data.opening import opened
from viewmend.distributed.lazy import lazy_views
from viewmend.distributed.row_indices import has_index
from viewmend.exceptions import InvalidViewsError


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
        A container of Dask arrays. The index of Parquet files, which must be the same in all of
        them, is read for its ``ids``, unless it just counts rows.
    """
    import dask.array as da

    if not paths:
        msg = "open_views needs at least one view, got no paths; pass {name: path}"
        raise InvalidViewsError(msg)
    unknown = [str(path) for path in paths.values() if Path(path).suffix not in READERS]
    if unknown:
        msg = f"views must end in one of {sorted(READERS)}, got {unknown}; convert these files"
        raise InvalidViewsError(msg)
    views = {str(name): _opened(str(path)) for name, path in paths.items()}
    lazy = lazy_views(views, None, None)
    arrays = lazy.arrays
    seen = [view.map_blocks(_seen_rows, dtype=bool, drop_axis=1) for view in arrays.values()]
    observed = da.stack(seen, axis=1).rechunk({1: -1})
    data = MultiViewData(tuple(arrays.values()), observed, tuple(arrays))
    ids = None if lazy.index is None or lazy.index.is_count else _identifiers(views)
    return replace(opened(views).described(data), ids=ids)


def _identifiers(views: Mapping[str, Any]) -> np.ndarray | None:
    """Identifiers (n_samples,) of the first view that has any."""
    found = (identifying(view.index.compute()) for view in views.values() if has_index(view))
    return next((ids for ids in found if ids is not None), None)


def _opened(path: str) -> Any:
    # Of files elsewhere, such as "s3://bucket/view.zarr", only their reader knows.
    if "://" not in path and not Path(path).exists():
        msg = f"there is no file or folder {path!r}; check the path"
        raise FileNotFoundError(msg)
    with reading(Path(path)):
        view = READERS[Path(path).suffix](path)
        _check_numbers(path, view)
        return view


def _check_numbers(path: str, view: Any) -> None:
    """Refuse columns of a frame that cannot be numbers."""
    if not hasattr(view, "dtypes"):
        return
    from pandas.api.types import is_bool_dtype, is_numeric_dtype, is_object_dtype

    usable = is_bool_dtype, is_numeric_dtype, is_object_dtype
    others = [
        str(name) for name, dtype in view.dtypes.items() if not any(test(dtype) for test in usable)
    ]
    if others:
        msg = (
            f"{path} has columns that are not numbers: {some_of(others)}; drop them, encode them "
            f"as numbers, or make identifiers the index with frame.set_index, and write it again"
        )
        raise InvalidViewsError(msg)


def _seen_rows(block: Any) -> Any:
    """Which rows of a chunk have a value."""
    return ~np.isnan(as_matrix(block, "a view", np.float64)).all(axis=1)


def _from_zarr(path: str) -> Any:
    import dask.array as da

    return da.from_zarr(path)


def _from_parquet(path: str) -> Any:
    import dask.dataframe as dd

    return dd.read_parquet(path)


READERS: dict[str, Callable[[str], Any]] = {".zarr": _from_zarr, ".parquet": _from_parquet}
