"""Batches: best first, by gain per cost, without repetitions."""

import numpy as np
from scipy.sparse import csr_array

from viewmend.core.advice.batches import Likeness, choose_batch
from viewmend.core.advice.labels import FixedRanking


def alone(n):
    return Likeness(csr_array((n, n)), np.arange(n))


def chosen(worth, n, likeness=None, costs=None, allowed=None):
    worth = np.asarray(worth, dtype=float)
    size = len(worth)
    return choose_batch(
        FixedRanking(worth),
        n,
        np.ones(size, dtype=bool) if allowed is None else np.asarray(allowed),
        np.ones(size) if costs is None else np.asarray(costs, dtype=float),
        alone(size) if likeness is None else likeness,
    ).rows.tolist()


def test_the_largest_gain_per_cost_comes_first():
    assert chosen([1, 4, 3, 2], 3) == [1, 2, 3]
    assert chosen([1, 4, 3, 2], 3, costs=[1, 4, 1, 0.5]) == [3, 2, 0]


def test_costs_of_another_currency_choose_the_same():
    worth, costs = [1, 4, 3, 2, 5], np.array([1, 4, 1, 0.5, 3])
    assert chosen(worth, 4, costs=costs) == chosen(worth, 4, costs=8 * costs)


def test_what_is_not_allowed_is_not_chosen_and_others_may_be_few():
    assert chosen([1, 4, 3, 2], 9, allowed=[True, False, True, True]) == [2, 3, 0]


def test_samples_of_the_same_content_are_chosen_once_however_many():
    twins = np.array([0, 1, 1, 1, 2])
    assert chosen([1, 9, 9, 9, 2], 5, Likeness(csr_array((5, 5)), twins)) == [1, 4, 0]


def test_near_duplicates_come_only_where_nothing_else_is_left():
    W = np.zeros((5, 5))
    W[0, 1] = W[1, 0] = 1.0
    W[0, 2] = W[2, 0] = 0.1
    likeness = Likeness(csr_array(W), np.arange(5))
    # 1 is joined to 0 by its strongest edge, 2 by a weak one.
    assert chosen([9, 8, 7, 2, 1], 5, likeness) == [0, 2, 3, 4, 1]
