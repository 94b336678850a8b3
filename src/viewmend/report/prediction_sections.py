"""Section about the predicted classes, and how sure the model is of them."""

from __future__ import annotations

from functools import partial

import numpy as np

from viewmend.core.common.calibration import BINS, Calibration
from viewmend.plot.bars import plot_class_counts
from viewmend.plot.confidence import plot_class_confidence, plot_confidence, plot_reliability
from viewmend.protocols import GivesAdvice
from viewmend.report.asking import answer_of
from viewmend.report.context import THRESHOLD, Case
from viewmend.report.html import Cell, advice, count_cell, joined, paragraph, part, table_html
from viewmend.report.pictures import SQUARE, USUAL, picture, side_by_side

# Samples that a dot of a small reliability diagram stands for at least.
FEWEST_IN_BIN = 10
# Share of the sets that may miss the right class.
ALPHA = 0.1


def classes_section(case: Case) -> str:
    """How many samples have which class, how sure the model is, and whether it may be."""
    pictures = _by_class(case)
    if case.unlabelled.any():
        pictures.append(_histogram(case))
    if case.calibration is not None:
        pictures.append(_calibration(case.calibration))
    hint = "" if case.given is not None else advice("Pass the labels of fit as `y=` to see theirs.")
    return joined(side_by_side(*pictures), hint, _by_views(case), _sets(case))


def _by_class(case: Case) -> list[str]:
    """Pictures of numbers of samples and of confidence, class by class."""
    n_classes, names = len(case.classes), case.classes
    predicted = np.bincount(case.told, minlength=n_classes)
    counts = {"predicted": predicted}
    if case.given is not None:
        given = np.zeros(n_classes, dtype=np.int64)
        given[: case.given.n_classes] = case.given.counts()
        counts = {"given": given, "predicted": predicted}
    size = USUAL[0], float(np.clip(0.26 * n_classes + 1.2, 2.4, 9.0))
    return [
        picture(
            lambda ax: plot_class_counts(counts, names, ax),
            "Samples of every class; predicted ones include those with a given label.",
            "classes",
            size,
        ),
        picture(
            lambda ax: plot_class_confidence(case.confidence, names[case.told], names, ax),
            "Confidence in each predicted class. Dot: median; thick line: the middle half of the "
            "samples; thin line: the middle 90%.",
            "sureness",
            size,
        ),
    ]


def _histogram(case: Case) -> str:
    shown = case.unlabelled
    who = "samples without a given label" if case.given is not None else "samples"
    right = (case.told[case.judged] == case.true) if case.judged.any() else None
    if right is not None:
        shown, who = case.judged, "judged samples"
    draw = partial(plot_confidence, case.confidence[shown], right=right)
    caption = f"Confidence in the predicted class of the {shown.sum():,} {who}."
    return picture(draw, caption, "confidence")


def _calibration(calibration: Calibration) -> str:
    """What the confidence was fitted to: given labels, each predicted without itself."""
    caption = (
        f"Is the confidence right? {calibration.n_samples:,} given labels, each predicted without "
        "itself. On the diagonal, 80% of the samples with a confidence of 80% are right. The "
        "confidence was fitted to these labels, and may be less right for other samples."
    )
    n_bins = max(1, min(BINS, calibration.n_samples // FEWEST_IN_BIN))
    draw = partial(plot_reliability, calibration.confidence, calibration.correct, n_bins=n_bins)
    return picture(draw, caption, "calibration", SQUARE)


def _by_views(case: Case) -> str:
    """Table of the confidence by the number of views that samples have."""
    if case.observed is None or case.observed.shape[1] < 2 or case.observed.all():
        return ""
    n_seen = case.observed.sum(axis=1)
    right = np.full(case.n_samples, np.nan)
    right[case.judged] = case.told[case.judged] == case.true
    rows = []
    for count in np.unique(n_seen[case.unlabelled]).tolist():
        those = case.unlabelled & (n_seen == count)
        judged = right[those & case.judged]
        line = [
            count_cell(count),
            count_cell(int(those.sum())),
            Cell.share(case.confidence[those].mean()),
            Cell.share((case.confidence[those] >= THRESHOLD).mean()),
        ]
        line += [Cell.share(judged.mean() if len(judged) else np.nan)] if case.judged.any() else []
        rows.append(line)
    columns = ["views", "samples", "mean confidence", f"{THRESHOLD:.0%} or more"]
    columns += ["accuracy"] if case.judged.any() else []
    return table_html("Confidence by number of views", columns, rows)


def _sets(case: Case) -> str:
    """How many classes samples may have, at a promise; why there is none, if labels are too few."""
    model = case.model
    if not isinstance(model, GivesAdvice):
        return ""
    told = answer_of(
        lambda: _set_sizes(case, model.predict_set(alpha=ALPHA)), "Sets of classes are not counted"
    )
    return part("Samples with more than one possible class", told)


def _set_sizes(case: Case, sets: np.ndarray) -> str:
    """Table of how many samples have so many classes in their sets."""
    who = "samples without a given label" if case.given is not None else "samples"
    sizes = sets[case.unlabelled].sum(axis=1)
    if len(sizes) == 0:
        return paragraph("Every sample has a given label, and its set is that class alone.")
    kinds = {
        "one": sizes == 1,
        "two": sizes == 2,
        "more": sizes > 2,
        "none": sizes == 0,
    }
    rows = [
        [Cell(name), count_cell(int(those.sum())), Cell.share(those.mean())]
        for name, those in kinds.items()
    ]
    words = (
        f"Instead of one class, the model can give a set of classes for every sample, such that "
        f"about {1 - ALPHA:.0%} of the sets contain the right one, for samples like the labelled "
        f"ones. The table counts the sets of the {len(sizes):,} {who}. One class: the sample is "
        "clear. None: it fits no class as well as other samples do."
    )
    title = f"Sizes of the sets at {1 - ALPHA:.0%}"
    return joined(paragraph(words), table_html(title, ("classes", "samples", "share"), rows))
