"""Locks of open files, which the system frees when their process ends, however it ends."""

from __future__ import annotations

import importlib
import os
import time
from typing import Any

# Windows locks bytes, and nobody else can read those: one far behind any content is taken.
FAR_BYTE = 1 << 40
# Seconds between two attempts where the system cannot wait for a lock.
INTERVAL = 0.1


def _module(name: str) -> Any:
    """A module that only some systems have; None on others."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


# Of POSIX, and of Windows.
fcntl, msvcrt = _module("fcntl"), _module("msvcrt")


def try_lock(handle: int) -> bool:
    """Whether the lock of an open file could be had without waiting."""
    if fcntl is None:
        return _lock_byte(handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_for_lock(handle: int) -> None:
    """Wait until the lock of an open file can be had."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX)
        return
    while not _lock_byte(handle):
        time.sleep(INTERVAL)


def _lock_byte(handle: int) -> bool:
    """Try for the lock of one byte; the place in the file stays as it was."""
    place = os.lseek(handle, 0, os.SEEK_CUR)
    os.lseek(handle, FAR_BYTE, os.SEEK_SET)
    try:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    except OSError:
        return False
    finally:
        os.lseek(handle, place, os.SEEK_SET)
    return True
