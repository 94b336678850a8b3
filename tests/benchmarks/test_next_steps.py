"""What the page about suggestions reads off its record."""

import next_steps
import next_steps_page as page
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
    needed = [page.labels_needed(counts, np.array([0.1, 0.5, 0.6]), w) for w in (0.05, 0.3)]
    assert needed == [1, pytest.approx(6)]
    assert np.isnan(page.labels_needed(counts, np.array([0.1, 0.5, 0.6]), 0.7))
    # The first time counts, also where the curve falls again.
    assert page.labels_needed(counts, np.array([0.1, 0.5, 0.4]), 0.5) == 11


def test_shares_are_those_of_the_labels_by_chance():
    rows = label_rows(next_steps.RANDOM, (0.1, 0.5, 0.9))
    rows += label_rows(next_steps.DEFAULT, (0.1, 0.9, 0.95))
    rights, needs, shares = page.label_tables(rows)
    # 5 % of 200 samples are 10 labels: nine tenths of the way from one label to eleven.
    assert shares[next_steps.RANDOM] == [pytest.approx(1)]
    assert shares[next_steps.DEFAULT] == [pytest.approx(0.55)]
    assert "| CUB | 2 | 10 | 46.5 ±" in rights[-1]
    assert "| CUB | 46.5 | 10 (100 %) | 6 (55 %) |" in needs[-1]


def test_seeds_count_that_every_strategy_has():
    rows = label_rows(next_steps.RANDOM, (0.1, 0.5, 0.9))
    rows += [r for r in label_rows(next_steps.DEFAULT, (0.1, 0.4, 0.8)) if r["seed"] == 1]
    assert page.seeds_of(rows, "CUB") == [1]
    assert page.curve(rows, "CUB", next_steps.RANDOM)[1].shape == (1, 3)
    told = page.unfinished(rows)
    assert "CUB 1" in told
    assert "Not run yet: UCI-Digit, MNIST-USPS" in told


@pytest.mark.parametrize(("share", "ratio", "met"), [(0.55, 2.5, True), (0.65, 1.5, False)])
def test_bars_that_are_missed_are_said(share, ratio, met):
    time = {"what": next_steps.TIME, "fit_seconds": 10.0, "suggest_seconds": 5.0 if met else 20.0}
    lines = page.bars([time], {next_steps.DEFAULT: [share]}, ratio)
    assert all(line.endswith("| yes |" if met else "| **no** |") for line in lines[2:])
    assert len(lines) == 5


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
    lines, ratios = page.view_table(rows)
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
