"""Self-training and boosting: scikit-learn's methods on stacked views."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import SelfTrainingClassifier

from viewmend.baselines.boosting import NaNBoostingClassifier
from viewmend.baselines.self_training import SelfTrainingLogistic
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import InvalidParameterError

BLOBS = make_multiview_blobs(120, n_views=2, noise=2.0, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.25, random_state=0)
LABELLED, UNLABELLED = TASK.labelled, TASK.unlabelled
BOTH = [SelfTrainingLogistic, lambda: NaNBoostingClassifier(max_iter=10, random_state=0)]


def unit_stacked(views):
    return np.hstack([v / np.linalg.norm(v, axis=1, keepdims=True) for v in views])


def filled(rows):
    return np.where(np.isnan(rows), np.nanmean(rows, axis=0), rows)


@pytest.mark.parametrize("method", BOTH)
def test_new_samples_are_treated_as_those_of_fit(method):
    model = method().fit(TASK.data, TASK.y)
    shares = model.predict_proba(TASK.data)
    np.testing.assert_allclose(shares, model.label_distributions_, atol=1e-12)
    np.testing.assert_array_equal(
        model.predict(TASK.data)[UNLABELLED], model.transduction_[UNLABELLED]
    )
    alone = np.vstack([model.predict_proba(TASK.data[[i]]) for i in range(20)])
    np.testing.assert_allclose(alone, shares[:20], atol=1e-12)


@pytest.mark.parametrize("method", BOTH)
def test_classes_relabel_and_given_labels_are_kept(method):
    swap = np.array([2, 0, 1, -1])
    model, swapped = method().fit(TASK.data, TASK.y), method().fit(TASK.data, swap[TASK.y])
    np.testing.assert_allclose(
        swapped.label_distributions_[:, swap[:3]], model.label_distributions_, atol=1e-3
    )
    np.testing.assert_array_equal(model.transduction_[LABELLED], TASK.y[LABELLED])
    assert (model.transduction_ == TASK.y_true)[UNLABELLED].mean() > 0.75


def test_self_training_is_scikit_learns_on_mean_filled_rows():
    model = SelfTrainingLogistic(C=10.0, threshold=0.6).fit(TASK.data, TASK.y)
    X = filled(unit_stacked(TASK.data.views))
    theirs = SelfTrainingClassifier(LogisticRegression(C=10.0, max_iter=1000), threshold=0.6)
    theirs.fit(X, TASK.y)
    np.testing.assert_allclose(model.label_distributions_, theirs.predict_proba(X), atol=1e-9)
    assert 0 < model.n_pseudo_labels_ == (theirs.labeled_iter_ > 0).sum() < UNLABELLED.sum()


def test_a_threshold_nobody_meets_leaves_supervised_learning():
    model = SelfTrainingLogistic(threshold=0.999).fit(TASK.data, TASK.y)
    X = filled(unit_stacked(TASK.data.views))
    alone = LogisticRegression(max_iter=1000).fit(X[LABELLED], TASK.y[LABELLED])
    assert model.n_pseudo_labels_ == 0
    np.testing.assert_allclose(model.label_distributions_, alone.predict_proba(X), atol=1e-9)


def test_a_threshold_all_meet_labels_all_at_once():
    model = SelfTrainingLogistic(threshold=0.0, max_iter=1).fit(TASK.data, TASK.y)
    assert model.n_pseudo_labels_ == UNLABELLED.sum()


def test_self_training_without_unlabelled_samples():
    model = SelfTrainingLogistic().fit(TASK.data, TASK.y_true)
    X = filled(unit_stacked(TASK.data.views))
    alone = LogisticRegression(max_iter=1000).fit(X, TASK.y_true)
    np.testing.assert_allclose(model.label_distributions_, alone.predict_proba(X), atol=1e-9)


def test_boosting_is_scikit_learns_with_all_its_bins():
    model = NaNBoostingClassifier(max_iter=10, min_samples_leaf=3, random_state=0)
    model.fit(TASK.data, TASK.y)
    X = unit_stacked(TASK.data.views)
    theirs = HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=3, early_stopping=False)
    theirs.fit(X[LABELLED], TASK.y[LABELLED])
    np.testing.assert_allclose(model.label_distributions_, theirs.predict_proba(X), atol=1e-12)


def test_boosting_learns_from_labelled_samples_alone():
    other = TASK.y.copy()
    few = np.flatnonzero(UNLABELLED)[:30]
    kept = np.setdiff1d(np.arange(120), few)
    model = BOTH[1]().fit(TASK.data, other)
    fewer = BOTH[1]().fit(TASK.data[kept], other[kept])
    np.testing.assert_array_equal(model.predict_proba(TASK.data), fewer.predict_proba(TASK.data))


def test_many_samples_in_a_leaf_leave_no_split_for_few_labels():
    """Why min_samples_leaf is not scikit-learn's 20: 30 labels cannot be split 20 to 20."""
    assert LABELLED.sum() == 30
    model = NaNBoostingClassifier(max_iter=5, min_samples_leaf=20).fit(TASK.data, TASK.y)
    np.testing.assert_allclose(np.ptp(model.label_distributions_, axis=0), 0, atol=1e-12)
    split = NaNBoostingClassifier(max_iter=5).fit(TASK.data, TASK.y)
    assert np.ptp(split.label_distributions_, axis=0).min() > 0.1


@pytest.mark.parametrize("n_labelled_seen", [0, 1])
def test_boosting_with_hardly_a_labelled_row_in_a_view(n_labelled_seen):
    """Such a view is all but NaN in training; it must neither fail nor matter."""
    observed = np.ones((120, 2), dtype=bool)
    y = TASK.y[np.argsort(TASK.order)]
    observed[np.flatnonzero(y >= 0)[n_labelled_seen:], 1] = False
    model = BOTH[1]().fit(list(BLOBS.views), y, mask=observed)
    shares = model.predict_proba(list(BLOBS.views))
    changed = model.predict_proba([BLOBS.views[0], BLOBS.views[1][::-1]])
    np.testing.assert_array_equal(shares, changed)
    assert (shares.argmax(axis=1) == BLOBS.y).mean() > 0.75


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SelfTrainingLogistic(threshold=1.0), r"threshold of .* got 1\.0"),
        (SelfTrainingLogistic(C=0), r"C of SelfTrainingLogistic .* got 0"),
        (NaNBoostingClassifier(min_samples_leaf=0), r"min_samples_leaf of .* got 0"),
    ],
)
def test_parameters_are_checked(model, message):
    with pytest.raises(InvalidParameterError, match=message):
        model.fit(TASK.data, TASK.y)
