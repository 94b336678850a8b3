"""Late fusion and mean-imputed classifiers: scikit-learn's learners, a view at a time."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from viewmend.baselines import (
    LateFusionClassifier,
    LateTreesClassifier,
    MeanImputedLogistic,
    MeanImputedSVM,
)
from viewmend.baselines.supervised import class_shares
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import DataWarning, InvalidParameterError

BLOBS = make_multiview_blobs(150, n_views=3, n_classes=3, noise=2.0, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.3, random_state=0)
SEEN, LABELLED = TASK.data.observed, TASK.labelled


def logistic(**parameters):
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, **parameters))


def few_trees():
    return LateTreesClassifier(n_estimators=20, random_state=0)


LATE = [LateFusionClassifier, few_trees]
ALL = [*LATE, MeanImputedLogistic, MeanImputedSVM]


def only_view(v):
    """The samples that a view has, and that view alone."""
    rows = SEEN[:, v]
    return [TASK.data.views[v][rows]], TASK.y[rows]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (LateFusionClassifier(C=3.0), logistic(C=3.0)),
        (LateFusionClassifier(class_weight="balanced"), logistic(class_weight="balanced")),
        (MeanImputedLogistic(C=0.1), logistic(C=0.1)),
        (
            LateTreesClassifier(n_estimators=20, random_state=3),
            ExtraTreesClassifier(20, random_state=int(np.random.default_rng(3).integers(2**31))),
        ),
    ],
)
def test_on_one_view_it_is_the_classifier_of_scikit_learn(ours, theirs):
    views, y = only_view(0)
    theirs.fit(views[0][y >= 0], y[y >= 0])
    shares = ours.fit(views, y).label_distributions_
    # A class that no tree votes for has half a tree.
    atol = 0.05 if isinstance(ours, LateTreesClassifier) else 1e-12
    np.testing.assert_allclose(shares, theirs.predict_proba(views[0]), atol=atol)
    np.testing.assert_array_equal(ours.predict(views), theirs.predict(views[0]))


def test_the_machine_decides_as_that_of_scikit_learn():
    views, y = only_view(1)
    for codes in (y, np.where(y == 2, 1, y)):
        theirs = make_pipeline(StandardScaler(), SVC()).fit(views[0][y >= 0], codes[y >= 0])
        ours = MeanImputedSVM().fit(views, codes)
        np.testing.assert_array_equal(ours.predict(views), theirs.predict(views[0]))


@pytest.mark.parametrize("method", LATE)
def test_a_sample_with_one_view_gets_the_answer_of_that_view(method):
    model = method().fit(TASK.data, TASK.y)
    for v in range(3):
        alone = SEEN[:, v] & (SEEN.sum(axis=1) == 1)
        assert alone.sum() > 3
        answer = model.estimators_[v].predict(TASK.data.views[v][alone])
        np.testing.assert_array_equal(model.predict(TASK.data)[alone], answer)


def test_the_fused_share_is_the_normed_geometric_mean():
    model = LateFusionClassifier().fit(TASK.data, TASK.y)
    row = np.flatnonzero(SEEN.all(axis=1))[0]
    shares = [model.estimators_[v].predict_proba(TASK.data.views[v][[row]])[0] for v in range(3)]
    mean = np.prod(shares, axis=0) ** (1 / 3)
    np.testing.assert_allclose(model.label_distributions_[row], mean / mean.sum(), atol=1e-12)


def test_joined_views_are_those_filled_with_means():
    rows = np.hstack(TASK.data.views)
    X = np.where(np.isnan(rows), np.nanmean(rows, axis=0), rows)
    alone = logistic().fit(X[LABELLED], TASK.y[LABELLED])
    model = MeanImputedLogistic().fit(TASK.data, TASK.y)
    np.testing.assert_allclose(model.label_distributions_, alone.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("method", [LateFusionClassifier, MeanImputedLogistic, MeanImputedSVM])
def test_views_in_another_order_change_nothing(method):
    order = [2, 0, 1]
    turned = [TASK.data.views[v] for v in order]
    model, other = method().fit(TASK.data, TASK.y), method().fit(turned, TASK.y)
    np.testing.assert_allclose(other.label_distributions_, model.label_distributions_, atol=1e-4)


@pytest.mark.parametrize("method", [LateFusionClassifier, MeanImputedLogistic, MeanImputedSVM])
def test_rows_in_another_order_change_nothing(method):
    order = np.random.default_rng(1).permutation(150)
    model = method().fit(TASK.data, TASK.y)
    other = method().fit(TASK.data[order], TASK.y[order])
    np.testing.assert_allclose(
        other.label_distributions_, model.label_distributions_[order], atol=1e-4
    )


@pytest.mark.parametrize("method", ALL)
def test_new_samples_are_treated_as_those_of_fit(method):
    model = method().fit(TASK.data, TASK.y)
    alone = np.vstack([model.predict_proba(TASK.data[[i]]) for i in range(20)])
    np.testing.assert_allclose(alone, model.label_distributions_[:20], atol=1e-12)


@pytest.mark.parametrize("method", LATE)
def test_only_labelled_samples_teach(method):
    kept = np.flatnonzero(LABELLED | (np.arange(150) % 2 == 0))
    model = method().fit(TASK.data, TASK.y)
    fewer = method().fit(TASK.data[kept], TASK.y[kept])
    np.testing.assert_array_equal(fewer.predict_proba(TASK.data), model.predict_proba(TASK.data))


def test_a_view_says_nothing_of_a_class_that_it_was_not_shown():
    """Class 2 has no label in view 1: that view must not hold it down where view 0 is sure."""
    mask = np.ones((150, 2), dtype=bool)
    y = np.where(np.arange(150) < 90, BLOBS.y, -1)
    mask[(y == 2), 1] = False
    views = list(BLOBS.views[:2])
    model = LateFusionClassifier().fit(views, y, mask=mask)
    shares = class_shares(model.estimators_[1], views[1], 3)
    np.testing.assert_allclose(shares[:, 2], 1 / 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    first = model.estimators_[0].predict_proba(views[0])
    sure = (y < 0) & (first[:, 2] > 0.95)
    assert sure.sum() > 3
    np.testing.assert_array_equal(model.transduction_[sure], 2)


def test_a_view_without_labels_of_two_classes_does_not_judge():
    mask = np.ones((150, 2), dtype=bool)
    y = np.where(np.arange(150) < 90, BLOBS.y, -1)
    mask[y > 0, 1] = False
    mask[140:, 0] = False
    views = list(BLOBS.views[:2])
    with pytest.warns(DataWarning, match="10 of 150 samples"):
        model = LateFusionClassifier().fit(views, y, mask=mask)
    assert model.estimators_[1] is None
    np.testing.assert_array_equal(np.flatnonzero(model.unreachable_), np.arange(140, 150))
    first = LateFusionClassifier().fit([views[0][:140]], y[:140])
    np.testing.assert_array_equal(model.transduction_[:140], first.transduction_)
    # Nobody knows anything of the others: they get the shares of the labels.
    shares = np.bincount(y[y >= 0]) / 90
    np.testing.assert_allclose(model.label_distributions_[140:], np.tile(shares, (10, 1)))
    np.testing.assert_allclose(
        model.predict_proba(views, mask), model.label_distributions_, atol=1e-12
    )


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LateFusionClassifier(C=0), r"C of LateFusionClassifier .* got 0"),
        (LateTreesClassifier(n_estimators=0), r"n_estimators of .* got 0"),
        (MeanImputedSVM(class_weight="equal"), r"class_weight of .* got 'equal'"),
    ],
)
def test_parameters_are_checked(model, message):
    with pytest.raises(InvalidParameterError, match=message):
        model.fit(TASK.data, TASK.y)
