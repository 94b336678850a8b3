"""How well the unlabelled samples of a task were labelled."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from sklearn.metrics import precision_recall_fscore_support

__all__ = ["METRICS", "scores"]

# Names in records, and titles for tables.
METRICS: Mapping[str, str] = {
    "accuracy": "accuracy",
    "macro_precision": "macro precision",
    "macro_recall": "macro recall",
    "macro_f1": "macro F1",
}


def scores(truth: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Accuracy and plain means over the true classes.

    Parameters
    ----------
    truth, predicted : array (n_judged,)
        The precision of a class that is never predicted counts as 0.

    Returns
    -------
    dict of float in [0, 1]
        By the names of `METRICS`.
    """
    precision, recall, f1, _ = precision_recall_fscore_support(
        truth, predicted, labels=np.unique(truth), average="macro", zero_division=0
    )
    values = (np.mean(truth == predicted), precision, recall, f1)
    return {name: float(value) for name, value in zip(METRICS, values, strict=True)}
