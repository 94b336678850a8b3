"""What a missing view is expected to add, by quadrature, against draws and exact cases."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import multivariate_normal

from viewmend.core.advice.views import (
    choose_views,
    expected_gains,
    normal_nodes,
    separation,
    view_gains,
    view_temperatures,
)
from viewmend.core.mend.view_gaussian import ViewGaussian, log_posterior

C, V = 3, 2
WARM = np.full(V, 2.0)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def gaussian(rng):
    A = rng.normal(size=(V * C, 2 * V * C)) / 3
    means = rng.normal(size=(C, V * C)) / 2
    return ViewGaussian(means, A @ A.T, 1e-6, np.array([0.5, 0.3, 0.2]))


def test_two_classes_have_a_closed_form():
    distance, p = 1.7, np.array([[0.8, 0.2], [0.55, 0.45]])
    products = np.array([[0.0, 0.0], [0.0, distance**2]])
    lead = np.log(p[:, 0] / p[:, 1]) / distance
    right = p[:, 0] * ndtr(distance / 2 + lead) + p[:, 1] * ndtr(distance / 2 - lead)
    np.testing.assert_allclose(expected_gains(p, products), right - p[:, 0], atol=5e-3)


def test_quadrature_is_within_the_error_of_draws(gaussian, rng):
    """Draw the class, then the scores of the missing view given those of the other one."""
    Z, there = rng.normal(size=(1, V, C)) / 2, np.array([[True, False]])
    p = np.exp(log_posterior(gaussian, Z, there))[0]
    p /= p.sum()
    C_vv, C_vo = gaussian.covariance[C:, C:], gaussian.covariance[C:, :C]
    solved = np.linalg.solve(gaussian.covariance[:C, :C], C_vo.T).T
    means = gaussian.means[:, C:] + (Z[0, 0] - gaussian.means[:, :C]) @ solved.T
    noise = multivariate_normal(np.zeros(C), C_vv - solved @ C_vo.T)
    n_draws = 20_000
    classes = rng.choice(C, size=n_draws, p=p)
    measured = means[classes] + noise.rvs(n_draws, random_state=rng)
    # The same as all scores through `log_posterior`, both views there.
    both = np.stack([np.broadcast_to(Z[0, 0], (n_draws, C)), measured], axis=1)
    shares = np.exp(log_posterior(gaussian, both, np.ones((n_draws, V), dtype=bool)))
    top = shares.max(axis=1) / shares.sum(axis=1)
    found = expected_gains(p[None], separation(gaussian, there[0], 1))[0]
    error = top.std() / np.sqrt(n_draws)
    assert found == pytest.approx(top.mean() - p.max(), abs=3 * error + 2e-3)


def test_a_view_that_repeats_another_one_adds_nothing(rng):
    A = rng.normal(size=(C, 2 * C)) / 3
    half, block = rng.normal(size=(C, C)) / 2, A @ A.T
    twice = ViewGaussian(np.tile(half, 2), np.tile(block, (2, 2)), 1e-9, np.full(C, 1 / C))
    shares = rng.dirichlet(np.ones(C), 5)
    none, one = np.zeros((5, V), dtype=bool), np.tile([True, False], (5, 1))
    rows = np.arange(5)
    assert view_gains(twice, WARM, shares, none, rows)[:, 1].max() > 0.01
    np.testing.assert_allclose(view_gains(twice, WARM, shares, one, rows), 0, atol=1e-6)


def test_a_view_without_a_word_about_the_classes_adds_nothing(gaussian, rng):
    means = gaussian.means.copy()
    means[:, C:] = 0
    covariance = gaussian.covariance.copy()
    covariance[:C, C:] = covariance[C:, :C] = 0
    mute = ViewGaussian(means, covariance, gaussian.floor, gaussian.prior)
    gains = view_gains(
        mute, WARM, rng.dirichlet(np.ones(C), 4), np.zeros((4, V), bool), np.arange(4)
    )
    np.testing.assert_allclose(gains[:, 1], 0, atol=1e-12)
    assert gains[:, 0].max() > 0.01


def test_classes_in_another_order_gain_the_same(gaussian, rng):
    shares, order = rng.dirichlet(np.ones(C), 6), np.array([2, 0, 1])
    columns = np.concatenate([order, C + order])
    other = ViewGaussian(
        gaussian.means[order][:, columns],
        gaussian.covariance[np.ix_(columns, columns)],
        gaussian.floor,
        gaussian.prior[order],
    )
    observed, rows = rng.random((6, V)) < 0.5, np.arange(6)
    np.testing.assert_allclose(
        view_gains(gaussian, WARM, shares, observed, rows),
        view_gains(other, WARM, shares[:, order], observed, rows),
        atol=1e-10,
    )


def test_gains_are_of_missing_views_and_of_the_tempered_separation(gaussian, rng):
    shares, observed = rng.dirichlet(np.ones(C), 4), np.array([[0, 1], [1, 0], [1, 1], [0, 0]]) > 0
    gains = view_gains(gaussian, WARM, shares, observed, np.arange(4))
    assert (gains[observed] == 0).all()
    products = separation(gaussian, observed[1], 1) / WARM[1]
    assert gains[1, 1] == expected_gains(shares[[1]], products)[0]


def test_temperatures_are_what_the_labels_of_a_view_show(gaussian, rng):
    """Scores drawn from the Gaussian deserve none; with four times its noise they need more."""
    n_labels = 20_000
    codes = rng.integers(C, size=n_labels)
    noise = multivariate_normal(np.zeros(V * C), gaussian.covariance).rvs(
        n_labels, random_state=rng
    )
    noise[:, C:] *= 2
    Z = (gaussian.means[codes] + noise).reshape(n_labels, V, C)
    flat = ViewGaussian(gaussian.means, gaussian.covariance, gaussian.floor, np.full(C, 1 / C))
    seen = np.ones((n_labels, V), dtype=bool)
    honest, noisy = view_temperatures(flat, Z, seen, codes)
    assert honest == pytest.approx(1, abs=0.1)
    assert noisy == pytest.approx(4, rel=0.1)
    # Without a label that has the view nothing is known.
    unknown = view_temperatures(flat, Z[:0], seen[:0], codes[:0])
    np.testing.assert_allclose(unknown, 8)


def test_nodes_have_the_moments_of_the_normal_distribution():
    nodes = normal_nodes(128, 4)
    np.testing.assert_allclose(nodes.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(nodes.T @ nodes / 128, np.eye(4), atol=1e-12)


def test_pairs_are_chosen_by_gain_per_cost_one_view_per_sample():
    gains = np.array([[0.3, 0.2], [0.0, 0.1], [0.25, 0.0], [0.0, 0.0]])
    ones = np.ones_like(gains)
    found = choose_views(gains, ones, None, None)
    assert list(zip(found.rows, found.views, strict=True)) == [(0, 0), (2, 0), (1, 1)]
    dear = choose_views(gains, ones * [4, 1], None, None)
    assert list(zip(dear.rows, dear.views, strict=True)) == [(0, 1), (1, 1), (2, 0)]
    assert dear.gains.tolist() == [0.2, 0.1, 0.25]
    # In another currency the same.
    again = choose_views(gains, ones * [40, 10], None, None)
    np.testing.assert_array_equal(again.rows, dear.rows)


def test_a_budget_passes_over_what_it_cannot_pay():
    gains = np.array([[0.9], [0.5], [0.4], [0.1]])
    costs = np.array([[3.0], [2.0], [2.0], [1.0]])
    assert choose_views(gains, costs, None, 4.0).rows.tolist() == [0, 3]
    assert choose_views(gains, costs, 1, 4.0).rows.tolist() == [0]
    assert choose_views(gains, costs, None, 0.5).rows.tolist() == []


def test_a_budget_that_cannot_pay_the_best_view_of_a_sample_pays_another():
    gains, costs = np.array([[0.9, 0.2], [0.8, 0.1]]), np.array([[3.0, 1.0], [3.0, 1.0]])
    found = choose_views(gains, costs, None, 4.0)
    assert list(zip(found.rows, found.views, strict=True)) == [(0, 0), (1, 1)]
    assert found.gains.tolist() == [0.9, 0.1]
    # All that is left is spent, and no sample has two views.
    assert len(choose_views(gains, costs, None, 9.0).rows) == 2


def test_rounding_leaves_nothing_out_of_a_budget():
    for price in (0.1, 0.7, 1 / 3, 1e-12, 1e9):
        for n in range(1, 40):
            gains, costs = np.ones((40, 1)), np.full((40, 1), price)
            assert len(choose_views(gains, costs, None, float(f"{n * price:.12g}")).rows) == n
