"""What can watch a fit: progress, time limits.

A callback is called as ``callback(round, state)`` after every round of the solver, with a
`viewmend.core.Round` and the live `viewmend.core.State`. It may answer True to stop the fit; the
model is then usable, with ``status_ == "stopped"``.
"""

from __future__ import annotations

import sys
import time
from typing import TextIO

from viewmend.core import Round, State

__all__ = ["LogRounds", "TimeLimit"]


class LogRounds:
    """Write one line per round.

    Parameters
    ----------
    stream : text stream, optional
        Standard error by default.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream

    def __call__(self, round_: Round, _state: State) -> None:
        (self.stream or sys.stderr).write(f"{round_.summary()}\n")


class TimeLimit:
    """Stop after the first round that ends ``seconds`` or more after the end of round 1.

    Parameters
    ----------
    seconds : float
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._start: float | None = None

    def __call__(self, round_: Round, _state: State) -> bool:
        now = time.monotonic()
        if self._start is None or round_.iteration == 1:
            self._start = now
        return now - self._start >= self.seconds
