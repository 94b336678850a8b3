"""The accuracy of a classifier on samples whose labels are known."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from viewmend.data.class_names import check_of_classes
from viewmend.data.given_labels import labels_for, values_for
from viewmend.data.labels import check_length, labelled_part
from viewmend.distributed.lazy import check_index_with, is_lazy
from viewmend.exceptions import InvalidParameterError
from viewmend.parameters import short


class Predictor(Protocol):
    """A classifier of new samples."""

    classes_: np.ndarray

    def predict(self, X: Any, mask: ArrayLike | None = None) -> np.ndarray:
        """Classes (n_new,)."""


def score_labelled(
    model: Predictor, X: Any, y: Any, sample_weight: ArrayLike | None, mask: ArrayLike | None
) -> float:
    """Accuracy of ``predict`` on the labelled samples.

    Samples whose ``y`` (n_samples,) is -1, None or NaN are unlabelled and do not count.
    """
    if is_lazy(X):
        check_index_with(X, y, "y")
    y = labels_for(X, y)
    rows, classes = labelled_part(y)
    predicted = np.asarray(model.predict(X, mask))
    check_length(len(y), len(predicted))
    check_of_classes(classes, model.classes_)
    weights = None if sample_weight is None else _weights(X, sample_weight, rows, len(y))
    # As objects, because NumPy does not compare strings with numbers.
    hits = predicted[rows].astype(object) == classes.astype(object)
    return float(np.average(hits, weights=weights))


def _weights(X: Any, sample_weight: ArrayLike, rows: np.ndarray, n_samples: int) -> np.ndarray:
    """Weights (n_labelled,) of the labelled ``rows`` of ``X`` in a score."""
    weights = np.asarray(values_for(X, sample_weight, "sample_weight"), dtype=np.float64)
    one_each = weights.shape == (n_samples,)
    if not one_each or not np.all(weights >= 0) or not 0 < weights[rows].sum() < np.inf:
        msg = (
            f"sample_weight must be a number from 0 for each of the {n_samples} samples, more for "
            f"a labelled one, got {short(weights.tolist())} of shape {weights.shape}; leave it out "
            f"to count all labels the same"
        )
        raise InvalidParameterError(msg)
    return weights[rows]
