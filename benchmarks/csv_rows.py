"""Rows of results in CSV files, as the scripts of this folder keep them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["append_rows", "read_rows", "shown", "shown_row", "write_rows"]


def shown(value: object, digits: int = 4) -> str:
    """A cell: numbers that are not whole with so many digits."""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def shown_row(row: Mapping[str, Any], digits: int = 4) -> dict[str, str]:
    """The cells of a row."""
    return {field: shown(value, digits) for field, value in row.items()}


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a file, none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write_rows(path: Path, fields: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a file of these rows; a run that is killed meanwhile leaves it as it was."""
    beside = path.with_suffix(".part")
    with beside.open("w", newline="") as file:
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    beside.replace(path)


def append_rows(path: Path, fields: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Add rows at the end of a file, which is made where there is none."""
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        if file.tell() == 0:
            writer.writeheader()
        writer.writerows(rows)
