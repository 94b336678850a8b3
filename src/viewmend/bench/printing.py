"""What the benchmark's commands print about runs, and the line that tells how far they are."""

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
from rich.table import Table
from rich.text import Text

from viewmend.bench.experiment import Experiment
from viewmend.bench.plan import Count
from viewmend.bench.runner import RunOutcome, Session
from viewmend.bench.runs import RunKey
from viewmend.bench.verifying import Verdict

# Failures that are printed one by one.
SHOWN = 5

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


def print_status(console: Console, session: Session) -> Count:
    """Print what became of the runs of every row, then what is amiss; give the sum of all rows."""
    counted = session.counts()
    total = sum(counted.values(), Count())
    table = Table(title=_text(session.experiment.title))
    table.add_column("runs of")
    for heading in ("done", "failed", "left out", "to do"):
        table.add_column(heading, justify="right")
    for name, count in [*counted.items(), ("all", total)]:
        last = name == next(reversed(counted), None)
        table.add_row(_text(name), *map(str, vars(count).values()), end_section=last)
    console.print(table)
    for state, keys in (
        ("running", session.store.running()),
        ("cut short by the end of their process, to do again", session.store.interrupted()),
    ):
        if keys:
            console.print(_text(f"{len(keys)} {state}: {_run_text(keys[0])}"))
    if session.experiment.untrusted:
        _note(console, not_loaded(session.experiment))
    for name, reason in session.absent.items():
        _note(console, f"Absent, not run: {name}: {reason}")
    failures = session.failures()
    for record in failures[:SHOWN]:
        _note(console, f"Failed: {_run_text(record.key)}: {record.message}")
    if len(failures) > SHOWN:
        _note(console, f"and {len(failures) - SHOWN} more failed")
    return total


@contextmanager
def shown_progress(console: Console, count: Count) -> Iterator[Callable[[RunOutcome], None]]:
    """Show runs that end on a terminal, and nothing elsewhere; gives what is to be told of them.

    ``count`` are the runs before the start.
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


def print_verdict(console: Console, verdict: Verdict) -> None:
    """One line on a run that was done again."""
    run = _run_text(verdict.claim.key)
    if verdict.equal:
        accuracy = verdict.claim.values.get("accuracy")
        told = "" if accuracy is None else f": accuracy {100 * accuracy:.2f} %"
        console.print(_text(f"equal: {run}{told}"), soft_wrap=True)
        return
    numbers = [f"{name} {was:g} became {now:g}" for name, (was, now) in verdict.differences.items()]
    _note(console, f"DIFFERS: {run}: {verdict.message or ', '.join(numbers)}")


def _run_text(key: RunKey) -> str:
    setting = ", ".join(f"{name}={value}" for name, value in key.setting)
    return (
        f"{key.method}{f' ({setting})' if setting else ''} on {key.data}, {key.missing_rate:.0%} "
        f"missing, {key.label_rate:.0%} labels, {key.protocol}, repetition {key.repetition}"
    )


def not_loaded(experiment: Experiment) -> str:
    """What the commands that only read say of code that they did without."""
    return (
        f"not loaded, because nobody said --trust: {', '.join(experiment.untrusted)}; what it adds "
        "to viewmend is known by its records alone"
    )


def _note(console: Console, text: str) -> None:
    console.print(_text(text), style="yellow", soft_wrap=True)


def _text(text: str) -> Text:
    """Text for the terminal as it is, without markup; what could steer the terminal is spelt out.

    Names and messages come from files.
    """
    return Text(
        "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    )
