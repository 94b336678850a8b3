"""What commands say, and how they refuse: notes on standard error, results on standard output."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from viewmend.cli.wording import for_command_line
from viewmend.data.io.tables import is_table
from viewmend.exceptions import (
    CheckpointError,
    InvalidLabelsError,
    InvalidParameterError,
    InvalidViewsError,
    TooLargeError,
)
from viewmend.extras import EXTRA_OF, how_to_install
from viewmend.plot.style import require_matplotlib
from viewmend.storage.errors import ModelFileError
from viewmend.text import json_printable, printable

# What users can put right themselves: told in a sentence, without a traceback.
USER_ERRORS = (
    CheckpointError,
    ImportError,
    InvalidLabelsError,
    InvalidParameterError,
    InvalidViewsError,
    ModelFileError,
    OSError,
    TooLargeError,
)


@contextmanager
def refusals() -> Iterator[None]:
    """Turn errors about the input into a short message and exit code 2."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        extra = EXTRA_OF.get(package)
        remedy = f"run: pip install {package}" if extra is None else how_to_install(extra)
        msg = f"this needs {package}, which is not installed; {remedy}"
        raise typer.BadParameter(printable(msg)) from error
    except USER_ERRORS as error:
        raise typer.BadParameter(printable(for_command_line(error))) from error


@contextmanager
def short_warnings(console: Console) -> Iterator[list[str]]:
    """Show warnings as one line each, without the source line Python adds, and collect them."""
    notes: list[str] = []

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        # What other libraries plan to change is not for whoever types a command.
        text = for_command_line(message)
        if issubclass(category, UserWarning) and text not in notes:
            notes.append(text)
            console.print(printable(f"Note: {text}"), style="yellow", markup=False)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield notes


def check_writable(path: Path, option: str) -> None:
    """Refuse a file that could not be written before any time is spent on a fit."""
    if not path.absolute().parent.is_dir():
        msg = f"there is no folder {str(path.parent)!r}; make it first"
        raise typer.BadParameter(printable(msg), param_hint=option)


def check_picture(path: Path, option: str) -> None:
    """Refuse a picture that could not be written, or is of no format that can be drawn."""
    require_matplotlib()
    from matplotlib.figure import Figure

    formats = sorted(Figure().canvas.get_supported_filetypes())
    if path.suffix[1:].lower() not in formats:
        msg = f"{path.name!r} must end in a format that can be drawn: {', '.join(formats)}"
        raise typer.BadParameter(printable(msg), param_hint=option)
    check_writable(path, option)


def check_files(
    outputs: Mapping[str, Path | None], data: Path, others: Iterable[Path | None] = ()
) -> None:
    """Refuse to write over a file that the command reads, or two files to one path.

    ``outputs`` are by option; ``data`` is read, and if it is a folder its tables are; so are the
    ``others``. A file that is written over is lost.
    """
    tables = filter(is_table, data.iterdir()) if data.is_dir() else [data]
    read = [*tables, *(path for path in others if path is not None)]
    taken = {path.resolve(): "is read by this command" for path in read}
    for option, path in outputs.items():
        if path is None:
            continue
        if path.resolve() in taken:
            msg = f"{str(path)!r} {taken[path.resolve()]}; write to another file"
            raise typer.BadParameter(printable(msg), param_hint=option)
        taken[path.resolve()] = f"is written by {option} already"


def check_table(path: Path, option: str, data: Path) -> None:
    """Refuse a table that could not be written, or would lie among the views of the data."""
    check_writable(path, option)
    check_files({option: path}, data)
    if path.resolve().parent == data.resolve():
        msg = f"{str(path)!r} would be read as a view the next time; write it elsewhere"
        raise typer.BadParameter(msg, param_hint=option)


def say(console: Console, *lines: str, wrap: bool = False) -> None:
    """Lines as they are, however long, or wrapped between words, which breaks paths."""
    for line in lines:
        console.print(printable(line), highlight=False, markup=False, soft_wrap=not wrap)


def write_json(values: Mapping[str, Any]) -> None:
    """One object on standard output, and nothing else."""
    typer.echo(json_printable(json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False)))


def json_label(label: Any) -> Any:
    """A class as JSON can hold it: numbers, text and truth values as they are, others as text."""
    plain = label.item() if hasattr(label, "item") else label
    return plain if isinstance(plain, (bool, int, float, str)) else str(plain)


def show_table(console: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    """One line per row and one column per key; columns without a value in any row are left out."""
    keys = [key for key in rows[0] if any(row[key] is not None for row in rows)]
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for key in keys:
        number = any(isinstance(row[key], (int, float)) for row in rows)
        heading = key.removeprefix("n_").replace("_", " ")
        table.add_column(heading, justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(escape(_cell(row[key])) for key in keys))
    console.print("", table)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if isinstance(value, float) else printable(value)
