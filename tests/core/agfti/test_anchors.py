"""Anchor selection: what balanced splitting guarantees."""

import numpy as np
import pytest

from viewmend.core.agfti.anchors import ANCHOR_METHODS, balanced_hierarchical


def sorted_rows(array):
    return array[np.lexsort(array.T)]


@pytest.mark.parametrize("method", ANCHOR_METHODS)
def test_as_many_anchors_as_rows_are_the_rows(method):
    X = np.random.default_rng(0).normal(size=(16, 3))
    anchors = ANCHOR_METHODS[method](X, 16, np.random.default_rng(1))
    np.testing.assert_allclose(sorted_rows(anchors), sorted_rows(X))


@pytest.mark.parametrize("seed", range(5))
def test_separated_equal_clusters_get_one_anchor_each(seed):
    """Eight tight clusters of equal size on a line: halving cannot cut through one."""
    rng = np.random.default_rng(seed)
    centres = 100.0 * np.arange(8)[:, None] * np.ones((1, 2))
    X = np.repeat(centres, 12, axis=0) + rng.normal(scale=0.1, size=(96, 2))
    anchors = balanced_hierarchical(rng.permutation(X), 8, rng)
    np.testing.assert_allclose(sorted_rows(anchors), centres, atol=1.0)


def test_two_anchors_are_a_fixed_point_of_two_means():
    """The only split is one of the last level, free of balance: plain 2-means."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(0, 1, (30, 2)), rng.normal(9, 1, (10, 2))]
    anchors = balanced_hierarchical(X, 2, rng)
    nearest = np.argmin(((X[:, None] - anchors) ** 2).sum(axis=2), axis=1)
    assert sorted(np.bincount(nearest)) == [10, 30]
    for side in range(2):
        np.testing.assert_allclose(anchors[side], X[nearest == side].mean(axis=0))


def test_balanced_levels_weigh_rows_equally():
    """Four anchors of 4 k rows that last-level splits halve by symmetry average to the mean."""
    X = np.array([[i, 0.0] for i in range(16)])
    anchors = balanced_hierarchical(X, 4, np.random.default_rng(0))
    assert np.all(anchors >= 0)
    assert np.all(anchors <= 15)
    # A balanced first split keeps the two halves 0..7 and 8..15 apart.
    assert np.sum(anchors[:, 0] < 7.5) == 2


@pytest.mark.parametrize("method", ["bkhk", "random"])
def test_duplicate_rows_do_not_break_the_splits(method):
    X = np.repeat(np.eye(3), 8, axis=0)
    anchors = ANCHOR_METHODS[method](X, 16, np.random.default_rng(0))
    assert np.isfinite(anchors).all()
    np.testing.assert_allclose(anchors.sum(axis=1), 1)


def test_random_anchors_are_distinct_rows():
    X = np.arange(20.0)[:, None]
    anchors = ANCHOR_METHODS["random"](X, 12, np.random.default_rng(3)).ravel()
    assert len(set(anchors)) == 12
    assert set(anchors) <= set(X.ravel())


@pytest.mark.parametrize("method", ANCHOR_METHODS)
def test_same_seed_same_anchors(method):
    X = np.random.default_rng(0).normal(size=(50, 4))
    first, second = (ANCHOR_METHODS[method](X, 8, np.random.default_rng(7)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
