"""One self-contained HTML file per experiment: tables to sort, charts to click, what went wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from viewmend.bench.figures import FIGURES, FigureKind, build_chart
from viewmend.bench.formats import MARKS
from viewmend.bench.protocols import PROTOCOLS
from viewmend.bench.runs import Record
from viewmend.bench.summaries import (
    METRICS,
    Look,
    by_protocol,
    cell_of,
    failures,
    grouped,
    rate_text,
    setting_text,
)
from viewmend.bench.svg import chart_html
from viewmend.bench.svg_parts import tag
from viewmend.bench.tables import TABLES, TableKind, build_table
from viewmend.bench.tabular import HEADS, Entry, Line, Table, heads_of

__all__ = ["Contents", "report_html", "table_html", "write_report"]

RUN = ("protocol", *HEADS, "method", "setting", "run")


@dataclass(frozen=True)
class Contents:
    """What a report is to show.

    Attributes
    ----------
    title : str
    look : Look
    tables, figures : tuple of str
        Rows of `TABLES` and `FIGURES`; empty for all that suit the records.
    metrics : tuple of str
        Tables and figures of scores are shown for each, the first one open. Of two that mean the
        same under a protocol the first is shown.
    """

    title: str
    look: Look = field(default_factory=Look)
    tables: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    metrics: tuple[str, ...] = tuple(METRICS)


def write_report(path: str | Path, records: Sequence[Record], contents: Contents) -> Path:
    """Write the report of an experiment; arguments as of `report_html`.

    Returns
    -------
    Path
        The file, which needs nothing but a browser.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report_html(records, contents), encoding="utf-8")
    return path


def report_html(records: Sequence[Record], contents: Contents) -> str:
    """The report of an experiment as one HTML page.

    Parameters
    ----------
    records : sequence of Record
        Runs that stand in the tables, failed and left-out ones among them.
    contents : Contents

    Returns
    -------
    str
        The same for the same records.
    """
    sections = [("Overview", _overview(records))]
    for protocol, own in by_protocol(records).items():
        sections.append((f"Protocol: {protocol}", _protocol(protocol, own, contents)))
    sections.append(("Failed and left-out runs", _not_done(records)))
    sections.append(("Versions and machine", _environments(records)))
    links = [
        tag("li", tag("a", escape(name), href=f"#s{i}")) for i, (name, _) in enumerate(sections)
    ]
    body = [
        tag("section", tag("h2", escape(name)) + content, id=f"s{i}")
        for i, (name, content) in enumerate(sections)
    ]
    return Template(_resource("report.html")).substitute(
        title=escape(contents.title),
        style=_resource("report.css"),
        script=_resource("report.js"),
        links="".join(links),
        content="\n".join(body),
    )


def table_html(table: Table) -> str:
    """A table whose headers sort it; summaries stay below."""
    kinds = [(name, "head") for name in table.heads] + [(name, "value") for name in table.columns]
    header = "".join(_header_html(name, kind) for name, kind in kinds)
    body = "".join(_line_html(line) for line in table.lines if not line.summary)
    below = "".join(_line_html(line) for line in table.lines if line.summary)
    notes = "".join(tag("p", escape(note), class_="note") for note in table.notes)
    parts = tag("caption", escape(table.title)) + tag("thead", tag("tr", header))
    parts += tag("tbody", body) + (tag("tfoot", below) if below else "")
    inside = tag("table", parts, class_="sortable")
    scroll = {"class_": "scroll", "tabindex": 0, "role": "region", "aria_label": table.title}
    return tag("div", inside, **scroll) + notes


def _header_html(name: str, kind: str) -> str:
    arrow = tag("span", "", class_="arrow", aria_hidden="true")
    button = tag("button", escape(name) + arrow, type="button")
    return tag("th", button, scope="col", aria_sort="none", class_=kind)


def _line_html(line: Line) -> str:
    heads = "".join(
        tag("th", escape(head), scope="row", **_sort_value(head)) for head in line.heads
    )
    return tag("tr", heads + "".join(map(_entry_html, line.entries)))


def _entry_html(entry: Entry) -> str:
    mark = MARKS.get(entry.verdict, "")
    shown = tag("span", f" {mark}", title=entry.verdict, class_="verdict") if mark else ""
    looks: dict[str, object] = {} if entry.value is None else {"data_value": f"{entry.value:.10g}"}
    if entry.place:
        looks["class_"] = ("best", "second")[entry.place - 1]
    return tag("td", escape(entry.text) + shown, **looks)


def _sort_value(text: str) -> dict[str, object]:
    """Numbers and percentages sort by size: 5% before 30%."""
    try:
        return {"data_value": f"{float(text.removesuffix('%')):.10g}"}
    except ValueError:
        return {}


def _overview(records: Sequence[Record]) -> str:
    counts = {
        "done": len(failures(records, "done")),
        "failed": len(failures(records, "error")),
        "left out": len(failures(records, "left_out")),
    }
    kinds = {
        "measure": {one.key.measure for one in records},
        "protocol": {one.key.protocol for one in records},
        "data set": {one.key.data for one in records},
        "missing rate": {rate_text(one.key.missing_rate) for one in records},
        "label rate": {rate_text(one.key.label_rate) for one in records},
        "method": {one.key.method for one in records},
    }
    runs = ", ".join(f"{count} {name}" for name, count in counts.items())
    facts = [
        ("runs", runs),
        *((name, ", ".join(sorted(filter(None, found)))) for name, found in kinds.items()),
    ]
    return _facts(facts)


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    return tag("dl", "".join(tag("dt", escape(a)) + tag("dd", escape(b)) for a, b in facts))


def _protocol(name: str, records: Sequence[Record], contents: Contents) -> str:
    described = PROTOCOLS[name].summary if name in PROTOCOLS else ""
    parts = [tag("p", escape(described))]
    here = replace(contents, metrics=_metrics_under(name, contents.metrics))
    for table in dict.fromkeys(["completeness", *(contents.tables or TABLES)]):
        parts += _shown(table, TABLES[table], _table, records, here)
    for figure in contents.figures or FIGURES:
        parts += _shown(figure, FIGURES[figure], _figure, records, here)
    return "\n".join(parts)


def _metrics_under(protocol: str, metrics: Sequence[str]) -> tuple[str, ...]:
    fields = grouped(metrics, lambda name: METRICS[name].field_under(protocol))
    return tuple(names[0] for names in fields.values())


def _figure(name: str, records: Sequence[Record], look: Look) -> str:
    return chart_html(build_chart(name, records, look))


def _table(name: str, records: Sequence[Record], look: Look) -> str:
    return table_html(build_table(name, records, look))


def _shown(
    name: str,
    kind: TableKind | FigureKind,
    show: Callable[[str, Sequence[Record], Look], str],
    records: Sequence[Record],
    contents: Contents,
) -> list[str]:
    """A table or figure, once or for every metric, the first one open; none that does not suit."""
    title = kind.title or name.replace("_", " ")
    names = contents.metrics if kind.by_metric else contents.metrics[:1]
    looks = [replace(contents.look, metric=metric) for metric in names]
    return [
        _folded(
            f"{title}, {look.metric}" if kind.by_metric else title,
            show(name, records, look),
            is_open=look is looks[0],
        )
        for look in looks
        if kind.suits(records, look)
    ]


def _folded(title: str, content: str, is_open: bool) -> str:
    state = {"open": "open"} if is_open else {}
    return tag("details", tag("summary", escape(title)) + content, **state)


def _not_done(records: Sequence[Record]) -> str:
    parts = []
    for status, title in (("error", "Failed runs"), ("left_out", "Left-out runs")):
        found = failures(records, status)
        lines = tuple(Line(_run_heads(one), (Entry(one.message),)) for one in found)
        table = Table(title, RUN, ("message",), lines)
        parts.append(table_html(table) if found else tag("p", f"{title}: none."))
    return "".join(parts)


def _run_heads(record: Record) -> tuple[str, ...]:
    key = record.key
    problem = (key.protocol, *heads_of(cell_of(key)), key.method)
    return (*problem, setting_text(key.setting), str(key.repetition))


def _environments(records: Sequence[Record]) -> str:
    """Every environment that runs were made in, and how many."""
    made = [one for one in records if one.environment]
    groups = grouped(made, lambda one: json.dumps(one.environment, sort_keys=True))
    parts = []
    for text, runs in groups.items():
        facts = [("runs", str(len(runs))), *_flat(json.loads(text))]
        parts.append(_facts(facts))
    return "".join(parts) or tag("p", "Not recorded.")


def _flat(tree: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Leaves of nested dicts with the names on the way to them."""
    found = []
    for name, value in tree.items():
        path = f"{prefix} {name}".strip()
        found += _flat(value, path) if isinstance(value, dict) else [(path, str(value))]
    return found


def _resource(name: str) -> str:
    return (files("viewmend.bench") / "templates" / name).read_text(encoding="utf-8")
