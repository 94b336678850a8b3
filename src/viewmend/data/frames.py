"""Views from pandas and polars frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from viewmend.data.categories import (
    NumericTable,
    read_columns,
    read_columns_as,
    refuse,
    settle,
    source_columns,
)
from viewmend.data.container import MultiViewData
from viewmend.data.joining import (
    all_ids,
    check_column_names,
    check_one_length,
    check_room,
    column_labels,
    columns_of,
    identifiers,
    in_layout,
    join,
    labels_by_id,
    without_columns,
)
from viewmend.exceptions import InvalidViewsError
from viewmend.parameters import short

if TYPE_CHECKING:
    import pandas as pd


# Types of polars that NumPy has no empty cell for, and those of pandas that have one.
NULLABLE = {
    "Boolean": "boolean",
    **{f"{kind}{bits}": f"{kind}{bits}" for kind in ("Int", "UInt") for bits in (8, 16, 32, 64)},
}


def from_frames(
    frames: Mapping[str, Any] | Sequence[Any],
    labels: str | pd.Series | Mapping[Any, Any] | None = None,
    on: str | None = None,
    *,
    like: MultiViewData | None = None,
    unreadable_as_missing: bool = False,
) -> MultiViewData:
    """Join one frame per view by the identifiers of their rows.

    This is an outer join: every identifier that occurs in some frame is a sample. It does not have
    the views in whose frames it does not occur or has an empty row. The frames are not changed.

    Columns that are not numbers are converted: booleans become 0 and 1, and every category becomes
    a column of 0 and 1, such as ``colour=red``. Categories with fewer than 2 cells, or less than 1
    % of them, share the column ``colour=(rare)``. Columns in which nearly all values differ, such
    as identifiers and free text, are left out. Warnings report this.

    Parameters
    ----------
    frames : dict or list of frames (n_observed_v, n_columns_v)
        One frame per view, of pandas or polars; polars LazyFrames are collected. Columns are
        numbers, booleans or categories.
    labels : str, Series or dict, optional
        Name of the column of labels in one or more frames, or labels by identifier. Samples with an
        empty label, or without one, are unlabelled.
    on : str, optional
        Name of the column of identifiers. Without it, the index of the frames is used; polars
        frames have none.
    like : MultiViewData, optional
        Data that a model was fitted on. Columns are put in the same order and other columns
        dropped, so that the result can be passed to the model. New categories count as rare, or are
        0 in all columns, with a warning.
    unreadable_as_missing : bool, default=False
        Whether cells such as ``<0.05`` or ``n.d.`` in a column of numbers count as missing.
        Otherwise they are an error that lists all of them. A column of numbers is one in which at
        least half of the cells are numbers.

    Returns
    -------
    MultiViewData
        Samples in the order in which their identifiers appear, frame by frame.

    Raises
    ------
    InvalidViewsError
        If identifiers are empty, repeated, of several types or shared by no two views, or if
        columns hold dates, complex numbers or single cells that are no numbers.
    InvalidLabelsError
        If the labels do not exist, contradict each other or belong to none of the samples.

    Examples
    --------
    >>> import pandas as pd
    >>> photo = pd.DataFrame({"x": [1.0, 2.0], "kind": ["cat", "dog"]}, index=["a", "b"])
    >>> sound = pd.DataFrame({"w": [7.0, 8.0]}, index=["c", "b"])
    >>> data = from_frames({"photo": photo, "sound": sound}, labels="kind")
    >>> data.ids.tolist(), data.y.tolist()
    (['a', 'b', 'c'], ['cat', 'dog', None])
    >>> data.observed.astype(int).tolist()
    [[1, 0], [1, 1], [0, 1]]
    """
    tables = {name: _table(frame, name, on) for name, frame in _named(frames).items()}
    if on is None:
        _check_not_just_numbered(tables)
    tables = {
        name: table.set_axis(identifiers(table.index, f"view {name!r}"), axis=0)
        for name, table in tables.items()
    }
    known = None
    if isinstance(labels, str):
        known = column_labels(tables, labels, "the frames")
        tables = without_columns(tables, labels)
    elif labels is not None:
        known = labels_by_id(labels)
    ids = all_ids({name: table.index for name, table in tables.items()})
    check_column_names(tables)
    read = _numeric(tables, like)
    refuse(settle([f for part in read.values() for f in part.faults], unreadable_as_missing))
    tables = {name: part.table for name, part in read.items()}
    check_room(len(ids), {name: table.shape[1] for name, table in tables.items()})
    joined = join(tables, ids, known, like)
    return replace(joined, categories={name: part.categories for name, part in read.items()})


def _numeric(
    tables: Mapping[str, pd.DataFrame], like: MultiViewData | None
) -> dict[str, NumericTable]:
    """Every table as numbers, its columns read as those of ``like``, if it is given."""
    if like is None:
        read = {name: read_columns(table, name) for name, table in tables.items()}
        for name, part in read.items():
            if part.table.shape[1] == 0 and not part.faults:
                msg = (
                    f"view {name!r} must have a column of numbers or categories, but has "
                    f"{short(list(tables[name]))}; leave the view out"
                )
                raise InvalidViewsError(msg)
        return read
    learnt, columns = like.categories or {}, columns_of(like)
    # Views that it does not have are refused by the join.
    known = {name: table for name, table in tables.items() if name in columns}
    sources = {name: source_columns(columns[name], learnt.get(name, {})) for name in known}
    read = {
        name: read_columns_as(table, name, learnt.get(name, {}))
        for name, table in in_layout(known, sources).items()
    }
    return {name: read.get(name) or NumericTable(table) for name, table in tables.items()}


def _named(frames: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    if isinstance(frames, (list, tuple)):
        frames = {f"view {v}": frame for v, frame in enumerate(frames)}
    named = dict(frames) if isinstance(frames, Mapping) else {}
    if not named:
        msg = (
            f"frames must be a dict or list of at least one frame, got {type(frames).__name__} "
            f"{short(frames)}; pass one frame per view, as in {{'photo': frame}}"
        )
        raise InvalidViewsError(msg)
    return {str(name): frame for name, frame in named.items()}


def _table(frame: Any, name: str, on: str | None) -> pd.DataFrame:
    """A pandas frame with the identifiers of the samples as index."""
    import pandas as pd

    library = type(frame).__module__.partition(".")[0]
    if library == "polars" and hasattr(frame, "lazy"):
        frame = _from_polars(frame, name, on)
    if not isinstance(frame, pd.DataFrame):
        msg = (
            f"view {name!r} must be a pandas or polars frame, got a {type(frame).__name__}; "
            f"convert it, or pass arrays with their identifiers to from_arrays"
        )
        raise InvalidViewsError(msg)
    if on is None or (frame.index.name == on and on not in frame.columns):
        return frame
    if on not in frame.columns:
        msg = (
            f"view {name!r} must have the column {on!r} to join its rows by, but has "
            f"{short(list(frame.columns))}; add it, or name another in on="
        )
        raise InvalidViewsError(msg)
    return frame.set_index(on)


def _from_polars(frame: Any, name: str, on: str | None) -> pd.DataFrame:
    import pandas as pd

    if on is None:
        msg = (
            f"view {name!r} is a polars frame, which has no index to join its rows by; name the "
            f"column of identifiers, as in from_frames(frames, on='id')"
        )
        raise InvalidViewsError(msg)
    if hasattr(frame, "collect"):
        frame = frame.collect()
    # Column by column, which needs no pyarrow.
    return pd.DataFrame({column: _column(frame[column]) for column in frame.columns})


def _column(series: Any) -> Any:
    """Values of a polars series; empty cells make neither floats of integers nor text of flags."""
    import pandas as pd

    dtype = str(series.dtype)
    if dtype.startswith("Decimal"):
        return series.cast(float).to_numpy()
    if series.null_count() and dtype in NULLABLE:
        return pd.array(series.to_list(), dtype=NULLABLE[dtype])
    return series.to_numpy()


def _check_not_just_numbered(tables: Mapping[str, pd.DataFrame]) -> None:
    """Row numbers of frames of different lengths do not say which rows belong together."""
    import pandas as pd

    lengths = {name: len(table) for name, table in tables.items()}
    numbered = all(
        isinstance(table.index, pd.RangeIndex) and table.index.equals(pd.RangeIndex(len(table)))
        for table in tables.values()
    )
    if numbered:
        check_one_length(lengths)
