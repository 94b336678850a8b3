"""Stages: one task per block of rows, and what the blocks say together as a tree of sums.

Nothing here knows AGF-TI. A stage is a list of `dask.delayed` tasks, persisted where Dask is told
to compute: on the workers of the active client, which hold and spill them, or in the threads of
this process where there is none. What is summed is summed in the order of the blocks, so that
results depend on neither workers nor timing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import accumulate
from typing import Any
from uuid import uuid4

import dask
import numpy as np
from dask.delayed import Delayed, delayed

from viewmend.backend.threads import parallel_map
from viewmend.distributed.kept_blocks import opened
from viewmend.exceptions import LostFitError

# Results that one task of a tree takes together.
FAN_IN = 8

# Errors of distributed, by name so that it need not be there.
LOST = (
    "KilledWorker",
    "FutureCancelledError",
    "CancelledError",
    "ClosedClientError",
    "CommClosedError",
    "NoValidWorkerError",
)

# What is not added up but combined in another way.
_COMBINE: dict[str, Callable[[Any, Any], Any]] = {"change_F": np.maximum, "joined": np.logical_or}

Sums = dict[str, Any]
Combine = Callable[[Sequence[Any]], Any]


def add_up(parts: Sequence[Mapping[str, Any]]) -> Sums:
    """The sums of several blocks as those of one."""
    return {
        name: reduce(_COMBINE.get(name, np.add), (part[name] for part in parts))
        for name in parts[0]
    }


@dataclass
class Pending:
    """A stage under way: what stays with the workers, and the sums to wait for."""

    # One list for every result of a task but its sums.
    results: tuple[list[Delayed], ...]
    _total: Delayed
    _finish: Callable[[], AbstractContextManager[None]]

    def sums(self) -> Any:
        """Wait for the sums over all blocks.

        Blocks that the stage was made from, and that nobody holds any more, go as soon as they
        are used; so drop them first where they are large.
        """
        with self._finish():
            return self._total.compute()

    def rows(self) -> list[Any]:
        """Wait for the results of the first kind, and take them into this process."""
        with self._finish():
            return list(dask.compute(*self.results[0]))


@dataclass
class DaskRows:
    """Runs stages over blocks, tells who watches how far they are, and counts the passes."""

    # Called in this process as (stage, n_done, n_blocks) whenever a block is done, by a
    # `distributed.Client` alone.
    watch: Callable[[str, int, int], None] | None = None
    # Shown by the dashboard in the names of the tasks.
    round: int = 0
    # How often every stage passed over the blocks.
    passes: dict[str, int] = field(default_factory=dict)

    def sums(
        self,
        task: Callable[..., Any],
        *columns: Sequence[Any],
        shared: Any,
        combine: Combine = add_up,
    ) -> Any:
        """``combine`` over all blocks of what ``task(block, ..., shared)`` answers."""
        total = tree(self.lazy(task, *columns, shared=shared), combine)
        return self._started(task.__name__, (), total).sums()

    def map(self, task: Callable[..., Any], *columns: Sequence[Any], shared: Any) -> list[Delayed]:
        """Answers of ``task(block, ..., shared)``, which stay with the workers; does not wait."""
        results = self.lazy(task, *columns, shared=shared)
        return self._started(task.__name__, (results,), delayed(None)).results[0]

    def both(
        self, task: Callable[..., Any], *columns: Sequence[Any], shared: Any
    ) -> tuple[list[Delayed], Sums]:
        """For tasks that answer ``(block, sums)``: blocks that stay, and sums of all of them."""
        pending = self.start(task, *columns, shared=shared, n_results=1)
        return pending.results[0], pending.sums()

    def start(
        self, task: Callable[..., Any], *columns: Sequence[Any], shared: Any, n_results: int
    ) -> Pending:
        """The same for tasks that answer ``n_results`` blocks and their sums, without waiting."""
        answers = self.lazy(task, *columns, shared=shared, nout=n_results + 1)
        *results, parts = (list(column) for column in zip(*answers, strict=True))
        return self._started(task.__name__, results, tree(parts, add_up))

    def gather(self, task: Callable[..., Any], *columns: Sequence[Any], shared: Any) -> list[Any]:
        """Answers of all blocks in this process: only for what is small."""
        parts = self.lazy(task, *columns, shared=shared)
        return self._started(task.__name__, (parts,), delayed(None)).rows()

    def computed(self, stage: str, results: list[Delayed], total: Delayed) -> tuple[Any, Any]:
        """What others made lazily: blocks that stay, and the answer to wait for."""
        pending = self._started(stage, (results,), total)
        return pending.results[0], pending.sums()

    def lazy(
        self,
        task: Callable[..., Any],
        *columns: Sequence[Any],
        shared: Any,
        nout: int | None = None,
    ) -> list[Delayed]:
        """One task per block, none of which is run yet."""
        # Sent once, and not with every task.
        common = delayed(shared, traverse=False, name=f"shared-{uuid4().hex}")
        call, stage = delayed(_alone, nout=nout), f"round {self.round} {task.__name__}"
        token = uuid4().hex
        return [
            call(task, *block, common, dask_key_name=f"{stage}-{token}-{i}")
            for i, block in enumerate(zip(*columns, strict=True))
        ]

    def _started(self, stage: str, results: Sequence[list[Delayed]], total: Delayed) -> Pending:
        self.passes[stage] = self.passes.get(stage, 0) + 1
        flat = [block for column in results for block in column]
        with self._lost_told(stage):
            *held, total = dask.persist(*flat, total)
        ends = list(accumulate(len(column) for column in results))
        columns = tuple(
            list(held[start:stop]) for start, stop in zip([0, *ends], ends, strict=False)
        )
        return Pending(columns, total, partial(self._watched, stage, (*held, total)))

    @contextmanager
    def _watched(self, stage: str, persisted: Sequence[Delayed]) -> Iterator[None]:
        """Tell of every block that is done, and what it means when workers are gone for good."""
        with self._lost_told(stage):
            if self.watch is not None:
                _report(self.watch, stage, persisted)
            yield

    @contextmanager
    def _lost_told(self, stage: str) -> Iterator[None]:
        """Turn errors of workers, or of a whole cluster, that are gone into one that says so."""
        try:
            yield
        except Exception as error:
            if type(error).__name__ not in LOST:
                raise
            msg = (
                f"the fit was lost in stage {stage!r} of round {self.round} "
                f"({type(error).__name__}: {error}); give the workers more memory or the views "
                f"smaller chunks, and fit again: with a checkpoint, from the round it has"
            )
            raise LostFitError(msg) from error


def _alone(task: Callable[..., Any], *arguments: Any) -> Any:
    """Run a task on one thread: the others belong to other blocks."""
    return parallel_map(lambda _: task(*map(opened, arguments)), [None])[0]


def tree(parts: Sequence[Delayed], combine: Combine) -> Delayed:
    """``combine`` of all parts, a few at a time."""
    call = delayed(combine)
    parts = [call(list(parts[i : i + FAN_IN])) for i in range(0, len(parts), FAN_IN)]
    return parts[0] if len(parts) == 1 else tree(parts, combine)


def _report(
    watch: Callable[[str, int, int], None], stage: str, persisted: Sequence[Delayed]
) -> None:
    """Tell of every block that is done, if workers run them: without any, all are done by now."""
    if "distributed" not in sys.modules:
        return
    from distributed import as_completed, futures_of

    futures = futures_of(persisted)
    if not futures:
        return
    for done, _ in enumerate(as_completed(futures), start=1):
        watch(stage, done, len(futures))
