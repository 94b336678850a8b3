"""Agreement of edges with classes, against dense loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from viewmend.core.mend import homophily as module
from viewmend.core.mend.homophily import (
    class_affinities,
    edge_agreement,
    guide_edges,
    homophily,
    homophily_weights,
    neighbour_shares,
)

N_CLASSES = 3


def random_graph(rng, n=25, density=0.2):
    graph = random_array((n, n), density=density, rng=rng, format="csr")
    return csr_array(graph + graph.T)


def problem(seed, n=25):
    """A graph, classes of which some are unknown, and labels of a few samples."""
    rng = np.random.default_rng(seed)
    graph, classes = random_graph(rng, n), rng.integers(-1, N_CLASSES, n)
    labels = np.where(rng.random(n) < 0.3, rng.integers(N_CLASSES, size=n), -1)
    return graph, classes, (labels[:, None] == np.arange(N_CLASSES)).astype(float)


SEEDS = given(st.integers(0, 2**32 - 1))


# ------------------------------------------------------------------ graphs


@settings(max_examples=30, deadline=None)
@SEEDS
def test_homophily_is_the_share_of_agreeing_weight(seed):
    graph, classes, _ = problem(seed)
    dense = graph.toarray()
    agreeing = sum(
        dense[i, j]
        for i in range(25)
        for j in range(25)
        if classes[i] == classes[j] and classes[i] != -1
    )
    np.testing.assert_allclose(homophily(graph, classes), agreeing / dense.sum())


def test_a_graph_by_hand():
    """A path 0 - 1 - 2 - 3 of weights 1, 2, 3."""
    path = np.diag([1.0, 2.0, 3.0], 1)
    graph = csr_array(path + path.T)
    for classes, share in [
        ([0, 0, 1, 1], 4 / 6),
        ([0, 1, 0, 1], 0.0),
        ([1, 1, 1, 1], 1.0),
        ([0, 0, 0, -1], 3 / 6),
        ([0, 0, -1, -1], 1 / 6),
        ([-1, -1, -1, -1], 0.0),
    ]:
        assert homophily(graph, np.array(classes)) == pytest.approx(share, abs=1e-15)


def test_a_graph_without_edges_has_none():
    empty = csr_array((4, 4))
    assert homophily(empty, np.zeros(4, dtype=int)) == 0
    weights = homophily_weights([empty, csr_array(np.ones((4, 4)))], np.zeros(4, dtype=int), 2.0)
    np.testing.assert_array_equal(weights, [0, 1])


@settings(max_examples=30, deadline=None)
@SEEDS
def test_weights_are_powers_of_the_share_of_the_best(seed):
    rng = np.random.default_rng(seed)
    graphs, classes = [random_graph(rng) for _ in range(4)], rng.integers(-1, N_CLASSES, 25)
    shares = np.array([homophily(graph, classes) for graph in graphs])
    for power in (0.5, 2.0):
        weights = homophily_weights(graphs, classes, power)
        np.testing.assert_allclose(weights, (shares / shares.max()) ** power)
    np.testing.assert_array_equal(homophily_weights(graphs, classes, 0.0), 1)
    # The scale of a graph is not its homophily.
    scaled = [
        csr_array(graph * factor) for graph, factor in zip(graphs, (1, 9, 0.1, 5), strict=True)
    ]
    np.testing.assert_allclose(homophily_weights(scaled, classes, 2.0), weights)


def test_graphs_that_nothing_agrees_with_weigh_the_same():
    graphs = [random_graph(np.random.default_rng(s)) for s in range(3)]
    np.testing.assert_array_equal(homophily_weights(graphs, np.full(25, -1), 2.0), 1)


# ------------------------------------------------------------------ samples


@settings(max_examples=30, deadline=None)
@SEEDS
def test_affinities_are_shares_of_the_neighbours_and_labels_where_given(seed):
    W, classes, Y = problem(seed)
    dense, A = W.toarray(), class_affinities(W, classes, Y)
    for i in range(25):
        if Y[i].any():
            np.testing.assert_array_equal(A[i], Y[i])
            continue
        votes = [dense[i, classes == c].sum() for c in range(N_CLASSES)]
        np.testing.assert_allclose(A[i] * dense[i].sum(), votes, atol=1e-12)
    np.testing.assert_array_equal(
        A[~Y.any(axis=1)], neighbour_shares(W, classes, N_CLASSES)[~Y.any(axis=1)]
    )


def test_unknown_neighbours_take_their_share_from_all_classes():
    W = csr_array(np.array([[0.0, 1, 1, 2], [0, 0, 0, 0]]))
    shares = neighbour_shares(W, np.array([0, 1, 0, -1]), 2)
    np.testing.assert_allclose(shares, [[0.25, 0.25], [0, 0]])


# ------------------------------------------------------------------ edges


@settings(max_examples=30, deadline=None)
@SEEDS
def test_guided_edges_equal_the_dense_formula(seed):
    W, classes, Y = problem(seed)
    A = class_affinities(W, classes, Y)
    guided = guide_edges(W, A, A, 0.05, 2.0)
    dense = W.toarray()
    expected = np.array(
        [[dense[i, j] * (0.05 + A[i] @ A[j]) ** 2 for j in range(25)] for i in range(25)]
    )
    np.testing.assert_allclose(guided.toarray(), expected, atol=1e-14)
    np.testing.assert_allclose(guided.toarray(), guided.toarray().T, atol=1e-14)
    np.testing.assert_array_equal(guided.indptr, W.indptr)
    np.testing.assert_array_equal(guided.indices, W.indices)
    np.testing.assert_array_equal(guide_edges(W, A, A, 0.05, 0.0).toarray(), dense)


@pytest.mark.parametrize("power", [1.0, 2.0, 3.0])
def test_edges_between_labels_are_kept_or_cut_to_the_floor(power):
    graph, _, _ = problem(3)
    Y = np.eye(N_CLASSES)[np.random.default_rng(0).integers(N_CLASSES, size=25)]
    ratio = guide_edges(graph, Y, Y, 0.05, power).tocoo()
    same = (Y @ Y.T)[ratio.row, ratio.col] == 1
    before = graph.tocoo().data
    np.testing.assert_allclose(ratio.data[same] / before[same], 1.05**power)
    np.testing.assert_allclose(ratio.data[~same] / before[~same], 0.05**power)
    assert same.any()
    assert not same.all()


def test_edges_to_other_samples_have_affinities_of_their_own():
    rng = np.random.default_rng(4)
    W = csr_array(rng.random((6, 9)) * (rng.random((6, 9)) < 0.5))
    A, B = rng.random((6, N_CLASSES)), rng.random((9, N_CLASSES))
    expected = W.toarray() * (0.1 + A @ B.T) ** 2
    np.testing.assert_allclose(guide_edges(W, A, B, 0.1, 2.0).toarray(), expected)


@pytest.mark.parametrize("block", [1, 7, 10_000])
def test_blocks_do_not_show(monkeypatch, block):
    W, classes, Y = problem(5)
    A = class_affinities(W, classes, Y)
    whole = edge_agreement(W, A, A)
    monkeypatch.setattr(module, "BLOCK", block)
    np.testing.assert_array_equal(edge_agreement(W, A, A), whole)
    coo = W.tocoo()
    np.testing.assert_allclose(whole, (A @ A.T)[coo.row, coo.col], atol=1e-14)
