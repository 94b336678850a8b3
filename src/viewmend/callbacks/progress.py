"""Callbacks that show or write down what rounds do."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from viewmend.callbacks.protocol import Fit, RoundRecord
from viewmend.storage.atomic import check_folder, replacing

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


class LogRounds:
    """Write one line per round.

    Parameters
    ----------
    stream : text stream, optional
        Standard error by default.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream

    def __call__(self, round_: RoundRecord, _state: Any) -> None:
        (self.stream or sys.stderr).write(f"{round_.summary()}\n")


class ProgressBar:
    """A bar over the rounds of a fit, on a terminal; nothing anywhere else.

    Parameters
    ----------
    console : rich.console.Console, optional
        Standard error by default.

    Raises
    ------
    ImportError
        Where Rich is not installed.
    """

    def __init__(self, console: Console | None = None) -> None:
        try:
            from rich.console import Console
        except ImportError as error:
            msg = "ProgressBar needs rich, which is not installed; run: pip install 'viewmend[cli]'"
            raise ImportError(msg) from error
        self.console = Console(stderr=True) if console is None else console
        self._progress: Progress | None = None

    def on_fit_begin(self, fit: Fit) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        hidden = not self.console.is_terminal
        self._progress = Progress(*columns, console=self.console, transient=True, disable=hidden)
        self._progress.add_task(fit.name, total=fit.max_rounds)
        self._progress.start()

    def __call__(self, round_: RoundRecord, _state: Any) -> None:
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], completed=round_.iteration)

    def on_fit_end(self, _fit: Fit, _error: BaseException | None) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


class HistoryCSV:
    """Keep the history of a fit in a CSV file, which is whole and up to date after every round.

    One row per round and one column per number: those of ``objective`` and of weights have the
    name of the field and of the term, or position, as in ``objective.fusion`` and ``alpha.0``.
    ``inner`` is a number of steps. A fit that continues from a `Checkpoint` has the rows of all
    its rounds. An earlier file is replaced at the first round.

    Parameters
    ----------
    path : path
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._rows: list[dict[str, Any]] = []

    def on_fit_begin(self, _fit: Fit) -> None:
        check_folder(self.path)
        self._rows = []

    def on_resume(self, history: Sequence[Any]) -> None:
        self._rows = [_row(round_) for round_ in history]

    def __call__(self, round_: RoundRecord, _state: Any) -> None:
        self._rows.append(_row(round_))
        # Columns in the order in which they came: a view explains nothing before it is asked.
        names = list(dict.fromkeys(name for row in self._rows for name in row))
        text = io.StringIO()
        table = csv.DictWriter(text, names)
        table.writeheader()
        table.writerows(self._rows)
        with replacing(self.path) as file:
            file.write(text.getvalue().encode())


def _row(round_: Any) -> dict[str, Any]:
    return dict(cell for field in fields(round_) for cell in _cells(field.name, round_))


def _cells(name: str, round_: RoundRecord) -> Iterator[tuple[str, Any]]:
    value = getattr(round_, name)
    if name == "inner":
        yield name, len(value)
    elif isinstance(value, dict):
        yield from ((f"{name}.{key}", entry) for key, entry in value.items())
    elif isinstance(value, tuple):
        yield from ((f"{name}.{i}", entry) for i, entry in enumerate(value))
    else:
        yield name, value
