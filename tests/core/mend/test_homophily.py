"""Agreement of edges with classes, against dense loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array
from tests.core.small_mend import dense, dense_graphs

from viewmend.backend.namespace import to_numpy
from viewmend.core.graphs.graph import Edges, Graph, union_of
from viewmend.core.mend import homophily as module
from viewmend.core.mend.homophily import (
    Guide,
    class_affinities,
    edge_agreement,
    guide_directed,
    guide_edges,
    guide_union,
    homophily_above_chance,
    homophily_of_known,
    homophily_weights,
    neighbour_shares,
    row_sums,
    total_weight,
)

N, N_CLASSES = 25, 3


def random_graph(rng, density=0.2):
    graph = random_array((N, N), density=density, rng=rng, format="csr")
    return Graph.from_scipy(csr_array(graph + graph.T))


def parts_of(W):
    return [(1.0, W)]


def random_edges(rng, n_rows, n_columns, k=4):
    indices = np.array([rng.permutation(n_columns)[:k] for _ in range(n_rows)], dtype=np.int32)
    return Edges(indices, rng.random((n_rows, k)).astype(np.float32))


def random_union(rng, n_graphs=4):
    """Graphs, each among most of the samples."""
    rows = [np.sort(rng.permutation(N)[: rng.integers(10, N + 1)]) for _ in range(n_graphs)]
    return union_of([random_edges(rng, len(r), len(r)) for r in rows], rows, N)


def problem(seed):
    """A graph, classes of which some are unknown, and labels of a few samples."""
    rng = np.random.default_rng(seed)
    graph, classes = random_graph(rng), rng.integers(-1, N_CLASSES, N)
    labels = np.where(rng.random(N) < 0.3, rng.integers(N_CLASSES, size=N), -1)
    return graph, classes, (labels[:, None] == np.arange(N_CLASSES)).astype(float)


def some_guide(seed, floor=0.05, power=2.0):
    """A guide of a random graph, and the graph."""
    W, classes, Y = problem(seed)
    return W, Guide(classes, class_affinities(parts_of(W), classes, Y), floor, power)


SEEDS = given(st.integers(0, 2**32 - 1))


# ------------------------------------------------------------------ graphs


@settings(max_examples=30, deadline=None)
@SEEDS
def test_weights_are_powers_of_the_agreeing_share_of_the_best(seed):
    rng = np.random.default_rng(seed)
    graphs, classes = random_union(rng), rng.integers(-1, N_CLASSES, N)
    agree = (classes[:, None] == classes) & (classes != -1)
    shares = np.array([W[agree].sum() / W.sum() for W in dense_graphs(graphs)])
    for power in (0.5, 2.0):
        weights = homophily_weights(graphs, classes, power)
        np.testing.assert_allclose(weights, (shares / shares.max()) ** power, rtol=1e-5)
    np.testing.assert_array_equal(homophily_weights(graphs, classes, 0.0), 1)
    # The scale of a graph is not its homophily.
    factors = np.float32([1, 9, 0.1, 5])
    scaled = [Edges(e.indices, f * e.weights) for e, f in zip(graphs.edges, factors, strict=True)]
    found = homophily_weights(union_of(scaled, graphs.rows, N), classes, 2.0)
    np.testing.assert_allclose(found, weights, rtol=1e-5)


def test_a_graph_by_hand():
    """A path 0 - 1 - 2 - 3 of weights 1, 2, 3."""
    path = Edges(np.array([[1], [2], [3], [0]], np.int32), np.float32([[1], [2], [3], [0]]))
    graphs = union_of([path], [np.arange(4)], 4)
    for classes, share in [
        ([0, 0, 1, 1], 4 / 6),
        ([0, 1, 0, 1], 0.0),
        ([1, 1, 1, 1], 1.0),
        ([0, 0, 0, -1], 3 / 6),
        ([0, 0, -1, -1], 1 / 6),
        ([-1, -1, -1, -1], 0.0),
    ]:
        assert graphs.homophily(np.array(classes))[0] == pytest.approx(share, abs=1e-6)


def test_a_graph_without_edges_has_no_weight():
    none = Edges(np.empty((4, 0), np.int32), np.empty((4, 0), np.float32))
    some = Edges(np.array([[1], [0], [3], [2]], np.int32), np.ones((4, 1), np.float32))
    graphs = union_of([none, some], [np.arange(4)] * 2, 4)
    np.testing.assert_array_equal(homophily_weights(graphs, np.zeros(4, dtype=int), 2.0), [0, 1])


def test_graphs_that_nothing_agrees_with_weigh_the_same():
    graphs = random_union(np.random.default_rng(0))
    np.testing.assert_array_equal(homophily_weights(graphs, np.full(N, -1), 2.0), 1)


# ------------------------------------------------------------------ samples


@settings(max_examples=30, deadline=None)
@SEEDS
def test_affinities_are_shares_of_the_neighbours_and_labels_where_given(seed):
    W, classes, Y = problem(seed)
    matrix, A = W.to_scipy().toarray(), class_affinities(parts_of(W), classes, Y)
    for i in range(N):
        if Y[i].any():
            np.testing.assert_array_equal(A[i], Y[i])
            continue
        votes = [matrix[i, classes == c].sum() for c in range(N_CLASSES)]
        np.testing.assert_allclose(A[i] * matrix[i].sum(), votes, atol=1e-12)
    np.testing.assert_array_equal(
        A[~Y.any(axis=1)], neighbour_shares(parts_of(W), classes, N_CLASSES)[~Y.any(axis=1)]
    )


def test_unknown_neighbours_take_their_share_from_all_classes():
    W = Graph.from_scipy(csr_array(np.array([[0.0, 1, 1, 2], [0, 0, 0, 0]])))
    shares = neighbour_shares(parts_of(W), np.array([0, 1, 0, -1]), 2)
    np.testing.assert_allclose(shares, [[0.25, 0.25], [0, 0]])


def test_a_sum_of_graphs_is_one_graph():
    """Shares, degrees and the whole weight of parts with factors are those of their sum."""
    rng = np.random.default_rng(7)
    parts = [(0.3, random_graph(rng)), (2.0, random_graph(rng))]
    classes, W = rng.integers(-1, N_CLASSES, N), dense(parts)
    together = parts_of(Graph.from_scipy(csr_array(W)))
    np.testing.assert_allclose(row_sums(parts), W.sum(axis=1))
    assert total_weight(parts) == pytest.approx(W.sum())
    np.testing.assert_allclose(
        neighbour_shares(parts, classes, N_CLASSES),
        neighbour_shares(together, classes, N_CLASSES),
        atol=1e-12,
    )


# ------------------------------------------------------------------ edges


@settings(max_examples=30, deadline=None)
@SEEDS
def test_guided_edges_equal_the_dense_formula(seed):
    W, guide = some_guide(seed)
    guided, matrix, A = guide_edges(W, guide), W.to_scipy().toarray(), guide.A
    expected = np.array(
        [[matrix[i, j] * (0.05 + A[i] @ A[j]) ** 2 for j in range(N)] for i in range(N)]
    )
    found = dense(parts_of(guided))
    np.testing.assert_allclose(found, expected, atol=1e-14)
    np.testing.assert_allclose(found, found.T, atol=1e-14)
    np.testing.assert_array_equal(guided.indptr, W.indptr)
    np.testing.assert_array_equal(guided.indices, W.indices)
    without_power = guide_edges(W, Guide(guide.classes, A, 0.05, 0.0))
    np.testing.assert_array_equal(without_power.data, W.data)


@pytest.mark.parametrize("power", [1.0, 2.0, 3.0])
def test_edges_between_labels_are_kept_or_cut_to_the_floor(power):
    graph, _, _ = problem(3)
    classes = np.random.default_rng(0).integers(N_CLASSES, size=N)
    Y = np.eye(N_CLASSES)[classes]
    ratio = guide_edges(graph, Guide(classes, Y, 0.05, power)).data / graph.data
    coo = graph.to_scipy().tocoo()
    same = classes[coo.row] == classes[coo.col]
    np.testing.assert_allclose(ratio[same], 1.05**power)
    np.testing.assert_allclose(ratio[~same], 0.05**power)
    assert same.any()
    assert not same.all()


def test_edges_to_other_samples_have_affinities_of_their_own():
    rng = np.random.default_rng(4)
    edges = random_edges(rng, 6, 9)
    A, B = rng.random((6, N_CLASSES)), rng.random((9, N_CLASSES))
    guided = guide_directed(edges, A, B, Guide(np.zeros(9, dtype=int), B, 0.1, 2.0))
    for i, (columns, weights) in enumerate(zip(edges.indices, edges.weights, strict=True)):
        expected = [w * (0.1 + A[i] @ B[j]) ** 2 for j, w in zip(columns, weights, strict=True)]
        np.testing.assert_allclose(guided.weights[i], expected, rtol=1e-6)
    np.testing.assert_array_equal(guided.indices, edges.indices)


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_a_guided_union_has_the_degrees_of_its_guided_graphs(library):
    """Guiding every graph, and then their sum, is guiding the sum."""
    rng = np.random.default_rng(6)
    graphs, weights = random_union(rng), rng.random(4)
    A = rng.dirichlet(np.ones(N_CLASSES), N).astype(np.float32)
    matrices = np.array(dense_graphs(graphs)) * (0.05 + A @ A.T) ** 2
    if library == "torch":
        torch = pytest.importorskip("torch")
        edges = [Edges(*map(torch.asarray, (e.indices, e.weights))) for e in graphs.edges]
        graphs, A = union_of(edges, list(map(torch.asarray, graphs.rows)), N), torch.asarray(A)
    guide = Guide(A[:, 0] * 0, A, 0.05, 2.0)
    guided = guide_union(graphs, guide)
    np.testing.assert_allclose(to_numpy(guided.degrees()), matrices.sum(axis=2), rtol=1e-5)
    total = np.tensordot(weights, matrices, 1)
    np.testing.assert_allclose(dense(parts_of(guided.weighted(weights))), total, atol=1e-6)
    sum_guided = guide_edges(graphs.weighted(weights), guide)
    np.testing.assert_allclose(dense(parts_of(sum_guided)), total, atol=1e-6)


@pytest.mark.parametrize("block", [1, 7, 10_000])
def test_blocks_do_not_show(monkeypatch, block):
    W, guide = some_guide(5)
    whole = edge_agreement(W, guide.A)
    monkeypatch.setattr(module, "BLOCK", block)
    np.testing.assert_array_equal(edge_agreement(W, guide.A), whole)
    coo = W.to_scipy().tocoo()
    np.testing.assert_allclose(whole, (guide.A @ guide.A.T)[coo.row, coo.col], atol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_homophily_above_chance_is_that_of_the_best_graph(seed):
    rng = np.random.default_rng(seed)
    graphs, classes = random_union(rng), rng.integers(-1, N_CLASSES, N)
    known = classes >= 0
    same = (classes[:, None] == classes) & known[:, None]
    expected = max(
        (np.sum(W * same) / np.sum(W) - chance) / (1 - chance)
        for W in dense_graphs(graphs)
        for chance in [chance_by_hand(W[known].sum(axis=1), classes[known])]
    )
    np.testing.assert_allclose(homophily_above_chance(graphs, classes), expected, rtol=1e-5)


def chance_by_hand(degrees, classes):
    """Two ends of edges are of one class."""
    ends = np.outer(degrees, degrees)
    return np.sum(ends[classes[:, None] == classes]) / np.sum(ends)


def test_a_graph_of_two_samples_says_nothing_of_classes():
    """They are of one class, so that none of its edges leaves a class."""
    rng = np.random.default_rng(0)
    classes, every = (np.arange(60) % 10 == 0) * 1, np.arange(60)
    random = Edges(rng.integers(0, 60, (60, 4)).astype(np.int32), np.ones((60, 4), np.float32))
    pair = Edges(np.array([[1], [0]], np.int32), np.ones((2, 1), np.float32))
    both = union_of([random, pair], [every, np.array([1, 2])], 60)
    alone = union_of([random], [every], 60)
    assert homophily_above_chance(both, classes) == homophily_above_chance(alone, classes) < 0.5


def test_hubs_do_not_agree_with_classes():
    """All edges lead to a few samples, which are all of the larger class, as nine in ten are."""
    classes, rows = (np.arange(200) % 10 == 0) * 1, np.arange(200)
    hubs = np.flatnonzero(classes == 0)[:4].astype(np.int32)
    edges = Edges(np.tile(hubs, (200, 1)), np.full((200, 4), 0.25, np.float32))
    graphs = union_of([edges], [rows], 200)
    # More edges stay within a class than pairs of samples are of one.
    assert graphs.homophily(classes)[0] > np.mean(classes[:, None] == classes) + 0.05
    assert homophily_above_chance(graphs, classes) < 0
    assert homophily_of_known(graphs, classes)[0] < 0


def test_homophily_above_chance_reaches_from_chance_to_one():
    """Rings of three samples: each of one class, with one of another class, and all of one."""
    rows, step = np.arange(24), np.array([[1, 2]])
    triples = (rows[:, None] // 3) * 3 + (rows[:, None] + step) % 3
    apart = union_of([Edges(triples.astype(np.int32), np.ones((24, 2), np.float32))], [rows], 24)
    assert homophily_above_chance(apart, rows // 3 % 2) == pytest.approx(1)
    # An edge in three stays within a class, where five of nine random pairs would.
    found = homophily_above_chance(apart, (rows % 3 == 0) * 1)
    assert found == pytest.approx((1 / 3 - 5 / 9) / (1 - 5 / 9))
    assert homophily_above_chance(apart, np.zeros(24, dtype=int)) == 1
