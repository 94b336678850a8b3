"""Tables of what else a run tells: seconds, completeness, settings, inner errors, memory.

Each function takes records of one protocol and how to look at them, and gives a table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean, median

from viewmend.bench.paper_values import Look
from viewmend.bench.runs import Record
from viewmend.bench.summaries import done, grouped, only_protocol, setting_text
from viewmend.bench.tables.table import GAP, HEADS, Entry, Line, Table, condition_table, heads_of

GIB = 2**30


def times_table(records: Sequence[Record], _look: Look) -> Table:
    """Median seconds of a run, completion included, by method and data set."""
    protocol = only_protocol(records)
    finished = done(records)
    data = list(grouped(finished, lambda one: one.key.data))
    lines = []
    for method, runs in grouped(finished, lambda one: one.key.method).items():
        by_data = grouped(runs, lambda one: one.key.data)
        entries = (_time_entry(by_data.get(name, [])) for name in data)
        lines.append(Line((method,), tuple(entries)))
    return Table(
        f"Seconds per run under the protocol {protocol!r}",
        ("method",),
        tuple(data),
        tuple(lines),
        (
            "Median over rates and runs of fit and completion together, as the paper counts; "
            "in brackets the completion alone, where the method needs one. A completion that was "
            "shared by several methods counts for each.",
        ),
    )


def _time_entry(runs: Sequence[Record]) -> Entry:
    if not runs:
        return GAP
    total = median(total_seconds(one) for one in runs)
    completion = median(one.timings.get("imputation", 0.0) for one in runs)
    return Entry(f"{total:.2f}" + (f" ({completion:.2f})" if completion else ""), total)


def total_seconds(record: Record) -> float:
    """Seconds of fit and completion together."""
    return record.timings.get("fit", 0.0) + record.timings.get("imputation", 0.0)


def completeness_table(records: Sequence[Record], _look: Look) -> Table:
    """How complete the problems really were, against the nominal rates."""
    lines = []
    posed = [one for one in records if "observed_pairs" in one.result]
    for condition, runs in grouped(posed, lambda one: one.key.condition).items():
        # All methods of a repetition share their problem.
        problems = list({one.key.repetition: one for one in runs}.values())
        sizes = [
            mean(problem.value(name) for problem in problems)
            for name in ("n_samples", "n_labelled")
        ]
        shares = [
            mean(100 * problem.value(name) for problem in problems)
            for name in ("observed_pairs", "complete_samples")
        ]
        entries = [Entry(f"{size:g}", size) for size in sizes]
        entries += [Entry(f"{share:.1f}%", share) for share in shares]
        lines.append(Line(heads_of(condition), tuple(entries)))
    return Table(
        f"Realised completeness under the protocol {only_protocol(records)!r}",
        HEADS,
        ("samples", "labelled", "observed pairs", "complete samples"),
        tuple(lines),
        ("Means over the repetitions. A pair is a sample in a view.",),
    )


def settings_table(records: Sequence[Record], _look: Look) -> Table:
    """The setting behind every score, where it is not the method's default."""
    methods = list(grouped(done(records), lambda one: one.key.method))
    entries = {
        condition: {one.key.method: Entry(setting_text(one.key.setting)) for one in runs}
        for condition, runs in grouped(done(records), lambda one: one.key.condition).items()
    }
    title = f"Settings under the protocol {only_protocol(records)!r}"
    return condition_table(title, methods, entries, {})


def inner_errors_table(records: Sequence[Record], _look: Look, n_steps: int = 6) -> Table:
    """Squared changes of weights and fused graph in the steps of the first round's Algorithm 1.

    As many steps as the paper has; "–" after the algorithm has converged.
    """
    lines = []
    for record in done(records, "trace"):
        steps = (record.value("history") or [{}])[0].get("inner") or []
        if not steps:
            continue
        for name, field in (("alpha error", "alpha_error"), ("P error", "P_error")):
            errors = [step.get(field, math.nan) for step in steps[:n_steps]]
            entries = [Entry(f"{error:.2e}", error) for error in errors]
            gaps = [GAP] * (n_steps - len(entries))
            heads = (record.key.method, record.key.data, str(record.key.repetition), name)
            lines.append(Line(heads, (*entries, *gaps)))
    return Table(
        "Error of the steps of Algorithm 1 in the first round",
        ("method", "data", "run", "error"),
        tuple(str(step + 1) for step in range(n_steps)),
        tuple(lines),
        ("A dash means converged.",),
    )


def footprint_table(records: Sequence[Record], _look: Look) -> Table:
    """Seconds and peak memory of the tensor step by number of samples, views and anchors."""
    runs = grouped(done(records, "tnn_step"), tensor_sizes)
    anchors = sorted({sizes[2] for sizes in runs})
    lines = []
    for n, n_views in sorted({sizes[:2] for sizes in runs}):
        for unit, field, scale in (("s", "seconds", 1), ("GiB", "peak_bytes", GIB)):
            entries = (_median_entry(runs.get((n, n_views, m)), field, scale) for m in anchors)
            lines.append(Line((str(n), str(n_views), unit), tuple(entries)))
    return Table(
        "Time and peak memory of the tensor step",
        ("samples", "views", "unit"),
        tuple(f"{m} anchors" for m in anchors),
        tuple(lines),
        ("Medians over the repetitions.",),
    )


def tensor_sizes(record: Record) -> tuple[int, int, int]:
    """Numbers of samples, views and anchors of a tensor step."""
    setting = dict(record.key.setting)
    return int(setting["n"]), int(setting["V"]), int(setting["m"])


def _median_entry(runs: Sequence[Record] | None, field: str, scale: float) -> Entry:
    if not runs:
        return GAP
    value = median(one.value(field) for one in runs) / scale
    return Entry(f"{value:.3g}", value)
