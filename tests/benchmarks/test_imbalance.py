"""The benchmark of rare classes: problems are as rare as they claim, measures rank."""

import imbalance
import numpy as np
import pytest


@pytest.mark.parametrize("share", imbalance.SHARES)
@pytest.mark.parametrize("name", ["UCI-Digit (embedded)", *imbalance.GENERATED])
def test_positives_are_as_rare_as_asked(name, share):
    views, y = imbalance.make_problem(name, share, 3, None)
    assert y.mean() == pytest.approx(share, abs=0.003)
    assert all(len(view) == len(y) for view in views)


def test_labels_drawn_at_random_have_a_positive_and_the_given_number():
    y = np.zeros(1000, dtype=int)
    y[7] = 1
    given = imbalance.draw_labels(y, np.random.default_rng(0))
    assert given[7] == 1
    assert (given >= 0).sum() == imbalance.N_LABELS
    np.testing.assert_array_equal(given[given >= 0], y[given >= 0])


def test_measures_of_a_perfect_and_of_a_reversed_ranking():
    y = np.array([1, 0, 0, 1])
    best = imbalance.measures(np.array([0.9, 0.2, 0.1, 0.8]), y, y)
    worst = imbalance.measures(np.array([0.1, 0.8, 0.9, 0.2]), y, y)
    assert (best["auc"], best["recall"], best["predicted"]) == (1, 1, 0.5)
    assert (worst["auc"], worst["recall"]) == (0, 0)


def test_the_difference_is_that_of_the_same_seeds():
    rows = [
        {"data": "CUB", "share": "0.05", "seed": str(seed), "method": method, "revision": "abc"}
        | {"auc": str(auc), "average_precision": "0.5", "recall": "0.5", "predicted": "0.1"}
        for method, aucs in {"Mend": (0.9, 0.7), "balanced logistic": (0.8, 0.6)}.items()
        for seed, auc in enumerate(aucs)
    ]
    rows += [row | {"method": "union graph"} for row in rows[:2]]
    page = imbalance.page(rows)
    assert "| CUB | 5 | Mend | 0.800 | +0.100 ± 0.000 |" in page
    # Further seeds have a sentence of their own, and change nothing else.
    others = [row | {"seed": str(200 + int(row["seed"])), "auc": "0.5"} for row in rows]
    longer = imbalance.page([*rows, *others])
    assert "CUB, 5% positives +0.000 ± 0.000 (2 seeds)" in longer
    assert set(page.splitlines()) < set(longer.splitlines())
