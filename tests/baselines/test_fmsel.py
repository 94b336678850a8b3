"""FMSEL: labels on a unified graph that a linear model follows."""

import numpy as np
import pytest

from viewmend.baselines import cfmsc
from viewmend.baselines.fmsel import FMSELClassifier
from viewmend.core.common.linear_systems import harmonic_labels
from viewmend.core.graphs.neighbours import directed_neighbour_graph
from viewmend.core.graphs.spreading import laplacian
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import InvalidParameterError, InvalidViewsError

BLOBS = make_multiview_blobs(120, n_views=3, noise=2.0, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0, label_rate=0.1, random_state=0)
ROWS = [X_v / np.linalg.norm(X_v, axis=1, keepdims=True) for X_v in TASK.data.views]


def test_objective_falls_to_the_tolerance():
    model = FMSELClassifier(max_iter=300, tol=1e-6).fit(TASK.data, TASK.y)
    assert 2 < model.n_iter_ < 300
    assert np.all(np.diff(model.history_) <= 0)
    assert model.history_[-2] - model.history_[-1] <= 1e-6 * model.history_[-2]


def test_rows_permute():
    order = np.random.default_rng(0).permutation(120)
    model = FMSELClassifier().fit(TASK.data, TASK.y)
    permuted = FMSELClassifier().fit(TASK.data[order], TASK.y[order])
    np.testing.assert_allclose(
        permuted.label_distributions_, model.label_distributions_[order], atol=1e-5
    )


def test_classes_relabel():
    swap = np.array([2, 0, 1, -1])
    model = FMSELClassifier().fit(TASK.data, TASK.y)
    swapped = FMSELClassifier().fit(TASK.data, swap[TASK.y])
    np.testing.assert_allclose(
        swapped.label_distributions_[:, swap[:3]], model.label_distributions_, atol=1e-6
    )


def test_without_regression_it_is_propagation_on_the_mean_graph():
    """A small lam1 leaves the graph alone, a smaller lam2 the labels."""
    model = FMSELClassifier(lam1=1e-6, lam2=1e-12).fit(TASK.data, TASK.y)
    graph = sum(directed_neighbour_graph(X_v, 7) for X_v in ROWS) / 3
    F = harmonic_labels(laplacian(graph).toarray(), np.eye(4)[TASK.y, :3], TASK.labelled)
    np.testing.assert_allclose(model.label_distributions_, F, atol=1e-4)
    np.testing.assert_allclose(model.view_weights_, 1 / 3, atol=1e-4)


def test_equal_views_weigh_the_same():
    model = FMSELClassifier().fit([BLOBS.views[0]] * 3, TASK.y[np.argsort(TASK.order)])
    np.testing.assert_allclose(model.view_weights_, 1 / 3, atol=1e-9)


def test_a_strong_linear_model_predicts_the_labels_found():
    model = FMSELClassifier(lam2=1e6, xi=1e-3).fit(TASK.data, TASK.y)
    unlabelled = ~TASK.labelled
    F = np.hstack(ROWS) @ model.coef_ + model.intercept_
    shares = np.maximum(F, 0) / np.maximum(F, 0).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(TASK.data), shares, atol=1e-12)
    np.testing.assert_allclose(
        model.predict_proba(TASK.data)[unlabelled],
        model.label_distributions_[unlabelled],
        atol=1e-3,
    )


def test_new_samples_are_labelled_better_than_by_chance():
    train, new = np.arange(120) < 90, np.arange(120) >= 90
    model = FMSELClassifier().fit(TASK.data[train], TASK.y[train])
    assert (model.predict(TASK.data[new]) == TASK.y_true[new]).mean() > 0.7


def test_new_samples_with_missing_views_need_an_imputer():
    model = FMSELClassifier().fit(TASK.data, TASK.y)
    mask = np.ones((120, 3), dtype=bool)
    mask[0, 1] = False
    with pytest.raises(InvalidViewsError, match=r"1 \(sample, view\) pairs are missing"):
        model.predict(TASK.data.views, mask)


def test_it_is_cfmsc_where_their_objectives_agree(monkeypatch):
    """Divided by lam2, label weights are 1e6 lam1 / lam2 = 1e4; CFMSC also pulls to zero."""
    monkeypatch.setattr(cfmsc, "UNLABELLED_WEIGHT", 0.0)
    ours = FMSELClassifier(lam1=0.1, lam2=10.0, xi=0.3).fit(TASK.data, TASK.y)
    theirs = cfmsc.CFMSCClassifier(lam=0.3, beta=0.01, gamma=0.1).fit(TASK.data, TASK.y)
    np.testing.assert_allclose(ours.label_distributions_, theirs.label_distributions_, atol=1e-6)
    np.testing.assert_allclose(np.divide(ours.history_, 10), theirs.history_, rtol=1e-6)


@pytest.mark.parametrize(("name", "value"), [("lam1", 0), ("lam2", -1.0), ("xi", 0), ("tol", -1)])
def test_parameters_are_checked(name, value):
    with pytest.raises(InvalidParameterError, match=f"{name} of FMSELClassifier must be"):
        FMSELClassifier(**{name: value}).fit(TASK.data, TASK.y)
