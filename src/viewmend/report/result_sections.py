"""Section about how right the model is, by held-out labels and, where known, by true ones."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from viewmend.plot.confidence import plot_reliability
from viewmend.plot.confusion import plot_confusion
from viewmend.plot.style import label_inches, label_texts
from viewmend.report.context import THRESHOLD, Case
from viewmend.report.html import (
    Cell,
    advice,
    count_cell,
    facts_html,
    joined,
    paragraph,
    part,
    table_html,
)
from viewmend.report.pictures import SQUARE, WIDE, picture, side_by_side

# Confidences below which predictions might be withheld.
THRESHOLDS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
# Inches that a class needs in the picture of confusions, and what is around it beside the names.
ROW, AROUND = 0.12, 0.8


def result_section(case: Case) -> str:
    """How accurate the model is estimated to be, how much it answers, and how right that was."""
    return joined(_estimate(case), _answers(case), _scores(case))


def _estimate(case: Case) -> str:
    """How accurate the model is, as far as held-out labels tell."""
    estimate = case.estimate
    if estimate is None:
        return paragraph(
            "The accuracy is not estimated, because no label was held out: this needs a class "
            "with two labels, in different groups if there are groups, and the default "
            "calibration of MendClassifier."
        )
    low, high = estimate.interval
    verdict = (
        "The model is better than that."
        if estimate.beats_guessing
        else "The model is not shown to be better than that."
    )
    return joined(
        paragraph(
            f"Estimated accuracy: {estimate.accuracy:.0%}, between {low:.0%} and {high:.0%} with "
            f"95% confidence. To estimate it, {estimate.n_held_out:,} given "
            f"labels{estimate.of_groups} were hidden from shorter fits, which predicted "
            f"{estimate.n_right:,} of them correctly. Always predicting the most frequent class "
            f"would be right for {estimate.majority:.0%}, a random class for "
            f"{estimate.chance:.0%}. {verdict}"
        ),
        paragraph(
            "The model itself has learned from all labels, so it is usually a little better. The "
            "estimate holds for samples like the labelled ones: if these were chosen by class or "
            "by convenience, it may not hold for the rest. If several rows are of one patient or "
            "one site, it is too high, unless they were passed to the fit as groups."
        ),
    )


def _answers(case: Case) -> str:
    """How many unlabelled samples get a class at the usual confidence."""
    n = int(case.unlabelled.sum())
    if case.calibration is None or not n:
        return ""
    sure = int(np.sum(~case.abstained & case.unlabelled))
    who = "unlabelled samples" if case.given is not None else "samples"
    return paragraph(
        f"Of the {n:,} {who}, {sure:,} ({sure / n:.0%}) have a predicted class with a confidence "
        f"of {THRESHOLD:.0%} or more."
    )


def _scores(case: Case) -> str:
    """How right the model is, where the truth is known."""
    if case.truth is None:
        return advice(
            "Pass true labels as `y_true=`, -1 where unknown, to see scores; on the command line, "
            "as `viewmend report --labels`."
        )
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
            _confusion_size(names),
        ),
        picture(
            lambda ax: plot_reliability(sure, right, ax),
            "Of the samples with a confidence of 80%, about 80% should be right: the diagonal.",
            "reliability",
            SQUARE,
        ),
    ]
    return part(
        "Compared with true classes",
        _score_facts(case),
        side_by_side(*pictures),
        _class_scores(case),
        _withholding(sure, right),
    )


def _confusion_size(names: Iterable[object]) -> tuple[float, float]:
    """Width and height of the picture in which every class can be named."""
    texts = label_texts(names)
    side = min(len(texts) * ROW + label_inches(texts) + AROUND, WIDE[0])
    return max(SQUARE[0], side), max(SQUARE[1], side)


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
        ("accuracy", f"{accuracy_score(case.true, told):.1%}"),
        ("macro F1", f"{macro_f1:.1%}"),
        ("judged samples", f"{len(told):,}"),
    ]
    strange = case.true >= len(case.model.classes_)
    if strange.any():
        named = ", ".join(str(case.classes[label]) for label in np.unique(case.true[strange]))
        words = f"{strange.sum():,} of them, which count as wrong: {named}"
        facts.append(("of classes without a label", words))
    if case.given is None:
        warning = (
            "The labels of fit were not passed, so that samples with a given label are judged "
            "too, and the scores are too good. Pass them as `y=`."
        )
        return joined(facts_html(facts), advice(warning))
    return facts_html(facts)


def _withholding(sure: np.ndarray, right: np.ndarray) -> str:
    """Table of what is gained by using only predictions of high confidence."""
    rows = []
    for threshold in THRESHOLDS:
        answered = sure >= threshold
        hit_rate = float(right[answered].mean()) if answered.any() else np.nan
        rows.append(
            [
                Cell(f"{threshold:.0%}", threshold),
                Cell.share(answered.mean()),
                Cell.share(hit_rate),
            ]
        )
    columns = ("lowest confidence", "samples with a class", "accuracy of these")
    return table_html("If the model abstains below a confidence", columns, rows)


def _class_scores(case: Case) -> str:
    labels = np.unique(case.true)
    told = case.told[case.judged]
    scores = precision_recall_fscore_support(case.true, told, labels=labels, zero_division=0)
    rows = [
        [
            Cell(str(case.classes[label])),
            *map(Cell.share, (precision, recall, f1)),
            count_cell(int(count)),
        ]
        for label, precision, recall, f1, count in zip(labels, *scores, strict=True)
    ]
    columns = ("class", "precision", "recall", "F1", "samples")
    return table_html("Scores by class", columns, rows)
