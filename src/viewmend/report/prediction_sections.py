"""Sections about what the model says of the samples, and how right it is."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from viewmend.core.common.calibration import BINS, Calibration
from viewmend.plot.bars import plot_class_counts
from viewmend.plot.confidence import plot_class_confidence, plot_confidence, plot_reliability
from viewmend.plot.confusion import plot_confusion
from viewmend.report.context import THRESHOLD, Case
from viewmend.report.html import Cell, advice, facts_html, joined, paragraph, table_html, tag
from viewmend.report.pictures import picture, side_by_side

# Least certain samples shown, and confidences below which predictions might be withheld.
N_UNCERTAIN = 25
# Samples that a dot of a small reliability diagram stands for at least.
FEWEST_IN_BIN = 10
THRESHOLDS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


def classes_section(case: Case) -> str:
    """How many samples of each class were given and predicted."""
    n_classes, names = len(case.classes), case.classes
    predicted = np.bincount(case.told, minlength=n_classes)
    counts = {"predicted": predicted}
    if case.given is not None:
        given = np.zeros(n_classes, dtype=np.int64)
        given[: case.given.n_classes] = case.given.counts()
        counts = {"given": given, "predicted": predicted}
    height = float(np.clip(0.24 * n_classes + 1.2, 3.0, 9.0))
    pictures = [
        picture(
            lambda ax: plot_class_counts(counts, names, ax),
            "Samples of every class; predicted ones include those with a given label.",
            "classes",
            (5.4, height),
        ),
        picture(
            lambda ax: plot_class_confidence(case.confidence, names[case.told], names, ax),
            "Confidence in each predicted class: median, middle half and middle nine tenths.",
            "sureness",
            (5.4, height),
        ),
    ]
    hint = "" if case.given is not None else advice("Pass the labels of fit as `y=` to see theirs.")
    return joined(side_by_side(*pictures), hint)


def confidence_section(case: Case) -> str:
    """How sure the model is, the samples it is least sure of, and those it cannot reach."""
    shown = case.unlabelled
    who = "samples without a given label" if case.given is not None else "samples"
    right = (case.told[case.judged] == case.true) if case.judged.any() else None
    if right is not None:
        shown, who = case.judged, "judged samples"
    draw = partial(plot_confidence, case.confidence[shown], right=right)
    caption = f"Share of the predicted class of the {shown.sum():,} {who}."
    pictures = [picture(draw, caption, "confidence")]
    if case.calibration is not None:
        pictures.append(_calibration(case.calibration))
    return joined(_estimate(case), side_by_side(*pictures), _uncertain(case), _out_of_reach(case))


def _estimate(case: Case) -> str:
    """How accurate the model is, as far as held-out labels tell."""
    if case.estimate is None:
        return paragraph(
            "The accuracy is not estimated, because no label was held out: that takes two labels "
            "of a class, and the default calibration of MendClassifier."
        )
    caveat = "Fits with fewer labels were asked, so that the model is if anything better."
    return paragraph(f"{str(case.estimate).capitalize()}. {caveat}")


def _calibration(calibration: Calibration) -> str:
    """What the confidence was fitted to: given labels, each predicted without itself."""
    caption = (
        f"Calibration on {calibration.n_samples:,} given labels, each predicted without itself; "
        f"the temperature fitted to them is {calibration.temperature:.3g}."
    )
    n_bins = max(1, min(BINS, calibration.n_samples // FEWEST_IN_BIN))
    draw = partial(plot_reliability, calibration.confidence, calibration.correct, n_bins=n_bins)
    return picture(draw, caption, "calibration", (5.4, 4.4))


def _uncertain(case: Case) -> str:
    """Table of the samples that the model is least sure of."""
    rows = np.flatnonzero(case.unlabelled)
    rows = rows[np.argsort(case.confidence[rows], kind="stable")][:N_UNCERTAIN]
    shares = case.model.label_distributions_
    columns = ["sample", "predicted", "confidence", "runner-up", "its share"]
    columns += ["views seen"] if case.observed is not None else []
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


def id_cell(case: Case, row: int) -> Cell:
    """The name of a sample, which sorts by its number if it is one."""
    return Cell(str(case.ids[row]), row if case.ids.dtype.kind in "iu" else None)


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
            f"Every sample is reached. {off_graph} of them are joined to no label by the graph; "
            "what is said of them rests on the regressions on their views."
        )
    return paragraph("Every sample is reached by some label.")


def scores_section(case: Case) -> str:
    """How right the model is, where the truth is known."""
    if case.truth is None:
        return advice("Pass true labels as `y_true=`, -1 where unknown, to see scores.")
    if not case.judged.any():
        return paragraph("Every sample with a true label was given that label in fit.")
    judged = case.judged
    told, sure = case.told[judged], case.confidence[judged]
    names, right = case.classes, told == case.true
    pictures = [
        picture(
            lambda ax: plot_confusion(
                names[case.true], names[told], names, ax, case.abstained[judged]
            ),
            f"Confusion in percent of each true class; abstained: {_abstention(case)}.",
            "confusion",
            (5.4, 5.2),
        ),
        picture(
            lambda ax: plot_reliability(sure, right, ax),
            "Of samples that the model is 80% sure of, it should get 80% right: the diagonal.",
            "reliability",
            (5.4, 5.2),
        ),
    ]
    return joined(
        _score_facts(case),
        side_by_side(*pictures),
        _withholding(sure, right),
        _class_scores(case),
    )


def _abstention(case: Case) -> str:
    if case.calibration is None:
        return "samples out of reach"
    return f"samples out of reach or of less than {THRESHOLD:.0%} confidence"


def _score_facts(case: Case) -> str:
    told = case.told[case.judged]
    macro_f1 = precision_recall_fscore_support(
        case.true, told, labels=np.unique(case.true), average="macro", zero_division=0
    )[2]
    facts = [
        ("accuracy", f"{accuracy_score(case.true, told):.2%}"),
        ("macro F1", f"{macro_f1:.2%}"),
        ("judged samples", f"{len(told):,}"),
    ]
    if case.given is None:
        warning = (
            "The labels of fit were not passed, so that samples with a given label are judged "
            "too, and the scores are too good. Pass them as `y=`."
        )
        return joined(facts_html(facts), advice(warning))
    return facts_html(facts)


def _withholding(sure: np.ndarray, right: np.ndarray) -> str:
    """Table of what is gained by giving out only predictions of high confidence."""
    rows = []
    for threshold in THRESHOLDS:
        answered = sure >= threshold
        hit_rate = right[answered].mean() if answered.any() else None
        accuracy = Cell("") if hit_rate is None else Cell(f"{hit_rate:.2%}", hit_rate)
        rows.append([Cell(f"{threshold:.0%}", threshold), Cell.share(answered.mean()), accuracy])
    columns = ("lowest confidence given out", "samples answered", "accuracy of the answers")
    return table_html("If the model abstains below a confidence", columns, rows)


def _class_scores(case: Case) -> str:
    labels = np.unique(case.true)
    told = case.told[case.judged]
    scores = precision_recall_fscore_support(case.true, told, labels=labels, zero_division=0)
    rows = [
        [
            Cell(str(case.classes[label])),
            *map(Cell.share, (precision, recall, f1)),
            Cell(f"{count:,}", int(count)),
        ]
        for label, precision, recall, f1, count in zip(labels, *scores, strict=True)
    ]
    columns = ("class", "precision", "recall", "F1", "samples")
    return table_html("Scores by class", columns, rows)
