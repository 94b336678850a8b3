"""Some samples for people to label, best first, none of which repeats another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

# An edge of so much of the strongest one of a sample joins it to a near-duplicate.
STRONG_EDGE = 0.5


class Ranking(Protocol):
    """Worth of the label of every sample, which may fall with each sample that is chosen."""

    def gains(self, left: np.ndarray) -> np.ndarray:
        """What each label is worth, (n_samples,), none of them negative.

        Of samples that are not ``left`` (n_samples,) of bool it need not be known.
        """

    def told(self, row: int) -> float:
        """How many predictions the label of a sample would inform; NaN if that is not known."""

    def choose(self, row: int) -> None:
        """Go on as if this sample had a label."""


@dataclass(frozen=True, eq=False)
class Likeness:
    """Which samples repeat each other.

    ``twins`` (n_samples,) of int are equal for samples of the same content; strong edges of the
    ``graph`` join near-duplicates.
    """

    graph: csr_array
    twins: np.ndarray

    def unlike(self, rows: np.ndarray) -> np.ndarray:
        """Samples (n_samples,) of bool that have the content of none of these."""
        return ~np.isin(self.twins, self.twins[rows])

    def twins_of(self, row: int) -> np.ndarray:
        """Samples of the same content, this one among them."""
        return np.flatnonzero(self.twins == self.twins[row])

    def like(self, row: int) -> np.ndarray:
        """Samples that nearly repeat this one, by the strongest of its edges."""
        edges = slice(self.graph.indptr[row], self.graph.indptr[row + 1])
        weights, columns = self.graph.data[edges], self.graph.indices[edges]
        if len(weights) == 0:
            return np.empty(0, dtype=np.int64)
        return np.asarray(columns[weights >= STRONG_EDGE * weights.max()])


@dataclass(frozen=True, eq=False)
class Batch:
    """Chosen samples ``rows`` (n,), best first.

    ``gains`` and ``told`` (n,) are those of the ranking when each was chosen.
    """

    rows: np.ndarray
    gains: np.ndarray
    told: np.ndarray


def choose_batch(
    ranking: Ranking, n: int, allowed: np.ndarray, costs: np.ndarray, likeness: Likeness
) -> Batch:
    """At most ``n`` samples, one by one, each of the largest gain per cost that is left.

    Parameters
    ----------
    ranking : Ranking
    n : int
    allowed : array (n_samples,) of bool
        Samples that may be chosen.
    costs : array (n_samples,)
        Of a label, all of them positive.
    likeness : Likeness
        No two samples of the same content are chosen. Near-duplicates are chosen only where
        nothing else is left.
    """
    allowed, fresh = allowed.copy(), allowed.copy()
    rows: list[int] = []
    gains: list[float] = []
    told: list[float] = []
    while len(rows) < n and allowed.any():
        if not fresh.any():
            fresh = allowed.copy()
        worth = ranking.gains(fresh)
        row = int(np.argmax(np.where(fresh, worth / costs, -np.inf)))
        rows.append(row)
        gains.append(float(worth[row]))
        told.append(ranking.told(row))
        allowed[likeness.twins_of(row)] = False
        fresh &= allowed
        fresh[likeness.like(row)] = False
        ranking.choose(row)
    return Batch(np.array(rows, dtype=np.int64), np.array(gains), np.array(told))
