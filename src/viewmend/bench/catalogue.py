"""Which tables and figures there are, and which of them suit a list of records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from viewmend.bench.charts import scores as charts
from viewmend.bench.charts import traces
from viewmend.bench.charts.chart import Chart
from viewmend.bench.paper_values import PRINTED, Look, is_printed
from viewmend.bench.runs import Record
from viewmend.bench.summaries import done, settings_vary
from viewmend.bench.tables import costs_beside_paper as costs
from viewmend.bench.tables import paired, scores
from viewmend.bench.tables import runs as run_tables
from viewmend.bench.tables.table import Table
from viewmend.exceptions import InvalidParameterError

Runs = Sequence[Record]
Suits = Callable[[Runs, Look], bool]
Shown = TypeVar("Shown", bound=Table | Chart)


@dataclass(frozen=True)
class Kind(Generic[Shown]):
    """A table or figure that can be made of records of one protocol."""

    make: Callable[[Runs, Look], Shown]
    # Whether the records hold what it shows.
    suits: Suits
    # Whether there is one for every metric.
    by_metric: bool = False
    # In a report; empty for the name.
    title: str = ""


class Catalogue(dict[str, Kind[Shown]]):
    """Kinds of tables, or of figures, by name; ``word`` is what errors call them."""

    def __init__(self, word: str, kinds: dict[str, Kind[Shown]]):
        super().__init__(kinds)
        self.word = word

    def suitable(self, records: Runs, look: Look) -> list[str]:
        """Names of those that the records hold."""
        return [name for name, kind in self.items() if kind.suits(records, look)]

    def build(self, name: str, records: Runs, look: Look) -> Shown:
        """The one of a name, made of records of one protocol."""
        if name not in self:
            msg = f"there is no {self.word} {name!r}; it must be one of {', '.join(self)}"
            raise InvalidParameterError(msg)
        if not self[name].suits(records, look):
            msg = (
                f"the records do not hold what the {self.word} {name!r} shows; {self.word}s they "
                f"suit: {', '.join(self.suitable(records, look)) or 'none'}"
            )
            raise InvalidParameterError(msg)
        return self[name].make(records, look)


def _one_setting(records: Runs, _look: Look) -> bool:
    return bool(done(records)) and not settings_vary(records)


def _rankable(records: Runs, look: Look) -> bool:
    if not _one_setting(records, look):
        return False
    data, methods, _, _ = scores.problem_scores(records, look.metric)
    return len(data) >= 2 and len(methods) >= 3


def _paired(records: Runs, look: Look) -> bool:
    methods = {record.key.method for record in done(records)}
    return _one_setting(records, look) and look.subject in methods and len(methods) > 1


def _printed(metrics: Sequence[str], records: Runs, look: Look) -> bool:
    """Whether the paper prints something of these metrics, or of the one that is looked at."""
    if look.paper is None or not _one_setting(records, look):
        return False
    return is_printed(records, look.paper, metrics or (look.metric,))


def _beside(
    comparable: Callable[[Runs, Look], Mapping[object, Runs]], records: Runs, look: Look
) -> bool:
    """Whether there is something that the paper prints the cost of."""
    return look.paper is not None and bool(comparable(records, look))


def _measured(measure: str, records: Runs, _look: Look) -> bool:
    return bool(done(records, measure))


def _posed(records: Runs, _look: Look) -> bool:
    return any("observed_pairs" in record.result for record in records)


def _tuned(records: Runs, look: Look) -> bool:
    return _one_setting(records, look) and any(record.key.setting for record in done(records))


def _several(part: str, records: Runs, look: Look) -> bool:
    """Whether runs of one setting differ in a part of their keys."""
    values = {getattr(record.key, part) for record in done(records)}
    return _one_setting(records, look) and len(values) > 1


def _variants(records: Runs, look: Look) -> bool:
    """Few rows, all of one method: the names of variants begin with it."""
    same = all(record.key.method.startswith(look.subject) for record in done(records))
    several_rates = _several("label_rate", records, look)
    return same and _several("method", records, look) and not several_rates


def _varying(n_parameters: int, records: Runs, _look: Look) -> bool:
    return len(settings_vary(records)) == n_parameters


def _traced(field: str, records: Runs, _look: Look) -> bool:
    histories = [record.result.get("history") or [{}] for record in done(records, "trace")]
    return any(history[0].get(field) for history in histories)


# Tables that put our figures beside printed ones.
BESIDE_PAPER = ("paper", "paper_seconds", "paper_footprint")

_per_metric = partial(Kind, by_metric=True)

TABLES: Catalogue[Table] = Catalogue(
    "table",
    {
        "scores": _per_metric(scores.scores_table, _one_setting),
        "intervals": _per_metric(paired.intervals_table, _one_setting),
        "paired": _per_metric(paired.paired_table, _paired, title="paired differences"),
        "rivals": _per_metric(paired.rivals_table, _paired),
        "ranks": _per_metric(scores.ranks_table, _rankable),
        "times": Kind(run_tables.times_table, _one_setting),
        "paper": Kind(
            scores.differences_table, partial(_printed, PRINTED), title="beside the paper"
        ),
        "paper_seconds": Kind(
            costs.seconds_table,
            partial(_beside, costs.timed_runs),
            title="seconds beside the paper",
        ),
        "paper_footprint": Kind(
            costs.footprint_beside_paper_table,
            partial(_beside, costs.step_runs),
            title="footprint beside the paper",
        ),
        "settings": Kind(run_tables.settings_table, _tuned),
        "inner_errors": Kind(run_tables.inner_errors_table, partial(_measured, "trace")),
        "footprint": Kind(run_tables.footprint_table, partial(_measured, "tnn_step")),
        "completeness": Kind(run_tables.completeness_table, _posed),
    },
)

FIGURES: Catalogue[Chart] = Catalogue(
    "figure",
    {
        "scores": _per_metric(charts.scores_chart, partial(_several, "method")),
        "label_scarcity": _per_metric(charts.label_scarcity_chart, partial(_several, "label_rate")),
        "ablation": _per_metric(charts.ablation_chart, _variants),
        "ranks": _per_metric(charts.ranks_chart, _rankable),
        "sensitivity_surface": _per_metric(charts.sensitivity_surface_chart, partial(_varying, 2)),
        "sensitivity_curve": _per_metric(charts.sensitivity_curve_chart, partial(_varying, 1)),
        "running_time": Kind(traces.running_time_chart, partial(_several, "method")),
        "view_weights": Kind(traces.view_weights_chart, partial(_traced, "alpha")),
        "convergence": Kind(traces.convergence_chart, partial(_traced, "change_F")),
        "inner_errors": Kind(traces.inner_errors_chart, partial(_traced, "inner")),
        "footprint": Kind(traces.footprint_chart, partial(_measured, "tnn_step")),
        "paper": _per_metric(charts.paper_chart, partial(_printed, ()), title="against the paper"),
    },
)
