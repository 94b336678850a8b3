"""The command line: ``viewmend demo``, ``methods``, ``bench``. Commands call and print."""

from __future__ import annotations

import importlib.util
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

# Annotations stay strings, so the commands below can be defined without Typer and the entry point
# can answer in one line where the extra is not installed.
try:
    import typer
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.table import Table
except ImportError as error:
    MISSING: str | None = error.name
else:
    MISSING = None

from viewmend import __version__
from viewmend.baselines.registry import METHODS
from viewmend.datasets import realised_completeness
from viewmend.demo import DemoResult, draw_demo, run_demo
from viewmend.exceptions import InvalidLabelsError, InvalidParameterError, InvalidViewsError
from viewmend.models.agfti import AGFTIClassifier
from viewmend.plot.style import require_matplotlib

if TYPE_CHECKING:
    from viewmend.core import Round, State
    from viewmend.core.admm import Callback

__all__ = ["app"]

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
        _check_output(output)
    with _bad_parameters(), _warnings_to(console), _progress(console) as callback:
        result = run_demo(seed, missing_rate, label_rate, callback)
    _report(console, result)
    if figure:
        draw_demo(result).savefig(output)
        console.print(f"Figure: {output}", soft_wrap=True)


def methods() -> None:
    """List every method: what it needs, what it can do, and its paper."""
    table = Table()
    for heading in ("name", "class", "imputes first", "predicts new", "grid", "extra", "paper"):
        table.add_column(heading, overflow="fold")
    for method in METHODS.values():
        n_settings = math.prod(len(values) for values in method.grid.values())
        table.add_row(
            method.name,
            method.path.rsplit(".", 1)[1],
            "yes" if method.needs_imputation else "",
            "yes" if method.inductive else "",
            str(n_settings) if method.grid else "",
            method.extra or "",
            method.paper,
        )
    Console().print(table)


def main(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Learn from incomplete multi-view data with few labels."""
    if version:
        Console().print(f"viewmend {__version__}", highlight=False)
        raise typer.Exit


def _check_output(output: Path) -> None:
    """Refuse a figure that could not be written before any time is spent on the fit."""
    try:
        require_matplotlib()
    except ImportError as error:
        msg = f"{error}, or pass --no-figure"
        raise typer.BadParameter(msg, param_hint="--figure") from error
    from matplotlib.figure import Figure

    formats = sorted(Figure().canvas.get_supported_filetypes())
    if output.suffix[1:].lower() not in formats:
        msg = f"{output.name!r} must end in a format that can be drawn: {', '.join(formats)}"
        raise typer.BadParameter(msg, param_hint="--output")
    if not output.absolute().parent.is_dir():
        msg = f"there is no folder {str(output.parent)!r}; make it first"
        raise typer.BadParameter(msg, param_hint="--output")


@contextmanager
def _bad_parameters() -> Iterator[None]:
    """Turn the library's errors about its input into a short message and exit code 2."""
    try:
        yield
    except (InvalidParameterError, InvalidLabelsError, InvalidViewsError) as error:
        raise typer.BadParameter(str(error)) from error


@contextmanager
def _warnings_to(console: Console) -> Iterator[None]:
    """Show warnings as one line each, without the source line Python adds."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        console.print(f"Note: {message}", style="yellow", markup=False)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


@contextmanager
def _progress(console: Console) -> Iterator[Callback]:
    """A bar over the rounds of AGF-TI, on a terminal only; gives the callback that moves it."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        bar = progress.add_task("AGF-TI, rounds", total=AGFTIClassifier().max_iter)

        def advance(round_: Round, _state: State) -> None:
            progress.update(bar, completed=round_.iteration)

        yield advance


def _report(console: Console, result: DemoResult) -> None:
    task, model = result.task, result.model
    complete = realised_completeness(task.data.observed)
    weights = ", ".join(
        f"{name} {weight:.3f}"
        for name, weight in zip(model.view_names_, model.view_weights_, strict=True)
    )
    console.print(_score_table(result))
    for line in (
        f"View weights: {weights}",
        f"Observed: {complete.observed_pairs:.1%} of (sample, view) pairs; "
        f"{complete.complete_samples:.1%} of samples have every view",
        f"Rows shuffled; the fits saw no test label; scores on {task.unlabelled.sum()} unlabelled "
        "samples",
    ):
        console.print(line, highlight=False)


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


def _refuse() -> NoReturn:
    """The entry point where Typer or Rich is missing."""
    msg = (
        f"the command viewmend needs {MISSING}, which is not installed; "
        "run: pip install 'viewmend[cli]'"
    )
    raise SystemExit(msg)


def _make_app() -> Callable[..., Any]:
    if MISSING is not None:
        return _refuse
    commands = typer.Typer(add_completion=False, no_args_is_help=True)
    commands.callback(invoke_without_command=True)(main)
    commands.command()(demo)
    commands.command()(methods)
    # The locks of its store are those of POSIX.
    if importlib.util.find_spec("fcntl"):
        from viewmend.bench.commands import app as bench

        commands.add_typer(bench, name="bench")
    return commands


app = _make_app()
