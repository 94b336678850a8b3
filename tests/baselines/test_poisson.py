"""Poisson learning and PoissonMBO on the union of the views' graphs."""

import numpy as np
import pytest

from viewmend.baselines.poisson import PoissonClassifier, PoissonMBOClassifier
from viewmend.core.graphs.neighbours import neighbour_graph
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import DataWarning, InvalidParameterError

BLOBS = make_multiview_blobs(120, n_views=3, noise=2.5, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.1, random_state=0)
BOTH = [PoissonClassifier, PoissonMBOClassifier]


@pytest.mark.parametrize("method", BOTH)
def test_rows_permute(method):
    order = np.random.default_rng(0).permutation(120)
    model, permuted = method().fit(TASK.data, TASK.y), method().fit(TASK.data[order], TASK.y[order])
    np.testing.assert_allclose(
        permuted.label_distributions_, model.label_distributions_[order], atol=1e-3
    )
    np.testing.assert_array_equal(permuted.transduction_, model.transduction_[order])


@pytest.mark.parametrize("method", BOTH)
def test_classes_relabel(method):
    swap = np.array([2, 0, 1, -1])
    model, swapped = method().fit(TASK.data, TASK.y), method().fit(TASK.data, swap[TASK.y])
    np.testing.assert_allclose(
        swapped.label_distributions_[:, swap[:3]], model.label_distributions_, atol=1e-3
    )


@pytest.mark.parametrize("method", BOTH)
def test_given_labels_are_kept_and_the_rest_is_mostly_right(method):
    model = method().fit(TASK.data, TASK.y)
    np.testing.assert_array_equal(model.transduction_[TASK.labelled], TASK.y[TASK.labelled])
    assert (model.transduction_ == TASK.y_true)[TASK.unlabelled].mean() > 0.8


def test_one_complete_view_is_the_dense_poisson_equation():
    X, y = BLOBS.views[0], TASK.y[np.argsort(TASK.order)]
    model = PoissonClassifier(n_neighbors=8, tol=1e-12).fit(X, y)
    rows = X / np.linalg.norm(X, axis=1, keepdims=True)
    W = neighbour_graph(rows, 8, "gaussian").toarray()
    degrees, Y = W.sum(axis=1), (y[:, None] == np.arange(3)).astype(float)
    B = np.where(y[:, None] >= 0, Y - Y[y >= 0].mean(axis=0), 0)
    U = np.linalg.pinv(np.diag(degrees) - W) @ B
    F = np.maximum(U - degrees @ U / degrees.sum(), 0)
    np.testing.assert_allclose(
        model.label_distributions_, F / F.sum(axis=1, keepdims=True), atol=1e-6
    )


def test_poisson_scales_classes_by_prior_over_label_share():
    plain = PoissonClassifier().fit(TASK.data, TASK.y)
    same = PoissonClassifier(class_prior="labeled").fit(TASK.data, TASK.y)
    np.testing.assert_allclose(same.label_distributions_, plain.label_distributions_)
    skewed = PoissonClassifier(class_prior=[0.6, 0.2, 0.2]).fit(TASK.data, TASK.y)
    expected = plain.label_distributions_ * [0.6, 0.2, 0.2] * 3
    np.testing.assert_allclose(
        skewed.label_distributions_, expected / expected.sum(axis=1, keepdims=True), rtol=1e-9
    )


@pytest.mark.parametrize("prior", [(1 / 3, 1 / 3, 1 / 3), (0.5, 0.25, 0.25)])
def test_mbo_classes_come_in_the_shares_asked(prior):
    model = PoissonMBOClassifier(class_prior=prior).fit(TASK.data, TASK.y)
    shares = np.bincount(model.label_distributions_.argmax(axis=1), minlength=3) / 120
    np.testing.assert_allclose(shares, prior, atol=1.5 / 120)


def test_class_sizes_mend_what_poisson_learning_gets_wrong():
    """With as many labels of a rare class as of a common one, the rare one is overrated."""
    rng = np.random.default_rng(0)
    y_true = np.repeat([0, 1], [90, 30])
    X = rng.normal(size=(120, 8)) + 1.6 * y_true[:, None] * np.eye(8)[0] + 2
    y = np.where(np.isin(np.arange(120), [0, 1, 2, 90, 91, 92]), y_true, -1)
    plain = PoissonClassifier().fit(X, y)
    sized = PoissonMBOClassifier(class_prior={0: 0.75, 1: 0.25}).fit(X, y)
    right = [(model.transduction_ == y_true)[y < 0].mean() for model in (plain, sized)]
    assert right[1] > right[0]


def test_samples_out_of_reach_are_told_and_take_no_room():
    """Two far groups in one view; the second has no label."""
    rng = np.random.default_rng(1)
    near = np.concatenate([rng.normal([5, 0], 0.3, (20, 2)), rng.normal([4, 2], 0.3, (20, 2))])
    X = np.concatenate([near, rng.normal([0, -5], 0.1, (20, 2))])
    y = np.full(60, -1)
    y[[0, 1, 20, 21]] = [0, 0, 1, 1]
    for method in BOTH:
        with pytest.warns(DataWarning, match="20 of 60 samples are joined to no label"):
            model = method(n_neighbors=5).fit(X, y)
        np.testing.assert_array_equal(model.unreachable_, np.arange(60) >= 40)
        np.testing.assert_allclose(model.label_distributions_[40:], 0.5)
    assert np.bincount(model.transduction_[:40]).tolist() == [20, 20]


@pytest.mark.parametrize("method", BOTH)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_neighbors": 0}, r"n_neighbors of .* >= 1, got 0"),
        ({"weights": "cosine"}, r"weights of .* 'closed_form'.* got 'cosine'"),
        ({"class_prior": [0.5, 0.5]}, r"3 positive shares"),
    ],
)
def test_parameters_are_checked(method, wrong, message):
    with pytest.raises(InvalidParameterError, match=message):
        method(**wrong).fit(TASK.data, TASK.y)
