"""Which part of a run takes how long, from the names of the functions that do it.

The functions are replaced for the length of a ``with`` block by ones that look at the clock, so
that what is measured needs no hooks. Time inside another of them counts for the innermost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

__all__ = ["Profile", "Target", "profiled"]

# A module, class or dictionary, and the name of a function in it.
Target = tuple[Any, str]


@dataclass
class Profile:
    """Seconds and calls by part.

    Attributes
    ----------
    seconds : dict of float
        Without what other parts took inside.
    calls : dict of int
        Zero where none of the names of a part exists any more, or none was called.
    """

    seconds: dict[str, float]
    calls: dict[str, int]
    _open: list[float] = field(default_factory=list)

    def shares(self, total: float) -> dict[str, float]:
        """Parts of ``total`` seconds, and the "rest" of it."""
        parts = {part: seconds / total for part, seconds in self.seconds.items()}
        return parts | {"rest": 1 - sum(parts.values())}


@contextmanager
def profiled(
    parts: Mapping[str, Sequence[Target]], synchronize: Callable[[], None] = lambda: None
) -> Iterator[Profile]:
    """Watch the functions of every part.

    Parameters
    ----------
    parts : dict of sequence of Target
        Names that do not exist are passed over.
    synchronize : callable
        Runs before every look at the clock: a GPU works on after the call returned.
    """
    profile = Profile(dict.fromkeys(parts, 0.0), dict.fromkeys(parts, 0))
    with ExitStack() as stack:
        for part, targets in parts.items():
            for owner, name in targets:
                if (function := _get(owner, name)) is not None:
                    _set(owner, name, _watched(function, part, profile, synchronize))
                    stack.callback(_set, owner, name, function)
        yield profile


def _watched(
    function: Callable[..., Any], part: str, profile: Profile, synchronize: Callable[[], None]
) -> Callable[..., Any]:
    @wraps(function)
    def watched(*args: Any, **kwargs: Any) -> Any:
        synchronize()
        profile._open.append(0.0)
        start = time.perf_counter()
        try:
            result = function(*args, **kwargs)
            synchronize()
            return result
        finally:
            taken = time.perf_counter() - start
            profile.seconds[part] += taken - profile._open.pop()
            profile.calls[part] += 1
            if profile._open:
                profile._open[-1] += taken

    return watched


def _get(owner: Any, name: str) -> Callable[..., Any] | None:
    return owner.get(name) if isinstance(owner, dict) else getattr(owner, name, None)


def _set(owner: Any, name: str, function: Callable[..., Any]) -> None:
    if isinstance(owner, dict):
        owner[name] = function
    else:
        setattr(owner, name, function)
