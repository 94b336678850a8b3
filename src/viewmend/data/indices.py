"""What tells rows apart: identifiers of views, labels, masks and groups, compared as text.

As text, because the same identifiers come as numbers from one table and as text from another. Rows
are taken by their position, so an index must be that of the views, or be known to say nothing.
"""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from viewmend.exceptions import DataWarning, InvalidViewsError
from viewmend.parameters import short


def index_of(array: Any) -> Any:
    """The index of a series or frame of pandas; None of others.

    Lists have a method of that name, and an index of pandas has none itself.
    """
    return array.index if hasattr(array, "reindex") and hasattr(array, "iloc") else None


def objects(values: Iterable[Any]) -> np.ndarray:
    """An array (n,) of these objects, one by one: NumPy would make a table of tuples."""
    return np.fromiter(values, dtype=object)


def text_of(identifier: Any) -> str:
    """The one spelling of an identifier: 7, 7.0 and "7" are the same.

    So are the parts of one with several, which is a tuple, as in ('p1', 7).
    """
    if isinstance(identifier, tuple):
        parts = [part if _is_number(part) else repr(part) for part in map(text_of, identifier)]
        return f"({', '.join(parts)})"
    if isinstance(identifier, bytes):
        return identifier.decode(errors="backslashreplace")
    whole = isinstance(identifier, (float, np.floating)) and identifier.is_integer()
    # Days are written without the hours that they have in pandas.
    return str(int(identifier) if whole else identifier).removesuffix(" 00:00:00")


def as_read(text: str) -> str:
    """A text without capitals, and without blanks around it or repeated inside."""
    return " ".join(text.casefold().split())


def folded(text: str) -> str:
    """`as_read`, and without what cannot be seen: texts that look the same are equal."""
    if not text.isascii():
        # Letters with an accent are one sign or two; some signs have no width.
        text = unicodedata.normalize("NFC", text)
        text = "".join(sign for sign in text if unicodedata.category(sign) != "Cf")
    return as_read(text)


def as_text(rows: Any) -> np.ndarray:
    """Identifiers (n_samples,), each in its one spelling."""
    values = np.asarray(rows)
    if values.dtype.kind == "M":
        # Nanoseconds would become plain numbers.
        values = values.astype("datetime64[us]")
    spell = str if values.dtype.kind in "iu" else text_of
    return objects(map(spell, values.tolist()))


def same_rows(index: Any, rows: Any) -> bool:
    """Whether two indices hold the same identifiers in the same order."""
    if len(index) != len(rows):
        return False
    equal = hasattr(index, "equals") and index.equals(rows)
    return bool(equal or np.array_equal(as_text(index), as_text(rows)))


def in_another_order(index: Any, rows: Any) -> bool:
    """Whether two indices hold the same identifiers, but not in the same order."""
    if len(index) != len(rows) or same_rows(index, rows):
        return False
    return set(as_text(index)) == set(as_text(rows))


def identifying(rows: Any) -> np.ndarray | None:
    """Identifiers (n_samples,), unless rows are just numbered or not told apart."""
    if rows is None or len(rows) == 0 or (getattr(rows, "step", None) == 1 and rows[0] == 0):
        return None
    names = as_text(rows)
    # Text is somebody's choice of names, even if it counts.
    counted = _just_count(names) and not isinstance(rows[0], str)
    return None if counted or len(set(names)) < len(names) else np.asarray(rows)


def check_same_rows(
    index: Any, rows: Any, what: str, error: type[ValueError] = InvalidViewsError
) -> None:
    """Refuse an index that holds the identifiers of the views' rows in another order.

    It is not clear which of the two orders was meant. An index that just counts rows is ignored,
    unless the index of the views does the same, and so are numbers beside names, as pandas numbers
    what has no identifiers. Any other index of other samples gives a warning.
    """
    if index is None or rows is None or len(index) != len(rows) or same_rows(index, rows):
        return
    theirs, ours = as_text(index), as_text(rows)
    place = np.flatnonzero(theirs != ours)[0]
    told = f"row {place} is {short(theirs[place])} there and {short(ours[place])} here"
    remedy = f"pass {what}.loc[index of the views], or {what}.to_numpy() to match by position"
    if in_another_order(index, rows):
        msg = (
            f"{what} must have its rows in the order of the views, but has the same identifiers in "
            f"another order ({told}); {remedy}"
        )
        raise error(msg)
    numbers = {all(map(_is_number, names)) for names in (theirs, ours)}
    same_kind = len(numbers) == 1 or not set(theirs).isdisjoint(ours)
    if same_kind and not any(map(_just_count, (theirs, ours))):
        msg = (
            f"{what} and the views have different row indices ({told}), so rows are matched by "
            f"position; {remedy}"
        )
        warnings.warn(msg, DataWarning, stacklevel=4)


def _just_count(names: np.ndarray) -> bool:
    return np.array_equal(names, as_text(np.arange(len(names))))


def _is_number(text: str) -> bool:
    return text.removeprefix("-").replace(".", "", 1).isdecimal()
