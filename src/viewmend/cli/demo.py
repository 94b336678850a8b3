"""``viewmend demo``: Mend and familiar tools on handwritten digits with views and labels hidden."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from viewmend.callbacks import ProgressBar
from viewmend.cli.console import check_picture, refusals, say, short_warnings
from viewmend.datasets import realised_completeness
from viewmend.demo import DemoResult, compile_kernels, draw_demo, run_demo
from viewmend.storage.atomic import replacing

# Field of MethodScore, heading, decimals, and which value is best.
COLUMNS: tuple[tuple[str, str, int, Callable[..., float]], ...] = (
    ("accuracy", "accuracy", 3, max),
    ("macro_f1", "macro-F1", 3, max),
    ("seconds", "seconds", 1, min),
)
NEXT = (
    "",
    "Next, on your own tables, one CSV file per view with a column of identifiers:",
    "  viewmend inspect FOLDER --labels COLUMN",
    "  viewmend fit FOLDER --labels COLUMN -o model.vm --report fit.html",
    "In Python: the ten lines of README.md, then docs/tutorial.md.",
)


def demo(
    seed: Annotated[
        int, typer.Option(min=0, help="Seed for what is hidden and for the order of the rows.")
    ] = 0,
    missing_rate: Annotated[
        float, typer.Option(help="Probability that a sample is hidden from a view, in [0, 1).")
    ] = 0.5,
    label_rate: Annotated[
        float, typer.Option(help="Share of every class that keeps its label, in (0, 1].")
    ] = 0.05,
    output: Annotated[
        Path, typer.Option(dir_okay=False, help="File of the figure; the ending gives the format.")
    ] = Path("demo.png"),
    figure: Annotated[bool, typer.Option("--figure/--no-figure", help="Draw the figure.")] = True,
) -> None:
    """Compare MendClassifier with three familiar tools on digits with hidden views and labels."""
    console, begin = Console(), time.monotonic()
    if figure:
        _check_drawable(output)
    with refusals(), short_warnings(console):
        compile_kernels()
        result = run_demo(seed, missing_rate, label_rate, ProgressBar(console))
    _report(console, result)
    if figure:
        with replacing(output) as stream:
            draw_demo(result).savefig(stream, format=output.suffix[1:])
        say(console, f"Figure: {output}")
    say(console, f"This took {time.monotonic() - begin:.0f} seconds.", *NEXT)


def _check_drawable(output: Path) -> None:
    """Refuse a figure that could not be written before any time is spent on the fit."""
    try:
        check_picture(output, "--output")
    except ImportError as error:
        msg = f"{error}, or pass --no-figure"
        raise typer.BadParameter(msg, param_hint="--figure") from error


def _report(console: Console, result: DemoResult) -> None:
    task = result.task
    complete = realised_completeness(task.data.observed)
    console.print(_score_table(result))
    say(
        console,
        "Late fusion is a logistic regression per view; logistic regression and label spreading "
        "have missing views filled with column means.",
        f"Of the (sample, view) pairs, {complete.observed_pairs:.1%} are left; "
        f"{complete.complete_samples:.1%} of the samples have every view.",
        f"Scores are those of the {task.unlabelled.sum()} unlabelled samples, whose classes no fit "
        "has seen. The rows are shuffled.",
        wrap=True,
    )


def _score_table(result: DemoResult) -> Table:
    """One row per method, the best printed value of each column bold."""
    task = result.task
    table = Table(
        title=f"{result.dataset}: {task.data.n_samples} samples, {task.data.n_views} views, "
        f"{task.labelled.sum()} labels",
    )
    table.add_column("method")
    cells = []
    for name, heading, decimals, best_of in COLUMNS:
        table.add_column(heading, justify="right")
        values = [round(getattr(score, name), decimals) for score in result.scores]
        best = best_of(values)
        cells.append(
            [f"[bold]{x:.{decimals}f}[/]" if x == best else f"{x:.{decimals}f}" for x in values]
        )
    for score, row in zip(result.scores, zip(*cells, strict=True), strict=True):
        table.add_row(score.name, *row)
    return table
