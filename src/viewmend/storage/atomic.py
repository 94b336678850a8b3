"""Files that are whole whenever they are looked at."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from viewmend.exceptions import InvalidParameterError

# A link of that name, planted by another user of the folder, must not lead the writer elsewhere.
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL
# Of POSIX, and of Windows.
NEW_FILE |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
# Of the name of the file in that of its draft: file systems end names at 255 bytes.
MOST_LETTERS = 40


def check_folder(path: Path) -> None:
    """Raise unless there is a folder for the file: better before the work than after it."""
    if not path.absolute().parent.is_dir():
        msg = f"there is no folder {str(path.parent)!r} for {path.name}; make it first"
        raise InvalidParameterError(msg)
    if path.is_dir():
        msg = f"{path} must be a file but is a folder; name a file in it"
        raise InvalidParameterError(msg)


@contextmanager
def replacing(path: Path, drafts: Path | None = None) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of ``path`` once it is whole and on the disk.

    Whoever opens ``path`` meanwhile, or after a crash, finds the file as it was before; two that
    write it at once do no harm, the last one stays. An earlier file keeps its permissions, and a
    link stays a link: the file that it leads to is replaced. Pipes and devices are written as they
    are. A process that is killed leaves a file ``*.partial``, which nothing reads.

    Parameters
    ----------
    path : path
    drafts : path, optional
        Folder of the unfinished file, on the same file system; that of ``path`` by default.
    """
    mode = _mode(path)
    if mode is not None and not stat.S_ISREG(mode):
        with path.open("wb") as stream:
            yield stream
        return
    target = Path(os.path.realpath(path))
    draft = (drafts or target.parent) / f"{target.name[:MOST_LETTERS]}.{uuid4().hex}.partial"
    try:
        with _created(draft, mode) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    _flush_folder(target.parent)


def write_text(path: Path, text: str) -> None:
    """Write a whole file in UTF-8; see `replacing`."""
    with replacing(path) as stream:
        stream.write(text.encode("utf-8"))


def _mode(path: Path) -> int | None:
    """Kind and permissions of what ``path`` leads to, None where there is nothing."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _created(draft: Path, mode: int | None) -> BinaryIO:
    """A new file, with the permissions of the earlier one or those of the user's umask."""
    if mode is None:
        return os.fdopen(os.open(draft, NEW_FILE, 0o666), "wb")
    # At no moment may more people read the draft than the file.
    permissions = stat.S_IMODE(mode)
    handle = os.open(draft, NEW_FILE, permissions & 0o600)
    if hasattr(os, "fchmod"):  # not on Windows before Python 3.13
        os.fchmod(handle, permissions)
    return os.fdopen(handle, "wb")


def _flush_folder(folder: Path) -> None:
    """Make a rename last through a loss of power, where the file system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
