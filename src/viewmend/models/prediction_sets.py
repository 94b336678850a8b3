"""Sets of classes that contain the true class with a given probability."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from viewmend.core.advice.conformal import class_sets, enough_by_class, fewest_labels, least_shares
from viewmend.core.common.calibration import Calibration, tempered
from viewmend.distributed.lazy import is_lazy
from viewmend.exceptions import DataWarning, InvalidParameterError
from viewmend.models.fitted_state import MendState
from viewmend.models.naming import check_samples_kept
from viewmend.parameters import OneOf, Real, Rule, short

__all__ = ["PredictionSetsMixin"]

_ALPHA = Real(0, 1, low_open=True, high_open=True)
_BY_CLASS, _ALLOW_EMPTY = OneOf(True, False, None), OneOf(True, False)


class PredictionSetsMixin:
    """``predict_set`` of a `viewmend.MendClassifier`."""

    classes_: np.ndarray
    calibration_: Calibration
    label_distributions_: np.ndarray
    unreachable_: np.ndarray
    fitted_state_: MendState
    predict_proba: Callable[..., np.ndarray]
    keeps_labels: Callable[[], bool]

    def predict_set(
        self,
        X: Any = None,
        mask: ArrayLike | None = None,
        alpha: float = 0.1,
        by_class: bool | None = None,
        allow_empty: bool = True,
    ) -> np.ndarray:
        """Sets of classes that contain the true class with probability ``1 - alpha``.

        This is conformal prediction in a prediction-powered form. The model itself tells how often
        sets of all classes above some probability miss the true class, if its probabilities are
        right. Fits without some of the labels show how far they are wrong. The two give the lowest
        probability at which sets miss the share ``alpha``; between two held-out labels it is
        interpolated. So the coverage is near ``1 - alpha``, above or below, on average over fits
        and for samples like the labelled ones. It is not a guarantee for small samples, as split
        conformal prediction gives it for the fits that hold labels out: the model is more accurate
        than these, which use two thirds of the labels. Only a part of its higher
        confidence is counted.

        Parameters
        ----------
        X : views of new samples, in any form that ``fit`` takes, optional
            None for the samples of ``fit``; the set of a labelled sample has its label only.
        mask : array (n_new, n_views) of bool, optional
            False where a new sample does not have a view; replaces rows of NaN.
        alpha : float in (0, 1), default=0.1
            Share of the sets that may lack the true class.
        by_class : bool, optional
            Whether the coverage is that of the samples of every class, or of all samples together.
            None means every class if each has at least 50 held-out labels.
        allow_empty : bool, default=True
            Whether sets may be empty. If the model is more accurate than ``1 - alpha``, some sets
            must be empty to have exactly this coverage. False gives every sample at least its most
            probable class; the coverage is then higher than requested.

        Returns
        -------
        array (n_samples, n_classes) of bool, of Dask where ``X`` is
            Columns in the order of ``classes_``. Unreachable samples have all classes.

        Warns
        -----
        DataWarning
            If fewer than ``1 / alpha - 1`` labels were held out. All classes are then in all sets.
            With ``by_class`` this counts for each class: a class with too few held-out labels is in
            all sets.
        """
        check_is_fitted(self)
        _check(alpha, "alpha", _ALPHA, "the share of the sets that may miss the right class: 0.1")
        _check(by_class, "by_class", _BY_CLASS, "None for what the labels suffice for")
        _check(allow_empty, "allow_empty", _ALLOW_EMPTY, "False for one class at least")
        if X is None:
            check_samples_kept(self, "predict_set without X")
        state = self.fitted_state_
        sets = partial(
            class_sets,
            least=self._least_shares(alpha, by_class),
            unscored=state.labelled_shares,
            allow_empty=allow_empty,
        )
        hot, hot_new = state.set_temperatures
        if X is None:
            return self._of_fit(sets(self.label_distributions_, temperature=hot))
        shares: Any = self.predict_proba(X, mask)
        sets = partial(sets, temperature=hot_new)
        return shares.map_blocks(sets, dtype=bool) if is_lazy(X) else sets(shares)

    def _least_shares(self, alpha: float, by_class: bool | None) -> np.ndarray:
        """Thresholds (n_classes,) for the shares; warns where labels are too few for one."""
        held_out = self.calibration_
        if not held_out.refitted:
            msg = (
                "predict_set needs labels that were held out, but calibration is None; fit with "
                "calibration='cross_fit'"
            )
            raise InvalidParameterError(msg)
        if by_class is None:
            by_class = enough_by_class(held_out.counts(by_class=True))
        counts = held_out.counts(by_class)
        least, levels = np.full(len(self.classes_), -np.inf), self.fitted_state_.levels
        if levels is not None:
            shares = tempered(held_out.shares, held_out.temperature)
            least = least_shares(shares, held_out.codes, levels, alpha, by_class, counts)
        if np.isneginf(least).any():
            units = "labels" if held_out.n_groups is None else "groups of labels"
            msg = (
                f"alpha={alpha} cannot be promised with {counts.min()} held-out "
                f"{units}{' of a class' if by_class else ''}, which takes {fewest_labels(alpha)} "
                f"or more: sets have every class that it cannot be promised for; label more "
                f"samples, two of a class at least, or raise alpha"
            )
            warnings.warn(msg, DataWarning, stacklevel=3)
        return least

    def _of_fit(self, sets: np.ndarray) -> np.ndarray:
        """Sets of the samples of fit, of which some are unreachable and some have a label."""
        codes = self.fitted_state_.label_codes
        sets = sets | self.unreachable_[:, None]
        kept = (codes >= 0) & self.keeps_labels()
        return np.where(kept[:, None], codes[:, None] == np.arange(len(self.classes_)), sets)


def _check(value: object, name: str, rule: Rule, remedy: str) -> None:
    if not rule.accepts(value):
        msg = f"{name} must be {rule.expected}, got {short(value)}; pass {remedy}"
        raise InvalidParameterError(msg)
