"""The masks of the missing protocols, against what their definition implies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewmend.datasets import (
    MISSING_PROTOCOLS,
    drop_from_samples,
    drop_independently,
    realised_completeness,
)
from viewmend.exceptions import InvalidParameterError

rates = st.floats(0, 0.99)
seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("protocol", MISSING_PROTOCOLS.values())
@given(n=st.integers(1, 60), n_views=st.integers(2, 6), rate=rates, seed=seeds)
def test_every_sample_keeps_a_view(protocol, n, n_views, rate, seed):
    observed = protocol(n, n_views, rate, np.random.default_rng(seed))
    assert observed.shape == (n, n_views)
    assert observed.dtype == bool
    assert observed.any(axis=1).all()


@given(n=st.integers(1, 200), n_views=st.integers(2, 6), rate=rates, seed=seeds)
def test_samples_protocol_breaks_the_nearest_whole_number_of_samples(n, n_views, rate, seed):
    observed = drop_from_samples(n, n_views, rate, np.random.default_rng(seed))
    n_incomplete = np.sum(~observed.all(axis=1))
    assert abs(n_incomplete - rate * n) <= 0.5


@pytest.mark.parametrize(("n_views", "rate"), [(2, 0.5), (2, 0.3), (3, 0.7), (5, 0.9)])
def test_independent_protocol_has_the_expected_share_after_refilling(n_views, rate):
    n = 40_000
    observed = drop_independently(n, n_views, rate, np.random.default_rng(0))
    expected = 1 - rate + rate**n_views / n_views
    # A sample's share lies in [0, 1], so the mean over n has a deviation of at most 1/2/sqrt(n).
    tolerance = 4 * 0.5 / np.sqrt(n)
    assert realised_completeness(observed).observed_pairs == pytest.approx(expected, abs=tolerance)
    assert realised_completeness(observed).complete_samples == pytest.approx(
        (1 - rate) ** n_views, abs=tolerance
    )
    # Nobody's view is favoured, neither when dropping nor when giving back.
    np.testing.assert_allclose(observed.mean(axis=0), expected, atol=tolerance)


def test_independent_protocol_gives_back_one_random_view():
    """At a rate close to 1 nearly all samples are emptied and hold exactly the refilled view."""
    observed = drop_independently(9000, 3, 0.9999, np.random.default_rng(1))
    alone = observed.sum(axis=1) == 1
    assert alone.mean() > 0.99
    np.testing.assert_allclose(observed.mean(axis=0), 1 / 3, atol=4 * 0.5 / np.sqrt(9000))


@pytest.mark.parametrize("n_views", [2, 3, 5])
def test_samples_protocol_loses_a_uniform_number_of_uniform_views(n_views):
    n = 30_000
    observed = drop_from_samples(n, n_views, 0.5, np.random.default_rng(2))
    lost = n_views - observed[~observed.all(axis=1)].sum(axis=1)
    shares = np.bincount(lost, minlength=n_views)[1:n_views] / lost.size
    np.testing.assert_allclose(shares, 1 / (n_views - 1), atol=4 * 0.5 / np.sqrt(lost.size))
    np.testing.assert_allclose(observed.mean(axis=0), 1 - 0.5 / 2, atol=4 * 0.5 / np.sqrt(n))
    assert realised_completeness(observed).complete_samples == 0.5


@pytest.mark.parametrize("protocol", MISSING_PROTOCOLS.values())
@pytest.mark.parametrize("n_views", [1, 3])
def test_rate_zero_hides_nothing(protocol, n_views):
    assert protocol(20, n_views, 0.0, np.random.default_rng(0)).all()


@pytest.mark.parametrize("protocol", MISSING_PROTOCOLS.values())
@pytest.mark.parametrize("rate", [-0.1, 1.0, 30, float("nan")])
def test_rate_outside_its_range_is_refused(protocol, rate):
    with pytest.raises(InvalidParameterError, match=r"missing rate must lie in \[0, 1\)"):
        protocol(10, 2, rate, np.random.default_rng(0))


@pytest.mark.parametrize("protocol", MISSING_PROTOCOLS.values())
def test_a_single_view_cannot_go_missing(protocol):
    with pytest.raises(InvalidParameterError, match="two or more views"):
        protocol(10, 1, 0.3, np.random.default_rng(0))


def test_realised_completeness_counts_pairs_and_samples():
    observed = np.array([[1, 1, 1], [1, 0, 0], [0, 1, 1], [1, 1, 1]], dtype=bool)
    completeness = realised_completeness(observed)
    assert completeness.observed_pairs == 9 / 12
    assert completeness.complete_samples == 2 / 4
