"""How well the unlabelled samples of a task were labelled."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import precision_recall_fscore_support

# Names in records.
METRICS = ("accuracy", "macro_precision", "macro_recall", "macro_f1")


def scores(truth: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Accuracy and plain means over the true classes, in [0, 1], by the names of `METRICS`.

    The arrays are (n_judged,); the precision of a class that is never predicted counts as 0.
    """
    precision, recall, f1, _ = precision_recall_fscore_support(
        truth, predicted, labels=np.unique(truth), average="macro", zero_division=0
    )
    values = (np.mean(truth == predicted), precision, recall, f1)
    return {name: float(value) for name, value in zip(METRICS, values, strict=True)}
