"""What a table is, and how it is written: Markdown, LaTeX, CSV, and as a part of a page."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from viewmend.bench.runs import Condition, rate_text
from viewmend.exceptions import InvalidParameterError
from viewmend.report.html import LONG, Cell, joined, table_html, tag
from viewmend.text import csv_cell, markdown_paragraph, markdown_text

# Columns that name a condition.
HEADS = ("data", "VMR", "LAR")

# The paper's signs of a verdict.
MARKS = {"better": "●", "tied": "⊙", "worse": "○"}
_LATEX_MARKS = {"●": r"$\bullet$", "⊙": r"$\odot$", "○": r"$\circ$"}

_LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "≤": r"$\leq$",
    **_LATEX_MARKS,
}


@dataclass(frozen=True)
class Entry:
    """What stands in one place of a table."""

    text: str
    # What it is sorted by.
    value: float | None = None
    # 1 for the best of its line, 2 for the second, 0 for the others.
    place: int = 0
    # Of `viewmend.bench.stats.VERDICTS`, empty where nothing was compared.
    verdict: str = ""


# Where nothing was measured.
GAP = Entry("-")


@dataclass(frozen=True)
class Line:
    """A line of a table; a summary stays below the others however they are sorted."""

    heads: tuple[str, ...]
    entries: tuple[Entry, ...]
    summary: bool = False


@dataclass(frozen=True)
class Table:
    """A table that can be written in any format.

    ``heads`` name the columns that tell what a line is about, ``columns`` the others.
    """

    title: str
    heads: tuple[str, ...]
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()


def heads_of(condition: Condition) -> tuple[str, ...]:
    """A condition in the columns of `HEADS`."""
    return condition.data, rate_text(condition.missing_rate), rate_text(condition.label_rate)


def condition_table(
    title: str,
    columns: Sequence[str],
    entries: Mapping[Condition, Mapping[str, Entry]],
    summaries: Mapping[str, Mapping[str, Entry]],
    notes: Sequence[str] = (),
) -> Table:
    """A line for every condition, summaries below; a gap where a column has no entry."""

    def line(heads: tuple[str, ...], by_column: Mapping[str, Entry], summary: bool) -> Line:
        return Line(heads, tuple(by_column.get(name, GAP) for name in columns), summary)

    lines = [line(heads_of(condition), some, False) for condition, some in entries.items()]
    below = [line((name, "", ""), some, True) for name, some in summaries.items()]
    return Table(title, HEADS, tuple(columns), (*lines, *below), tuple(notes))


def write_table(table: Table, form: str) -> str:
    """A table as text in a format of `FORMATS`."""
    if form not in FORMATS:
        msg = f"the format must be one of {', '.join(FORMATS)} but is {form!r}"
        raise InvalidParameterError(msg)
    return FORMATS[form](table)


def to_markdown(table: Table) -> str:
    """Pipe table with its title above and its notes below; HTML underlines the second best."""
    header = [*map(markdown_text, table.heads), *map(markdown_text, table.columns)]
    rule = ["---"] * len(table.heads) + ["---:"] * len(table.columns)
    lines = [
        [*map(markdown_text, line.heads), *map(_markdown_entry, line.entries)]
        for line in table.lines
    ]
    body = "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *lines))
    notes = map(markdown_paragraph, table.notes)
    return "\n\n".join([f"**{markdown_text(table.title)}**", body, *notes]) + "\n"


def _markdown_entry(entry: Entry) -> str:
    first, second = ("**", "**"), ("<u>", "</u>")
    before, after = {1: first, 2: second}.get(entry.place, ("", ""))
    mark = MARKS.get(entry.verdict, "")
    return f"{before}{markdown_text(entry.text)}{after}{' ' + mark if mark else ''}"


def to_latex(table: Table) -> str:
    """``table*`` as wide as the page; needs the packages booktabs and graphicx.

    Titles of the first column are written once per group, with a rule between groups.
    """
    columns = "l" * len(table.heads) + "c" * len(table.columns)
    header = " & ".join(latex_text(name) for name in (*table.heads, *table.columns))
    caption = " ".join([f"{latex_text(table.title)}.", *map(latex_text, table.notes)])
    return "\n".join(
        [
            r"\begin{table*}",
            r"  \centering",
            rf"  \caption{{{caption}}}",
            r"  \resizebox{\textwidth}{!}{%",
            rf"  \begin{{tabular}}{{{columns}}}",
            r"    \toprule",
            rf"    {header} \\",
            r"    \midrule",
            *_latex_lines(table.lines),
            r"    \bottomrule",
            r"  \end{tabular}}",
            r"\end{table*}",
            "",
        ]
    )


def _latex_lines(lines: Sequence[Line]) -> list[str]:
    written: list[str] = []
    group: tuple[bool, str] | None = None
    for line in lines:
        # A table of one head has no groups: every line stands for itself.
        named = len(line.heads) > 1 and not line.summary
        line_group = (line.summary, line.heads[0] if named else "")
        if group is not None and line_group != group:
            written.append(r"    \midrule")
        first = "" if line_group == group and named else line.heads[0]
        cells = [latex_text(first), *map(latex_text, line.heads[1:])]
        written.append("    " + " & ".join([*cells, *map(_latex_entry, line.entries)]) + r" \\")
        group = line_group
    return written


def latex_text(text: str) -> str:
    """Text with LaTeX's own signs escaped."""
    return "".join(_LATEX.get(sign, sign) for sign in text)


def _latex_entry(entry: Entry) -> str:
    command = {1: r"\textbf{%s}", 2: r"\underline{%s}"}.get(entry.place, "%s")
    mark = _LATEX_MARKS.get(MARKS.get(entry.verdict, ""), "")
    return f"{command % latex_text(entry.text)}{' ' + mark if mark else ''}"


def to_csv(table: Table) -> str:
    """Values as numbers where an entry has one, else its text; no title, no notes."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(csv_cell, [*table.heads, *table.columns]))
    for line in table.lines:
        values = [
            entry.text if entry.value is None else repr(entry.value) for entry in line.entries
        ]
        writer.writerow(map(csv_cell, [*line.heads, *values]))
    return text.getvalue()


def to_html(table: Table) -> str:
    """A table whose headers sort it, with its notes below; summaries stay below the other lines."""
    above, below = (
        [
            [*map(_head_cell, line.heads), *map(_entry_cell, line.entries)]
            for line in table.lines
            if line.summary == summary
        ]
        for summary in (False, True)
    )
    columns = (*table.heads, *table.columns)
    notes = (tag("p", escape(note), class_="note") for note in table.notes)
    return joined(table_html(table.title, columns, above, len(table.heads), below), *notes)


def _head_cell(text: str) -> Cell:
    """Numbers and percentages sort by size: 5% before 30%."""
    try:
        return Cell(text, float(text.removesuffix("%")))
    except ValueError:
        return Cell(text)


def _entry_cell(entry: Entry) -> Cell:
    # Messages may break; scores and gaps stay on their line.
    message = entry.value is None and len(entry.text) > LONG
    looks = ("text" if message else "", "best", "second")[entry.place]
    return Cell(entry.text, entry.value, looks, MARKS.get(entry.verdict, ""), entry.verdict)


FORMATS: dict[str, Callable[[Table], str]] = {
    "markdown": to_markdown,
    "latex": to_latex,
    "csv": to_csv,
}
