"""MVAR: adaptive regression."""

import numpy as np
import pytest

from viewmend.baselines.mvar import (
    MVARClassifier,
    best_classes,
    is_still,
    labelled_ridge,
    sample_weights,
    view_costs,
    weighted_ridge,
)
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import InvalidParameterError

BLOBS = make_multiview_blobs(120, n_views=3, noise=2.0, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0, label_rate=0.1, random_state=0)
RNG = np.random.default_rng(0)
F = np.eye(3)[RNG.integers(3, size=40)]
S = RNG.uniform(0.5, 2, size=40)


@pytest.mark.parametrize("n_features", [5, 60], ids=["tall", "wide"])
def test_weighted_ridge_solves_its_normal_equations(n_features):
    X, t = RNG.normal(size=(40, n_features)), RNG.uniform(0.1, 10, size=40)
    W = weighted_ridge(X, F, t, 0.3)
    np.testing.assert_allclose(X.T @ (t[:, None] * (X @ W - F)) + 0.3 * W, 0, atol=1e-9)


def test_reweighting_lowers_the_cost_to_a_stationary_point():
    X = np.random.default_rng(1).normal(size=(40, 5))
    W = np.zeros((5, 3))
    costs = []
    for _ in range(300):
        W = weighted_ridge(X, F, sample_weights(X, W, F, S), 5.0)
        costs.append(view_costs([X], [W], F, S, 5.0)[0])
    assert np.all(np.diff(costs) <= 1e-12 * costs[0])
    residual = X @ W - F
    lengths = np.linalg.norm(residual, axis=1)
    pull = S[:, None] * residual / lengths[:, None]
    # A sample that is met exactly may pull in any direction, by its weight at most.
    met = lengths < 1e-6
    left = X[~met].T @ pull[~met] + 10.0 * W
    needed = np.linalg.lstsq(X[met].T, -left, rcond=None)[0]
    np.testing.assert_allclose(X[met].T @ needed, -left, atol=1e-6)
    assert np.all(np.linalg.norm(needed, axis=1) <= S[met] + 1e-6)


def test_start_has_a_free_intercept():
    """Shifting the features changes nothing but the intercept."""
    X = np.hstack([RNG.normal(size=(40, 4)), np.ones((40, 1))])
    shifted = X + np.array([5.0, -2.0, 1.0, 3.0, 0.0])
    np.testing.assert_allclose(
        X @ labelled_ridge(X, F, 0.3), shifted @ labelled_ridge(shifted, F, 0.3), atol=1e-10
    )


def test_classes_are_the_best_of_all():
    views = [RNG.normal(size=(40, d)) for d in (3, 4)]
    W = [RNG.normal(size=(d, 3)) for d in (3, 4)]
    T, weights = RNG.uniform(size=(2, 40)), np.array([0.3, 0.9])
    costs = [
        sum(
            a * t * np.sum((X_v @ W_v - one_hot) ** 2, axis=1)
            for a, t, X_v, W_v in zip(weights, T, views, W, strict=True)
        )
        for one_hot in np.eye(3)
    ]
    np.testing.assert_array_equal(
        np.argmax(best_classes(views, W, T, weights), axis=1), np.argmin(costs, axis=0)
    )


def test_history_falls_and_stops():
    model = MVARClassifier(max_iter=1000).fit(TASK.data, TASK.y)
    assert 6 <= model.n_iter_ < 1000
    last = model.history_[-6:]
    assert max(last) - min(last) <= 1e-6 * last[-1]
    assert model.history_[-1] < model.history_[0]


def test_stillness_needs_a_full_window():
    assert not is_still([1.0] * 5, 1e-6)
    assert is_still([9.0] + [1.0] * 6, 1e-6)
    assert not is_still([1.0, 1.0, 1.1, 1.0, 1.0, 1.0], 1e-6)


def test_equal_views_weigh_the_same_and_noise_weighs_less():
    y = TASK.y[np.argsort(TASK.order)]
    equal = MVARClassifier().fit([BLOBS.views[0]] * 3, y)
    np.testing.assert_allclose(equal.view_weights_, 1 / 3, rtol=1e-9)
    noise = np.random.default_rng(0).normal(size=(120, 3))
    noisy = MVARClassifier(r=1.5).fit([BLOBS.views[0], noise], y)
    assert noisy.view_weights_[1] < noisy.view_weights_[0]


def test_weights_minimise_the_weighted_costs():
    """a_v^(r-1) E_v is the same for all views."""
    model = MVARClassifier(r=3.0).fit(TASK.data, TASK.y)
    views = [X_v / np.linalg.norm(X_v, axis=1, keepdims=True) for X_v in TASK.data.views]
    scores = model.predict_proba(TASK.data)
    total = sum(
        a**3 * (X_v @ W_v + b_v)
        for a, X_v, W_v, b_v in zip(
            model.view_weights_, views, model.coefs_, model.intercepts_, strict=True
        )
    )
    total = np.maximum(total, 0)
    np.testing.assert_allclose(scores, total / total.sum(axis=1, keepdims=True), atol=1e-12)
    labels = np.eye(3)[np.searchsorted(model.classes_, model.transduction_)]
    stacked = [np.hstack([X_v, np.ones((120, 1))]) for X_v in views]
    W = [np.vstack([*m]) for m in zip(model.coefs_, model.intercepts_, strict=True)]
    s = np.where(TASK.labelled, 1e4, 1.0)
    slopes = model.view_weights_**2 * view_costs(stacked, W, labels, s, 100.0)
    np.testing.assert_allclose(slopes, slopes[0], rtol=1e-3)


def test_rows_permute():
    order = np.random.default_rng(0).permutation(120)
    model = MVARClassifier().fit(TASK.data, TASK.y)
    permuted = MVARClassifier().fit(TASK.data[order], TASK.y[order])
    np.testing.assert_allclose(
        permuted.label_distributions_, model.label_distributions_[order], atol=1e-6
    )


def test_classes_relabel():
    swap = np.array([2, 0, 1, -1])
    model = MVARClassifier().fit(TASK.data, TASK.y)
    swapped = MVARClassifier().fit(TASK.data, swap[TASK.y])
    np.testing.assert_allclose(
        swapped.label_distributions_[:, swap[:3]], model.label_distributions_, atol=1e-6
    )


def test_new_samples_are_labelled_better_than_by_chance():
    train, new = np.arange(120) < 90, np.arange(120) >= 90
    model = MVARClassifier().fit(TASK.data[train], TASK.y[train])
    assert (model.predict(TASK.data[new]) == TASK.y_true[new]).mean() > 0.7


@pytest.mark.parametrize(("name", "value"), [("label_weight", 0), ("lam", 0), ("r", 1.0)])
def test_parameters_are_checked(name, value):
    with pytest.raises(InvalidParameterError, match=f"{name} of MVARClassifier must be"):
        MVARClassifier(**{name: value}).fit(TASK.data, TASK.y)
