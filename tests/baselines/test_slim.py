"""SLIM: sparse classifiers and similarities of incomplete views."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from viewmend.baselines.slim import (
    LabelCost,
    ObservedView,
    SLIMClassifier,
    descend,
    fit_view,
    observed_views,
    row_norms,
    summed_laplacian,
)
from viewmend.core.graphs.neighbours import neighbour_graph
from viewmend.core.graphs.spreading import normalise_graph
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import InvalidParameterError

BLOBS = make_multiview_blobs(120, n_views=3, noise=2.0, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.1, random_state=0)
RNG = np.random.default_rng(0)
F = RNG.normal(size=(30, 2))


def make_view(n_features, rows):
    X = RNG.normal(size=(len(rows), n_features))
    return ObservedView(rows, X, normalise_graph(neighbour_graph(X, 4)))


VIEWS = [make_view(3, np.arange(20)), make_view(5, np.arange(8, 30))]
MODELS = [(RNG.normal(size=(d, 2)), RNG.normal(size=2)) for d in (3, 5)]


@pytest.mark.parametrize("n_features", [4, 50], ids=["tall", "wide"])
def test_classifiers_solve_their_normal_equations(n_features):
    view = make_view(n_features, np.arange(5, 25))
    q = RNG.uniform(0.5, 3, size=n_features)
    W, b = fit_view(view, F, q, 0.2)
    left = view.X @ W + b - F[view.rows]
    np.testing.assert_allclose(view.X.T @ left / 20 + 0.2 * q[:, None] * W, 0, atol=1e-10)
    np.testing.assert_allclose(left.sum(axis=0), 0, atol=1e-10)


def test_reweighting_lowers_the_row_sparse_cost():
    view, q = make_view(6, np.arange(30)), np.ones(6)
    costs = []
    for _ in range(30):
        W, b = fit_view(view, F, q, 0.05)
        q = 1 / (2 * row_norms(W))
        costs.append(np.sum((view.X @ W + b - F) ** 2) / 30 + 0.05 * row_norms(W).sum())
    assert np.all(np.diff(costs) <= 1e-14)


def test_label_cost_and_gradient_equal_the_dense_formula():
    cost = LabelCost(VIEWS, MODELS, lam2=0.7)
    dense = 0.0
    for view, (W, b) in zip(VIEWS, MODELS, strict=True):
        F_v = F[view.rows]
        similarity = np.sum((view.S.toarray() - F_v @ F_v.T) ** 2)
        dense += (np.sum((view.X @ W + b - F_v) ** 2) + 0.7 * similarity) / len(view.rows)
    np.testing.assert_allclose(cost.value(F), dense, rtol=1e-12)
    slopes = approx_fprime(F.ravel(), lambda f: cost.value(f.reshape(F.shape)), 1e-7)
    np.testing.assert_allclose(cost.gradient(F).ravel(), slopes, atol=1e-4)


def test_descent_moves_free_rows_alone_to_a_stationary_point():
    cost, free = LabelCost(VIEWS, MODELS, lam2=0.1), np.arange(30) % 3 > 0
    moved, step, values = F, 10.0, [cost.value(F)]
    for _ in range(100):
        moved, step = descend(cost, moved, free, step)
        values.append(cost.value(moved))
    assert np.all(np.diff(values) <= 0)
    np.testing.assert_array_equal(moved[~free], F[~free])
    np.testing.assert_allclose(cost.gradient(moved)[free], 0, atol=1e-5)


def test_laplacians_add_up_where_views_overlap():
    total = np.zeros((30, 30))
    for view in VIEWS:
        total[np.ix_(view.rows, view.rows)] += np.eye(len(view.rows)) - view.S.toarray()
    np.testing.assert_allclose(summed_laplacian(VIEWS, 30).toarray(), total)


def test_views_hold_their_observed_samples():
    for v, view in enumerate(observed_views(TASK.data, 7)):
        np.testing.assert_array_equal(view.rows, np.flatnonzero(TASK.data.observed[:, v]))
        assert np.isfinite(view.X).all()


@pytest.mark.parametrize("lam1", [1e-3, 1.0])
def test_objective_falls_to_the_tolerance(lam1):
    model = SLIMClassifier(lam1=lam1, max_iter=200).fit(TASK.data, TASK.y)
    assert 1 < model.n_iter_ < 200
    assert np.all(np.diff(model.history_) <= 1e-12)


def test_strong_sparsity_leaves_only_the_intercepts():
    model = SLIMClassifier(lam1=1e4).fit(TASK.data, TASK.y)
    for W_v in model.coefs_:
        np.testing.assert_allclose(W_v, 0, atol=1e-6)
    weak = SLIMClassifier(lam1=1e-4).fit(TASK.data, TASK.y)
    assert min(np.abs(W_v).max() for W_v in weak.coefs_) > 0.1


def test_rows_permute():
    order = np.random.default_rng(0).permutation(120)
    model = SLIMClassifier().fit(TASK.data, TASK.y)
    permuted = SLIMClassifier().fit(TASK.data[order], TASK.y[order])
    np.testing.assert_allclose(
        permuted.label_distributions_, model.label_distributions_[order], atol=1e-5
    )


def test_classes_relabel():
    swap = np.array([2, 0, 1, -1])
    model, swapped = (SLIMClassifier().fit(TASK.data, y) for y in (TASK.y, swap[TASK.y]))
    np.testing.assert_allclose(
        swapped.label_distributions_[:, swap[:3]], model.label_distributions_, atol=1e-6
    )


def test_most_labels_are_found_in_spite_of_missing_views():
    model = SLIMClassifier().fit(TASK.data, TASK.y)
    assert (model.transduction_ == TASK.y_true).mean() > 0.7


def test_a_view_of_two_samples_has_no_graph_but_a_classifier():
    mask = np.ones((120, 2), dtype=bool)
    mask[2:, 1] = False
    y = TASK.y[np.argsort(TASK.order)]
    model = SLIMClassifier().fit(list(BLOBS.views[:2]), y, mask)
    assert np.isfinite(model.label_distributions_).all()
    alone = SLIMClassifier().fit(BLOBS.views[0], y)
    agree = model.transduction_ == alone.transduction_
    assert agree.mean() > 0.9


@pytest.mark.parametrize(("name", "value"), [("lam1", 0), ("lam2", -1.0), ("n_neighbors", 0)])
def test_parameters_are_checked(name, value):
    with pytest.raises(InvalidParameterError, match=f"{name} of SLIMClassifier must be"):
        SLIMClassifier(**{name: value}).fit(TASK.data, TASK.y)
