"""Rows to find neighbours of, and what must hold for all lists of neighbours."""

import numpy as np


def clustered(n_rows, n_features, seed=0, n_clusters=20, spread=1.0):
    """Rows around some centres, each cluster on a space of few dimensions."""
    rng = np.random.default_rng(seed)
    centres = 3 * rng.normal(size=(n_clusters, n_features))
    bases = rng.normal(size=(n_clusters, 6, n_features))
    cluster = rng.integers(n_clusters, size=n_rows)
    within = np.einsum("ij,ijk->ik", rng.normal(size=(n_rows, 6)), bases[cluster])
    X = centres[cluster] + spread * within + 0.05 * rng.normal(size=(n_rows, n_features))
    return X.astype(np.float32)


def view(n_rows, n_features=90, **options):
    """Three representations of the same rows, one of them quite unlike the others."""
    X = clustered(n_rows, n_features, **options)
    weights = np.random.default_rng(9).exponential(size=n_features) ** 2
    return {
        "plain": X,
        "few": X[:, :24] / np.linalg.norm(X[:, :24], axis=1, keepdims=True),
        "weighted": (np.tanh(X / 4) * weights).astype(np.float32),
    }


def assert_same(one, other):
    np.testing.assert_array_equal(one.indices, other.indices)
    np.testing.assert_array_equal(one.squared_distances, other.squared_distances)


def assert_true_lists(found, X, queries=None, tolerance=1e-12):
    """Distances are those of the rows, ascending, ties by number, no row twice, none its own."""
    Q = X if queries is None else queries
    true = ((Q[:, None].astype(np.float64) - X[found.indices].astype(np.float64)) ** 2).sum(axis=2)
    np.testing.assert_allclose(found.squared_distances, true, rtol=tolerance)
    gaps = np.diff(found.squared_distances, axis=1)
    assert (gaps >= 0).all()
    assert (np.diff(found.indices, axis=1)[gaps == 0] > 0).all()
    assert (np.diff(np.sort(found.indices, axis=1), axis=1) > 0).all()
    if queries is None:
        assert (found.indices != np.arange(len(X))[:, None]).all()
