"""Algorithm 1 finds the saddle point of the game between view weights and fused graph."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from viewmend.backend import numba_rounds
from viewmend.core import solve
from viewmend.core.agfti.fusion import (
    Game,
    agreements,
    best_response,
    curvature,
    evaluate,
    fuse,
    gradient,
    newton_step,
)
from viewmend.core.agfti.released import descent_direction, golden_section, largest_step


def make_game(n_views=4, seed=0, beta=0.7):
    """Graphs of unequal quality, so that the optimum is not the centre of the simplex."""
    rng = np.random.default_rng(seed)
    base = rng.dirichlet(np.full(8, 0.3), size=30)
    noise = rng.dirichlet(np.ones(8), size=(n_views, 30))
    mix = np.linspace(0.1, 0.9, n_views)[:, None, None]
    A = (1 - mix) * base + mix * noise
    return Game(A, 0.3 * rng.random((30, 8)), lam=float(n_views**2), beta=beta)


def value(game, alpha, P):
    """Payoff of the game."""
    gain = game.lam * np.sum(alpha**2 * agreements(game.A, P))
    return gain - game.beta * np.sum(P**2) - np.sum(game.H * P)


def h(game, alpha):
    return evaluate(game, alpha).cost


def simplex_points(n_views, count, seed=1):
    return np.random.default_rng(seed).dirichlet(np.ones(n_views), size=count)


def test_best_response_beats_other_graphs():
    game, alpha = make_game(), np.array([0.4, 0.3, 0.2, 0.1])
    P = best_response(game, alpha)
    rivals = np.random.default_rng(0).dirichlet(np.ones(8), size=(200, 30))
    assert value(game, alpha, P) > max(value(game, alpha, rival) for rival in rivals)


def test_cost_is_the_payoff_of_the_best_response():
    game, alpha = make_game(), np.array([0.4, 0.3, 0.2, 0.1])
    P = best_response(game, alpha)
    np.testing.assert_allclose(h(game, alpha), value(game, alpha, P), rtol=1e-12)


@pytest.mark.parametrize("alpha", simplex_points(4, 5))
@pytest.mark.parametrize("beta", [0.05, 0.7, 5.0])
def test_curvature_equals_finite_differences_of_the_gradient(alpha, beta):
    """Where no row changes its support within the difference: piecewise quadratic in alpha^2."""
    game = make_game(beta=beta)
    step = 1e-7 * np.eye(4)
    numeric = [
        (gradient(game, evaluate(game, alpha + e)) - gradient(game, evaluate(game, alpha - e)))
        / 2e-7
        for e in step
    ]
    K = curvature(game, evaluate(game, alpha))
    np.testing.assert_allclose(K, numeric, rtol=1e-4, atol=1e-4 * np.abs(K).max())


@given(st.integers(0, 99), st.floats(0.02, 5))
@settings(max_examples=40, deadline=None)
def test_newton_step_descends_and_ends_on_the_simplex(seed, beta):
    game = make_game(seed=seed, beta=beta)
    at = evaluate(game, simplex_points(4, 1, seed)[0])
    step = newton_step(game, at)
    assert gradient(game, at) @ step <= 0
    np.testing.assert_allclose((at.alpha + step).sum(), 1, atol=1e-9)
    assert (at.alpha + step).min() >= -1e-9


@given(st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_newton_step_descends_where_views_disagree(seed):
    """Rotated graphs may bend ``h`` down, by which its quadratic model must stay convex."""
    game, rng = make_game(seed=seed), np.random.default_rng(seed)
    turned = replace(game, A=game.A @ np.linalg.qr(rng.normal(size=(4, 8, 8)))[0])
    at = evaluate(turned, simplex_points(4, 1, seed)[0])
    assert np.linalg.eigvalsh(curvature(turned, at))[0] >= -1e-9
    assert gradient(turned, at) @ newton_step(turned, at) <= 1e-12


@given(st.integers(0, 99), st.sampled_from([0.01, 0.05, 0.3]))
@settings(max_examples=30, deadline=None)
def test_every_step_of_algorithm_1_descends(seed, beta):
    """A full step may climb where supports of rows change, as those of sparse graphs do."""
    rng, start = np.random.default_rng(seed), np.array([0.9, 0.05, 0.05])
    A = rng.dirichlet(np.full(8, 0.05), size=(3, 30))
    game = Game(A, 1.5 * rng.random((30, 8)), lam=9.0, beta=beta)
    costs = [h(game, start), *(step.cost for step in fuse(game, start, tol=1e-6).steps)]
    assert np.all(np.diff(costs) <= 1e-9)


@pytest.mark.parametrize("beta", [0.02, 0.3, 4.0])
def test_no_point_of_a_fine_grid_is_better(beta):
    """Two views: the grid has a spacing of 1e-4, and the weights are found to 1e-6."""
    game = make_game(n_views=2, beta=beta)
    found = fuse(game, np.array([0.5, 0.5]))
    grid = found.alpha[0] + np.linspace(-0.05, 0.05, 1001)
    costs = [h(game, np.array([a, 1 - a])) for a in grid if 0 <= a <= 1]
    assert h(game, found.alpha) <= min(costs) + 1e-12 * abs(min(costs))
    exact = fuse(game, np.array([0.5, 0.5]), tol=1e-12)
    np.testing.assert_allclose(found.alpha, exact.alpha, atol=1e-6)


def test_a_round_needs_few_evaluations(make_problem, monkeypatch):
    """Reduced gradient descent asked for about twenty; see docs/benchmarks."""
    calls = []
    kernel = numba_rounds.best_response_rows

    def counting(*arguments):
        calls.append(1)
        return kernel(*arguments)

    monkeypatch.setattr(numba_rounds, "best_response_rows", counting)
    for beta in (0.2, 2.0, 8.0):
        calls.clear()
        result = solve(make_problem(n_samples=200, n_anchors=32, beta=beta), max_iter=8, tol=0.0)
        assert len(calls) <= 5 * result.n_iter


@given(st.integers(0, 50), st.floats(0, 1))
@settings(max_examples=40, deadline=None)
def test_h_is_convex(seed, t):
    game = make_game(seed=seed)
    a, b = simplex_points(4, 2, seed)
    assert h(game, t * a + (1 - t) * b) <= t * h(game, a) + (1 - t) * h(game, b) + 1e-9


@pytest.mark.parametrize("alpha", simplex_points(4, 5))
def test_gradient_equals_finite_differences(alpha):
    game = make_game()
    step = 1e-6 * np.eye(4)
    numeric = [(h(game, alpha + e) - h(game, alpha - e)) / 2e-6 for e in step]
    np.testing.assert_allclose(gradient(game, evaluate(game, alpha)), numeric, rtol=1e-5)


@pytest.mark.parametrize("n_views", [2, 3, 6])
@pytest.mark.parametrize("seed", range(3))
def test_optimum_is_that_of_an_independent_solver(n_views, seed):
    game = make_game(n_views, seed)
    start = np.full(n_views, 1 / n_views)
    found = fuse(game, start, tol=1e-9, max_iter=2000)
    scipy_found = minimize(
        lambda a: h(game, a),
        start,
        jac=lambda a: gradient(game, evaluate(game, a)),
        bounds=[(0, 1)] * n_views,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    np.testing.assert_allclose(found.alpha, scipy_found.x, atol=1e-6)
    np.testing.assert_allclose(found.P, best_response(game, found.alpha), atol=1e-12)
    assert abs(h(game, found.alpha) - scipy_found.fun) <= 1e-6


def test_default_tolerance_is_close_in_value():
    game = make_game(3)
    start = np.full(3, 1 / 3)
    rough, fine = fuse(game, start), fuse(game, start, tol=1e-10, max_iter=2000)
    assert 0 <= h(game, rough.alpha) - h(game, fine.alpha) < 1e-6
    assert len(rough.steps) <= len(fine.steps)


def test_gradient_is_constant_over_positive_weights_at_the_optimum():
    """The optimality condition on the simplex."""
    game = make_game(5)
    found = fuse(game, np.full(5, 0.2), tol=1e-10, max_iter=5000)
    grad = gradient(game, evaluate(game, found.alpha))
    np.testing.assert_allclose(grad[found.alpha > 0], grad[found.alpha > 0].mean(), rtol=1e-5)


def test_a_useless_start_at_the_border_is_left():
    game = make_game(3)
    inner = fuse(game, np.full(3, 1 / 3), tol=1e-10, max_iter=2000)
    corner = fuse(game, np.array([1.0, 0.0, 0.0]), tol=1e-10, max_iter=2000)
    np.testing.assert_allclose(corner.alpha, inner.alpha, atol=1e-6)


def test_a_view_that_opposes_the_others_loses_no_descent():
    """With a negative agreement, weight on that view lowers h: it takes all of it."""
    game = make_game(3)
    A = game.A.copy()
    A[2] = -A[2]
    found = fuse(Game(A, game.H, game.lam, game.beta), np.full(3, 1 / 3))
    np.testing.assert_allclose(found.alpha, [0, 0, 1], atol=1e-12)


def test_costs_fall_and_steps_record_the_moves():
    game, start = make_game(4), np.array([0.7, 0.1, 0.1, 0.1])
    found = fuse(game, start, tol=1e-8, max_iter=500)
    costs = [h(game, start)] + [step.cost for step in found.steps]
    assert np.all(np.diff(costs) <= 1e-9)
    one = fuse(game, start, tol=1e-8, max_iter=1)
    np.testing.assert_allclose(one.steps[0].alpha_error, np.sum((one.alpha - start) ** 2))
    np.testing.assert_allclose(
        one.steps[0].P_error, np.sum((one.P - best_response(game, start)) ** 2)
    )


def test_views_permute():
    game, order = make_game(4), np.array([2, 0, 3, 1])
    start = np.full(4, 0.25)
    permuted = Game(game.A[order], game.H, game.lam, game.beta)
    found, found_permuted = fuse(game, start), fuse(permuted, start)
    np.testing.assert_allclose(found_permuted.alpha, found.alpha[order], atol=1e-9)


def test_equal_views_keep_equal_weights():
    game = make_game(3)
    same = Game(np.stack([game.A[0]] * 3), game.H, game.lam, game.beta)
    np.testing.assert_allclose(fuse(same, np.array([0.6, 0.3, 0.1])).alpha, 1 / 3, atol=1e-4)


@given(st.lists(st.floats(0, 1), min_size=3, max_size=3), st.integers(0, 99))
def test_direction_descends_and_stays_on_the_simplex(weights, seed):
    alpha = (np.array(weights) + 1e-3) / (np.array(weights) + 1e-3).sum()
    grad = np.random.default_rng(seed).normal(size=3)
    direction = descent_direction(alpha, grad, int(np.argmax(alpha)))
    assert abs(direction.sum()) < 1e-12
    assert grad @ direction <= 1e-12
    theta = largest_step(alpha, direction)
    assert (alpha + theta * direction).min() >= -1e-12


def test_golden_section_ends_within_its_precision():
    theta, cost = golden_section(lambda x: (x - 0.2) ** 2, 1.0, 0.04)
    assert abs(theta - 0.2) < 2e-3
    assert cost == (theta - 0.2) ** 2
