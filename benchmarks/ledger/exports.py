"""Records from the tables that ``viewmend bench export`` wrote."""

from __future__ import annotations

import csv
import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from viewmend.bench.environment import DIRTY, UNKNOWN
from viewmend.bench.runs import Record, RunKey, setting_of
from viewmend.exceptions import InvalidParameterError

# Histories are long lines.
csv.field_size_limit(2**27)

PARTS = ("result", "timings", "environment")
# The experiment whose tables the others follow.
ORDER = tomllib.loads((Path(__file__).parents[1] / "paper" / "main.toml").read_text())
# Columns without which a table is of something else, such as an older script.
REQUIRED = ("measure", "protocol", "data", "method", "setting", "repetition", "status")


# How parts of a key are read; the others are text.
KEY_PARTS: Mapping[str, Callable[[str], Any]] = {
    "missing_rate": float,
    "label_rate": float,
    "repetition": int,
    "setting": lambda text: setting_of(json.loads(text)),
}


def read_export(path: Path) -> list[Record]:
    """The records of an export; none where the file is absent or is no export."""
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        if any(name not in (reader.fieldnames or ()) for name in REQUIRED):
            return []
        return sorted((_record(row) for row in reader), key=_place)


def revisions_of(records: Iterable[Record]) -> Counter[str]:
    """How many records come from which revision."""
    return Counter(str(one.environment.get("revision", UNKNOWN)) for one in records)


def revision_text(records: Iterable[Record]) -> str:
    """The revisions in words, with a count where nobody can look one up."""
    counts = revisions_of(records)
    known = [f"`{name}`" for name in sorted(counts) if not _lost(name)]
    lost = sum(count for name, count in counts.items() if _lost(name))
    records_lost = f"not known ({lost} record{'s' if lost > 1 else ''})"
    return ", ".join([*known, *([records_lost] if lost else [])])


def selected(records: Sequence[Record], where: Mapping[str, Any]) -> list[Record]:
    """Records that are done and whose keys have the values, or one of the values, of ``where``."""
    return [
        one
        for one in records
        if one.status == "done" and all(_fits(getattr(one.key, k), v) for k, v in where.items())
    ]


def _place(record: Record) -> tuple:
    """Data sets and methods in the order of the main experiment, unknown ones behind them."""
    key = record.key
    names = [
        (known.index(name) if name in known else len(known), name)
        for name, known in ((key.data, ORDER["data"]), (key.method, ORDER["methods"]))
    ]
    return key.protocol, *names, key.missing_rate, key.label_rate, key.text


def _fits(value: Any, wanted: Any) -> bool:
    return value in wanted if isinstance(wanted, list | tuple) else value == wanted


def _lost(revision: str) -> bool:
    return revision == UNKNOWN or revision.endswith(DIRTY)


def _record(row: Mapping[str, str]) -> Record:
    try:
        key = RunKey(
            **{
                field.name: KEY_PARTS.get(field.name, str)(row.get(field.name) or "")
                for field in fields(RunKey)
            }
        )
    except ValueError as error:
        msg = f"a line of an export holds no run ({error}); export the records again"
        raise InvalidParameterError(msg) from error
    parts: dict[str, dict[str, Any]] = {name: {} for name in PARTS}
    for column, text in row.items():
        part, _, name = column.partition(".")
        if part in parts and text != "":
            # A revision may look like a number and is none.
            parts[part][name] = text if part == "environment" else _value(text)
    return Record(key, row["status"], message=row.get("message") or "", **parts)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
