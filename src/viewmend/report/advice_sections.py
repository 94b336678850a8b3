"""Section about what to do next, of models that give advice."""

from __future__ import annotations

from typing import Any

from viewmend.protocols import GivesAdvice
from viewmend.report.asking import answer_of, id_cell
from viewmend.report.context import Case
from viewmend.report.html import Cell, count_cell, joined, paragraph, part, table_html

# Samples to label and pairs that are listed, and samples that are named by view.
N_LISTED = 10
N_NAMED = 5


def next_section(case: Case) -> str:
    """Samples whose label, and missing views whose measurement, would help most."""
    model = case.model
    if not isinstance(model, GivesAdvice):
        return ""
    return joined(
        part(
            "Label",
            answer_of(
                lambda: _to_label(case, model.suggest_labels(N_LISTED)), "No label is suggested"
            ),
        ),
        part(
            "Measure",
            answer_of(
                lambda: _to_measure(case, model.suggest_views()), "No measurement is suggested"
            ),
        ),
    )


def _to_label(case: Case, found: Any) -> str:
    if len(found) == 0:
        return paragraph(f"{found.summary()[:1].upper()}{found.summary()[1:]}.")
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
        "These missing views are worth measuring. For each view, the table has how many more "
        "predictions are expected to be correct, and how many labels would bring as many. The gain "
        "of a sample is the expected increase of the probability that its class is right."
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
        labels = Cell("more than all") if worth.n_labels is None else count_cell(worth.n_labels)
        rows.append(
            [
                Cell(worth.view),
                count_cell(worth.n_pairs),
                Cell(f"{worth.gain:.1f}", worth.gain),
                labels,
                Cell(", ".join(map(str, case.ids[samples])) + more, looks="text"),
            ]
        )
    columns = (
        "view",
        "samples",
        "more correct predictions",
        "worth so many labels",
        "first of them",
    )
    return table_html("Views to measure", columns, rows)
