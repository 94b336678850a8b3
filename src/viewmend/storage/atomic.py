"""Files that are whole whenever they are looked at."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from viewmend.exceptions import InvalidParameterError


def check_folder(path: Path) -> None:
    """Raise unless there is a folder for the file: better before the work than after it."""
    if not path.absolute().parent.is_dir():
        msg = f"there is no folder {str(path.parent)!r} for {path.name}; make it first"
        raise InvalidParameterError(msg)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of ``path`` once it is whole and on the disk.

    Whoever opens ``path`` meanwhile, or after a crash, finds the file as it was before; two that
    write it at once do no harm.
    """
    partial = path.with_name(f"{path.name}.{uuid4().hex}.partial")
    try:
        with partial.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
