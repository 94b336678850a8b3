"""Multi-view learning with adaptive neighbours."""

import numpy as np
import pytest
from scipy.sparse import block_diag, csr_array

from viewmend.baselines.mlan import (
    MLANClassifier,
    adaptive_neighbours,
    fit_neighbour_weights,
    listed_graph,
    lowest_eigenvectors,
)
from viewmend.core.common.linear_systems import harmonic_labels
from viewmend.core.common.scaling import standardise_rows
from viewmend.core.common.simplex import project_simplex
from viewmend.core.graphs.neighbours import directed_neighbour_graph
from viewmend.core.graphs.spreading import laplacian
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import DataWarning, InvalidParameterError, InvalidViewsError

BLOBS = make_multiview_blobs(120, n_views=3, noise=5.0, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.0, label_rate=0.1, random_state=0)
VIEWS, Y_GIVEN = list(TASK.data.views), TASK.y
LABELLED = Y_GIVEN >= 0
Y = (Y_GIVEN[:, None] == np.arange(3)).astype(float)
ROWS = [standardise_rows(X_v) for X_v in VIEWS]
RNG = np.random.default_rng(0)


def distances(X):
    return ((X[:, None] - X[None]) ** 2).sum(axis=2)


DENSE = np.stack([distances(X_v) for X_v in ROWS])


def test_rows_are_standardised_and_constant_rows_vanish():
    X = RNG.normal(size=(5, 7))
    X[2] = 0.1
    Z = standardise_rows(X)
    varied = np.arange(5) != 2
    np.testing.assert_allclose(Z.mean(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(Z.std(axis=1, ddof=1)[varied], 1)
    np.testing.assert_array_equal(Z[2], 0)


def test_lists_and_distances_are_those_of_the_dense_mean():
    lists, D, S, alpha = adaptive_neighbours(ROWS, 7)
    mean = DENSE.mean(axis=0)
    np.fill_diagonal(mean, np.inf)
    order = np.argsort(mean, axis=1)
    np.testing.assert_array_equal(lists, order[:, :7])
    rows = np.arange(120)[:, None]
    np.testing.assert_allclose(D, DENSE[:, rows, lists], rtol=1e-10)
    e = mean[rows, order[:, :8]]
    gaps = e[:, 7:] - e[:, :7]
    np.testing.assert_allclose(alpha, gaps.sum(axis=1).mean() / 2, rtol=1e-10)
    np.testing.assert_allclose(S, gaps / gaps.sum(axis=1, keepdims=True), atol=1e-10)


def test_start_is_the_neighbour_graph_of_the_joined_rows():
    lists, _, S, _ = adaptive_neighbours(ROWS, 7)
    expected = directed_neighbour_graph(np.hstack(ROWS), 7).toarray()
    np.testing.assert_allclose(listed_graph(S, lists).toarray(), expected, atol=1e-8)


def test_duplicates_share_evenly():
    _, _, S, alpha = adaptive_neighbours([np.ones((6, 3))], 3)
    np.testing.assert_allclose(S, 1 / 3)
    assert alpha > 0


def test_graph_step_is_the_minimum_over_the_simplex():
    lists, D, _, alpha = adaptive_neighbours(ROWS, 7)
    w, pulls = np.array([0.2, 0.5, 1.0]), RNG.uniform(size=lists.shape)
    S = fit_neighbour_weights(D, w, pulls, alpha)
    gradient = np.tensordot(w, D, axes=1) + pulls + 2 * alpha * S
    # Optimality: the gradient is level where a weight is positive, and not lower elsewhere.
    level = np.where(S > 0, gradient, np.inf).min(axis=1, keepdims=True)
    np.testing.assert_allclose(S.sum(axis=1), 1)
    np.testing.assert_allclose(np.where(S > 0, gradient - level, 0), 0, atol=1e-8)
    assert np.all(gradient >= level - 1e-8)


def test_lowest_eigenvectors_equal_the_dense_ones():
    lists, _, S, _ = adaptive_neighbours(ROWS, 7)
    graph = listed_graph(S, lists)
    F = lowest_eigenvectors(graph, 3, np.random.default_rng(0))
    assert F.any()
    dense = np.linalg.eigh(laplacian(graph).toarray())[1][:, :3]
    np.testing.assert_allclose(F @ F.T, dense @ dense.T, atol=1e-8)


def test_many_components_have_no_gaps_along_their_edges():
    """The dense eigenvectors of the null space are constant on components, so gaps are zero."""
    part = np.ones((4, 4)) - np.eye(4)
    graph = csr_array(block_diag([part] * 5))
    F = lowest_eigenvectors(graph, 3, np.random.default_rng(0))
    dense = np.linalg.eigh(laplacian(graph).toarray())[1][:, :3]
    for vectors in (F, dense):
        np.testing.assert_allclose(distances(vectors)[graph.toarray() > 0], 0, atol=1e-20)


def test_more_components_than_classes_do_not_stop_the_fit():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(20, 6)) * 0.01 + rng.normal(size=6) for _ in range(5)])
    y = np.full(100, -1)
    y[[0, 1, 20, 21]] = [0, 0, 1, 1]
    with pytest.warns(DataWarning, match="60 of 100 samples are joined to no label"):
        model = MLANClassifier(lam=1.0).fit([X], y)
    np.testing.assert_array_equal(model.transduction_[:40], np.arange(40) // 20)


@pytest.mark.parametrize("lam", [0.1, 10.0])
def test_objective_descends(lam):
    history = np.array(MLANClassifier(lam, tol=0.0).fit(VIEWS, Y_GIVEN).history_)
    assert len(history) > 2
    assert np.all(np.diff(history) <= 1e-7 * history[0])


def naive(lam, weighting, n_rounds):
    """The rounds of the specification on dense arrays, S made symmetric as it goes."""
    lists, _, _, alpha = adaptive_neighbours(ROWS, 7)
    listed = np.zeros((120, 120), dtype=bool)
    np.put_along_axis(listed, lists, True, axis=1)
    S = directed_neighbour_graph(np.hstack(ROWS), 7).toarray()
    S = (S + S.T) / 2
    F = np.linalg.eigh(np.diag(S.sum(axis=1)) - S)[1][:, :3]
    weighted = DENSE.copy()
    for _ in range(n_rounds):
        q = np.sum(weighted * S, axis=(1, 2))
        w = 1 / (2 * np.sqrt(q))
        if weighting == "code":
            weighted = w[:, None, None] * weighted
            total = weighted.sum(axis=0)
        else:
            total = np.tensordot(w, weighted, axes=1)
        target = np.where(listed, -(total + lam * distances(F)) / (2 * alpha), -1e9)
        S = project_simplex(target)
        S = (S + S.T) / 2
        F = harmonic_labels(np.diag(S.sum(axis=1)) - S, Y, LABELLED)
    return F


@pytest.mark.parametrize("weighting", ["paper", "code"])
def test_fast_rounds_equal_naive_ones(weighting):
    model = MLANClassifier(5.0, weighting=weighting, tol=0.0, max_iter=4).fit(VIEWS, Y_GIVEN)
    F = naive(5.0, weighting, 4)
    np.testing.assert_allclose(
        model.label_distributions_, F / F.sum(axis=1, keepdims=True), atol=1e-4
    )


def test_weights_end_at_their_fixed_points():
    """1 / sqrt(<D_v, S>) as in the paper, 1 / <D_v, S> in the code."""
    for weighting, power in (("paper", 0.5), ("code", 1.0)):
        model = MLANClassifier(1.0, weighting=weighting, tol=0.0, max_iter=60).fit(VIEWS, Y_GIVEN)
        expected = np.sum(DENSE * model.graph_.toarray(), axis=(1, 2)) ** -power
        np.testing.assert_allclose(model.view_weights_, expected / expected.sum(), rtol=1e-6)


def test_without_labels_in_the_graph_equal_views_give_one_views_graph():
    """At lam = 0 the copies differ from one view by the scale of the weights alone."""
    twice = MLANClassifier(0.0).fit([VIEWS[0], VIEWS[0]], Y_GIVEN)
    np.testing.assert_allclose(twice.view_weights_, 0.5)
    F = harmonic_labels(laplacian(twice.graph_).toarray(), Y, LABELLED)
    np.testing.assert_allclose(
        twice.label_distributions_, F / F.sum(axis=1, keepdims=True), atol=1e-4
    )


def test_random_lam_is_an_integer_that_the_seed_fixes():
    models = [MLANClassifier(max_iter=1, random_state=s).fit(VIEWS, Y_GIVEN) for s in (0, 0, 1, 2)]
    drawn = [model.lam_ for model in models]
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) > 1
    assert all(lam in range(1, 31) for lam in drawn)


def test_rows_permute():
    order = np.random.default_rng(0).permutation(120)
    model = MLANClassifier(10.0).fit(VIEWS, Y_GIVEN)
    permuted = MLANClassifier(10.0).fit([X_v[order] for X_v in VIEWS], Y_GIVEN[order])
    np.testing.assert_allclose(
        permuted.label_distributions_, model.label_distributions_[order], atol=1e-4
    )


def test_classes_relabel():
    swap = np.array([2, 0, 1, -1])
    model, swapped = (MLANClassifier(10.0).fit(VIEWS, y) for y in (Y_GIVEN, swap[Y_GIVEN]))
    np.testing.assert_allclose(
        swapped.label_distributions_[:, swap[:3]], model.label_distributions_, atol=1e-4
    )


def test_parameters_are_checked():
    with pytest.raises(InvalidParameterError, match=r"lam of MLANClassifier .* got 'none'"):
        MLANClassifier(lam="none").fit(VIEWS, Y_GIVEN)
    with pytest.raises(InvalidParameterError, match=r"weighting of MLANClassifier .* got 'both'"):
        MLANClassifier(weighting="both").fit(VIEWS, Y_GIVEN)


def test_two_samples_are_too_few():
    with pytest.raises(InvalidViewsError, match="3 samples, got 2"):
        MLANClassifier().fit([VIEWS[0][:2]], [0, 1])
