"""``viewmend compare``: methods on your own data, by the labels that it has."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from viewmend.cli import options
from viewmend.cli.building import find_method
from viewmend.cli.charts import write_chart
from viewmend.cli.console import (
    check_files,
    check_picture,
    check_table,
    refusals,
    say,
    short_warnings,
    show_table,
    write_json,
)
from viewmend.cli.wording import for_command_line
from viewmend.comparison import DEFAULT_METHODS, MethodComparison, compare_methods
from viewmend.data import read_view_tables
from viewmend.exceptions import InvalidLabelsError
from viewmend.storage.atomic import write_text
from viewmend.text import csv_cell


def compare(
    data: options.Data,
    labels: options.Labels = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Names from `viewmend methods`, separated by commas; may be repeated.",
            show_default=", ".join(DEFAULT_METHODS),
        ),
    ] = None,
    splits: Annotated[
        int, typer.Option(min=2, help="Parts of the labels, each held out once.")
    ] = 5,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", dir_okay=False, help="CSV file of the table.")
    ] = None,
    chart: Annotated[
        Path | None,
        typer.Option(dir_okay=False, help="Picture of the table; the ending gives the format."),
    ] = None,
    groups: options.Groups = None,
    id_column: options.IdColumn = None,
    unlabelled: options.Unlabelled = None,
    view: options.Views = None,
    leave_out: options.LeaveOut = None,
    unreadable_as_missing: options.UnreadableAsMissing = False,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the parts, and of methods that use random numbers.")
    ] = 0,
    as_json: options.AsJson = False,
) -> None:
    """Compare methods by cross-validation over the labelled samples, and recommend one.

    One part of the labels is held out at a time. All samples stay in the fits, also those without
    a label. If a method fails, its row has the reason.

    `viewmend compare data/ --labels stage --chart methods.png`
    """
    console = Console(stderr=True)
    files = {"table": output, "chart": chart}
    with refusals(), short_warnings(console) as notes:
        names = _names(methods)
        request = options.request_for(
            id_column, labels, unlabelled, view, leave_out, unreadable_as_missing, groups
        )
        outputs = {"--output": output, "--chart": chart}
        check_files(outputs, data, options.files_of(request))
        if output is not None:
            check_table(output, "--output", data)
        if chart is not None:
            check_picture(chart, "--chart")
        tables = read_view_tables(data, request)
        aligned = tables.aligned()
        if aligned.y is None:
            msg = "the data holds no labels; name their column, or a file of labels, with --labels"
            raise InvalidLabelsError(msg)
        with _progress(console, len(names) * splits) as tell:
            found = compare_methods(
                aligned,
                methods=names,
                groups=tables.groups_of(aligned.sample_ids),
                n_splits=splits,
                random_state=seed,
                on_step=tell,
            )
        if output is not None:
            _write_table(found, output)
        if chart is not None:
            write_chart(chart, len(found.scored), found.plot)
    summary = _summary(found)
    summary |= {"files": {kind: str(path) for kind, path in files.items() if path}, "notes": notes}
    if as_json:
        write_json(summary)
    else:
        _show(Console(), found, summary)


def _names(asked: Sequence[str] | None) -> list[str]:
    """Names of the registry, once each."""
    words = [word.strip() for text in asked or DEFAULT_METHODS for word in text.split(",")]
    return list(dict.fromkeys(find_method(word).name for word in words))


@contextmanager
def _progress(console: Console, n_fits: int) -> Iterator[Callable[[str, int, int], None]]:
    """Shows, on a terminal, which fit is under way; gives what is told so."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("input", total=n_fits)
        begun = 0

        def tell(name: str, done: int, total: int) -> None:
            nonlocal begun
            words = f"{name}: part {done + 1} of {total}"
            bar.update(task, description=words, completed=begun, refresh=True)
            begun += 1

        yield tell


def _records(found: MethodComparison) -> list[dict[str, Any]]:
    records = found.records()
    return [
        row | {"failure": row["failure"] and for_command_line(row["failure"])} for row in records
    ]


def _write_table(found: MethodComparison, path: Path) -> None:
    text, records = io.StringIO(), _records(found)
    table = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    table.writeheader()
    table.writerows({key: csv_cell(cell) for key, cell in row.items()} for row in records)
    write_text(path, text.getvalue())


def _summary(found: MethodComparison) -> dict[str, Any]:
    """The comparison in numbers and words."""
    best, chosen = found.best, found.recommended
    return {
        "methods": _records(found),
        "n_held_out": best and best.estimate.n_held_out,
        "n_groups": best and best.n_groups,
        "n_splits": found.n_splits,
        "most_frequent_class": best and best.estimate.majority,
        "best": best and best.name,
        "recommended": chosen and chosen.name,
        "beats_guessing": found.beats_guessing,
        "advice": found.advice(),
    }


def _show(console: Console, found: MethodComparison, summary: dict[str, Any]) -> None:
    shown = [
        {
            "method": row["method"],
            "accuracy": row["accuracy"],
            "from": row["low"],
            "to": row["high"],
            "balanced": row["balanced_accuracy"],
            "seconds": row["seconds"],
            "failure": row["failure"],
        }
        for row in summary["methods"]
    ]
    show_table(console, shown)
    say(console, "", *found.remarks(), summary["advice"], wrap=True)
    say(console, "", *(f"{kind}: {path}" for kind, path in summary["files"].items()))
