"""The anchor graph is the closed-form answer of its optimisation problem."""

import numpy as np
import pytest

from viewmend.core.agfti.bipartite import anchor_graph, anchor_graphs
from viewmend.core.common.simplex import project_simplex

RNG = np.random.default_rng(0)
X, ANCHORS = RNG.normal(size=(60, 5)), RNG.normal(size=(12, 5))
SQUARED = ((X[:, None] - ANCHORS) ** 2).sum(axis=2)


@pytest.mark.parametrize("k", [1, 4, 11])
def test_rows_solve_the_regularised_assignment(k):
    """min sum e z + gamma z^2 on the simplex is a projection of -e / (2 gamma)."""
    rising = np.sort(SQUARED, axis=1)
    gamma = (k * rising[:, k] - rising[:, :k].sum(axis=1)) / 2
    expected = project_simplex(-SQUARED / (2 * gamma[:, None]))
    np.testing.assert_allclose(anchor_graph(X, ANCHORS, k), expected, atol=1e-12)


def test_row_has_k_neighbours_and_they_are_the_nearest():
    Z = anchor_graph(X, ANCHORS, 4)
    for z, e in zip(Z, SQUARED, strict=True):
        np.testing.assert_array_equal(np.sort(np.flatnonzero(z)), np.sort(np.argsort(e)[:4]))
        assert np.all(np.diff(z[np.argsort(e)[:4]]) < 0)


def test_permuted_anchors_permute_columns():
    order = RNG.permutation(12)
    np.testing.assert_allclose(
        anchor_graph(X, ANCHORS[order], 4), anchor_graph(X, ANCHORS, 4)[:, order], atol=1e-12
    )


def test_equally_far_anchors_share_the_row():
    corners = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]])
    np.testing.assert_allclose(anchor_graph(np.zeros((1, 2)), corners, 2), 0.25)


def test_a_sample_on_an_anchor_is_finite():
    Z = anchor_graph(ANCHORS[:3], ANCHORS, 3)
    np.testing.assert_array_equal(np.argmax(Z, axis=1), [0, 1, 2])
    np.testing.assert_allclose(Z.sum(axis=1), 1)


def test_missing_rows_start_uniform_and_are_never_read():
    observed = RNG.random((60, 2)) < 0.7
    views = [np.where(observed[:, [v]], X, np.nan) for v in range(2)]
    Z = anchor_graphs(views, observed, [ANCHORS, ANCHORS[::-1]], 4)
    for v, anchors in enumerate([ANCHORS, ANCHORS[::-1]]):
        np.testing.assert_array_equal(Z[v][~observed[:, v]], 1 / 12)
        np.testing.assert_allclose(
            Z[v][observed[:, v]], anchor_graph(X, anchors, 4)[observed[:, v]], atol=1e-12
        )
