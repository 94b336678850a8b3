"""Hold out labels fold by fold, and predict them by fits that share what needs no labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from viewmend.data.labels import Labels
from viewmend.exceptions import DataWarning, InvalidLabelsError
from viewmend.models.base import TwoStepClassifier, ViewLayout

N_FOLDS = 5

# Gives scores (n_held_out, n_classes) of labelled samples without their own label, and their codes
# (n_held_out,), in an order that does not depend on that of the data.
HoldOut = Callable[[], tuple[np.ndarray, np.ndarray]]


def label_folds(codes: np.ndarray, order: np.ndarray, n_folds: int) -> list[np.ndarray]:
    """Labelled samples in folds, none of them empty: split class by class, in the given order.

    ``codes`` (n_samples,) are -1 for unlabelled samples. A class with a single label stays out of
    all folds: held out, it would be unknown.
    """
    known = order[codes[order] >= 0]
    # Classes as they come, not by code: other names for them give the same folds.
    _, first, counts = np.unique(codes[known], return_index=True, return_counts=True)
    several = codes[known[np.sort(first[counts > 1])]]
    if len(several) == 0:
        msg = (
            "every class has a single label, so that none can be held out; label two samples of "
            "some class, or use the estimator with its own parameters"
        )
        raise InvalidLabelsError(msg)
    # One row of cards: where a class ends the next one goes on, so that folds are of one size.
    cards = np.concatenate([known[codes[known] == code] for code in several])
    return [cards[turn::n_folds] for turn in range(min(n_folds, len(cards)))]


def labels_without(held_out: np.ndarray, labels: Labels) -> Labels:
    """The labels of all other samples."""
    codes = labels.codes.copy()
    codes[held_out] = -1
    return Labels(labels.classes, codes)


def silent(model: TwoStepClassifier) -> TwoStepClassifier:
    """A clone without calibration, which does not change the classes."""
    return clone(model).set_params(calibration=None, verbose=0).set_callbacks()


def fit_silently(
    model: TwoStepClassifier, layout: ViewLayout, geometry: Any, labels: Labels
) -> None:
    """Fit to some of the labels, without the warnings that the fit to all of them gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DataWarning)
        model.fit_prepared(layout, geometry, labels)


def cross_fitted(
    model: TwoStepClassifier, geometry: Any, order: np.ndarray, labels: Labels
) -> tuple[np.ndarray, np.ndarray]:
    """Class shares of held-out samples by fits that did not see their labels, and their codes.

    Labels are split into folds in the ``order`` (n_samples,). Shares (n_held_out, n_classes) are
    uncalibrated; classes of a single label are left out.
    """
    if labels.counts().max() < 2:
        return np.empty((0, labels.n_classes)), np.empty(0, dtype=np.int64)
    folds = label_folds(labels.codes, order, N_FOLDS)
    layout = ViewLayout(model.view_names_, model.view_n_features_, model.observed_, {})
    shares = []
    for turn, fold in enumerate(folds):
        model.tell_stage(f"calibration {turn + 1} of {len(folds)}", turn, len(folds))
        other = silent(model)
        fit_silently(other, layout, geometry, labels_without(fold, labels))
        shares.append(np.asarray(other.label_distributions_[fold]))
    return np.concatenate(shares), labels.codes[np.concatenate(folds)]
