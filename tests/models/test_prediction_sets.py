"""Prediction sets of fitted models."""

import io
from itertools import pairwise

import numpy as np
import pytest

from viewmend import MendClassifier, load, save
from viewmend.core.common.calibration import tempered
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import DataWarning, InvalidParameterError

MODEL = {"n_landmarks": 60, "n_rounds": 2}
BLOBS = make_multiview_blobs(300, n_views=2, noise=4.0, n_classes=3, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.4, random_state=0)
NEW = [
    np.where(seen[:, None], view, np.nan)[:50]
    for view, seen in zip(TASK.data.views, TASK.data.observed.T, strict=True)
]


@pytest.fixture(scope="module")
def model():
    return MendClassifier(**MODEL).fit(TASK.data, TASK.y)


def test_sets_are_the_classes_above_the_exact_quantile_of_the_held_out_shares(model):
    """The 12th smallest of 120 held-out shares, for one miss in ten."""
    held_out = model.calibration_
    shares = tempered(held_out.shares, held_out.temperature)
    own = np.sort(shares[np.arange(held_out.n_samples), held_out.codes])
    least = own[int(0.1 * (held_out.n_samples + 1)) - 1]
    unlabelled, as_sure = TASK.y < 0, held_out.set_temperature
    expected = tempered(model.label_distributions_, as_sure) >= least
    sets = model.predict_set(alpha=0.1)
    np.testing.assert_array_equal(sets[unlabelled], expected[unlabelled])
    expected = tempered(model.predict_proba(NEW), as_sure) >= least
    np.testing.assert_array_equal(model.predict_set(NEW), expected)


def test_the_model_is_compared_as_sure_as_the_held_out_samples_on_average(model):
    shares = tempered(model.label_distributions_, model.calibration_.set_temperature)
    sure = shares[TASK.y < 0].max(axis=1).mean()
    assert sure == pytest.approx(model.calibration_.confidence.mean(), abs=1e-9)


def test_given_labels_are_their_sets_unless_they_are_in_doubt(model):
    labelled = TASK.y >= 0
    sets = model.predict_set()
    np.testing.assert_array_equal(sets[labelled], TASK.y[labelled][:, None] == model.classes_)
    doubting = MendClassifier(**MODEL, label_noise=0.3).fit(TASK.data, TASK.y)
    sizes = doubting.predict_set(alpha=0.05)[labelled].sum(axis=1)
    assert (sizes > 1).any()


def test_sets_hold_the_right_class_as_often_as_promised():
    """On average over fits: the mean of 12 is within three standard errors of the promise."""
    covered = []
    for seed in range(12):
        blobs = make_multiview_blobs(300, n_views=2, noise=4.0, n_classes=3, random_state=seed)
        task = hide(blobs.views, blobs.y, missing_rate=0.4, label_rate=0.3, random_state=seed)
        fitted = MendClassifier(n_landmarks=40, n_rounds=2).fit(task.data, task.y)
        unlabelled = np.flatnonzero(task.y < 0)
        sets = fitted.predict_set(alpha=0.2)[unlabelled]
        covered.append(sets[np.arange(len(unlabelled)), task.y_true[unlabelled]].mean())
    error = np.std(covered) / np.sqrt(12)
    assert np.mean(covered) > 0.8 - 3 * error


def test_sets_shrink_as_more_misses_are_allowed(model):
    sizes = [model.predict_set(NEW, alpha=alpha) for alpha in (0.02, 0.1, 0.3, 0.6)]
    for larger, smaller in pairwise(sizes):
        assert (larger >= smaller).all()
        assert larger.sum() > smaller.sum()


def test_sets_that_may_not_be_empty_have_the_most_probable_class(model):
    with_empty, filled = (
        model.predict_set(NEW, alpha=0.6, allow_empty=allowed) for allowed in (True, False)
    )
    empty = ~with_empty.any(axis=1)
    assert empty.any()
    np.testing.assert_array_equal(filled[~empty], with_empty[~empty])
    np.testing.assert_array_equal(
        model.classes_[filled[empty].argmax(axis=1)], model.predict([view[empty] for view in NEW])
    )
    assert (filled[empty].sum(axis=1) == 1).all()


def test_too_few_labels_for_the_promise_are_told_and_sets_have_every_class(model):
    with pytest.warns(
        DataWarning, match="cannot be promised with 120 held-out labels, which takes 199"
    ):
        sets = model.predict_set(alpha=0.005)
    assert sets[TASK.y < 0].all()
    with pytest.warns(DataWarning, match="held-out labels of a class"):
        assert model.predict_set(NEW, alpha=0.01, by_class=True).all()


def test_a_class_without_held_out_labels_is_in_every_set_that_is_promised_by_class():
    y = TASK.y.copy()
    y[np.flatnonzero(y == 2)[1:]] = -1
    fitted = MendClassifier(**MODEL).fit(TASK.data, y)
    with pytest.warns(DataWarning, match="with 0 held-out labels of a class"):
        sets = fitted.predict_set(NEW, alpha=0.3, by_class=True)
    assert sets[:, 2].all()
    assert not sets[:, :2].all()


def test_samples_of_which_nothing_is_known_may_be_of_any_class(model):
    mask = np.ones((50, 2), dtype=bool)
    mask[3] = False
    with pytest.warns(DataWarning, match="no view at all"):
        sets = model.predict_set([np.nan_to_num(view) + 1e-3 for view in NEW], mask, alpha=0.5)
    assert sets[3].all()
    assert not sets.all()


def test_sets_of_a_saved_model_and_of_a_copy_for_predictions_are_the_same(model):
    file = io.BytesIO()
    save(model, file)
    file.seek(0)
    sets = model.predict_set(NEW)
    np.testing.assert_array_equal(load(file).predict_set(NEW), sets)
    np.testing.assert_array_equal(model.for_prediction().predict_set(NEW), sets)


@pytest.mark.parametrize("alpha", [0, 1, -0.1, "0.1", None])
def test_alpha_is_a_share(model, alpha):
    with pytest.raises(InvalidParameterError, match="alpha must be"):
        model.predict_set(NEW, alpha=alpha)


def test_labels_must_have_been_held_out():
    fitted = MendClassifier(**MODEL, calibration=None).fit(TASK.data, TASK.y)
    with pytest.raises(InvalidParameterError, match="fit with calibration='cross_fit'"):
        fitted.predict_set(NEW)
