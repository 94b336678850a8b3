"""Graphs as arrays: the same numbers as SciPy's, in NumPy and in PyTorch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from viewmend.backend.namespace import to_numpy
from viewmend.backend.threads import limited_threads
from viewmend.core.graphs.graph import (
    Edges,
    Graph,
    edges_of,
    in_order_of_fit,
    symmetric_graph,
    union_of,
)
from viewmend.core.graphs.nearest import Neighbours, nearest_rows
from viewmend.core.graphs.neighbours import edges_to_neighbours, neighbour_graph

LIBRARIES = ["numpy", "torch"]


def to_library(library, array):
    """The array in a library that may be absent."""
    if library == "numpy":
        return array
    return pytest.importorskip(library).asarray(array)


@pytest.fixture(params=LIBRARIES)
def library(request):
    if request.param != "numpy":
        pytest.importorskip(request.param)
    return request.param


def some_edges(rng, n_rows, k):
    """Edges to distinct rows, some of them of weight zero."""
    indices = np.array([rng.permutation(n_rows)[:k] for _ in range(n_rows)], dtype=np.int32)
    weights = rng.random((n_rows, k)).astype(np.float32) * (rng.random((n_rows, k)) < 0.7)
    return Edges(indices.reshape(n_rows, k), weights)


def some_graphs(seed, n_samples, n_graphs, most=6):
    """Edges and rows of graphs, each among some of the samples in any order."""
    rng = np.random.default_rng(seed)
    rows = [rng.permutation(n_samples)[: rng.integers(0, n_samples + 1)] for _ in range(n_graphs)]
    return [some_edges(rng, len(r), min(len(r), most)) for r in rows], rows


def in_library(library, edges, rows):
    moved = [Edges(to_library(library, e.indices), to_library(library, e.weights)) for e in edges]
    return moved, [to_library(library, r) for r in rows]


def symmetric_matrices(edges, rows, n):
    """``(E + E^T) / 2`` of every graph, dense, written out edge by edge."""
    matrices = np.zeros((len(edges), n, n))
    for W, e, r in zip(matrices, edges, rows, strict=True):
        for i, (columns, weights) in enumerate(zip(e.indices, e.weights, strict=True)):
            for j, weight in zip(columns, weights, strict=True):
                W[r[i], r[j]] += weight / 2
                W[r[j], r[i]] += weight / 2
    return matrices


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 4))
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_union_sums_its_graphs(library, seed, n, n_graphs):
    edges, rows = some_graphs(seed, n, n_graphs)
    matrices = symmetric_matrices(edges, rows, n)
    factors = np.random.default_rng(seed).random(n_graphs)
    factors[0] = 0
    union = union_of(*in_library(library, edges, rows), n)
    W = union.weighted(factors)
    expected = np.tensordot(factors, matrices, 1)
    assert W.shape == (n, n)
    np.testing.assert_allclose(W.to_scipy().toarray(), expected, atol=1e-6)
    # One entry per place, ascending: edges of several graphs share it.
    assert W.to_scipy().has_canonical_format
    assert W.data.shape[0] == np.count_nonzero(matrices.any(axis=0))
    np.testing.assert_allclose(to_numpy(W.row_sums()), expected.sum(axis=1), atol=1e-6)
    np.testing.assert_allclose(to_numpy(union.degrees()), matrices.sum(axis=2), atol=1e-6)


def test_sums_are_symmetric_to_the_last_digit(library):
    edges, rows = some_graphs(3, 200, 5)
    W = union_of(*in_library(library, edges, rows), 200).weighted([0.1, 0.7, 0.3, 1.1, 0.9])
    W = W.to_scipy()
    assert (W != W.T).nnz == 0


def test_both_libraries_agree():
    torch = pytest.importorskip("torch")
    edges, rows = some_graphs(4, 300, 6)
    one = union_of(edges, rows, 300)
    other = union_of(*in_library("torch", edges, rows), 300)
    for name in ("indptr", "indices", "mirror"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name).numpy())
    classes = np.arange(300) % 4 - 1
    np.testing.assert_allclose(
        one.homophily(classes), other.homophily(torch.asarray(classes)).numpy(), rtol=1e-6
    )
    weights = np.linspace(0, 1, 6)
    np.testing.assert_array_equal(one.weighted(weights).data, other.weighted(weights).data.numpy())


@pytest.mark.parametrize("seed", range(5))
def test_homophily_is_the_share_within_classes(library, seed):
    edges, rows = some_graphs(seed, 60, 3)
    edges.append(Edges(np.zeros((60, 0), dtype=np.int32), np.zeros((60, 0), dtype=np.float32)))
    rows.append(np.arange(60))
    classes = np.random.default_rng(seed).integers(-1, 3, 60)
    union = union_of(*in_library(library, edges, rows), 60)
    matrices = symmetric_matrices(edges, rows, 60)
    agree = (classes[:, None] == classes) & (classes >= 0)
    expected = [W[agree].sum() / max(W.sum(), 1e-9) for W in matrices]
    shares = to_numpy(union.homophily(to_library(library, classes)))
    np.testing.assert_allclose(shares, expected, atol=1e-6)
    assert shares[-1] == 0
    assert shares[:-1].max() > 0


def test_repeated_edges_of_a_row_are_added(library):
    edges = Edges(np.array([[1, 1], [0, 0]], dtype=np.int32), np.ones((2, 2), dtype=np.float32))
    W = union_of(*in_library(library, [edges], [np.arange(2)]), 2).weighted([1.0])
    np.testing.assert_array_equal(W.to_scipy().toarray(), [[0, 2], [2, 0]])


@pytest.mark.parametrize("k", [3, 10])
def test_edges_are_those_of_the_neighbours(library, k):
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[20:] = X[:20]  # ties at distance zero
    X[:4] = 0
    X[20:24] = 0
    near = nearest_rows(X, k + 1)
    moved = Neighbours(*(to_library(library, a) for a in (near.indices, near.squared_distances)))
    edges = edges_of(moved, k)
    W = np.zeros((40, 40))
    indices, weights = to_numpy(edges.indices), to_numpy(edges.weights)
    assert indices.dtype == np.int32
    assert weights.dtype == np.float32
    np.add.at(W, (np.arange(40)[:, None], indices), weights)
    np.testing.assert_allclose(W, edges_to_neighbours(near, k, 40).toarray(), atol=1e-6)
    graph = symmetric_graph(edges, 40)
    np.testing.assert_allclose(
        graph.to_scipy().toarray(), neighbour_graph(X, k).toarray(), atol=1e-6
    )


def test_edges_of_too_few_neighbours():
    lonely = edges_of(nearest_rows(np.zeros((1, 2)), 4), 3)
    assert symmetric_graph(lonely, 1).data.size == 0
    three = nearest_rows(np.array([[0.0], [1.0], [3.0]]), 10)
    np.testing.assert_allclose(
        symmetric_graph(edges_of(three, 9), 3).to_scipy().toarray(),
        neighbour_graph(np.array([[0.0], [1.0], [3.0]]), 9).toarray(),
        atol=1e-6,
    )


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 30), st.integers(1, 20))
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_are_those_of_scipy(library, dtype, seed, n_rows, n_columns, n_classes):
    rng = np.random.default_rng(seed)
    W = csr_array(random_array((n_rows, n_columns), density=0.3, rng=rng)).astype(dtype)
    B = rng.normal(size=(n_columns, n_classes)).astype(dtype)
    graph = Graph.from_scipy(W)
    arrays = (to_library(library, a) for a in (graph.indptr, graph.indices, graph.data))
    graph = Graph.of_arrays(*arrays, n_columns)
    product = graph.multiply(to_library(library, B))
    assert to_numpy(product).dtype == dtype
    np.testing.assert_allclose(to_numpy(product), W.toarray() @ B, atol=1e-5)
    column = to_numpy(graph.multiply(to_library(library, B[:, 0])))
    np.testing.assert_allclose(column, (W.toarray() @ B)[:, 0], atol=1e-5)
    np.testing.assert_allclose(to_numpy(graph.row_sums()), W.toarray().sum(axis=1), atol=1e-5)


def test_the_number_of_threads_changes_no_digit():
    rng = np.random.default_rng(0)
    rows = [rng.permutation(9000)[:7000] for _ in range(3)]
    edges = [
        Edges(rng.integers(0, 7000, (7000, 8), dtype=np.int32), rng.random((7000, 8), np.float32))
        for _ in rows
    ]
    B = rng.normal(size=(9000, 5)).astype(np.float32)
    results = []
    for n_jobs in (1, 2):
        with limited_threads(n_jobs):
            union = union_of(edges, rows, 9000)
            W = union.weighted([1.0, 0.3, 0.2])
            shares = union.homophily(np.arange(9000) % 3)
            results.append((W.indptr, W.indices, W.data, W.multiply(B), W.row_sums(), shares))
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_product_is_added_to_any_array(library):
    W = random_array((6, 4), density=0.5, rng=0, format="csr")
    graph = Graph.from_scipy(W)
    arrays = (to_library(library, a) for a in (graph.indptr, graph.indices, graph.data))
    graph = Graph.of_arrays(*arrays, 4)
    B = np.arange(8.0).reshape(4, 2)
    # Neither of them lies row after row in the memory.
    wide, out = np.repeat(B, 2, axis=1)[:, ::2], np.ones((2, 6)).T
    expected = 1 - 2 * (W @ B)
    wide, out = to_library(library, wide), to_library(library, out)
    graph.add_product(wide, -2.0, out)
    np.testing.assert_allclose(to_numpy(out), expected)
    with pytest.raises(ValueError, match=r"multiplies \(4, c\) to \(6, c\)"):
        graph.add_product(wide, 1.0, out[:5])


def test_a_graph_keeps_its_pattern_with_other_weights():
    W = Graph.from_scipy(csr_array(np.array([[0, 2.0], [1, 0]])))
    np.testing.assert_array_equal(
        W.reweighted(np.array([5.0, 6])).to_scipy().toarray(), [[0, 5], [6, 0]]
    )
    with pytest.raises(ValueError, match="one per edge, 2"):
        W.reweighted(np.ones(3))


@pytest.mark.parametrize(
    ("links", "connected"), [([(0, 1), (1, 2), (2, 3)], True), ([(0, 1), (2, 3)], False)]
)
def test_a_connected_graph_is_known(library, links, connected):
    W = np.zeros((4, 4))
    W[tuple(zip(*links, strict=True))] = 1
    graph = Graph.from_scipy(csr_array(W + W.T))
    arrays = (to_library(library, a) for a in (graph.indptr, graph.indices, graph.data))
    graph = Graph.of_arrays(*arrays, 4)
    assert graph.is_connected is connected
    assert not graph.reweighted(graph.data * 0).is_connected


@pytest.mark.parametrize("bad", [-1, 3, 10**6])
def test_an_index_of_no_row_is_refused(library, bad):
    indices = np.array([[1], [2], [bad]], dtype=np.int32)
    edges = Edges(indices, np.ones((3, 1), dtype=np.float32))
    with pytest.raises(IndexError, match=f"0 to 2, got .*{bad}"):
        union_of(*in_library(library, [edges], [np.arange(3)]), 9)
    good = Edges(np.array([[1], [2], [0]], dtype=np.int32), edges.weights)
    with pytest.raises(IndexError, match="rows of a graph must be numbers 0 to 2"):
        union_of(*in_library(library, [good], [np.array([0, 1, bad])]), 3)
    arrays = (np.array([0, 1, 2, 3]), indices.ravel(), np.ones(3))
    with pytest.raises(IndexError, match="columns of the edges"):
        Graph.of_arrays(*(to_library(library, a) for a in arrays), 3)


@pytest.mark.parametrize("indptr", [[0, 2, 1, 3], [0, 1, 2, 9], [1, 1, 2, 3], [0, 1, 2, 2]])
def test_rows_that_do_not_follow_each_other_are_refused(indptr):
    with pytest.raises(IndexError, match="indptr must rise from 0"):
        Graph.of_arrays(np.array(indptr), np.zeros(3, dtype=np.int32), np.ones(3), 3)


def test_shapes_that_do_not_fit_are_refused():
    edges = Edges(np.zeros((3, 1), dtype=np.int32), np.ones((3, 1), dtype=np.float32))
    with pytest.raises(ValueError, match="one array of rows per graph"):
        union_of([edges], [], 3)
    with pytest.raises(ValueError, match=r"\(2, k\) for its rows"):
        union_of([edges], [np.arange(2)], 3)
    with pytest.raises(ValueError, match="every sample once, got 2 samples in 3 rows"):
        union_of([edges], [np.array([0, 1, 1])], 3)
    with pytest.raises(ValueError, match="multiplies arrays with 3 rows"):
        symmetric_graph(edges, 3).multiply(np.ones((4, 2)))
    with pytest.raises(ValueError, match="one per sample"):
        union_of([edges], [np.arange(3)], 3).homophily(np.zeros(2, dtype=int))


def test_a_sum_of_graphs_in_another_order_is_the_same_on_tensors():
    """Also where the graphs share edges, and where not all samples are in them."""
    rng = np.random.default_rng(0)
    matrices = [
        csr_array(np.triu(rng.random((7, 7)) < 0.5, 1) * rng.random((7, 7))) for _ in range(2)
    ]
    graphs = [Graph.from_scipy(csr_array(W + W.T)) for W in matrices]
    rows, scales = np.array([9, 0, 4, 3, 8, 1, 6]), (1.0, 0.3)
    expected = np.zeros((10, 10))
    for scale, graph in zip(scales, graphs, strict=True):
        expected[np.ix_(rows, rows)] += scale * graph.to_scipy().toarray()
    torch = pytest.importorskip("torch")
    on_torch = [Graph(*map(torch.asarray, (g.indptr, g.indices, g.data)), 7) for g in graphs]
    for parts in (graphs, on_torch):
        found = in_order_of_fit(list(zip(scales, parts, strict=True)), rows, 10)
        np.testing.assert_allclose(found.toarray(), expected, rtol=1e-12)
        assert found.has_sorted_indices
