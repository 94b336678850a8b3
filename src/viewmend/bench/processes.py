"""Worker processes that end with the process they work for, however that one ends."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time

# Seconds between two looks at the parent, where the system cannot tell when it ends.
INTERVAL = 1.0


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
    handle = _handle_of(parent)
    # After the handle was had: the number may be that of another process by now.
    while os.getppid() == parent:
        if handle is None:
            time.sleep(INTERVAL)
        else:
            select.select([handle], [], [])
    os.kill(os.getpid(), signal.SIGKILL)


def _handle_of(process: int) -> int | None:
    """What can be read once a process has ended; None where the system has no such thing."""
    if sys.platform == "linux":
        try:
            return os.pidfd_open(process)
        except OSError:
            return None
    return None
