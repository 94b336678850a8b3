"""Records as one flat table, for other programs."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from viewmend.bench.runs import Record
from viewmend.exceptions import InvalidParameterError

__all__ = ["FORMATS", "export_records", "flat_record"]

Line = dict[str, Any]


def export_records(records: Iterable[Record], path: Path) -> None:
    """Write one line per record, in the order of the runs' keys.

    Parameters
    ----------
    records : iterable of Record
    path : path
        The ending gives the format, a row of `FORMATS`. Columns are those of `flat_record`; a
        record without a column has nothing there.
    """
    if path.suffix not in FORMATS:
        msg = f"{path.name!r} must end in one of {', '.join(FORMATS)}"
        raise InvalidParameterError(msg)
    ordered = sorted(records, key=lambda record: record.key.text)
    lines = [flat_record(record) for record in ordered]
    columns = list(dict.fromkeys(name for line in lines for name in line))
    FORMATS[path.suffix](lines, columns, path)


def flat_record(record: Record) -> Line:
    """A record without nesting.

    The parts of the key and the status have their own names, everything else that of its path,
    such as ``result.accuracy`` and ``timings.fit``. Settings and lists are JSON.
    """
    fields = record.to_dict()
    key = fields.pop("key")
    key["setting"] = json.dumps(dict(key["setting"]))
    return key | dict(_leaves("", fields))


def _leaves(prefix: str, fields: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from _leaves(f"{prefix}{name}.", value)
        else:
            yield prefix + name, json.dumps(value) if isinstance(value, (list, tuple)) else value


def _write_csv(lines: Sequence[Line], columns: Sequence[str], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


def _write_parquet(lines: Sequence[Line], columns: Sequence[str], path: Path) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        msg = "Parquet needs pyarrow, which is not installed; run: pip install pyarrow, or use .csv"
        raise ImportError(msg) from error
    values = {name: [line.get(name) for line in lines] for name in columns}
    table = pyarrow.table({name: _arrow(column) for name, column in values.items()})
    parquet.write_table(table, path)


def _arrow(values: list[Any]) -> Any:
    """A column; one that holds numbers and text is text."""
    import pyarrow

    try:
        return pyarrow.array(values)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
        return pyarrow.array([None if value is None else str(value) for value in values])


FORMATS: Mapping[str, Callable[[Sequence[Line], Sequence[str], Path], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
}
