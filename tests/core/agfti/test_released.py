"""Outputs of the authors' code, round by round."""

from pathlib import Path

import numpy as np
import pytest
import scipy.io

from viewmend.core import Problem, solve
from viewmend.core.agfti.bipartite import anchor_graph
from viewmend.core.agfti.released import prox_tnn

# Of synthetic data, and part of the tests; those of CUB are read where there is a reference folder.
GOLDEN = Path(__file__).parents[2] / "data" / "golden"
SYNTHETIC = ["even_v2", "odd_v3", "even_v4"]


def golden(name, folder=GOLDEN):
    return scipy.io.loadmat(folder / f"{name}.mat")


def problem_of(stored, lam, beta, rho):
    Z = np.ascontiguousarray(np.moveaxis(stored["Z"], 2, 0))
    labels = stored["Ll"].ravel().astype(int) - 1
    Y = np.zeros((Z.shape[1], labels.max() + 1))
    Y[np.arange(len(labels)), labels] = 1
    return Problem(Z, Y, stored["ex"].astype(bool), lam, beta, rho)


def scalar(stored, name):
    return float(stored[name].item())


@pytest.mark.parametrize("name", SYNTHETIC)
def test_anchor_graphs_match(name):
    stored = golden(name)
    observed = stored["ex"].astype(bool)
    for v in range(observed.shape[1]):
        rows = stored["MX"][0, v][observed[:, v]]
        Z_v = anchor_graph(rows, stored["A"][0, v], int(scalar(stored, "k")))
        np.testing.assert_allclose(Z_v, stored["Z"][observed[:, v], :, v], atol=1e-12)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_tensor_step_matches(name):
    stored = golden(name)
    G, _ = prox_tnn(np.moveaxis(stored["Z"], 2, 0), scalar(stored, "tau1"))
    np.testing.assert_allclose(np.moveaxis(G, 0, 2), stored["G1"], atol=1e-12)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_every_stored_round_matches(name):
    stored = golden(name)
    problem = problem_of(stored, *(scalar(stored, key) for key in ("lambda", "beta", "rho")))
    for i, n_rounds in enumerate(stored["its"].ravel()):
        result = solve(problem, max_iter=int(n_rounds), compat="released")
        np.testing.assert_allclose(result.F, stored["Fs"][:, :, i], atol=1e-6)
        np.testing.assert_allclose(result.Q, stored["Qs"][:, :, i], atol=1e-6)
        np.testing.assert_allclose(result.alpha, stored["als"][:, i], atol=1e-6)


@pytest.mark.parametrize(
    ("name", "n_rounds", "atol"), [("cub_it01", 1, 1e-8), ("cub_it30", 30, 1e-6)]
)
def test_cub_matches(reference_dir, name, n_rounds, atol):
    stored = golden(name, reference_dir / "golden")
    problem = problem_of(stored, 4.0, 2 ** scalar(stored, "b"), 10 ** scalar(stored, "r"))
    result = solve(problem, max_iter=n_rounds, compat="released")
    np.testing.assert_allclose(result.F, stored["F"], atol=atol)
    np.testing.assert_allclose(result.alpha, stored["alpha"].ravel(), atol=atol)
    predicted = result.F[len(stored["Ll"]) :].argmax(axis=1) + 1
    np.testing.assert_array_equal(predicted, stored["Yp"].ravel())


def test_released_search_ignores_the_answer_of_the_graph(make_problem):
    """Why it is kept apart: its weights are not those of the saddle point."""
    problem = make_problem(inner_tol=1e-9, inner_max_iter=500)
    exact, as_released = solve(problem, max_iter=6), solve(problem, max_iter=6, compat="released")
    assert np.abs(exact.alpha - as_released.alpha).max() > 1e-3
