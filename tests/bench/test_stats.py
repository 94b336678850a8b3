"""Statistics against brute force, closed forms and published critical values."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import friedmanchisquare, mannwhitneyu, rankdata

from viewmend.bench.stats import (
    can_decide,
    cliques,
    count_verdicts,
    critical_difference,
    least_p,
    rank_methods,
    rank_sum_p,
    summarise,
    verdict,
)
from viewmend.exceptions import InvalidParameterError

# Few different values, so that ties are common.
RUNS = st.lists(st.integers(0, 5).map(float), min_size=1, max_size=5)
MIRROR = {"better": "worse", "worse": "better", "tied": "tied", "untested": "untested"}


def p_by_counting(ours, theirs):
    """Share of all choices of ranks whose sum is at least the one observed."""
    ranks = rankdata([*ours, *theirs])
    reached = ranks[: len(ours)].sum()
    sums = [ranks[list(chosen)].sum() for chosen in combinations(range(len(ranks)), len(ours))]
    return np.mean([total >= reached - 1e-9 for total in sums])


@given(RUNS, RUNS)
def test_rank_sum_counts_choices_also_with_ties(ours, theirs):
    assert rank_sum_p(ours, theirs) == pytest.approx(p_by_counting(ours, theirs), abs=1e-12)


@given(st.permutations(range(14)), st.integers(1, 13))
def test_rank_sum_is_scipys_exact_test_without_ties(order, n_ours):
    ours, theirs = order[:n_ours], order[n_ours:]
    expected = mannwhitneyu(ours, theirs, alternative="greater", method="exact").pvalue
    assert rank_sum_p(ours, theirs) == pytest.approx(expected, abs=1e-12)


@given(RUNS, RUNS)
def test_rank_sum_sees_only_the_order_and_stays_above_its_least_value(ours, theirs):
    p = rank_sum_p(ours, theirs)
    bent = rank_sum_p([x**3 - 7 for x in ours], [x**3 - 7 for x in theirs])
    assert p == bent
    assert least_p(len(ours), len(theirs)) <= p <= 1
    assert p + rank_sum_p(theirs, ours) >= 1


def test_least_p_is_reached_by_complete_separation():
    assert rank_sum_p([7, 8, 9], [1, 2, 3, 4]) == least_p(3, 4) == 1 / 35


def test_four_runs_are_the_fewest_equal_numbers_that_can_decide():
    """Three of each reach the level of 0.05 and never pass it."""
    assert least_p(3, 3) == 0.05
    assert not can_decide(3, 3)
    assert can_decide(4, 4)
    assert can_decide(3, 4)
    assert verdict([7, 8, 9], [1, 2, 3]) == "untested"
    assert verdict([7, 8, 9, 9], [1, 2, 3, 4]) == "better"
    # One run out of order, and four runs no longer do.
    assert verdict([2.5, 7, 8, 9], [1, 2, 3, 4]) == "tied"


@given(RUNS, RUNS)
def test_verdicts_mirror_each_other(ours, theirs):
    assert verdict(theirs, ours) == MIRROR[verdict(ours, theirs)]


def test_verdicts_are_counted_as_wins_ties_losses():
    counted = count_verdicts(["better"] * 3 + ["tied"] + ["worse"] * 2 + ["untested"] * 4)
    assert str(counted) == "3/1/2"
    assert counted.untested == 4


def test_deviation_divides_by_the_number_of_runs_as_the_paper_must_have():
    """Seven runs around 65.31 and three at chance fit the printed 48.72 ± 25.57 only thus."""
    good, chance = (48.72 - 0.3 * 10) / 0.7, 10.0
    two_levels = [good] * 7 + [chance] * 3
    summary = summarise(two_levels)
    assert summary.mean == pytest.approx(48.72)
    # Spread among the good runs can only add to the deviation of the two levels.
    assert summary.std < 25.57 < np.std(two_levels, ddof=1)
    assert summarise([3.0]).std == 0


@pytest.mark.parametrize(
    ("n_methods", "q"),
    [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (6, 2.850), (8, 3.031), (10, 3.164)],
)
def test_critical_differences_have_the_published_quantiles(n_methods, q):
    """Table 5 of Demsar (2006), level 0.05."""
    found = critical_difference(n_methods, 20)
    assert found == pytest.approx(q * np.sqrt(n_methods * (n_methods + 1) / 120), rel=4e-4)


@given(
    st.lists(st.lists(st.integers(0, 6).map(float), min_size=4, max_size=4), min_size=2, max_size=6)
)
def test_ranks_add_up_and_ignore_how_scores_are_spaced(rows):
    ranking = rank_methods(rows)
    assert ranking.mean_ranks.sum() == pytest.approx(4 * 5 / 2)
    bent = rank_methods(np.exp(np.array(rows)))
    np.testing.assert_allclose(bent.mean_ranks, ranking.mean_ranks)
    assert bent.p_value == pytest.approx(ranking.p_value)
    assert 0 <= ranking.p_value <= 1


def test_friedman_is_zero_where_all_are_alike_and_largest_where_all_agree():
    assert rank_methods(np.ones((4, 3))).p_value == 1
    agreeing = rank_methods(np.tile([3.0, 2.0, 1.0], (5, 1)))
    # N (k - 1) bounds the statistic and is reached by complete agreement.
    assert agreeing.statistic == pytest.approx(5 * 2)
    np.testing.assert_allclose(agreeing.mean_ranks, [1, 2, 3])
    rng = np.random.default_rng(0)
    table = rng.random((6, 5))
    assert rank_methods(table).statistic == pytest.approx(friedmanchisquare(*table.T).statistic)


@given(st.lists(st.floats(1, 12), min_size=1, max_size=9), st.floats(0, 8))
def test_cliques_are_all_largest_groups_within_the_difference(ranks, difference):
    ranks = np.array(ranks)
    found = [frozenset(group) for group in cliques(ranks, difference)]
    windows = {
        frozenset(np.flatnonzero((ranks >= low) & (ranks <= low + difference)).tolist())
        for low in ranks
    }
    largest = {one for one in windows if len(one) > 1 and not any(one < two for two in windows)}
    assert set(found) == largest
    assert len(found) == len(set(found))


@pytest.mark.parametrize("table", [np.ones((1, 4)), np.ones((4, 2)), [[1, 2, np.nan], [1, 2, 3]]])
def test_ranks_refuse_what_has_none(table):
    with pytest.raises(InvalidParameterError, match="at least 2 problems and 3 methods"):
        rank_methods(table)


def test_no_runs_are_no_summary():
    with pytest.raises(InvalidParameterError, match="at least one run"):
        summarise([])
