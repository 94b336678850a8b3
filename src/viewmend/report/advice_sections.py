"""Sections about what to doubt and what to do next, of models that give advice."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from viewmend.exceptions import DataWarning, InvalidParameterError
from viewmend.protocols import GivesAdvice
from viewmend.report.context import Case
from viewmend.report.html import Cell, advice, facts_html, joined, paragraph, table_html
from viewmend.report.prediction_sections import id_cell

# Samples to label, suspects and pairs that are listed, and samples that are named by view.
N_LISTED = 10
N_NAMED = 5
# Share of the sets that may miss the right class.
ALPHA = 0.1


def next_section(case: Case) -> str:
    """Samples whose label, and missing views whose measurement, would help most."""
    model = case.model
    if not isinstance(model, GivesAdvice):
        return ""
    return joined(
        _told(lambda: _to_label(case, model.suggest_labels(N_LISTED))),
        _told(lambda: _to_measure(case, model.suggest_views())),
    )


def suspects_section(case: Case) -> str:
    """Given labels that the rest of the data contradicts."""
    model = case.model
    if not isinstance(model, GivesAdvice):
        return ""
    return _told(lambda: _suspects(case, model.suspect_labels()))


def sets_section(case: Case) -> str:
    """How many classes samples may have, at a promise; why there is none, if labels are too few."""
    model = case.model
    if not isinstance(model, GivesAdvice):
        return ""
    return _told(lambda: _set_sizes(case, model.predict_set(alpha=ALPHA)))


def _told(ask: Callable[[], str]) -> str:
    """What a model answers, as HTML; in its place, what it warns of, or why it does not answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        try:
            return ask()
        except (DataWarning, InvalidParameterError) as reason:
            return advice(f"{str(reason)[:1].upper()}{str(reason)[1:]}.")


def _to_label(case: Case, found: Any) -> str:
    if len(found) == 0:
        return paragraph("There is no sample left whose label would tell anything new.")
    rows = [
        [Cell(str(place), place), id_cell(case, row), Cell(reason, looks="text wide")]
        for place, (row, reason) in enumerate(
            zip(found.samples.tolist(), found.reasons, strict=True), 1
        )
    ]
    words = (
        "Labels of these samples would help most. They are one batch: each is chosen as if those "
        "before it had a label. Label them, fit again, and ask again."
    )
    table = table_html("Samples to label", ("order", "sample", "why"), rows)
    return joined(paragraph(words), table)


def _to_measure(case: Case, found: Any) -> str:
    if len(found) == 0:
        return paragraph("No missing view is worth measuring.")
    words = (
        "Missing views that are worth measuring, by how many right answers more are to be "
        "expected, beside the number of labels that would bring as many at least."
    )
    first = [
        [
            id_cell(case, row),
            Cell(str(view)),
            Cell.share(gain),
            Cell(reason, looks="text wide"),
        ]
        for row, view, gain, reason in zip(
            found.samples[:N_LISTED].tolist(),
            found.views[:N_LISTED],
            found.gains[:N_LISTED],
            found.reasons[:N_LISTED],
            strict=True,
        )
    ]
    columns = ("sample", "view", "gain", "why")
    return joined(
        paragraph(words),
        _worths(case, found),
        table_html("First measurements", columns, first),
    )


def _worths(case: Case, found: Any) -> str:
    """Table of what measurements are worth, by view."""
    rows = []
    for worth in found.by_view:
        samples = found.samples[found.views == worth.view][:N_NAMED]
        more = ", ..." if worth.n_pairs > len(samples) else ""
        labels = Cell("more than all") if worth.n_labels is None else _count(worth.n_labels)
        rows.append(
            [
                Cell(worth.view),
                _count(worth.n_pairs),
                Cell(f"{worth.gain:.1f}", worth.gain),
                labels,
                Cell(", ".join(map(str, case.ids[samples])) + more, looks="text"),
            ]
        )
    columns = ("view", "samples", "right answers more", "labels worth as much", "first of them")
    return table_html("Views to measure", columns, rows)


def _count(number: int) -> Cell:
    return Cell(f"{number:,}", number)


def _suspects(case: Case, found: Any) -> str:
    facts = facts_html(
        [
            ("labels compared with the rest of the data", f"{len(found.samples):,}"),
            ("estimated to be wrong", f"{found.n_suspects:,} ({found.noise_rate:.1%})"),
        ]
    )
    against = np.flatnonzero(found.given != found.suggested)
    if len(against) == 0:
        return joined(facts, paragraph("The rest of the data contradicts no given label."))
    rows = [
        [
            id_cell(case, int(found.samples[i])),
            Cell(str(found.given[i])),
            Cell(str(found.suggested[i])),
            Cell(f"{found.scores[i]:.3f}", float(found.scores[i])),
        ]
        for i in against[:N_LISTED]
    ]
    words = (
        f"The rest of the data contradicts {len(against):,} given labels. Look at the first ones; "
        "where classes are hard to tell apart, right labels are among them and the estimate is "
        "too high."
    )
    columns = ("sample", "given", "suggested", "score")
    return joined(facts, paragraph(words), table_html("Most suspect labels", columns, rows))


def _set_sizes(case: Case, sets: np.ndarray) -> str:
    """Table of how many samples have so many classes in their sets."""
    who = "samples without a given label" if case.given is not None else "samples"
    sizes = sets[case.unlabelled].sum(axis=1)
    if len(sizes) == 0:
        return paragraph("Every sample has a given label, and its set is that class alone.")
    kinds = {
        "none": sizes == 0,
        "one": sizes == 1,
        "two": sizes == 2,
        "more": sizes > 2,
    }
    rows = [
        [Cell(name), _count(int(those.sum())), Cell.share(those.mean())]
        for name, those in kinds.items()
    ]
    words = (
        f"A set of classes holds the right one in {1 - ALPHA:.0%} of samples like the labelled "
        f"ones. Of the {len(sizes):,} {who}, those with one class are clear at this promise; those "
        "with none fit no class as well as others do, and are among the misses that it allows."
    )
    title = f"Sizes of the sets at {1 - ALPHA:.0%}"
    return joined(paragraph(words), table_html(title, ("classes", "samples", "share"), rows))
