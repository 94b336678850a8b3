"""Tables of numbers out of tables of anything; what is left out is told of."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from viewmend.data.joining import in_layout
from viewmend.exceptions import DataWarning, InvalidViewsError
from viewmend.parameters import short
from viewmend.text import has_halves

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


def drop_text_columns(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Tables without the columns that hold no number at all, which are told of."""
    numeric = {}
    for name, table in tables.items():
        useless = [column for column in table if not _numbers(table[column]).notna().any()]
        if useless:
            msg = (
                f"{len(useless)} of {table.shape[1]} columns of view {name!r} hold no number and "
                f"were left out ({short(useless)}); encode them as numbers to use them"
            )
            warnings.warn(msg, DataWarning, stacklevel=3)
        if len(useless) < table.shape[1]:
            numeric[name] = table.drop(columns=useless)
    if not numeric:
        msg = f"no view has a column of numbers, among {short(list(tables))}; encode the columns"
        raise InvalidViewsError(msg)
    return numeric


def match_layout(
    tables: Mapping[str, pd.DataFrame], columns: Mapping[str, Sequence[str]]
) -> dict[str, pd.DataFrame]:
    """The views and columns of a fit, in its order; views may be missing, others are told of."""
    unknown = [name for name in tables if name not in columns]
    told = f"the model was fitted on the views {short(list(columns))} and not on {short(unknown)}"
    if len(unknown) == len(tables):
        msg = f"{told}; name the files after the views"
        raise InvalidViewsError(msg)
    if unknown:
        warnings.warn(f"{told}, which were left out", DataWarning, stacklevel=3)
    return in_layout(tables, columns)


def _numbers(column: pd.Series) -> pd.Series:
    """The column as numbers, NaN at cells that are empty or no number."""
    import pandas as pd

    if column.dtype.kind in "biuf":
        return column
    return pd.to_numeric(column.astype(object).astype(str), errors="coerce")


def to_numbers(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """All columns as floats; a cell that is neither empty nor a number is an error."""
    import pandas as pd

    numbers = table.apply(_numbers)
    wrong = table.notna() & numbers.isna()
    if wrong.to_numpy().any():
        column = wrong.columns[wrong.any()][0]
        row = wrong.index[wrong[column]][0]
        msg = (
            f"column {column!r} of view {name!r} must hold numbers, but sample {row!r} has "
            f"{short(table.at[row, column])}; correct the cell, or empty it"
        )
        raise InvalidViewsError(msg)
    values = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    return pd.DataFrame(values, index=table.index, columns=table.columns)


def drop_empty_samples(tables: Mapping[str, pd.DataFrame]) -> Mapping[str, pd.DataFrame]:
    """Tables without the samples of which no view holds a value; they are told of."""
    import pandas as pd

    seen = pd.concat([table.notna().any(axis=1) for table in tables.values()])
    unseen = sorted(set(seen.index) - set(seen.index[seen]))
    if not unseen:
        return tables
    msg = (
        f"{len(unseen)} samples have no value in any view and were left out ({short(unseen)}); "
        "fill in what is known of them"
    )
    warnings.warn(msg, DataWarning, stacklevel=3)
    return {name: table.drop(index=unseen, errors="ignore") for name, table in tables.items()}
