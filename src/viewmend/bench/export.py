"""Records as one flat table, for other programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from viewmend.bench.environment import check_publishable
from viewmend.bench.runs import Record, environments_of
from viewmend.exceptions import InvalidParameterError

__all__ = ["FORMATS", "export_records", "flat_record"]

FORMATS = (".csv", ".parquet")


def export_records(records: Iterable[Record], path: Path) -> None:
    """Write one line per record, in the order of the runs' keys.

    Parameters
    ----------
    records : iterable of Record
    path : path
        The ending gives the format, one of `FORMATS`. Columns are those of `flat_record`; a
        record without a column has nothing there.
    """
    records = list(records)
    check_publishable(environments_of(records), path)
    if path.suffix not in FORMATS:
        msg = f"{path.name!r} must end in one of {', '.join(FORMATS)}"
        raise InvalidParameterError(msg)
    import pandas

    ordered = sorted(records, key=lambda record: record.key.text)
    # As objects, whole numbers stay whole beside gaps.
    frame = pandas.DataFrame([flat_record(record) for record in ordered], dtype=object)
    if path.suffix == ".csv":
        frame.to_csv(path, index=False, lineterminator="\n")
        return
    try:
        frame.apply(_typed).to_parquet(path, index=False, engine="pyarrow")
    except ImportError as error:
        msg = "Parquet needs pyarrow, which is not installed; run: pip install pyarrow, or use .csv"
        raise ImportError(msg) from error


def flat_record(record: Record) -> dict[str, Any]:
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


def _typed(column: Any) -> Any:
    """A column of one type; one that holds numbers and text is text."""
    from pandas.api.types import infer_dtype

    mixed = infer_dtype(column, skipna=True) in ("mixed", "mixed-integer")
    return column.map(str, na_action="ignore") if mixed else column
