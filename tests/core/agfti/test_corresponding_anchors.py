"""Anchors of one number stand for the same samples in every view."""

import numpy as np
import pytest

from viewmend.core.agfti import anchors as anchors_module
from viewmend.core.agfti.anchors import (
    ANCHOR_METHODS,
    balanced_hierarchical,
    corresponding_anchors,
    group_weights,
)
from viewmend.core.agfti.bipartite import anchor_graphs
from viewmend.datasets import hide, make_multiview_blobs

N_ANCHORS, K = 16, 4


@pytest.fixture(scope="module")
def task():
    blobs = make_multiview_blobs(240, n_views=3, noise=1.0, random_state=0)
    return hide(blobs.views, blobs.y, missing_rate=0.4, label_rate=0.1, random_state=0)


def drawn(task, method="bkhk", views=None):
    views = task.data.views if views is None else views
    rng, select, observed = np.random.default_rng(0), ANCHOR_METHODS[method], task.data.observed
    own = [select(X_v[observed[:, v]], N_ANCHORS, rng) for v, X_v in enumerate(views)]
    return own, corresponding_anchors(views, observed, own, K, select, rng)


def agreement(Z, observed):
    """Mean ``<z_i, z_j>`` of the rows of one sample in two views, against that of strangers."""
    both = observed[:, 0] & observed[:, 1]
    first, second = Z[0][both], Z[1][both]
    return np.sum(first * second) / np.mean(first @ second.T) / len(first)


@pytest.mark.parametrize("method", ANCHOR_METHODS)
def test_rows_of_one_sample_agree_across_views(task, method):
    """With anchors of their own the views agree on no more than strangers do."""
    views, observed = task.data.views, task.data.observed
    own, (anchors, _) = drawn(task, method)
    assert agreement(anchor_graphs(views, observed, own, K), observed) < 2
    assert agreement(anchor_graphs(views, observed, anchors, K), observed) > 2.5


def test_copies_of_a_view_get_copies_of_its_anchors(task):
    """Complete copies: the groups are those of the samples, so their means must coincide."""
    X, rng = make_multiview_blobs(120, n_views=1, random_state=1).views[0], np.random.default_rng(0)
    observed = np.ones((120, 2), dtype=bool)
    own = [balanced_hierarchical(X, N_ANCHORS, rng) for _ in range(2)]
    anchors, _ = corresponding_anchors([X, X], observed, own, K, balanced_hierarchical, rng)
    np.testing.assert_array_equal(anchors[0], anchors[1])


def test_moved_and_scaled_views_move_and_scale_their_anchors(task):
    """Anchors are means of rows: shift and scale of a view pass through, and change no group."""
    _, (anchors, common) = drawn(task)
    moved = [2.0**v * X_v + 8.0 * v for v, X_v in enumerate(task.data.views)]
    _, (moved_anchors, moved_common) = drawn(task, views=moved)
    np.testing.assert_allclose(moved_common, common, atol=1e-8)
    for v, anchors_v in enumerate(anchors):
        np.testing.assert_allclose(moved_anchors[v], 2.0**v * anchors_v + 8.0 * v, atol=1e-7)


def test_common_graph_joins_samples_of_a_class_that_share_no_view(task):
    _, (_, common) = drawn(task)
    observed, y = task.data.observed, task.y_true
    apart = (observed.astype(int) @ observed.T) == 0
    same = y[:, None] == y[None, :]
    similarity = common @ common.T
    assert similarity[apart & same].mean() > 5 * similarity[apart & ~same].mean()
    np.testing.assert_allclose(common.sum(axis=1), 1)


def test_a_view_that_misses_whole_groups_still_has_all_anchors():
    """One of three far blobs is never seen through the second view."""
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]])
    X = np.repeat(centres, 40, axis=0) + rng.normal(size=(120, 2))
    observed = np.ones((120, 2), dtype=bool)
    observed[:40, 1] = False
    views = [X, np.where(observed[:, [1]], X, np.nan)]
    own = [balanced_hierarchical(X[observed[:, v]], N_ANCHORS, rng) for v in range(2)]
    anchors, common = corresponding_anchors(views, observed, own, K, balanced_hierarchical, rng)
    assert np.isfinite(anchors[1]).all()
    assert np.isfinite(common).all()
    # Every one of them is a mean of observed rows, so none lies near the blob that was not seen.
    assert np.linalg.norm(anchors[1] - centres[0], axis=1).min() > 10


def test_a_second_round_makes_the_views_agree_more(monkeypatch):
    """Where many rows are missing, anchors that correspond show better which samples do."""
    tasks = []
    for seed in range(6):
        blobs = make_multiview_blobs(240, n_views=3, noise=1.0, random_state=seed)
        rates = {"missing_rate": 0.6, "label_rate": 0.1}
        tasks.append(hide(blobs.views, blobs.y, **rates, random_state=seed))

    def mean_agreement():
        found = []
        for task in tasks:
            _, (anchors, _) = drawn(task)
            Z = anchor_graphs(task.data.views, task.data.observed, anchors, K)
            found.append(agreement(Z, task.data.observed))
        return np.mean(found)

    as_it_is = mean_agreement()
    monkeypatch.setattr(anchors_module, "CORRESPONDENCE_ROUNDS", 1)
    assert as_it_is > 1.03 * mean_agreement()


def test_rows_count_for_their_group_and_a_little_for_their_neighbours():
    common = np.array([[0.6, 0.4, 0.0], [0.3, 0.7, 0.0], [0.5, 0.3, 0.2]])
    weights = group_weights(common)
    nearest = np.eye(3)[[0, 1, 0]]
    np.testing.assert_allclose(weights, nearest + 0.1 * common)


def test_a_group_that_nobody_is_nearest_to_is_the_mean_of_its_neighbours():
    """Two heaps and a centre half way: the rows at the inner edges are its neighbours."""
    places = np.array([[-1.2], [-1.0], [-0.8], [0.8], [1.0], [1.2]])
    X = np.arange(12.0).reshape(6, 2)
    common = np.array([[1, 0, 0], [1, 0, 0], [0.6, 0, 0.4], [0, 0.6, 0.4], [0, 1, 0], [0, 1, 0]])
    centres, seen = np.array([[-1.0], [1.0], [0.0]]), np.ones(6, dtype=bool)
    anchors = anchors_module._group_means(X, places, common, centres, seen)
    np.testing.assert_allclose(anchors[2], X[2:4].mean(axis=0))
    # Neighbours draw a group away from the mean of its members, but not far.
    means = np.stack([X[:3].mean(axis=0), X[3:].mean(axis=0)])
    assert (np.abs(anchors[:2] - means) > 0).all()
    assert (np.abs(anchors[:2] - means) < 0.1).all()
