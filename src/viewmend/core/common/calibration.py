"""Calibrated probabilities: one temperature, fitted to held-out labels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax
from scipy.stats import beta

from viewmend.backend.namespace import row_maxima
from viewmend.core.common.accuracy import AccuracyEstimate
from viewmend.core.common.class_shares import log_shares

__all__ = [
    "Calibration",
    "calibration_error",
    "fit_temperature",
    "log_loss",
    "proven_temperature",
    "smooth_targets",
    "surest_first",
    "temperature_for",
    "tempered",
    "uncalibrated",
]

# Temperatures that are looked at. Soft labels of AGF-TI as published are nearly uniform.
COLDEST, HOTTEST = 1e-6, 1e3
BINS = 15


@dataclass(frozen=True, eq=False)
class Calibration:
    """A temperature, and what it was fitted to.

    Attributes
    ----------
    temperature : float
        Above one if the probabilities were too confident, below one if they were not confident
        enough.
    shares : array (n_held_out, n_classes)
        Class probabilities of labelled samples without their own label, before calibration.
    codes : array (n_held_out,) of int
        Their classes.
    refitted : bool
        Whether the probabilities come from fits that did not see these labels at all, so that they
        show how accurate the model is.
    n_groups : int or None
        In how many groups the samples were held out; None if each by itself.
    class_groups : array (n_classes,) of int or None
        In how many of them every class has a sample, likewise.
    """

    temperature: float
    shares: np.ndarray
    codes: np.ndarray
    refitted: bool = False
    n_groups: int | None = None
    class_groups: np.ndarray | None = None

    @property
    def n_samples(self) -> int:
        """Number of labelled samples that were held out."""
        return len(self.codes)

    @property
    def weight(self) -> float:
        """What a held-out label counts: one, or less if groups are counted.

        What samples of one group tell of a model may be the same thing, once.
        """
        return 1.0 if self.n_groups is None else self.n_groups / max(self.n_samples, 1)

    def counts(self, by_class: bool) -> np.ndarray:
        """How many held-out samples there are, or groups: of each class (n_classes,), or (1,)."""
        if not by_class:
            return np.array([self.n_samples if self.n_groups is None else self.n_groups])
        if self.class_groups is not None:
            return self.class_groups
        return np.bincount(self.codes, minlength=self.shares.shape[1])

    @property
    def confidence(self) -> np.ndarray:
        """Calibrated probability (n_held_out,) of the predicted class of each held-out sample."""
        return np.asarray(tempered(self.shares, self.temperature).max(axis=1, initial=0))

    @property
    def correct(self) -> np.ndarray:
        """Whether that prediction is correct, (n_held_out,) of bool."""
        return np.asarray(np.argmax(self.shares, axis=1) == self.codes)

    @property
    def accuracy(self) -> AccuracyEstimate | None:
        """Accuracy on labels that the fits did not see; None if there are none."""
        if not (self.refitted and self.n_samples):
            return None
        counts = np.bincount(self.codes, minlength=self.shares.shape[1])
        return AccuracyEstimate(int(self.correct.sum()), tuple(counts.tolist()), self.n_groups)

    @property
    def errors(self) -> tuple[float, float]:
        """Expected calibration error on the held-out samples, before and after."""
        after = tempered(self.shares, self.temperature)
        return calibration_error(self.shares, self.codes), calibration_error(after, self.codes)

    @property
    def log_losses(self) -> tuple[float, float]:
        """Mean negative log-likelihood of the held-out samples, before and after."""
        after = tempered(self.shares, self.temperature)
        return log_loss(self.shares, self.codes), log_loss(after, self.codes)

    def threshold_for(self, accuracy: float, certainty: float = 0.9) -> float:
        """The confidence above which predictions have at least a given accuracy.

        Held-out samples are sorted by confidence, highest first. The result is the confidence of
        the last sample before the accuracy of all samples so far, by its lower confidence bound
        (Clopper and Pearson 1934), falls below ``accuracy``. Samples of equal confidence come
        together, since no threshold parts them. With probability ``certainty``, the accuracy
        holds for samples that are like the labelled ones.

        Parameters
        ----------
        accuracy : float in (0, 1)
            Accuracy that you need, of the samples with at least the returned confidence.
        certainty : float in (0, 1), default=0.9
            Probability that the accuracy above the threshold is as asked for.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If there are too few labels, or too many wrong predictions, to guarantee it.
        """
        _check_share("accuracy", accuracy)
        _check_share("certainty", certainty)
        confidence, hits = surest_first(self.confidence, self.correct)
        # With fewer samples even a perfect record has a lower bound below the accuracy wanted.
        fewest = math.ceil(math.log(1 - certainty) / math.log(accuracy) / self.weight)
        ends = _ends_of_equals(confidence)
        ends = ends[ends >= fewest]
        falls_short = self._least_accuracies(hits, ends, certainty) < accuracy
        n_accepted = ends[: np.argmax(falls_short) if falls_short.any() else None]
        if not len(n_accepted):
            msg = (
                f"accuracy={accuracy} cannot be promised with certainty={certainty}: the {fewest} "
                f"most confident held-out predictions must all be correct, got {len(hits)} held "
                f"out, {hits[:fewest].max(initial=0)} of the most confident correct; label more "
                f"samples, or lower accuracy or certainty"
            )
            raise ValueError(msg)
        return float(confidence[n_accepted[-1] - 1])

    def _least_accuracies(
        self, hits: np.ndarray, counts: np.ndarray, certainty: float
    ) -> np.ndarray:
        """Lower bounds of the accuracy of the first ``counts`` samples, ``hits`` right so far."""
        right = self.weight * hits[counts - 1]
        bounds = beta.ppf(1 - certainty, right, self.weight * counts - right + 1)
        # The distribution has no quantiles where nothing is right.
        return np.nan_to_num(bounds, nan=0.0)

    def __repr__(self) -> str:
        if self.n_samples == 0:
            return f"Calibration(temperature={self.temperature:.3g}, of no held-out label)"
        (error_before, error), (loss_before, loss) = self.errors, self.log_losses
        return (
            f"Calibration(temperature={self.temperature:.3g}, of {self.n_samples} held-out labels: "
            f"error {error_before:.3f} -> {error:.3f}, log loss {loss_before:.3f} -> {loss:.3f})"
        )


def uncalibrated(n_classes: int) -> Calibration:
    """Shares stay as they are."""
    return Calibration(1.0, np.empty((0, n_classes)), np.empty(0, dtype=np.int64))


def tempered(P: np.ndarray, temperature: float) -> np.ndarray:
    """``p_c^(1/T)`` with rows scaled to sum one; the largest of a row stays the largest.

    Rows of ``P`` (n_samples, n_classes) sum to one, or are zero and stay so.
    """
    return P if temperature == 1 else _softened(P, log_shares(P), temperature)


def _softened(P: np.ndarray, log_P: np.ndarray, temperature: float) -> np.ndarray:
    scaled = softmax(log_P / temperature, axis=1)
    return np.where(P.any(axis=1, keepdims=True), scaled, 0).astype(P.dtype)


def fit_temperature(P: np.ndarray, codes: np.ndarray) -> float:
    """The temperature of least loss for held-out samples, one where there are none.

    Their targets are those of `smooth_targets`, for shares whose sharpness means nothing. Rows of
    ``P`` (n_samples, n_classes) sum to one; ``codes`` (n_samples,) of int.
    """
    return _least_loss(P, smooth_targets(codes, P.shape[1]), COLDEST) if len(codes) else 1.0


def proven_temperature(P: np.ndarray, codes: np.ndarray) -> float:
    """As `fit_temperature`, for shares that are probabilities by themselves, if anything too sure.

    Held-out samples take confidence away and never add any: the temperature is one at least. So
    their labels count in full, for a few that were all found right have no say.
    """
    one_hot = (codes[:, None] == np.arange(P.shape[1])).astype(float)
    return _least_loss(P, one_hot, coldest=1.0) if len(codes) else 1.0


def _least_loss(P: np.ndarray, targets: np.ndarray, coldest: float) -> float:
    """Minimise ``-sum_ic t_ic log p_ic(T)`` over ``T`` from the coldest to the hottest.

    With ``x = log T`` the slope of the sum is ``sum_i <t_i - p_i(T), log p_i> / T``.
    """
    log_P = log_shares(P)
    log_P -= log_P.max(axis=1, keepdims=True)
    if not log_P.any():
        # Uniform rows are the same at every temperature.
        return max(1.0, coldest)

    def slope(x: float) -> float:
        gaps = targets - softmax(log_P / math.exp(x), axis=1)
        return float(np.sum(gaps * log_P)) / math.exp(x)

    low, high = math.log(coldest), math.log(HOTTEST)
    # The loss is convex in 1 / T: a root within the range, or the end that the loss falls to.
    if slope(low) >= 0:
        return coldest
    return HOTTEST if slope(high) <= 0 else math.exp(brentq(slope, low, high))


def temperature_for(P: np.ndarray, confidence: float, coldest: float = COLDEST) -> float:
    """The temperature, at least the coldest, at which the largest shares of rows have this mean.

    ``P`` (n_samples, n_classes) has one row at least.
    """
    low, high = math.log(coldest), math.log(HOTTEST)
    log_P = log_shares(P)

    def excess(x: float) -> float:
        return float(row_maxima(_softened(P, log_P, math.exp(x))).mean()) - confidence

    if excess(low) <= 0:
        return coldest
    return HOTTEST if excess(high) >= 0 else math.exp(brentq(excess, low, high))


def smooth_targets(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """One-hot rows of ``n`` labels, less ``1 / (n + 2)`` that is spread over all classes.

    Platt (1999): a few labels that were all found right do not prove that all others will be.
    """
    doubt = 1 / (len(codes) + 2)
    one_hot = codes[:, None] == np.arange(n_classes)
    return (1 - doubt) * one_hot + doubt / n_classes


def calibration_error(P: np.ndarray, codes: np.ndarray, n_bins: int = BINS) -> float:
    """Expected calibration error: mean distance of confidence and accuracy in bins of equal mass.

    ``P`` is (n_samples, n_classes), ``codes`` (n_samples,) of int. There are at most ``n_bins``
    bins and no more than one for a sample. The error of no samples is NaN.
    """
    if len(codes) == 0:
        return math.nan
    excess = P.max(axis=1) - (np.argmax(P, axis=1) == codes)
    order = np.argsort(P.max(axis=1), kind="stable")
    bins = np.array_split(excess[order], min(n_bins, len(codes)))
    return float(sum(abs(part.sum()) for part in bins) / len(codes))


def log_loss(P: np.ndarray, codes: np.ndarray) -> float:
    """Mean of ``-log p`` of the right classes; NaN for no samples."""
    if len(codes) == 0:
        return math.nan
    return float(-log_shares(P)[np.arange(len(codes)), codes].mean())


def surest_first(confidence: np.ndarray, correct: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Confidences in falling order, and how many of the samples so far are right."""
    order = np.argsort(-confidence, kind="stable")
    return confidence[order], np.cumsum(correct[order])


def _ends_of_equals(values: np.ndarray) -> np.ndarray:
    """How many of the sorted values there are up to each last one of its kind."""
    return np.append(np.flatnonzero(np.diff(values)) + 1, len(values))


def _check_share(name: str, value: float) -> None:
    if not 0 < value < 1:
        msg = f"{name} must lie between 0 and 1, both excluded, got {value}; pass a share like 0.95"
        raise ValueError(msg)
