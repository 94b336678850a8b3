"""What the page about suggestions reads off its record."""

import next_steps
import numpy as np
import pytest


def label_rows(strategy, accuracies):
    """A loop of 200 samples: 1, 11 and 21 labels."""
    fields = {"revision": "r", "what": next_steps.LABELS, "data": "CUB", "strategy": strategy}
    return [
        fields | {"seed": seed, "n": n, "accuracy": accuracy + seed / 100, "n_samples": 200}
        for seed in (0, 1)
        for n, accuracy in zip((1, 11, 21), accuracies, strict=True)
    ]


def test_labels_needed_lie_on_a_line_between_batches():
    counts = np.array([1, 11, 21])
    needed = [next_steps.labels_needed(counts, np.array([0.1, 0.5, 0.6]), w) for w in (0.05, 0.3)]
    assert needed == [1, pytest.approx(6)]
    assert np.isnan(next_steps.labels_needed(counts, np.array([0.1, 0.5, 0.6]), 0.7))
    # The first time counts, also where the curve falls again.
    assert next_steps.labels_needed(counts, np.array([0.1, 0.5, 0.4]), 0.5) == 11


def test_shares_are_those_of_the_labels_by_chance():
    rows = label_rows(next_steps.RANDOM, (0.1, 0.5, 0.9))
    rows += label_rows(next_steps.DEFAULT, (0.1, 0.9, 0.95))
    lines, shares = next_steps.label_table(rows)
    # 5 % of 200 samples are 10 labels: nine tenths of the way from one label to eleven.
    assert shares[next_steps.RANDOM] == pytest.approx(1)
    assert shares[next_steps.DEFAULT] == pytest.approx(0.55)
    assert "| CUB | 10 | 46.5 |" in lines[-1]


def test_gains_of_views_are_right_answers_per_pair():
    views = {"revision": "r", "what": next_steps.VIEWS, "data": "CUB", "n_samples": 200, "seed": 0}
    rows = [
        views | {"strategy": name, "n": n, "accuracy": accuracy}
        for name, n, accuracy in [
            ("nothing", 0, 0.5),
            (next_steps.RANDOM, 10, 0.51),
            (next_steps.RANDOM, 10, 0.53),
            ("least sure", 10, 0.54),
            (next_steps.DEFAULT, 10, 0.56),
        ]
    ]
    lines, ratios = next_steps.view_table(rows)
    # 190 samples have no label; 0.02 of them are 3.8, with 10 pairs.
    assert "38.0" in lines[-1]
    assert ratios[next_steps.DEFAULT] == pytest.approx(3)


def test_a_record_that_was_written_is_read_and_not_run_again(tmp_path):
    rows = label_rows(next_steps.RANDOM, (0.1, 0.5, 0.9))
    next_steps.write(tmp_path / "next_steps.csv", rows)
    again = next_steps.read(tmp_path / "next_steps.csv")
    assert next_steps.done(again) == {
        (next_steps.LABELS, "CUB", next_steps.RANDOM, seed) for seed in (0, 1)
    }
    np.testing.assert_allclose([r["accuracy"] for r in again], [r["accuracy"] for r in rows])
