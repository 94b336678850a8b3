"""Parts that add up to what they explain."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from tests.core.small_mend import dense_graphs

from viewmend.core.agfti.explanation import fusion_shares, propagation_influence
from viewmend.core.agfti.propagation import propagate_labels
from viewmend.core.common.rows import RowsInMemory
from viewmend.core.graphs.graph import Edges, union_of
from viewmend.core.graphs.spreading import spread_labels
from viewmend.core.mend.blocks import MendBlock
from viewmend.core.mend.evidence import evidence_shares
from viewmend.core.mend.explanation import (
    evidence_parts,
    gaussian_parts,
    spreading_influence,
    view_degrees,
)
from viewmend.core.mend.view_gaussian import fit_view_gaussian, log_posterior

RNG = np.random.default_rng(0)
N, M, V, C = 30, 6, 3, 4
CODES = np.r_[np.arange(8) % C, np.full(N - 8, -1)]
LABELLED = np.flatnonzero(CODES >= 0)
Y = (CODES[:, None] == np.arange(C)).astype(float)
ROWS = np.array([3, 20, 11, 29])


def random_graph(seed):
    rng = np.random.default_rng(seed)
    half = rng.random((N, N)) * (rng.random((N, N)) < 0.2)
    return csr_array(half + half.T)


@pytest.mark.parametrize("damping", [(0.01, 0.01), (1.0, 0.2)])
@pytest.mark.parametrize("strength", [1e8, 5.0])
def test_influences_of_labels_add_up_to_propagated_labels(damping, strength):
    P = RNG.dirichlet(np.full(M, 0.3), N)
    B_samples, B_anchors = np.where(CODES >= 0, strength, damping[0]), np.full(M, damping[1])
    influence = propagation_influence(P, B_samples, B_anchors, ROWS, LABELLED)
    F, _ = propagate_labels(P, Y, B_samples, B_anchors)
    np.testing.assert_allclose(influence @ Y[LABELLED], F[ROWS], rtol=1e-10)
    assert (influence >= 0).all()
    # Row 3 is labelled, and its own label is what holds it.
    assert np.argmax(influence[0]) == 3


def test_influences_of_labels_add_up_to_spread_labels():
    W = random_graph(1)
    influence = spreading_influence(W, 0.95, ROWS, LABELLED)
    np.testing.assert_allclose(
        influence @ Y[LABELLED], spread_labels(W, Y, 0.95)[ROWS], rtol=1e-4, atol=1e-9
    )


def test_view_shares_follow_weights_and_agreement():
    P = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    same = np.stack([P, P])
    np.testing.assert_allclose(fusion_shares(P, same, np.array([0.5, 0.5])), 0.5)
    np.testing.assert_allclose(fusion_shares(P, same, np.array([2.0, 1.0])), [[0.8, 0.2]] * 2)
    elsewhere = np.stack([P, P[::-1]])
    np.testing.assert_allclose(fusion_shares(P, elsewhere, np.array([0.5, 0.5])), [[1, 0]] * 2)


def test_edges_of_the_views_add_up_to_those_of_the_sum():
    weights, rows = RNG.random(6), [np.sort(RNG.permutation(N)[:20]) for _ in range(6)]
    edges = [
        Edges(RNG.integers(20, size=(20, 3)).astype(np.int32), RNG.random((20, 3), np.float32))
        for _ in range(6)
    ]
    graphs = union_of(edges, rows, N)
    degrees = view_degrees(graphs, weights, n_views=3)
    of_graphs = weights[:, None] * np.array(dense_graphs(graphs)).sum(axis=2)
    np.testing.assert_allclose(degrees.sum(axis=1), of_graphs.sum(axis=0), rtol=1e-5)
    np.testing.assert_allclose(degrees[:, 1], of_graphs[2:4].sum(axis=0), rtol=1e-5)


@pytest.fixture(scope="module")
def scored():
    """Scores of views that overlap in what they say, some missing, and their Gaussian."""
    rng = np.random.default_rng(3)
    classes = np.arange(200) % C
    one_hot = (classes[:, None] == np.arange(C)).astype(float)
    common = rng.normal(scale=0.3, size=(200, 1, C))
    Z = one_hot[:, None] + common + rng.normal(scale=0.3, size=(200, V, C))
    observed = rng.random((200, V)) < 0.6
    observed[~observed.any(axis=1), 0] = True
    Z = Z * observed[:, :, None]
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    return (
        Z,
        observed,
        fit_view_gaussian(RowsInMemory(), MendBlock(observed, ()), Z, classes, prior, 0.1),
    )


def centred(logs):
    return logs - logs.mean(axis=1, keepdims=True)


def test_views_and_prior_add_up_to_the_log_posterior(scored):
    Z, observed, gaussian = scored
    parts = gaussian_parts(gaussian, Z, observed)
    total = parts.sum(axis=1) + np.log(gaussian.prior)
    expected = log_posterior(gaussian, Z, observed)
    np.testing.assert_allclose(centred(total), centred(expected), atol=1e-9)
    assert not parts[~observed].any()


def test_views_add_up_where_eigenvalues_are_raised_to_the_floor(scored):
    Z, observed, gaussian = scored
    raised = replace(gaussian, floor=float(np.linalg.eigvalsh(gaussian.covariance)[-2]))
    total = gaussian_parts(raised, Z, observed).sum(axis=1) + np.log(raised.prior)
    expected = centred(log_posterior(raised, Z, observed))
    np.testing.assert_allclose(centred(total), expected, atol=1e-9)
    assert np.abs(expected - centred(log_posterior(gaussian, Z, observed))).max() > 0.1


def test_views_and_prior_add_up_to_the_log_evidence(scored):
    Z, observed, gaussian = scored
    weights = np.array([1.0, 3.0, 0.5])
    parts = evidence_parts(Z, observed, weights, gaussian)
    expected = np.log(evidence_shares(Z, observed, weights, gaussian))
    np.testing.assert_allclose(centred(parts.sum(axis=1)), centred(expected), atol=1e-9)


def test_a_view_that_repeats_another_adds_little():
    """Two copies together say hardly more than one of them alone."""
    classes, prior = np.arange(200) % C, np.full(C, 1 / C)
    both = np.ones((200, 2), dtype=bool)
    twice = np.repeat(RNG.normal(size=(200, 1, C)) + np.eye(C)[classes][:, None], 2, axis=1)
    gaussian = fit_view_gaussian(RowsInMemory(), MendBlock(both, ()), twice, classes, prior, 0.1)
    alone = np.array([[True, False]] * 200)
    parts, single = (gaussian_parts(gaussian, twice, seen) for seen in (both, alone))
    np.testing.assert_allclose(parts[:, 0], parts[:, 1], atol=1e-9)
    assert np.abs(parts).max() < 0.6 * np.abs(single).max()
