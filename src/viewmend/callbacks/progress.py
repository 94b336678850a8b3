"""Callbacks that show or log the rounds."""

from __future__ import annotations

import csv
import io
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from viewmend.callbacks.protocol import Fit, RoundRecord
from viewmend.extras import how_to_install
from viewmend.storage.atomic import check_folder, replacing

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


class LogRounds:
    """Log one line per round, and one when another step of the fit begins.

    Every line starts with the seconds since the fit began.

    Parameters
    ----------
    stream : text stream, optional
        Where to write; standard error by default.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream
        self._begin: float | None = None
        self._stage = ""

    def on_fit_begin(self, _fit: Fit) -> None:
        self._begin, self._stage = time.monotonic(), ""

    def on_stage(self, name: str, _done: int, _total: int | None) -> None:
        if name != self._stage:
            self._stage = name
            self._write(name)

    def __call__(self, round_: RoundRecord, _state: Any) -> None:
        self._write(round_.summary())

    def _write(self, line: str) -> None:
        # Where there is no fit around the rounds, as in `viewmend.core.solve`, the first line is 0.
        if self._begin is None:
            self._begin = time.monotonic()
        elapsed = time.monotonic() - self._begin
        (self.stream or sys.stderr).write(f"{elapsed:7.1f} s  {line}\n")


class ProgressBar:
    """Show the current step of a fit, a bar and the elapsed time in a terminal.

    Nothing is shown if the output is not a terminal. The bar belongs to the current step: the
    neighbour searches, the rounds, or the calibration.

    Parameters
    ----------
    console : rich.console.Console, optional
        Where to show it; standard error by default.

    Attributes
    ----------
    stage : str
        The latest step of the last fit, such as "round 3 of 10".

    Raises
    ------
    ImportError
        If Rich is not installed.
    """

    def __init__(self, console: Console | None = None) -> None:
        try:
            from rich.console import Console
        except ImportError as error:
            msg = f"ProgressBar needs rich, which is not installed; {how_to_install('cli')}"
            raise ImportError(msg) from error
        self.console = Console(stderr=True) if console is None else console
        self.stage = ""
        self._fit: Fit | None = None
        self._progress: Progress | None = None

    def on_fit_begin(self, fit: Fit) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        hidden = not self.console.is_terminal
        self._fit = fit
        self._progress = Progress(*columns, console=self.console, transient=True, disable=hidden)
        self._progress.add_task(fit.name, total=None)
        self.on_stage("input", 0, None)
        self._progress.start()

    def on_stage(self, name: str, done: int, total: int | None) -> None:
        # Outside a fit, as in a search that builds what several fits share, there is no bar.
        if self._fit is None or self._progress is None:
            return
        self.stage = name
        # A task that reached its total would stop its clock: `done` of a stage never does.
        task = self._progress.task_ids[0]
        words = f"{self._fit.name}: {name}"
        self._progress.update(task, description=words, completed=done, total=total, refresh=True)

    def on_rounds_begin(self) -> None:
        self._show_round_after(0)

    def on_resume(self, history: Sequence[Any]) -> None:
        self._show_round_after(len(history))

    def __call__(self, round_: RoundRecord, _state: Any) -> None:
        self._show_round_after(round_.iteration)

    def on_fit_end(self, _fit: Fit, _error: BaseException | None) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._fit = self._progress = None

    def _show_round_after(self, n_done: int) -> None:
        most = 0 if self._fit is None else self._fit.max_rounds
        if n_done < most:
            self.on_stage(f"round {n_done + 1} of {most}", n_done, most)
        else:
            self.on_stage("result", 0, None)


class HistoryCSV:
    """Write the history of a fit to a CSV file, which is complete after every round.

    The file has one row per round and one column per number. Terms of ``objective`` and weights
    have names such as ``objective.fusion`` and ``alpha.0``. ``inner`` is a number of steps. A fit
    that resumes from a `Checkpoint` writes the rows of all its rounds. An existing file is replaced
    at the first round.

    Parameters
    ----------
    path : path
        The file to write.
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
