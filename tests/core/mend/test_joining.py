"""Rows outside the graph: what they receive, against dense formulas."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from viewmend.backend.namespace import to_numpy
from viewmend.core.common.records import converted
from viewmend.core.graphs.graph import Edges
from viewmend.core.mend.homophily import Guide
from viewmend.core.mend.joining import guided, inverse_roots, received, spread_to, stacked

N_ROWS, N_SAMPLES, N_CLASSES = 12, 30, 3
SEEDS = given(st.integers(0, 2**32 - 1))


def some_rows(rng, n_graphs=3):
    """Edges of rows to samples of a graph, some rows without any."""
    edges, rows = [], []
    for _ in range(n_graphs):
        here = np.sort(rng.permutation(N_ROWS - 1)[: rng.integers(N_ROWS)])
        k = int(rng.integers(1, 5))
        indices = rng.integers(N_SAMPLES, size=(len(here), k)).astype(np.int32)
        edges.append(Edges(indices, rng.random((len(here), k)).astype(np.float32)))
        rows.append(here)
    return stacked(edges, rows, rng.random(n_graphs), N_ROWS)


def dense(joined):
    """Weights (n_rows, n_samples), edge by edge."""
    W = np.zeros((joined.n_rows, N_SAMPLES))
    for edges, rows, scale in zip(joined.edges, joined.rows, joined.scales, strict=True):
        for i, columns, weights in zip(rows, edges.indices, edges.weights, strict=True):
            for j, weight in zip(columns, weights, strict=True):
                W[i, j] += scale * weight
    return W


def some_guide(rng, floor=0.05, power=2.0):
    A = rng.dirichlet(np.ones(N_CLASSES), N_SAMPLES)
    return Guide(rng.integers(-1, N_CLASSES, N_SAMPLES), A, floor, power)


@settings(max_examples=20, deadline=None)
@SEEDS
def test_rows_receive_the_weighted_sum_of_their_samples(seed):
    rng = np.random.default_rng(seed)
    joined, S = some_rows(rng), rng.normal(size=(N_SAMPLES, 4))
    np.testing.assert_allclose(received(joined, S), dense(joined) @ S, atol=1e-6)
    more = Edges(np.array([[3, 5]], dtype=np.int32), np.float32([[0.5, 0.25]]))
    added = dense(joined)
    added[7, [3, 5]] += [1.0, 0.5]
    with_more = joined.with_edges(more, np.array([7]), 2.0)
    np.testing.assert_allclose(received(with_more, S), added @ S, atol=1e-6)


@settings(max_examples=20, deadline=None)
@SEEDS
def test_soft_labels_are_what_spreading_gives_an_unlabelled_sample(seed):
    rng = np.random.default_rng(seed)
    joined, F, degrees = some_rows(rng), rng.random((N_SAMPLES, N_CLASSES)), rng.random(N_SAMPLES)
    degrees[:3] = 0
    W = dense(joined)
    own, their = (np.where(d > 0, np.maximum(d, 1e-300) ** -0.5, 0) for d in (W.sum(1), degrees))
    expected = own[:, None] * (W @ (their[:, None] * F))
    found = spread_to(joined, F, degrees)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    # The last row has no edge at all.
    np.testing.assert_array_equal(found[-1], 0)


def test_no_degree_has_no_inverse_root():
    np.testing.assert_array_equal(inverse_roots(np.array([4.0, 0.0, 0.25])), [0.5, 0, 2])


@settings(max_examples=20, deadline=None)
@SEEDS
def test_guided_edges_fade_by_the_classes_around_their_ends(seed):
    rng = np.random.default_rng(seed)
    joined, guide = some_rows(rng), some_guide(rng)
    W = dense(joined)
    votes = W @ (guide.classes[:, None] == np.arange(N_CLASSES))
    shares = votes / np.maximum(W.sum(axis=1, keepdims=True), 1e-300)
    expected = W * (0.05 + shares @ guide.A.T) ** 2
    np.testing.assert_allclose(dense(guided(joined, guide)), expected, atol=1e-6)


def test_what_a_row_receives_does_not_depend_on_the_rows_beside_it():
    """To the last bit."""
    rng = np.random.default_rng(0)
    indices = rng.integers(N_SAMPLES, size=(2, N_ROWS, 4)).astype(np.int32)
    weights = rng.random((2, N_ROWS, 4)).astype(np.float32)
    F, guide = rng.random((N_SAMPLES, N_CLASSES)).astype(np.float32), some_guide(rng)

    def soft(rows):
        edges = [Edges(i[rows], w[rows]) for i, w in zip(indices, weights, strict=True)]
        here = np.arange(len(rows))
        return spread_to(guided(stacked(edges, [here, here], (0.3, 0.7), len(rows)), guide), F, D)

    D = rng.random(N_SAMPLES)
    together = soft(np.arange(N_ROWS))
    for row in range(N_ROWS):
        np.testing.assert_array_equal(soft(np.array([row]))[0], together[row])


def test_tensors_agree():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    joined, guide = some_rows(rng), some_guide(rng)
    F, degrees = rng.random((N_SAMPLES, N_CLASSES)), rng.random(N_SAMPLES)
    expected = spread_to(guided(joined, guide), F, degrees)
    there = converted((joined, guide, F, degrees), torch.asarray)
    found = spread_to(guided(*there[:2]), *there[2:])
    np.testing.assert_allclose(to_numpy(found), expected, rtol=1e-6)
