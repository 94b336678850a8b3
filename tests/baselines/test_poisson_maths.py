"""Poisson learning against dense solutions."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import block_diag, csr_array

from viewmend.baselines.poisson import (
    heat_flow,
    label_sources,
    poisson_labels,
    poisson_mbo,
    poisson_potential,
    volume_offsets,
)
from viewmend.core.graphs.neighbours import neighbour_graph
from viewmend.core.graphs.spreading import laplacian

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
# Two components, one without a label, one with a single class, and an isolated sample.
PARTS = [neighbour_graph(RNG.normal(size=(n, 2)), 6, "gaussian") for n in (40, 20, 10)]
GRAPH = csr_array(block_diag([*PARTS, csr_array((1, 1))]))
COMPONENT = np.repeat([0, 1, 2, 3], [40, 20, 10, 1])
CODES = np.full(71, -1)
CODES[[0, 5, 11, 17, 23, 31, 38]] = [0, 1, 2, 0, 1, 0, 2]
CODES[[41, 52]] = 1
LABELLED = CODES >= 0
Y = (CODES[:, None] == np.arange(3)).astype(float)


def test_sources_sum_to_zero_over_rows_and_components():
    B = label_sources(GRAPH, Y, LABELLED)
    np.testing.assert_allclose(B.sum(axis=1), 0, atol=1e-12)
    for part in range(4):
        inside = np.equal(COMPONENT, part)
        np.testing.assert_allclose(B[inside].sum(axis=0), 0, atol=1e-12)
    first = LABELLED & (COMPONENT == 0)
    np.testing.assert_allclose(B[first], Y[first] - Y[first].mean(axis=0))
    assert not B[~LABELLED].any()


def test_potential_equals_the_pseudo_inverse_of_each_component():
    B = label_sources(GRAPH, Y, LABELLED)
    U = poisson_potential(GRAPH, B, tol=1e-12)
    for part in range(4):
        inside = np.equal(COMPONENT, part)
        W = GRAPH.toarray()[np.ix_(inside, inside)]
        degrees = W.sum(axis=1)
        expected = np.linalg.pinv(np.diag(degrees) - W) @ B[inside]
        if degrees.any():
            expected -= degrees @ expected / degrees.sum()
        np.testing.assert_allclose(U[inside], expected, atol=1e-7)
    np.testing.assert_allclose(laplacian(GRAPH) @ U, B, atol=1e-7)


def test_single_class_and_unlabelled_components():
    F = poisson_labels(GRAPH, Y, LABELLED)
    U = poisson_potential(GRAPH, label_sources(GRAPH, Y, LABELLED))
    first = COMPONENT == 0
    np.testing.assert_array_equal(F[first].argmax(axis=1), U[first].argmax(axis=1))
    np.testing.assert_array_equal(F[COMPONENT == 1], np.tile([0.0, 1, 0], (20, 1)))
    assert not F[COMPONENT >= 2].any()


def test_heat_flow_equals_powers_of_its_matrix():
    B, U_0 = label_sources(GRAPH, Y, LABELLED), RNG.normal(size=(71, 3))
    L = laplacian(GRAPH).toarray()
    step = 1 / L.diagonal().max()
    P = np.eye(71) - step * L
    expected = np.linalg.matrix_power(P, 7) @ U_0
    expected += sum(np.linalg.matrix_power(P, i) for i in range(7)) @ (0.5 * step * B)
    np.testing.assert_allclose(heat_flow(GRAPH, U_0, B, 0.5, 7), expected, atol=1e-10)


def test_heat_flow_ends_in_the_poisson_potential():
    graph, B = PARTS[0], label_sources(PARTS[0], Y[:40], LABELLED[:40])
    U = poisson_potential(graph, B, tol=1e-12)
    flowed = heat_flow(graph, np.zeros_like(B), B, 1.0, 20_000)
    # Heat keeps its plain sum, the potential its sum weighted by degrees.
    np.testing.assert_allclose(flowed, U - U.mean(axis=0), atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_volume_offsets_solve_the_assignment(seed):
    """No labelling with the same class sizes scores higher, and the sizes are as asked."""
    rng = np.random.default_rng(seed)
    U = rng.random((60, 3)) + np.array([0.5, 0, 0])
    sizes = np.array([10, 20, 30])
    classes = np.argmax(U + volume_offsets(U, sizes / 60), axis=1)
    found = np.bincount(classes, minlength=3)
    assert np.abs(found - sizes).max() <= 1
    slots = np.repeat(np.arange(3), found)
    rows, columns = linear_sum_assignment(-U[:, slots])
    np.testing.assert_allclose(U[np.arange(60), classes].sum(), U[rows, slots[columns]].sum())


@pytest.mark.parametrize("prior", [(1 / 3, 1 / 3, 1 / 3), (0.5, 0.3, 0.2)])
def test_mbo_descends_to_a_labelling_of_the_sizes_asked(prior):
    rng = np.random.default_rng(1)
    graph = neighbour_graph(rng.normal(size=(150, 4)), 6, "gaussian")
    codes = np.where(np.arange(150) < 15, np.arange(150) % 3, -1)
    labelled, Y = codes >= 0, (codes[:, None] == np.arange(3)).astype(float)
    found = poisson_mbo(graph, Y, labelled, np.array(prior), n_inner=10, n_outer=50)
    assert 3 < len(found.history) < 50
    # The classes of Poisson learning, from which it starts, have other sizes.
    assert np.diff(found.history[1:]).max() <= 1e-9
    shares = np.bincount(found.F.argmax(axis=1), minlength=3) / 150
    np.testing.assert_allclose(shares, prior, atol=1.5 / 150)
    np.testing.assert_allclose(found.F.sum(axis=1), 1)


def test_mbo_energy_is_the_form_of_its_heat():
    """-tr(U^T A U) / 2 - tr(G^T U), with A and G from dense powers, at the Poisson classes."""
    graph, Y_1, labelled = PARTS[0], Y[:40], LABELLED[:40]
    B = label_sources(graph, Y_1, labelled)
    L = laplacian(graph).toarray()
    step = 1 / L.diagonal().max()
    P = np.eye(40) - step * L
    A = np.linalg.matrix_power(P, 6)
    G = sum(np.linalg.matrix_power(P, i) for i in range(6)) @ (2.0 * step * B)
    U = np.eye(3)[poisson_labels(graph, Y_1, labelled).argmax(axis=1)]
    prior = np.full(3, 1 / 3)
    found = poisson_mbo(graph, Y_1, labelled, prior, fidelity=2.0, n_inner=6, n_outer=1)
    np.testing.assert_allclose(found.history, [-np.vdot(U, A @ U) / 2 - np.vdot(G, U)], rtol=1e-10)
