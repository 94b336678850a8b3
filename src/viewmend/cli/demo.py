"""``viewmend demo``: the methods on handwritten digits with views and labels hidden."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from viewmend.callbacks import ProgressBar
from viewmend.cli.console import check_picture, refusals, say, short_warnings
from viewmend.datasets import realised_completeness
from viewmend.demo import DemoResult, draw_demo, run_demo
from viewmend.storage.atomic import replacing

# Field of MethodScore, heading, decimals, and which value is best.
COLUMNS: tuple[tuple[str, str, int, Callable[..., float]], ...] = (
    ("accuracy", "accuracy", 3, max),
    ("macro_f1", "macro-\nF1", 3, max),
    ("macro_precision", "macro-\nprecision", 3, max),
    ("macro_recall", "macro-\nrecall", 3, max),
    ("seconds", "seconds", 1, min),
)


def demo(
    seed: Annotated[int, typer.Option(min=0, help="Of what is hidden and of the anchors.")] = 0,
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
    """Compare AGF-TI with two rivals on handwritten digits, with views and labels hidden."""
    console = Console()
    if figure:
        _check_drawable(output)
    with refusals(), short_warnings(console):
        result = run_demo(seed, missing_rate, label_rate, ProgressBar(console))
    _report(console, result)
    if figure:
        with replacing(output) as stream:
            draw_demo(result).savefig(stream, format=output.suffix[1:])
        say(console, f"Figure: {output}")


def _check_drawable(output: Path) -> None:
    """Refuse a figure that could not be written before any time is spent on the fit."""
    try:
        check_picture(output, "--output")
    except ImportError as error:
        msg = f"{error}, or pass --no-figure"
        raise typer.BadParameter(msg, param_hint="--figure") from error


def _report(console: Console, result: DemoResult) -> None:
    task, model = result.task, result.model
    complete = realised_completeness(task.data.observed)
    weights = ", ".join(
        f"{name} {weight:.3f}"
        for name, weight in zip(model.view_names_, model.view_weights_, strict=True)
    )
    console.print(_score_table(result))
    say(
        console,
        f"View weights: {weights}",
        f"Observed: {complete.observed_pairs:.1%} of (sample, view) pairs; "
        f"{complete.complete_samples:.1%} of samples have every view",
        f"Rows shuffled; the fits saw no test label; scores on {task.unlabelled.sum()} unlabelled "
        "samples",
        wrap=True,
    )


def _score_table(result: DemoResult) -> Table:
    """One row per method, the best printed value of each column bold."""
    task, model = result.task, result.model
    table = Table(
        title=f"{result.dataset}: {task.data.n_samples} samples, {task.data.n_views} views, "
        f"{task.labelled.sum()} labels",
        caption=f"AGF-TI: {model.status_} after {model.n_iter_} rounds, last change "
        f"{model.history_[-1].change:.1e}, tol {model.tol:g}",
        caption_justify="left",
    )
    table.add_column("method", vertical="bottom")
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
