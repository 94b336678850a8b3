"""Calibrated probabilities, decisions that abstain where confidence is low, and explanations."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from viewmend.core.common.accuracy import AccuracyEstimate
from viewmend.core.common.calibration import (
    Calibration,
    fit_temperature,
    temperature_for,
    tempered,
    uncalibrated,
)
from viewmend.data.labels import Labels
from viewmend.distributed.lazy import is_lazy
from viewmend.exceptions import DataWarning, InvalidParameterError
from viewmend.models.base import scaled_shares
from viewmend.models.cross_fit import HoldOut
from viewmend.models.decisions import ClassWeight, decide, decision_weights
from viewmend.models.explanation import Explanation
from viewmend.models.fitted_state import FittedState
from viewmend.models.naming import check_samples_kept, names_of_fit, sample_rows
from viewmend.parameters import Real, short

__all__ = ["CROSS_FIT", "CalibratedMixin", "Decision"]

# Value of the parameter ``calibration`` for which labels are really held out: by other fits.
CROSS_FIT = "cross_fit"
_THRESHOLD = Real(0, 1)


@dataclass(frozen=True, eq=False, repr=False)
class Decision:
    """Classes, with abstention where the confidence is below a threshold.

    Attributes
    ----------
    labels : array (n_samples,)
        The predicted classes, including those of samples with abstention.
    confidence : array (n_samples,)
        Their calibrated probabilities.
    abstained : array (n_samples,) of bool
        Samples for which the model abstains.
    threshold : float
        The least confidence.
    unknown : array (n_samples,) of bool
        Samples that fit no class; the model abstains for them. All false unless
        ``unknown_rate`` was set.
    """

    labels: np.ndarray
    confidence: np.ndarray
    abstained: np.ndarray
    threshold: float
    unknown: np.ndarray

    @property
    def coverage(self) -> float:
        """Share of the samples for which the model does not abstain."""
        return float(1 - self.abstained.mean())

    def __repr__(self) -> str:
        decided, strange = len(self.labels) - int(self.abstained.sum()), int(self.unknown.sum())
        return (
            f"<Decision on {decided} of {len(self.labels)} samples, those with a confidence of at "
            f"least {self.threshold:.3g}{f'; {strange} fit no class' if strange else ''}>"
        )


class CalibratedMixin:
    """Calibration, confidence, abstention and explanation for two-step classifiers.

    Subclasses have the parameter ``calibration``, end ``_fit_labels`` with `_store_calibrated`, and
    define ``_explained(rows)``.
    """

    # What classes count in decisions; a subclass may have it for a parameter.
    class_weight: ClassWeight = None
    decision_weights_: np.ndarray

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
    tell_stage: Callable[..., None]
    keeps_labels: Callable[[], bool]

    @property
    def estimated_accuracy_(self) -> AccuracyEstimate | None:
        """Estimated accuracy: how many held-out labels were predicted correctly; None without any.

        ``calibration="cross_fit"`` holds out labels of classes that have more than one.
        """
        return self.calibration_.accuracy

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        # As scikit-learn has it, with what a user of a fitted model wants to know first.
        told = getattr(self, "estimated_accuracy_", None)
        text = str(super().__repr__(N_CHAR_MAX))  # type: ignore[call-arg]
        return text if told is None else f"{text}\n# {told}"

    def decide(
        self, X: Any = None, mask: ArrayLike | None = None, threshold: float = 0.8
    ) -> Decision:
        """Classes of samples, with abstention where the confidence is too low.

        Parameters
        ----------
        X : views of new samples, in any form that ``fit`` takes but Dask collections, optional
            None for the samples of ``fit``; for those with a given label the model never abstains.
        mask : array (n_new, n_views) of bool, optional
            False where a new sample does not have a view; replaces rows of NaN.
        threshold : float in [0, 1], default=0.8
            Least confidence for a decision. ``calibration_.threshold_for(accuracy)`` finds a
            threshold for an accuracy that you need.

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
            check_samples_kept(self, "decide without X")
            kept = (self.fitted_state_.label_codes >= 0) & self.keeps_labels()
            withheld = (self.confidence_ < threshold) & ~kept
            nothing = np.zeros_like(withheld)
            return Decision(self.transduction_, self.confidence_, withheld, threshold, nothing)
        if is_lazy(X):
            msg = (
                "decide takes views in memory, got Dask collections; call it block by block, on "
                "the model or on its for_prediction(), or compare predict_proba with a threshold"
            )
            raise InvalidParameterError(msg)
        shares = self.predict_proba(X, mask)
        codes = self._decided(shares)
        confidence = shares[np.arange(len(codes)), codes]
        withheld = confidence < threshold
        nothing = np.zeros_like(withheld)
        return Decision(self.classes_[codes], confidence, withheld, threshold, nothing)

    def explain(self, samples: ArrayLike) -> Explanation:
        """Which labels and views led to the classes of some samples of ``fit``.

        Parameters
        ----------
        samples : int, array of int, array (n_samples,) of bool, str, or sequence of str
            Rows of ``fit``, or identifiers, as text, where ``fit`` saw any (``sample_ids_``).
            Numbers are always rows, also where identifiers are numbers. Each sample costs about as
            much as the labels of one class in ``fit``.

        Returns
        -------
        Explanation
        """
        check_is_fitted(self)
        check_samples_kept(self, "explain")
        names, new = names_of_fit(self), "for new samples there is explain_new"
        rows = sample_rows(samples, names, elsewhere=new)
        return self._explained(rows)

    def check_groups(self, groups: Any) -> None:
        """Raise an `InvalidParameterError` if the labels of groups cannot be held out together."""
        if groups is not None and self.calibration not in (CROSS_FIT, None):
            msg = (
                f"groups are held out together, which calibration={self.calibration!r} cannot do; "
                f"set calibration={CROSS_FIT!r}, or None to hold out no label"
            )
            raise InvalidParameterError(msg)

    def _store_calibrated(
        self,
        soft: np.ndarray,
        labels: Labels,
        reachable: np.ndarray,
        state: FittedState,
        hold_out: Mapping[str, HoldOut],
    ) -> None:
        """Like `MultiViewClassifier._store_transduction`, with calibration and confidence.

        ``hold_out`` has ways to score labelled samples without their own label, by value of the
        parameter ``calibration``.
        """
        soft = np.where(reachable[:, None], soft, 0)
        # Classes are those of the shares as they are: no temperature can round two of them to one.
        shares = scaled_shares(soft, state.labelled_shares)
        kept = labels.labelled & self.keeps_labels()
        codes = np.where(kept, labels.codes, np.argmax(shares, axis=1))
        calibration = uncalibrated(labels.n_classes)
        if self.calibration is not None:
            self.tell_stage("calibration")
            told = hold_out[self.calibration]()
            held_out = scaled_shares(told.scores, state.labelled_shares)
            calibration = Calibration(
                self._temperature(held_out, told.codes),
                held_out,
                told.codes,
                refitted=self.calibration == CROSS_FIT,
                n_groups=told.n_groups,
                class_groups=told.class_groups,
            )
            calibration = humbled(calibration, shares[reachable & ~labels.labelled])
        self.fitted_state_, self.calibration_ = state, calibration
        if self.calibration is not None:
            warn_of_guessing(calibration)
            shares = self._distributions(soft)
        self.decision_weights_ = decision_weights(
            self.class_weight, labels.classes, shares.mean(axis=0)
        )
        if self.class_weight is not None:
            codes = np.where(kept, labels.codes, self._decided(shares))
        self._store_shares(shares, codes, reachable)
        self.confidence_ = shares[np.arange(len(codes)), codes]

    def _temperature(self, shares: np.ndarray, codes: np.ndarray) -> float:
        """Of held-out samples, their shares (n_held_out, n_classes) and codes (n_held_out,)."""
        return fit_temperature(shares, codes)

    def _decided(self, shares: np.ndarray) -> np.ndarray:
        """Codes of the classes that the shares (n_samples, n_classes) decide for."""
        return decide(shares, self.decision_weights_)

    def _view_dtypes(self) -> list[np.dtype[Any]]:
        return self.fitted_state_.view_dtypes

    def _distributions(self, soft: np.ndarray) -> np.ndarray:
        """`scaled_shares` at the temperature; rows without any soft label are left alone."""
        shares = scaled_shares(soft, self.fitted_state_.labelled_shares)
        scored = np.any(soft > 0, axis=1, keepdims=True)
        return np.where(scored, tempered(shares, self.calibration_.temperature), shares)


def humbled(calibration: Calibration, shares: np.ndarray) -> Calibration:
    """A temperature at which the mean confidence is not higher than the accuracy.

    The accuracy is the upper end of its interval, or its estimate if held-out labels do not show
    that the model beats guessing. ``shares`` are (n_samples, n_classes).
    """
    estimate = calibration.accuracy
    if estimate is None or len(shares) == 0:
        return calibration
    most = estimate.accuracy if estimate.is_guessing else estimate.interval[1]
    sure = max(most, estimate.chance)
    return replace(calibration, temperature=temperature_for(shares, sure, calibration.temperature))


def warn_of_guessing(calibration: Calibration) -> None:
    """Warn where held-out labels do not show that the model beats guessing, or there are none."""
    estimate = calibration.accuracy
    if calibration.n_samples == 0:
        msg = (
            "every class has one label, or labels of one group, so that none can be held out: the "
            "accuracy is not estimated, and the probabilities may be too confident; label a second "
            "sample of some class, in another group if there are groups"
        )
    elif estimate is not None and estimate.is_guessing:
        low, high = estimate.interval
        msg = (
            f"the model is no better than chance on {estimate.n_held_out} held-out "
            f"labels{estimate.of_groups}: it predicted {estimate.n_right} of them correctly "
            f"({estimate.accuracy:.0%}; the interval is {low:.0%} to {high:.0%}), a random class "
            f"{estimate.chance:.0%}, the most frequent class {estimate.majority:.0%}; check labels "
            f"and views with inspect_data, or label more samples"
        )
    else:
        return
    warnings.warn(msg, DataWarning, stacklevel=7)
