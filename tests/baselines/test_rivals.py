"""The two rivals of the demo."""

import numpy as np
import pytest
from sklearn.semi_supervised import LabelSpreading

from viewmend.baselines import MeanImputedLabelSpreading, UnionGraphClassifier
from viewmend.core.graphs.neighbours import neighbour_graph
from viewmend.core.graphs.spreading import normalise_graph
from viewmend.datasets import hide, make_broken_moons, make_multiview_blobs
from viewmend.exceptions import DataWarning, InvalidParameterError

BLOBS = make_multiview_blobs(120, n_views=3, noise=2.0, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.1, random_state=0)
BOTH = [UnionGraphClassifier, MeanImputedLabelSpreading]


@pytest.mark.parametrize("method", BOTH)
def test_rows_permute(method):
    order = np.random.default_rng(0).permutation(120)
    model, permuted = method().fit(TASK.data, TASK.y), method().fit(TASK.data[order], TASK.y[order])
    np.testing.assert_allclose(
        permuted.label_distributions_, model.label_distributions_[order], atol=1e-4
    )


@pytest.mark.parametrize("method", BOTH)
def test_classes_relabel(method):
    swap = np.array([2, 0, 1, -1])
    model, swapped = method().fit(TASK.data, TASK.y), method().fit(TASK.data, swap[TASK.y])
    np.testing.assert_allclose(
        swapped.label_distributions_[:, swap[:3]], model.label_distributions_, atol=1e-6
    )


@pytest.mark.parametrize("method", BOTH)
def test_given_labels_are_kept(method):
    model = method().fit(TASK.data, TASK.y)
    np.testing.assert_array_equal(model.transduction_[TASK.labelled], TASK.y[TASK.labelled])


def test_one_complete_view_is_plain_label_spreading():
    X = BLOBS.views[0]
    y = TASK.y[np.argsort(TASK.order)]
    model = UnionGraphClassifier(spreading=0.9).fit(X, y)
    rows = X / np.linalg.norm(X, axis=1, keepdims=True)
    S = normalise_graph(neighbour_graph(rows, 7)).toarray()
    F = np.linalg.solve(np.eye(120) - 0.9 * S, (y[:, None] == np.arange(3)).astype(float))
    F /= F.sum(axis=0)
    np.testing.assert_allclose(
        model.label_distributions_, F / F.sum(axis=1, keepdims=True), atol=1e-5
    )


def test_class_mass_follows_the_prior():
    """Scaling a column of the soft labels scales the odds of its class in every row."""
    equal = UnionGraphClassifier().fit(TASK.data, TASK.y).label_distributions_
    skewed = UnionGraphClassifier(class_prior=[0.7, 0.2, 0.1]).fit(TASK.data, TASK.y)
    odds = skewed.label_distributions_ / equal
    expected = np.broadcast_to([1, 2 / 7, 1 / 7], odds.shape)
    np.testing.assert_allclose(odds / odds[:, [0]], expected, rtol=1e-9)


def test_union_crosses_the_gaps_that_break_every_single_view():
    moons = make_broken_moons(random_state=0)
    model = UnionGraphClassifier(spreading=0.999, normalize=None).fit(moons.data, moons.y)
    assert not model.unreachable_.any()
    assert (model.transduction_ == moons.y_true).mean() > 0.95


def test_mean_imputation_leaves_samples_unreached_and_says_so():
    """Samples with the same views look alike after imputation: the graph falls apart."""
    labelled_complete = hide(
        BLOBS.views,
        BLOBS.y,
        missing_rate=0.5,
        label_rate=0.03,
        labels="most_complete",
        random_state=3,
    )
    with pytest.warns(DataWarning, match=r"\d+ of 120 samples are joined to no label"):
        model = MeanImputedLabelSpreading(n_neighbors=3).fit(
            labelled_complete.data, labelled_complete.y
        )
    shares = np.bincount(labelled_complete.y[labelled_complete.labelled]) / 6
    expected = np.broadcast_to(shares[: len(shares)], (model.unreachable_.sum(), 3))
    np.testing.assert_allclose(model.label_distributions_[model.unreachable_], expected)


def test_complete_data_is_scikit_learns_label_spreading():
    y = TASK.y[np.argsort(TASK.order)]
    model = MeanImputedLabelSpreading().fit(list(BLOBS.views), y)
    rows = np.hstack([v / np.linalg.norm(v, axis=1, keepdims=True) for v in BLOBS.views])
    theirs = LabelSpreading(kernel="knn", n_neighbors=7, alpha=0.2, max_iter=1000).fit(rows, y)
    np.testing.assert_allclose(model.label_distributions_, theirs.label_distributions_, atol=1e-9)


@pytest.mark.parametrize("method", BOTH)
def test_parameters_are_checked(method):
    with pytest.raises(InvalidParameterError, match=r"spreading of .* got 1\.0"):
        method(spreading=1.0).fit(TASK.data, TASK.y)
