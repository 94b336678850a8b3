"""Statistics of a comparison over seeds: intervals, signed ranks, many tests at once, counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit
from scipy.stats import rankdata

# Accuracies are fractions of counts, so smaller differences are rounding.
ROUNDING = 12

# Data set and missing rate.
Cell = tuple[str, float]
Scores = Mapping[Cell, Mapping[int, float]]


@dataclass(frozen=True)
class Interval:
    """A mean and the half-width of its confidence interval, NaN where one value gives none."""

    mean: float
    half_width: float

    @property
    def low(self) -> float:
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        return self.mean + self.half_width


@dataclass(frozen=True)
class Counts:
    """How often differences are above, at and below zero."""

    wins: int
    ties: int
    losses: int

    def __str__(self) -> str:
        return f"{self.wins}/{self.ties}/{self.losses}"


def mean_interval(values: Sequence[float], level: float = 0.95) -> Interval:
    """Student's interval of the mean: ``mean ± t_{n-1} s / sqrt(n)``.

    Parameters
    ----------
    values : array (n,)
    level : float in (0, 1)

    Returns
    -------
    Interval
    """
    values = np.asarray(values, dtype=float)
    n = values.size
    if n < 2:
        return Interval(float(values.mean()) if n else np.nan, np.nan)
    quantile = stdtrit(n - 1, (1 + level) / 2)
    return Interval(float(values.mean()), float(quantile * values.std(ddof=1) / np.sqrt(n)))


def signed_rank(differences: Sequence[float]) -> float:
    """p-value of Wilcoxon's signed-rank test against "the differences are not above zero".

    Exact also where differences are tied: zeros are left out, equal sizes share their mean rank,
    and given the sizes every sign is a fair coin. Hence no p-value is below ``2**-n``, which for
    five seeds is 0.031.

    Parameters
    ----------
    differences : array (n,)

    Returns
    -------
    float
    """
    rounded = np.round(np.asarray(differences, dtype=float), ROUNDING)
    differing = rounded[rounded != 0]
    # Mean ranks are halves, so twice a rank is a whole number.
    ranks = np.rint(2 * rankdata(np.abs(differing))).astype(int)
    reached = ranks[differing > 0].sum()
    return float(_sum_of_coins(ranks)[reached:].sum())


def _sum_of_coins(ranks: np.ndarray) -> np.ndarray:
    """Distribution of the sum of those ``ranks`` whose coin shows heads, (ranks.sum() + 1,)."""
    probability = np.zeros(ranks.sum() + 1)
    probability[0] = 1.0
    for rank in ranks:
        heads = np.zeros_like(probability)
        heads[rank:] = probability[: probability.size - rank]
        probability = (probability + heads) / 2
    return probability


def holm(p_values: Sequence[float]) -> np.ndarray:
    """Holm's step-down correction: reject what is below the level, and all rejections hold at it.

    With ascending ``p_1 ... p_m`` the new ``p_i`` is ``max_{j <= i} min(1, (m - j + 1) p_j)``.

    Parameters
    ----------
    p_values : array (m,)

    Returns
    -------
    array (m,)
        Corrected, in the order of the input.
    """
    p_values = np.asarray(p_values, dtype=float)
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(p_values.size, 0, -1)
    corrected = np.empty_like(p_values)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(factors * p_values[order]))
    return corrected


def win_tie_loss(differences: Sequence[float]) -> Counts:
    """Count the differences above, at and below zero."""
    signs = np.sign(np.round(np.asarray(differences, dtype=float), ROUNDING))
    return Counts(*(int(np.sum(signs == sign)) for sign in (1, 0, -1)))


@dataclass(frozen=True)
class Comparison:
    """One method against another on the same problems, by cells (data set, missing rate).

    Attributes
    ----------
    cells : dict of cell to Interval
        Mean difference over the seeds.
    cell_p : dict of cell to float
        One-sided signed-rank test over the seeds, Holm-corrected over the cells.
    overall : Interval
        Mean difference over the data sets, each the mean of its cells. Rates of one data set are
        not independent, so data sets and not cells count as observations.
    p : float
        One-sided signed-rank test over the mean differences of the cells, not corrected.
    cell_counts, run_counts : Counts
        Of the cells' mean differences and of the single runs.
    """

    cells: Mapping[Cell, Interval]
    cell_p: Mapping[Cell, float]
    overall: Interval
    p: float
    cell_counts: Counts
    run_counts: Counts

    @property
    def not_better(self) -> list[Cell]:
        """Cells whose mean difference is not above zero."""
        return [cell for cell, found in self.cells.items() if round(found.mean, ROUNDING) <= 0]


def paired_differences(ours: Scores, theirs: Scores) -> dict[Cell, np.ndarray]:
    """Our scores less theirs, on the cells and seeds that both have.

    Parameters
    ----------
    ours, theirs : dict of cell to dict of seed to score

    Returns
    -------
    dict of cell to array (n_shared_seeds,)
    """
    shared = {cell: sorted(set(ours[cell]) & set(theirs.get(cell, ()))) for cell in ours}
    return {
        cell: np.array([ours[cell][seed] - theirs[cell][seed] for seed in seeds])
        for cell, seeds in shared.items()
        if seeds
    }


def compare(differences: Mapping[Cell, np.ndarray]) -> Comparison:
    """Intervals, tests and counts of the differences of every cell, of which there is at least one.

    Parameters
    ----------
    differences : dict of cell to array (n_seeds,)

    Returns
    -------
    Comparison
    """
    means = {cell: float(np.mean(values)) for cell, values in differences.items()}
    of_data_sets = [
        np.mean([mean for (data, _), mean in means.items() if data == name])
        for name in sorted({data for data, _ in means})
    ]
    cell_p = holm([signed_rank(values) for values in differences.values()])
    return Comparison(
        cells={cell: mean_interval(values) for cell, values in differences.items()},
        cell_p=dict(zip(differences, cell_p.tolist(), strict=True)),
        overall=mean_interval(of_data_sets),
        p=signed_rank(list(means.values())),
        cell_counts=win_tie_loss(list(means.values())),
        run_counts=win_tie_loss(np.concatenate(list(differences.values()))),
    )
