"""The outer join of tables by the identifiers of their rows: views, and labels."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from viewmend.data.container import MultiViewData
from viewmend.data.indices import as_read, as_text, folded, text_of
from viewmend.data.labels import as_label_array, find_unlabelled
from viewmend.data.validation import check_views
from viewmend.exceptions import (
    DataWarning,
    InvalidLabelsError,
    InvalidViewsError,
)
from viewmend.memory import check_memory
from viewmend.parameters import short

if TYPE_CHECKING:
    import pandas as pd


# Numbers are compared by value, so that 1 and 1.0 are the same identifier.
_SAME_KIND = {"floating": "integer", "mixed-integer-float": "integer"}


def identifiers(rows: Any, title: str, empty: np.ndarray | None = None) -> pd.Index:
    """Identifiers of the rows of ``title``: none empty, each once, of plain dtype.

    Those that are ``empty`` (n_rows,) are told by their values, if it is left out.
    """
    import pandas as pd

    # Text is held in several ways by pandas; as plain values all of them are equal.
    index = pd.Index(pd.Index(rows).to_numpy())
    empty = np.flatnonzero(pd.isna(index.to_numpy()) if empty is None else empty)
    if len(empty):
        msg = (
            f"{title} must have an identifier in every row, but {len(empty)} are empty (the first "
            f"is row {empty[0] + 1} of {len(index)}); fill them in or drop these rows"
        )
        raise InvalidViewsError(msg)
    # 7 and "7" can stand beside each other in one column, and are called the same.
    names = pd.Index(as_text(index)) if index.dtype == object else index
    twice = names[names.duplicated()]
    if twice.size:
        msg = (
            f"{title} must hold every identifier once, but holds {short(twice[0])} more than once; "
            f"keep one of its rows, average them, or give them identifiers of their own"
        )
        raise InvalidViewsError(msg)
    return index


def all_ids(indices: Mapping[str, pd.Index]) -> pd.Index:
    """Identifiers of all views, each once, in the order in which they appear."""
    _check_same_kind(indices)
    for name, index in indices.items():
        _check_shared(name, indices, index)
    first, *others = indices.values()
    for index in others:
        first = first.union(index, sort=False)
    return first


def check_one_length(lengths: Mapping[str, int]) -> None:
    """Refuse tables of different lengths that have nothing but row numbers to be joined by."""
    if len(set(lengths.values())) > 1:
        msg = (
            f"tables must have identifiers to be joined by, but have only row numbers, and "
            f"different lengths {short(lengths)}; give all of them a column of identifiers, named "
            f"in on= for frames, or an index"
        )
        raise InvalidViewsError(msg)


def _check_same_kind(indices: Mapping[str, pd.Index]) -> None:
    """Numbers in one view and text in another can never be equal."""
    from pandas.api.types import infer_dtype

    kinds = {name: infer_dtype(index.to_numpy()) for name, index in indices.items() if len(index)}
    kinds = {name: _SAME_KIND.get(kind, kind) for name, kind in kinds.items()}
    for name, kind in kinds.items():
        first = next(iter(kinds))
        if kind != kinds[first]:
            msg = (
                f"views must be joined by identifiers of one type, but those of view {name!r} are "
                f"{kind} ({short(indices[name][0])}) and those of view {first!r} are "
                f"{kinds[first]} ({short(indices[first][0])}); convert one, as with astype(str)"
            )
            raise InvalidViewsError(msg)


def _check_shared(name: str, indices: Mapping[str, pd.Index], index: pd.Index) -> None:
    """A view that no other shares a sample with is most likely spelt another way."""
    others = {other: theirs for other, theirs in indices.items() if other != name and len(theirs)}
    if len(index) and others and not any(index.isin(theirs).any() for theirs in others.values()):
        other, theirs = next(iter(others.items()))
        msg = (
            f"view {name!r} must share an identifier with some other view, but its own, such as "
            f"{short(index[0])}, are in none (view {other!r} has {short(theirs[0])}); spell the "
            f"identifiers alike, or leave the view out"
        )
        raise InvalidViewsError(msg)


def _warn_of_near_ids(tables: Mapping[str, pd.DataFrame], ids: pd.Index) -> None:
    """Warn of identifiers that are most likely one, and would be samples of some views each."""
    import pandas as pd

    if ids.dtype.kind in "iufM":
        return
    spelt = [folded(name).lstrip("0") for name in as_text(ids)]
    near = pd.Series(spelt, index=ids, dtype=object)
    near = near[near.duplicated(keep=False)]
    for table in tables.values():
        # A table that holds two of them tells them apart.
        own = near[near.index.isin(table.index)]
        near = near[~near.isin(own[own.duplicated()])]
    if near.size:
        first, second, *_ = near.index[near == near.iloc[0]]
        seen = len({as_read(text_of(name)).lstrip("0") for name in (first, second)}) == 1
        show = short if seen else ascii
        msg = (
            f"{near.nunique()} identifier(s) of a view are those of another view but for capitals, "
            f"blanks, leading zeros or what cannot be seen, as {show(first)} and {show(second)}, "
            f"and count as other samples; spell them alike if they are the same"
        )
        warnings.warn(msg, DataWarning, stacklevel=4)


def check_room(n_samples: int, n_columns: Mapping[str, int]) -> None:
    """Refuse views that, dense and joined, would fill the memory."""
    widest = max(n_columns, key=lambda name: n_columns[name])
    remedy = (
        f"reduce the columns first, above all the {n_columns[widest]} of view {widest!r}, for "
        f"example with sklearn.decomposition.TruncatedSVD, which takes sparse matrices"
    )
    # Float64, once as given and once in the order of the samples.
    needed = 2 * 8 * n_samples * sum(n_columns.values())
    check_memory(needed, f"{n_samples} samples", "as dense views", remedy)


def join(
    tables: Mapping[str, pd.DataFrame],
    ids: pd.Index,
    labels: pd.Series | None,
    like: MultiViewData | None,
) -> MultiViewData:
    """Every table in the order of ``ids``, with NaN rows for identifiers that it does not hold.

    Tables have their `identifiers` for index, and so have labels; names and order of the columns
    are those of ``like``, if it is given.
    """
    check_column_names(tables)
    _warn_of_near_ids(tables, ids)
    if like is not None:
        tables = _in_layout_of(like, tables)
    checked = check_views({name: _matrix(table, ids, name) for name, table in tables.items()})
    return MultiViewData(
        checked.views,
        checked.observed,
        checked.names,
        ids=ids.to_numpy(),
        columns=tuple(tuple(table.columns) for table in tables.values()),
        y=None if labels is None else _label_array(labels, ids),
    )


def check_column_names(tables: Mapping[str, pd.DataFrame]) -> None:
    """Refuse tables with two columns of one name."""
    for name, table in tables.items():
        twice = table.columns[table.columns.duplicated()]
        if twice.size:
            msg = (
                f"view {name!r} must have columns of different names, but has {short(twice[0])} "
                f"more than once; rename or drop one of them"
            )
            raise InvalidViewsError(msg)


def _in_layout_of(
    like: MultiViewData, tables: Mapping[str, pd.DataFrame]
) -> dict[str, pd.DataFrame]:
    columns = columns_of(like)
    unknown = [name for name in tables if name not in columns]
    if unknown:
        msg = (
            f"view {unknown[0]!r} is not among the views {short(list(columns))} of like; use these "
            f"names, or leave the view out"
        )
        raise InvalidViewsError(msg)
    return in_layout(tables, columns)


def columns_of(like: MultiViewData) -> dict[str, Sequence[Hashable]]:
    """Names of the columns by view, their numbers where they have none."""
    names = like.columns or tuple(tuple(range(size)) for size in like.n_features)
    return dict(zip(like.names, names, strict=True))


def in_layout(
    tables: Mapping[str, pd.DataFrame], columns: Mapping[str, Sequence[Hashable]]
) -> dict[str, pd.DataFrame]:
    """The views and columns of a fit, in its order; views may be missing, others are dropped."""
    return {
        name: _columns_of_fit(tables[name], wanted, name)
        for name, wanted in columns.items()
        if name in tables
    }


def _columns_of_fit(table: pd.DataFrame, columns: Sequence[Hashable], name: str) -> pd.DataFrame:
    absent = [column for column in columns if column not in table.columns]
    if absent:
        msg = (
            f"view {name!r} must have the {len(columns)} columns that the model was fitted on, but "
            f"lacks {len(absent)} of them, {short(absent)}; add them, with empty cells if unknown"
        )
        raise InvalidViewsError(msg)
    # Of columns without names nothing tells which ones are new.
    if tuple(columns) == tuple(range(len(columns))) and table.shape[1] != len(columns):
        msg = (
            f"view {name!r} must have {len(columns)} columns, as in like, but has "
            f"{table.shape[1]}, none of them named; pass the same columns in the same order"
        )
        raise InvalidViewsError(msg)
    return table[list(columns)]


def _matrix(table: pd.DataFrame, ids: pd.Index, name: str) -> np.ndarray:
    """Values (n_samples, n_features), NaN at empty cells and in rows of identifiers not held."""
    text = [column for column in table.columns if table[column].dtype.kind not in "biuf"]
    if text:
        msg = (
            f"column {text[0]!r} of view {name} must hold numbers but has dtype "
            f"{table[text[0]].dtype}; encode it as numbers or leave it out"
        )
        raise InvalidViewsError(msg)
    return table.reindex(ids).to_numpy(dtype=np.float64, na_value=np.nan)


def without_columns(
    tables: Mapping[str, pd.DataFrame], *columns: Hashable
) -> dict[str, pd.DataFrame]:
    """The tables without these columns, in whichever of them they are."""
    return {
        name: table.drop(columns=list(columns), errors="ignore") for name, table in tables.items()
    }


# What to do if the column that is named is none of the tables, by what it should hold.
NAME_ONE: Mapping[str, str] = {
    "label": "name one of these, or give the labels by identifier, in a folder as a file "
    "labels.csv with the columns id and label",
    "group": "name one of these, or a table with identifiers, as in visits.csv:patient",
}


def column_labels(
    tables: Mapping[str, pd.DataFrame], column: str, place: str, kind: str = "label"
) -> pd.Series:
    """Labels by identifier in ``column`` of whichever tables have it, which must not contradict.

    Or another ``kind`` of words for samples, of those of `NAME_ONE`.
    """
    import pandas as pd

    labels = [_labelled(table[column]) for table in tables.values() if column in table]
    if not labels:
        columns = {name: list(table.columns) for name, table in tables.items()}
        msg = (
            f"{kind}s must name a column of {place}, but {column!r} is none of their columns "
            f"{short(columns)}; {NAME_ONE[kind]}"
        )
        raise InvalidLabelsError(msg)
    joined = pd.concat(labels)
    first = joined[~joined.index.duplicated()]
    differs = joined.ne(first.reindex(joined.index))
    if differs.any():
        name = joined.index[differs][0]
        msg = (
            f"{name!r} has the {kind}s {sorted(map(str, joined[name].unique()))} in {place}; a "
            f"sample has one {kind} in all tables, so correct the wrong one"
        )
        raise InvalidLabelsError(msg)
    return first


def _labelled(labels: pd.Series) -> pd.Series:
    """The labels without those that mean that there is none."""
    return labels[~find_unlabelled(as_label_array(labels.to_numpy(), len(labels)))]


def labels_by_id(labels: Any) -> pd.Series:
    """Labels given as a series or a dict by identifier."""
    import pandas as pd

    if isinstance(labels, Mapping):
        labels = pd.Series(dict(labels), dtype=object)
    if not isinstance(labels, pd.Series):
        msg = (
            f"labels must be the name of a column, a pandas Series or a dict of identifier to "
            f"label, got a {type(labels).__name__}; say which sample each label belongs to, as "
            f"with dict(zip(ids, labels))"
        )
        raise InvalidLabelsError(msg)
    return labels.set_axis(identifiers(labels.index, "labels"))


def _label_array(labels: pd.Series, ids: pd.Index) -> np.ndarray:
    """One label per identifier, None where there is none."""
    # As objects, since integers beside empty cells would become floats.
    known = _labelled(labels).astype(object)
    strangers = known.index.difference(ids, sort=False)
    if known.size and strangers.size == known.size:
        msg = (
            f"labels must be of samples that some view holds, but none of their {known.size} "
            f"identifiers, such as {short(strangers[0])}, is among those of the views, such as "
            f"{short(ids[0])}; spell them alike, with the same type"
        )
        raise InvalidLabelsError(msg)
    if strangers.size:
        msg = (
            f"{strangers.size} labelled samples of the data, such as {strangers[0]!r}, are in no "
            "view and were left out; check that all tables spell the identifiers alike"
        )
        warnings.warn(msg, DataWarning, stacklevel=4)
    values = known.reindex(ids)
    return values.where(values.notna(), None).to_numpy(dtype=object)
