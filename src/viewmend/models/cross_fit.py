"""Labels held out fold by fold, found by fits to the others that share what needs no label."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from viewmend.data.labels import Labels
from viewmend.exceptions import DataWarning
from viewmend.models.base import TwoStepClassifier, ViewLayout
from viewmend.models.search_runs import label_folds

__all__ = ["HoldOut", "cross_fitted"]

N_FOLDS = 5

# Gives scores (n_held_out, n_classes) of labelled samples without their own label, and their codes
# (n_held_out,), in an order that does not depend on that of the data.
HoldOut = Callable[[], tuple[np.ndarray, np.ndarray]]


def cross_fitted(
    model: TwoStepClassifier, geometry: Any, order: np.ndarray, labels: Labels
) -> tuple[np.ndarray, np.ndarray]:
    """What fits without a fold of the labels say of its samples, uncalibrated, and their codes.

    Parameters
    ----------
    model : TwoStepClassifier
    geometry : its geometry of the data
    order : array (n_samples,) of int
        In which labels are dealt into folds.
    labels : Labels

    Returns
    -------
    shares : array (n_held_out, n_classes)
    codes : array (n_held_out,) of int
        Without classes of a single label.
    """
    if labels.counts().max() < 2:
        return np.empty((0, labels.n_classes)), np.empty(0, dtype=np.int64)
    folds = label_folds(labels.codes, order, N_FOLDS)
    shares = [_shares_without(fold, model, geometry, labels) for fold in folds]
    return np.concatenate(shares), labels.codes[np.concatenate(folds)]


def _shares_without(
    held_out: np.ndarray, model: TwoStepClassifier, geometry: Any, labels: Labels
) -> np.ndarray:
    codes = labels.codes.copy()
    codes[held_out] = -1
    other = clone(model).set_params(calibration=None, verbose=0).set_callbacks()
    layout = ViewLayout(model.view_names_, model.view_n_features_, model.observed_)
    with warnings.catch_warnings():
        # The fit to all labels tells what is wrong with the data.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DataWarning)
        other.fit_prepared(layout, geometry, Labels(labels.classes, codes))
    return np.asarray(other.label_distributions_[held_out])
