"""Which samples the label protocols choose."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewmend.datasets import LABEL_PROTOCOLS, most_complete_first, random_stratified
from viewmend.exceptions import InvalidParameterError

seeds = st.integers(0, 2**32 - 1)
percents = st.integers(1, 100)
class_lists = st.lists(st.sampled_from([0, 1, 4]), min_size=1, max_size=80)


@pytest.mark.parametrize("protocol", LABEL_PROTOCOLS.values())
@given(classes=class_lists, percent=percents, seed=seeds)
def test_every_class_gets_its_share_rounded_up(protocol, classes, percent, seed):
    y, rng = np.array(classes), np.random.default_rng(seed)
    labelled = protocol(y, percent / 100, np.ones((y.size, 2), dtype=bool), rng)
    assert np.unique(labelled).size == labelled.size
    # Ceiling in whole numbers: free of the round-off that makes 0.07 * 100 exceed 7.
    quotas = {c: -(-percent * n // 100) for c, n in Counter(classes).items()}
    assert Counter(y[labelled].tolist()) == quotas


@pytest.mark.parametrize("protocol", LABEL_PROTOCOLS.values())
def test_seven_percent_of_a_hundred_is_seven(protocol):
    """0.07 * 100 is a little more than 7 in floating point."""
    observed = np.ones((100, 2), dtype=bool)
    assert protocol(np.zeros(100, dtype=int), 0.07, observed, np.random.default_rng(0)).size == 7


@given(classes=class_lists, percent=percents, seed=seeds)
def test_most_complete_leaves_no_more_complete_sample_behind(classes, percent, seed):
    y, rng = np.array(classes), np.random.default_rng(seed)
    observed = rng.random((y.size, 4)) < 0.5
    labelled = most_complete_first(y, percent / 100, observed, rng)
    n_seen = observed.sum(axis=1)
    for c in np.unique(y):
        of_class = np.flatnonzero(y == c)
        chosen = labelled[y[labelled] == c]
        left = np.setdiff1d(of_class, chosen)
        assert n_seen[left].max(initial=0) <= n_seen[chosen].min()
        assert (np.diff(n_seen[chosen]) <= 0).all()


@pytest.mark.parametrize("protocol", LABEL_PROTOCOLS.values())
def test_equally_complete_samples_are_equally_likely(protocol):
    y, observed = np.zeros(10, dtype=int), np.ones((10, 3), dtype=bool)
    rng, n_draws = np.random.default_rng(0), 4000
    times = np.zeros(10)
    for _ in range(n_draws):
        times[protocol(y, 0.3, observed, rng)] += 1
    np.testing.assert_allclose(times / n_draws, 0.3, atol=4 * 0.5 / np.sqrt(n_draws))


def test_random_labels_do_not_look_at_the_views():
    y = np.repeat([0, 1], 50)
    few, all_seen = np.eye(100, 2, dtype=bool), np.ones((100, 2), dtype=bool)
    chosen = [
        random_stratified(y, 0.1, observed, np.random.default_rng(3))
        for observed in (few, all_seen)
    ]
    np.testing.assert_array_equal(*chosen)


@pytest.mark.parametrize("protocol", LABEL_PROTOCOLS.values())
def test_rows_come_class_by_class(protocol):
    rng = np.random.default_rng(4)
    y = rng.permutation(np.repeat([0, 1, 2], 20))
    labelled = protocol(y, 0.25, rng.random((60, 2)) < 0.5, rng)
    np.testing.assert_array_equal(y[labelled], np.repeat([0, 1, 2], 5))


@pytest.mark.parametrize("protocol", LABEL_PROTOCOLS.values())
def test_a_vanishing_rate_still_labels_every_class(protocol):
    y = np.array([0, 0, 1, 1, 1])
    labelled = protocol(y, 1e-12, np.ones((5, 2), dtype=bool), np.random.default_rng(0))
    np.testing.assert_array_equal(y[labelled], [0, 1])


@pytest.mark.parametrize("protocol", LABEL_PROTOCOLS.values())
@pytest.mark.parametrize("rate", [0, -0.2, 1.01, 5, float("nan")])
def test_rate_outside_its_range_is_refused(protocol, rate):
    with pytest.raises(InvalidParameterError, match=r"label rate must lie in \(0, 1\]"):
        protocol(np.array([0, 1]), rate, np.ones((2, 2), dtype=bool), np.random.default_rng(0))
