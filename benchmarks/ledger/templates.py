"""Pages of results whose figures come from records: templates with fields.

A template of ``pages/`` is Markdown with fields ``{{name|argument|argument}}``; `FIELDS` says what
each becomes. Its first line names the exports without which the page is left as it is, and where
the page goes if not beside the ledger.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from viewmend.bench.catalogue import FIGURES, TABLES
from viewmend.bench.charts.drawing import draw_chart
from viewmend.bench.paper_values import Look, PaperTables
from viewmend.bench.runs import Record
from viewmend.bench.tables.table import write_table
from viewmend.exceptions import InvalidParameterError

from .beside import Beside
from .exports import revision_text, selected
from .judging import Judgement, Sources, cell_means, runs_text, slashed

PAGES = Path(__file__).with_name("pages")
FIELD = re.compile(r"\{\{([^{}]+)\}\}")
HEADER = re.compile(r"^<!-- needs: (?P<exports>[\w ]*)(?:; file: (?P<file>[\w./]+))? -->\n")
ORIGIN = (
    "\n<!-- Made by python -m benchmarks.ledger from benchmarks/ledger/pages/{name}; "
    "change that file. -->\n"
)
ABSENT = "not run"


@dataclass(frozen=True)
class Filling:
    """What fields are filled from."""

    sources: Sources
    judgements: Mapping[str, Judgement]

    def records(self, export: str, protocol: str) -> list[Record]:
        """The records of an export under a protocol."""
        where = {"protocol": protocol} if protocol else {}
        return selected(self.sources.exports.get(export, ()), where)


@dataclass(frozen=True)
class Template:
    """A page before it is filled."""

    name: str
    needs: tuple[str, ...]
    # Where it goes, from the folder of the ledger.
    file: str
    text: str


def read_templates() -> list[Template]:
    """All templates, in the order of their names."""
    templates = []
    for path in sorted(PAGES.glob("*.md")):
        text = path.read_text()
        header = HEADER.match(text)
        if header is None:
            msg = f"{path.name} must begin with a line <!-- needs: EXPORTS -->, which may name none"
            raise InvalidParameterError(msg)
        needs, file = tuple(header["exports"].split()), header["file"] or path.name
        templates.append(Template(path.name, needs, file, text[header.end() :]))
    return templates


def filled_pages(filling: Filling) -> dict[str, str]:
    """The pages of which all exports are there, by their files; of two for a file, the last."""
    exports = filling.sources.exports
    return {
        one.file: fill(one.text, filling) + ORIGIN.format(name=one.name)
        for one in read_templates()
        if all(name in exports for name in one.needs)
    }


def fill(text: str, filling: Filling) -> str:
    """A template with its fields filled."""

    def filled(match: re.Match[str]) -> str:
        name, *arguments = match[1].split("|")
        if name not in FIELDS:
            msg = f"a page asks for the field {name!r}; expected one of {', '.join(FIELDS)}"
            raise InvalidParameterError(msg)
        return FIELDS[name](filling, *arguments)

    return FIELD.sub(filled, text)


def drawn_charts(sources: Sources, paper: PaperTables | None = None) -> Iterator[tuple[str, Any]]:
    """Pictures that the pages show, by the names of their files, where there are records."""
    fields = [match[1].split("|") for one in read_templates() for match in FIELD.finditer(one.text)]
    # Two pages may show one picture.
    asked = {arguments[0]: arguments for name, *arguments in fields if name == "chart"}
    for file, export, protocol, kind, metric, _ in asked.values():
        records = selected(sources.exports.get(export, ()), {"protocol": protocol})
        look = Look(metric, paper=paper)
        if kind in FIGURES.suitable(records, look):
            yield file, draw_chart(FIGURES.build(kind, records, look))


def _table(
    filling: Filling, export: str, protocol: str, kind: str, metric: str = "ACC", subject: str = ""
) -> str:
    records = filling.records(export, protocol)
    look = Look(metric, subject or Look.subject)
    if kind not in TABLES.suitable(records, look):
        return f"*{ABSENT}: {export}, protocol {protocol}*"
    return write_table(TABLES.build(kind, records, look), "markdown").rstrip()


def _means(filling: Filling, export: str, protocol: str, data: str, method: str) -> str:
    """Means of a method on a data set, by missing rate and label rate."""
    found = _of_method(filling, export, protocol, method)
    values = [value for cell, value in found.items() if cell[1] == data]
    return slashed(values) if values else ABSENT


def _overall(filling: Filling, export: str, protocol: str, method: str, beside: str = "") -> str:
    """Mean of a method over all cells; over those that it has under another protocol too."""
    found = _of_method(filling, export, protocol, method)
    if beside:
        shared = {cell[1:] for cell in _of_method(filling, export, beside, method)}
        found = {cell: value for cell, value in found.items() if cell[1:] in shared}
    return f"{mean(found.values()):.1f}" if found else ABSENT


def _place(filling: Filling, export: str, protocol: str, method: str, *rivals: str) -> str:
    """How many of some methods have a higher mean over all cells."""
    ours = _of_method(filling, export, protocol, method)
    theirs = [_of_method(filling, export, protocol, name) for name in rivals]
    known = [mean(one.values()) for one in theirs if one]
    if not ours or not known:
        return ABSENT
    return f"{sum(one > mean(ours.values()) for one in known)} of {len(known)}"


def _first(filling: Filling, export: str, protocol: str, method: str) -> str:
    """In how many cells a method has the highest mean."""
    cells = cell_means(filling.records(export, protocol))
    firsts = [means[method] == max(means.values()) for means in cells.values() if method in means]
    return f"{sum(firsts)} of {len(firsts)}" if firsts else ABSENT


def _lost(filling: Filling, export: str, method: str, before: str, after: str, *data: str) -> str:
    """Points that a method loses from one protocol to another, from the least to the most."""
    start, end = (
        {cell[1:]: value for cell, value in _of_method(filling, export, one, method).items()}
        for one in (before, after)
    )
    losses = [
        start[cell] - end[cell] for cell in start if cell in end and (not data or cell[0] in data)
    ]
    return f"{min(losses):.1f} to {max(losses):.1f}" if losses else ABSENT


def _of_method(
    filling: Filling, export: str, protocol: str, method: str
) -> dict[tuple[str, str, float, float], float]:
    cells = cell_means(filling.records(export, protocol))
    return {cell: means[method] for cell, means in cells.items() if method in means}


def _chart(filling: Filling, *arguments: str) -> str:
    file, export, protocol, _, _, words = arguments
    return f"![{words}]({file})" if filling.records(export, protocol) else ""


def _ours(filling: Filling, claim: str) -> str:
    return filling.judgements[claim].ours


def _verdict(filling: Filling, claim: str) -> str:
    return f"**{filling.judgements[claim].verdict}**"


def _figure(filling: Filling, quantity: str) -> str:
    return filling.sources.theory.get(quantity, ABSENT)


def _runs(filling: Filling, export: str, protocol: str = "") -> str:
    records = filling.records(export, protocol)
    return runs_text(records) if records else ABSENT


def _count(filling: Filling, export: str) -> str:
    return str(len(filling.sources.exports.get(export, ())))


def _revision(filling: Filling, export: str) -> str:
    return revision_text(filling.sources.exports.get(export, ())) or ABSENT


def _bar(filling: Filling, name: str) -> str:
    return f"{getattr(filling.sources.bars, name):g}"


def _near(filling: Filling, export: str, *methods: str) -> str:
    """How many means lie near the printed ones, in words."""
    bars, rows = filling.sources.bars, _printed_rows(filling, export, methods)
    near = sum(bars.is_near(one.difference, one.standard_errors) for one in rows)
    wide = sum(abs(one.difference) <= bars.wide_points for one in rows)
    told = f"{near} of {len(rows)} means are reproduced"
    return f"{told}, {wide} lie within {bars.wide_points:g} points," if rows else ABSENT


def _outside(filling: Filling, export: str, *methods: str) -> str:
    """Cells that lie beyond the wide bar, the farthest first: "AMMSS on CUB at 50 % (+21.4)"."""
    wide = filling.sources.bars.wide_points
    rows = _printed_rows(filling, export, methods)
    told = [
        f"{one.method} on {one.data} at {100 * one.missing_rate:.0f} % ({one.difference:+.1f})"
        for one in sorted(rows, key=lambda one: -abs(one.difference))
        if abs(one.difference) > wide
    ]
    return ", ".join(told) or "none"


def _printed_rows(filling: Filling, export: str, methods: Sequence[str]) -> list[Beside]:
    return [
        one
        for one in filling.sources.beside
        if (one.export, one.metric, one.protocol) == (export, "ACC", "paper")
        and one.method in methods
    ]


FIELDS: Mapping[str, Callable[..., str]] = {
    "table": _table,
    "means": _means,
    "overall": _overall,
    "place": _place,
    "first": _first,
    "lost": _lost,
    "chart": _chart,
    "ours": _ours,
    "verdict": _verdict,
    "figure": _figure,
    "runs": _runs,
    "count": _count,
    "revision": _revision,
    "bar": _bar,
    "near": _near,
    "outside": _outside,
}
