"""Which figures there are, and which of them suit a list of records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from viewmend.bench.charts import Chart
from viewmend.bench.paper_values import is_printed
from viewmend.bench.runs import Record
from viewmend.bench.score_charts import (
    ablation_chart,
    label_scarcity_chart,
    paper_chart,
    ranks_chart,
    scores_chart,
    sensitivity_curve_chart,
    sensitivity_surface_chart,
)
from viewmend.bench.summaries import Look, cell_of, done, grouped, settings_vary
from viewmend.bench.tables import TABLES
from viewmend.bench.trace_charts import (
    convergence_chart,
    footprint_chart,
    inner_errors_chart,
    running_time_chart,
    view_weights_chart,
)
from viewmend.exceptions import InvalidParameterError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURES", "FigureKind", "build_chart", "draw_figure", "suitable_figures"]

Suits = Callable[[Sequence[Record], Look], bool]


@dataclass(frozen=True)
class FigureKind:
    """A figure that can be made of records.

    Attributes
    ----------
    build : function of (records, look)
        Records are of one protocol.
    suits : function of (records, look)
        Whether the records hold what the figure shows.
    by_metric : bool
        Whether there is one for every metric.
    title : str
        In a report; empty for the name.
    """

    build: Callable[[Sequence[Record], Look], Chart]
    suits: Suits
    by_metric: bool = False
    title: str = ""


def build_chart(name: str, records: Sequence[Record], look: Look) -> Chart:
    """What the figure of a name shows, from records of one protocol.

    Parameters
    ----------
    name : str
        Row of `FIGURES`.
    records : sequence of Record
    look : Look

    Returns
    -------
    Chart
    """
    if name not in FIGURES:
        msg = f"there is no figure {name!r}; it must be one of {', '.join(FIGURES)}"
        raise InvalidParameterError(msg)
    if not FIGURES[name].suits(records, look):
        msg = (
            f"the records do not hold what the figure {name!r} shows; figures they suit: "
            f"{', '.join(suitable_figures(records, look)) or 'none'}"
        )
        raise InvalidParameterError(msg)
    return FIGURES[name].build(records, look)


def draw_figure(name: str, records: Sequence[Record], look: Look) -> Figure:
    """The figure of a name, drawn by Matplotlib; arguments as of `build_chart`.

    Returns
    -------
    matplotlib Figure
        Save it with ``figure.savefig(path)``.
    """
    from viewmend.bench.drawing import draw_chart

    return draw_chart(build_chart(name, records, look))


def suitable_figures(records: Sequence[Record], look: Look) -> list[str]:
    """Names of the figures that the records hold."""
    return [name for name, kind in FIGURES.items() if kind.suits(records, look)]


def _several_label_rates(records: Sequence[Record], look: Look) -> bool:
    rates = {one.key.label_rate for one in done(records)}
    return _suits_table("scores")(records, look) and len(rates) > 1


def _several_methods(records: Sequence[Record], look: Look) -> bool:
    methods = {one.key.method for one in done(records)}
    return _suits_table("scores")(records, look) and len(methods) > 1


def _varying(n_parameters: int) -> Suits:
    return lambda records, _look: len(settings_vary(records)) == n_parameters


def _traced(field: str) -> Suits:
    def suits(records: Sequence[Record], _look: Look) -> bool:
        histories = [one.result.get("history") or [{}] for one in done(records, "trace")]
        return any(history[0].get(field) for history in histories)

    return suits


def _variants(records: Sequence[Record], look: Look) -> bool:
    """Few rows, all of one method: the names of variants begin with it."""
    methods = list(grouped(done(records), lambda one: one.key.method))
    rates = {cell_of(one.key).label_rate for one in done(records)}
    same = all(name.startswith(look.subject) for name in methods)
    return _several_methods(records, look) and same and len(rates) == 1


def _printed(records: Sequence[Record], look: Look) -> bool:
    if look.paper is None or not _suits_table("scores")(records, look):
        return False
    return is_printed(records, look.paper, (look.metric,))


def _suits_table(name: str) -> Suits:
    return TABLES[name].suits


FIGURES = {
    "scores": FigureKind(scores_chart, _several_methods, by_metric=True),
    "label_scarcity": FigureKind(label_scarcity_chart, _several_label_rates, by_metric=True),
    "ablation": FigureKind(ablation_chart, _variants, by_metric=True),
    "ranks": FigureKind(ranks_chart, _suits_table("ranks"), by_metric=True),
    "sensitivity_surface": FigureKind(sensitivity_surface_chart, _varying(2), by_metric=True),
    "sensitivity_curve": FigureKind(sensitivity_curve_chart, _varying(1), by_metric=True),
    "running_time": FigureKind(running_time_chart, _several_methods),
    "view_weights": FigureKind(view_weights_chart, _traced("alpha")),
    "convergence": FigureKind(convergence_chart, _traced("change_F")),
    "inner_errors": FigureKind(inner_errors_chart, _traced("inner")),
    "footprint": FigureKind(footprint_chart, _suits_table("footprint")),
    "paper": FigureKind(paper_chart, _printed, by_metric=True, title="against the paper"),
}
