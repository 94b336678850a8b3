"""Prediction sets keep their promise by counting alone."""

import math

import numpy as np
import pytest

from viewmend.core.advice.conformal import enough_by_class, fewest_labels, least_shares


def held_out(n, n_classes, seed):
    """Shares and classes drawn from the same law, in which shares mean something."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(n_classes, size=n)
    logits = rng.normal(size=(n, n_classes))
    logits[np.arange(n), codes] += 1.5
    shares = np.exp(logits)
    return shares / shares.sum(axis=1, keepdims=True), codes


@pytest.mark.parametrize("n", [9, 10, 19, 25])
def test_of_all_ways_to_hold_one_out_at_most_a_share_alpha_misses(n):
    """Exchangeability, without any sampling: each of n + 1 samples is the new one once.

    Exactly the samples with the ``floor(alpha (n + 1))`` smallest own shares are missed.
    """
    alpha = 0.1
    shares, codes = held_out(n + 1, 3, seed=n)
    missed = 0
    for new in range(n + 1):
        others = np.arange(n + 1) != new
        least = least_shares(shares[others], codes[others], alpha, by_class=False)
        missed += shares[new, codes[new]] < least[codes[new]]
    assert missed == math.floor(alpha * (n + 1))


def test_too_few_labels_for_the_promise_leave_every_class_in():
    """With n labels the rarest miss that can be promised is one of n + 1."""
    shares, codes = held_out(8, 3, seed=0)
    assert fewest_labels(0.1) == 9
    assert np.isneginf(least_shares(shares, codes, 0.1, by_class=False)).all()
    shares, codes = held_out(9, 3, seed=0)
    smallest = shares[np.arange(9), codes].min()
    least = least_shares(shares, codes, 0.1, by_class=False)
    np.testing.assert_array_equal(least, smallest)
    assert np.isneginf(least_shares(shares[:0], codes[:0], 0.99, by_class=True)).all()


@pytest.mark.parametrize("by_class", [False, True])
def test_sets_shrink_as_more_misses_are_allowed(by_class):
    """From all classes for alpha near 0 to the surest share of a right class near 1."""
    shares, codes = held_out(60, 4, seed=1)
    own = np.where(codes == 0, shares[:, 0], 0) if by_class else shares[np.arange(60), codes]
    alphas = np.linspace(0.001, 0.999, 200)
    least = np.array([least_shares(shares, codes, alpha, by_class)[0] for alpha in alphas])
    assert np.isneginf(least[0])
    assert least[-1] == own.max()
    assert (np.diff(least[np.isfinite(least)]) >= 0).all()


def test_classes_have_thresholds_of_their_own_once_each_has_labels_enough():
    """A class that is hard keeps its promise, which one threshold for all would break."""
    rng = np.random.default_rng(2)
    codes = np.repeat([0, 1], 100)
    own = np.where(codes == 0, rng.uniform(0.8, 1, 200), rng.uniform(0, 1, 200))
    shares = np.where(codes[:, None] == [0, 1], own[:, None], 1 - own[:, None])
    assert enough_by_class(codes, 2)
    assert not enough_by_class(codes, 3)
    assert not enough_by_class(codes[51:], 2)
    least = least_shares(shares, codes, 0.1, by_class=True)
    covered = [(own[codes == c] >= least[c]).mean() for c in (0, 1)]
    # 10 of 100 are the most that may be missed, and the threshold itself is covered.
    assert covered == [0.91, 0.91]
    pooled = least_shares(shares, codes, 0.1, by_class=False)
    assert (own[codes == 1] >= pooled[1]).mean() < 0.85


@pytest.mark.parametrize("by_class", [False, True])
def test_names_of_classes_and_order_of_samples_do_not_matter(by_class):
    shares, codes = held_out(300, 3, seed=3)
    classes, rows = np.array([2, 0, 1]), np.random.default_rng(0).permutation(300)
    renamed = least_shares(
        shares[rows][:, classes], np.argsort(classes)[codes[rows]], 0.2, by_class
    )
    expected = least_shares(shares, codes, 0.2, by_class)[classes]
    np.testing.assert_array_equal(renamed, expected)
