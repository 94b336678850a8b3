"""What the page about doubt reads off its record."""

import doubt_page as page
import numpy as np
import pytest


def set_rows(alpha=0.1, coverage=0.9, n_seeds=4, n_held_out=30):
    fields = {"revision": "r", "part": "sets", "data": "CUB", "labels": 0.05, "alpha": alpha}
    figures = {"n_held_out": n_held_out, "fit_coverage": coverage, "new_coverage": coverage}
    return [fields | figures | {"seed": seed} for seed in range(n_seeds)]


def suspect_rows(mend, cleanlab):
    fields = {"part": "suspects", "data": "CUB", "flips": 0.1, "kind": "any", "seed": 0}
    return [fields | {"mend": mend, "cleanlab": cleanlab}]


@pytest.mark.parametrize(("n_held_out", "alpha"), [(30, 0.2), (60, 0.1)])
def test_the_interval_to_expect_is_that_of_conformal_prediction(n_held_out, alpha):
    """Thresholds between uniform scores, whose coverage is known, for as many fits as seeds."""
    rng = np.random.default_rng(0)
    scores = np.sort(rng.random((4000, 4, n_held_out)), axis=2)
    k = int(alpha * (n_held_out + 1))
    step = alpha * (n_held_out + 1) - k
    means = 1 - ((1 - step) * scores[:, :, k - 1] + step * scores[:, :, k]).mean(axis=1)
    low, high = page.expected(set_rows(alpha, 0.9, 4, n_held_out), alpha)
    assert np.mean((means > low) & (means < high)) == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize(
    ("mend", "coverage", "met"), [(0.8, 0.915, ("yes",) * 4), (0.6, 0.95, ("**no**",) * 4)]
)
def test_what_is_missed_is_said(mend, coverage, met):
    rows = [*suspect_rows(mend, 0.7), *set_rows(coverage=coverage)]
    _, *lines = page.bars(rows)
    assert tuple(line[-1] for line in lines) == met
    assert f"{100 * (coverage - 0.9):.1f} points" in lines[1][1]


def test_coverage_is_judged_of_data_sets_of_promises_and_of_settings():
    """Settings that are off to either side cancel in the mean of a promise, not by themselves."""
    above, below = set_rows(coverage=0.94), set_rows(coverage=0.86)
    rows = [*above, *(row | {"labels": 0.1} for row in below), *set_rows(alpha=0.2, coverage=0.81)]
    _, *lines = page.bars(rows)
    assert [line[-1] for line in lines] == ["yes", "yes", "**no**"]
    assert lines[-1][1] == "2 of 6 figures; the largest deviation is 4.0 points"


def test_seeds_and_data_sets_still_to_be_run_are_named():
    complete = [row | {"data": "UCI-Digit"} for row in set_rows(n_seeds=page.N_SEEDS)]
    told = page.unfinished([*suspect_rows(0.8, 0.7), *set_rows(), *complete])
    assert f"Fewer seeds than {page.N_SEEDS}: suspects: CUB 1; sets: CUB 4." in told
    assert "Not run: MNIST-USPS" in told


def test_further_seeds_change_no_figure_and_have_a_line_of_their_own():
    rows = set_rows(coverage=0.9)
    others = [row | {"seed": row["seed"] + 200} for row in set_rows(coverage=0.8, n_seeds=3)]
    _, *alone = page.bars(rows)
    _, *both = page.bars([*rows, *others])
    assert both[: len(alone)] == alone
    asked, told, met = both[-1]
    assert "further seeds (CUB 3)" in asked
    assert ("10.0 points" in told, met) == (True, "**no**")
    _, line = page.sets_table([*rows, *others])
    assert line[6] == "90.0"
    assert line[-3:] == ("3", "80.0", "80.0")
