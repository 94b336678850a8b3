"""Hostile names of files, views, columns, samples and classes, and where they are shown."""

from __future__ import annotations

import csv
import re
import tempfile
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

from attacks.outcomes import Outcome, Verdict, judged
from viewmend.bench.tables.table import Entry, Line, Table, write_table

HOSTILE = (
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1+1",
    "'=1+1",
    "-0.5",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x9b31m",
    "a\rb",
    "a\nb",
    "a\n# heading",
    "\u202ereversed",
    "half \ud800 of a character",
    "\udcff",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a|b",
    "`code`",
    "**bold**",
    "[bold red]markup[/]",
    "[link](javascript:alert(1))",
    "$$",
    r"$\frac{1}",
    "&lt;",
    "a,b;c",
    'quo"te',
    "…",
    "né",
    "x" * 300,
)
N_SAMPLES = 24
FORMULA = re.compile(r"[=+\-@\t\r]")
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e]")
# Elements of a page that no name has anything to do with.
TAGS = frozenset(
    re.findall(
        r"\w+",
        "html head meta title style body header h1 h2 h3 p nav ul li a main section dl dt dd table "
        "caption thead tbody tfoot tr th td div span button details summary figure figcaption img "
        "svg code script small strong em b br footer input label",
    )
)


@dataclass(frozen=True)
class HostileNames:
    """Names through the predictions, the report, Markdown and everything that is printed.

    A difference is: a cell that a spreadsheet takes for a formula, a file of predictions that is
    not read back as the classes it was written from, an element of a page or a line of a table
    that came from a name, a character that a terminal obeys.
    """

    name: str = "hostile names"
    n_cases: int = 64
    time_limit: float = 120.0

    def prepare(self, folder: Path) -> None:
        """Every case makes its own data."""

    def attempt(self, _folder: Path, rng: np.random.Generator) -> Outcome:
        with tempfile.TemporaryDirectory() as place:
            return judged(lambda: _markdown(rng) or _command_line(Path(place), rng))


def _some(rng: np.random.Generator, count: int) -> list[str]:
    return [HOSTILE[i] for i in rng.choice(len(HOSTILE), count, replace=False)]


def _markdown(rng: np.random.Generator) -> Outcome | None:
    title, head, column, cell, note = _some(rng, 5)
    table = Table(title, (head,), (column,), (Line((cell,), (Entry(cell),)),), (note,))
    plain = Table("t", ("h",), ("c",), (Line(("x",), (Entry("x"),)),), ("n",))
    text, expected = write_table(table, "markdown"), write_table(plain, "markdown")
    pipes = [len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in text.splitlines()]
    if pipes != [line.count("|") for line in expected.splitlines()]:
        return Outcome(Verdict.SILENT, f"the table has other cells:\n{text!r}")
    if CONTROL.search(text) or re.search(r"(?<!\\)<(?!u>|/u>)", text):
        return Outcome(Verdict.SILENT, f"Markdown that is obeyed:\n{text!r}")
    for row in csv.reader(write_table(table, "csv").splitlines(keepends=True)):
        if any(_is_formula(cell) for cell in row):
            return Outcome(Verdict.SILENT, f"a formula: {row!r}")
    return None


def _is_formula(cell: str) -> bool:
    return bool(FORMULA.match(cell)) and not re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", cell)


def _command_line(place: Path, rng: np.random.Generator) -> Outcome | None:
    """`inspect`, `fit` with all its files, and `predict`."""
    data = WRITERS[rng.integers(len(WRITERS))](place, rng)
    model, classes, page = (place / name for name in ("m.vm", "classes.csv", "page.html"))
    told = (
        ["inspect", str(data)],
        ["inspect", str(data), "--json"],
        ["fit", str(data), "-o", str(model), "--predictions", str(classes), "--report", str(page)],
        ["predict", str(model), str(data), "-o", str(place / "again.csv")],
        ["inspect", str(data), "--labels", f"{classes}:class"],
    )
    for arguments in told:
        status, printed = _run(arguments)
        if CONTROL.search(printed):
            return Outcome(Verdict.SILENT, f"{arguments[0]} printed {printed!r}"[:2000])
        if status == 2:
            return Outcome(Verdict.REFUSED, printed)
    return _check_files(data, classes, page)


def _run(arguments: list[str]) -> tuple[int, str]:
    """Exit status and output of a command; an exception that it did not expect goes on."""
    from typer.testing import CliRunner

    from viewmend.cli import app

    result = CliRunner().invoke(app, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def _ids_and_labels(rng: np.random.Generator) -> tuple[list[str], list[str]]:
    ids = [f"s{i}" for i in range(N_SAMPLES)]
    for row, name in zip(rng.choice(N_SAMPLES, 4, replace=False), _some(rng, 4), strict=True):
        ids[row] = name
    classes = _some(rng, 2)
    return ids, [classes[i % 2] if i < 12 else "" for i in range(N_SAMPLES)]


def _values(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(N_SAMPLES, 2)) + 3 * (np.arange(N_SAMPLES) % 2)[:, None]


def _write_archive(place: Path, rng: np.random.Generator) -> Path:
    """An archive, whose texts may hold halves of characters."""
    ids, known = _ids_and_labels(rng)
    y = np.array([name or None for name in known], dtype=object)
    y[12:] = y[:2].tolist() * 6
    views = {"first": _values(rng), "second": _values(rng)}
    np.savez(place / "data.npz", ids=np.array(ids), y=y.astype(str), **views)
    return place / "data.npz"


def _write_folder(place: Path, rng: np.random.Generator) -> Path:
    """Two views and labels; names of everything may be hostile."""
    folder = place / "data"
    folder.mkdir()
    ids, known = _ids_and_labels(rng)
    first, second = _some(rng, 2)
    for view in (first, "plain"):
        name = view.replace("/", "_").replace("\ud800", "")[:80]
        rows = [
            ["id", second, "c"],
            *([i, *map(str, row)] for i, row in zip(ids, _values(rng), strict=True)),
        ]
        _write_csv(folder / f"{name}.csv", rows)
    _write_csv(folder / "labels.csv", [["id", "label"], *map(list, zip(ids, known, strict=True))])
    return folder


def _write_csv(path: Path, rows: list[list[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8", errors="replace") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)


WRITERS = (_write_folder, _write_folder, _write_folder, _write_archive)


def _check_files(data: Path, classes: Path, page: Path) -> Outcome | None:
    from viewmend.data import Request, read_view_tables

    with classes.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    formulas = [cell for row in rows for cell in row if _is_formula(cell)]
    if formulas:
        return Outcome(Verdict.SILENT, f"formulas {formulas!r}")
    given = read_view_tables(data).labels
    told = read_view_tables(data, Request(labels=f"{classes}:class")).labels
    if given is None or told is None or not told.reindex(given.index).equals(given):
        return Outcome(Verdict.SILENT, f"labels {given} were read back as {told}")
    found = _Elements()
    found.feed(page.read_text(encoding="utf-8"))
    strange = found.tags - TAGS
    if strange or found.scripts > 1 or found.handlers:
        return Outcome(Verdict.SILENT, f"elements {strange}, {found.handlers}, {found.scripts}")
    return None


class _Elements(HTMLParser):
    """Names of the elements of a page outside of pictures, and attributes that hold code."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.handlers: list[str] = []
        self.scripts = 0
        self._inside_picture = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside_picture += tag == "svg"
        self.scripts += tag == "script"
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.handlers += [str(v) for _, v in attrs if str(v).startswith("javascript:")]
        if not self._inside_picture:
            self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        self._inside_picture -= tag == "svg"
