"""Nearest rows, all of them compared, against distances written out."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays

from viewmend.backend import numba_neighbours, threads
from viewmend.core.graphs import exact
from viewmend.core.graphs.exact import Neighbours, nearest_rows

RNG = np.random.default_rng(0)


def nearest_by_sorting(X, k, queries=None):
    """All distances in float64 by differences, sorted by (distance, index)."""
    Q = X if queries is None else queries
    indices, distances = [], []
    for i, q in enumerate(Q.astype(np.float64)):
        e = ((X.astype(np.float64) - q) ** 2).sum(axis=1)
        order = np.argsort(e, kind="stable")
        order = order[order != i] if queries is None else order
        indices.append(order[:k])
        distances.append(e[order[:k]])
    return Neighbours(np.array(indices), np.array(distances))


def clustered(n_rows, n_features, n_clusters=20, spread=1.0):
    centres = 3 * RNG.normal(size=(n_clusters, n_features))
    cluster = RNG.integers(n_clusters, size=n_rows)
    return centres[cluster] + spread * RNG.normal(size=(n_rows, n_features))


small_integers = st.tuples(st.integers(2, 60), st.integers(1, 5)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(-2, 2))
)


@settings(deadline=None, max_examples=60)
@given(small_integers, st.integers(1, 12))
def test_ties_and_duplicates_are_ordered_by_index(X, k):
    found, expected = nearest_rows(X, k), nearest_by_sorting(X, k)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.squared_distances, expected.squared_distances)


@settings(deadline=None, max_examples=30)
@given(small_integers, st.integers(1, 12))
def test_queries_leave_no_row_out(X, k):
    queries = X[::2] + 0.5
    found, expected = nearest_rows(X, k, queries=queries), nearest_by_sorting(X, k, queries)
    np.testing.assert_array_equal(found.indices, expected.indices)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_blocks_of_queries_and_rows_agree_with_sorting(dtype):
    X = clustered(exact.BLOCK_ROWS + 300, 6).astype(dtype)
    found, expected = nearest_rows(X, 7), nearest_by_sorting(X, 7)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.squared_distances, expected.squared_distances, rtol=1e-13)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_distances_that_float32_cannot_tell_apart_are_told_apart(scale):
    """Clusters so far apart that products in float32 lose all that is inside a cluster."""
    X = scale * (clustered(300, 5, n_clusters=3, spread=1e-6) + 1.0)
    found, expected = nearest_rows(X, 4), nearest_by_sorting(X, 4)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.squared_distances, expected.squared_distances, rtol=1e-12)


def test_only_doubtful_queries_are_measured_twice(monkeypatch):
    """On ordinary data the bound on the rounding settles every query."""
    monkeypatch.setattr(
        numba_neighbours, "scan_rows", lambda *_: pytest.fail("a query was in doubt")
    )
    nearest_rows(RNG.normal(size=(600, 30)), 10)


@pytest.mark.parametrize("n_features", [200, 3000])
def test_rounded_distances_stay_within_the_bound(n_features):
    """The certificate of `_farthest` in its parts: float32 distances against float64."""
    X = clustered(150, n_features) + 50
    scaling, every = exact._Scaling.of(X), np.arange(150, dtype=np.int32)
    rows = scaling.rows(X)
    task = exact._Task(rows, rows, every, 1)
    ((_, products),) = exact._products(task, every)
    rounded = rows.norms[:, None] + rows.norms - 2 * products
    true = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    for j in range(150):
        farthest = exact._farthest(task, true[:, j])
        assert (rounded[:, j] <= farthest).all()
    # Not by being loose: it is far below the distances themselves, however wide the rows.
    assert (exact._farthest(task, true[:, 0]) - true[:, 0] / scaling.scale**2).max() < 1e-3 * (
        true.max() / scaling.scale**2
    )


def text_rows(n_rows, n_features, n_words, rng):
    """Unit rows of word counts, whose distances lie close together."""
    chances = 1 / np.arange(1, n_features + 1)
    chances /= chances.sum()
    X = np.zeros((n_rows, n_features), dtype=np.float32)
    for row in X:
        counts = 1 + rng.integers(3, size=n_words)
        row[rng.choice(n_features, n_words, replace=False, p=chances)] = counts
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def test_wide_rows_of_similar_distance_are_hardly_measured_twice(monkeypatch):
    """Wide rows were in doubt by the number of their columns, and scanned one by one."""
    measured, scan = [], numba_neighbours.scan_rows

    def count(Q, X, rows, starts, distances, indices):
        measured.append(len(rows))
        return scan(Q, X, rows, starts, distances, indices)

    monkeypatch.setattr(numba_neighbours, "scan_rows", count)
    X = text_rows(400, 6000, 40, np.random.default_rng(3))
    found, expected = nearest_rows(X, 11), nearest_by_sorting(X, 11)
    np.testing.assert_allclose(found.squared_distances, expected.squared_distances, rtol=1e-6)
    assert sum(measured) < 0.02 * 400**2


def test_ties_of_wide_binary_rows_are_ordered_by_index():
    """Distances between 0/1 rows are whole numbers, and many are the same."""
    X = (np.random.default_rng(4).random((500, 700)) < 0.01).astype(np.float32)
    X[400:] = X[:100]
    found, expected = nearest_rows(X, 9), nearest_by_sorting(X, 9)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.squared_distances, expected.squared_distances)


def test_precision_of_the_input_makes_no_difference():
    X = RNG.normal(size=(700, 9)).astype(np.float32)
    single, double = nearest_rows(X, 5), nearest_rows(X.astype(np.float64), 5)
    np.testing.assert_array_equal(single.indices, double.indices)
    np.testing.assert_array_equal(single.squared_distances, double.squared_distances)


def test_rows_as_queries_find_themselves_first():
    X = RNG.normal(size=(200, 4))
    others, all_rows = nearest_rows(X, 5), nearest_rows(X, 6, queries=X.astype(np.float32))
    np.testing.assert_array_equal(all_rows.indices[:, 0], np.arange(200))
    np.testing.assert_array_equal(all_rows.indices[:, 1:], others.indices)


def test_queries_far_beyond_the_rows():
    X, far = RNG.normal(size=(100, 3)), 1e25 * np.eye(3)
    found = nearest_rows(X, 3, queries=far)
    assert all(np.unique(row).size == 3 for row in found.indices)
    np.testing.assert_allclose(found.squared_distances, 1e50, rtol=1e-12)


def test_order_of_the_rows_does_not_matter():
    X = RNG.normal(size=(900, 6))
    order = RNG.permutation(900)
    found, moved = nearest_rows(X, 6), nearest_rows(X[order], 6)
    np.testing.assert_array_equal(order[moved.indices], found.indices[order])
    np.testing.assert_array_equal(moved.squared_distances, found.squared_distances[order])


def test_threads_do_not_change_the_neighbours(monkeypatch):
    X = np.vstack([clustered(1500, 20), np.zeros((200, 20))])
    results = []
    for n_threads in (1, 2, 3):
        monkeypatch.setattr(threads, "available_threads", lambda n=n_threads: n)
        results.append(nearest_rows(X, 6))
    for other in results[1:]:
        np.testing.assert_array_equal(other.indices, results[0].indices)
        np.testing.assert_array_equal(other.squared_distances, results[0].squared_distances)


@pytest.mark.parametrize("n_rows", [1, 2, 5])
def test_few_rows_are_all_neighbours(n_rows):
    found = nearest_rows(np.arange(n_rows, dtype=float)[:, None] ** 2, 9)
    others = [sorted(set(range(n_rows)) - {i}) for i in range(n_rows)]
    assert [sorted(row) for row in found.indices.tolist()] == others
