"""AMSC: every block update against an independent solution of its problem."""

import numpy as np
import pytest
from scipy.optimize import minimize

from viewmend.baselines.amsc import (
    AMSCClassifier,
    mean_weights,
    observed_graphs,
    power_rows,
    vertex_distances,
    view_costs,
    view_labels,
)
from viewmend.baselines.maths.anchored import scaled_anchor_graph
from viewmend.core.common.scaling import unit_rows
from viewmend.data.container import MultiViewData
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import DataWarning, InvalidParameterError

N = 90
BLOBS = make_multiview_blobs(N, n_views=3, noise=2.0, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.15, random_state=0)
OBSERVED = TASK.data.observed
DATA = MultiViewData(tuple(unit_rows(v) for v in TASK.data.views), OBSERVED, TASK.data.names)
RNG = np.random.default_rng(0)
GRAPHS = observed_graphs(DATA, 16, 5, np.random.default_rng(0))
COMPLETE = [X_v[TASK.order] for X_v in BLOBS.views]


def test_graphs_hold_the_observed_rows_in_their_places():
    for v, S_v in enumerate(GRAPHS):
        A = (S_v @ S_v.T).toarray()
        np.testing.assert_allclose(A.sum(axis=1), OBSERVED[:, v], atol=1e-12)
    rows = DATA.views[0][OBSERVED[:, 0]]
    full = observed_graphs(DATA, len(rows), 5, np.random.default_rng(0))[:1]
    S = scaled_anchor_graph(rows, rows, 5)
    seen = OBSERVED[:, 0]
    np.testing.assert_allclose(
        (full[0] @ full[0].T).toarray()[np.ix_(seen, seen)], (S @ S.T).toarray(), atol=1e-9
    )


def test_view_labels_solve_the_dense_system_of_the_view():
    Y_power = RNG.dirichlet(np.ones(3), N) ** 2
    for v, S_v in enumerate(GRAPHS):
        seen = OBSERVED[:, v]
        F_v = view_labels(S_v, seen, Y_power)
        L = np.eye(seen.sum()) - (S_v @ S_v.T).toarray()[np.ix_(seen, seen)]
        dense = np.linalg.solve(L + np.diag(Y_power[seen].sum(axis=1)), Y_power[seen])
        np.testing.assert_allclose(F_v[seen], dense, atol=1e-8)
        assert not F_v[~seen].any()


def test_view_labels_minimise_the_cost_of_the_view():
    Y_power = RNG.dirichlet(np.ones(3), N) ** 2
    seen = OBSERVED[:, 1]
    masked = np.where(seen[:, None], Y_power, 0)

    def cost(F_v):
        H = vertex_distances(F_v)[None]
        return view_costs(GRAPHS[1:2], [F_v], H, masked)[0]

    F_v = view_labels(GRAPHS[1], seen, Y_power)
    for _ in range(5):
        step = np.where(seen[:, None], RNG.normal(size=F_v.shape), 0)
        ahead, back = cost(F_v + 1e-2 * step), cost(F_v - 1e-2 * step)
        np.testing.assert_allclose(ahead, back, rtol=1e-7)
        assert ahead > cost(F_v)


def test_vertex_distances():
    F = RNG.normal(size=(4, 3))
    naive = ((F[:, None, :] - np.eye(3)[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(vertex_distances(F), naive, rtol=1e-12)


@pytest.mark.parametrize("gamma", [1.1, 2.0, 3.1])
def test_shared_probabilities_minimise_their_rows(gamma):
    H = RNG.uniform(0.1, 2, size=(5, 4))
    Y = power_rows(H, gamma)
    np.testing.assert_allclose(Y.sum(axis=1), 1)
    slopes = Y ** (gamma - 1) * H
    np.testing.assert_allclose(slopes, np.broadcast_to(slopes[:, :1], slopes.shape), rtol=1e-9)


def test_a_distance_of_zero_takes_the_row():
    np.testing.assert_allclose(power_rows(np.array([[0.0, 1.0, 1.0]]), 1.1), [[1, 0, 0]])


@pytest.mark.parametrize("power", [0.5, 0.9])
def test_weights_are_the_slopes_of_the_mean(power):
    """Sum J_v^p lies below its tangent, so falling sum a_v J_v means a falling objective."""
    costs = np.array([0.5, 3.0, 10.0])
    numeric = [
        (np.sum((costs + h) ** power) - np.sum((costs - h) ** power)) / 2e-6
        for h in 1e-6 * np.eye(3)
    ]
    np.testing.assert_allclose(mean_weights(costs, power), numeric / np.sum(numeric), rtol=1e-6)


def test_power_one_weighs_views_alike():
    np.testing.assert_allclose(mean_weights(np.array([0.5, 3.0]), 1.0), 0.5)


@pytest.mark.parametrize("gamma", [1.1, 1.5, 3.1])
@pytest.mark.parametrize("power", [0.3, 1.0])
def test_objective_falls(gamma, power):
    model = AMSCClassifier(gamma, power, tol=1e-12, max_iter=60, random_state=0)
    history = np.array(model.fit(TASK.data, TASK.y).history_)
    assert len(history) > 2
    assert (np.diff(history) <= 1e-9 * history[0]).all()


def test_no_single_row_of_probabilities_can_be_improved_at_the_end():
    """Stationarity in Y: the labels of the views are recomputed for every trial row."""
    gamma = 2.0
    model = AMSCClassifier(gamma, n_anchors=16, n_neighbors=5, tol=0, max_iter=400, random_state=0)
    Y = model.fit(TASK.data, TASK.y).label_distributions_

    def objective(Y):
        F = [view_labels(S_v, OBSERVED[:, v], Y**gamma) for v, S_v in enumerate(GRAPHS)]
        H = np.stack([vertex_distances(F_v) for F_v in F]) * OBSERVED.T[:, :, None]
        return np.mean(view_costs(GRAPHS, F, H, Y**gamma) ** 0.5) ** 2

    np.testing.assert_allclose(objective(Y), model.history_[-1], rtol=1e-6)
    for i in np.flatnonzero(~TASK.labelled)[:3]:

        def of_row(y_i, i=i):
            trial = Y.copy()
            trial[i] = y_i
            return objective(trial)

        best = minimize(
            of_row,
            Y[i],
            bounds=[(1e-9, 1)] * 3,
            constraints={"type": "eq", "fun": lambda y_i: y_i.sum() - 1},
            method="SLSQP",
        )
        np.testing.assert_allclose(best.x, Y[i], atol=5e-3)


def test_missing_rows_are_never_read():
    views = [np.where(OBSERVED[:, [v]], X_v, 1e6) for v, X_v in enumerate(COMPLETE)]
    model = AMSCClassifier(random_state=0).fit(TASK.data, TASK.y)
    other = AMSCClassifier(random_state=0).fit(views, TASK.y, mask=OBSERVED)
    np.testing.assert_array_equal(other.label_distributions_, model.label_distributions_)


def test_equal_complete_views_are_one_view():
    """The mean of equal costs is the cost, and equal weights change no probability."""
    X = COMPLETE[0]
    one = AMSCClassifier(n_anchors=N, random_state=0).fit(X, TASK.y)
    two = AMSCClassifier(n_anchors=N, random_state=0).fit([X, X], TASK.y)
    np.testing.assert_allclose(two.view_weights_, 0.5, atol=1e-9)
    np.testing.assert_allclose(two.label_distributions_, one.label_distributions_, atol=1e-9)
    np.testing.assert_allclose(two.history_, one.history_, rtol=1e-9)


def test_a_view_of_noise_weighs_less():
    noise = RNG.normal(size=COMPLETE[0].shape)
    easy = make_multiview_blobs(N, n_views=1, noise=0.5, random_state=0)
    y = np.where(np.arange(N) < 15, easy.y, -1)
    model = AMSCClassifier(random_state=0).fit([easy.views[0], noise], y)
    assert model.view_weights_[0] > model.view_weights_[1]


def test_large_gamma_makes_the_probabilities_even():
    model = AMSCClassifier(gamma=500.0, random_state=0).fit(TASK.data, TASK.y)
    unlabelled = model.label_distributions_[~TASK.labelled]
    np.testing.assert_allclose(unlabelled, 1 / 3, atol=1e-2)


def test_rows_permute_and_classes_relabel():
    order, swap = RNG.permutation(N), np.array([2, 0, 1, -1])
    model = AMSCClassifier(n_anchors=N, random_state=0).fit(COMPLETE, TASK.y)
    other = AMSCClassifier(n_anchors=N, random_state=0).fit(
        [X_v[order] for X_v in COMPLETE], swap[TASK.y[order]]
    )
    np.testing.assert_allclose(
        other.label_distributions_[:, swap[:3]], model.label_distributions_[order], atol=1e-7
    )


def test_anchors_are_lowered_to_the_poorest_view():
    model = AMSCClassifier(n_anchors=85, random_state=0).fit(TASK.data, TASK.y)
    assert OBSERVED.sum(axis=0).min() < 64
    assert model.n_anchors_ == 32


def test_given_labels_are_kept_and_a_seed_decides():
    first, second = (AMSCClassifier(random_state=1).fit(TASK.data, TASK.y) for _ in range(2))
    np.testing.assert_array_equal(first.transduction_[TASK.labelled], TASK.y[TASK.labelled])
    np.testing.assert_array_equal(first.label_distributions_, second.label_distributions_)


def test_samples_that_no_label_reaches_are_counted():
    """Two far groups in the only view, labels in one of them."""
    near = RNG.normal(size=(30, 2)) * 0.01 + [1, 0]
    far = RNG.normal(size=(30, 2)) * 0.01 + [0, 1]
    y = np.r_[0, 1, np.full(58, -1)]
    with pytest.warns(DataWarning, match="30 of 60 samples are joined to no label"):
        model = AMSCClassifier(n_anchors=20, n_neighbors=2, random_state=0).fit(
            np.vstack([near, far]), y
        )
    np.testing.assert_array_equal(model.unreachable_, np.arange(60) >= 30)


def test_blobs_with_missing_views_are_told_apart():
    easy = make_multiview_blobs(150, n_views=3, noise=0.5, random_state=0)
    task = hide(easy.views, easy.y, missing_rate=0.5, label_rate=0.1, random_state=0)
    model = AMSCClassifier(random_state=0).fit(task.data, task.y)
    assert (model.transduction_ == task.y_true).mean() > 0.95


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"gamma": 1.0}, r"gamma of AMSCClassifier must be a number > 1, got 1\.0"),
        ({"power": 0.0}, r"power of AMSCClassifier must be a number in \(0, 1\], got 0\.0"),
        ({"max_iter": 0}, "max_iter of AMSCClassifier must be an integer >= 1, got 0"),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(InvalidParameterError, match=message):
        AMSCClassifier(**parameters).fit(TASK.data, TASK.y)
