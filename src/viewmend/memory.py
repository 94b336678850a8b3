"""Work that would fill the memory is refused before it begins: linear algebra would only abort."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from viewmend.backend.torch_gpu import gpu_memory
from viewmend.exceptions import TooLargeError

# Share of the memory of a machine or a GPU that one piece of work may take.
SHARE = 0.8
# Where Linux lists the control groups of this process, and the limits of their memory: in the
# present version of these groups, where a line names no kind, and in the first.
GROUPS = Path("/proc/self/cgroup")
GROUP_FILES = {
    "": (Path("/sys/fs/cgroup"), "memory.max"),
    "memory": (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
}


def machine_memory() -> int:
    """Bytes that this process may use; more than any, where the system does not tell.

    That is what the machine has, or less in a container or a job with a limit, which would be ended
    without a word where it takes more.
    """
    answers = map(_told, (_posix_memory, _windows_memory, _group_memory))
    return min((n_bytes for n_bytes in answers if n_bytes > 0), default=sys.maxsize)


def _told(ask: Callable[[], int]) -> int:
    """What a system answers, 0 where it is another one."""
    try:
        return ask()
    except (AttributeError, OSError, ValueError):
        return 0


def _posix_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _group_memory() -> int:
    """The least limit of the control groups of Linux that this process is in; 0 without any."""
    limits: list[int] = []
    for line in GROUPS.read_text().splitlines():
        _, kinds, group = line.split(":", 2)
        if kinds in GROUP_FILES:
            root, name = GROUP_FILES[kinds]
            folder = root / group.lstrip("/")
            # Groups are within others, and a container may see none but its own, as the root.
            inside = [folder, *folder.parents][: len(folder.parts) - len(root.parts) + 1]
            limits += [_limit_in(each / name) for each in inside]
    return min(filter(None, limits), default=0)


def _limit_in(path: Path) -> int:
    """The number in a file; 0 where there is no file, or "max" in it."""
    return _told(lambda: int(path.read_text()))


class _MemoryStatus(ctypes.Structure):
    """MEMORYSTATUSEX of Windows."""

    _fields_ = (
        ("length", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        *((name, ctypes.c_uint64) for name in ("physical", "free", "pages", "free_pages")),
        *((name, ctypes.c_uint64) for name in ("virtual", "free_virtual", "extended")),
    )


def _windows_memory() -> int:
    kernel: Any = ctypes.windll.kernel32  # type: ignore[attr-defined,unused-ignore]
    status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
    answered = kernel.GlobalMemoryStatusEx(ctypes.byref(status))
    return int(status.physical) if answered else 0


def check_memory(
    n_bytes: float, who: str, purpose: str, remedy: str, device: str | None = None
) -> None:
    """Refuse work whose arrays, ``n_bytes`` at the peak, would fill the machine's memory.

    The message says that ``who``, such as "MendClassifier", would need them for the ``purpose``,
    such as "for 4 dense arrays of 70000 x 70000"; the ``remedy`` is what to do instead. Where the
    ``device`` is a GPU, it is what is free of its memory that counts.
    """
    free = None if device is None else gpu_memory(device)
    available = machine_memory() if free is None else free
    if n_bytes > SHARE * available:
        where = "this process may use" if free is None else f"the GPU {device!r} has free"
        msg = (
            f"{who} would need about {n_bytes / 2**30:.1f} GiB {purpose}, and {where} "
            f"{available / 2**30:.1f} GiB; {remedy}"
        )
        raise TooLargeError(msg)
