"""AMMSS against dense solutions of its problem."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array

from viewmend.baselines.ammss import AMMSSClassifier, weighted_labels
from viewmend.baselines.maths.anchored import scaled_anchor_graph, smoothness, solve_anchored
from viewmend.core.agfti.anchors import random_anchors
from viewmend.core.agfti.bipartite import anchor_graph
from viewmend.core.common.linear_systems import harmonic_labels
from viewmend.core.common.scaling import unit_rows
from viewmend.datasets import make_multiview_blobs
from viewmend.exceptions import InvalidParameterError

N = 90
BLOBS = make_multiview_blobs(N, n_views=3, noise=3.0, random_state=0)
VIEWS = [unit_rows(X_v) for X_v in BLOBS.views]
RNG = np.random.default_rng(0)
LABELLED = RNG.permutation(N) < 12
CODES = np.where(LABELLED, BLOBS.y, -1)
Y = (CODES[:, None] == np.arange(3)).astype(float)
GRAPHS = [scaled_anchor_graph(X_v, random_anchors(X_v, 16, RNG), 5) for X_v in VIEWS]
LAPLACIANS = [np.eye(N) - (S_v @ S_v.T).toarray() for S_v in GRAPHS]


def test_anchor_graph_of_samples_is_doubly_stochastic():
    A = (GRAPHS[0] @ GRAPHS[0].T).toarray()
    np.testing.assert_allclose(A.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(A, A.T, atol=1e-15)
    Z = anchor_graph(VIEWS[0], VIEWS[0][:10], 4)
    used = Z.sum(axis=0) > 0
    dense = Z[:, used] / Z.sum(axis=0)[used] @ Z[:, used].T
    S = scaled_anchor_graph(VIEWS[0], VIEWS[0][:10], 4)
    np.testing.assert_allclose((S @ S.T).toarray(), dense, atol=1e-14)


def test_an_anchor_without_samples_is_ignored():
    far = np.vstack([VIEWS[0][:10], np.full((1, VIEWS[0].shape[1]), 100.0)])
    with_far, without = (
        scaled_anchor_graph(VIEWS[0], anchors, 4) for anchors in (far, VIEWS[0][:10])
    )
    np.testing.assert_allclose((with_far @ with_far.T - without @ without.T).toarray(), 0)


def test_woodbury_equals_a_dense_solution():
    S = csr_array(RNG.normal(size=(30, 6)) * (RNG.random((30, 6)) < 0.4) * 0.1)
    diagonal, R = 1 + RNG.random(30), RNG.normal(size=(30, 2))
    dense = np.linalg.solve(np.diag(diagonal) - (S @ S.T).toarray(), R)
    np.testing.assert_allclose(solve_anchored(diagonal, S, R), dense, atol=1e-8)


@pytest.mark.parametrize("lam", [0.0, 0.3])
def test_labels_solve_the_unlabelled_system(lam):
    weights = np.array([0.2, 0.5, 0.05])
    F = weighted_labels(GRAPHS, Y, LABELLED, weights, lam)
    L = sum(w_v * L_v for w_v, L_v in zip(weights, LAPLACIANS, strict=True))
    u = ~LABELLED
    dense = np.linalg.solve(L[np.ix_(u, u)] + lam * np.eye(u.sum()), -L[u][:, LABELLED] @ Y[~u])
    np.testing.assert_array_equal(F[~u], Y[~u])
    np.testing.assert_allclose(F[u], dense, atol=1e-7)


def test_tiny_weights_do_not_change_the_labels():
    """With lam = 0 only the ratio of the weights counts, also where a^r is 1e-40."""
    weights = np.array([0.2, 0.5, 0.05])
    F = weighted_labels(GRAPHS, Y, LABELLED, weights, 0.0)
    np.testing.assert_allclose(
        weighted_labels(GRAPHS, Y, LABELLED, 1e-40 * weights, 0.0), F, atol=1e-9
    )


def test_smoothness_is_the_laplacian_form():
    F = RNG.normal(size=(N, 3))
    for S_v, L_v in zip(GRAPHS, LAPLACIANS, strict=True):
        np.testing.assert_allclose(smoothness(S_v, F), np.trace(F.T @ L_v @ F), rtol=1e-10)


@pytest.mark.parametrize("r", [1.3, 3.0])
def test_fit_ends_at_the_minimum_over_labels_and_weights(r):
    """After elimination of F, the end is a stationary point of the problem in the weights."""
    lam, model = 0.1, AMMSSClassifier(r, 0.1, n_anchors=N, tol=1e-13, max_iter=500, random_state=0)
    model.fit(list(BLOBS.views), CODES)
    # As many anchors as samples: k-means has nothing to choose, so the graphs are known here.
    S = [scaled_anchor_graph(X_v, X_v, 7) for X_v in VIEWS]

    def reduced(a):
        F = weighted_labels(S, Y, LABELLED, a**r, lam)
        return a**r @ [smoothness(S_v, F) for S_v in S] + lam * np.sum(F[~LABELLED] ** 2)

    np.testing.assert_allclose(reduced(model.view_weights_), model.history_[-1], rtol=1e-9)
    best = minimize(
        reduced,
        model.view_weights_,
        bounds=[(1e-6, 1)] * 3,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(model.view_weights_, best.x, atol=2e-3)
    assert model.history_[-1] <= best.fun * (1 + 1e-6)


@pytest.mark.parametrize("r", [1.2, 2.0, 30.0])
def test_objective_falls(r):
    model = AMMSSClassifier(r, tol=1e-14, random_state=0).fit(list(BLOBS.views), CODES)
    history = np.array(model.history_)
    assert len(history) > 1
    assert (np.diff(history) <= 1e-12 * history[0]).all()


def test_one_view_is_harmonic_propagation_on_its_anchor_graph():
    model = AMMSSClassifier(lam=0.0, n_anchors=N, random_state=0).fit(BLOBS.views[0], CODES)
    S = scaled_anchor_graph(VIEWS[0], VIEWS[0], 7)
    F = harmonic_labels(np.eye(N) - (S @ S.T).toarray(), Y, LABELLED)
    np.testing.assert_allclose(
        model.label_distributions_, F / F.sum(axis=1, keepdims=True), atol=1e-5
    )


def test_equal_views_share_the_weight_and_a_large_r_evens_it():
    X = BLOBS.views[0]
    equal = AMMSSClassifier(1.3, n_anchors=N, random_state=0).fit([X, X], CODES)
    np.testing.assert_allclose(equal.view_weights_, 0.5, atol=1e-9)
    noise = RNG.normal(size=X.shape)
    few, many = (
        AMMSSClassifier(r, n_anchors=N, random_state=0).fit([X, noise], CODES) for r in (1.5, 1e3)
    )
    assert few.view_weights_[0] > 0.55
    np.testing.assert_allclose(many.view_weights_, 0.5, atol=1e-2)


def test_large_lam_leaves_one_step_from_the_labels():
    model = AMMSSClassifier(2.0, 1e9, n_anchors=N, random_state=0).fit(list(BLOBS.views), CODES)
    S = [scaled_anchor_graph(X_v, X_v, 7) for X_v in VIEWS]
    weights = model.view_weights_**2
    step = sum(w * (S_v @ (S_v.T @ Y)) for w, S_v in zip(weights, S, strict=True))
    near = ~LABELLED & (step.sum(axis=1) > 1e-3)
    shares = step[near] / step[near].sum(axis=1, keepdims=True)
    assert near.sum() > 20
    np.testing.assert_allclose(model.label_distributions_[near], shares, atol=1e-4)


def test_rows_permute_and_classes_relabel():
    order, swap = RNG.permutation(N), np.array([2, 0, 1, -1])
    model = AMMSSClassifier(n_anchors=N, random_state=0).fit(list(BLOBS.views), CODES)
    other = AMMSSClassifier(n_anchors=N, random_state=0).fit(
        [X_v[order] for X_v in BLOBS.views], swap[CODES[order]]
    )
    np.testing.assert_allclose(
        other.label_distributions_[:, swap[:3]], model.label_distributions_[order], atol=1e-7
    )
    np.testing.assert_allclose(other.view_weights_, model.view_weights_, atol=1e-9)


def test_all_samples_labelled():
    model = AMMSSClassifier(random_state=0).fit(list(BLOBS.views), BLOBS.y)
    np.testing.assert_array_equal(model.transduction_, BLOBS.y)


def test_blobs_are_told_apart():
    easy = make_multiview_blobs(120, n_views=2, noise=0.5, random_state=0)
    y = np.where(np.arange(120) < 15, easy.y, -1)
    model = AMMSSClassifier(random_state=0).fit(list(easy.views), y)
    assert (model.transduction_ == easy.y).mean() > 0.95


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"r": 1.0}, r"r of AMMSSClassifier must be a number > 1, got 1\.0"),
        ({"lam": -0.1}, r"lam of AMMSSClassifier must be a number >= 0, got -0\.1"),
        ({"n_anchors": 1}, "n_anchors of AMMSSClassifier must be an integer >= 2 or 'auto', got 1"),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(InvalidParameterError, match=message):
        AMMSSClassifier(**parameters).fit(list(BLOBS.views), CODES)
