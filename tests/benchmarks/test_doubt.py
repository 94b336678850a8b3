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
    ("mend", "coverage", "met"), [(0.8, 0.915, ("yes", "yes")), (0.6, 0.95, ("**no**", "**no**"))]
)
def test_what_is_missed_is_said(mend, coverage, met):
    rows = [*suspect_rows(mend, 0.7), *set_rows(coverage=coverage)]
    _, *lines = page.bars(rows)
    assert tuple(line[-1] for line in lines) == met
    assert f"{100 * (coverage - 0.9):.1f} points" in lines[1][1]


def test_seeds_and_data_sets_still_to_be_run_are_named():
    told = page.unfinished([*suspect_rows(0.8, 0.7), *set_rows()])
    assert "suspects: CUB 1; sets: CUB 4; unknown classes: none" in told
    assert "Not run yet: UCI-Digit, MNIST-USPS" in told
