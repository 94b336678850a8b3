"""Label propagation solves its normal equations."""

import numpy as np
import pytest

from viewmend.core.agfti.propagation import (
    anchor_scale,
    damping_diagonals,
    propagate_labels,
    reachable_samples,
    soft_label_distances,
)

RNG = np.random.default_rng(0)
N, M, C = 40, 7, 3
P = RNG.dirichlet(np.full(M, 0.5), size=N)
Y = np.zeros((N, C))
Y[np.arange(9), np.arange(9) % C] = 1
B_SAMPLES = np.where(Y.any(axis=1), 1e3, RNG.uniform(0.1, 2, N))
B_ANCHORS = RNG.uniform(0.1, 2, M)


def laplacian_system(P, B_samples, B_anchors):
    """Normalised Laplacian of the bipartite graph plus B, written out densely."""
    S = np.block([[np.zeros((N, N)), P], [P.T, np.zeros((M, M))]])
    d = S.sum(axis=1)
    return np.eye(N + M) - S / np.sqrt(np.outer(d, d)) + np.diag(np.r_[B_samples, B_anchors])


def test_soft_labels_solve_the_normal_equations():
    F, Q = propagate_labels(P, Y, B_SAMPLES, B_ANCHORS)
    system = laplacian_system(P, B_SAMPLES, B_ANCHORS)
    right = np.r_[B_SAMPLES[:, None] * Y, np.zeros((M, C))]
    np.testing.assert_allclose(system @ np.r_[F, Q], right, atol=1e-9)


def test_soft_labels_maximise_the_gain():
    F, Q = propagate_labels(P, Y, B_SAMPLES, B_ANCHORS)
    system = laplacian_system(P, B_SAMPLES, B_ANCHORS)

    def loss(labels):
        return np.trace(labels.T @ system @ labels) - 2 * np.sum(
            B_SAMPLES[:, None] * Y * labels[:N]
        )

    best = np.r_[F, Q]
    for size in (1e-3, 1e-1):
        assert loss(best) < loss(best + size * RNG.normal(size=best.shape))


def test_soft_labels_are_non_negative_and_labels_are_held():
    """The system is an M-matrix, so its inverse has no negative entry."""
    F, Q = propagate_labels(P, Y, np.where(Y.any(axis=1), 1e8, 1.0), np.ones(M))
    assert min(F.min(), Q.min()) >= -1e-15
    np.testing.assert_allclose(F[Y.any(axis=1)], Y[Y.any(axis=1)], atol=1e-7)


def test_anchor_without_samples_is_left_out():
    wide = np.c_[P, np.zeros(N)]
    F, Q = propagate_labels(wide, Y, B_SAMPLES, np.r_[B_ANCHORS, 1.0])
    F_narrow, Q_narrow = propagate_labels(P, Y, B_SAMPLES, B_ANCHORS)
    np.testing.assert_allclose(F, F_narrow, atol=1e-12)
    np.testing.assert_allclose(Q, np.r_[Q_narrow, np.zeros((1, C))], atol=1e-12)


def test_distances_are_those_of_the_laplacian_form():
    """tr(F^T L F) = sum_ij H_ij P_ij, the identity behind the update of P."""
    F, Q = RNG.normal(size=(N, C)), RNG.normal(size=(M, C))
    H = soft_label_distances(F, Q, P)
    labels = np.r_[F, Q]
    L = laplacian_system(P, np.zeros(N), np.zeros(M))
    np.testing.assert_allclose(np.sum(H * P), np.trace(labels.T @ L @ labels), rtol=1e-10)


def test_scale_is_degrees_to_minus_one_half():
    np.testing.assert_allclose(anchor_scale(P) ** -2, P.sum(axis=0))


def test_reachable_samples_are_those_joined_by_a_path():
    """Two blocks of samples on separate anchors; only the first has a label."""
    graph = np.zeros((6, 4))
    graph[[0, 1], 0] = graph[[1, 2], 1] = 1
    graph[[3, 4], 2] = graph[[4, 5], 3] = 1
    labelled = np.array([True, False, False, False, False, False])
    np.testing.assert_array_equal(
        reachable_samples(graph, labelled), [True, True, True, False, False, False]
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_damping_that_one_would_swallow_leaves_labels_determined(dtype):
    """A part of the graph without a label, and without damping, could have any labels."""
    graph = np.zeros((6, 4), dtype=dtype)
    graph[:3, :2] = graph[3:, 2:] = RNG.dirichlet(np.ones(2), size=3)
    labelled = np.array([True, False, False, False, False, False])
    one_hot = np.where(labelled[:, None], [1, 0], 0).astype(dtype)
    B = damping_diagonals(1e8, 1e-30, labelled, graph[None])
    F, Q = propagate_labels(graph, one_hot, *B)
    assert not F[3:].any()
    assert not Q[2:].any()
    # As far as labels spread without damping, all have that of the one label.
    np.testing.assert_allclose(F[:3] @ [1, 0], 1, rtol=0.01)
