"""AMUSE: a learnt graph near a weighted sum of the views' graphs."""

import numpy as np
import pytest

from viewmend.baselines.amuse import AMUSEClassifier, objective
from viewmend.baselines.maths.learned_graph import learn_graph, on_common_support, with_entries
from viewmend.core.common.linear_systems import harmonic_labels
from viewmend.core.common.scaling import unit_rows
from viewmend.core.common.simplex import project_simplex, simplex_qp
from viewmend.core.graphs.neighbours import directed_neighbour_graph
from viewmend.core.graphs.spreading import laplacian
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import InvalidParameterError

BLOBS = make_multiview_blobs(120, n_views=3, noise=2.0, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.0, label_rate=0.1, random_state=0)
VIEWS, Y_GIVEN = list(TASK.data.views), TASK.y
LABELLED = Y_GIVEN >= 0
Y = (Y_GIVEN[:, None] == np.arange(3)).astype(float)
GRAPHS = [directed_neighbour_graph(unit_rows(X_v), 7) for X_v in VIEWS]
RNG = np.random.default_rng(0)


def mean_graph():
    support, A = on_common_support(GRAPHS)
    return with_entries(support, A.mean(axis=0)), A


def test_objective_descends():
    history = np.array(AMUSEClassifier(lam=1.0, tol=0.0).fit(VIEWS, Y_GIVEN).history_)
    assert len(history) == 50
    assert history[-1] < 0.99 * history[0]
    assert np.all(np.diff(history) <= 1e-8 * history[0])


def test_support_is_the_union_and_keeps_every_graph():
    S, A = mean_graph()
    dense = np.stack([graph.toarray() for graph in GRAPHS])
    np.testing.assert_allclose(S.toarray(), dense.mean(axis=0), atol=1e-15)
    rows, columns = np.nonzero(dense.any(axis=0))
    np.testing.assert_array_equal(A, dense[:, rows, columns])


def test_graph_step_is_the_minimum_over_its_support():
    """Rows are the dense projections with entries off the support sent to minus infinity, and no
    other row on the simplex costs less."""
    S, A = mean_graph()
    F, s_hat, lam = RNG.normal(size=(120, 3)), A.mean(axis=0), 2.0
    learnt = learn_graph(S, F, 1 / lam)
    gaps = ((F[:, None] - F[None]) ** 2).sum(axis=2)
    target = np.where(S.toarray() > 0, S.toarray() - gaps / (4 * lam), -1e9)
    np.testing.assert_allclose(learnt.toarray(), project_simplex(target), atol=1e-10)
    best = objective(learnt, s_hat, F, lam)
    for _ in range(20):
        other = learnt.copy()
        other.data = 0.99 * other.data
        for i in range(120):
            stored = slice(S.indptr[i], S.indptr[i + 1])
            other.data[stored] += 0.01 * RNG.dirichlet(np.ones(S.indptr[i + 1] - S.indptr[i]))
        assert objective(other, s_hat, F, lam) > best


def test_objective_is_that_of_the_paper():
    S, A = mean_graph()
    F = RNG.normal(size=(120, 3))
    smooth = np.trace(F.T @ laplacian(S).toarray() @ F)
    away = np.linalg.norm(S.toarray() - GRAPHS[0].toarray()) ** 2
    np.testing.assert_allclose(objective(S, A[0], F, 3.0), smooth + 3 * away, rtol=1e-12)


def test_end_is_stationary_in_every_block():
    """Each block's own solver, dense and from scratch, gives back what fit ended with."""
    model = AMUSEClassifier(lam=10.0, tol=0.0, max_iter=400).fit(VIEWS, Y_GIVEN)
    S, alpha = model.graph_.toarray(), model.view_weights_
    dense = np.stack([graph.toarray() for graph in GRAPHS])
    F = harmonic_labels(laplacian(model.graph_).toarray(), Y, LABELLED)
    np.testing.assert_allclose(
        model.label_distributions_, F / F.sum(axis=1, keepdims=True), atol=1e-4
    )
    flat = dense.reshape(3, -1)
    np.testing.assert_allclose(alpha, simplex_qp(flat @ flat.T, flat @ S.ravel()), atol=1e-6)
    gaps = ((F[:, None] - F[None]) ** 2).sum(axis=2)
    target = np.tensordot(alpha, dense, axes=1) - gaps / 40
    projected = project_simplex(np.where(dense.any(axis=0), target, -1e9))
    np.testing.assert_allclose(S, projected, atol=1e-4)


def test_large_lam_is_propagation_on_the_mean_graph():
    """From equal weights S stays at the mean, which then is the best sum of the graphs."""
    model = AMUSEClassifier(lam=1e8).fit(VIEWS, Y_GIVEN)
    L = laplacian(sum(GRAPHS[1:], start=GRAPHS[0]) / 3).toarray()
    F = harmonic_labels(L, Y, LABELLED)
    np.testing.assert_allclose(model.view_weights_, 1 / 3, atol=1e-5)
    np.testing.assert_allclose(
        model.label_distributions_, F / F.sum(axis=1, keepdims=True), atol=1e-4
    )


def test_equal_views_add_nothing():
    twice = AMUSEClassifier().fit([VIEWS[0], VIEWS[0]], Y_GIVEN)
    alone = AMUSEClassifier().fit(VIEWS[:1], Y_GIVEN)
    np.testing.assert_allclose(twice.view_weights_, 0.5, atol=1e-9)
    np.testing.assert_allclose(twice.label_distributions_, alone.label_distributions_, atol=1e-5)


def test_rows_permute():
    order = np.random.default_rng(0).permutation(120)
    model = AMUSEClassifier().fit(VIEWS, Y_GIVEN)
    permuted = AMUSEClassifier().fit([X_v[order] for X_v in VIEWS], Y_GIVEN[order])
    np.testing.assert_allclose(
        permuted.label_distributions_, model.label_distributions_[order], atol=1e-4
    )


def test_classes_relabel():
    swap = np.array([2, 0, 1, -1])
    model, swapped = (AMUSEClassifier().fit(VIEWS, y) for y in (Y_GIVEN, swap[Y_GIVEN]))
    np.testing.assert_allclose(
        swapped.label_distributions_[:, swap[:3]], model.label_distributions_, atol=1e-5
    )


def test_parameters_are_checked():
    with pytest.raises(InvalidParameterError, match=r"lam of AMUSEClassifier .* got 0"):
        AMUSEClassifier(lam=0).fit(VIEWS, Y_GIVEN)
