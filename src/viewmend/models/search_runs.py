"""What a search knows of the points of its grid: folds, hits, who races on, who is better."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from viewmend.exceptions import InvalidLabelsError

__all__ = [
    "Point",
    "Run",
    "label_folds",
    "leader",
    "share",
    "still_racing",
    "surely_better",
]

# Values by name of parameter.
Point = Mapping[str, Any]

# Share of the points that survive a fold.
SURVIVORS = 1 / 3


@dataclass(eq=False)
class Run:
    """A point of the grid, and which held-out labels it found.

    Attributes
    ----------
    point : dict
    hits : list of array (n_held_out,) of bool
        One per fold that it was in, of short fits.
    full_hits : list of array (n_held_out,) of bool
        The same of the longer fits of the last comparison, for the folds that it came to there.
    """

    point: Point
    hits: list[np.ndarray] = field(default_factory=list)
    full_hits: list[np.ndarray] = field(default_factory=list)

    @property
    def score(self) -> float:
        """Share of the labels held out so far that it found."""
        return share(self.hits)

    @property
    def best_known(self) -> list[np.ndarray]:
        """Hits fold by fold, of the longer fits where there are any."""
        return self.full_hits + self.hits[len(self.full_hits) :]


def share(hits: Sequence[np.ndarray]) -> float:
    """Share of the labels that were found; NaN where none was held out."""
    return float(np.concatenate(hits).mean()) if hits else math.nan


def label_folds(codes: np.ndarray, order: np.ndarray, n_folds: int) -> list[np.ndarray]:
    """Deal the labelled samples into folds, class by class, in a given order.

    A class with a single label stays out of all folds: held out, it would be unknown.

    Parameters
    ----------
    codes : array (n_samples,) of int
        Classes, -1 for unlabelled samples.
    order : array (n_samples,) of int
        Samples in the order in which they are dealt.
    n_folds : int

    Returns
    -------
    list of array of int
        Samples held out together; folds that would be empty are left out.
    """
    known = order[codes[order] >= 0]
    # Classes as they come, not by code: other names for them give the same folds.
    _, first, counts = np.unique(codes[known], return_index=True, return_counts=True)
    several = codes[known[np.sort(first[counts > 1])]]
    if len(several) == 0:
        msg = (
            "every class has a single label, so that none can be held out; label two samples of "
            "some class, or use the estimator with its own parameters"
        )
        raise InvalidLabelsError(msg)
    # One row of cards: where a class ends the next one goes on, so that folds are of one size.
    cards = np.concatenate([known[codes[known] == code] for code in several])
    return [cards[turn::n_folds] for turn in range(min(n_folds, len(cards)))]


def still_racing(runs: Sequence[Run]) -> list[Run]:
    """The first run, and of the others that were in every fold so far the best third."""
    first, *others = runs
    others = [run for run in others if len(run.hits) == len(first.hits)]
    if first.hits:
        n_survivors = math.ceil(SURVIVORS * len(others))
        others = sorted(others, key=lambda run: -run.score)[:n_survivors]
    return [first, *others]


def leader(runs: Sequence[Run]) -> Run:
    """The best of the runs that were in all folds, the first of equals."""
    return max(still_racing(runs), key=lambda run: run.score)


def surely_better(rival: Run, champion: Run, margin: float) -> bool:
    """Whether a run found more labels than another, by more than ``margin`` standard errors.

    With ``w`` labels that only the one found and ``l`` that only the other did, ``w - l`` has the
    standard error ``sqrt(w + l)`` if both are equally good (McNemar 1947).
    """
    gains = np.concatenate(rival.best_known).astype(int) - np.concatenate(champion.best_known)
    return bool(gains.sum() > margin * math.sqrt(np.abs(gains).sum()))
