"""A line on the terminal that tells how far a benchmark is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from viewmend.bench.plan import Count
from viewmend.bench.runner import RunOutcome

__all__ = ["shown_progress"]

COLUMNS = (
    TextColumn("runs"),
    BarColumn(),
    MofNCompleteColumn(),
    TextColumn("{task.fields[failed]} failed"),
    TimeElapsedColumn(),
    TimeRemainingColumn(),
    TextColumn("left"),
    TextColumn("{task.fields[last]}", markup=False),
)


@contextmanager
def shown_progress(console: Console, count: Count) -> Iterator[Callable[[RunOutcome], None]]:
    """Show runs that end on a terminal, and nothing elsewhere; gives what is to be told of them.

    Parameters
    ----------
    console : rich Console
    count : Count
        Runs before the start.
    """
    before, failed = count.done + count.failed, count.failed
    with Progress(
        *COLUMNS,
        console=console,
        transient=True,
        disable=not console.is_terminal,
        # The last runs tell little of the pace: a plan goes from cheap to dear data sets.
        speed_estimate_period=math.inf,
    ) as progress:
        total = before + count.to_do
        bar = progress.add_task("runs", total=total, completed=before, failed=failed, last="")

        def watch(outcome: RunOutcome) -> None:
            nonlocal failed
            failed += outcome.status == "error"
            key = outcome.key
            last = f"{key.method} on {key.data}, {key.missing_rate:.0%} missing"
            progress.update(bar, advance=1, failed=failed, last=last)

        yield watch
