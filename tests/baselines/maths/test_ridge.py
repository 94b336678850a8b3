"""The residual of a ridge regression, and labels on a learned graph that regress on features."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from viewmend.baselines.maths.flexible import (
    FlexibleProblem,
    flexible_objective,
    fused_view_graph,
    label_splitting,
    minimise_flexible,
    update_graph,
    update_labels,
    update_view_weights,
)
from viewmend.baselines.maths.learned_graph import on_common_support
from viewmend.baselines.maths.ridge import regression_residual, ridge_coefficients
from viewmend.core.common.simplex import project_simplex
from viewmend.core.graphs.neighbours import directed_neighbour_graph
from viewmend.core.graphs.spreading import laplacian

RNG = np.random.default_rng(0)
VIEWS = [RNG.normal(size=(50, d)) for d in (3, 4, 6)]
GRAPHS = [directed_neighbour_graph(X_v, 5) for X_v in VIEWS]
LABELLED = np.arange(50) % 5 == 0
Y = np.where(LABELLED[:, None], np.eye(3)[np.arange(50) // 5 % 3], 0.0)
F = RNG.normal(size=(50, 3))


def make_problem(structure=1.0, smoothness=0.5, regression=2.0, ridge=0.1, label_weight=1e6):
    return FlexibleProblem(
        *on_common_support(GRAPHS),
        R=regression_residual(np.hstack(VIEWS), ridge),
        Y=Y,
        label_weights=label_weight * LABELLED,
        structure=structure,
        smoothness=smoothness,
        regression=regression,
    )


def graph_with(problem, entries):
    return csr_array((entries, problem.support.indices, problem.support.indptr), (50, 50))


@pytest.mark.parametrize("n_features", [6, 80], ids=["tall", "wide"])
def test_residual_is_what_the_best_ridge_regression_leaves(n_features):
    X = RNG.normal(size=(50, n_features)) + 3
    R = regression_residual(X, 0.7)
    X_c = X - X.mean(axis=0)
    hat = X_c @ np.linalg.solve(X_c.T @ X_c + 0.7 * np.eye(n_features), X_c.T)
    np.testing.assert_allclose(R @ F, (np.eye(50) - 1 / 50 - hat) @ F, atol=1e-10)
    B, b = R.coefficients(F)
    left = X @ B + b - F
    np.testing.assert_allclose(X.T @ left + 0.7 * B, 0, atol=1e-9)
    np.testing.assert_allclose(left.sum(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(np.sum(F * (R @ F)), np.sum(left**2) + 0.7 * np.sum(B**2))


def test_residual_of_dependent_and_constant_features():
    X = RNG.normal(size=(50, 2))
    doubled = np.hstack([X, X, np.full((50, 1), 5.0)])
    # Two equal features share the coefficient: half the ridge of one.
    np.testing.assert_allclose(
        regression_residual(doubled, 0.4) @ F, regression_residual(X, 0.2) @ F, atol=1e-10
    )
    constant = regression_residual(np.full((50, 2), 5.0), 0.4)
    np.testing.assert_allclose(constant @ F, F - F.mean(axis=0), atol=1e-12)


def test_common_support_keeps_every_graph():
    problem = make_problem()
    for v, graph in enumerate(GRAPHS):
        kept = graph_with(problem, problem.A[v])
        np.testing.assert_array_equal(kept.toarray(), graph.toarray())
    alpha = np.array([0.2, 0.5, 0.3])
    expected = sum(a * graph.toarray() for a, graph in zip(alpha, GRAPHS, strict=True))
    np.testing.assert_allclose(fused_view_graph(problem, alpha).toarray(), expected)
    np.testing.assert_array_equal(problem.support.toarray() > 0, expected > 0)


@pytest.mark.parametrize("smoothness", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("regression", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("ridge", [1e-6, 1e6])
def test_labels_equal_a_dense_solution(smoothness, regression, ridge):
    """On a graph other than that of the preconditioner, over the whole grid of the paper."""
    problem = make_problem(1.0, smoothness, regression, ridge, label_weight=1e6 * smoothness)
    S = graph_with(problem, RNG.uniform(size=problem.support.nnz))
    U = np.diag(problem.label_weights)
    system = smoothness * laplacian(S).toarray() + U + regression * (problem.R @ np.eye(50))
    # Scaled to a unit diagonal, so that the dense solver is as exact as can be.
    scale = 1 / np.sqrt(np.diag(system))[:, None]
    expected = scale * np.linalg.solve(scale * system * scale.T, scale * (U @ Y))
    found = update_labels(problem, label_splitting(problem), S, Y, tol=1e-10)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_labels_do_not_depend_on_the_start():
    problem = make_problem()
    S, splitting = fused_view_graph(problem, np.full(3, 1 / 3)), label_splitting(problem)
    cold = update_labels(problem, splitting, S, Y, tol=1e-9)
    np.testing.assert_allclose(update_labels(problem, splitting, S, F, tol=1e-9), cold, atol=1e-7)
    np.testing.assert_allclose(update_labels(problem, splitting, S, cold), cold, atol=1e-7)


def test_label_rows_sum_to_one():
    """Constants lie in the null space of both the Laplacian and R."""
    problem = make_problem()
    S = fused_view_graph(problem, np.full(3, 1 / 3))
    labels = update_labels(problem, label_splitting(problem), S, Y, tol=1e-9)
    np.testing.assert_allclose(labels.sum(axis=1), 1, atol=1e-6)


def test_graph_rows_are_optimal():
    """Against the dense projection of every row on its support."""
    problem = make_problem(structure=2.0, smoothness=0.8)
    alpha = np.array([0.2, 0.5, 0.3])
    S = update_graph(problem, alpha, F).toarray()
    fused = fused_view_graph(problem, alpha).toarray()
    for i in range(50):
        stored = fused[i] > 0
        gaps = np.sum((F[i] - F[stored]) ** 2, axis=1)
        expected = project_simplex((fused[i, stored] - 0.8 / 8 * gaps)[None, :])[0]
        np.testing.assert_allclose(S[i, stored], expected, atol=1e-12)
        assert not S[i, ~stored].any()


def test_each_update_reaches_the_minimum_of_its_block():
    problem = make_problem(label_weight=10.0)
    alpha = np.array([0.2, 0.5, 0.3])
    S = update_graph(problem, alpha, F)
    best_F = update_labels(problem, label_splitting(problem), S, F, tol=1e-9)
    best_alpha = update_view_weights(problem, S)
    low_F = flexible_objective(problem, best_F, S, alpha)
    low_S = flexible_objective(problem, F, S, alpha)
    low_alpha = flexible_objective(problem, F, S, best_alpha)
    rng = np.random.default_rng(1)
    for _ in range(20):
        nudge = rng.normal(size=F.shape)
        assert flexible_objective(problem, best_F + 0.01 * nudge, S, alpha) > low_F
        other = fused_view_graph(problem, rng.dirichlet(np.ones(3)))
        mixed = graph_with(problem, 0.95 * S.data + 0.05 * other.data)
        assert flexible_objective(problem, F, mixed, alpha) > low_S
        mixture = 0.95 * best_alpha + 0.05 * rng.dirichlet(np.ones(3))
        assert flexible_objective(problem, F, S, mixture) > low_alpha


@pytest.mark.parametrize("smoothness", [0.1, 10.0])
def test_objective_falls_until_it_stands_still(smoothness):
    found = minimise_flexible(make_problem(smoothness=smoothness), max_iter=200, tol=1e-7)
    assert 2 < len(found.history) < 200
    assert np.all(np.diff(found.history) <= 1e-9 * found.history[0])
    np.testing.assert_allclose(found.S.sum(axis=1), 1)
    np.testing.assert_allclose(found.alpha.sum(), 1)


def test_a_stiff_structure_keeps_the_fused_graph():
    problem = make_problem(structure=1e9)
    found = minimise_flexible(problem, max_iter=5, tol=0)
    np.testing.assert_allclose(
        found.S.toarray(), fused_view_graph(problem, found.alpha).toarray(), atol=1e-7
    )


@pytest.mark.parametrize("shape", [(30, 8), (8, 30)], ids=["tall", "wide"])
def test_ridge_coefficients_satisfy_the_normal_equations(shape):
    rng = np.random.default_rng(0)
    X, F = rng.normal(size=shape), rng.normal(size=(shape[0], 3))
    W = ridge_coefficients(X, F, 0.7)
    np.testing.assert_allclose(X.T @ (X @ W - F) + 0.7 * W, 0, atol=1e-10)
