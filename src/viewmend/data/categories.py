"""Columns of tables as numbers: which ones are numbers, which are categories, which are neither.

Columns of numbers or booleans stay as they are. In any other column, cells are read as text:

- dates and durations are a fault, and so are complex numbers;
- where at least half of the cells that are not empty are numbers, it is a column of numbers, and
  the other cells are a fault;
- else its values are categories, and it becomes a column of 0 and 1 for each of them. Categories
  of few cells share one column. A column in which nearly all cells differ, such as identifiers and
  free text, is left out.

A fault is refused by a fit and reported by an inspection, in the same words.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from viewmend.exceptions import DataWarning, InvalidViewsError
from viewmend.parameters import short
from viewmend.text import counted

if TYPE_CHECKING:
    import pandas as pd

# Least share of numbers, or of dates, among the cells of a column of them.
READABLE = 0.5
# A category of its own has at least this share of the cells, and at least that many.
LEAST_SHARE, LEAST_CELLS = 0.01, 2
# Columns that one column of categories may become.
MOST_CATEGORIES = 20
# Share of different values above which a column of many is left out.
DISTINCT = 0.5
# What the rare categories are called together.
RARE = "(rare)"
# Text that means an empty cell, as pandas has it for files, so that frames mean the same.
EMPTY_CELLS = frozenset(
    {
        *("", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NULL", "null", "None"),
        *("NaN", "nan", "NAN", "-NaN", "-nan", "NaT", "1.#IND", "1.#QNAN", "-1.#IND", "-1.#QNAN"),
    }
)
BOOLEANS = {"true": 1.0, "false": 0.0}
DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:\D.*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}(?:\D.*)?")
# Numbers with a decimal comma, with marks between thousands, or with a unit.
NUMBER = r"\d+(?:[.,]\d+)?|\d{1,3}(?:[,' ]\d{3})+(?:\.\d+)?"
WITH_SIGNS = re.compile(rf"[$€£]?\s*[-+]?(?:{NUMBER})\s*[%‰$€£]?")


@dataclass(frozen=True, eq=False)
class Categories:
    """What a column of categories becomes: ``kept`` (n_kept,) of str have a column of their own.

    With ``rare``, all other values share one; without, they are 0 in every column.
    """

    kept: np.ndarray
    rare: bool

    def names(self, column: Hashable) -> list[str]:
        """Names of the columns of 0 and 1."""
        return [f"{column}={value}" for value in (*self.kept.tolist(), *[RARE] * self.rare)]

    def encode(self, column: pd.Series) -> pd.DataFrame:
        """One column of 0 and 1 per name, NaN where the cell is empty."""
        import pandas as pd

        texts = _texts(column)
        ones = (texts.to_numpy(dtype=object)[:, None] == self.kept.astype(object)).astype(float)
        if self.rare:
            ones = np.column_stack([ones, ~ones.any(axis=1)])
        ones[texts.isna().to_numpy()] = np.nan
        return pd.DataFrame(ones, index=column.index, columns=self.names(column.name))


@dataclass(frozen=True)
class Fault:
    """A column that a fit refuses: of which view, of what kind, how many of its cells, and some."""

    view: str
    column: Hashable
    kind: str
    n_wrong: int
    n_cells: int
    examples: tuple[str, ...]

    @property
    def message(self) -> str:
        """What is wrong."""
        what = FAULTS[self.kind][0]
        told = ", ".join(map(short, self.examples))
        return f"column {self.column!r} has {self.n_wrong} of {self.n_cells} cells {what} ({told})"

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return FAULTS[self.kind][1]


# Kinds of faults: what the cells are, and what to do about them.
UNREADABLE = "unreadable"
FAULTS: Mapping[str, tuple[str, str]] = {
    UNREADABLE: (
        "that are no numbers",
        "correct or empty these cells, or let them count as missing with unreadable_as_missing=True"
        " (--unreadable-as-missing on the command line)",
    ),
    "dates": (
        "that are dates or durations",
        "make numbers of them, as in (dates - dates.min()).dt.days, or leave the column out",
    ),
    "signs": (
        "that are numbers with other signs",
        "write plain numbers, such as 45.1 for 45.1% and 1234 for 1,234, or leave the column out",
    ),
    "complex": (
        "that are complex numbers",
        "pass the real and imaginary parts as columns, or leave the column out",
    ),
}


@dataclass(frozen=True, eq=False)
class NumericTable:
    """A table as numbers, NaN where cells are empty or unreadable, and how it became so."""

    table: pd.DataFrame
    categories: dict[Hashable, Categories] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()


def read_columns(table: pd.DataFrame, view: str) -> NumericTable:
    """Find out the kind of every column; warn about columns that are left out or encoded."""
    others = {column: table[column] for column in _not_numeric(table)}
    faults = _faults(others, view)
    texts = [column for column in others if column not in faults and not _is_numeric(table[column])]
    learnt = {column: _learn(_texts(table[column]).dropna()) for column in texts}
    refused = {column for column, fault in faults.items() if fault.kind != UNREADABLE}
    useless = [column for column, found in learnt.items() if found is None]
    categories = {column: found for column, found in learnt.items() if found is not None}
    _tell(view, useless, {c: found for c, found in categories.items() if not _declared(table[c])})
    kept = table.drop(columns=[*useless, *refused])
    return NumericTable(_as_numbers(kept, categories), categories, tuple(faults.values()))


def read_columns_as(
    table: pd.DataFrame, view: str, categories: Mapping[Any, Categories]
) -> NumericTable:
    """Columns as those of a fit were read: its ``categories``, and numbers otherwise."""
    numeric = {c: table[c] for c in _not_numeric(table) if c not in categories}
    faults = _faults(numeric, view, expected=True)
    for column in [c for c, found in categories.items() if c in table and not found.rare]:
        _tell_new(_texts(table[column]).dropna(), view, column, categories[column])
    return NumericTable(_as_numbers(table, categories), dict(categories), tuple(faults.values()))


def _tell_new(known: pd.Series, view: str, column: Hashable, categories: Categories) -> None:
    """Warn of cells whose categories no column stands for, as where they are spelt otherwise."""
    new = known[~known.isin(categories.kept)]
    if len(new):
        examples = ", ".join(map(short, new.unique()[:3]))
        msg = (
            f"{len(new)} of {len(known)} cells of column {column!r} of view {view!r} are of "
            f"categories that fit did not see ({examples}) and become 0 in all columns; spell them "
            f"as in fit if they are the same"
        )
        warnings.warn(msg, DataWarning, stacklevel=4)


def source_columns(
    columns: Iterable[Hashable], categories: Mapping[Any, Categories]
) -> list[Hashable]:
    """The columns of a table that became these ``columns``, in the same order."""
    source: dict[Hashable, Hashable] = {
        name: column for column, found in categories.items() for name in found.names(column)
    }
    return list(dict.fromkeys(source.get(column, column) for column in columns))


def settle(faults: Sequence[Fault], unreadable_as_missing: bool) -> tuple[Fault, ...]:
    """The faults that remain; unreadable cells are forgiven with a warning, if asked."""
    forgiven = [f for f in faults if unreadable_as_missing and f.kind == UNREADABLE]
    for fault in forgiven:
        msg = f"view {fault.view!r}: {fault.message}, which count as missing"
        warnings.warn(msg, DataWarning, stacklevel=4)
    return tuple(fault for fault in faults if fault not in forgiven)


def refuse(faults: Sequence[Fault]) -> None:
    """Raise one error that lists all faults, if there are any."""
    if faults:
        listed = "; ".join(f"view {fault.view!r}: {fault.message}" for fault in faults)
        remedies = "; ".join(dict.fromkeys(fault.remedy for fault in faults))
        msg = f"columns must hold numbers or categories, but {listed}. To go on, {remedies}"
        raise InvalidViewsError(msg)


def _not_numeric(table: pd.DataFrame) -> list[Hashable]:
    kinds = zip(table.columns, table.dtypes, strict=True)
    return [column for column, dtype in kinds if dtype.kind not in "biuf"]


def _declared(column: pd.Series) -> bool:
    """Whether the frame itself says that the column holds categories."""
    return type(column.dtype).__name__ == "CategoricalDtype"


def _texts(column: pd.Series) -> pd.Series:
    """Cells as text without blanks around it, NaN where they are empty."""
    written = column.astype(object).where(column.notna(), "").map(_written)
    return written.where(~written.isin(EMPTY_CELLS), np.nan)


def _written(cell: Any) -> str:
    """A cell as it was written: whole numbers may have become floats beside empty cells."""
    whole = isinstance(cell, float) and cell.is_integer()
    return str(int(cell)) if whole else str(cell).strip()


def _numbers(column: pd.Series) -> pd.Series:
    """The column as numbers, NaN at cells that are empty or no number."""
    import pandas as pd

    if column.dtype.kind in "biuf":
        return column
    texts = _texts(column)
    numbers = pd.to_numeric(texts, errors="coerce").astype(np.float64)
    # What it reads is a few last digits off; Python reads the number that is written.
    numbers = numbers.where(numbers.isna(), texts).astype(np.float64)
    return numbers.fillna(texts.str.lower().map(BOOLEANS).astype(np.float64))


def _is_numeric(column: pd.Series) -> bool:
    if _declared(column):
        return False
    known = _texts(column).dropna()
    return bool(len(known) and _numbers(known).notna().mean() >= READABLE)


def _faults(
    columns: Mapping[Hashable, pd.Series], view: str, expected: bool = False
) -> dict[Hashable, Fault]:
    """What is wrong with each column, if something is; with ``expected``, all shall be numbers."""
    found = {}
    for name, column in columns.items():
        known = _texts(column).dropna()
        kind, wrong = _kind_of_fault(column, known, expected)
        if len(wrong):
            examples = tuple(dict.fromkeys(wrong))[:3]
            found[name] = Fault(view, name, kind, len(wrong), len(known), examples)
    return found


def _kind_of_fault(
    column: pd.Series, known: pd.Series, expected: bool
) -> tuple[str, Sequence[str]]:
    if column.dtype.kind in "mM":
        return "dates", known.tolist()
    if column.dtype.kind == "c":
        return "complex", known.tolist()
    dates = known[known.map(lambda text: DATE.fullmatch(text) is not None).astype(bool)]
    if len(dates) and len(dates) >= READABLE * len(known) and not _declared(column):
        return "dates", dates.tolist()
    if expected or _is_numeric(column):
        return UNREADABLE, known[_numbers(known).isna()].tolist()
    signed = known[known.map(lambda text: WITH_SIGNS.fullmatch(text) is not None).astype(bool)]
    if len(signed) and len(signed) >= READABLE * len(known) and _learn(known) is None:
        return "signs", signed.tolist()
    return "", ()


def _learn(known: pd.Series) -> Categories | None:
    """Categories of the cells that are not empty; None where nearly all of them differ."""
    from sklearn.preprocessing import OneHotEncoder

    n_distinct = known.nunique()
    if n_distinct == 0 or n_distinct > max(MOST_CATEGORIES, DISTINCT * len(known)):
        return None
    least = max(LEAST_CELLS, math.ceil(LEAST_SHARE * len(known)))
    encoder = OneHotEncoder(min_frequency=least, max_categories=MOST_CATEGORIES)
    encoder.fit(known.to_numpy(dtype=object)[:, None])
    rare = encoder.infrequent_categories_[0]
    rare = np.array([], dtype=object) if rare is None else rare
    kept = np.setdiff1d(encoder.categories_[0], rare).astype(np.str_)
    return Categories(kept, len(rare) > 0) if len(kept) else None


def _as_numbers(table: pd.DataFrame, categories: Mapping[Any, Categories]) -> pd.DataFrame:
    """All columns as floats, each column of categories in the place where it stood."""
    import pandas as pd

    # Of new data, a column of categories may look like numbers, or be empty.
    if _not_numeric(table) or any(column in table for column in categories):
        blocks = [
            categories[column].encode(table[column])
            if column in categories
            else _numbers(table[column]).to_frame(column)
            for column in table
        ]
        table = pd.concat(blocks, axis=1)
    if (table.dtypes == np.float64).all():
        return table
    values = table.to_numpy(dtype=np.float64, na_value=np.nan)
    return pd.DataFrame(values, index=table.index, columns=table.columns)


def _tell(view: str, useless: Sequence[Hashable], encoded: Mapping[Any, Categories]) -> None:
    if useless:
        msg = (
            f"left out {counted(len(useless), 'column')} of view {view!r} "
            f"({short(list(useless))}): empty, or with values that nearly all differ, as those of "
            f"identifiers and free text do"
        )
        warnings.warn(msg, DataWarning, stacklevel=4)
    if encoded:
        counts = {column: len(found.names(column)) for column, found in encoded.items()}
        msg = (
            f"{counted(len(encoded), 'column')} of text of view {view!r} became columns of 0 and "
            f"1, one per category ({short(counts)}); leave out those that are no features"
        )
        if names := [column for column, found in encoded.items() if found.rare]:
            # Learned, the names of patients would give their classes away.
            msg += (
                f", and pass a column as groups if it tells which rows are of one patient, donor "
                f"or batch ({short(names)})"
            )
        warnings.warn(msg, DataWarning, stacklevel=4)
