"""A line on the terminal that tells how far a benchmark is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from viewmend.bench.plan import Count
from viewmend.bench.runner import Outcome

__all__ = ["remaining_seconds", "shown_progress"]


class RemainingColumn(ProgressColumn):
    """How long the rest will take."""

    # Rich would redraw it only now and then otherwise.
    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        """ "about 3:20 left", once a run has ended."""
        here, total = task.completed - task.fields["before"], task.total or 0
        seconds = remaining_seconds(task.elapsed or 0.0, here, total - task.completed)
        if seconds is None:
            return Text("")
        minutes, hours = int(seconds // 60) % 60, int(seconds // 3600)
        return Text(f"about {hours}:{minutes:02d}:{int(seconds % 60):02d} left")


def remaining_seconds(elapsed: float, ended: float, left: float) -> float | None:
    """Time for what is left at the pace so far; None where nothing ended yet.

    The pace of all runs since the start: the last ones tell little, because a plan goes from
    cheap to dear data sets.
    """
    return elapsed / ended * left if ended > 0 else None


@contextmanager
def shown_progress(console: Console, count: Count) -> Iterator[Callable[[Outcome], None]]:
    """Show runs that end on a terminal, and nothing elsewhere; gives what is to be told of them.

    Parameters
    ----------
    console : rich Console
    count : Count
        Runs before the start.
    """
    columns = (
        TextColumn("runs"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]} failed"),
        TimeElapsedColumn(),
        RemainingColumn(),
        TextColumn("{task.fields[last]}", markup=False),
    )
    before = count.done + count.failed
    quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as progress:
        bar = progress.add_task(
            "runs",
            total=before + count.to_do,
            completed=before,
            before=before,
            failed=count.failed,
            last="",
        )
        failed = count.failed

        def watch(outcome: Outcome) -> None:
            nonlocal failed
            failed += outcome.status == "error"
            key = outcome.key
            last = f"{key.method} on {key.data}, {key.missing_rate:.0%} missing"
            progress.update(bar, advance=1, failed=failed, last=last)

        yield watch
