"""Section about what to doubt: findings, given labels, single predictions, unknown classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import binom

from viewmend.protocols import FindsUnknown, GivesAdvice
from viewmend.report.asking import answer_of, id_cell
from viewmend.report.context import Case
from viewmend.report.findings import findings_html
from viewmend.report.html import (
    Cell,
    folded,
    joined,
    paragraph,
    part,
    table_html,
    tag,
)

# Least certain samples, suspects and strangers that are listed.
N_UNCERTAIN = 25
N_LISTED = 10
# Share of the samples of known classes that may be taken for strangers.
UNKNOWN_RATE = 0.05
# How unlikely so many strangers must be by chance before an unknown class is suspected.
UNLIKELY = 0.01


def doubt_section(case: Case) -> str:
    """What may be wrong with data, labels and predictions."""
    n_shown = min(N_UNCERTAIN, int(case.unlabelled.sum()))
    uncertain = folded(f"The least certain samples ({n_shown})", _uncertain(case), False)
    return joined(
        findings_html(case),
        _out_of_reach(case),
        part("Given labels that the data contradicts", _suspects(case)),
        part("Samples that fit no known class", _strangers(case)),
        part("Uncertain predictions", uncertain) if case.unlabelled.any() else "",
    )


def _suspects(case: Case) -> str:
    model = case.model
    if not isinstance(model, GivesAdvice):
        return ""
    return answer_of(
        lambda: _suspect_labels(case, model.suspect_labels()), "Labels are not compared"
    )


def _suspect_labels(case: Case, found: Any) -> str:
    n_labels, against = len(found.samples), np.flatnonzero(found.given != found.suggested)
    if len(against) == 0:
        return paragraph(f"The rest of the data contradicts none of the {n_labels:,} given labels.")
    rows = [
        [
            id_cell(case, int(found.samples[i])),
            Cell(str(found.given[i])),
            Cell(str(found.suggested[i])),
            Cell(f"{found.scores[i]:.2f}", float(found.scores[i])),
        ]
        for i in against[:N_LISTED]
    ]
    words = (
        f"For {len(against):,} of the {n_labels:,} given labels, the rest of the data suggests "
        "another class. Where classes are hard to tell apart, this happens to correct labels too. "
    )
    if found.n_suspects:
        words += (
            f"The estimated number of wrong labels is {found.n_suspects:,} "
            f"({found.noise_rate:.1%}). Where classes overlap, this is too high."
        )
    else:
        words += "The estimated number of wrong labels is 0."
    columns = ("sample", "given", "suggested", "score")
    table = table_html("Most suspect labels", columns, rows)
    title = "Look at the first of them; the score is from 0 to 1, the most suspect on top"
    return joined(paragraph(words), folded(title, table, found.n_suspects > 0))


def _strangers(case: Case) -> str:
    model = case.model
    if not isinstance(model, FindsUnknown):
        return ""
    return answer_of(lambda: _unknown_samples(case, model), "Such samples are not looked for")


def _unknown_samples(case: Case, model: FindsUnknown) -> str:
    unknown = np.asarray(model.decide(unknown_rate=UNKNOWN_RATE).unknown)
    scores = model.unknown_score()
    asked = case.unlabelled & ~np.isnan(scores)
    rows, n = np.flatnonzero(unknown & asked), int(asked.sum())
    count = (
        f"Unlabelled samples that lie farther from the known classes than {1 - UNKNOWN_RATE:.0%} "
        f"of the labelled samples do: {len(rows):,} of {n:,}. Up to about {UNKNOWN_RATE * n:.0f} "
        "may, even if every sample is of a known class."
    )
    if not _too_many(len(rows), n):
        return paragraph(f"{count} There is no sign of a class without labels.")
    words = paragraph(
        f"{count} That is more than expected: look whether the first of them are of a class that "
        "has no label yet. Where few samples have labels, it may also be chance."
    )
    first = rows[np.argsort(-scores[rows], kind="stable")][:N_LISTED].tolist()
    lines = [
        [id_cell(case, row), Cell(str(case.classes[case.told[row]])), Cell.share(scores[row])]
        for row in first
    ]
    columns = ("sample", "predicted", "labelled samples that fit better")
    return joined(words, table_html("Samples that fit the known classes least", columns, lines))


def _too_many(n_found: int, n: int) -> bool:
    """Whether so many of ``n`` samples are rare, were the rate of known samples exact.

    It comes from few labels, so that this asks for a look and proves nothing.
    """
    return bool(binom.sf(n_found - 1, n, UNKNOWN_RATE) < UNLIKELY)


def _uncertain(case: Case) -> str:
    """Table of the samples that the model is least sure of."""
    rows = np.flatnonzero(case.unlabelled)
    rows = rows[np.argsort(case.confidence[rows], kind="stable")][:N_UNCERTAIN]
    shares = case.model.label_distributions_
    columns = ["sample", "predicted", "confidence", "second class", "its probability"]
    columns += ["views observed"] if case.observed is not None else []
    columns += ["true class"] if case.judged.any() else []
    true = dict(zip(np.flatnonzero(case.judged).tolist(), case.true.tolist(), strict=True))
    lines = []
    for row in rows.tolist():
        second = int(np.argsort(shares[row], kind="stable")[-2])
        line = [
            id_cell(case, row),
            Cell(str(case.classes[case.told[row]])),
            Cell.share(case.confidence[row]),
            Cell(str(case.classes[second])),
            Cell.share(shares[row, second]),
        ]
        line += [Cell(_views_seen(case, row))] if case.observed is not None else []
        line += [_true_cell(case, row, true)] if case.judged.any() else []
        lines.append(line)
    return table_html("Least certain samples", columns, lines)


def _views_seen(case: Case, row: int) -> str:
    seen = () if case.observed is None else case.observed[row]
    return ", ".join(
        name for name, is_seen in zip(case.model.view_names_, seen, strict=True) if is_seen
    )


def _true_cell(case: Case, row: int, true: dict[int, int]) -> Cell:
    if row not in true:
        return Cell("")
    return Cell(
        str(case.classes[true[row]]), looks="right" if true[row] == case.told[row] else "wrong"
    )


def _out_of_reach(case: Case) -> str:
    """What is said of samples that no path joins to a label."""
    lost = np.flatnonzero(case.unreachable)
    if len(lost):
        names = ", ".join(map(str, case.ids[lost[:N_UNCERTAIN]]))
        more = f" and {len(lost) - N_UNCERTAIN} more" if len(lost) > N_UNCERTAIN else ""
        words = (
            f"{len(lost)} samples are unreachable: nothing joins them to a label, and they get the "
            f"class shares of the labelled samples. Label some of them. They are: {names}{more}."
        )
        return tag("div", paragraph(words), class_="warn")
    off_graph = int(np.sum(getattr(case.model, "off_graph_", 0)))
    if off_graph:
        return paragraph(
            f"No chain of neighbours joins {off_graph} samples to a label. Their classes rest on "
            "the regressions on their views alone."
        )
    return ""
