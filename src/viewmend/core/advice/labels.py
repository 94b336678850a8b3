"""Which labels would help most: strategies, as objects in one table.

A strategy makes a ranking of what is known of the samples. Coverage and the default can do without
the answers of a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from viewmend.core.advice.batches import Ranking
from viewmend.core.advice.change import Answers, expected_changes
from viewmend.core.advice.field import GraphField, graph_field
from viewmend.core.common.class_shares import normalise_rows
from viewmend.core.common.held_out import unit_columns
from viewmend.core.graphs.spreading import spread_labels

# Labels per class up to which coverage alone decides: until then a model is often sure of samples
# whose class it has not met. From there on doubt counts more with every label per class.
COVERED = 3.0
# Labels per class that raise the power of doubt by one, and the largest power.
PER_POWER, MOST_POWER = 3.0, 2.0
# Added to doubt, so that coverage still ranks samples that a model is quite sure of.
LEAST_DOUBT = 0.01
# Samples whose expected change is computed at a time, at least: those that coverage and doubt put
# first among the ones that are left.
SHORTLIST = 64
# Of these, changes are computed of so many at a time.
AT_A_TIME = 16
# Entries of what their labels spread, at most: of very many samples, some are looked at later.
LARGEST = 1 << 25
# Relative residual of what their labels spread.
TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of the samples of a graph.

    Attributes
    ----------
    graph : csr_array (n_samples, n_samples)
    spreading : float
        How far labels travel on it.
    codes : array (n_samples,) of int
        Classes of the labelled samples, -1 for the others.
    shares : array (n_samples, n_classes) or None
        Class shares; None where no model was fitted.
    answers : Answers or None
        The parts of the scores, likewise.
    rates : array (n_samples,) or None
        What a gain counts: one over the cost of the label, zero where nobody can give one. None
        where all labels cost the same.
    """

    graph: csr_array
    spreading: float
    codes: np.ndarray
    shares: np.ndarray | None = None
    answers: Answers | None = None
    rates: np.ndarray | None = None

    @cached_property
    def field(self) -> GraphField:
        """The Gaussian field of the graph, given the labels."""
        field = graph_field(self.graph, self.spreading)
        return field.given(np.flatnonzero(self.codes >= 0))

    @property
    def labels_per_class(self) -> float:
        """Mean number; zero without labels."""
        n_classes = len(np.unique(self.codes[self.codes >= 0]))
        return float(np.sum(self.codes >= 0) / max(n_classes, 1))


class LabelStrategy(Protocol):
    """A way to rank samples by what their label would be worth."""

    def ranking(self, known: Known, n: int) -> Ranking:
        """Of the samples, from which ``n`` are to be chosen."""


def margin_doubts(shares: np.ndarray) -> np.ndarray:
    """One less the lead of the best class over the second, (n_samples,), in [0, 1]."""
    best = np.partition(shares, -2, axis=1)[:, -2:]
    return np.asarray(1 - (best[:, 1] - best[:, 0]))


def entropy_doubts(shares: np.ndarray) -> np.ndarray:
    """Entropy of the class shares over the largest there can be, (n_samples,), in [0, 1]."""
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.asarray(-np.sum(shares * logs, axis=1) / np.log(shares.shape[1]))


def gini_doubts(shares: np.ndarray) -> np.ndarray:
    """Chance (n_samples,) that two draws from the class shares differ."""
    return np.asarray(1 - np.sum(shares**2, axis=1))


@dataclass(frozen=True, eq=False)
class FixedRanking:
    """Gains that do not change with what is chosen."""

    worth: np.ndarray

    def gains(self, left: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """As they are."""
        return self.worth

    def told(self, row: int) -> float:  # noqa: ARG002
        """Not known: other samples were not looked at."""
        return np.nan

    def choose(self, row: int) -> None:
        """Nothing changes."""


@dataclass(eq=False)
class FieldRanking:
    """Variance of the sum of the field that a label explains, times a ``weight`` (n_samples,)."""

    field: GraphField
    weight: np.ndarray

    def gains(self, left: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """Of all samples, whichever are left."""
        return self.worth

    @property
    def worth(self) -> np.ndarray:
        """Sigma-optimality: ``(1^T C e_i)^2 / (C_ii + 1)``, per sample of the graph."""
        reach = self.field.reach
        explained = reach * np.maximum(reach, 0) / (1 + self.field.variances)
        return np.asarray(self.weight * explained / len(reach))

    def told(self, row: int) -> float:
        """Samples' worth of the field that the label tells."""
        return self.field.told_by(row)

    def choose(self, row: int) -> None:
        """Samples that this one informs gain less from now on."""
        self.field = self.field.given_one(row)


@dataclass(frozen=True)
class Margin:
    """Least lead of the best class over the second."""

    def ranking(self, known: Known, n: int) -> Ranking:  # noqa: ARG002
        """Independent of what is chosen."""
        return FixedRanking(margin_doubts(_shares(known)))


@dataclass(frozen=True)
class Entropy:
    """Largest entropy of the class shares."""

    def ranking(self, known: Known, n: int) -> Ranking:  # noqa: ARG002
        """Independent of what is chosen."""
        return FixedRanking(entropy_doubts(_shares(known)))


@dataclass(frozen=True)
class Coverage:
    """Samples that are similar to many others that no label reaches."""

    def ranking(self, known: Known, n: int) -> Ranking:  # noqa: ARG002
        """By the field alone; no answer is looked at."""
        return FieldRanking(known.field, np.ones(len(known.codes)))


@dataclass(frozen=True)
class CoverageAndDoubt:
    """Coverage first; with more labels per class, doubtful samples that stand for many."""

    def ranking(self, known: Known, n: int) -> Ranking:
        """Coverage times a power of doubt, zero at first."""
        power = doubt_power(known.labels_per_class)
        if known.shares is None or power == 0:
            return Coverage().ranking(known, n)
        doubts = LEAST_DOUBT + gini_doubts(known.shares)
        return FieldRanking(known.field, doubts**power)


def doubt_power(labels_per_class: float) -> float:
    """What doubt counts beside coverage."""
    return float(np.clip((labels_per_class - COVERED) / PER_POWER, 0, MOST_POWER))


@dataclass(frozen=True)
class ExpectedChange:
    """Largest change of the answers of all samples that the label is expected to bring."""

    def ranking(self, known: Known, n: int) -> Ranking:
        """Exact for the samples that coverage and doubt together put first; zero for others."""
        guess = FieldRanking(known.field, LEAST_DOUBT + gini_doubts(_shares(known))).worth
        # Samples that cost too much must not fill the list.
        guess = guess if known.rates is None else guess * known.rates
        size = min(n, LARGEST // len(guess))
        return ChangeRanking(known, guess, max(SHORTLIST, size))


@dataclass(eq=False)
class ChangeRanking:
    """Expected changes ``worth`` (n_samples,), zero but for samples that are looked at.

    These are the first by a ``guess`` (n_samples,), ``size`` of them, and some others once none of
    them is left. Each is looked at as if the chosen ones had the labels that are expected of them.
    The more labels there are, the less one more changes. So changes from before the last choice
    are upper bounds, and those that cannot be the largest are left at that (Minoux 1978).
    """

    known: Known
    guess: np.ndarray
    size: int

    def __post_init__(self) -> None:
        assert self.known.answers is not None, "comes with the shares"
        n_samples = len(self.guess)
        self.answers, self.shares = self.known.answers, _shares(self.known)
        self.rates = np.ones(n_samples) if self.known.rates is None else self.known.rates
        self.worth, self.rows = np.zeros(n_samples), np.empty(0, dtype=np.int64)
        # What labels of these rows spread, and whether their worth is that after the last choice.
        self.spread, self.is_known = np.empty((n_samples, 0)), np.empty(0, dtype=bool)

    def gains(self, left: np.ndarray) -> np.ndarray:
        """Expected number of answers that change: that of the best sample, bounds of others."""
        if left.any() and not left[self.rows].any():
            self._look_at(np.flatnonzero(left))
        self._compute_best(np.flatnonzero(left[self.rows]))
        return self.worth

    def told(self, row: int) -> float:
        """Answers that are expected to change."""
        return float(self.worth[row])

    def choose(self, row: int) -> None:
        """Labels change less from now on where this one has told of the answers."""
        for place in np.flatnonzero(self.rows == row):
            self.answers = self.answers.with_label(self.spread[:, place], self.shares[row])
        self.is_known[:] = False

    def _look_at(self, rows: np.ndarray) -> None:
        """Go on with the first of some samples, in the place of those before."""
        # At first as many as are asked for: most of them will do.
        size = SHORTLIST if len(self.rows) else self.size
        first = np.argsort(-self.guess[rows], kind="stable")[:size]
        self.worth[self.rows] = 0
        self.rows, self.is_known = np.sort(rows[first]), np.zeros(len(first), dtype=bool)
        self.worth[self.rows] = np.inf
        columns = unit_columns(self.rows, len(self.guess))
        self.spread = spread_labels(self.known.graph, columns, self.known.spreading, TOLERANCE)

    def _compute_best(self, places: np.ndarray) -> None:
        """Compute the worth of some samples, until that of the best per cost is known."""
        while len(places):
            rows = self.rows[places]
            best = places[np.argsort(-self.worth[rows] * self.rates[rows], kind="stable")]
            if self.is_known[best[0]]:
                return
            some = np.sort(best[~self.is_known[best]][:AT_A_TIME])
            rows, spread = self.rows[some], self.spread[:, some]
            self.worth[rows] = expected_changes(self.answers, spread, self.shares[rows])
            self.is_known[some] = True


def _shares(known: Known) -> np.ndarray:
    assert known.shares is not None, "asked for where there are answers"
    return normalise_rows(known.shares)


DEFAULT = "auto"
STRATEGIES: Mapping[str, LabelStrategy] = {
    DEFAULT: CoverageAndDoubt(),
    "coverage": Coverage(),
    "margin": Margin(),
    "entropy": Entropy(),
    "change": ExpectedChange(),
}
