"""Labels by identifier, from a column of the data or from a file of their own."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from viewmend.data.io.contents import TABLE_LABELS, Contents, Request
from viewmend.data.io.tables import header_of, read_tables
from viewmend.data.joining import column_labels
from viewmend.data.labels import as_label_array, find_unlabelled
from viewmend.exceptions import DataWarning, InvalidLabelsError
from viewmend.parameters import short

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["find_labels"]

# Values that often stand for "not known" in a column of labels.
SUSPECTS = frozenset({"?", "-", "unknown", "unlabeled", "unlabelled", "undefined", "missing"})


def find_labels(contents: Contents, request: Request) -> tuple[pd.Series | None, str]:
    """Labels by identifier, if there are any, and the name of their column."""
    file, column = request.labels_place()
    tables, place = contents.label_tables, "the data"
    if file is not None:
        # Its identifiers may be called otherwise than those of the data.
        shared = contents.id_column in header_of(file)
        tables = read_tables([file], contents.id_column if shared else None, not_id=column)
        place = str(file)
        column = column or _only_column(tables[file.stem], file)
    if column is None:
        column = contents.usual_labels
        if not any(column in table for table in tables.values()):
            return None, column
    labels = column_labels(tables, column, place)
    return _without_unlabelled(labels, request.unlabelled, column), column


def _only_column(table: pd.DataFrame, file: Path) -> str:
    if TABLE_LABELS in table:
        return TABLE_LABELS
    if table.shape[1] != 1:
        msg = (
            f"{file} must have one column beside the identifiers, or one called {TABLE_LABELS}, "
            f"but has {short(list(table))}; say which one holds the labels, as in "
            f"{file.name}:{table.columns[0] if len(table.columns) else 'stage'}"
        )
        raise InvalidLabelsError(msg)
    return str(table.columns[0])


def _without_unlabelled(labels: pd.Series, unlabelled: Sequence[str], column: str) -> pd.Series:
    """Labels without those that stand for none."""
    values = labels.map(_as_written)
    absent = [value for value in unlabelled if not (values == value).any()]
    if absent:
        msg = (
            f"{absent[0]!r} must be a value of the column {column!r} to mean no label, but it "
            f"holds {short(sorted(values.unique()))}; leave it out if empty cells mean that"
        )
        raise InvalidLabelsError(msg)
    suspects = sorted(value for value in values.unique() if value.lower() in SUSPECTS)
    for value in suspects:
        if value not in unlabelled:
            msg = (
                f"{value!r} in the column {column!r} is taken for a class of its own; say that it "
                "means unlabelled if it does"
            )
            warnings.warn(msg, DataWarning, stacklevel=4)
    marked = find_unlabelled(as_label_array(labels.to_numpy(), len(labels)))
    return labels[~values.isin(unlabelled) & ~marked]


def _as_written(label: Any) -> str:
    """A label as it stands in the file, where numbers beside empty cells have become floats."""
    whole = isinstance(label, float) and label.is_integer()
    return str(int(label)) if whole else str(label)
