"""Charts of what happens inside a run: weights, convergence, inner errors, seconds, memory.

Each function takes records of one protocol and how to look at them, and gives a chart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from viewmend.bench.charts.chart import Chart, Panel, Series, series_of, with_points
from viewmend.bench.paper_values import Look, paper_method
from viewmend.bench.runs import Record
from viewmend.bench.summaries import done, grouped, percent
from viewmend.bench.tables.runs import GIB, tensor_sizes, total_seconds

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
    """Weight of each view after each round, one panel per traced method and data set."""
    panels = []
    for record in _first_runs(records):
        rounds = [one for one in record.result["history"] if one.get("alpha") is not None]
        steps = tuple(float(one["iteration"]) for one in rounds)
        weights = zip(*(one["alpha"] for one in rounds), strict=True)
        series = (Series(f"view {v + 1}", steps, values) for v, values in enumerate(weights))
        panels.append(Panel(_trace_title(record), "round", "weight of the view", tuple(series)))
    # Methods side by side, data sets below each other.
    n_methods = len({one.key.method for one in done(records, "trace")})
    return Chart("Evolution of the view weights", tuple(panels), ONE_RUN, min(3, n_methods))


def convergence_chart(records: Sequence[Record], _look: Look) -> Chart:
    """Largest change per round of the traces, and beside it the accuracy where they have it."""
    panels, by_round = [], False
    for record in _first_runs(records):
        history, title = record.result["history"], _trace_title(record)
        changes = _lines(history, CHANGES, "iteration")
        if not changes:
            continue
        panels.append(Panel(title, "round", "largest change", changes, log_y=True))
        shares = [{**one, "accuracy": _percent(one.get("accuracy"))} for one in history]
        accuracy = _lines(shares, {"accuracy": "accuracy"}, "iteration")
        if accuracy:
            panels.append(Panel(title, "round", "ACC (%)", accuracy))
            by_round = True
    return Chart("Convergence", tuple(panels), ONE_RUN, columns=2 if by_round else 0)


def inner_errors_chart(records: Sequence[Record], _look: Look) -> Chart:
    """Squared changes in the steps of Algorithm 1, in the first round of the traces."""
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
    """Median seconds on a log axis, with and without completion, fastest method on top."""
    finished = done(records)
    printed = look.paper.seconds if look.paper else {}
    runs = grouped(finished, lambda one: one.key.method)
    methods = sorted(runs, key=lambda name: median(map(total_seconds, runs[name])))
    panels = []
    for data, here in grouped(finished, lambda one: one.key.data).items():
        by_method = grouped(here, lambda one: one.key.method)
        rows = {float(i): by_method.get(name, []) for i, name in enumerate(methods)}
        completed = {
            row: some if any(one.timings.get("imputation") for one in some) else []
            for row, some in rows.items()
        }
        theirs = {
            float(i): printed.get((data, paper_method(name))) for i, name in enumerate(methods)
        }
        series = [
            series_of("fit", _medians(rows, lambda one: one.timings.get("fit", 0.0))),
            series_of("fit + completion", _medians(completed, total_seconds)),
            series_of("fit + completion", theirs, ghost=True),
        ]
        shown = with_points(one.turned for one in series)
        panels.append(Panel(data, "seconds", "", shown, "rows", (), tuple(methods), log_x=True))
    caption = "Medians over rates and runs."
    ghosts = " Hollow: the paper's, with completion, on the authors' machine."
    return Chart("Running time", tuple(panels), caption + (ghosts if look.paper else ""))


def footprint_chart(records: Sequence[Record], look: Look) -> Chart:
    """Seconds and peak memory of the measure "tnn_step" against the number of anchors.

    One panel per quantity and number of samples, one line per number of views.
    """
    runs = grouped(done(records, "tnn_step"), tensor_sizes)
    printed = look.paper.footprints if look.paper else {}
    anchors = sorted({m for _, _, m in runs})
    panels = []
    for n in sorted({n for n, _, _ in runs}):
        views = sorted({v for samples, v, _ in runs if samples == n})
        for label, measure, attribute in _QUANTITIES:
            ours = {sizes: median(map(measure, some)) for sizes, some in runs.items()}
            theirs = {sizes: getattr(value, attribute) for sizes, value in printed.items()}
            shown = with_points(
                series_of(
                    f"{v} views",
                    {float(i): values.get((n, v, m)) for i, m in enumerate(anchors)},
                    ghost=values is theirs,
                )
                for values in (ours, theirs)
                for v in views
            )
            ticks = tuple(map(str, anchors))
            panels.append(Panel(f"{n} samples", "anchors", label, shown, x_ticks=ticks, log_y=True))
    caption = "Medians over the runs." + (" Hollow: the paper's." if printed else "")
    return Chart("Footprint of the tensor step", tuple(panels), caption, columns=2)


# Label, ours of a record, the attribute of the paper's footprint.
_QUANTITIES: tuple[tuple[str, Callable[[Record], float], str], ...] = (
    ("seconds", lambda one: one.value("seconds"), "seconds"),
    ("peak GiB", lambda one: one.value("peak_bytes") / GIB, "gibibytes"),
)


def _first_runs(records: Sequence[Record]) -> list[Record]:
    """The first repetition of every traced condition, method and setting."""
    traces = [one for one in done(records, "trace") if one.result.get("history")]
    kinds = grouped(traces, lambda one: (one.key.condition, one.key.method, one.key.setting))
    return [min(runs, key=lambda one: one.key.repetition) for runs in kinds.values()]


def _trace_title(record: Record) -> str:
    return f"{record.key.data}: {record.key.method}"


def _lines(
    history: Sequence[Mapping[str, Any]], fields: Mapping[str, str], step: str
) -> tuple[Series, ...]:
    """A series for every field that the history has."""
    lines = []
    for name, field in fields.items():
        rounds = [one for one in history if one.get(field) is not None]
        x, y = (tuple(float(one[column]) for one in rounds) for column in (step, field))
        lines.append(Series(name, x, y))
    return with_points(lines)


def _percent(share: float | None) -> float | None:
    return None if share is None else percent(share)


def _medians(
    rows: Mapping[float, Sequence[Record]], seconds: Callable[[Record], float]
) -> dict[float, float | None]:
    return {row: median(map(seconds, runs)) if runs else None for row, runs in rows.items()}
