"""Sections about the data: what was done to it before the fit, and what the views are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np

from viewmend.inspection import Inspection
from viewmend.parameters import short
from viewmend.plot.bars import plot_weight_bars
from viewmend.plot.coverage import coverage_size, overlap_size, plot_coverage, plot_overlap
from viewmend.protocols import GivesAdvice, HasImputedGraphs
from viewmend.report.context import Case
from viewmend.report.html import (
    Cell,
    advice,
    count_cell,
    facts_html,
    joined,
    listed,
    paragraph,
    part,
    table_html,
)
from viewmend.report.pictures import USUAL, picture, side_by_side
from viewmend.version import __version__

NEEDS_X = "Pass the views of fit as `X=` (and `mask=`) to see {}."
# How missing cells were filled, by the parameter ``missing_cells``.
FILLED = {
    "low_rank": "from the other cells of their rows",
    "median": "with the median of their column",
}


def data_section(case: Case) -> str:
    """Where the data comes from, how much there is, and what was done to it before the fit."""
    about = case.provenance
    facts = [
        ("data", about.source or "arrays or tables passed in Python"),
        ("report made", f"{about.made.isoformat()}, with viewmend {__version__}"),
        ("samples", f"{case.n_samples:,}{_completeness(case)}"),
        ("labels", _label_counts(case)),
        ("views", _listed_names(case.model.view_names_)),
        ("classes", _listed_names(case.model.classes_.tolist())),
        ("missing views", _missing_views(case)),
    ]
    shown = facts_html((name, value) for name, value in facts if value)
    return joined(shown, part("Changes before the fit", _changes(case)))


def _completeness(case: Case) -> str:
    if case.observed is None:
        return ""
    n_seen = case.observed.sum(axis=1)
    n_views = case.observed.shape[1]
    all_of_them, one = int((n_seen == n_views).sum()), int((n_seen == 1).sum())
    if n_views == 1 or all_of_them == len(n_seen):
        return ", all with every view" if n_views > 1 else ""
    return f"; {all_of_them:,} have all {n_views} views, {one:,} have one"


def _label_counts(case: Case) -> str:
    if case.given is None:
        return ""
    n = int(case.given.labelled.sum())
    return f"{n:,} given ({n / case.n_samples:.1%} of the samples)"


def _listed_names(names: Iterable[object], most: int = 30) -> str:
    texts = [str(name) for name in names]
    shown = ", ".join(texts[:most])
    return shown if len(texts) <= most else f"{shown}, and {len(texts) - most} more"


def _missing_views(case: Case) -> str:
    """What the method does where a sample misses a view; empty where none does."""
    if case.observed is None or case.observed.all():
        return ""
    imputer = getattr(case.model, "imputer", None)
    if imputer is not None:
        return f"filled in by {imputer if isinstance(imputer, str) else type(imputer).__name__}"
    if isinstance(case.model, HasImputedGraphs):
        return "not filled in; their places in the graphs of the views are estimated"
    if isinstance(case.model, GivesAdvice):
        return "not filled in; every sample is classified by the views that it has"
    return ""


def _changes(case: Case) -> str:
    if case.provenance.notes:
        return listed(f"{note[:1].upper()}{note[1:]}." for note in case.provenance.notes)
    if case.inspection is None:
        return advice(NEEDS_X.format("what was done to them"))
    changes = listed([*_encoded(case), *_filled(case, case.inspection)])
    if case.provenance.notes is not None or case.categories is None:
        return changes or paragraph("None: the fit took the data as it is.")
    return joined(
        changes or paragraph("None in the columns of the fit."),
        paragraph("Which columns were left out when the tables were read is not known here."),
    )


def _encoded(case: Case) -> Iterator[str]:
    for view, learnt in (case.categories or {}).items():
        if columns := [str(column) for column in learnt]:
            yield (
                f"View {view}: columns of categories became columns of 0 and 1 ({short(columns)})."
            )


def _filled(case: Case, inspection: Inspection) -> Iterator[str]:
    """What a fit does to missing cells, as `viewmend.data.cells` has it."""
    how = FILLED.get(getattr(case.model, "missing_cells", ""), "by the model")
    for view in inspection.views:
        n_empty = len(view.empty_columns)
        n_cells = view.n_missing_cells - n_empty * view.n_observed
        if n_cells:
            yield f"View {view.name}: {n_cells:,} missing cell(s) were filled {how}."
        if n_empty:
            yield (
                f"View {view.name}: {n_empty} column(s) without any value were ignored "
                f"({short(list(view.empty_columns))})."
            )


def views_section(case: Case) -> str:
    """Which views the model relies on, and who has which."""
    pictures, hints = [*_weights(case), *_coverage(case)], []
    if not hasattr(case.model, "view_weights_"):
        hints.append(paragraph(f"{type(case.model).__name__} has no view weights after this fit."))
    if case.observed is None:
        missing = "which samples have which views, and findings about their contents"
        hints.append(advice(NEEDS_X.format(missing)))
    elif case.inspection is None:
        hints.append(advice(NEEDS_X.format("findings about their contents")))
    table = "" if case.inspection is None else _views_table(case.inspection)
    return joined(side_by_side(*pictures) if pictures else "", *hints, table)


def _weights(case: Case) -> Iterator[str]:
    given = getattr(case.model, "view_weights_", None)
    if given is not None:
        names, weights = case.model.view_names_, np.asarray(given)
        caption = (
            "How much the model relies on each view; the weights sum to one. A view near 0 adds "
            "next to nothing to what the others say about the classes."
        )
        size = USUAL[0], max(1.9, 0.36 * len(names) + 1.0)
        draw = partial(plot_weight_bars, weights, names)
        yield picture(draw, caption, "weights", size)


def _coverage(case: Case) -> Iterator[str]:
    if case.observed is None:
        return
    names, seen = case.model.view_names_, case.observed
    caption = "Which views samples have: one line per set of views, the most frequent on top."
    size = coverage_size(seen, names, USUAL)
    yield picture(partial(plot_coverage, seen, names), caption, "coverage", size)
    if len(names) > 1:
        caption = "Samples that two views have in common; on the diagonal, all samples of a view."
        size = overlap_size(names, USUAL)
        yield picture(partial(plot_overlap, seen, names), caption, "overlap", size)


def _views_table(inspection: Inspection) -> str:
    columns = (
        "view",
        "samples",
        "share",
        "labelled",
        "columns",
        "constant columns",
        "missing cells",
        "repeated rows",
    )
    rows = [
        [
            Cell(view.name),
            count_cell(view.n_observed),
            Cell.share(view.coverage),
            *map(
                count_cell,
                (
                    view.n_labelled,
                    view.n_columns,
                    view.n_constant_columns,
                    view.n_missing_cells,
                    view.n_duplicate_rows,
                ),
            ),
        ]
        for view in inspection.views
    ]
    return table_html("Views", columns, rows)
