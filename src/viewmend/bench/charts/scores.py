"""Charts of scores: main results, label scarcity, ablation, ranks, sensitivity, ours vs paper.

Each function takes records of one protocol and how to look at them, and gives a chart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean

import numpy as np

from viewmend.bench.charts.chart import (
    Chart,
    Panel,
    RankPanel,
    Series,
    SurfacePanel,
    series_of,
    with_points,
)
from viewmend.bench.paper_values import Difference, Look, compare_with_paper
from viewmend.bench.runs import Condition, Record, rate_text
from viewmend.bench.stats import Summary, cliques, rank_methods, summarise
from viewmend.bench.summaries import (
    done,
    grouped,
    method_names,
    metric_named,
    only_protocol,
    percent,
    scores,
    settings_vary,
)
from viewmend.bench.tables.scores import problem_scores
from viewmend.exceptions import InvalidParameterError

# Symbols of the paper beside our words.
SYMBOLS = {
    "graph_smoothing": "\N{GREEK SMALL LETTER BETA}",
    "low_rank_weight": "\N{GREEK SMALL LETTER RHO}",
    "fusion_weight": "\N{GREEK SMALL LETTER LAMDA}",
    "n_anchors": "m",
}
ERRORS = "Error bars: standard deviation over the runs."
GHOSTS = " Hollow: the value printed in the paper."

Summaries = Mapping[Condition, Mapping[str, Summary]]


def scores_chart(records: Sequence[Record], look: Look) -> Chart:
    """Every method's score on every data set, one colour per missing rate, best method on top."""
    summaries = _summaries(records, look)
    methods = _best_first(summaries)
    panels = []
    for data, conditions in grouped(summaries, lambda c: c.data).items():
        series = [s for c in conditions for s in _row_series(summaries, c, methods, look)]
        score = f"{look.metric} (%)"
        panels.append(Panel(data, score, "", tuple(series), "rows", y_ticks=tuple(methods)))
    return Chart(_title("Scores", records, look), tuple(panels), _caption(look))


def label_scarcity_chart(records: Sequence[Record], look: Look) -> Chart:
    """Score against the share of labels, one line per method, one panel per data set."""
    summaries = _summaries(records, look)
    rates = sorted({condition.label_rate for condition in summaries})
    panels = []
    for (data, missing), group in grouped(summaries, lambda c: (c.data, c.missing_rate)).items():
        at = {float(rates.index(c.label_rate)): summaries[c] for c in group}
        lines = [
            _points(name, {x: by_method[name] for x, by_method in at.items() if name in by_method})
            for name in method_names(summaries)
        ]
        title, score = f"{data}, VMR {rate_text(missing)}", f"{look.metric} (%)"
        ticks = tuple(map(rate_text, rates))
        panels.append(Panel(title, "labelled samples", score, with_points(lines), x_ticks=ticks))
    return Chart(_title("Label scarcity", records, look), tuple(panels), ERRORS)


def ablation_chart(records: Sequence[Record], look: Look) -> Chart:
    """Variants of a method, by their names, side by side; one panel per missing rate."""
    summaries = _summaries(records, look)
    data = list(grouped(summaries, lambda c: c.data))
    panels = []
    for missing, conditions in sorted(grouped(summaries, lambda c: c.missing_rate).items()):
        at = {float(data.index(c.data)): c for c in conditions}
        series = []
        for name in method_names(summaries):
            ours = {x: summaries[c][name] for x, c in at.items() if name in summaries[c]}
            printed = {x: _printed(c, name, look) for x, c in at.items()}
            series += [_points(name, ours), series_of(name, printed, ghost=True)]
        title, score = f"VMR {rate_text(missing)}", f"{look.metric} (%)"
        panels.append(Panel(title, "", score, with_points(series), "bars", x_ticks=tuple(data)))
    return Chart(_title("Ablation", records, look), tuple(panels), _caption(look))


def ranks_chart(records: Sequence[Record], look: Look) -> Chart:
    """Critical-difference diagram of the mean ranks over the data sets."""
    data, methods, table, gaps = problem_scores(records, look.metric)
    ranking = rank_methods(table)
    ranks = ranking.mean_ranks
    order = np.argsort(ranks, kind="stable")
    groups = cliques(ranks, ranking.critical_difference)
    panel = RankPanel(
        f"Mean rank over {len(data)} data sets",
        tuple(methods[i] for i in order),
        tuple(ranks[order].tolist()),
        ranking.critical_difference,
        tuple((float(ranks[group[0]]), float(ranks[group[-1]])) for group in groups),
    )
    caption = (
        f"Friedman's test: p {ranking.p_value:.3g}. Methods joined by a bar do not differ at 0.05 "
        "(Nemenyi)."
    )
    if gaps:
        caption += f" Without a score everywhere: {', '.join(gaps)}."
    return Chart(_title("Ranks", records, look), (panel,), caption)


def sensitivity_surface_chart(records: Sequence[Record], look: Look) -> Chart:
    """Mean score for every pair of the two parameters that vary, one panel per data set."""
    names = _varying(records, 2)
    panels = []
    for (condition, method), runs in _swept(records).items():
        x_values, y_values = (_values(runs, name) for name in names)
        values = tuple(
            tuple(_mean_at(runs, dict(zip(names, (x, y), strict=True)), look) for x in x_values)
            for y in y_values
        )
        title = f"{condition.data}, VMR {rate_text(condition.missing_rate)}: {method}"
        x_label, y_label = map(_parameter_text, names)
        x_ticks, y_ticks = (tuple(map(_value_text, some)) for some in (x_values, y_values))
        panels.append(SurfacePanel(title, x_label, y_label, x_ticks, y_ticks, values))
    return Chart(_title("Sensitivity", records, look), tuple(panels), "Means over the runs.")


def sensitivity_curve_chart(records: Sequence[Record], look: Look) -> Chart:
    """Score against the one parameter that varies, one line per data set and method."""
    (name,) = _varying(records, 1)
    swept = _swept(records)
    several = len({method for _, method in swept}) > 1
    panels = []
    # Data sets with values of their own, such as multiples of V^2, have axes of their own.
    for values, kinds in grouped(swept, lambda kind: tuple(_values(swept[kind], name))).items():
        lines = []
        for condition, method in kinds:
            title = f"{condition.data}: {method}" if several else condition.data
            runs = swept[condition, method]
            means = [summarise(_scores_at(runs, {name: value}, look)) for value in values]
            lines.append(_points(title, {float(i): one for i, one in enumerate(means)}))
        label, score = _parameter_text(name), f"{look.metric} (%)"
        ticks = tuple(map(_value_text, values))
        panels.append(Panel("", label, score, tuple(lines), x_ticks=ticks))
    return Chart(_title("Sensitivity", records, look), tuple(panels), ERRORS)


def paper_chart(records: Sequence[Record], look: Look) -> Chart:
    """Our means against the paper's, one dot per condition, on the diagonal where they agree."""
    differences = compare_with_paper(records, look.required_paper(), (look.metric,))
    panels = [
        Panel(f"protocol {protocol}", "paper (%)", "ours (%)", _agreement(group), "dots")
        for protocol, group in grouped(differences, lambda one: one.condition.protocol).items()
    ]
    words = metric_named(look.metric).words
    caption = f"{words.capitalize()}. Error bars: standard deviation of our runs."
    return Chart("Ours against the paper's", tuple(panels), caption)


def _agreement(differences: Sequence[Difference]) -> tuple[Series, ...]:
    return tuple(
        Series(
            method,
            tuple(one.paper.mean for one in group),
            tuple(one.ours.mean for one in group),
            tuple(one.ours.std for one in group),
            notes=tuple(f"{one.condition.text}, paper {one.paper.mean:.2f}, ours" for one in group),
        )
        for method, group in grouped(differences, lambda one: one.method).items()
    )


def _summaries(records: Sequence[Record], look: Look) -> Summaries:
    only_protocol(records)
    return {
        condition: {name: summarise(runs) for name, runs in by_method.items()}
        for condition, by_method in scores(records, look.metric).items()
    }


def _best_first(summaries: Summaries) -> list[str]:
    def merit(name: str) -> float:
        return mean(by_method[name].mean for by_method in summaries.values() if name in by_method)

    return sorted(method_names(summaries), key=merit, reverse=True)


def _row_series(
    summaries: Summaries, condition: Condition, methods: Sequence[str], look: Look
) -> tuple[Series, ...]:
    """Values of a condition on the rows of their methods: ours, and the paper's."""
    name = f"VMR {rate_text(condition.missing_rate)}"
    if len({other.label_rate for other in summaries}) > 1:
        name += f", LAR {rate_text(condition.label_rate)}"
    rows = {float(methods.index(method)): method for method in summaries[condition]}
    ours = _points(name, {row: summaries[condition][rows[row]] for row in rows})
    printed = {row: _printed(condition, rows[row], look) for row in rows}
    return with_points(one.turned for one in (ours, series_of(name, printed, ghost=True)))


def _printed(condition: Condition, method: str, look: Look) -> float | None:
    """The paper's value, where it measures what our metric does under this protocol."""
    value = look.paper.value(condition, method, look.metric) if look.paper else None
    field = metric_named(look.metric).field_under(condition.protocol)
    return value.mean if value is not None and value.field == field else None


def _points(name: str, summaries: Mapping[float, Summary]) -> Series:
    """Summaries at their places."""
    means, stds = (
        tuple(getattr(one, part) for one in summaries.values()) for part in ("mean", "std")
    )
    return Series(name, tuple(summaries), means, stds)


def _varying(records: Sequence[Record], n_parameters: int) -> tuple[str, ...]:
    names = settings_vary(records)
    if len(names) != n_parameters:
        msg = (
            f"this chart needs {n_parameters} parameter(s) that vary but these do: "
            f"{', '.join(names) or 'none'}"
        )
        raise InvalidParameterError(msg)
    return names


def _swept(records: Sequence[Record]) -> dict[tuple[Condition, str], list[Record]]:
    only_protocol(records)
    return grouped(done(records), lambda one: (one.key.condition, one.key.method))


def _values(runs: Sequence[Record], name: str) -> list:
    """Values of a parameter, numbers ascending, others in the order they came."""
    values = list(dict.fromkeys(dict(one.key.setting).get(name, "default") for one in runs))
    numeric = all(isinstance(value, int | float) for value in values)
    return sorted(values) if numeric else values


def _scores_at(runs: Sequence[Record], point: Mapping[str, object], look: Look) -> list[float]:
    chosen = metric_named(look.metric)
    return [
        percent(one.value(chosen.field_under(one.key.protocol)))
        for one in runs
        if all(dict(one.key.setting).get(name, "default") == v for name, v in point.items())
    ]


def _mean_at(runs: Sequence[Record], point: Mapping[str, object], look: Look) -> float:
    values = _scores_at(runs, point, look)
    return mean(values) if values else float("nan")


def _parameter_text(name: str) -> str:
    """A parameter with its symbol in the paper."""
    return f"{name} ({SYMBOLS[name]})" if name in SYMBOLS else name


def _value_text(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _title(what: str, records: Sequence[Record], look: Look) -> str:
    return f"{what}: {look.metric}, protocol {only_protocol(records)}"


def _caption(look: Look) -> str:
    return ERRORS + (GHOSTS if look.paper else "")
