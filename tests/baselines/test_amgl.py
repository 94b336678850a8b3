"""Auto-weighted multiple graph learning."""

import numpy as np
import pytest
from scipy.optimize import minimize

from viewmend.baselines.amgl import AMGLClassifier, normalised_laplacian, root_energies
from viewmend.core.common.linear_systems import harmonic_labels
from viewmend.core.common.scaling import unit_rows
from viewmend.core.graphs.neighbours import neighbour_graph
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import DataWarning, InvalidParameterError

BLOBS = make_multiview_blobs(120, n_views=3, noise=2.0, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.0, label_rate=0.1, random_state=0)
VIEWS, Y_GIVEN = list(TASK.data.views), TASK.y
LABELLED = Y_GIVEN >= 0
Y = (Y_GIVEN[:, None] == np.arange(3)).astype(float)


def laplacians(views):
    return [normalised_laplacian(neighbour_graph(unit_rows(X_v), 7)) for X_v in views]


def scaled(F):
    F = np.maximum(F, 0)
    return F / F.sum(axis=1, keepdims=True)


def test_objective_descends():
    history = np.array(AMGLClassifier(tol=0.0, max_iter=20).fit(VIEWS, Y_GIVEN).history_)
    assert len(history) > 2
    assert np.all(np.diff(history) <= 1e-7 * history[0])


def test_it_stops_after_the_first_decrease_below_the_tolerance():
    history = np.array(AMGLClassifier(tol=0.0, max_iter=20).fit(VIEWS, Y_GIVEN).history_)
    decreases = -np.diff(history) / history[1:]
    # Halfway between two decreases, the later of which is then the first that is small enough.
    tol = np.sqrt(decreases[1] * decreases[2])
    stopped = AMGLClassifier(tol=tol, max_iter=20).fit(VIEWS, Y_GIVEN).history_
    np.testing.assert_allclose(stopped, history[:4], rtol=1e-10)


def test_solution_is_the_minimum_over_the_view_weights():
    """sum_v sqrt(e_v) = min over a of sum_v (a_v e_v + 1 / (4 a_v)): an independent solver of
    the outer problem ends at the same weights."""
    model = AMGLClassifier(tol=1e-13).fit(VIEWS, Y_GIVEN)
    L = [L_v.toarray() for L_v in laplacians(VIEWS)]

    def value(log_a):
        a = np.exp(log_a)
        F = harmonic_labels(sum(x * L_v for x, L_v in zip(a, L, strict=True)), Y, LABELLED)
        energies = np.array([np.sum(F * (L_v @ F)) for L_v in L])
        return a @ energies + np.sum(1 / (4 * a)), a * energies - 1 / (4 * a)

    found = minimize(value, np.zeros(3), jac=True, options={"gtol": 1e-9})
    np.testing.assert_allclose(model.history_[-1], found.fun, rtol=1e-7)
    weights = np.exp(found.x)
    np.testing.assert_allclose(model.view_weights_, weights / weights.sum(), atol=1e-4)


def test_one_view_is_harmonic_on_its_normalised_laplacian():
    model = AMGLClassifier().fit(VIEWS[:1], Y_GIVEN)
    F = harmonic_labels(laplacians(VIEWS[:1])[0].toarray(), Y, LABELLED)
    np.testing.assert_allclose(model.label_distributions_, scaled(F), atol=1e-4)


def test_equal_views_weigh_the_same_and_add_nothing():
    model = AMGLClassifier().fit([VIEWS[0], VIEWS[0]], Y_GIVEN)
    alone = AMGLClassifier().fit(VIEWS[:1], Y_GIVEN)
    np.testing.assert_allclose(model.view_weights_, 0.5, atol=1e-9)
    np.testing.assert_allclose(model.label_distributions_, alone.label_distributions_, atol=1e-5)


def test_a_view_of_noise_weighs_least():
    noise = np.random.default_rng(0).normal(size=(120, 4))
    weights = AMGLClassifier().fit([*VIEWS, noise], Y_GIVEN).view_weights_
    assert np.argmin(weights) == 3


def test_root_energies_never_vanish():
    """Labels that no edge crosses have no energy; their view would weigh infinitely."""
    L = laplacians(VIEWS)
    np.testing.assert_allclose(root_energies(L, np.zeros((120, 3))), 1e-6)


def test_rows_permute():
    order = np.random.default_rng(0).permutation(120)
    model = AMGLClassifier().fit(VIEWS, Y_GIVEN)
    permuted = AMGLClassifier().fit([X_v[order] for X_v in VIEWS], Y_GIVEN[order])
    np.testing.assert_allclose(
        permuted.label_distributions_, model.label_distributions_[order], atol=1e-4
    )


def test_classes_relabel():
    swap = np.array([2, 0, 1, -1])
    model, swapped = (AMGLClassifier().fit(VIEWS, y) for y in (Y_GIVEN, swap[Y_GIVEN]))
    np.testing.assert_allclose(
        swapped.label_distributions_[:, swap[:3]], model.label_distributions_, atol=1e-6
    )


def test_samples_beyond_every_label_are_told():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(60, 2)) * 0.1 + centre for centre in ([1, 0], [-1, 0])])
    y = np.full(120, -1)
    y[:4] = [0, 1, 0, 1]
    with pytest.warns(DataWarning, match="60 of 120 samples are joined to no label"):
        model = AMGLClassifier().fit([X], y)
    np.testing.assert_array_equal(model.unreachable_, np.arange(120) >= 60)


def test_parameters_are_checked():
    with pytest.raises(InvalidParameterError, match=r"n_neighbors of AMGLClassifier .* got 0"):
        AMGLClassifier(n_neighbors=0).fit(VIEWS, Y_GIVEN)
