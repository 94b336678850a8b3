"""Hold out labels fold by fold, and predict them by fits that share what needs no labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from viewmend.data.labels import Labels
from viewmend.exceptions import DataWarning
from viewmend.models.base import TwoStepClassifier, ViewLayout
from viewmend.models.label_folds import label_folds, some_can_be_held_out

N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Labelled samples scored without their own label, in an order of their content.

    ``scores`` (n_held_out, n_classes), ``codes`` (n_held_out,) of their classes, and in how many
    groups they were held out, all of them and those of every class (n_classes,), None if one by
    one.
    """

    scores: np.ndarray
    codes: np.ndarray
    n_groups: int | None = None
    class_groups: np.ndarray | None = None

    @classmethod
    def of_folds(
        cls, scores: Sequence[np.ndarray], folds: Sequence[np.ndarray], labels: Labels
    ) -> HeldOut:
        """Of samples in folds, and their scores by fits that did not see the labels of a fold."""
        rows, groups = np.concatenate(folds), labels.groups
        n_groups = None if groups is None else len(np.unique(groups[rows]))
        scored = np.concatenate(scores), labels.codes[rows]
        return cls(*scored, n_groups, labels.group_counts(rows))


HoldOut = Callable[[], HeldOut]


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
) -> HeldOut:
    """Class shares of held-out samples by fits that did not see their labels, uncalibrated.

    Labels are split into folds in the ``order`` (n_samples,).
    """
    if not some_can_be_held_out(labels.codes, labels.groups):
        return HeldOut(np.empty((0, labels.n_classes)), labels.codes[:0])
    folds = label_folds(labels.codes, order, N_FOLDS, labels.groups)
    layout = ViewLayout(model.view_names_, model.view_n_features_, model.observed_, {})
    shares = []
    for turn, fold in enumerate(folds):
        model.tell_stage(f"calibration {turn + 1} of {len(folds)}", turn, len(folds))
        other = silent(model)
        fit_silently(other, layout, geometry, labels.without(fold))
        shares.append(np.asarray(other.label_distributions_[fold]))
    return HeldOut.of_folds(shares, folds, labels)
