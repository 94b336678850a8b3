"""What a table is, apart from any format it is written in."""

from __future__ import annotations

from dataclasses import dataclass

from viewmend.bench.summaries import Condition, rate_text

__all__ = ["GAP", "HEADS", "Entry", "Line", "Table", "heads_of"]

# Columns that name a condition.
HEADS = ("data", "VMR", "LAR")


@dataclass(frozen=True)
class Entry:
    """What stands in one place of a table.

    Attributes
    ----------
    text : str
    value : float, optional
        What it is sorted by.
    place : int
        1 for the best of its line, 2 for the second, 0 for the others.
    verdict : str
        Of `viewmend.bench.stats.VERDICTS`, empty where nothing was compared.
    """

    text: str
    value: float | None = None
    place: int = 0
    verdict: str = ""


# Where nothing was measured.
GAP = Entry("-")


@dataclass(frozen=True)
class Line:
    """A line of a table; a summary stays below the others however they are sorted."""

    heads: tuple[str, ...]
    entries: tuple[Entry, ...]
    summary: bool = False


@dataclass(frozen=True)
class Table:
    """A table that can be written in any format.

    Attributes
    ----------
    title : str
    heads, columns : tuple of str
        Names of the columns that tell what a line is about, and of the others.
    lines : tuple of Line
    notes : tuple of str
    """

    title: str
    heads: tuple[str, ...]
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()


def heads_of(condition: Condition) -> tuple[str, ...]:
    """A condition in the columns of `HEADS`."""
    return condition.data, rate_text(condition.missing_rate), rate_text(condition.label_rate)
