"""One self-contained HTML file per experiment: tables to sort, charts to click, what went wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean

from viewmend.bench.catalogue import FIGURES, TABLES, Catalogue, Shown
from viewmend.bench.charts.page import chart_html
from viewmend.bench.environment import check_publishable
from viewmend.bench.paper_values import Look
from viewmend.bench.protocols import PROTOCOLS
from viewmend.bench.runs import Record, environments_of, leaves, rate_text
from viewmend.bench.stats import summarise
from viewmend.bench.summaries import (
    METRICS,
    by_protocol,
    grouped,
    method_names,
    metric_named,
    only_protocol,
    scores,
    setting_text,
    settings_vary,
    with_status,
)
from viewmend.bench.tables.paired import CELLS, OVERALL, P_VALUE, RUNS
from viewmend.bench.tables.table import HEADS, Entry, Line, Table, heads_of, to_html
from viewmend.report.html import facts_html, folded, joined, page_html, paragraph, write_page
from viewmend.text import counted

RUN = ("protocol", *HEADS, "method", "setting", "run")
# What columns are called on the page.
WORDS_FOR = {
    "data": "data set",
    "VMR": "missing rate",
    "LAR": "label rate",
    OVERALL: "behind by (points)",
}
# A mean of percentages with its deviation, and alone.
SCORE = re.compile(r"\d+\.\d\d ± \d+\.\d\d")
MEAN = re.compile(r"\d+\.\d\d")
# What the page is opened for, in this order: tables and figures of the first metric.
LEADS = (("table", "rivals"), ("figure", "scores"), ("table", "scores"))

WORDS = (
    ("protocol", "rules by which views and labels are hidden and settings chosen; see its section"),
    ("missing rate, VMR", "share of all pairs of a sample and a view that were hidden"),
    ("label rate, LAR", "share of the samples whose label was given"),
    ("condition, cell", "one data set at one missing rate and one label rate"),
    ("repetition", "one random choice of what is hidden, the same for all methods"),
    ("run", "one fit of one method in one repetition of one condition"),
    ("accuracy, ACC", "share of the unlabelled samples whose class was found"),
    (
        "precision, recall, F1",
        "PREC, REC, F1: means over the classes, so that rare ones count as much",
    ),
    ("±", "spread over the repetitions; the notes below a table say which"),
    ("p", "how often chance alone would give such a lead or a larger one; below 0.05 is small"),
)

EXPLAINED = {
    ("table", "rivals"): "One line per method: its mean over all conditions, how many points it is "
    "behind the method of interest, and how long a fit takes.",
    ("table", "scores"): "One line per condition, one column per method.",
    ("figure", "scores"): "The same scores as a picture. The keys switch its lines off and on.",
    ("table", "intervals"): "The scores with intervals that hold the mean of many more repetitions "
    "in 95 of 100 cases.",
    ("table", "paired"): "Differences on the very same problems, condition by condition.",
    ("table", "ranks"): "In every data set the best method has rank 1, the next one rank 2; here "
    "are means over the data sets.",
    ("table", "times"): "How long one run takes.",
    ("table", "completeness"): "What was really hidden and labelled: chance does not meet the "
    "rates exactly.",
    ("table", "settings"): "The settings that methods were run with, where they differ from the "
    "defaults.",
    ("table", "paper"): "Our means beside those that the paper prints.",
}


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
        ("Summary", _summary(records, contents)),
        *(
            (f"Protocol: {name}", _protocol(name, runs, contents, f"p{i}"))
            for i, (name, runs) in protocols
        ),
        ("Failed and left-out runs", _not_done(records)),
        ("Versions and machine", folded("Where the runs were made", _environments(records), False)),
    ]
    return page_html(contents.title, {f"s{i}": section for i, section in enumerate(sections)})


def _summary(records: Sequence[Record], contents: ReportContents) -> str:
    """The result in a sentence per protocol, what was run, and what the words mean."""
    sentences = [best_methods(runs, contents.metrics[0]) for runs in by_protocol(records).values()]
    return joined(
        *map(paragraph, filter(None, sentences)),
        _overview(records),
        folded("Words used on this page", facts_html(WORDS), True),
    )


def best_methods(records: Sequence[Record], metric: str) -> str:
    """Which method is best on average, and which is next, of those that have all conditions.

    Empty where settings differ, or where no method has all of them.
    """
    if settings_vary(records):
        return ""
    by_condition = scores(records, metric)
    means = {
        name: mean(summarise(by_method[name]).mean for by_method in by_condition.values())
        for name in method_names(by_condition)
        if all(name in by_method for by_method in by_condition.values())
    }
    if not means:
        return ""
    first, *others = sorted(means, key=lambda name: -means[name])
    n_data = len({condition.data for condition in by_condition})
    where = f"{counted(len(by_condition), 'condition')} on {counted(n_data, 'data set')}"
    rest = f"; {others[0]} follows with {means[others[0]]:.1f}%" if others else ""
    return (
        f"Under the protocol {only_protocol(records)!r}, {first} has the highest mean "
        f"{metric_named(metric).words}, {means[first]:.1f}%, over {where}{rest}."
    )


def _overview(records: Sequence[Record]) -> str:
    states = {"done": "done", "failed": "error", "left out": "left_out"}
    kinds = {
        "methods": {one.key.method for one in records},
        "data sets": {one.key.data for one in records},
        "missing rates": {rate_text(one.key.missing_rate) for one in records},
        "label rates": {rate_text(one.key.label_rate) for one in records},
        "protocols": {one.key.protocol for one in records},
        # Of most experiments it is the fit alone, which needs no word.
        "measures": {one.key.measure for one in records} - {"fit"},
    }
    runs = ", ".join(f"{len(with_status(records, s))} {name}" for name, s in states.items())
    named = [(name, ", ".join(sorted(filter(None, some)))) for name, some in kinds.items()]
    return facts_html([("runs", runs), *((name, text) for name, text in named if text)])


def _protocol(name: str, records: Sequence[Record], contents: ReportContents, place: str) -> str:
    fields = grouped(contents.metrics, lambda metric: METRICS[metric].field_under(name))
    here = replace(contents, metrics=tuple(metrics[0] for metrics in fields.values()))
    tables = dict.fromkeys([*(contents.tables or TABLES), "completeness"])
    figures = contents.figures or FIGURES
    parts = [
        *_shown(TABLES, tables, lambda table, _: to_html(for_page(table)), records, here),
        *_shown(FIGURES, figures, lambda c, what: chart_html(c, f"{place}-{what}"), records, here),
    ]
    # What was asked for by name is open; else only what answers the question of the page.
    asked = bool(contents.tables or contents.figures)
    order = {lead: i for i, lead in enumerate(LEADS)}
    main = sorted((part for part in parts if part.first), key=lambda one: order.get(one.lead, 99))
    other = [folded(part.heading, part.written, False) for part in parts if not part.first]
    words = [METRICS[metric].words for metric in here.metrics[1:]]
    return joined(
        paragraph(PROTOCOLS[name].summary if name in PROTOCOLS else ""),
        *(folded(one.heading, one.written, asked or one.lead in order) for one in main),
        folded(f"The same for {', '.join(words)}", joined(*other), False) if other else "",
    )


@dataclass(frozen=True)
class Part:
    """A table or figure of a page; ``first`` where it is of the first metric."""

    word: str
    name: str
    heading: str
    written: str
    first: bool

    @property
    def lead(self) -> tuple[str, str]:
        """What `LEADS` calls it."""
        return self.word, self.name


def _shown(
    catalogue: Catalogue[Shown],
    names: Iterable[str],
    write: Callable[[Shown, str], str],
    records: Sequence[Record],
    contents: ReportContents,
) -> list[Part]:
    """Tables or figures, once or for every metric; none that does not suit."""
    parts = []
    for name in names:
        kind = catalogue[name]
        title = f"{catalogue.word}: {kind.title or name.replace('_', ' ')}"
        metrics = contents.metrics if kind.by_metric else contents.metrics[:1]
        for metric in metrics:
            look = replace(contents.look, metric=metric)
            if kind.suits(records, look):
                heading = f"{title}, {METRICS[metric].words}" if kind.by_metric else title
                written = write(kind.make(records, look), f"{name}-{metric}")
                about = paragraph(EXPLAINED.get((catalogue.word, name), ""))
                first = metric == metrics[0]
                heading = f"{heading[:1].upper()}{heading[1:]}"
                parts.append(Part(catalogue.word, name, heading, about + written, first))
    return parts


def for_page(table: Table) -> Table:
    """A table with words in place of the paper's letters, and percentages of one decimal."""
    interest = sorted(range(len(table.columns)), key=lambda i: _interest(table.columns[i]))
    lines = [
        replace(line, entries=tuple(_rounded(line.entries[i], line.summary) for i in interest))
        for line in table.lines
    ]
    return replace(
        table,
        heads=tuple(WORDS_FOR.get(head, head) for head in table.heads),
        columns=tuple(WORDS_FOR.get(table.columns[i], table.columns[i]) for i in interest),
        lines=tuple(lines),
    )


def _interest(column: str) -> int:
    """Counts and p-values stand behind what they are about."""
    return int(column in (P_VALUE, CELLS, RUNS))


def _rounded(entry: Entry, is_mean: bool) -> Entry:
    """Scores such as 86.61 ± 0.46, and means of them, with one decimal; all others stay."""
    if not (SCORE.fullmatch(entry.text) or (is_mean and MEAN.fullmatch(entry.text))):
        return entry
    numbers = (f"{float(number):.1f}" for number in entry.text.split(" ± "))
    return replace(entry, text=" ± ".join(numbers))


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
