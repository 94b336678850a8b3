"""Statements of the paper's appendix that hold, and counterexamples to those that do not.

Every test stands for a paragraph of ``docs/theory.md``.
"""

from dataclasses import replace

import numpy as np
import pytest
import scipy.io

from viewmend.core import Problem, solve
from viewmend.core.agfti.alignment import align_products
from viewmend.core.agfti.fusion import Game, best_response, evaluate, fuse, gradient
from viewmend.core.agfti.propagation import anchor_scale, label_distances, propagate_labels
from viewmend.core.agfti.stationarity import graph_residual
from viewmend.core.agfti.tensor_nuclear import prox_tnn, tnn

# One sample of which nothing is known in either view, its rows uniform over two anchors.
UNIFORM = np.full((1, 2), 0.5)
NO_H = np.zeros((1, 2))


def rotation(cosine):
    sine = np.sqrt(1 - cosine**2)
    return np.array([[cosine, -sine], [sine, cosine]])


def game_of(*rotations, beta=100.0):
    """Graphs ``Z_v T_v`` of uniform rows, with the paper's lambda."""
    A = np.stack([UNIFORM @ T for T in rotations])
    return Game(A, NO_H, float(len(rotations) ** 2), beta)


def h(game, *alpha):
    return evaluate(game, np.array(alpha)).cost


def test_h_is_not_convex_where_a_view_disagrees():
    """Theorem 4: with T_v = -I, which is orthogonal, h = -2 (a^2 + b^2) - beta / 2 is concave."""
    game = game_of(-np.eye(2), -np.eye(2))
    middle, ends = h(game, 0.5, 0.5), (h(game, 1, 0) + h(game, 0, 1)) / 2
    np.testing.assert_allclose(middle - ends, 1.0, atol=1e-12)
    assert (evaluate(game, np.array([0.5, 0.5])).agreements < 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_h_is_convex_while_all_views_agree(seed):
    """What is left of Theorem 4: the chord lies above h where <P, Z_v T_v> >= 0 for all P."""
    rng = np.random.default_rng(seed)
    game = Game(rng.random((3, 20, 6)), rng.random((20, 6)), 9.0, 0.7)
    a, b = rng.dirichlet(np.ones(3), size=2)
    assert h(game, *(a + b) / 2) <= (h(game, *a) + h(game, *b)) / 2 + 1e-9


def test_descent_may_end_in_a_local_minimum():
    """Corollary 1: both vertices are minima, and the start decides which of them is found."""
    game = game_of(-np.eye(2), rotation(-0.6))
    worse, better = (fuse(game, np.array(start)).alpha for start in ([0.1, 0.9], [0.9, 0.1]))
    np.testing.assert_allclose([worse, better], [[0, 1], [1, 0]], atol=1e-9)
    assert h(game, *worse) - h(game, *better) > 0.5


def test_the_payoff_is_strictly_concave_in_the_graph():
    """Theorem 1 needs one maximiser: the proof's "strictly convex" would not give it."""
    rng = np.random.default_rng(0)
    game = Game(rng.random((2, 5, 4)), rng.random((5, 4)), 4.0, 0.7)
    alpha = np.array([0.3, 0.7])

    def payoff(P):
        along = game.lam * np.tensordot(alpha**2, game.A, axes=1) - game.H
        return np.sum(P * along) - game.beta * np.sum(P**2)

    P, R = rng.dirichlet(np.ones(4), size=(2, 5))
    excess = payoff((P + R) / 2) - (payoff(P) + payoff(R)) / 2
    np.testing.assert_allclose(excess, game.beta * np.sum((P - R) ** 2) / 4)
    assert payoff(best_response(game, alpha)) >= max(payoff(P), payoff(R))


def test_the_gradient_of_theorem_1_where_h_is_not_convex():
    game, alpha, step = game_of(-np.eye(2), rotation(-0.6)), np.array([0.4, 0.6]), 1e-6
    told = gradient(game, evaluate(game, alpha))
    for v, moved in enumerate(step * np.eye(2)):
        slope = (h(game, *alpha + moved) - h(game, *alpha - moved)) / (2 * step)
        np.testing.assert_allclose(told[v], slope, rtol=1e-6)


def test_degrees_that_follow_the_graph_have_another_maximiser(make_problem):
    """The closed form of P maximises with the degrees of the P before it, not with its own."""
    problem = make_problem(missing_rate=0.0, n_samples=60, beta=0.5)
    alpha = np.full(3, 1 / 3)
    start = best_response(Game(problem.Z, np.zeros_like(problem.Z[0]), 9.0, 0.5), alpha)
    F, Q = propagate_labels(start, problem.Y, problem.B_samples, problem.B_anchors)
    mixed = 9.0 * np.tensordot(alpha**2, problem.Z, axes=1)

    def payoff(P):
        H = label_distances(F, anchor_scale(P)[:, None] * Q)
        return np.sum(P * (mixed - H)) - 0.5 * np.sum(P**2)

    P, found = start, []
    for _ in range(6):
        H = label_distances(F, anchor_scale(P)[:, None] * Q)
        P = best_response(Game(problem.Z, H, 9.0, 0.5), alpha)
        found.append(payoff(P))
    # Degrees that are brought up to date give a better graph than those of the graph before.
    assert max(found[1:]) > found[0] + 1e-6


def test_the_tensor_step_shrinks_by_tau_and_not_by_n_tau():
    """Theorem 2, with the norm of Definition 1 and its factor 1 / n."""
    rng, n, tau = np.random.default_rng(0), 12, 0.5
    Y = rng.normal(size=(3, n, 4))

    def objective(G):
        return tau * tnn(G) + np.sum((G - Y) ** 2) / 2

    ours, printed = (prox_tnn(Y.copy(), threshold)[0] for threshold in (tau, n * tau))
    assert objective(ours) < 0.9 * objective(printed)
    # With a norm that lacks the factor, n tau is right.
    assert (
        n * tau * tnn(printed) + np.sum((printed - Y) ** 2) / 2
        < n * tau * tnn(ours) + np.sum((ours - Y) ** 2) / 2
    )


def test_the_rotation_step_is_not_convex():
    """Theorem 5 calls it convex: of two best rotations, the mean is no rotation at all."""
    product = np.diag([1.0, 0.0])
    best = align_products(product[None])[1][0]
    turned = np.diag([1.0, -1.0])
    for T in (np.eye(2), turned):
        np.testing.assert_allclose(np.sum(product * T), best)
        np.testing.assert_allclose(T.T @ T, np.eye(2))
    between = (np.eye(2) + turned) / 2
    assert np.abs(between.T @ between - np.eye(2)).max() == 1


def states_of(problem, n_rounds):
    """Residual of Z, largest change of Z and |Z - G| after every round, and the last state."""
    told, last = [], [np.array(problem.Z)]

    def look(round_, state):
        told.append(
            (
                graph_residual(state, problem),
                np.abs(state.Z - last[0]).max(),
                round_.primal_residual,
            )
        )
        last[0] = state.Z.copy()
        last[1:] = [replace(state, W=state.W.copy(), G=state.G.copy())]

    solve(problem, max_iter=n_rounds, tol=0.0, callbacks=[look])
    return np.array(told), last[1]


def test_multipliers_are_bounded_by_rho(make_problem):
    """Theorem 5 without its proof: every Fourier slice of W has a norm of rho at most.

    And of rho exactly where G is not zero: the paper's condition for W has lost the factor.
    """
    problem = make_problem(n_samples=40, n_anchors=8, rho=10.0)
    _, state = states_of(problem, 20)
    W, G = (
        np.linalg.svd(np.moveaxis(np.fft.fft(one, axis=1), 1, 0), compute_uv=False)[:, 0]
        for one in (state.W, state.G)
    )
    assert W.max() <= 10 * (1 + 1e-6)
    np.testing.assert_allclose(W[G > 1e-6], 10, rtol=1e-5)


def test_rounds_freeze_before_they_are_stationary(make_problem):
    """Theorem 6: with a growing penalty Z stops where it is, with a constant one it goes on."""
    growing = make_problem(n_samples=40, n_anchors=8, rho=10.0)
    told, _ = states_of(growing, 40)
    residual, change, gap = told[-1]
    assert change < 1e-6
    assert gap < 1e-6
    assert residual > 0.1
    np.testing.assert_allclose(residual, told[29, 0], rtol=0.2)
    held, _ = states_of(replace(growing, eta=10.0, eta_growth=1.0), 120)
    assert held[-1, 0] < 0.1 * residual


@pytest.mark.parametrize("beta", [2.0, 16.0])
def test_cub_freezes_before_it_is_stationary(reference_dir, beta):
    stored = scipy.io.loadmat(reference_dir / "golden" / "cub_it30.mat")
    Z = np.ascontiguousarray(np.moveaxis(stored["Z"], 2, 0))
    labels = stored["Ll"].ravel().astype(int) - 1
    Y = np.zeros((Z.shape[1], 10))
    Y[np.arange(labels.size), labels] = 1
    problem = Problem(Z, Y, stored["ex"].astype(bool), 4.0, beta, 100.0)
    told, _ = states_of(problem, 30)
    residual, change, gap = told[-1]
    assert 1 < residual < 4
    assert max(change, gap) < 1e-2
