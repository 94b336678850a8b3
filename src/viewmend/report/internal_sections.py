"""Sections about the inside of a model, folded: most readers do not need them."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from viewmend.core import Round
from viewmend.core.mend.stage import StageRecord
from viewmend.parameters import short
from viewmend.plot.embedding import plot_imputation, plot_sample_graph
from viewmend.plot.rounds import plot_convergence, plot_view_weights
from viewmend.protocols import FittedClassifier, HasImputedGraphs, HasSampleGraph
from viewmend.report.context import Case
from viewmend.report.data_sections import NEEDS_X
from viewmend.report.html import (
    Cell,
    advice,
    facts_html,
    folded,
    joined,
    paragraph,
    table_html,
)
from viewmend.report.pictures import SQUARE, WIDE, picture, side_by_side
from viewmend.report.search import search_section

# Captions of what is told of the views round by round, by the type of the records.
TRACES = {
    Round: "The view weights over the rounds.",
    StageRecord: "What each view explains of the classes, round by round; from the last values the "
    "weights are made.",
}
# What the rounds of MendClassifier do, by the name of the stage.
STAGES = {
    "neighbours": "labels spread over the nearest neighbours of the samples, all views together",
    "homophily": "ways of comparison that join samples of different classes count less",
    "guided": "single neighbours that seem to be of different classes count less",
    "evidence": "the classes are also regressed on each view, and both answers are combined",
}
# The ways in which MendClassifier compares the rows of a view.
COMPARISONS = {
    "unit": "rows scaled to the same length, so that only their direction counts",
    "standard": "columns standardised, so that each counts alike",
    "standard_unit": "columns standardised, then rows scaled to the same length",
    "centred_unit": "rows compared by their correlation",
    "hellinger": "square roots of the values, as suits counts: large ones count less",
    "half_whitened": "principal components, of which the smaller ones are made to count more",
}


def internals_section(case: Case) -> str:
    """Parameters, their choice, ways of comparison, rounds and graph, each below a fold."""
    parts = {
        "Parameters": _parameters(case),
        "How the parameters were chosen": search_section(case),
        "Ways of comparing samples": _comparisons(case.model),
        "Rounds of the fit": _rounds(case.model),
        "Graph of the samples": _graph(case),
    }
    return joined(*(folded(title, content, False) for title, content in parts.items() if content))


def _parameters(case: Case) -> str:
    """Which model this is, and what was set differently from the defaults."""
    model = case.model
    facts = [("model", type(model).__name__)]
    for name, attribute in (("status", "status_"), (_steps(model), "n_iter_")):
        if hasattr(model, attribute):
            facts.append((name, str(getattr(model, attribute))))
    changed = _changed_parameters(model)
    if not changed:
        return joined(facts_html(facts), paragraph("All parameters have their default values."))
    rows = [[Cell(name), Cell(short(value)), Cell(short(usual))] for name, value, usual in changed]
    title = "Parameters that differ from the defaults"
    return joined(facts_html(facts), table_html(title, ("parameter", "value", "default"), rows))


def _changed_parameters(model: FittedClassifier) -> list[tuple[str, Any, Any]]:
    """Name, value and default of the parameters that were set to something else."""
    usual = inspect.signature(type(model)).parameters
    return [
        (name, value, usual[name].default)
        for name, value in model.get_params(deep=False).items()
        if repr(value) != repr(usual[name].default)
    ]


def _comparisons(model: FittedClassifier) -> str:
    """Table of the trust in every graph of `MendClassifier`; empty for others."""
    table = getattr(model, "graph_weights_", None)
    if not table:
        return ""
    kinds = list(next(iter(table.values())))
    rows = [
        [
            Cell(kind.replace("_", " ")),
            *(Cell(f"{weights[kind]:.2f}", weights[kind]) for weights in table.values()),
            Cell(COMPARISONS.get(kind, ""), looks="text wide"),
        ]
        for kind in kinds
    ]
    words = (
        "The rows of a view are compared in several ways, because no single one suits all data. "
        "Each gives every sample its nearest neighbours. A way whose neighbours are mostly of one "
        "class is trusted more; 1 is the most trusted one of all."
    )
    title = "Trust in each way of comparing, by view"
    return joined(paragraph(words), table_html(title, ("way", *table, "what it does"), rows))


def _rounds(model: FittedClassifier) -> str:
    """How the fit settled."""
    history = _history(model)
    if not history:
        return paragraph(
            f"{type(model).__name__} is solved in one go: there are no rounds to show."
        )
    tol = getattr(model, "tol", None)
    taken = getattr(model, "n_iter_", len(history))
    caption = (
        f"How the fit settled in {taken} {_steps(model)}: bars or lines near 0 mean that it has."
    )
    pictures = [picture(lambda ax: plot_convergence(history, ax, tol), caption, "convergence")]
    if hasattr(model, "view_weights_"):
        told = [text for kind, text in TRACES.items() if isinstance(history[0], kind)]
        draw = partial(plot_view_weights, history, model.view_names_)
        pictures += [picture(draw, caption, "trace") for caption in told]
    return joined(side_by_side(*pictures), _stage_names(history))


def _steps(model: FittedClassifier) -> str:
    """What the steps are called that ``n_iter_`` counts."""
    return "stages" if isinstance(next(iter(_history(model)), None), StageRecord) else "rounds"


def _history(model: FittedClassifier) -> Sequence[Any]:
    return getattr(model, "history_", ())


def _stage_names(history: Any) -> str:
    """What the names of the stages of `MendClassifier` mean; empty for others."""
    if not isinstance(history[0], StageRecord):
        return ""
    names = dict.fromkeys(record.name for record in history)
    return facts_html((name, STAGES[name]) for name in names if name in STAGES)


def _graph(case: Case) -> str:
    """The samples in the plane, as the model's graph has them."""
    model = case.model
    if isinstance(model, HasImputedGraphs):
        return _imputed_graph(model, case.observed)
    if isinstance(model, HasSampleGraph):
        return _sample_graph(model)
    return paragraph(f"{type(model).__name__} keeps no graph that could be drawn.")


def _sample_graph(model: HasSampleGraph) -> str:
    caption = (
        "Every sample of the graph that the labels spread over, in the colour of its predicted "
        "class. Samples near a corner have neighbours of that class; those in the middle lie "
        "between classes."
    )
    drawing = picture(lambda ax: plot_sample_graph(model, ax), caption, "graph", SQUARE)
    return side_by_side(drawing)


def _imputed_graph(model: HasImputedGraphs, observed: np.ndarray | None) -> str:
    if observed is None:
        return advice(NEEDS_X.format("the graph of a view before and after imputation"))
    caption = (
        "Graph of the view that misses most samples. Corners are classes; a sample lies at the "
        "mean of its anchors. Samples without the view share one place until their rows are "
        "imputed."
    )
    draw = partial(plot_imputation, model, observed, None)
    return side_by_side(picture(draw, caption, "graph", WIDE, 2))
