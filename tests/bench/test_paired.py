"""Paired comparisons against SciPy, enumeration and values worked out by hand."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import rankdata, ttest_1samp, wilcoxon

from viewmend.bench.paper_values import Look
from viewmend.bench.runs import Condition, Record, RunKey
from viewmend.bench.tables.paired import (
    PairedComparison,
    holm,
    intervals_table,
    mean_interval,
    paired_differences,
    paired_table,
    rivals_table,
    signed_rank_p,
    win_tie_loss,
)
from viewmend.bench.tables.table import to_markdown

values = st.lists(st.integers(-6, 6), min_size=1, max_size=9)
p_values = st.lists(st.floats(0, 1), min_size=1, max_size=8)


def by_enumeration(differences):
    """P(rank sum of heads >= the observed one) over all 2^n sign patterns."""
    differing = np.array([d for d in differences if d != 0], dtype=float)
    ranks = rankdata(np.abs(differing))
    observed = ranks[differing > 0].sum()
    sums = [
        sum(r for r, up in zip(ranks, heads, strict=True) if up)
        for heads in itertools.product((0, 1), repeat=differing.size)
    ]
    return np.mean([s >= observed - 1e-9 for s in sums])


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=12))
def test_interval_is_that_of_scipy(sample):
    found = mean_interval(sample)
    if np.ptp(sample) > 1e-6:
        expected = ttest_1samp(sample, 0).confidence_interval(0.95)
        ends = found.mean - found.half_width, found.mean + found.half_width
        assert_allclose(ends, expected, rtol=1e-9, atol=1e-9)
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
    covered = [abs(interval.mean - 1.0) <= interval.half_width for interval in found]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.015)


@settings(max_examples=60, deadline=None)
@given(values)
def test_signed_rank_is_exact_with_ties_and_zeros(differences):
    assert_allclose(signed_rank_p(differences), by_enumeration(differences), atol=1e-12)


def test_signed_rank_is_that_of_scipy_without_ties():
    rng = np.random.default_rng(1)
    for n in (5, 12, 30):
        sample = rng.normal(0.3, size=n)
        expected = wilcoxon(sample, alternative="greater", method="exact").pvalue
        assert_allclose(signed_rank_p(sample), expected, rtol=1e-10)


def test_signed_rank_of_all_wins_and_of_no_difference():
    assert signed_rank_p([1, 2, 3, 4, 5]) == 2**-5
    assert signed_rank_p([0.0, 0.0]) == 1.0
    # 0.3 - 0.2 and 0.2 - 0.1 differ in the last bit, but are the same difference.
    assert signed_rank_p([0.3 - 0.2, -(0.2 - 0.1)]) == signed_rank_p([0.1, -0.1]) == 0.75


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


def cell(data, rate=0.3):
    return Condition("honest", data, rate, 0.05)


def run(method, data, repetition, score, status="done"):
    key = RunKey("fit", "honest", data, 0.3, 0.05, method, (), repetition)
    fields = ("accuracy", "macro_precision", "macro_recall", "macro_f1")
    return Record(key, status, dict.fromkeys(fields, score / 100) if status == "done" else {})


def test_pairs_are_matched_by_cell_and_repetition():
    ours = [("a", 0, 5), ("a", 1, 7), ("a", 2, 9), ("b", 0, 1), ("c", 0, 1)]
    theirs = [("a", 2, 4), ("a", 0, 3), ("b", 1, 1)]
    records = [run("us", *values) for values in ours] + [run("them", *v) for v in theirs]
    differences = paired_differences(records, "us", "them", "ACC")
    assert list(differences) == [cell("a")]
    assert_allclose(differences[cell("a")], [2.0, 5.0])


def test_comparison_by_hand():
    differences = {
        cell("a", 0.3): np.array([1.0, 2.0, 3.0]),
        cell("a", 0.5): np.array([4.0, 4.0, 4.0]),
        cell("b", 0.3): np.array([-2.0, -1.0, 0.0]),
        cell("b", 0.5): np.array([1.0, -1.0, 0.0]),
    }
    compared = PairedComparison(differences)
    # Data sets average 3 and -0.5: mean 1.25, s / sqrt(2) = 1.75, t_1(0.975) = 12.7062.
    overall = compared.overall
    assert_allclose((overall.mean, overall.half_width), (1.25, 22.23586), atol=1e-4)
    # Cell means 2, 4, -1, 0: ranks 2, 3, 1, and 5 or more in 2 of 8 sign patterns.
    assert compared.p == 0.25
    assert str(compared.cell_counts) == "2/1/1"
    assert str(compared.run_counts) == "7/2/3"
    assert compared.not_better == [cell("b", 0.3), cell("b", 0.5)]
    # Raw 1/8, 1/8, 1, 3/4 over four cells.
    assert_allclose(list(compared.cell_p.values()), [0.5, 0.5, 1.0, 1.0])


RECORDS = [run("us", *v) for v in [("a", 0, 90), ("a", 1, 80), ("b", 0, 50), ("b", 1, 50)]] + [
    run("them", *v)
    for v in [("a", 0, 70), ("a", 1, 70), ("b", 0, 60), ("b", 1, 70), ("c", 0, 9, "error")]
]


def test_the_paired_table_names_what_was_lost():
    text = to_markdown(paired_table(RECORDS, Look(subject="us")))
    # Differences 20 and 10, then -10 and -20: means 15 and -15, half-widths 12.7062 * 5.
    assert "| a | 30% | 5% | +15.0 ± 63.5 (p 0.500) |" in text
    assert "| b | 30% | 5% | -15.0 ± 63.5 (p 1.000) |" in text
    assert "| all data sets |  |  | +0.0 ± 190.6 |" in text
    assert "| p |  |  | 0.750 |" in text
    assert "| wins/ties/losses of cells |  |  | 1/0/1 |" in text
    assert "| wins/ties/losses of runs |  |  | 2/0/2 |" in text
    assert "Cells where us is not better: b, VMR 30%, LAR 5%, them: -15.0 ± 63.5." in text


def test_the_table_of_rivals_has_a_line_for_each():
    timed = [replace(one, timings={"fit": 2.0 + one.key.repetition}) for one in RECORDS]
    text = to_markdown(rivals_table(timed, Look(subject="us")))
    # The subject first; means of the cells 85 and 50, and of 70 and 65.
    ours, theirs = (line for line in text.splitlines() if line.startswith(("| us", "| them")))
    assert ours == "| us | 67.5 | - | - | - | - | 2.50 |"
    assert theirs == "| them | 67.5 | +0.0 ± 190.6 | 0.750 | 1/0/1 | 2/0/2 | 2.50 |"


def test_the_table_of_intervals():
    only_ours = [*RECORDS, run("us", "d", 0, 40)]
    text = to_markdown(intervals_table(only_ours, Look(subject="us")))
    assert "| a | 30% | 5% | **85.0 ± 63.5** | 70.0 ± 0.0 |" in text
    # One run has no interval, and a method that lacks a cell is averaged over those it has.
    assert "| d | 30% | 5% | **40.0** | - |" in text
    assert "| mean of the lines |  |  | 58.3 | 67.5 (2 cells) |" in text
