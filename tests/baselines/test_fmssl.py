"""FMSSL: every block update against a dense or naive solution of its problem."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from viewmend.baselines.fmssl import (
    FMSSLClassifier,
    corresponding_graphs,
    inner,
    propagate,
)
from viewmend.baselines.maths.learned_graph import learn_graph
from viewmend.core.agfti.anchors import balanced_hierarchical
from viewmend.core.agfti.bipartite import anchor_graph
from viewmend.core.common.scaling import unit_rows
from viewmend.core.common.simplex import project_simplex, simplex_qp
from viewmend.core.graphs.spreading import label_gaps, weighted_sum
from viewmend.datasets import make_multiview_blobs
from viewmend.exceptions import DataWarning, InvalidParameterError

N, M = 90, 16
BLOBS = make_multiview_blobs(N, n_views=3, noise=2.0, random_state=0)
VIEWS = [unit_rows(X_v) for X_v in BLOBS.views]
RNG = np.random.default_rng(0)
LABELLED = RNG.permutation(N) < 12
CODES = np.where(LABELLED, BLOBS.y, -1)
Y = (CODES[:, None] == np.arange(3)).astype(float)
U = 999.0 * LABELLED
GRAPHS = corresponding_graphs(VIEWS, M, 5, np.random.default_rng(0))
WEIGHTS = np.array([0.5, 0.3, 0.2])
FUSED = weighted_sum(WEIGHTS, GRAPHS)
F, G = RNG.random((N, 3)), RNG.random((M, 3))


def naive_gaps(F, G):
    return ((F[:, None, :] - G[None]) ** 2).sum(axis=2)


def test_views_take_their_columns_of_the_same_centres():
    centres = balanced_hierarchical(np.hstack(VIEWS), M, np.random.default_rng(0))
    start = 0
    for X_v, B_v in zip(VIEWS, GRAPHS, strict=True):
        stop = start + X_v.shape[1]
        expected = anchor_graph(X_v, centres[:, start:stop], 5)
        np.testing.assert_array_equal(B_v.toarray(), expected)
        start = stop


def test_fused_graph_drops_what_has_no_weight():
    dense = sum(d_v * B_v.toarray() for d_v, B_v in zip(WEIGHTS, GRAPHS, strict=True))
    np.testing.assert_allclose(FUSED.toarray(), dense, atol=1e-15)
    alone = weighted_sum(np.array([0.0, 1.0, 0.0]), GRAPHS)
    assert alone.nnz == GRAPHS[1].nnz < FUSED.nnz
    np.testing.assert_allclose(
        inner(GRAPHS[0], FUSED), np.sum(GRAPHS[0].toarray() * dense), rtol=1e-12
    )


@pytest.mark.parametrize("alpha", [0.1, 5.0])
def test_graph_is_the_projection_of_its_rows(alpha):
    P = learn_graph(FUSED, F, 2 * alpha, G).toarray()
    H, B = naive_gaps(F, G), FUSED.toarray()
    for i in range(N):
        on = B[i] > 0
        expected = project_simplex((B[i, on] - alpha / 2 * H[i, on])[None])[0]
        np.testing.assert_allclose(P[i, on], expected, atol=1e-12)
        assert not P[i, ~on].any()


def test_no_graph_on_the_support_is_cheaper():
    def cost(P):
        return np.sum((P - FUSED.toarray()) ** 2) + 0.7 * np.sum(P * naive_gaps(F, G))

    P = learn_graph(FUSED, F, 1.4, G).toarray()
    on = FUSED.toarray() > 0
    for _ in range(20):
        other = RNG.random((N, M)) * on
        other /= other.sum(axis=1, keepdims=True)
        assert cost(P + 1e-3 * (other - P)) > cost(P)


def test_without_labels_the_graph_is_the_fused_one():
    P = learn_graph(FUSED, np.zeros((N, 3)), 100.0, np.zeros((M, 3)))
    np.testing.assert_allclose(P.toarray(), FUSED.toarray(), atol=1e-12)


@pytest.mark.parametrize("alpha", [1e-4, 1.0, 100.0])
def test_labels_solve_the_dense_normal_equations(alpha):
    P = FUSED.toarray()
    system = np.block(
        [
            [np.diag(alpha * P.sum(axis=1) + U), -alpha * P],
            [-alpha * P.T, np.diag(alpha * P.sum(axis=0))],
        ]
    )
    right = np.vstack([U[:, None] * Y, np.zeros((M, 3))])
    found = np.vstack(propagate(FUSED, Y, U, alpha))
    np.testing.assert_allclose(found, np.linalg.solve(system, right), atol=1e-7)


def test_labels_of_samples_and_anchors_sum_to_one():
    """Every class counts as much as the others: the sum of all columns is constant."""
    for block in propagate(FUSED, Y, U, 0.01):
        np.testing.assert_allclose(block.sum(axis=1), 1, atol=1e-6)


def test_an_anchor_without_samples_has_no_label():
    P = csr_array(np.hstack([FUSED.toarray(), np.zeros((N, 1))]))
    with_empty, G_empty = propagate(P, Y, U, 1.0)
    np.testing.assert_allclose(with_empty, propagate(FUSED, Y, U, 1.0)[0], atol=1e-9)
    assert not G_empty[-1].any()


def test_gaps_are_those_of_the_stored_entries():
    rows, columns = FUSED.nonzero()
    np.testing.assert_allclose(label_gaps(FUSED, F, G), naive_gaps(F, G)[rows, columns], rtol=1e-12)


@pytest.mark.parametrize("alpha", [1e-2, 1.0, 100.0])
def test_objective_falls_unless_a_view_was_dropped(alpha):
    """Once a view has no weight its edges are closed to P, which may cost something."""
    models = [
        FMSSLClassifier(alpha, n_anchors=M, tol=0, max_iter=rounds, random_state=0).fit(
            list(BLOBS.views), CODES
        )
        for rounds in range(1, 9)
    ]
    used = np.array([np.ones(3), *(model.view_weights_ for model in models[:-1])]) > 0
    kept = (used[1:] == used[:-1]).all(axis=1)
    history = np.array(models[-1].history_)
    assert len(history) == 8
    assert kept.sum() >= 5
    assert (np.diff(history)[kept] <= 1e-9 * history[0]).all()


def test_fit_ends_where_no_block_moves():
    model = FMSSLClassifier(0.1, n_anchors=M, n_neighbors=5, tol=1e-15, max_iter=2000)
    model.set_params(random_state=0).fit(list(BLOBS.views), CODES)
    P, d = model.fused_graph_, model.view_weights_
    F, G = propagate(P, Y, U, 0.1)
    again = learn_graph(weighted_sum(d, GRAPHS), F, 0.2, G)
    np.testing.assert_allclose(again.toarray(), P.toarray(), atol=1e-5)
    gram = np.array([[inner(A, B) for B in GRAPHS] for A in GRAPHS])
    np.testing.assert_allclose(
        simplex_qp(gram, np.array([inner(B_v, P) for B_v in GRAPHS])), d, atol=1e-8
    )


def test_small_alpha_is_one_propagation_on_the_mean_graph():
    model = FMSSLClassifier(1e-6, n_anchors=M, n_neighbors=5, random_state=0)
    model.fit(list(BLOBS.views), CODES)
    mean = weighted_sum(np.full(3, 1 / 3), GRAPHS)
    np.testing.assert_allclose(model.fused_graph_.toarray(), mean.toarray(), atol=1e-5)
    F, _ = propagate(mean, Y, U, 1e-6)
    F = np.maximum(F, 0)
    np.testing.assert_allclose(
        model.label_distributions_, F / F.sum(axis=1, keepdims=True), atol=1e-4
    )


def test_equal_views_are_one_view():
    X = BLOBS.views[0]
    one = FMSSLClassifier(0.1, random_state=0).fit(X, CODES)
    two = FMSSLClassifier(0.1, random_state=0).fit([X, X], CODES)
    np.testing.assert_allclose(two.view_weights_, 0.5, atol=1e-9)
    np.testing.assert_allclose(two.label_distributions_, one.label_distributions_, atol=1e-6)


def test_classes_relabel():
    swap = np.array([2, 0, 1, -1])
    model = FMSSLClassifier(random_state=0).fit(list(BLOBS.views), CODES)
    other = FMSSLClassifier(random_state=0).fit(list(BLOBS.views), swap[CODES])
    np.testing.assert_allclose(
        other.label_distributions_[:, swap[:3]], model.label_distributions_, atol=1e-9
    )


def test_rows_permute_for_given_anchors():
    """Which anchors are drawn depends on the order of the rows; nothing after that does."""
    order = RNG.permutation(N)
    for alpha in (0.01, 10.0):
        P = learn_graph(FUSED, F, 2 * alpha, G)
        permuted = learn_graph(csr_array(FUSED[order]), F[order], 2 * alpha, G)
        np.testing.assert_allclose(permuted.toarray(), P.toarray()[order], atol=1e-14)
        F_new, G_new = propagate(permuted, Y[order], U[order], alpha)
        F_old, G_old = propagate(P, Y, U, alpha)
        np.testing.assert_allclose(F_new, F_old[order], atol=1e-8)
        np.testing.assert_allclose(G_new, G_old, atol=1e-8)


def test_samples_that_no_label_reaches_are_counted():
    near = RNG.normal(size=(32, 2)) * 0.01 + [1, 0]
    far = RNG.normal(size=(32, 2)) * 0.01 + [0, 1]
    y = np.r_[0, 1, np.full(62, -1)]
    with pytest.warns(DataWarning, match="32 of 64 samples are joined to no label"):
        model = FMSSLClassifier(n_anchors=16, n_neighbors=2, random_state=0).fit(
            np.vstack([near, far]), y
        )
    np.testing.assert_array_equal(model.unreachable_, np.arange(64) >= 32)


def test_blobs_are_told_apart():
    easy = make_multiview_blobs(120, n_views=2, noise=0.5, random_state=0)
    y = np.where(np.arange(120) < 15, easy.y, -1)
    model = FMSSLClassifier(random_state=0).fit(list(easy.views), y)
    assert (model.transduction_ == easy.y).mean() > 0.95


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0.0}, r"alpha of FMSSLClassifier must be a number > 0, got 0\.0"),
        ({"n_anchors": 24}, "n_anchors of FMSSLClassifier must be a power of two, got 24; take 16"),
        ({"label_strength": -1}, "label_strength of FMSSLClassifier must be a number > 0, got -1"),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(InvalidParameterError, match=message):
        FMSSLClassifier(**parameters).fit(list(BLOBS.views), CODES)
