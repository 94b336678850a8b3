"""Statistics of the benchmarks against SciPy, enumeration and values worked out by hand."""

import itertools

import numpy as np
import pytest
from comparison import (
    compare,
    holm,
    mean_interval,
    paired_differences,
    signed_rank,
    win_tie_loss,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import rankdata, ttest_1samp, wilcoxon

values = st.lists(st.integers(-6, 6), min_size=1, max_size=9)
p_values = st.lists(st.floats(0, 1), min_size=1, max_size=8)


def by_enumeration(differences):
    """P(rank sum of heads >= the observed one) over all 2^n sign patterns."""
    kept = np.array([d for d in differences if d != 0], dtype=float)
    ranks = rankdata(np.abs(kept))
    observed = ranks[kept > 0].sum()
    sums = [
        sum(r for r, up in zip(ranks, heads, strict=True) if up)
        for heads in itertools.product((0, 1), repeat=kept.size)
    ]
    return np.mean([s >= observed - 1e-9 for s in sums])


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=12))
def test_interval_is_that_of_scipy(sample):
    found = mean_interval(sample)
    if np.ptp(sample) > 1e-6:
        expected = ttest_1samp(sample, 0).confidence_interval(0.95)
        assert_allclose((found.low, found.high), expected, rtol=1e-9, atol=1e-9)
    assert_allclose(found.mean, np.mean(sample), atol=1e-12)


def test_interval_by_hand_and_without_spread():
    # s = 2, n = 4, t_3(0.975) = 3.182446: half-width 3.182446 * 2 / 2.
    found = mean_interval([-np.sqrt(6), 0.0, 0.0, np.sqrt(6)])
    assert_allclose((found.mean, found.half_width), (0.0, 3.182446), atol=1e-6)
    assert np.isnan(mean_interval([3.0]).half_width)
    assert mean_interval([3.0]).mean == 3.0


def test_interval_covers_the_mean_as_often_as_it_says():
    rng = np.random.default_rng(0)
    found = [mean_interval(sample) for sample in rng.normal(1.0, 2.0, size=(2000, 5))]
    assert np.mean([i.low <= 1.0 <= i.high for i in found]) == pytest.approx(0.95, abs=0.015)


@settings(max_examples=60, deadline=None)
@given(values)
def test_signed_rank_is_exact_with_ties_and_zeros(differences):
    assert_allclose(signed_rank(differences), by_enumeration(differences), atol=1e-12)


def test_signed_rank_is_that_of_scipy_without_ties():
    rng = np.random.default_rng(1)
    for n in (5, 12, 30):
        sample = rng.normal(0.3, size=n)
        expected = wilcoxon(sample, alternative="greater", method="exact").pvalue
        assert_allclose(signed_rank(sample), expected, rtol=1e-10)


def test_signed_rank_of_all_wins_and_of_no_difference():
    assert signed_rank([1, 2, 3, 4, 5]) == 2**-5
    assert signed_rank([0.0, 0.0]) == 1.0
    # 0.3 - 0.2 and 0.2 - 0.1 differ in the last bit, but are the same difference.
    assert signed_rank([0.3 - 0.2, -(0.2 - 0.1)]) == signed_rank([0.1, -0.1]) == 0.75


def test_holm_by_hand():
    # Ascending 0.01, 0.03, 0.04 times 3, 2, 1; the last may not fall below the one before.
    assert_allclose(holm([0.04, 0.01, 0.03]), [0.06, 0.03, 0.06])
    assert_allclose(holm([0.9, 0.8]), [1.0, 1.0])
    assert holm([]).size == 0


@given(p_values)
def test_holm_lies_between_the_raw_and_the_bonferroni_values_and_keeps_the_order(raw):
    raw = np.array(raw)
    found = holm(raw)
    assert np.all(found >= raw)
    assert np.all(found <= np.minimum(1, raw.size * raw) + 1e-15)
    assert np.all(np.diff(found[np.argsort(raw, kind="stable")]) >= 0)


@given(p_values, st.floats(0.001, 0.5))
def test_holm_rejects_what_stepping_down_rejects(raw, level):
    ascending = np.sort(raw)
    n_rejected = next((i for i, p in enumerate(ascending) if (len(raw) - i) * p > level), len(raw))
    assert np.sum(holm(raw) <= level) == n_rejected


@given(values)
def test_losses_are_the_wins_of_the_other(differences):
    ours, theirs = win_tie_loss(differences), win_tie_loss([-d for d in differences])
    assert (ours.wins, ours.ties, ours.losses) == (theirs.losses, theirs.ties, theirs.wins)
    assert ours.wins + ours.ties + ours.losses == len(differences)


def test_pairs_are_matched_by_cell_and_seed():
    ours = {("a", 0.3): {0: 5.0, 1: 7.0, 2: 9.0}, ("b", 0.3): {0: 1.0}, ("c", 0.3): {0: 1.0}}
    theirs = {("a", 0.3): {2: 4.0, 0: 3.0}, ("b", 0.3): {1: 1.0}}
    found = paired_differences(ours, theirs)
    assert list(found) == [("a", 0.3)]
    assert_allclose(found["a", 0.3], [2.0, 5.0])


def test_comparison_by_hand():
    differences = {
        ("a", 0.3): np.array([1.0, 2.0, 3.0]),
        ("a", 0.5): np.array([4.0, 4.0, 4.0]),
        ("b", 0.3): np.array([-2.0, -1.0, 0.0]),
        ("b", 0.5): np.array([1.0, -1.0, 0.0]),
    }
    found = compare(differences)
    # Data sets average 3 and -0.5: mean 1.25, s / sqrt(2) = 1.75, t_1(0.975) = 12.7062.
    assert_allclose((found.overall.mean, found.overall.half_width), (1.25, 22.23586), atol=1e-4)
    # Cell means 2, 4, -1, 0: ranks 2, 3, 1, and 5 or more in 2 of 8 sign patterns.
    assert found.p == 0.25
    assert str(found.cell_counts) == "2/1/1"
    assert str(found.run_counts) == "7/2/3"
    assert found.not_better == [("b", 0.3), ("b", 0.5)]
    # Raw 1/8, 1/8, 1, 3/4 over four cells.
    assert_allclose(list(found.cell_p.values()), [0.5, 0.5, 1.0, 1.0])
