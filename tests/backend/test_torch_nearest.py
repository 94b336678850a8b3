"""Nearest rows in PyTorch: the neighbours of the exact search, on whatever device there is."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from viewmend.backend import torch_nearest, torch_points  # noqa: E402
from viewmend.backend.namespace import to_numpy  # noqa: E402
from viewmend.core.graphs.nearest import Neighbours, nearest_rows  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
K = 11


def place(array):
    return torch.asarray(array, device=DEVICE)


def search(X, k=K):
    return found(torch_nearest.neighbour_search({"unit": place(X)}, k)["unit"])


def search_new(X, Q, k=K):
    """The rows of ``X`` nearest to those of ``Q``, as new rows are looked up."""
    rows = place(X)
    near = torch_nearest.nearest_of_new({"unit": place(Q)}, k, lambda _, which: rows[which])
    return found(near["unit"])


def points(X, k=K, queries=None):
    Q = None if queries is None else place(queries)
    return found(torch_nearest.nearest_points(place(X), k, Q))


def found(nearest):
    indices, squared_distances = nearest
    assert indices.dtype == torch.int32
    return Neighbours(to_numpy(indices), to_numpy(squared_distances))


def rows(n, n_columns, seed=0):
    """Clusters of unequal width, not around the origin."""
    rng = np.random.default_rng(seed)
    centres = 2 + 3 * rng.random((10, n_columns))
    widths = 10.0 ** rng.uniform(-2, 0, (10, 1))
    cluster = rng.integers(0, 10, n)
    X = centres[cluster] + widths[cluster] * rng.normal(size=(n, n_columns))
    return X.astype(np.float32)


def class_shares(n, n_classes=10, seed=0):
    """Square roots of class shares, most of them close to the corners of the simplex."""
    rng = np.random.default_rng(seed)
    centres = 8 * np.eye(n_classes)[rng.integers(0, n_classes, n)]
    logits = centres + rng.gamma(2, 1, (n, 1)) * rng.normal(size=(n, n_classes))
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.sqrt(shares / shares.sum(axis=1, keepdims=True)).astype(np.float32)


def recall(near, exact):
    """Share of the neighbours that are no farther than the true last one, but for rounding."""
    return np.mean(near.squared_distances <= (1 + 1e-6) * exact.squared_distances[:, -1:])


def assert_same(near, exact):
    """The same neighbours in the same order, where distances are not equal but for rounding."""
    np.testing.assert_allclose(near.squared_distances, exact.squared_distances, rtol=1e-5)
    same = near.indices == exact.indices
    assert same.mean() > 0.999


# Fewer rows than a tile, a little more, enough for tiles; as many columns as products need, more.
@pytest.mark.parametrize("n", [40, 130, 8500])
@pytest.mark.parametrize("n_columns", [21, 70])
def test_rows_have_the_neighbours_of_the_exact_search(n, n_columns):
    X = rows(n, n_columns)
    assert_same(search(X), nearest_rows(X, K))


@pytest.mark.parametrize("n", [40, 130, 8500])
@pytest.mark.parametrize("n_columns", [1, 5])
def test_rows_of_few_columns_have_nearly_all_neighbours(n, n_columns):
    X = rows(n, n_columns)
    assert recall(search(X), nearest_rows(X, K)) > 0.998


@pytest.mark.parametrize("n", [40, 8500])
def test_new_rows_have_the_neighbours_of_the_exact_search(n):
    X, Q = rows(n, 30), rows(300, 30, seed=1)
    assert_same(search_new(X, Q), nearest_rows(X, K, queries=Q))


@pytest.mark.skipif(DEVICE == "cpu", reason="no GPU")
@pytest.mark.parametrize("n_columns", [40, 300])
def test_fused_products_miss_only_neighbours_that_share_a_tile(n_columns, monkeypatch):
    pytest.importorskip("triton")
    X, Q = rows(30_000, n_columns), rows(1000, n_columns, seed=1)
    monkeypatch.setattr(torch_nearest, "FUSED_ROWS", 0)
    # The mean neighbour has (K - 1) / 2 nearer ones, each in one of the tiles of 128 rows.
    shared = (K - 1) / 2 * 128 / 30_000
    assert recall(search(X), nearest_rows(X, K)) > 1 - 1.5 * shared
    assert recall(search_new(X, Q), nearest_rows(X, K, queries=Q)) > 1 - 1.5 * shared


@pytest.mark.parametrize("n", [50, 3000, 12_000])
def test_points_have_the_neighbours_of_the_exact_search(n):
    X, Q = class_shares(n), class_shares(500, seed=1)
    assert_same(points(X), nearest_rows(X, K))
    assert_same(points(X, queries=Q), nearest_rows(X, K, queries=Q))


@pytest.mark.parametrize("n", [200, 12_000])
def test_leaves_have_nearly_all_neighbours_of_the_exact_search(n, monkeypatch):
    monkeypatch.setattr(torch_points, "PAIRS", 0)
    X, Q = class_shares(n), class_shares(500, seed=1)
    near = points(X)
    assert recall(near, nearest_rows(X, K)) > 0.985
    assert recall(points(X, queries=Q), nearest_rows(X, K, queries=Q)) > 0.985
    gaps = X[near.indices].astype(np.float64) - X[:, None]
    np.testing.assert_allclose(near.squared_distances, (gaps**2).sum(axis=2), rtol=1e-5)


def test_points_in_doubt_are_those_that_miss_neighbours(monkeypatch):
    X = class_shares(12_000)
    exact = nearest_rows(X, K)
    monkeypatch.setattr(torch_points, "PAIRS", 0)
    missed = 1 - recall(points(X), exact)
    assert missed > 1e-4
    # One in ten is compared with all.
    monkeypatch.setattr(torch_points, "PAIRS", 1200 * len(X))
    assert 1 - recall(points(X), exact) < missed / 4


# Leaves may part rows that are equal, if rarely.
@pytest.mark.parametrize(("find", "n_columns", "share"), [(search, 30, 1.0), (points, 10, 0.99)])
@pytest.mark.parametrize("pairs", [torch_points.PAIRS, 0])
@pytest.mark.parametrize("n", [300, 9000])
def test_no_row_is_its_own_neighbour_and_none_comes_twice(
    find, n_columns, share, n, pairs, monkeypatch
):
    monkeypatch.setattr(torch_points, "PAIRS", pairs)
    X = np.tile(rows(n // 3, n_columns), (3, 1))
    near = find(X)
    assert (near.indices != np.arange(n)[:, None]).all()
    assert (np.diff(np.sort(near.indices, axis=1), axis=1) > 0).all()
    # The two others that are equal to it come first, in the order of their numbers.
    equal = near.squared_distances == 0
    assert equal.sum() >= share * 2 * n
    assert not equal[:, 2:].any()
    first, second = near.indices[equal[:, 1], :2].T
    assert (first < second).all()
    assert (first % (n // 3) == second % (n // 3)).all()


@pytest.mark.parametrize("find", [search, points])
def test_rows_at_equal_distance_come_by_their_number(find):
    X = np.repeat(np.arange(30, dtype=np.float32), 1)[:, None]
    exact = nearest_rows(X, 6)
    near = find(X, 6)
    np.testing.assert_array_equal(near.indices, exact.indices)
    np.testing.assert_array_equal(near.squared_distances, exact.squared_distances)


@pytest.mark.parametrize("find", [search, points])
@pytest.mark.parametrize("n", [100, 9000])
def test_rows_that_are_all_the_same_are_at_distance_zero(find, n):
    near = find(np.full((n, 7), 0.3, dtype=np.float32))
    assert (near.squared_distances == 0).all()
    assert (near.indices != np.arange(n)[:, None]).all()
    assert (near.indices >= 0).all()
    assert (near.indices < n).all()


@pytest.mark.parametrize("find", [search, points])
@pytest.mark.parametrize("n", [0, 1, 2, 8])
def test_with_few_rows_all_others_are_neighbours(find, n):
    near = find(rows(n, 3))
    n_others = max(n - 1, 0)
    assert near.indices.shape == near.squared_distances.shape == (n, n_others)
    for i, row in enumerate(near.indices):
        assert sorted([i, *row]) == list(range(n))


def test_no_queries_have_no_neighbours():
    X = rows(50, 4)
    assert search_new(X, X[:0]).indices.shape == (0, K)
    assert points(X, queries=X[:0]).indices.shape == (0, K)


def test_far_outliers_do_not_hide_the_neighbours_of_others():
    X = rows(9000, 40)
    X[::1000] *= 1e6
    assert recall(search(X), nearest_rows(X, K)) > 0.99


def test_far_outliers_do_not_hide_the_nearest_points_of_others():
    X = class_shares(3000).astype(np.float64)
    X[::1000] *= 1e30
    others = np.arange(3000) % 1000 > 0
    near, exact = points(X).indices[others], nearest_rows(X, K).indices[others]
    assert (near == exact).mean() > 0.999


def test_points_in_clusters_closer_than_products_tell(monkeypatch):
    rng = np.random.default_rng(0)
    corners = np.eye(4, dtype=np.float32)[rng.integers(0, 4, 12_000)]
    X = corners + np.float32(1e-5) * rng.normal(size=corners.shape).astype(np.float32)
    exact = nearest_rows(X, K)
    assert_same(points(X), exact)
    monkeypatch.setattr(torch_points, "PAIRS", 0)
    assert recall(points(X), exact) > 0.95


def test_precision_of_products_is_as_it_was():
    matmul = torch.backends.cuda.matmul
    name = "fp32_precision" if hasattr(matmul, "fp32_precision") else "allow_tf32"
    before = getattr(matmul, name)
    search(rows(100, 5))
    points(rows(5000, 5))
    assert getattr(matmul, name) == before


@pytest.mark.parametrize("find", [search, points])
@pytest.mark.parametrize("pairs", [torch_points.PAIRS, 10**6])
def test_the_same_bits_from_run_to_run(find, pairs, monkeypatch):
    monkeypatch.setattr(torch_points, "PAIRS", pairs)
    X = class_shares(9000)
    first, second = find(X), find(X)
    np.testing.assert_array_equal(first.indices, second.indices)
    np.testing.assert_array_equal(first.squared_distances, second.squared_distances)
