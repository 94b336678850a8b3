"""Sample graphs and label spreading on them."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from viewmend.core.graphs.nearest import nearest_rows
from viewmend.core.graphs.neighbours import (
    EDGE_WEIGHTS,
    directed_neighbour_graph,
    edges_to_neighbours,
    graph_from_neighbours,
    neighbour_graph,
    scatter_graph,
    union_graph,
)
from viewmend.core.graphs.spreading import joined_to_label, normalise_graph, spread_labels

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3))


def directed_weights(X, k):
    """The closed form written out row by row."""
    W = np.zeros((len(X), len(X)))
    for i in range(len(X)):
        e = ((X - X[i]) ** 2).sum(axis=1)
        e[i] = np.inf
        near = np.argsort(e)[: k + 1]
        gaps = e[near[k]] - e[near[:k]]
        W[i, near[:k]] = gaps / gaps.sum()
    return W


@pytest.mark.parametrize("k", [1, 5])
def test_weights_are_the_closed_form(k):
    W = directed_weights(X, k)
    np.testing.assert_allclose(neighbour_graph(X, k).toarray(), (W + W.T) / 2, atol=1e-10)


def test_duplicates_are_neighbours_but_never_of_themselves():
    W = neighbour_graph(np.repeat(X[:5], 4, axis=0), 3).toarray()
    np.testing.assert_array_equal(np.diag(W), 0)
    np.testing.assert_allclose(W.sum(axis=1), 1)
    assert all(set(np.flatnonzero(row) // 4) == {i // 4} for i, row in enumerate(W))


@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_few_rows_give_a_small_graph(n_rows):
    W = neighbour_graph(X[:n_rows], 7)
    assert W.shape == (n_rows, n_rows)
    assert (W.nnz > 0) == (n_rows > 2)


def squared_distances_to_others(X):
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    return squared


def test_gaussian_weights_are_those_of_a_loop():
    squared, k = squared_distances_to_others(X), 5
    expected = np.zeros((50, 50))
    for i in range(50):
        nearest = np.argsort(squared[i])[:k]
        expected[i, nearest] = np.exp(-4 * squared[i, nearest] / squared[i, nearest[-1]])
    found = neighbour_graph(X, k, "gaussian").toarray()
    np.testing.assert_allclose(found, (expected + expected.T) / 2, rtol=1e-9)


def test_uniform_weights_join_the_nearest():
    ranks = np.argsort(np.argsort(squared_distances_to_others(X), axis=1), axis=1)
    expected = (ranks < 4).astype(float)
    found = neighbour_graph(X, 4, "uniform").toarray()
    np.testing.assert_array_equal(found, (expected + expected.T) / 2)


@pytest.mark.parametrize("weights", EDGE_WEIGHTS)
def test_duplicates_are_joined_and_no_weight_is_lost(weights):
    graph = neighbour_graph(np.repeat(X[:5], 8, axis=0), 4, weights).toarray()
    assert np.isfinite(graph).all()
    assert (graph.sum(axis=1) > 0).all()
    same = np.repeat(np.arange(5), 8)
    assert graph[same[:, None] != same[None]].max() == 0


@pytest.mark.parametrize("weights", EDGE_WEIGHTS)
def test_graph_of_too_few_rows(weights):
    assert neighbour_graph(X[:2], 5, weights).nnz == 0
    assert (neighbour_graph(X[:4], 5, weights).sum(axis=1) > 0).all()


def test_union_sums_the_views_over_the_samples_they_have():
    observed = RNG.random((50, 2)) < 0.6
    views = [np.where(observed[:, [v]], X + v, np.nan) for v in range(2)]
    expected = np.zeros((50, 50))
    for v in range(2):
        rows = np.flatnonzero(observed[:, v])
        expected[np.ix_(rows, rows)] += neighbour_graph(views[v][rows], 4).toarray()
    np.testing.assert_allclose(union_graph(views, observed, 4).toarray(), expected, atol=1e-12)


@pytest.mark.parametrize("weights", EDGE_WEIGHTS)
@pytest.mark.parametrize("k", [1, 4, 9])
def test_graphs_of_fewer_neighbours_than_are_known(k, weights):
    near = nearest_rows(X, 10)
    expected = neighbour_graph(X, k, weights).toarray()
    np.testing.assert_array_equal(graph_from_neighbours(near, k, weights).toarray(), expected)


def test_the_nearest_of_too_few_known_neighbours():
    known = graph_from_neighbours(nearest_rows(X, 4), 7).toarray()
    np.testing.assert_array_equal(known, neighbour_graph(X, 3).toarray())
    assert graph_from_neighbours(nearest_rows(X, 1), 7).nnz == 0


def test_symmetric_graph_is_the_mean_of_the_directed_ones():
    W = directed_neighbour_graph(X, 4).toarray()
    np.testing.assert_array_equal(neighbour_graph(X, 4).toarray(), (W + W.T) / 2)


def test_edges_of_new_rows_are_those_of_the_closed_form():
    queries = RNG.normal(size=(6, 3))
    edges = edges_to_neighbours(nearest_rows(X, 5, queries=queries), 4, 50).toarray()
    for q, found in zip(queries, edges, strict=True):
        e = ((X - q) ** 2).sum(axis=1)
        gaps = np.maximum(np.sort(e)[4] - e, 0)
        np.testing.assert_allclose(found, gaps / gaps.sum(), atol=1e-12)


def test_scattered_graph_keeps_its_edges_between_the_same_samples():
    rows = RNG.permutation(80)[:50]
    small = neighbour_graph(X, 3)
    large = scatter_graph(small, rows, 80).toarray()
    np.testing.assert_array_equal(large[np.ix_(rows, rows)], small.toarray())
    np.testing.assert_allclose(large.sum(), small.sum())


def test_spreading_equals_the_dense_solution():
    """Zhou et al. (2004): F = (I - a S)^{-1} Y."""
    graph = neighbour_graph(X, 5)
    Y = np.zeros((50, 2))
    Y[:4, 0] = Y[4:9, 1] = 1
    S = normalise_graph(graph).toarray()
    dense = np.linalg.solve(np.eye(50) - 0.9 * S, Y)
    np.testing.assert_allclose(spread_labels(graph, Y, 0.9), dense, atol=1e-5)


def test_normalised_graph_has_unit_spectral_radius_and_spares_isolated_nodes():
    graph = neighbour_graph(X, 5).toarray()
    graph[0] = graph[:, 0] = 0
    S = normalise_graph(csr_array(graph)).toarray()
    np.testing.assert_allclose(np.abs(np.linalg.eigvalsh(S)).max(), 1, atol=1e-10)
    np.testing.assert_array_equal(S[0], 0)


def test_joined_nodes_share_a_component_with_a_label():
    chain = csr_array(np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1))
    graph = np.zeros((7, 7))
    graph[:4, :4] = chain.toarray()
    graph[5, 6] = graph[6, 5] = 1
    labelled = np.array([1, 0, 0, 0, 0, 0, 0], dtype=bool)
    np.testing.assert_array_equal(
        joined_to_label(csr_array(graph), labelled), [1, 1, 1, 1, 0, 0, 0]
    )
