"""What the benchmark's commands print about runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from viewmend.bench.plan import Count
from viewmend.bench.runs import Record, RunKey
from viewmend.bench.session import Session

__all__ = ["print_absent", "print_failures", "print_status"]

# Failures that are printed one by one.
SHOWN = 5


def print_status(console: Console, session: Session) -> Count:
    """Runs by row and by what became of them, then all that is not as it should be.

    Returns
    -------
    Count
        Of all rows.
    """
    counted = session.counts()
    total = sum(counted.values(), Count())
    console.print(_count_table(session.experiment.title, counted, total))
    for state, keys in (
        ("running", session.store.running()),
        ("cut short by the end of their process, to do again", session.store.interrupted()),
    ):
        if keys:
            console.print(f"{len(keys)} {state}: {_run_text(keys[0])}", highlight=False)
    print_absent(console, session.absent)
    print_failures(console, session.failures())
    return total


def print_absent(console: Console, absent: Mapping[str, str]) -> None:
    """Data sets that cannot be had, each with the reason."""
    for name, reason in absent.items():
        _note(console, f"Absent, not run: {name}: {reason}")


def print_failures(console: Console, failures: Sequence[Record]) -> None:
    """The first runs that failed, and how many more there are."""
    for record in failures[:SHOWN]:
        _note(console, f"Failed: {_run_text(record.key)}: {record.message}")
    if len(failures) > SHOWN:
        _note(console, f"and {len(failures) - SHOWN} more failed")


def _count_table(title: str, counted: Mapping[str, Count], total: Count) -> Table:
    table = Table(title=title)
    table.add_column("runs of")
    for heading in ("done", "failed", "left out", "to do"):
        table.add_column(heading, justify="right")
    for name, count in [*counted.items(), ("all", total)]:
        table.add_row(name, *map(str, vars(count).values()), end_section=name == list(counted)[-1])
    return table


def _run_text(key: RunKey) -> str:
    setting = ", ".join(f"{name}={value}" for name, value in key.setting)
    return (
        f"{key.method}{f' ({setting})' if setting else ''} on {key.data}, {key.missing_rate:.0%} "
        f"missing, {key.label_rate:.0%} labels, {key.protocol}, repetition {key.repetition}"
    )


def _note(console: Console, text: str) -> None:
    console.print(text, style="yellow", markup=False, highlight=False, soft_wrap=True)
