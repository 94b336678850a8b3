"""Charts of scores: main results, label scarcity, ablation, ranks, sensitivity, ours vs paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import mean

import numpy as np

from viewmend.bench.charts.chart import Chart, Panel, RankPanel, Series, SurfacePanel
from viewmend.bench.look import Look
from viewmend.bench.paper_values import Difference, compare_with_paper
from viewmend.bench.runs import Record
from viewmend.bench.stats import Summary, cliques, rank_methods, summarise
from viewmend.bench.summaries import (
    Condition,
    condition_of,
    done,
    grouped,
    metric_named,
    only_protocol,
    percent,
    rate_text,
    scores,
    settings_vary,
)
from viewmend.bench.tables.scores import problem_scores
from viewmend.exceptions import InvalidParameterError

__all__ = [
    "ablation_chart",
    "label_scarcity_chart",
    "paper_chart",
    "ranks_chart",
    "scores_chart",
    "sensitivity_curve_chart",
    "sensitivity_surface_chart",
]

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
    """Every method's score on every data set, one colour per missing rate, best method on top.

    Parameters
    ----------
    records : sequence of Record
        Runs of one protocol.
    look : Look

    Returns
    -------
    Chart
    """
    found = _summaries(records, look)
    methods = _best_first(found)
    rows = {name: float(i) for i, name in enumerate(methods)}
    panels = []
    for data, conditions in grouped(found, lambda condition: condition.data).items():
        series = [
            one for condition in conditions for one in _row_series(found, condition, rows, look)
        ]
        panels.append(
            Panel(data, f"{look.metric} (%)", "", tuple(series), "rows", y_ticks=tuple(methods))
        )
    return Chart(_title("Scores", records, look), tuple(panels), _caption(look))


def label_scarcity_chart(records: Sequence[Record], look: Look) -> Chart:
    """Score against the share of labels, one line per method, one panel per data set.

    Parameters
    ----------
    records : sequence of Record
        Runs of one protocol with several label rates.
    look : Look

    Returns
    -------
    Chart
    """
    found = _summaries(records, look)
    rates = sorted({condition.label_rate for condition in found})
    places = {rate: float(i) for i, rate in enumerate(rates)}
    panels = []
    for (data, missing), conditions in grouped(found, lambda c: (c.data, c.missing_rate)).items():
        series = []
        for method in _methods(found):
            own = [condition for condition in conditions if method in found[condition]]
            points = {places[condition.label_rate]: found[condition][method] for condition in own}
            series.append(_points(method, points))
        panels.append(
            Panel(
                f"{data}, VMR {rate_text(missing)}",
                "labelled samples",
                f"{look.metric} (%)",
                tuple(one for one in series if one.x),
                x_ticks=tuple(map(rate_text, rates)),
            )
        )
    return Chart(_title("Label scarcity", records, look), tuple(panels), ERRORS)


def ablation_chart(records: Sequence[Record], look: Look) -> Chart:
    """Variants of a method side by side, data sets along x, one panel per missing rate.

    Parameters
    ----------
    records : sequence of Record
        Runs of one protocol; variants have method names of their own.
    look : Look

    Returns
    -------
    Chart
    """
    found = _summaries(records, look)
    data = list(grouped(found, lambda condition: condition.data))
    panels = []
    for missing, conditions in sorted(
        grouped(found, lambda condition: condition.missing_rate).items()
    ):
        at = {float(data.index(condition.data)): condition for condition in conditions}
        series = []
        for method in _methods(found):
            places = {
                x: found[condition][method]
                for x, condition in at.items()
                if method in found[condition]
            }
            printed = {x: _printed(condition, method, look) for x, condition in at.items()}
            series += [_points(method, places), _ghosts(method, printed)]
        title = f"VMR {rate_text(missing)}"
        kept = tuple(one for one in series if one.x)
        panels.append(Panel(title, "", f"{look.metric} (%)", kept, "bars", x_ticks=tuple(data)))
    return Chart(_title("Ablation", records, look), tuple(panels), _caption(look))


def ranks_chart(records: Sequence[Record], look: Look) -> Chart:
    """Critical-difference diagram of the mean ranks over the data sets.

    Parameters
    ----------
    records : sequence of Record
        Runs of one protocol.
    look : Look

    Returns
    -------
    Chart
    """
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
    """Mean score for every pair of two parameters, one panel per data set.

    Parameters
    ----------
    records : sequence of Record
        Runs of one protocol whose settings differ in two parameters.
    look : Look

    Returns
    -------
    Chart
    """
    names = settings_vary(records)
    if len(names) != 2:
        msg = f"a surface needs two parameters that vary but these do: {', '.join(names) or 'none'}"
        raise InvalidParameterError(msg)
    panels = []
    for (condition, method), runs in _swept(records).items():
        x_values, y_values = (_values(runs, name) for name in names)
        values = tuple(
            tuple(_mean_at(runs, dict(zip(names, (x, y), strict=True)), look) for x in x_values)
            for y in y_values
        )
        title = f"{condition.data}, VMR {rate_text(condition.missing_rate)}: {method}"
        x_label, y_label = map(parameter_text, names)
        x_ticks, y_ticks = (tuple(map(_value_text, own)) for own in (x_values, y_values))
        panels.append(SurfacePanel(title, x_label, y_label, x_ticks, y_ticks, values))
    return Chart(_title("Sensitivity", records, look), tuple(panels), "Means over the runs.")


def sensitivity_curve_chart(records: Sequence[Record], look: Look) -> Chart:
    """Score against one parameter, one line per data set and method.

    Parameters
    ----------
    records : sequence of Record
        Runs of one protocol whose settings differ in one parameter.
    look : Look

    Returns
    -------
    Chart
    """
    names = settings_vary(records)
    if len(names) != 1:
        msg = f"a curve needs one parameter that varies but these do: {', '.join(names) or 'none'}"
        raise InvalidParameterError(msg)
    swept = _swept(records)
    several = len({method for _, method in swept}) > 1
    panels = []
    # Data sets with values of their own, such as multiples of V^2, have axes of their own.
    for values, kinds in grouped(swept, lambda kind: tuple(_values(swept[kind], names[0]))).items():
        series = tuple(
            _curve(
                f"{condition.data}: {method}" if several else condition.data,
                swept[condition, method],
                look,
            )
            for condition, method in kinds
        )
        label, score = parameter_text(names[0]), f"{look.metric} (%)"
        ticks = tuple(map(_value_text, values))
        panels.append(Panel("", label, score, series, x_ticks=ticks))
    return Chart(_title("Sensitivity", records, look), tuple(panels), ERRORS)


def paper_chart(records: Sequence[Record], look: Look) -> Chart:
    """Our means against the paper's, one dot per condition, on the diagonal where they agree.

    Parameters
    ----------
    records : sequence of Record
    look : Look
        With the paper's tables.

    Returns
    -------
    Chart
    """
    if look.paper is None:
        msg = "a comparison needs the paper's tables; pass the folder that holds them"
        raise InvalidParameterError(msg)
    found = compare_with_paper(records, look.paper, (look.metric,))
    panels = [
        Panel(f"protocol {protocol}", "paper (%)", "ours (%)", _agreement(own), "dots")
        for protocol, own in grouped(found, lambda one: one.condition.protocol).items()
    ]
    words = metric_named(look.metric).words
    caption = f"{words.capitalize()}. Error bars: standard deviation of our runs."
    return Chart("Ours against the paper's", tuple(panels), caption)


def _agreement(found: Sequence[Difference]) -> tuple[Series, ...]:
    return tuple(
        Series(
            method,
            tuple(one.paper.mean for one in own),
            tuple(one.ours.mean for one in own),
            tuple(one.ours.std for one in own),
            notes=tuple(f"{one.condition.text}, paper {one.paper.mean:.2f}, ours" for one in own),
        )
        for method, own in grouped(found, lambda one: one.method).items()
    )


def _summaries(records: Sequence[Record], look: Look) -> Summaries:
    only_protocol(records)
    return {
        condition: {name: summarise(runs) for name, runs in own.items()}
        for condition, own in scores(records, look.metric).items()
    }


def _methods(found: Summaries) -> list[str]:
    return list(dict.fromkeys(name for own in found.values() for name in own))


def _best_first(found: Summaries) -> list[str]:
    means = {
        name: mean(own[name].mean for own in found.values() if name in own)
        for name in _methods(found)
    }
    return sorted(means, key=lambda name: -means[name])


def _row_series(
    found: Summaries, condition: Condition, rows: Mapping[str, float], look: Look
) -> list[Series]:
    """Values of a condition on the rows of their methods: ours, and the paper's."""
    own, name = found[condition], f"VMR {rate_text(condition.missing_rate)}"
    if len({other.label_rate for other in found}) > 1:
        name += f", LAR {rate_text(condition.label_rate)}"
    printed = _ghosts(name, {rows[method]: _printed(condition, method, look) for method in own})
    ours = Series(
        name,
        tuple(one.mean for one in own.values()),
        tuple(rows[method] for method in own),
        tuple(one.std for one in own.values()),
    )
    theirs = replace(printed, x=printed.y, y=printed.x)
    return [one for one in (ours, theirs) if one.x]


def _printed(condition: Condition, method: str, look: Look) -> float | None:
    """The paper's value, where it measures what our metric does under this protocol."""
    value = look.paper.value(condition, method, look.metric) if look.paper else None
    field = metric_named(look.metric).field_under(condition.protocol)
    return value.mean if value is not None and value.field == field else None


def _points(name: str, points: Mapping[float, Summary]) -> Series:
    return Series(
        name,
        tuple(points),
        tuple(one.mean for one in points.values()),
        tuple(one.std for one in points.values()),
    )


def _ghosts(name: str, printed: Mapping[float, float | None]) -> Series:
    kept = {x: value for x, value in printed.items() if value is not None}
    return Series(name, tuple(kept), tuple(kept.values()), ghost=True)


def _swept(records: Sequence[Record]) -> dict[tuple[Condition, str], list[Record]]:
    only_protocol(records)
    return grouped(done(records), lambda one: (condition_of(one.key), one.key.method))


def _values(runs: Sequence[Record], name: str) -> list:
    """Values of a parameter, numbers ascending, others in the order they came."""
    found = list(dict.fromkeys(dict(one.key.setting).get(name, "default") for one in runs))
    numeric = all(isinstance(value, int | float) for value in found)
    return sorted(found) if numeric else found


def _scores_at(runs: Sequence[Record], point: Mapping[str, object], look: Look) -> list[float]:
    chosen = metric_named(look.metric)
    return [
        percent(one.result[chosen.field_under(one.key.protocol)])
        for one in runs
        if all(dict(one.key.setting).get(name, "default") == v for name, v in point.items())
    ]


def _curve(name: str, runs: Sequence[Record], look: Look) -> Series:
    """Scores at the values of the one parameter that varies, which stand at 0, 1, ..."""
    (parameter,) = settings_vary(runs)
    points = {
        float(i): summarise(_scores_at(runs, {parameter: value}, look))
        for i, value in enumerate(_values(runs, parameter))
    }
    return _points(name, points)


def _mean_at(runs: Sequence[Record], point: Mapping[str, object], look: Look) -> float:
    found = _scores_at(runs, point, look)
    return mean(found) if found else float("nan")


def parameter_text(name: str) -> str:
    """A parameter with its symbol in the paper."""
    return f"{name} ({SYMBOLS[name]})" if name in SYMBOLS else name


def _value_text(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _title(what: str, records: Sequence[Record], look: Look) -> str:
    return f"{what}: {look.metric}, protocol {only_protocol(records)}"


def _caption(look: Look) -> str:
    return ERRORS + (GHOSTS if look.paper else "")
