"""Charts of what happens inside a run: weights, convergence, inner errors, seconds, memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from viewmend.bench.charts.chart import Chart, Panel, Series
from viewmend.bench.look import Look
from viewmend.bench.runs import Record
from viewmend.bench.summaries import done, grouped
from viewmend.bench.tables.runs import GIB, measured, total_seconds

__all__ = [
    "convergence_chart",
    "footprint_chart",
    "inner_errors_chart",
    "running_time_chart",
    "view_weights_chart",
]

# Of many repetitions the lines of one are shown: their rounds do not correspond.
ONE_RUN = "Of the first repetition."

CHANGES = {
    "soft labels F": "change_F",
    "anchor labels Q": "change_Q",
    "view weights": "change_alpha",
    "residual |Z - G|": "primal_residual",
}
INNER = {"view weights": "alpha_error", "fused graph P": "P_error"}


def view_weights_chart(records: Sequence[Record], _look: Look) -> Chart:
    """Weight of each view after each round, one panel per method and data set.

    Parameters
    ----------
    records : sequence of Record
        Traces.

    Returns
    -------
    Chart
    """
    panels = []
    for record in _first_runs(records):
        rounds = [one for one in record.result["history"] if one.get("alpha") is not None]
        steps = tuple(float(one["iteration"]) for one in rounds)
        weights = zip(*(one["alpha"] for one in rounds), strict=True)
        series = (Series(f"view {v + 1}", steps, own) for v, own in enumerate(weights))
        panels.append(Panel(_trace_title(record), "round", "weight of the view", tuple(series)))
    # Methods side by side, data sets below each other.
    n_methods = len({one.key.method for one in done(records, "trace")})
    return Chart("Evolution of the view weights", tuple(panels), ONE_RUN, min(3, n_methods))


def convergence_chart(records: Sequence[Record], _look: Look) -> Chart:
    """Largest change per round, and the accuracy on the way where the trace has it.

    Parameters
    ----------
    records : sequence of Record
        Traces.

    Returns
    -------
    Chart
    """
    panels = []
    for record in _first_runs(records):
        history = record.result["history"]
        changes = _lines(history, CHANGES, "iteration")
        title = _trace_title(record)
        if changes:
            panels.append(Panel(title, "round", "largest change", changes, log_y=True))
        accuracy = _lines(history, {"accuracy": "accuracy"}, "iteration")
        if accuracy:
            panels.append(Panel(title, "round", "accuracy", accuracy))
    return Chart("Convergence", tuple(panels), ONE_RUN)


def inner_errors_chart(records: Sequence[Record], _look: Look) -> Chart:
    """Squared changes in the steps of Algorithm 1, in the first round.

    Parameters
    ----------
    records : sequence of Record
        Traces.

    Returns
    -------
    Chart
    """
    panels = []
    for record in _first_runs(records):
        inner = record.result["history"][0].get("inner") or []
        steps = [{**one, "step": i + 1} for i, one in enumerate(inner)]
        lines = _lines(steps, INNER, "step")
        if lines:
            title = _trace_title(record)
            panels.append(Panel(title, "step of Algorithm 1", "squared change", lines, log_y=True))
    return Chart("Errors of the inner optimisation", tuple(panels), f"First round. {ONE_RUN}")


def running_time_chart(records: Sequence[Record], look: Look) -> Chart:
    """Median seconds by method on a log axis, with and without completion, per data set.

    Parameters
    ----------
    records : sequence of Record
    look : Look

    Returns
    -------
    Chart
        Fastest method on top.
    """
    finished = done(records)
    methods = _fastest_first(finished)
    panels = []
    for data, runs in grouped(finished, lambda one: one.key.data).items():
        own = grouped(runs, lambda one: one.key.method)
        here = [name for name in methods if name in own]
        series = [
            _seconds("fit", here, own, methods, lambda one: one.timings.get("fit", 0.0)),
            _seconds("fit + completion", _completed(here, own), own, methods, total_seconds),
            _printed_seconds(data, methods, look),
        ]
        kept = tuple(one for one in series if one.x)
        ticks = tuple(methods)
        panels.append(Panel(data, "seconds", "", kept, "rows", y_ticks=ticks, log_x=True))
    caption = "Medians over rates and runs."
    ghosts = " Hollow: the paper's, with completion, on the authors' machine."
    return Chart("Running time", tuple(panels), caption + (ghosts if look.paper else ""))


def footprint_chart(records: Sequence[Record], look: Look) -> Chart:
    """Seconds and peak memory of the tensor step against the number of anchors.

    Parameters
    ----------
    records : sequence of Record
        Of the measure "tnn_step", with ``n``, ``V`` and ``m`` in their settings.
    look : Look

    Returns
    -------
    Chart
        One panel per quantity and number of samples, one line per number of views.
    """
    measured = grouped(done(records, "tnn_step"), lambda one: _sizes(dict(one.key.setting)))
    printed = look.paper.footprints if look.paper else {}
    anchors = sorted({sizes[2] for sizes in measured})
    ticks = tuple(map(str, anchors))
    panels = []
    for n in sorted({sizes[0] for sizes in measured}):
        for label, ours, theirs in _QUANTITIES:
            own = {sizes: median(map(ours, found)) for sizes, found in measured.items()}
            paper = {sizes: theirs(found) for sizes, found in printed.items()}
            views = sorted({sizes[1] for sizes in measured if sizes[0] == n})
            series = [_by_anchors(own, n, v, anchors) for v in views]
            ghosts = [replace(_by_anchors(paper, n, v, anchors), ghost=True) for v in views]
            kept = tuple(one for one in (*series, *ghosts) if one.x)
            title = f"{n} samples"
            panels.append(Panel(title, "anchors", label, kept, x_ticks=ticks, log_y=True))
    caption = "Medians over the runs." + (" Hollow: the paper's." if printed else "")
    return Chart("Footprint of the tensor step", tuple(panels), caption, columns=2)


_QUANTITIES: tuple[tuple[str, Callable[[Record], float], Callable[[Any], float]], ...] = (
    ("seconds", lambda one: measured(one, "seconds"), lambda found: found.seconds),
    ("peak GiB", lambda one: measured(one, "peak_bytes") / GIB, lambda found: found.gibibytes),
)


def _first_runs(records: Sequence[Record]) -> list[Record]:
    """The first repetition of every traced condition, method and setting."""
    traces = [one for one in done(records, "trace") if one.result.get("history")]
    kinds = grouped(traces, _kind)
    return [min(own, key=lambda one: one.key.repetition) for own in kinds.values()]


def _kind(record: Record) -> tuple:
    key = record.key
    rates = key.missing_rate, key.label_rate
    return key.protocol, key.data, *rates, key.method, key.setting


def _trace_title(record: Record) -> str:
    return f"{record.key.data}: {record.key.method}"


def _lines(
    history: Sequence[Mapping[str, Any]], fields: Mapping[str, str], step: str
) -> tuple[Series, ...]:
    """A series for every field that the history has."""
    found = []
    for name, field in fields.items():
        own = [one for one in history if one.get(field) is not None]
        x, y = (tuple(float(one[column]) for one in own) for column in (step, field))
        found.append(Series(name, x, y))
    return tuple(one for one in found if one.x)


def _fastest_first(records: Sequence[Record]) -> list[str]:
    runs = grouped(records, lambda one: one.key.method)
    return sorted(runs, key=lambda name: median(map(total_seconds, runs[name])))


def _completed(names: Sequence[str], runs: Mapping[str, Sequence[Record]]) -> list[str]:
    """Methods that need completed views."""
    return [name for name in names if any(one.timings.get("imputation") for one in runs[name])]


def _seconds(
    label: str,
    names: Sequence[str],
    runs: Mapping[str, Sequence[Record]],
    rows: Sequence[str],
    seconds: Callable[[Record], float],
) -> Series:
    x = tuple(median(map(seconds, runs[name])) for name in names)
    return Series(label, x, tuple(float(rows.index(name)) for name in names))


def _printed_seconds(data: str, methods: Sequence[str], look: Look) -> Series:
    printed = look.paper.seconds if look.paper else {}
    kept = {float(i): printed.get((data, name)) for i, name in enumerate(methods)}
    points = {row: value for row, value in kept.items() if value is not None}
    return Series("fit + completion", tuple(points.values()), tuple(points), ghost=True)


def _sizes(setting: Mapping[str, Any]) -> tuple[int, int, int]:
    return int(setting["n"]), int(setting["V"]), int(setting["m"])


def _by_anchors(
    values: Mapping[tuple[int, int, int], float], n: int, n_views: int, anchors: Sequence[int]
) -> Series:
    """Values at the places of their numbers of anchors."""
    own = {i: values.get((n, n_views, m)) for i, m in enumerate(anchors)}
    points = {float(i): value for i, value in own.items() if value is not None}
    return Series(f"{n_views} views", tuple(points), tuple(points.values()))
