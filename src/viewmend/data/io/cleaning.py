"""Convert tables to tables of numbers; warnings report what is left out."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from viewmend.data.categories import NumericTable, refuse
from viewmend.data.joining import in_layout
from viewmend.exceptions import DataWarning, InvalidViewsError
from viewmend.parameters import short
from viewmend.text import counted, has_halves

if TYPE_CHECKING:
    import pandas as pd


def select_views(tables: Mapping[str, Any], names: Sequence[str]) -> Mapping[str, Any]:
    """The views of these names, or all where none is named."""
    absent = [name for name in names if name not in tables]
    if absent:
        msg = f"there is no view {absent[0]!r}; choose among {short(list(tables))}"
        raise InvalidViewsError(msg)
    return {name: tables[name] for name in names} if names else tables


def check_columns_exist(tables: Mapping[str, pd.DataFrame], names: Sequence[str]) -> None:
    """Refuse names of columns that no table has, which are most likely misspelt."""
    for name in names:
        if not any(name in table for table in tables.values()):
            columns = {view: list(table) for view, table in tables.items()}
            msg = f"there is no column {name!r} to leave out among {short(columns)}; check its name"
            raise InvalidViewsError(msg)


def check_text(tables: Mapping[str, pd.DataFrame], labels: pd.Series | None) -> None:
    """Refuse names that no file could hold: nothing that is said of them could be written."""
    parts = {f"the view {name!r}": [name, *table, *table.index] for name, table in tables.items()}
    parts |= {} if labels is None else {"the labels": [*labels.index, *labels]}
    for title, names in parts.items():
        broken = [name for name in names if isinstance(name, str) and has_halves(name)]
        if broken:
            msg = (
                f"{title} must have names that can be written, but {broken[0]!r} holds half of a "
                "character; rename it, or save the file in UTF-8"
            )
            raise InvalidViewsError(msg)


def drop_empty_columns(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Tables without their empty columns; warns about these."""
    filled = {}
    for name, table in tables.items():
        empty = table.isna().all().to_numpy()
        if empty.any():
            named = short(table.columns[empty].tolist())
            columns = counted(int(empty.sum()), "empty column")
            msg = f"left out {columns} of view {name!r} ({named})"
            warnings.warn(msg, DataWarning, stacklevel=3)
        filled[name] = table.loc[:, ~empty]
    return filled


def drop_empty_views(read: Mapping[str, NumericTable]) -> dict[str, NumericTable]:
    """Views of which some column is left; with none at all, what is wrong with them is an error."""
    kept = {name: part for name, part in read.items() if part.table.shape[1]}
    if not kept:
        refuse([fault for part in read.values() for fault in part.faults])
        msg = (
            f"no view has a column of numbers or categories, among {short(list(read))}; encode the "
            "columns as numbers"
        )
        raise InvalidViewsError(msg)
    return kept


def match_layout(
    tables: Mapping[str, pd.DataFrame], columns: Mapping[str, Sequence[Hashable]]
) -> dict[str, pd.DataFrame]:
    """The views and columns of a fit, in its order; views may be missing. Warns about others."""
    unknown = [name for name in tables if name not in columns]
    told = f"the model was fitted on the views {short(list(columns))} and not on {short(unknown)}"
    if len(unknown) == len(tables):
        msg = f"{told}; name the files after the views"
        raise InvalidViewsError(msg)
    if unknown:
        warnings.warn(f"{told}, which were left out", DataWarning, stacklevel=3)
    return in_layout(tables, columns)
