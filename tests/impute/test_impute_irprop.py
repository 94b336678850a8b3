"""The optimiser of deep matrix factorisation."""

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from viewmend.impute.irprop import minimise_irprop

RNG = np.random.default_rng(0)


def naive_irprop(function, x, n_iter):
    """iRprop+ coordinate by coordinate, as the paper prints it; the points visited."""
    step, last, move, before = np.full(x.size, 0.0123), np.zeros(x.size), np.zeros(x.size), np.inf
    points = [x.copy()]
    for _ in range(n_iter):
        loss, (g,) = function([x])
        g = g.copy()
        for i in range(x.size):
            if g[i] * last[i] > 0:
                step[i] = min(1.2 * step[i], 50)
                move[i] = -np.sign(g[i]) * step[i]
            elif g[i] * last[i] < 0:
                step[i] *= 0.5
                move[i] = -move[i] if loss > before else 0.0
                g[i] = 0
            else:
                move[i] = -np.sign(g[i]) * step[i]
        x, last, before = x + move, g, loss
        points.append(x.copy())
    return points


def quadratic(condition):
    Q = np.linalg.qr(RNG.normal(size=(6, 6)))[0]
    A = Q @ np.diag(np.geomspace(1, condition, 6)) @ Q.T
    return A, lambda unknown: (0.5 * unknown[0] @ A @ unknown[0], [A @ unknown[0]])


def test_every_point_is_that_of_the_printed_algorithm():
    """On a crooked valley, where the loss also rises and moves are taken back."""
    visited = []

    def function(unknown):
        visited.append(unknown[0].copy())
        return rosen(unknown[0]), [rosen_der(unknown[0])]

    start = np.array([-1.2, 1.0, 0.7])
    found = minimise_irprop(function, [start], max_iter=60, tol=0)
    expected = naive_irprop(lambda u: (rosen(u[0]), [rosen_der(u[0])]), start, 60)
    np.testing.assert_allclose(visited, expected, rtol=0, atol=1e-12)
    assert np.any(np.diff(found.losses) > 0)


def test_minimum_of_a_quadratic():
    _, function = quadratic(100.0)
    found = minimise_irprop(function, [RNG.normal(size=6)], max_iter=3000, tol=1e-14)
    assert found.status == "converged"
    np.testing.assert_allclose(found.parameters[0], 0, atol=1e-5)


def test_agrees_with_an_independent_solver_on_several_arrays():
    """Logistic regression with a bias: two unknown arrays of different shapes."""
    X, y = RNG.normal(size=(80, 3)), np.where(RNG.random(80) < 0.4, 1.0, -1.0)

    def function(unknown):
        w, b = unknown
        margins = y * (X @ w + b)
        pull = -y / (1 + np.exp(margins)) / 80
        loss = np.logaddexp(0, -margins).mean() + 0.05 * np.sum(w**2)
        return loss, [pull @ X + 0.1 * w, pull.sum(keepdims=True)]

    def flat(x):
        loss, gradients = function([x[:3], x[3:]])
        return loss, np.concatenate(gradients)

    reference = minimize(flat, np.zeros(4), jac=True, method="BFGS", options={"gtol": 1e-9})
    found = minimise_irprop(function, [np.zeros(3), np.zeros(1)], max_iter=2000, tol=1e-13)
    np.testing.assert_allclose(np.concatenate(found.parameters), reference.x, atol=1e-4)


def test_result_is_the_best_point_and_start_is_kept():
    _, function = quadratic(1000.0)
    start = [np.full(6, 5.0)]
    found = minimise_irprop(function, start, max_iter=25, tol=0)
    assert found.status == "max_iter"
    assert len(found.losses) == 26
    assert function(found.parameters)[0] == min(found.losses)
    np.testing.assert_array_equal(start[0], 5.0)


@pytest.mark.parametrize(
    ("options", "n_seen"), [({"enough": np.inf}, 1), ({"tol": np.inf}, 1), ({"max_iter": 3}, 4)]
)
def test_stops_for_each_of_its_reasons(options, n_seen):
    _, function = quadratic(10.0)
    assert len(minimise_irprop(function, [np.ones(6)], **options).losses) == n_seen


def test_stops_where_the_loss_stalls():
    """A slope so slight that each move gains less than the tolerance, with a derivative above."""
    found = minimise_irprop(
        lambda u: (1e-6 * u[0].sum(), [np.full(2, 1e-6)]), [np.ones(2)], tol=1e-7
    )
    assert found.status == "converged"
    assert len(found.losses) == 2
