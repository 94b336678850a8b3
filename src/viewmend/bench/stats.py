"""Statistics of repeated runs: means, rank sums, wins, ranks over data sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from viewmend.exceptions import InvalidParameterError

LEVEL = 0.05

# The paper divides by the number of runs. It does not say so, but its CUB at VMR 50 % has FMSSL at
# 48.72 ± 25.57 with PREC 3.00 lower, hence seven runs around 65.31 and three at chance, 10; these
# two levels alone deviate by 25.35 if divided by ten, and by 26.72 if divided by nine.
DDOF = 0

# Of the subject against another method; "untested" where no outcome could have been significant.
VERDICTS = ("better", "tied", "worse", "untested")


@dataclass(frozen=True)
class Summary:
    """Mean and standard deviation (divided by ``n``, as in the paper) of ``n`` runs."""

    mean: float
    std: float
    n: int

    @property
    def text(self) -> str:
        """As the paper prints it."""
        return f"{self.mean:.2f} ± {self.std:.2f}"


@dataclass(frozen=True)
class WinTieLoss:
    """How often the subject is significantly better, neither, worse, and could not be tested."""

    wins: int
    ties: int
    losses: int
    untested: int = 0

    def __str__(self) -> str:
        return f"{self.wins}/{self.ties}/{self.losses}"


@dataclass(frozen=True)
class Ranking:
    """Methods ranked on every problem."""

    # (n_methods,); 1 is best, equal scores share the mean of their ranks.
    mean_ranks: np.ndarray
    # Friedman's test against "all methods rank alike", with its chi-square approximation.
    statistic: float
    p_value: float
    # Nemenyi's: mean ranks further apart than this differ at `LEVEL`.
    critical_difference: float
    n_problems: int


def summarise(values: Sequence[float]) -> Summary:
    """Mean and standard deviation, ``sqrt(sum (x - mean)^2 / n)``, of at least one value."""
    array = np.asarray(values, dtype=float)
    if array.size == 0:
        msg = "there are no values to summarise; pass at least one run"
        raise InvalidParameterError(msg)
    return Summary(float(array.mean()), float(array.std(ddof=DDOF)), array.size)


def rank_sum_p(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """p-value of Wilcoxon's rank-sum test against "ours are not larger than theirs".

    Exact also where values are equal: they share the mean of their ranks, and every choice of
    ``len(ours)`` of the pooled ranks is equally likely. The test does not use that the runs share
    problems, as the paper's does not. The result lies in ``[least_p(len(ours), len(theirs)), 1]``.
    """
    # Mean ranks are halves, so twice a rank is a whole number.
    doubled = np.rint(2 * rankdata([*ours, *theirs])).astype(int)
    reached = int(doubled[: len(ours)].sum())
    # In how many ways 0, 1, ... of the ranks add up to 0, 1, ..., their sum: as floating-point
    # numbers, which hold the counts exactly up to 28 runs of each method.
    ways = np.zeros((len(ours) + 1, doubled.sum() + 1))
    ways[0, 0] = 1
    for rank in doubled:
        with_rank = ways[:-1, : ways.shape[1] - rank].copy()
        ways[1:, rank:] += with_rank
    return float(ways[-1, reached:].sum() / ways[-1].sum())


def least_p(n_ours: int, n_theirs: int) -> float:
    """Smallest p-value that the rank-sum test can give: all of ours above all of theirs."""
    return 1 / comb(n_ours + n_theirs, n_ours)


def can_decide(n_ours: int, n_theirs: int, level: float = LEVEL) -> bool:
    """Tell whether any outcome is significant: at 0.05 from four runs of each method on.

    With three of each the least p-value is 0.05 itself, which is not below the level.
    """
    return least_p(n_ours, n_theirs) < level


def verdict(ours: Sequence[float], theirs: Sequence[float], level: float = LEVEL) -> str:
    """What the subject is, of `VERDICTS`, by the paper's two one-sided tests at ``p < level``."""
    if not can_decide(len(ours), len(theirs), level):
        return "untested"
    if rank_sum_p(ours, theirs) < level:
        return "better"
    return "worse" if rank_sum_p(theirs, ours) < level else "tied"


def count_verdicts(verdicts: Iterable[str]) -> WinTieLoss:
    """Count the verdicts of each kind."""
    counted = Counter(verdicts)
    return WinTieLoss(*(counted[name] for name in VERDICTS))


def rank_methods(scores: ArrayLike, level: float = LEVEL) -> Ranking:
    """Friedman's test and Nemenyi's critical difference.

    ``scores`` is an array (n_problems, n_methods), the larger the better, of at least two problems
    and three methods. Problems should be independent of each other: data sets, not missing rates
    of one data set.
    """
    table = np.asarray(scores, dtype=float)
    if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] < 3 or not np.isfinite(table).all():
        msg = (
            "ranks need finite scores of at least 2 problems and 3 methods but the table has "
            f"shape {table.shape} and {np.sum(~np.isfinite(table))} gaps; leave out methods that "
            "have gaps"
        )
        raise InvalidParameterError(msg)
    n_problems, n_methods = table.shape
    ranks = rankdata(-table, axis=1)
    # Where all methods are equal on all problems the statistic is 0/0.
    alike = np.ptp(ranks) == 0
    statistic, p_value = (0.0, 1.0) if alike else friedmanchisquare(*table.T)
    return Ranking(
        mean_ranks=ranks.mean(axis=0),
        statistic=float(statistic),
        p_value=float(p_value),
        critical_difference=critical_difference(n_methods, n_problems, level),
        n_problems=n_problems,
    )


def critical_difference(n_methods: int, n_problems: int, level: float = LEVEL) -> float:
    """Nemenyi's critical difference of mean ranks, ``q sqrt(k (k + 1) / (6 N))``.

    ``q`` is the upper quantile of the studentised range of ``k`` normal variables over
    ``sqrt(2)``; ``k`` is the number of methods, ``N`` that of problems.
    """
    q = studentized_range.ppf(1 - level, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_problems)))


def cliques(mean_ranks: ArrayLike, difference: float) -> list[tuple[int, ...]]:
    """Largest groups of methods whose mean ranks all lie within the critical difference.

    Groups hold positions in ``mean_ranks``, best first; groups of one are left out, and so are
    groups inside another.
    """
    ranks = np.asarray(mean_ranks, dtype=float)
    order = np.argsort(ranks, kind="stable")
    ends = np.searchsorted(ranks[order], ranks[order] + difference, side="right")
    groups, reached = [], 0
    for start, end in enumerate(ends.tolist()):
        if end > reached and end - start > 1:
            groups.append(tuple(order[start:end].tolist()))
        reached = max(reached, end)
    return groups
