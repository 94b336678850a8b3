"""Labels spread over graphs of NumPy and PyTorch, against dense linear algebra."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from viewmend.backend.namespace import to_numpy
from viewmend.backend.threads import limited_threads
from viewmend.core.graphs.graph import Graph
from viewmend.core.graphs.neighbours import neighbour_graph
from viewmend.core.graphs.spreading import spread_over

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(150, 3)), RNG.normal(size=(150, 3)) + 4])
W = neighbour_graph(X, 6)
OTHER = neighbour_graph(RNG.normal(size=(300, 2)), 4)
Y = np.eye(3)[RNG.integers(0, 3, 300)] * (RNG.random((300, 1)) < 0.05)


@pytest.fixture(params=["numpy", "torch"])
def move(request):
    """A function that moves arrays and graphs to a library."""
    if request.param == "numpy":
        return lambda thing: thing
    torch = pytest.importorskip("torch")

    def moved(thing):
        if isinstance(thing, Graph):
            arrays = map(torch.asarray, (thing.indptr, thing.indices, thing.data))
            return Graph(*arrays, thing.n_columns)
        return torch.asarray(thing)

    return moved


def to_graph(W):
    return Graph.from_scipy(csr_array(W).astype(np.float32))


def solved(W, Y, spreading):
    """The dense solution in float64."""
    degrees = W.sum(axis=1)
    scale = np.divide(1, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
    S = scale[:, None] * W * scale
    return np.linalg.solve(np.eye(len(W)) - spreading * S, Y)


def assert_rows_close(F, expected, rtol):
    """Every row to a share of its own size, however small it is."""
    size = expected.max(axis=1, keepdims=True)
    np.testing.assert_allclose(
        np.divide(F, size, where=size > 0, out=F.copy()),
        np.divide(expected, size, where=size > 0, out=expected.copy()),
        atol=rtol,
    )


@pytest.mark.parametrize("spreading", [0.0, 0.5, 0.9, 0.99])
def test_it_solves_the_system(move, spreading):
    F = spread_over([(1.0, move(to_graph(W)))], move(Y), spreading)
    F = to_numpy(F)
    assert F.min() >= 0
    assert_rows_close(F, solved(W.toarray(), Y, spreading), 0.01)


def test_parts_are_added(move):
    parts = [(0.3, move(to_graph(W))), (2.0, move(to_graph(OTHER)))]
    F = to_numpy(spread_over(parts, move(Y), 0.9))
    assert_rows_close(F, solved((0.3 * W + 2 * OTHER).toarray(), Y, 0.9), 0.01)


@pytest.mark.parametrize("n_columns", [1, 2, 7, 8, 16, 17, 33, 200])
def test_columns_do_not_depend_on_each_other(move, n_columns):
    rng = np.random.default_rng(n_columns)
    labels = (rng.random((300, n_columns)) < 0.05).astype(float)
    labels[:, n_columns // 2] = 0
    F = to_numpy(spread_over([(1.0, move(to_graph(W)))], move(labels), 0.9))
    assert_rows_close(F, solved(W.toarray(), labels, 0.9), 0.01)
    assert not F[:, n_columns // 2].any()


def test_a_start_shortens_the_way_and_changes_nothing(move):
    start = spread_over([(1.0, move(to_graph(W)))], move(Y), 0.95)
    parts = [(1.0, move(to_graph(W))), (0.2, move(to_graph(OTHER)))]
    F = to_numpy(spread_over(parts, move(Y), 0.95, start))
    assert_rows_close(F, solved((W + 0.2 * OTHER).toarray(), Y, 0.95), 0.01)


def test_a_start_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"shape \(300, 3\) of the labels, got \(300, 1\)"):
        spread_over([(1.0, to_graph(W))], Y, 0.9, Y[:, :1])


def two_parts():
    """Two parts that nothing joins, and a sample alone."""
    W_2 = np.zeros((7, 7))
    W_2[0, 1] = W_2[1, 2] = W_2[3, 4] = W_2[4, 5] = 1
    return W_2 + W_2.T


@pytest.mark.parametrize("with_start", [False, True])
def test_no_label_arrives_where_no_path_leads(move, with_start):
    labels = np.zeros((7, 2))
    labels[0, 0] = labels[5, 1] = labels[6, 0] = 1
    start = move(np.ones((7, 2), dtype=np.float32)) if with_start else None
    F = to_numpy(spread_over([(1.0, move(to_graph(two_parts())))], move(labels), 0.9, start))
    assert not F[:3, 1].any()
    assert not F[3:6, 0].any()
    assert_rows_close(F, solved(two_parts(), labels, 0.9), 0.01)
    # The sample alone keeps its label.
    np.testing.assert_array_equal(F[6], [1, 0])


def test_rows_that_no_label_reaches_are_zero_to_the_last_digit(move):
    labels = np.zeros((7, 2))
    labels[0, 0] = labels[1, 1] = 1
    start = move(np.full((7, 2), 0.5, dtype=np.float32))
    F = to_numpy(spread_over([(1.0, move(to_graph(two_parts())))], move(labels), 0.99, start))
    assert not F[3:].any()
    assert F[:3].all()


def test_the_far_end_of_a_chain_is_reached(move):
    """Seventy steps from the only labels, where they are tiny, classes are right."""
    n = 80
    chain = np.diag(np.ones(n - 1), 1)
    chain += chain.T
    labels = np.zeros((n, 2))
    labels[0, 0] = labels[10, 1] = 1
    F = to_numpy(spread_over([(1.0, move(to_graph(chain)))], move(labels), 0.9))
    expected = solved(chain, labels, 0.9)
    assert expected[-1].max() < 1e-12
    assert_rows_close(F, expected, 0.02)


def test_a_graph_without_edges_leaves_labels_as_they_are(move):
    empty = move(to_graph(np.zeros((300, 300))))
    np.testing.assert_allclose(to_numpy(spread_over([(1.0, empty)], move(Y), 0.99)), Y)


@pytest.mark.parametrize("size", [1e-45, 1e-43, 1e-39, 1e-30])
def test_edges_that_are_hardly_numbers_do_no_harm_to_others(move, size):
    """As those of a graph whose homophily, to a power, is next to nothing."""
    weights = np.zeros((310, 310))
    weights[:300, :300] = W.toarray()
    weights[300:, 300:] = size * (1 - np.eye(10))
    labels = np.pad(Y, ((0, 10), (0, 0)))
    labels[300:303] = np.eye(3)
    F = to_numpy(spread_over([(1.0, move(to_graph(weights)))], move(labels), 0.99))
    expected = solved(W.toarray(), Y, 0.99)
    assert_rows_close(F[:300], expected, 0.01)
    np.testing.assert_array_equal(F[300:303].argmax(axis=1), [0, 1, 2])


def test_no_label_at_all_is_no_soft_label(move):
    start = move(np.ones((300, 3), dtype=np.float32))
    for before in (None, start):
        F = to_numpy(spread_over([(1.0, move(to_graph(W)))], move(Y * 0), 0.99, before))
        assert not F.any()


def test_the_number_of_threads_changes_no_digit():
    points = np.random.default_rng(1).normal(size=(6000, 3))
    graph = to_graph(neighbour_graph(points, 12))
    labels = np.eye(4)[np.arange(6000) % 4] * (np.arange(6000) < 100)[:, None]
    results = []
    for n_jobs in (1, 2):
        with limited_threads(n_jobs):
            results.append(spread_over([(1.0, graph)], labels, 0.99))
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("spreading", [0.9, 0.99, 0.999])
def test_classes_are_those_of_the_exact_solution(spreading):
    rng = np.random.default_rng(2)
    centres = rng.normal(size=(5, 6)) * 1.2
    y = rng.integers(0, 5, 2000)
    graph = neighbour_graph(centres[y] + rng.normal(size=(2000, 6)), 8)
    labels = np.eye(5)[y] * (np.arange(2000) < 40)[:, None]
    exact = solved(graph.toarray(), labels, spreading)
    F = spread_over([(1.0, to_graph(graph))], labels, spreading)
    classes = [np.argmax(A / A.sum(axis=0), axis=1) for A in (exact, F)]
    assert np.mean(classes[0] != y) > 0.05, "the classes must overlap"
    assert np.sum(classes[0] != classes[1]) <= 1
