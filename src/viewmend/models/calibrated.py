"""Predictions one can act on: calibrated, withheld where confidence is low, and explained."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from viewmend.core.common.calibration import Calibration, calibrate, tempered, uncalibrated
from viewmend.data.labels import Labels
from viewmend.exceptions import InvalidParameterError
from viewmend.models.base import scaled_shares
from viewmend.models.cross_fit import HoldOut
from viewmend.models.explanation import Explanation
from viewmend.models.fitted_state import FittedState
from viewmend.parameters import OneOf, Real, Rule, short

__all__ = ["CALIBRATION", "CalibratedMixin", "Decision"]

# What the parameter ``calibration`` may be.
CALIBRATION: Rule = OneOf("leave_one_out", "cross_fit", None)
_THRESHOLD = Real(0, 1)


@dataclass(frozen=True, eq=False, repr=False)
class Decision:
    """Classes where the model is sure enough of them.

    Attributes
    ----------
    labels : array (n_samples,)
        The most probable classes, also of samples that are abstained from.
    confidence : array (n_samples,)
        Their calibrated probabilities.
    abstained : array (n_samples,) of bool
    threshold : float
    """

    labels: np.ndarray
    confidence: np.ndarray
    abstained: np.ndarray
    threshold: float

    @property
    def coverage(self) -> float:
        """Share of the samples that are decided."""
        return float(1 - self.abstained.mean())

    def __repr__(self) -> str:
        decided = len(self.labels) - int(self.abstained.sum())
        return (
            f"<Decision on {decided} of {len(self.labels)} samples, those with a confidence of at "
            f"least {self.threshold:.3g}>"
        )


class CalibratedMixin:
    """Calibration, confidence, abstention and explanation for two-step classifiers.

    Subclasses have the parameter ``calibration``, end ``_fit_labels`` with `_store_calibrated`, and
    define ``_explained(rows)``.
    """

    # Standard deviation of the logarithm of the temperature before any label is seen.
    _temperature_spread: ClassVar[float] = math.inf

    # Of MultiViewClassifier and of the subclass.
    calibration: str | None
    calibration_: Calibration
    confidence_: np.ndarray
    classes_: np.ndarray
    transduction_: np.ndarray
    label_distributions_: np.ndarray
    predict_proba: Callable[..., np.ndarray]
    fitted_state_: FittedState
    _store_shares: Callable[..., None]
    _explained: Callable[[np.ndarray], Explanation]

    def decide(
        self, X: Any = None, mask: ArrayLike | None = None, threshold: float = 0.8
    ) -> Decision:
        """Classes of samples, withheld where the model is not sure enough.

        Parameters
        ----------
        X : views of new samples, in any form that ``fit`` takes, optional
            None for the samples of ``fit``, of which those with a given label are never withheld.
        mask : array (n_new, n_views) of bool, optional
            False where a new sample is missing from a view, in place of NaN rows.
        threshold : float in [0, 1], default=0.8
            Least confidence; ``calibration_.threshold_for(accuracy)`` finds one.

        Returns
        -------
        Decision
        """
        check_is_fitted(self)
        if not _THRESHOLD.accepts(threshold):
            msg = (
                f"threshold must be {_THRESHOLD.expected}, got {short(threshold)}; pass a share "
                f"like 0.8, or calibration_.threshold_for(accuracy)"
            )
            raise InvalidParameterError(msg)
        if X is None:
            withheld = (self.confidence_ < threshold) & (self.fitted_state_.label_codes < 0)
            return Decision(self.transduction_, self.confidence_, withheld, threshold)
        shares = self.predict_proba(X, mask)
        confidence = shares.max(axis=1)
        labels = self.classes_[np.argmax(shares, axis=1)]
        return Decision(labels, confidence, confidence < threshold, threshold)

    def explain(self, samples: ArrayLike) -> Explanation:
        """Labels and views that the classes of some samples of ``fit`` come from.

        Parameters
        ----------
        samples : int, array of int, or array (n_samples,) of bool
            Rows of ``fit``. Each costs about as much as the labels of one class in ``fit``.

        Returns
        -------
        Explanation
        """
        check_is_fitted(self)
        every = np.arange(len(self.transduction_))
        try:
            rows = np.atleast_1d(every[np.asarray(samples)])
        except IndexError as error:
            msg = (
                f"samples must be rows of fit, of which there are {len(every)}, or a mask of them, "
                f"got {short(samples)}; pass integers below {len(every)}"
            )
            raise InvalidParameterError(msg) from error
        return self._explained(rows)

    def _store_calibrated(
        self,
        soft: np.ndarray,
        labels: Labels,
        reachable: np.ndarray,
        state: FittedState,
        hold_out: Mapping[str, HoldOut],
    ) -> None:
        """As `MultiViewClassifier._store_transduction`, calibrated, and with confidence.

        ``hold_out`` has ways to score labelled samples without their own label, by value of the
        parameter ``calibration``.
        """
        soft = np.where(reachable[:, None], soft, 0)
        # Classes are those of the shares as they are: no temperature can round two of them to one.
        shares = scaled_shares(soft, state.labelled_shares)
        codes = np.where(labels.labelled, labels.codes, np.argmax(shares, axis=1))
        calibration = uncalibrated(labels.n_classes)
        if self.calibration is not None:
            scores, held_out_codes = hold_out[self.calibration]()
            held_out = scaled_shares(scores, state.labelled_shares)
            calibration = calibrate(held_out, held_out_codes, self._temperature_spread)
        self.fitted_state_, self.calibration_ = state, calibration
        if self.calibration is not None:
            shares = self._distributions(soft)
        self._store_shares(shares, codes, reachable)
        self.confidence_ = shares[np.arange(len(codes)), codes]

    def _view_dtypes(self) -> list[np.dtype[Any]]:
        return self.fitted_state_.view_dtypes

    def _distributions(self, soft: np.ndarray) -> np.ndarray:
        """`scaled_shares` at the temperature; rows without any soft label are left alone."""
        shares = scaled_shares(soft, self.fitted_state_.labelled_shares)
        scored = np.any(soft > 0, axis=1, keepdims=True)
        return np.where(scored, tempered(shares, self.calibration_.temperature), shares)
