"""Sections about the model, its data and how it was fitted."""

from __future__ import annotations

import inspect
from functools import partial
from html import escape
from typing import Any

import numpy as np

from viewmend.core import Round
from viewmend.core.mend.stage import StageRecord
from viewmend.inspection import Inspection
from viewmend.parameters import short
from viewmend.plot.bars import plot_weight_bars
from viewmend.plot.coverage import plot_coverage, plot_overlap
from viewmend.plot.embedding import plot_imputation, plot_sample_graph
from viewmend.plot.rounds import plot_convergence, plot_view_weights
from viewmend.protocols import FittedClassifier, HasImputedGraphs, HasSampleGraph
from viewmend.report.context import Case
from viewmend.report.html import Cell, advice, facts_html, joined, paragraph, table_html, tag
from viewmend.report.pictures import WIDE, picture, side_by_side
from viewmend.version import __version__

# Captions of what is told of the views round by round, by the type of the records.
TRACES = {
    Round: "The same over the rounds.",
    StageRecord: "What each view explains of the classes, from which its weight is made.",
}
NEEDS_X = "Pass the views of fit as `X=` (and `mask=`) to see {}."


def headline(case: Case) -> str:
    """The few numbers that say most, as tiles."""
    model, facts = case.model, [(f"{case.n_samples:,}", "samples")]
    facts += [(f"{len(model.view_names_)}", "views"), (f"{len(model.classes_)}", "classes")]
    if case.observed is not None:
        facts.append((f"{case.observed.mean():.0%}", "of (sample, view) pairs observed"))
    if case.given is not None:
        facts.append((f"{case.given.labelled.mean():.1%}", "of the samples labelled"))
    if case.estimate is not None:
        low, high = case.estimate.interval
        told = f"estimated accuracy, {low:.0%} to {high:.0%}; majority {case.estimate.majority:.0%}"
        facts.append((f"{case.estimate.accuracy:.0%}", told))
    facts.append((f"{case.confidence[case.unlabelled].mean():.1%}", "mean confidence"))
    if case.judged.any():
        right = case.told[case.judged] == case.true
        facts.append((f"{right.mean():.1%}", f"accuracy on {len(right):,} judged samples"))
    tiles = (tag("li", tag("b", value) + tag("span", escape(what))) for value, what in facts)
    return tag("ul", "".join(tiles), class_="tiles")


def model_section(case: Case) -> str:
    """Which model this is, and what was set differently from the defaults."""
    model = case.model
    facts = [("model", type(model).__name__), ("made with", f"viewmend {__version__}")]
    for name, attribute in (("status", "status_"), ("rounds", "n_iter_")):
        if hasattr(model, attribute):
            facts.append((name, str(getattr(model, attribute))))
    facts.append(("views", _listed(model.view_names_)))
    facts.append(("classes", _listed(model.classes_.tolist())))
    changed = _changed_parameters(model)
    if not changed:
        return joined(facts_html(facts), paragraph("All parameters have their default values."))
    rows = [[Cell(name), Cell(short(value)), Cell(short(usual))] for name, value, usual in changed]
    title = "Parameters that differ from the defaults"
    return joined(facts_html(facts), table_html(title, ("parameter", "value", "default"), rows))


def _listed(names: Any, most: int = 30) -> str:
    shown = ", ".join(map(str, names[:most]))
    return shown if len(names) <= most else f"{shown}, and {len(names) - most} more"


def _changed_parameters(model: FittedClassifier) -> list[tuple[str, Any, Any]]:
    """Name, value and default of the parameters that were set to something else."""
    usual = inspect.signature(type(model)).parameters
    return [
        (name, value, usual[name].default)
        for name, value in model.get_params(deep=False).items()
        if repr(value) != repr(usual[name].default)
    ]


def data_section(case: Case) -> str:
    """Who was seen through which view, and what about the data may spoil a fit."""
    if case.observed is None:
        return advice(NEEDS_X.format("which samples have which views, and what is odd about them"))
    names, seen = case.model.view_names_, case.observed
    pictures = [
        picture(
            lambda ax: plot_coverage(seen, names, ax),
            "Sets of views that samples were seen through, the most frequent on top.",
            "coverage",
        )
    ]
    if len(names) > 1:
        caption = "Samples that two views have in common; on the diagonal, all samples of a view."
        pictures.append(picture(lambda ax: plot_overlap(seen, names, ax), caption, "overlap"))
    figures = side_by_side(*pictures)
    if case.inspection is None:
        return joined(figures, advice(NEEDS_X.format("findings about their contents")))
    return joined(figures, _views_table(case.inspection), _findings(case.inspection))


def _views_table(inspection: Inspection) -> str:
    columns = (
        "view",
        "columns",
        "samples",
        "share",
        "labelled",
        "constant columns",
        "repeated rows",
    )
    rows = [
        [
            Cell(view.name),
            *map(_count, (view.n_columns, view.n_observed)),
            Cell.share(view.coverage),
            *map(_count, (view.n_labelled, view.n_constant_columns, view.n_duplicate_rows)),
        ]
        for view in inspection.views
    ]
    return table_html("Views", columns, rows)


def _count(number: int) -> Cell:
    return Cell(f"{number:,}", number)


def _findings(inspection: Inspection) -> str:
    if not inspection.findings:
        return paragraph("Nothing about the data calls for a remark.")
    rows = [
        [
            Cell(one.severity, looks=one.severity),
            Cell(one.subject),
            Cell(one.message, looks="text"),
            Cell(one.remedy, looks="text"),
        ]
        for one in inspection.findings
    ]
    return table_html("Findings", ("severity", "about", "what was found", "what to do"), rows)


def weights_section(case: Case) -> str:
    """Which views the model relies on."""
    model = case.model
    given = getattr(model, "view_weights_", None)
    if given is None:
        return paragraph(f"{type(model).__name__} has no view weights after this fit.")
    names, weights, history = model.view_names_, np.asarray(given), getattr(model, "history_", ())
    caption = "Weight of each view in the fitted model."
    size = 5.4, max(2.2, 0.36 * len(names) + 1.2)
    pictures = [picture(lambda ax: plot_weight_bars(weights, names, ax), caption, "weights", size)]
    first = next(iter(history), None)
    told = [text for kind, text in TRACES.items() if isinstance(first, kind)]
    draw = partial(plot_view_weights, history, names)
    pictures += [picture(draw, caption, "trace") for caption in told]
    return joined(side_by_side(*pictures), _graph_weights(model))


def _graph_weights(model: FittedClassifier) -> str:
    """Table of the trust in every graph of `MendClassifier`; empty for others."""
    table = getattr(model, "graph_weights_", None)
    if not table:
        return ""
    kinds = list(next(iter(table.values())))
    rows = [
        [Cell(view), *(Cell(f"{weights[kind]:.3f}", weights[kind]) for kind in kinds)]
        for view, weights in table.items()
    ]
    shown = [kind.replace("_", " ") for kind in kinds]
    return table_html("Weights of the neighbour graphs", ("view", *shown), rows)


def convergence_section(case: Case) -> str:
    """How the fit settled."""
    model = case.model
    history = getattr(model, "history_", ())
    if not history:
        return paragraph(
            f"{type(model).__name__} is solved in one go: there are no rounds to show."
        )
    tol = getattr(model, "tol", None)
    n_rounds = getattr(model, "n_iter_", len(history))
    caption = f"How the fit settled in {n_rounds} rounds."
    drawing = picture(lambda ax: plot_convergence(history, ax, tol), caption, "convergence")
    return side_by_side(drawing)


def graph_section(case: Case) -> str:
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
        "between classes. Places come from the leading spectral coordinates of the graph."
    )
    drawing = picture(lambda ax: plot_sample_graph(model, ax), caption, "graph", (5.4, 5.4))
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
