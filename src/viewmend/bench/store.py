"""Records as files: one per run, each whole or absent, shared by processes; and as one table."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from viewmend.bench.environment import check_publishable
from viewmend.bench.record_files import read_key, read_record
from viewmend.bench.runs import InvalidRecordError, Record, RunKey, environments_of, leaves, plain
from viewmend.exceptions import DataWarning, InvalidParameterError
from viewmend.extras import how_to_install
from viewmend.storage.atomic import replacing
from viewmend.storage.locks import try_lock
from viewmend.text import without_formulas

__all__ = ["ResultStore", "export_records", "flat_record"]

EXPORT_FORMATS = (".csv", ".parquet")


class ResultStore:
    """A folder of records that survives the end of a process at any moment.

    ``runs/DIGEST.json`` is the record of one run. It is written under ``drafts`` and moved to its
    place, so it is either whole or not there. ``claims/DIGEST.lock`` is locked by the process
    that works on the run; the system frees the lock when that process ends, however it ends. The
    folder may lie on any file system with locks, and processes on several machines may share it.

    Parameters
    ----------
    folder : path
        Made on the first write.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)
        # Of the records, of records that are being written, and of the locks.
        self.runs, self.drafts, self.claims = (
            self.folder / name for name in ("runs", "drafts", "claims")
        )

    def write(self, record: Record) -> None:
        """Put a record in its place, instead of an earlier one of the same run if there is one.

        One that could not be read again, such as that of a share above 1, is refused with an
        `InvalidRecordError`: its run would be to do for ever.
        """
        for folder in (self.runs, self.drafts):
            folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(record.to_dict(), indent=1, sort_keys=True, default=plain)
        read_record(text)
        with replacing(self._file(record.key), self.drafts) as file:
            file.write(f"{text}\n".encode())

    def get(self, key: RunKey) -> Record | None:
        """The record of a run, None where there is none that can be read."""
        path = self._file(key)
        return _read(path) if path.exists() else None

    def records(self) -> list[Record]:
        """All records, in the order of their digests; broken files are left out with a warning."""
        records = (_read(path) for path in sorted(self.runs.glob("*.json")))
        return [record for record in records if record is not None]

    def forget(self, key: RunKey) -> None:
        """Remove the record of a run, so that it is to do again; nothing if another works on it."""
        with self.claim(key) as mine:
            if mine:
                self._file(key).unlink(missing_ok=True)

    @contextmanager
    def claim(self, key: RunKey) -> Iterator[bool]:
        """Keep other processes off a run; gives False at once where another is at it.

        Look for a record after the claim: the other process may just have ended.
        """
        self.claims.mkdir(parents=True, exist_ok=True)
        path = self.claims / f"{key.digest}.lock"
        gone = True
        try:
            with path.open("a+", encoding="utf-8") as lock:
                if not (try_lock(lock.fileno()) and _is_at(lock.fileno(), path)):
                    yield False
                    return
                self._begin(key, lock)
                try:
                    yield True
                finally:
                    # While it is still locked: whoever opened it meanwhile sees that it is gone.
                    gone = _removed(path)
        finally:
            if not gone:
                _removed(path)

    def _begin(self, key: RunKey, lock: TextIO) -> None:
        """Write into a locked file what it is the claim of."""
        # Drafts of a claimed run were left by a process that was killed.
        for draft in self.drafts.glob(f"{key.digest}*"):
            draft.unlink(missing_ok=True)
        lock.truncate(0)
        lock.write(key.text)
        lock.flush()

    def running(self) -> list[RunKey]:
        """Runs that some process is at."""
        return [key for key, held in self._claimed() if held]

    def interrupted(self) -> list[RunKey]:
        """Runs whose process ended without a word, killed or out of memory, and not begun again.

        One that was killed between its record and the end of its claim is done all the same.
        """
        return [key for key, held in self._claimed() if not held and self.get(key) is None]

    def _file(self, key: RunKey) -> Path:
        return self.runs / f"{key.digest}.json"

    def _claimed(self) -> Iterator[tuple[RunKey, bool]]:
        for path in sorted(self.claims.glob("*.lock")):
            try:
                with path.open("rb") as lock:
                    held = not try_lock(lock.fileno())
                    key = read_key(lock.read())
            except (OSError, InvalidRecordError):  # released, or claimed this very moment
                continue
            yield key, held


def _read(path: Path) -> Record | None:
    try:
        record = read_record(path.read_bytes())
        if record.key.digest == path.stem:
            return record
        problem = f"it holds the run {record.key.digest}"
    except (OSError, InvalidRecordError) as error:
        problem = str(error)
    msg = f"{path} is no record of a run ({problem}) and counts as not there; remove the file"
    warnings.warn(msg, DataWarning, stacklevel=3)
    return None


def _removed(path: Path) -> bool:
    """Whether a lock file is gone: Windows removes none that somebody has open.

    There it is removed once it is closed, unless another process has opened it meanwhile, whose
    claim it then is.
    """
    with suppress(PermissionError):
        path.unlink(missing_ok=True)
        return True
    return False


def _is_at(handle: int, path: Path) -> bool:
    """Whether an open file is still the one of that name: another may have removed it."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def export_records(records: Iterable[Record], path: Path) -> None:
    """Write one line per record, in the order of the runs' keys.

    Parameters
    ----------
    records : iterable of Record
    path : path
        The ending gives the format, one of `EXPORT_FORMATS`. Columns are those of `flat_record`; a
        record without a column has nothing there.
    """
    records = list(records)
    check_publishable(environments_of(records), path)
    if path.suffix not in EXPORT_FORMATS:
        msg = f"{path.name!r} must end in one of {', '.join(EXPORT_FORMATS)}"
        raise InvalidParameterError(msg)
    import pandas

    ordered = sorted(records, key=lambda record: record.key.text)
    # As objects, whole numbers stay whole beside gaps.
    frame = pandas.DataFrame([flat_record(record) for record in ordered], dtype=object)
    if path.suffix == ".csv":
        safe = without_formulas(frame)
        with replacing(path) as file:
            safe.to_csv(file, index=False, lineterminator="\n", errors="backslashreplace")
        return
    try:
        with replacing(path) as file:
            frame.apply(_of_one_type).to_parquet(file, index=False, engine="pyarrow")
    except ImportError as error:
        install = how_to_install("bench")
        msg = f"Parquet needs pyarrow, which is not installed; {install}, or use .csv"
        raise ImportError(msg) from error


def flat_record(record: Record) -> dict[str, Any]:
    """A record without nesting.

    The parts of the key and the status have their own names, everything else that of its path,
    such as ``result.accuracy`` and ``timings.fit``. Settings and lists are JSON.

    Parameters
    ----------
    record : Record

    Returns
    -------
    dict
    """
    fields = record.to_dict()
    key = fields.pop("key")
    key["setting"] = json.dumps(dict(key["setting"]))
    return key | {
        path: json.dumps(value) if isinstance(value, (list, tuple)) else value
        for path, value in leaves(fields, ".")
    }


def _of_one_type(column: Any) -> Any:
    """A column of one type; one that holds numbers and text is text."""
    from pandas.api.types import infer_dtype

    mixed = infer_dtype(column, skipna=True) in ("mixed", "mixed-integer")
    return column.map(str, na_action="ignore") if mixed else column
