"""Indices of frames of Dask: the same or not, without taking them to the client.

An index tells which sample a row is. Views are joined by position, so rows in another order would
silently mix samples. Of every partition a task answers a few sums of hashes, from which follow the
number of its rows, and whether two frames have the same index.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from viewmend.data.indices import as_text, index_of
from viewmend.data.input_arrays import view_title
from viewmend.exceptions import DataWarning, InvalidLabelsError, InvalidViewsError

# Sums of hashes are taken modulo this.
MODULUS = 2**64


@dataclass(frozen=True)
class PartOfIndex:
    """What is told of the index of some rows.

    ``total`` is the sum of the hashes of its entries, and ``placed`` the sum of the hashes times
    the numbers of their rows here. ``first`` is where the index begins if it counts on from there,
    and ``n_counts`` how often it counts from 0 if it does nothing else; both are None if not.
    """

    n_rows: int
    total: int
    placed: int
    first: int | None
    n_counts: int | None


@dataclass(frozen=True)
class RowIndex:
    """An index, as sums: of its ``entries`` in any order, and of these in their ``order``."""

    n_rows: int
    entries: int
    order: int
    is_count: bool


def has_index(entry: Any) -> bool:
    """Whether it is a frame or a series of pandas or Dask."""
    of_dask = hasattr(entry, "to_dask_array") and hasattr(entry, "index")
    return of_dask or index_of(entry) is not None


def read_index(entry: Any) -> tuple[tuple[int, ...], RowIndex | None]:
    """Rows of every partition of a frame or series, and its index.

    None stands for an index that counts anew in every partition, as that of many files: it tells
    no rows apart.
    """
    import dask

    if index_of(entry) is not None:
        parts: Sequence[PartOfIndex] = [part_of_index(entry)]
    else:
        # Optimised, a frame that is read from many small files may have fewer partitions.
        partitions = entry.to_delayed(optimize_graph=False)
        parts = dask.compute(*map(dask.delayed(part_of_index), partitions))
    return tuple(part.n_rows for part in parts), _joined(parts)


def index_of_ids(ids: np.ndarray | None) -> RowIndex | None:
    """The index of rows that are called ``ids`` (n_samples,)."""
    return None if ids is None else _joined([_part_of(ids)])


def part_of_index(rows: Any) -> PartOfIndex:
    """`PartOfIndex` of a frame or series of pandas."""
    return _part_of(rows.index)


def _part_of(index: Any) -> PartOfIndex:
    from pandas.util import hash_array

    # As text, because numbers of one table may be text in another.
    hashes = hash_array(as_text(index))
    places = np.arange(len(index), dtype=np.uint64)
    placed = int((hashes * places).sum(dtype=np.uint64))
    return PartOfIndex(len(index), int(hashes.sum(dtype=np.uint64)), placed, *_counts(index))


def check_same_index(indices: dict[str, RowIndex | None]) -> RowIndex | None:
    """The one index of all views that have any; an InvalidViewsError if there are several."""
    there = [(name, index) for name, index in indices.items() if index is not None]
    if not there:
        return None
    (first, shared), *others = there
    for name, index in others:
        if index.n_rows == shared.n_rows and index != shared:
            msg = (
                f"{view_title(name)} and {view_title(first)} are frames with different row "
                f"indices, expected one index for all, because rows are joined by position; put "
                f"their rows in the same order, or drop indices that mean nothing with "
                f"reset_index(drop=True)"
            )
            raise InvalidViewsError(msg)
    return shared


def check_index_of(
    values: Any, views: RowIndex | None, what: str, error: type[ValueError] = InvalidLabelsError
) -> None:
    """Refuse, or warn of, values with another index than the views; ``what`` names the values.

    As for data in memory: an index that has the same entries in another order is refused, one that
    just counts rows is ignored, and others give a warning.
    """
    index = read_index(values)[1] if views is not None and has_index(values) else None
    if index is None or views is None or index == views or index.n_rows != views.n_rows:
        return
    remedy = (
        f"put {what} in the order of the views, or pass the values of {what} without an index to "
        f"match by position"
    )
    if index.entries == views.entries:
        msg = (
            f"{what} must have its rows in the order of the views, but has the same identifiers "
            f"in another order; {remedy}"
        )
        raise error(msg)
    if not index.is_count and not views.is_count:
        msg = (
            f"{what} and the views have different row indices, so rows are matched by position; "
            f"{remedy}"
        )
        warnings.warn(msg, DataWarning, stacklevel=4)


def _joined(parts: Sequence[PartOfIndex]) -> RowIndex | None:
    filled = [part for part in parts if part.n_rows]
    counts = [part.n_counts for part in filled]
    if None not in counts and sum(filter(None, counts)) > 1:
        return None
    *starts, n_rows = accumulate((part.n_rows for part in filled), initial=0)
    entries = sum(part.total for part in filled)
    placed = sum(
        part.placed + start * part.total for part, start in zip(filled, starts, strict=True)
    )
    is_count = [part.first for part in filled] == starts
    return RowIndex(n_rows, entries % MODULUS, placed % MODULUS, is_count)


def _counts(index: Any) -> tuple[int | None, int | None]:
    """``first`` and ``n_counts`` of `PartOfIndex`."""
    if len(index) == 0 or index.dtype.kind not in "iu":
        return None, None
    values = np.asarray(index, dtype=np.int64)
    begins, goes_on = values == 0, values[1:] == values[:-1] + 1
    anew = begins[0] and (begins[1:] | goes_on).all()
    return int(values[0]) if goes_on.all() else None, int(begins.sum()) if anew else None
