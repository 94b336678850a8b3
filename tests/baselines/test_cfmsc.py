"""CFMSC: projections and graphs fused."""

import numpy as np
import pytest

from viewmend.baselines.cfmsc import CFMSCClassifier
from viewmend.core.graphs.neighbours import directed_neighbour_graph
from viewmend.core.graphs.spreading import laplacian
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import InvalidParameterError

BLOBS = make_multiview_blobs(120, n_views=3, noise=2.0, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0, label_rate=0.1, random_state=0)
ROWS = [X_v / np.linalg.norm(X_v, axis=1, keepdims=True) for X_v in TASK.data.views]


def test_objective_falls_to_the_tolerance():
    model = CFMSCClassifier(max_iter=300, tol=1e-6).fit(TASK.data, TASK.y)
    assert 2 < model.n_iter_ < 300
    assert np.all(np.diff(model.history_) <= 0)


def test_labels_are_stationary_for_the_graph_and_projections_found():
    """Written out with the projections W, b themselves instead of their elimination."""
    model = CFMSCClassifier(lam=0.5, beta=2.0, gamma=5.0, tol=1e-9, max_iter=500)
    model.fit(TASK.data, TASK.y)
    X = np.hstack([*ROWS, np.ones((120, 1))])
    ridge = 0.5 * np.diag(np.r_[np.ones(X.shape[1] - 1), 0])
    U = np.diag(np.where(TASK.labelled, 1e4, 1e-4))
    L = 2.0 * laplacian(model.graph_).toarray()
    # Unknowns [F; W; b] of the joint normal equations.
    system = np.block([[np.eye(120) + L + U, -X], [-X.T, X.T @ X + ridge]])
    right = np.vstack([U @ np.eye(4)[TASK.y, :3], np.zeros((X.shape[1], 3))])
    F = np.maximum(np.linalg.solve(system, right)[:120], 0)
    np.testing.assert_allclose(
        model.label_distributions_, F / F.sum(axis=1, keepdims=True), atol=1e-4
    )


def test_a_stiff_graph_stays_a_mixture_of_the_views():
    model = CFMSCClassifier(gamma=1e8).fit(TASK.data, TASK.y)
    graphs = [directed_neighbour_graph(X_v, 7).toarray() for X_v in ROWS]
    mixture = sum(a * graph for a, graph in zip(model.view_weights_, graphs, strict=True))
    np.testing.assert_allclose(model.graph_.toarray(), mixture, atol=1e-6)


def test_only_the_quotient_of_beta_and_gamma_shapes_the_graph():
    """With the same labels, so in the limit where the graph decides them alone."""
    one = CFMSCClassifier(beta=1e3, gamma=1e4).fit(TASK.data, TASK.y)
    ten = CFMSCClassifier(beta=1e4, gamma=1e5).fit(TASK.data, TASK.y)
    far = CFMSCClassifier(beta=1e3, gamma=1e3).fit(TASK.data, TASK.y)
    near = np.abs(one.graph_ - ten.graph_).max()
    assert near < 0.2 * np.abs(one.graph_ - far.graph_).max()


def test_equal_views_weigh_the_same():
    model = CFMSCClassifier().fit([BLOBS.views[0]] * 3, TASK.y[np.argsort(TASK.order)])
    np.testing.assert_allclose(model.view_weights_, 1 / 3, atol=1e-9)


def test_rows_permute():
    order = np.random.default_rng(0).permutation(120)
    model = CFMSCClassifier().fit(TASK.data, TASK.y)
    permuted = CFMSCClassifier().fit(TASK.data[order], TASK.y[order])
    np.testing.assert_allclose(
        permuted.label_distributions_, model.label_distributions_[order], atol=1e-5
    )


def test_classes_relabel():
    swap = np.array([2, 0, 1, -1])
    model = CFMSCClassifier().fit(TASK.data, TASK.y)
    swapped = CFMSCClassifier().fit(TASK.data, swap[TASK.y])
    np.testing.assert_allclose(
        swapped.label_distributions_[:, swap[:3]], model.label_distributions_, atol=1e-6
    )


def test_most_labels_are_found():
    model = CFMSCClassifier().fit(TASK.data, TASK.y)
    assert (model.transduction_ == TASK.y_true).mean() > 0.8


@pytest.mark.parametrize(("name", "value"), [("lam", 0), ("beta", -1.0), ("gamma", 0)])
def test_parameters_are_checked(name, value):
    with pytest.raises(InvalidParameterError, match=f"{name} of CFMSCClassifier must be"):
        CFMSCClassifier(**{name: value}).fit(TASK.data, TASK.y)
