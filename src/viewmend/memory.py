"""Work that would fill the memory is refused before it begins: linear algebra would only abort."""

from __future__ import annotations

import os

from viewmend.exceptions import TooLargeError

# Share of the memory of the machine that one piece of work may take.
SHARE = 0.8


def machine_memory() -> int:
    """Bytes that this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_memory(n_bytes: float, who: str, purpose: str, remedy: str) -> None:
    """Refuse work whose arrays, ``n_bytes`` at the peak, would fill the machine's memory.

    The message says that ``who``, such as "MendClassifier", would need them for the ``purpose``,
    such as "for 4 dense arrays of 70000 x 70000"; the ``remedy`` is what to do instead.
    """
    available = machine_memory()
    if n_bytes > SHARE * available:
        msg = (
            f"{who} would need about {n_bytes / 2**30:.1f} GiB {purpose}, and this machine has "
            f"{available / 2**30:.1f} GiB; {remedy}"
        )
        raise TooLargeError(msg)
