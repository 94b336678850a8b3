"""Samples that fit none of the known classes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from viewmend.backend.threads import serial_blas
from viewmend.core.advice.conformal import fewest_labels
from viewmend.core.advice.unknown import (
    TypicalSamples,
    strange_in_fit,
    strange_new,
    unknown_scores,
)
from viewmend.data.container import MultiViewData
from viewmend.distributed.lazy import is_lazy
from viewmend.exceptions import DataWarning, InvalidParameterError
from viewmend.models.apart import comparable_new
from viewmend.models.calibrated import Decision
from viewmend.models.fitted_state import MendState
from viewmend.models.naming import check_samples_kept
from viewmend.parameters import Real, short
from viewmend.text import counted

__all__ = ["UnknownMixin"]

_RATE = Real(0, 1, low_open=True, high_open=True)
# Groups with labels, below which none of these samples is compared with another.
LEAST_GROUPS = 2


class UnknownMixin:
    """``unknown_score``, and ``decide`` with it, of a `viewmend.MendClassifier`."""

    transduction_: np.ndarray
    graph_: csr_array
    fitted_state_: MendState
    zero_row_evidence_: np.ndarray | None
    _check_predict: Callable[[Any, Any], MultiViewData]

    def unknown_score(self, X: Any = None, mask: ArrayLike | None = None) -> np.ndarray:
        """How badly samples fit all known classes.

        A sample is compared with the labelled samples, and these with each other, by two or three
        measures: the distance to the nearest one in the views that it has; the highest class score
        of the regressions; and for samples of ``fit`` also how much of the labels reaches them over
        the graph.

        Parameters
        ----------
        X : views of new samples, in any form that ``fit`` takes but Dask collections, optional
            None for the samples of ``fit``.
        mask : array (n_new, n_views) of bool, optional
            False where a new sample does not have a view; replaces rows of NaN.

        Returns
        -------
        array (n_samples,)
            Share of the labelled samples that fit better. Of samples like the labelled ones, about
            5 % have a score of 0.95 or more. NaN for samples without any view, and for samples of
            ``fit`` outside its graph; pass the latter as new samples. All are NaN where all labels
            are of one sample or one group, which there is nothing to compare with.
        """
        check_is_fitted(self)
        typical = self._typical()
        if typical.n_groups < LEAST_GROUPS:
            unit = "sample" if self.fitted_state_.label_groups is None else "group"
            msg = (
                f"no unknown_score is known, because all labels are of one {unit}, which "
                f"there is nothing to compare with; label samples of another one"
            )
            warnings.warn(msg, DataWarning, stacklevel=2)
        if X is None:
            check_samples_kept(self, "unknown_score without X")
            return self._scores_in_fit(typical)
        if is_lazy(X):
            msg = (
                "unknown_score takes views in memory, got Dask collections; call it block by "
                "block, on the model or on its for_prediction()"
            )
            raise InvalidParameterError(msg)
        return self._scores_of_new(X, mask, "no score, NaN")

    def decide(
        self,
        X: Any = None,
        mask: ArrayLike | None = None,
        threshold: float = 0.8,
        unknown_rate: float | None = None,
    ) -> Decision:
        """Classes of samples, with abstention where confidence is low or they fit no class.

        Parameters
        ----------
        X : views of new samples, in any form that ``fit`` takes but Dask collections, optional
            None for the samples of ``fit``; for those with a given label the model never abstains.
        mask : array (n_new, n_views) of bool, optional
            False where a new sample does not have a view; replaces rows of NaN.
        threshold : float in [0, 1], default=0.8
            Least confidence for a decision. ``calibration_.threshold_for(accuracy)`` finds a
            threshold for an accuracy that you need.
        unknown_rate : float in (0, 1), optional
            Accepted rate of false alarms: the share of the samples of known classes that may be
            reported as unknown. Samples with an `unknown_score` of ``1 - unknown_rate`` or more are
            ``unknown``, and the model abstains. None turns this off.

        Returns
        -------
        Decision
        """
        decision: Decision = super().decide(X, mask, threshold)  # type: ignore[misc]
        if unknown_rate is None:
            return decision
        if X is None:
            unknown = self._unknown(self._scores_in_fit(self._typical()), unknown_rate)
            unknown &= self.fitted_state_.label_codes < 0
        else:
            # Samples without any view were warned of when their classes were decided.
            unknown = self._unknown(self._scores_of_new(X, mask, None), unknown_rate)
        return replace(decision, unknown=unknown, abstained=decision.abstained | unknown)

    def _unknown(self, scores: np.ndarray, rate: float) -> np.ndarray:
        """Whether samples with these scores are strange enough for a false alarm rate."""
        if not _RATE.accepts(rate):
            msg = (
                f"unknown_rate must be {_RATE.expected}, got {short(rate)}; pass the share of the "
                f"samples of known classes that may be taken for unknown, such as 0.05"
            )
            raise InvalidParameterError(msg)
        n_labels = self._typical().n_groups
        if n_labels < fewest_labels(rate):
            unit = "label" if self.fitted_state_.label_groups is None else "labelled group"
            msg = (
                f"unknown_rate={rate} cannot be promised with {counted(n_labels, unit)} to compare "
                f"with, which takes {fewest_labels(rate)} or more: no sample is taken for unknown; "
                f"label more samples, or raise unknown_rate"
            )
            warnings.warn(msg, DataWarning, stacklevel=3)
            return np.zeros(len(scores), dtype=bool)
        return np.asarray(scores >= 1 - rate)

    def _typical(self) -> TypicalSamples:
        with serial_blas():
            typical = self.fitted_state_.typical
        if typical is None:
            msg = (
                "unknown_score needs labelled samples that were compared with each other, but "
                "calibration is None; fit with calibration='cross_fit'"
            )
            raise InvalidParameterError(msg)
        return typical

    def _scores_of_new(self, X: Any, mask: ArrayLike | None, unseen_get: str | None) -> np.ndarray:
        """Of new samples, (n_new,); ``unseen_get`` is what those without any view get, in words."""
        typical, data = self._typical(), self._check_predict(X, mask)
        part = comparable_new(data, self.zero_row_evidence_ is not None, unseen_get)
        scores = np.full(data.n_samples, np.nan)
        if len(part.rows) and typical.n_groups >= LEAST_GROUPS:
            seen = part.data
            strange = strange_new(self.fitted_state_.induction, typical, seen.views, seen.observed)
            scores[part.rows] = unknown_scores(strange, typical.strangeness)
        return scores

    def _scores_in_fit(self, typical: TypicalSamples) -> np.ndarray:
        state = self.fitted_state_
        scores = np.full(len(state.label_codes), np.nan)
        if len(state.order) and typical.n_groups >= LEAST_GROUPS:
            graph = self.graph_[state.order][:, state.order]
            codes = state.label_codes[state.order]
            groups = state.groups_of_labels()
            strange, those = strange_in_fit(state.induction, typical, graph, codes, groups)
            scores[state.order] = unknown_scores(strange, those)
        return scores
