"""The Gaussian field of a graph is that of label spreading, and a label conditions it."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from viewmend.core.advice.field import graph_field
from viewmend.core.graphs.spreading import normalise_graph, spread_labels

SPREADING = 0.9


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def graph(rng):
    W = np.where(rng.random((40, 40)) < 0.2, rng.random((40, 40)), 0)
    W = W + W.T + 1e-3
    np.fill_diagonal(W, 0)
    return csr_array(W)


def smooth_covariance(graph):
    """Of the field without its noise: modes of positive eigenvalue of the spreading matrix."""
    K = spread_labels(graph, np.eye(graph.shape[0]), SPREADING, tol=1e-12)
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    slow = values > 1 / (1 - SPREADING * 0.05)
    return vectors[:, slow] * (values[slow] - 1) @ vectors[:, slow].T


def test_covariance_and_noise_are_what_a_label_spreads(graph):
    field = graph_field(graph, SPREADING)
    smooth = smooth_covariance(graph)
    np.testing.assert_allclose(field.modes @ field.covariance @ field.modes.T, smooth, atol=1e-8)
    np.testing.assert_allclose(field.variances, np.diag(smooth), atol=1e-8)
    np.testing.assert_allclose(field.reach, smooth.sum(axis=0), atol=1e-7)


def test_labels_condition_the_field_as_noisy_observations_do(graph):
    rows, smooth = np.array([3, 17, 20]), smooth_covariance(graph)
    noisy = smooth[np.ix_(rows, rows)] + np.eye(3)
    expected = smooth - smooth[:, rows] @ np.linalg.solve(noisy, smooth[rows])
    field = graph_field(graph, SPREADING)
    one_by_one = field.given_one(3).given_one(17).given_one(20)
    for known in (field.given(rows), one_by_one):
        np.testing.assert_allclose(known.variances, np.diag(expected), atol=1e-8)
        np.testing.assert_allclose(known.reach, expected.sum(axis=0), atol=1e-7)


def test_more_labels_than_modes_condition_the_same(graph):
    rows = np.arange(30)
    field = graph_field(graph, SPREADING, most_modes=5)
    one_by_one = field
    for row in rows:
        one_by_one = one_by_one.given_one(row)
    np.testing.assert_allclose(field.given(rows).variances, one_by_one.variances, atol=1e-10)


def test_slow_modes_of_a_larger_graph_are_its_eigenvectors(rng):
    """Seven groups, loosely joined: as many slow modes, and labels tell the groups alike."""
    groups = np.repeat(np.arange(7), 60)
    W = (rng.random((420, 420)) < np.where(groups[:, None] == groups, 0.3, 0.004)).astype(float)
    graph = csr_array(np.maximum(W, W.T))
    found = graph_field(graph, 0.99)
    values, vectors = np.linalg.eigh(normalise_graph(graph).toarray())
    slow = vectors[:, -7:] * (0.99 * values[-7:] / (1 - 0.99 * values[-7:])) @ vectors[:, -7:].T
    order = np.argsort(-np.diag(found.covariance))[:7]
    mine = found.modes[:, order] * np.diag(found.covariance)[order] @ found.modes[:, order].T
    np.testing.assert_allclose(mine, slow, atol=1e-3 * np.abs(slow).max())
