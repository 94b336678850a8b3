"""One self-contained HTML file per experiment: tables to sort, charts to click, what went wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from viewmend.bench.catalogue import FIGURES, TABLES, Catalogue, Shown
from viewmend.bench.charts.page import chart_html
from viewmend.bench.environment import check_publishable
from viewmend.bench.paper_values import Look
from viewmend.bench.protocols import PROTOCOLS
from viewmend.bench.runs import Record, environments_of, leaves, rate_text
from viewmend.bench.summaries import METRICS, by_protocol, grouped, setting_text, with_status
from viewmend.bench.tables.table import HEADS, Entry, Line, Table, heads_of, to_html
from viewmend.report.html import facts_html, folded, joined, page_html, paragraph, write_page

RUN = ("protocol", *HEADS, "method", "setting", "run")


@dataclass(frozen=True)
class ReportContents:
    """What a report is to show."""

    title: str
    look: Look = field(default_factory=Look)
    # Rows of `TABLES` and `FIGURES`; empty for all that suit the records.
    tables: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    # Tables and figures of scores are shown for each, the first one open. Of two that mean the
    # same under a protocol the first is shown.
    metrics: tuple[str, ...] = tuple(METRICS)


def write_report(path: str | Path, records: Sequence[Record], contents: ReportContents) -> Path:
    """Write the report of an experiment into a file that needs nothing but a browser."""
    check_publishable(environments_of(records), path)
    return write_page(path, report_html(records, contents))


def report_html(records: Sequence[Record], contents: ReportContents) -> str:
    """The report of an experiment as one HTML page, the same for the same records.

    Records are those that stand in the tables, failed and left-out ones among them.
    """
    protocols = enumerate(by_protocol(records).items())
    sections = [
        ("Overview", _overview(records)),
        *(
            (f"Protocol: {name}", _protocol(name, runs, contents, f"p{i}"))
            for i, (name, runs) in protocols
        ),
        ("Failed and left-out runs", _not_done(records)),
        ("Versions and machine", _environments(records)),
    ]
    return page_html(contents.title, {f"s{i}": section for i, section in enumerate(sections)})


def _overview(records: Sequence[Record]) -> str:
    states = {"done": "done", "failed": "error", "left out": "left_out"}
    kinds = {
        "measure": {one.key.measure for one in records},
        "protocol": {one.key.protocol for one in records},
        "data set": {one.key.data for one in records},
        "missing rate": {rate_text(one.key.missing_rate) for one in records},
        "label rate": {rate_text(one.key.label_rate) for one in records},
        "method": {one.key.method for one in records},
    }
    runs = ", ".join(f"{len(with_status(records, s))} {name}" for name, s in states.items())
    named = [(name, ", ".join(sorted(filter(None, some)))) for name, some in kinds.items()]
    return facts_html([("runs", runs), *named])


def _protocol(name: str, records: Sequence[Record], contents: ReportContents, place: str) -> str:
    fields = grouped(contents.metrics, lambda metric: METRICS[metric].field_under(name))
    here = replace(contents, metrics=tuple(metrics[0] for metrics in fields.values()))
    tables = dict.fromkeys(["completeness", *(contents.tables or TABLES)])
    figures = contents.figures or FIGURES

    return joined(
        paragraph(PROTOCOLS[name].summary if name in PROTOCOLS else ""),
        *_shown(TABLES, tables, lambda table, _: to_html(table), records, here),
        *_shown(FIGURES, figures, lambda c, what: chart_html(c, f"{place}-{what}"), records, here),
    )


def _shown(
    catalogue: Catalogue[Shown],
    names: Iterable[str],
    write: Callable[[Shown, str], str],
    records: Sequence[Record],
    contents: ReportContents,
) -> list[str]:
    """Tables or figures, once or for every metric, the first one open; none that does not suit."""
    parts = []
    for name in names:
        kind = catalogue[name]
        title = kind.title or name.replace("_", " ")
        metrics = contents.metrics if kind.by_metric else contents.metrics[:1]
        for metric in metrics:
            look = replace(contents.look, metric=metric)
            if kind.suits(records, look):
                heading = f"{title}, {metric}" if kind.by_metric else title
                written = write(kind.make(records, look), f"{name}-{metric}")
                parts.append(folded(heading, written, metric == metrics[0]))
    return parts


def _not_done(records: Sequence[Record]) -> str:
    parts = []
    for status, title in (("error", "Failed runs"), ("left_out", "Left-out runs")):
        lines = []
        for record in with_status(records, status):
            key = record.key
            problem = (key.protocol, *heads_of(key.condition), key.method)
            heads = (*problem, setting_text(key.setting), str(key.repetition))
            lines.append(Line(heads, (Entry(record.message),)))
        table = Table(title, RUN, ("message",), tuple(lines))
        parts.append(to_html(table) if lines else paragraph(f"{title}: none."))
    return joined(*parts)


def _environments(records: Sequence[Record]) -> str:
    """Every environment that runs were made in, and how many."""
    made = [one for one in records if one.environment]
    groups = grouped(made, lambda one: json.dumps(one.environment, sort_keys=True))
    parts = []
    for text, runs in groups.items():
        facts = [(path, str(leaf)) for path, leaf in leaves(json.loads(text), " ")]
        parts.append(facts_html([("runs", str(len(runs))), *facts]))
    return joined(*parts) or paragraph("Not recorded.")
