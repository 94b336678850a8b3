"""``viewmend evaluate``: how accurate and how well calibrated a model is."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from sklearn.metrics import (
    average_precision_score,
    precision_recall_fscore_support,
    roc_auc_score,
)

from viewmend.bench.metrics import scores
from viewmend.cli import options
from viewmend.cli.answers import Answers, answer, origin_for, read_for
from viewmend.cli.console import json_label, refusals, say, short_warnings, show_table, write_json
from viewmend.core.common.calibration import calibration_error, log_loss
from viewmend.data import MultiViewData
from viewmend.data.labels import labelled_part
from viewmend.exceptions import InvalidLabelsError
from viewmend.parameters import short
from viewmend.persistence import load

HEADLINES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "macro_f1": "macro F1",
    "auc": "area under the ROC curve, mean over classes",
    "average_precision": "average precision, mean over classes",
    "log_loss": "log loss",
    "calibration_error": "calibration error",
}


def evaluate(
    model: options.FitFile,
    data: options.Data,
    labels: options.Labels = None,
    id_column: options.IdColumn = None,
    unlabelled: options.Unlabelled = None,
    view: options.Views = None,
    unreadable_as_missing: options.UnreadableAsMissing = False,
    as_json: options.AsJson = False,
) -> None:
    """Compare the predictions of a model with true labels.

    Samples whose labels the model was given never count; they are recognised by their content and
    by their identifiers. Other samples of the fit are scored by the class that the fit found, new
    samples by their prediction.

    `viewmend evaluate model.vm data/ --labels truth.csv`
    """
    with refusals(), short_warnings(Console(stderr=True)) as notes:
        known = load(model)
        origin_for(known, model)
        request = options.request_for(
            id_column, labels, unlabelled, view, None, unreadable_as_missing
        )
        aligned = read_for(known, data, request)
        summary = _judge(known.classes_, aligned, answer(known, aligned))
    if as_json:
        write_json(summary | {"notes": notes})
    else:
        _show(Console(), summary)


def _judge(classes: np.ndarray, aligned: MultiViewData, answers: Answers) -> dict[str, Any]:
    """Scores over the samples whose true classes are known and were not given."""
    if aligned.y is None or all(label is None for label in aligned.y):
        msg = "the data holds no labels; name their column, or a file of labels, with --labels"
        raise InvalidLabelsError(msg)
    rows, truth = labelled_part(aligned.y)
    fresh = ~answers.given[rows]
    rows, truth = rows[fresh], truth[fresh]
    if len(rows) == 0:
        msg = (
            f"none of the {len(fresh)} labels can be used, because the model was given all of "
            "them; pass labels of other samples"
        )
        raise InvalidLabelsError(msg)
    frame = answers.frame.iloc[rows]
    told = frame["class"].to_numpy()
    return {
        "n_judged": len(rows),
        "n_of_fit": int((answers.fit_rows[rows] >= 0).sum()),
        "n_given": int((~fresh).sum()),
        **_scores(truth, told, frame.iloc[:, 2:].to_numpy(), classes),
        "classes": _by_class(truth, told),
    }


def _scores(
    truth: np.ndarray, told: np.ndarray, shares: np.ndarray, classes: np.ndarray
) -> dict[str, Any]:
    """Accuracies and macro F1 over all; the others over samples of the classes that were fitted."""
    place = {label: code for code, label in enumerate(classes.tolist())}
    codes = np.array([place.get(label, -1) for label in truth.tolist()])
    if (codes < 0).all():
        msg = (
            f"the labels must be classes of the model, {short(classes.tolist())}, but are "
            f"{short(sorted({str(label) for label in truth}))}; check the spelling"
        )
        raise InvalidLabelsError(msg)
    found = scores(truth, told)
    fitted = codes >= 0
    return {
        "accuracy": found["accuracy"],
        # Mean recall over the true classes.
        "balanced_accuracy": found["macro_recall"],
        "macro_f1": found["macro_f1"],
        **_rankings(shares[fitted], codes[fitted], classes),
        "log_loss": log_loss(shares[fitted], codes[fitted]),
        "calibration_error": calibration_error(shares[fitted], codes[fitted]),
        "n_unknown_class": int((~fitted).sum()),
    }


def _rankings(shares: np.ndarray, codes: np.ndarray, classes: np.ndarray) -> dict[str, Any]:
    """How well the probability of each class ranks the samples: it against the rest, and the mean.

    ``shares`` are (n_judged, n_classes), and ``codes`` (n_judged,). A class that none of the
    samples has, or all of them, cannot be ranked: it is left out of the means and named.
    """
    is_class = codes[:, None] == np.arange(len(classes))
    ranked = is_class.any(axis=0) & ~is_class.all(axis=0)
    parts = {"auc": roc_auc_score, "average_precision": average_precision_score}
    means = {
        name: float(score(is_class[:, ranked], shares[:, ranked], average="macro"))
        for name, score in parts.items()
        if ranked.any()
    }
    left_out = [json_label(label) for label in classes[~ranked]]
    return dict.fromkeys(parts) | means | {"classes_not_ranked": left_out}


def _by_class(truth: np.ndarray, told: np.ndarray) -> list[dict[str, Any]]:
    names = np.unique(truth)
    columns = precision_recall_fscore_support(truth, told, labels=names, zero_division=0)
    return [
        {
            "label": json_label(name),
            "precision": float(precision),
            "recall": float(recall),
            "f1": float(f1),
            "n_judged": int(support),
        }
        for name, precision, recall, f1, support in zip(names, *columns, strict=True)
    ]


def _show(console: Console, summary: dict[str, Any]) -> None:
    lines = [
        f"{summary['n_judged']} samples judged, {summary['n_of_fit']} of which were in the fit; "
        f"{summary['n_given']} whose labels the model was given are left out",
        *(
            f"{title}: {summary[name]:.3f}"
            for name, title in HEADLINES.items()
            if summary[name] is not None
        ),
    ]
    if absent := summary["classes_not_ranked"]:
        lines.append(
            f"the means over classes leave out {short(absent)}, because none or all of these "
            "samples are of that class"
        )
    if summary["n_unknown_class"]:
        lines.append(f"{summary['n_unknown_class']} samples are of classes unknown to the model")
    say(console, *lines, wrap=True)
    show_table(console, summary["classes"])
