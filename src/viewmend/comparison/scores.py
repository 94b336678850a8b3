"""What held-out labels tell of one method, and of two methods beside each other."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from scipy.stats import norm

from viewmend.core.common.accuracy import COVERAGE, AccuracyEstimate

__all__ = ["ComparedMethod", "PairedDifference", "paired_difference"]


@dataclass(frozen=True, eq=False, repr=False)
class ComparedMethod:
    """One row of a comparison.

    Attributes
    ----------
    name : str
        Name of the method, as tables print it.
    is_right : array (n_held_out,) of bool
        Whether each held-out label was predicted correctly; the same labels in the same order for
        every method. Empty where the method failed.
    truth : array (n_held_out,) of int
        Which class each of them is.
    seconds : float or None
        Median time of one fit; None where the method failed.
    failure : str or None
        Why there is no score.
    n_groups : int or None
        In how many groups the labels were held out, which intervals then count; None if each was by
        itself.
    class_groups : array (n_classes,) of int or None
        In how many of them every class has a label, likewise.
    """

    name: str
    is_right: np.ndarray
    truth: np.ndarray
    seconds: float | None
    failure: str | None = None
    n_groups: int | None = None
    class_groups: np.ndarray | None = None

    def __repr__(self) -> str:
        if self.failure:
            return f"<{self.name}: failed, {self.failure}>"
        low, high = self.estimate.interval
        return f"<{self.name}: accuracy {self.estimate.accuracy:.2f} ({low:.2f} to {high:.2f})>"

    @property
    def estimate(self) -> AccuracyEstimate:
        """Accuracy, its interval, and what guessing would find."""
        counts = np.unique(self.truth, return_counts=True)[1]
        return AccuracyEstimate(int(self.is_right.sum()), tuple(counts.tolist()), self.n_groups)

    @property
    def accuracy(self) -> float | None:
        """Share of the held-out labels that was found; None where the method failed."""
        return None if self.failure else self.estimate.accuracy

    @property
    def interval(self) -> tuple[float, float] | None:
        """Accuracies that the labels do not rule out, at 95 %, by Clopper and Pearson (1934)."""
        return None if self.failure else self.estimate.interval

    @property
    def balanced_accuracy(self) -> float | None:
        """Mean share that was found over the classes that were held out."""
        return None if self.failure else float(np.mean([k / n for k, n in self._by_class()]))

    @property
    def balanced_interval(self) -> tuple[float, float] | None:
        """Interval of the balanced accuracy at 95 %.

        Distances to Wilson's limits of every class, added up as those of independent numbers are
        (Zou and Donner, Statistics in Medicine 2008).
        """
        if self.failure:
            return None
        pairs, weight = self._by_class(), self.estimate.weight
        shares = np.array([k / n for k, n in pairs])
        sizes = [weight * n for _, n in pairs]
        if self.class_groups is not None:
            sizes = self.class_groups[self.class_groups > 0].tolist()
        limits = np.array([_wilson(share, n) for share, n in zip(shares, sizes, strict=True)])
        below, above = np.sqrt(((limits.T - shares) ** 2).sum(axis=1)) / len(pairs)
        mean = float(shares.mean())
        return max(0.0, mean - float(below)), min(1.0, mean + float(above))

    def _by_class(self) -> list[tuple[int, int]]:
        """Labels found, and labels held out, of every class."""
        found = [self.is_right[self.truth == code] for code in np.unique(self.truth)]
        return [(int(part.sum()), len(part)) for part in found]

    def record(self) -> dict[str, Any]:
        """The row as plain numbers and words."""
        low, high = self.interval or (None, None)
        balanced_low, balanced_high = self.balanced_interval or (None, None)
        return {
            "method": self.name,
            "accuracy": self.accuracy,
            "low": low,
            "high": high,
            "balanced_accuracy": self.balanced_accuracy,
            "balanced_low": balanced_low,
            "balanced_high": balanced_high,
            "seconds": None if self.seconds is None else round(self.seconds, 3),
            "failure": self.failure,
        }


@dataclass(frozen=True)
class PairedDifference:
    """By how much one method is more accurate than another on the same held-out labels.

    Attributes
    ----------
    value : float
        Difference of the accuracies.
    low, high : float
        Differences that the labels do not rule out, at 95 %.
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def _wilson(share: float, n: float) -> tuple[float, float]:
    """Wilson's limits of a share that ``n`` labels, or groups of them, have shown."""
    z = float(norm.ppf((1 + COVERAGE) / 2))
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return max(0.0, middle - reach), min(1.0, middle + reach)


def paired_difference(
    first: np.ndarray, second: np.ndarray, weight: float = 1.0
) -> PairedDifference:
    """Difference of two accuracies on the same labels, by those that only one method predicts.

    The interval is that of Bonett and Price (British Journal of Mathematical and Statistical
    Psychology, 2012): Wald's, with one sample more of each kind, so that methods that agree
    everywhere are not taken for equal after few samples.

    Parameters
    ----------
    first, second : array (n_held_out,) of bool
        Whether each method finds each label.
    weight : float, default=1.0
        What one of these labels counts in the interval.

    Returns
    -------
    PairedDifference
        Of the first over the second.
    """
    n_first, n_second = int((first & ~second).sum()), int((second & ~first).sum())
    value = (n_first - n_second) / len(first)
    n = weight * len(first)
    p_first, p_second = (weight * n_first + 1) / (n + 2), (weight * n_second + 1) / (n + 2)
    middle = p_first - p_second
    spread = sqrt((p_first + p_second - middle**2) / (n + 2))
    reach = float(norm.ppf((1 + COVERAGE) / 2)) * spread
    # The middle is drawn towards zero, the difference itself is not.
    return PairedDifference(value, min(middle - reach, value), max(middle + reach, value))
