"""Counts of confidently found classes."""

import numpy as np
import pytest

from viewmend.core.common.confident_learning import (
    confident_counts,
    noise_rate,
    unexpected_noise,
)
from viewmend.core.common.rows import RowsInMemory

MEMORY = RowsInMemory()


def one_hot(codes, n_classes=3):
    return (np.asarray(codes)[:, None] == np.arange(n_classes)).astype(float)


def test_labels_that_shares_agree_with_are_all_right():
    codes = np.array([0, 0, 1, 2, 2])
    P = 0.7 * one_hot(codes) + 0.1
    counts = confident_counts(MEMORY, one_hot(codes), P)
    np.testing.assert_array_equal(counts, np.diag([2.0, 1.0, 2.0]))
    assert noise_rate(counts) == 0


def test_shares_that_know_the_right_classes_count_every_flip():
    """Sure of the right class, a model counts given against right classes, which is the noise."""
    right = np.repeat([0, 1, 2], 20)
    given = right.copy()
    given[[0, 1, 25]] = [1, 2, 0]
    counts = confident_counts(MEMORY, one_hot(given), 0.94 * one_hot(right) + 0.02)
    np.testing.assert_array_equal(counts, one_hot(given).T @ one_hot(right))
    assert noise_rate(counts) == pytest.approx(3 / 60)


def test_a_class_that_a_model_always_prefers_is_not_counted_for_it():
    """Shares of class 0 are 0.6 in all samples: less than its own samples have on average."""
    given = np.repeat([0, 1], 10)
    P = np.where(given[:, None] == 0, [0.9, 0.1], [0.6, 0.4])
    counts = confident_counts(MEMORY, one_hot(given, 2), P)
    np.testing.assert_array_equal(counts, np.diag([10.0, 10.0]))


def test_a_flip_among_classes_that_a_model_is_all_but_certain_of_is_counted():
    """It falls short of the mean share of its class by a hair."""
    given = np.repeat([0, 1, 2], 20)
    P = (1 - 2e-6) * one_hot(given) + 1e-6 * (1 - one_hot(given))
    P[0] = [1e-3, 1 - 2e-3, 1e-3]
    counts = confident_counts(MEMORY, one_hot(given), P)
    assert counts[0].tolist() == [19, 1, 0]


def test_samples_that_are_counted_for_no_class_are_shared_out():
    """Rows sum to the numbers of labels, whatever share of them is confident."""
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=200)
    P = rng.dirichlet(np.ones(3), size=200)
    Y = one_hot(codes)
    counts = confident_counts(MEMORY, Y, P)
    np.testing.assert_allclose(counts.sum(axis=1), Y.sum(axis=0))
    # On shares that know nothing, classes are found as if by dice.
    assert 0.5 < noise_rate(counts) < 0.8


def test_unlabelled_samples_do_not_count():
    codes = np.array([0, 1, 2, -1, -1])
    P = np.full((5, 3), 0.1) + 0.7 * one_hot([0, 1, 2, 1, 2])
    counts = confident_counts(MEMORY, one_hot(codes), P)
    np.testing.assert_array_equal(counts, np.eye(3))


def drawn_labels(n, seed):
    """Shares of three classes, and labels that follow them."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(3, 0.5), size=n)
    return P, np.array([rng.choice(3, p=row) for row in P]), rng


def test_labels_that_follow_the_shares_have_no_noise_however_hard_the_classes_are():
    """What `noise_rate` takes for noise here, because a fifth of the labels is of another class."""
    P, codes, _ = drawn_labels(20_000, seed=1)
    assert (codes != P.argmax(axis=1)).mean() > 0.2
    assert unexpected_noise(MEMORY, one_hot(codes), P) < 0.01
    assert noise_rate(confident_counts(MEMORY, one_hot(codes), P)) > 0.05


@pytest.mark.parametrize("rate", [0.05, 0.3])
def test_flips_beyond_what_the_shares_expect_are_counted(rate):
    """Flips away from the class of largest share are all counted."""
    P, codes, rng = drawn_labels(20_000, seed=2)
    flipped = rng.random(len(codes)) < rate
    codes[flipped] = (P.argmax(axis=1)[flipped] + rng.integers(1, 3, flipped.sum())) % 3
    found = unexpected_noise(MEMORY, one_hot(codes), P)
    assert found == pytest.approx(flipped.mean(), abs=0.015)


def test_shares_that_are_not_sure_enough_make_no_noise():
    codes = np.repeat([0, 1, 2], 50)
    assert unexpected_noise(MEMORY, one_hot(codes), 0.4 * one_hot(codes) + 0.2) == 0
