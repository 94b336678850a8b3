"""A callback that shows how far the blocks of a round are."""

from __future__ import annotations

import sys
from typing import Any, TextIO

__all__ = ["LogBlocks"]


class LogBlocks:
    """Write which stage of which round is under way, and how many of its blocks are done.

    Any callback with a method ``on_blocks(stage, done, total)`` is told of blocks in the same way,
    where the fit runs on a `distributed.Client`. ``total`` counts the results of all blocks and
    the one of their sums.

    Parameters
    ----------
    stream : text stream, optional
        Standard error by default.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream
        self.n_rounds = 0

    def on_blocks(self, stage: str, done: int, total: int) -> None:
        line = f"\rround {self.n_rounds + 1:3d}  {stage:<16s} {done:6d} / {total}"
        self._write(line + ("\n" if done == total else ""))

    def __call__(self, round_: Any, _state: Any) -> None:
        self.n_rounds = round_.iteration
        self._write(f"{round_.summary()}\n")

    def _write(self, text: str) -> None:
        (self.stream or sys.stderr).write(text)
