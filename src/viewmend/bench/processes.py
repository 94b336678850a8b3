"""Worker processes that end with the process they work for, however that one ends."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import threading
import time
from typing import Any

# Seconds between two looks at the parent, where the system cannot tell when it ends.
INTERVAL = 1.0
# Of Windows: the right to wait for a process, and to wait as long as it takes.
SYNCHRONIZE, FOR_EVER = 0x00100000, 0xFFFFFFFF
# What ends a process at once: Windows ends it at any signal.
END = getattr(signal, "SIGKILL", signal.SIGTERM)


def end_with_parent(parent: int) -> None:
    """Kill this process as soon as its parent is gone, at once if it is gone already.

    A worker would go on with its run otherwise, and wait minutes for the next one: its parent may
    have been killed, so that nothing is left to tell it. What a kill leaves, the store can take.

    Parameters
    ----------
    parent : int
        Process number of the parent.
    """
    threading.Thread(target=_watch, args=(parent,), daemon=True, name="parent watch").start()


def _watch(parent: int) -> None:
    wait = _wait_on_windows if sys.platform == "win32" else _wait_on_posix
    wait(parent)
    os.kill(os.getpid(), END)


def _wait_on_windows(parent: int) -> None:
    """Until the parent has ended; its number would tell nothing, because it is kept here."""
    kernel: Any = ctypes.windll.kernel32  # type: ignore[attr-defined,unused-ignore]
    handle = kernel.OpenProcess(SYNCHRONIZE, False, parent)
    if handle:
        kernel.WaitForSingleObject(handle, FOR_EVER)


def _wait_on_posix(parent: int) -> None:
    handle = _handle_of(parent)
    # After the handle was had: the number may be that of another process by now.
    while os.getppid() == parent:
        if handle is None:
            time.sleep(INTERVAL)
        else:
            select.select([handle], [], [])


def _handle_of(process: int) -> int | None:
    """What can be read once a process has ended; None where the system has no such thing."""
    if sys.platform == "linux":
        try:
            return os.pidfd_open(process)
        except OSError:
            return None
    return None
