"""Rows of a fit, wherever they are: what a method may ask of them.

A formula that needs all rows is written in three parts: what is summed over rows, what follows from
the sums, and what a row makes of that. The first and the last are *tasks*, functions of blocks of
rows; what stands between them is small and is computed once. So a method that is written against
`Rows` runs in memory, on a GPU and over the blocks of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

# Something with a row per sample: in memory an array or a record of arrays, over blocks one each.
Column = Any
# Called as ``task(*blocks, shared)``, with a block of every column and what all blocks share.
Task = Callable[..., Any]
Sums = Mapping[str, Any]


class Rows(Protocol):
    """Runs tasks over rows. Results with rows stay where the rows are; sums come to the caller."""

    def map(self, task: Task, *columns: Column, shared: Any) -> Column:
        """Answers of ``task(*blocks, shared)``, which stay where the rows are."""

    def sums(self, task: Task, *columns: Column, shared: Any) -> Any:
        """Sums over all blocks, in a fixed order, of the numbers that the task answers by name."""

    def both(self, task: Task, *columns: Column, shared: Any) -> tuple[Column, Any]:
        """For tasks that answer ``(block, sums)``: blocks that stay, and sums of all of them."""

    def gather(self, task: Task, *columns: Column, shared: Any) -> list[Any]:
        """Answers of all blocks, taken to the caller: only for what is small."""


class RowsInMemory:
    """All rows are one block, of arrays of any library: a task is a call."""

    def map(self, task: Task, *columns: Column, shared: Any) -> Column:
        """See `Rows`."""
        return task(*columns, shared)

    def sums(self, task: Task, *columns: Column, shared: Any) -> Any:
        """See `Rows`."""
        return task(*columns, shared)

    def both(self, task: Task, *columns: Column, shared: Any) -> tuple[Column, Any]:
        """See `Rows`."""
        column, sums = task(*columns, shared)
        return column, sums

    def gather(self, task: Task, *columns: Column, shared: Any) -> list[Any]:
        """See `Rows`."""
        return [task(*columns, shared)]
