"""Accuracy of a classifier, estimated from held-out labels."""

from __future__ import annotations

from dataclasses import dataclass

from scipy.stats import beta

__all__ = ["COVERAGE", "ENOUGH", "AccuracyEstimate"]

# Share of intervals that hold the accuracy, for samples that are like the labelled ones.
COVERAGE = 0.95
# Held-out labels that a verdict takes: of fewer, a good model may find too few by bad luck.
ENOUGH = 25


@dataclass(frozen=True)
class AccuracyEstimate:
    """Accuracy on held-out labels, beside the accuracy of guessing.

    The tested fits had fewer labels than the model itself, so that the model is usually a little
    better. The estimate is for samples like the labelled ones.

    Attributes
    ----------
    n_right : int
        Number of held-out labels that were predicted correctly.
    class_counts : tuple of int (n_classes,)
        Number of held-out labels of every class.
    n_groups : int or None
        In how many groups they were held out; None if each by itself. The interval then counts
        groups, not labels: what those of one group tell of the accuracy may be the same thing.
    """

    n_right: int
    class_counts: tuple[int, ...]
    n_groups: int | None = None

    @property
    def n_held_out(self) -> int:
        """Number of held-out labels, at least one."""
        return sum(self.class_counts)

    @property
    def n_independent(self) -> int:
        """Number of held-out labels, or of their groups."""
        return self.n_held_out if self.n_groups is None else self.n_groups

    @property
    def weight(self) -> float:
        """What one held-out label counts in intervals: one, unless it is one of a group."""
        return self.n_independent / self.n_held_out

    @property
    def accuracy(self) -> float:
        """Share of the held-out labels that were predicted correctly."""
        return self.n_right / self.n_held_out

    @property
    def interval(self) -> tuple[float, float]:
        """Confidence interval of the accuracy, by Clopper and Pearson (1934)."""
        tail = (1 - COVERAGE) / 2
        right = self.weight * self.n_right
        wrong = self.weight * (self.n_held_out - self.n_right)
        low = beta.ppf(tail, right, wrong + 1) if right else 0.0
        high = beta.ppf(1 - tail, right + 1, wrong) if wrong else 1.0
        return float(low), float(high)

    @property
    def chance(self) -> float:
        """Accuracy of choosing a class at random for every sample."""
        return 1 / len(self.class_counts)

    @property
    def majority(self) -> float:
        """Accuracy of always choosing the most frequent class."""
        return max(self.class_counts) / self.n_held_out

    @property
    def beats_guessing(self) -> bool:
        """Whether the labels show that the model is better than both."""
        return self.interval[0] > max(self.chance, self.majority)

    @property
    def is_guessing(self) -> bool:
        """Whether the labels are enough to show it, and do not."""
        return self.n_independent >= ENOUGH and not self.beats_guessing

    @property
    def of_groups(self) -> str:
        """How many groups the held-out labels are of, as words; empty if each was by itself."""
        return "" if self.n_groups is None else f" of {self.n_groups} groups"

    def __str__(self) -> str:
        low, high = self.interval
        verdict = "" if self.beats_guessing else "; this is not shown to be better than guessing"
        return (
            f"estimated accuracy {self.accuracy:.2f} ({low:.2f} to {high:.2f}), from "
            f"{self.n_held_out} labels{self.of_groups} held out; chance {self.chance:.2f}, "
            f"majority class {self.majority:.2f}{verdict}"
        )
