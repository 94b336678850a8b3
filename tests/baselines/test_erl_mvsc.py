"""Embedding regulariser learning."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from viewmend.baselines.erl_mvsc import (
    VARIANTS,
    Embedding,
    ERLMVSCClassifier,
    embed_labels,
    heat_graph,
    informed_laplacian,
    learn_embedding,
    lift_rows,
    solve_symmetric,
)
from viewmend.core.common.scaling import standardise_rows, unit_rows
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import InvalidParameterError

BLOBS = make_multiview_blobs(90, n_views=3, noise=2.0, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.0, label_rate=0.1, random_state=0)
VIEWS, Y_GIVEN = list(TASK.data.views), TASK.y
LABELLED = Y_GIVEN >= 0
L = (Y_GIVEN[:, None] == np.arange(3)).astype(float)
S = [informed_laplacian(unit_rows(X_v), L, LABELLED, 20) for X_v in VIEWS]
DENSE = np.stack([S_v.toarray() for S_v in S])
RNG = np.random.default_rng(0)


def random_embedding(pull):
    rng = np.random.default_rng(0)
    return Embedding(rng.uniform(0.1, 1, size=90), S[0] + S[1], rng.normal(size=(90, 3)), pull)


def dense(M):
    return M.r[:, None] * (M.S.toarray() + M.pull * M.Y @ M.Y.T)


def test_heat_graph_equals_the_dense_one():
    X = standardise_rows(VIEWS[0])
    D = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    t = D.sum() / (90 * 89)
    np.fill_diagonal(D, np.inf)
    border = np.sort(D, axis=1)[:, 4:5]
    near = border >= D
    expected = np.where(near | near.T, np.exp(-(D**2) / (2 * t**2)), 0)
    np.testing.assert_allclose(heat_graph(X, 5).toarray(), expected, atol=1e-7)


def test_labelled_samples_are_joined_by_class_alone():
    joined = DENSE[0][np.ix_(LABELLED, LABELLED)] < 0
    classes = Y_GIVEN[LABELLED]
    same = classes[:, None] == classes[None, :]
    off = ~np.eye(len(classes), dtype=bool)
    np.testing.assert_array_equal(joined[off], same[off])


def test_laplacian_is_that_of_the_edited_graph():
    W = heat_graph(standardise_rows(unit_rows(VIEWS[0])), 20).toarray()
    degrees = W.sum(axis=1)
    W = W / np.sqrt(np.outer(degrees, degrees))
    W[np.ix_(LABELLED, LABELLED)] = (L @ L.T)[np.ix_(LABELLED, LABELLED)]
    degrees = W.sum(axis=1) + 1e-8
    expected = np.eye(90) - W / np.sqrt(np.outer(degrees, degrees))
    np.testing.assert_allclose(DENSE[0], expected, atol=1e-12)


@pytest.mark.parametrize("pull", [0.5, -0.5, 0.0])
def test_embedding_by_parts_equals_the_dense_one(pull):
    M = random_embedding(pull)
    full, B = dense(M), RNG.normal(size=(90, 2))
    np.testing.assert_allclose(M @ B, full @ B, atol=1e-10)
    np.testing.assert_allclose(M.row_norms(), np.linalg.norm(full, axis=1), rtol=1e-9)
    expected = ((full - DENSE) ** 2).sum(axis=(1, 2))
    np.testing.assert_allclose(M.squared_distances(S), expected, rtol=1e-9)


@pytest.mark.parametrize("pull", [0.5, -0.5, 0.0])
def test_label_step_equals_a_dense_solution(pull):
    """Also where the low-rank part makes the system indefinite."""
    M = random_embedding(pull)
    system = np.eye(90) + 2.0 * (dense(M) + dense(M).T)
    assert (np.linalg.eigvalsh(system)[0] < 0) == (pull != 0)
    Y = embed_labels(M, L, 2.0, None)
    np.testing.assert_allclose(Y, np.linalg.solve(system, L), atol=1e-8)


@pytest.mark.parametrize("diagonal", [1.0, -1.0])
def test_indefinite_sparse_systems_are_factorised(diagonal):
    """Conjugate gradients fail on the eigenvalues 1 +- 2 of the first, and on its negative
    diagonal in the second."""
    A = np.kron(np.eye(4), [[diagonal, 2.0], [2.0, 1.0]])
    B = RNG.normal(size=(8, 2))
    np.testing.assert_allclose(
        solve_symmetric(csr_array(A), B, None), np.linalg.solve(A, B), atol=1e-10
    )


def test_derived_embedding_step_is_the_minimum_of_its_bound():
    powers, Y, shrinkage = np.array([0.2, 0.5, 0.1]), RNG.normal(size=(90, 3)), RNG.uniform(size=90)
    M = dense(learn_embedding(S, powers, Y, shrinkage, -0.7 / 2))
    gradient = np.tensordot(powers, M - DENSE, axes=1) + 0.7 / 2 * Y @ Y.T
    gradient += 2 * shrinkage[:, None] * M
    np.testing.assert_allclose(gradient, 0, atol=1e-12)


def test_lifting_keeps_the_order_of_classes():
    Y = np.array([[-3.0, -1.0, -2.0], [0.5, -1.0, 0.2], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(lift_rows(Y), [[0, 2, 1], [0.5, -1, 0.2], [0, 0, 0]])


def naive(model, n_rounds):
    """The rounds of the specification on dense arrays; scores, weights and stated objectives."""
    a, b, g, d = model.alpha, model.beta, model.gamma, model.delta
    coded = model.variant == "coded"
    omega, M, D, history = np.full(3, 1 / 3), DENSE.mean(axis=0), np.ones(90), []
    for _ in range(n_rounds):
        factor = b * d / 2 if coded else b / (2 * d)
        Y = np.linalg.solve(np.eye(90) + factor * (M + M.T), L)
        powers = omega**a
        pulled = np.tensordot(powers, DENSE, axes=1) + (1 if coded else -1) * b / 2 * Y @ Y.T
        M = pulled / (powers.sum() + 2 * g * D)[:, None]
        norms = np.linalg.norm(M, axis=1)
        D = 1 / (2 * norms)
        errors = ((M - DENSE) ** 2).sum(axis=(1, 2))
        omega = errors ** (-1 / (a - 1))
        omega /= omega.sum()
        history.append(
            omega**a @ errors / 2
            + b / 2 * np.trace(Y.T @ M @ Y)
            + g * norms.sum()
            + d / 2 * np.sum((Y - L) ** 2)
        )
    return Y, omega, history


@pytest.mark.parametrize("variant", VARIANTS)
def test_fast_rounds_equal_naive_ones(variant):
    model = ERLMVSCClassifier(1.5, 0.8, 0.3, 5.0, variant, tol=0.0, max_iter=6)
    _, _, history = naive(model.fit(VIEWS, Y_GIVEN), 6)
    np.testing.assert_allclose(model.history_, history, rtol=1e-8)
    Y, omega, _ = naive(model, int(np.argmin(history)) + 1)
    np.testing.assert_allclose(model.view_weights_, omega, rtol=1e-6)
    Y = np.maximum(lift_rows(Y), 0)
    np.testing.assert_allclose(
        model.label_distributions_, Y / Y.sum(axis=1, keepdims=True), atol=1e-6
    )


def test_derived_variant_descends_where_the_label_step_is_a_minimum():
    model = ERLMVSCClassifier(2.0, 0.05, 0.01, 10.0, "derived", tol=0.0, max_iter=25)
    history = np.array(model.fit(VIEWS, Y_GIVEN).history_)
    assert history[-1] < history[0]
    assert np.all(np.diff(history) <= 1e-10 * history[0])


def test_no_regularisers_is_smoothing_on_the_one_laplacian():
    """beta -> 0 at a fixed beta delta and gamma = 0: M = S, Y = (I + beta delta S)^{-1} L."""
    model = ERLMVSCClassifier(beta=1e-9, gamma=0.0, delta=2e9).fit(VIEWS[:1], Y_GIVEN)
    Y = np.linalg.solve(np.eye(90) + 2 * DENSE[0], L)
    np.testing.assert_allclose(
        model.label_distributions_, Y / Y.sum(axis=1, keepdims=True), atol=1e-6
    )


def test_equal_views_weigh_the_same():
    twice = ERLMVSCClassifier().fit([VIEWS[0], VIEWS[0]], Y_GIVEN)
    np.testing.assert_allclose(twice.view_weights_, 0.5, atol=1e-9)


def test_rows_permute():
    order = np.random.default_rng(0).permutation(90)
    model = ERLMVSCClassifier().fit(VIEWS, Y_GIVEN)
    permuted = ERLMVSCClassifier().fit([X_v[order] for X_v in VIEWS], Y_GIVEN[order])
    np.testing.assert_allclose(
        permuted.label_distributions_, model.label_distributions_[order], atol=1e-5
    )


def test_classes_relabel():
    swap = np.array([2, 0, 1, -1])
    model, swapped = (ERLMVSCClassifier().fit(VIEWS, y) for y in (Y_GIVEN, swap[Y_GIVEN]))
    np.testing.assert_allclose(
        swapped.label_distributions_[:, swap[:3]], model.label_distributions_, atol=1e-6
    )


def test_parameters_are_checked():
    with pytest.raises(InvalidParameterError, match=r"alpha of ERLMVSCClassifier .* got 1"):
        ERLMVSCClassifier(alpha=1).fit(VIEWS, Y_GIVEN)
    with pytest.raises(InvalidParameterError, match=r"variant of ERLMVSCClassifier .* 'fixed'"):
        ERLMVSCClassifier(variant="fixed").fit(VIEWS, Y_GIVEN)


def test_rounds_that_run_away_give_the_scores_of_the_smallest_objective():
    """With half of a class labelled the coded rounds swing from sign to sign and never settle."""
    task = hide(BLOBS.views, BLOBS.y, missing_rate=0.0, label_rate=0.6, random_state=0)
    model = ERLMVSCClassifier(imputer=None, tol=0.0, max_iter=9).fit(task.data, task.y)
    best = int(np.argmin(model.history_))
    assert best < len(model.history_) - 1
    first = ERLMVSCClassifier(tol=0.0, max_iter=best + 1).fit(task.data, task.y)
    np.testing.assert_array_equal(model.label_distributions_, first.label_distributions_)
    np.testing.assert_array_equal(model.view_weights_, first.view_weights_)
