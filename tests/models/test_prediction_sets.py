"""Prediction sets of fitted models."""

import io
import warnings
from itertools import pairwise

import numpy as np
import pytest

from viewmend import MendClassifier, load, save
from viewmend.core.advice.conformal import least_shares
from viewmend.core.advice.set_levels import share_levels
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


def test_sets_are_the_classes_above_one_share_of_the_model_at_its_temperature(model):
    held_out, levels = model.calibration_, model.fitted_state_.levels
    shares = tempered(held_out.shares, held_out.temperature)
    least = least_shares(shares, held_out.codes, levels, 0.1, by_class=False)
    unlabelled = TASK.y < 0
    expected = tempered(model.label_distributions_, levels.temperature) >= least
    sets = model.predict_set(alpha=0.1)
    np.testing.assert_array_equal(sets[unlabelled], expected[unlabelled])
    expected = tempered(model.predict_proba(NEW), 0.95 * levels.temperature) >= least
    np.testing.assert_array_equal(model.predict_set(NEW), expected)


def test_levels_of_the_model_are_those_of_its_samples_without_a_label(model):
    levels = model.fitted_state_.levels
    shares = tempered(model.label_distributions_, levels.temperature)[TASK.y < 0]
    np.testing.assert_allclose(share_levels(shares), levels.fit, rtol=1e-9)
    # It is surer than fits that hold labels out, and is believed in part.
    sure = model.label_distributions_[TASK.y < 0].max(axis=1).mean()
    assert shares.max(axis=1).mean() <= sure


def test_where_every_sample_has_a_label_those_held_out_stand_for_others():
    fitted = MendClassifier(**MODEL).fit(BLOBS.views, BLOBS.y)
    levels, held_out = fitted.fitted_state_.levels, fitted.calibration_
    shares = tempered(held_out.shares, held_out.temperature)
    np.testing.assert_allclose(levels.held_out, share_levels(shares))
    sets = fitted.predict_set([view[:50] for view in BLOBS.views], alpha=0.1)
    assert 0.8 < sets[np.arange(50), BLOBS.y[:50]].mean() <= 1


def test_order_of_the_samples_does_not_matter(model):
    rows = np.random.default_rng(0).permutation(300)
    shuffled = MendClassifier(**MODEL).fit(TASK.data[rows], TASK.y[rows])
    np.testing.assert_array_equal(
        shuffled.predict_set(alpha=0.2), model.predict_set(alpha=0.2)[rows]
    )


def test_given_labels_are_their_sets_unless_they_are_in_doubt(model):
    labelled = TASK.y >= 0
    sets = model.predict_set()
    np.testing.assert_array_equal(sets[labelled], TASK.y[labelled][:, None] == model.classes_)
    doubting = MendClassifier(**MODEL, label_noise=0.3).fit(TASK.data, TASK.y)
    sizes = doubting.predict_set(alpha=0.05)[labelled].sum(axis=1)
    assert (sizes > 1).any()


def test_sets_hold_the_right_class_as_often_as_promised():
    """On average over fits: the mean of 12 is within three standard errors of the promise.

    Neither is more often promised: sets would be larger than they need to be.
    """
    covered = []
    for seed in range(12):
        blobs = make_multiview_blobs(300, n_views=2, noise=4.0, n_classes=3, random_state=seed)
        task = hide(blobs.views, blobs.y, missing_rate=0.4, label_rate=0.3, random_state=seed)
        fitted = MendClassifier(n_landmarks=40, n_rounds=2).fit(task.data, task.y)
        unlabelled = np.flatnonzero(task.y < 0)
        sets = fitted.predict_set(alpha=0.2)[unlabelled]
        covered.append(sets[np.arange(len(unlabelled)), task.y_true[unlabelled]].mean())
    error = np.std(covered) / np.sqrt(12)
    assert abs(np.mean(covered) - 0.8) < 3 * error


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


@pytest.mark.parametrize("alpha", [0, 1, -0.1, "0.1", None, [0.1, 0.2]])
def test_alpha_is_a_share(model, alpha):
    with pytest.raises(InvalidParameterError, match="alpha must be"):
        model.predict_set(NEW, alpha=alpha)


@pytest.mark.parametrize("wrong", [{"by_class": "no"}, {"by_class": 1}, {"allow_empty": "no"}])
def test_switches_are_not_words(model, wrong):
    with pytest.raises(InvalidParameterError, match=f"{next(iter(wrong))} must be one of True"):
        model.predict_set(NEW, **wrong)


def test_labels_must_have_been_held_out():
    fitted = MendClassifier(**MODEL, calibration=None).fit(TASK.data, TASK.y)
    with pytest.raises(InvalidParameterError, match="fit with calibration='cross_fit'"):
        fitted.predict_set(NEW)


def test_without_any_held_out_label_sets_have_every_class():
    """Every class has one label, which cannot be held out."""
    first = [np.flatnonzero(TASK.y == code)[0] for code in range(3)]
    y = np.where(np.isin(np.arange(300), first), TASK.y, -1)
    with pytest.warns(DataWarning, match="none can be held out"):
        fitted = MendClassifier(**MODEL).fit(TASK.data, y)
    with pytest.warns(DataWarning, match="cannot be promised with 0 held-out labels"):
        assert fitted.predict_set(NEW, alpha=0.5).all()


def test_sets_of_views_that_tell_nothing_are_as_large_as_the_promise_asks_for():
    """With three classes at chance, 80 % takes at least about 80 % of all classes."""
    rng = np.random.default_rng(0)
    views, y = [rng.normal(size=(300, 5)) for _ in range(2)], np.arange(300) % 3
    known = np.where(rng.random(300) < 0.3, y, -1)
    with pytest.warns(DataWarning, match="no better than chance"):
        fitted = MendClassifier(**MODEL).fit(views, known)
    sets = fitted.predict_set(alpha=0.2)[known < 0]
    covered = sets[np.arange(len(sets)), y[known < 0]].mean()
    assert covered == pytest.approx(0.8, abs=0.12)
    assert sets.mean() == pytest.approx(covered, abs=0.08)


def test_smaller_promises_of_misses_give_larger_sets(model):
    """Down to the smallest number there is, for which no number of labels is enough."""
    alphas = [0.9, 0.5, 0.2, 0.1, 0.05, 0.02, 1e-3, 1e-9, 5e-324]
    for by_class in (False, True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            found = [model.predict_set(NEW, alpha=alpha, by_class=by_class) for alpha in alphas]
        assert all((few <= many).all() for few, many in pairwise(found))
        assert found[-1].all()
