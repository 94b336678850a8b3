"""Linear systems, graph energies and problems over the simplex that the methods share."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array

from viewmend.core.common.linear_systems import block_cg, harmonic_labels
from viewmend.core.common.simplex import power_weights, project_simplex, project_support, simplex_qp
from viewmend.core.graphs.neighbours import directed_neighbour_graph
from viewmend.core.graphs.spreading import label_gaps, laplacian

RNG = np.random.default_rng(0)
GRAPH = directed_neighbour_graph(RNG.normal(size=(60, 3)), 5)
LAPLACIAN = laplacian(GRAPH)
LABELLED = np.arange(60) % 6 == 0
Y = np.where(LABELLED[:, None], np.eye(3)[np.arange(60) // 6 % 3], 0.0)


def test_block_cg_equals_a_direct_solution():
    A = LAPLACIAN.toarray() + 0.01 * np.eye(60)
    B = RNG.normal(size=(60, 4))
    B[:, 2] = 0
    X = block_cg(csr_array(A), B, tol=1e-12)
    np.testing.assert_allclose(X, np.linalg.solve(A, B), atol=1e-8)


@pytest.mark.parametrize("form", [csr_array, lambda L: L.toarray()], ids=["sparse", "dense"])
def test_harmonic_labels_are_means_of_their_neighbours(form):
    F = harmonic_labels(form(LAPLACIAN), Y, LABELLED)
    np.testing.assert_array_equal(F[LABELLED], Y[LABELLED])
    np.testing.assert_allclose((LAPLACIAN @ F)[~LABELLED], 0, atol=1e-5)
    assert F.min() >= -1e-5
    np.testing.assert_allclose(F.sum(axis=1), 1, atol=1e-5)


def test_label_gaps_sum_to_the_laplacian_form():
    """sum_ij s_ij |f_i - f_j|^2 = 2 tr(F^T L F) for the Laplacian of the symmetric part."""
    F = RNG.normal(size=(60, 3))
    energy = 2 * np.trace(F.T @ (LAPLACIAN @ F))
    np.testing.assert_allclose(GRAPH.data @ label_gaps(GRAPH, F), energy, rtol=1e-10)


def test_projection_on_the_support_is_that_of_each_row():
    S = csr_array((RNG.normal(size=GRAPH.nnz), GRAPH.indices, GRAPH.indptr), GRAPH.shape)
    projected = project_support(S)
    for i in range(60):
        stored = slice(S.indptr[i], S.indptr[i + 1])
        np.testing.assert_allclose(
            projected.data[stored], project_simplex(S.data[None, stored])[0], atol=1e-12
        )


@pytest.mark.parametrize("n_views", [1, 2, 5])
@pytest.mark.parametrize("seed", range(4))
def test_simplex_qp_equals_an_independent_solver(n_views, seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n_views + 1, n_views))
    M, b = root.T @ root, rng.normal(size=n_views)
    found = simplex_qp(M, b)
    reference = minimize(
        lambda a: a @ M @ a - 2 * a @ b,
        np.full(n_views, 1 / n_views),
        jac=lambda a: 2 * (M @ a - b),
        bounds=[(0, 1)] * n_views,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-15},
    ).x
    np.testing.assert_allclose(found, reference, atol=1e-6)


def test_power_weights_minimise_their_sum():
    costs = np.array([0.5, 2.0, 1.0])
    for r in (1.2, 2.0, 10.0):
        weights = power_weights(costs, r)
        gradient = r * weights ** (r - 1) * costs
        np.testing.assert_allclose(gradient, gradient[0], rtol=1e-9)
        np.testing.assert_allclose(weights.sum(), 1)
    assert power_weights(costs, 1.01)[0] > 0.999
