"""Samples that fit none of the known classes."""

import io
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import roc_auc_score

from viewmend import MendClassifier, load, save
from viewmend.core.advice.unknown import label_reach, unknown_scores
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import DataWarning, InvalidParameterError

MODEL = {"n_landmarks": 60, "n_rounds": 2}
BLOBS = make_multiview_blobs(400, n_views=3, noise=1.5, n_classes=5, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.25, random_state=0)
VIEWS = [
    np.where(seen[:, None], view, np.nan)
    for view, seen in zip(TASK.data.views, TASK.data.observed.T, strict=True)
]
# One class is not known, and neither are some samples of the others.
STRANGE = TASK.y_true == 4
FITTED = ~STRANGE & (np.arange(400) % 4 > 0)
NEW = [view[~FITTED] for view in VIEWS]


def some(rows):
    return [view[rows] for view in VIEWS]


@pytest.fixture(scope="module")
def model():
    return MendClassifier(**MODEL).fit(some(FITTED), TASK.y[FITTED])


@pytest.fixture(scope="module")
def with_strange():
    """The unknown class is among the samples, without any label."""
    return MendClassifier(**MODEL).fit(VIEWS, np.where(STRANGE, -1, TASK.y))


def test_new_samples_of_a_class_that_the_fit_has_not_seen_are_told_from_the_others(model):
    scores = model.unknown_score(NEW)
    assert roc_auc_score(STRANGE[~FITTED], scores) > 0.98
    assert (scores[STRANGE[~FITTED]] >= 0.95).mean() > 0.9


def test_samples_of_the_fit_whose_class_has_no_label_are_told_from_the_others(with_strange):
    free, scores = TASK.y_true[TASK.y < 0] == 4, with_strange.unknown_score()[TASK.y < 0]
    assert roc_auc_score(free, scores) > 0.95


def test_a_sample_far_from_everything_is_unknown_whichever_views_it_has(model):
    rng = np.random.default_rng(0)
    directions = [rng.normal(size=(6, view.shape[1])) for view in VIEWS]
    far = [100 * each for each in directions]
    mask = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 1, 1]], dtype=bool)
    decision = model.decide(far, mask, unknown_rate=0.05)
    assert decision.unknown.all()
    assert decision.abstained.all()


def test_at_most_a_share_of_samples_like_the_labelled_ones_is_strange(model):
    """The share of false alarms that is asked for, by counting the labelled samples themselves."""
    scores = model.unknown_score()[TASK.y[FITTED] >= 0]
    n = len(scores)
    for rate in (0.05, 0.1, 0.3):
        assert (scores >= 1 - rate).sum() <= rate * (n + 1)
    known = ~STRANGE[~FITTED]
    assert (model.unknown_score(NEW)[known] >= 0.9).mean() < 0.2


@pytest.mark.parametrize("n", [9, 19, 30])
def test_scores_are_ranks_among_exchangeable_samples(n):
    """Each of n + 1 samples is the new one once: at most rate (n + 1) of them are strange."""
    values = np.random.default_rng(n).normal(size=n + 1)
    scores = np.array([unknown_scores(values[[i]], np.delete(values, i))[0] for i in range(n + 1)])
    for rate in np.arange(1, n + 1) / (n + 1):
        assert (scores >= 1 - rate).sum() <= round(rate * (n + 1))
    np.testing.assert_array_equal(np.argsort(scores), np.argsort(values))


def test_labels_reach_a_sample_without_its_own():
    """Two pairs of samples, one label in each: nothing but its own label could reach it."""
    pair = np.array([[0.0, 1.0], [1.0, 0.0]])
    graph = csr_array(np.kron(np.eye(2), pair))
    reach = label_reach(graph, np.array([0, -1, 1, -1]), np.arange(2), np.array([0.5, 0.5]), 0.9)
    # From one sample to the other of a pair: 0.9 / (1 - 0.81), times the prior of its class.
    np.testing.assert_allclose(reach, [0, 0.5 * 0.9 / 0.19, 0, 0.5 * 0.9 / 0.19], atol=1e-5)


def test_labels_reach_labelled_samples_as_much_as_others_of_their_class():
    """Two complete graphs of 40 samples, 24 and 6 of them labelled, at shares of a third and two.

    A sample of a complete graph receives the same from every other, so that what a tenth of the
    labels would add is what is added for it, and 1 / 40 is what comes back from the own label.
    """
    block = np.ones((40, 40)) - np.eye(40)
    graph = csr_array(np.kron(np.eye(2), block))
    codes = np.full(80, -1)
    codes[:24], codes[40:46] = 0, 1
    reach = label_reach(graph, codes, np.arange(30), np.array([1 / 3, 2 / 3]), 0.9)
    np.testing.assert_allclose(reach[:24], reach[39], rtol=0.05)
    np.testing.assert_allclose(reach[40:46], reach[79], rtol=0.05)
    assert reach[79] == pytest.approx(2 * reach[39], rel=1e-4)


def test_labels_of_all_classes_reach_labelled_samples_as_much_as_others():
    """A complete graph of 17 and 6 labels: parts of unequal size, which take more of one class."""
    graph = csr_array(np.ones((60, 60)) - np.eye(60))
    codes = np.full(60, -1)
    codes[:17], codes[17:23] = 0, 1
    reach = label_reach(graph, codes, np.arange(23), np.array([0.4, 0.6]), 0.9)
    np.testing.assert_allclose(reach, reach[59], rtol=1e-4)


def test_decisions_stay_as_they_are_unless_unknown_samples_are_asked_for(model):
    plain, asked = model.decide(NEW), model.decide(NEW, unknown_rate=0.05)
    assert not plain.unknown.any()
    assert "fit no class" not in repr(plain)
    assert f"; {asked.unknown.sum()} fit no class" in repr(asked)
    np.testing.assert_array_equal(asked.labels, plain.labels)
    np.testing.assert_array_equal(asked.unknown, model.unknown_score(NEW) >= 0.95)
    np.testing.assert_array_equal(asked.abstained, plain.abstained | asked.unknown)


def test_samples_with_a_label_are_of_a_known_class(with_strange):
    labelled = (TASK.y >= 0) & ~STRANGE
    assert not with_strange.decide(unknown_rate=0.5).unknown[labelled].any()


def test_a_sample_has_the_same_score_whatever_the_other_new_samples_are(model):
    alone = model.unknown_score([view[5:6] for view in NEW])
    np.testing.assert_allclose(alone, model.unknown_score(NEW)[5:6], rtol=1e-4)


def test_order_of_rows_does_not_matter(model):
    rows = np.flatnonzero(FITTED)[np.random.default_rng(1).permutation(FITTED.sum())]
    other = MendClassifier(**MODEL).fit(some(rows), TASK.y[rows])
    np.testing.assert_array_equal(other.unknown_score(NEW), model.unknown_score(NEW))
    back = np.argsort(np.argsort(rows))
    np.testing.assert_allclose(other.unknown_score(), model.unknown_score()[back], atol=1e-4)


def test_a_saved_model_and_a_copy_for_predictions_say_the_same(model):
    file = io.BytesIO()
    save(model, file)
    file.seek(0)
    again, scores = load(file), model.unknown_score(NEW)
    np.testing.assert_array_equal(again.unknown_score(NEW), scores)
    np.testing.assert_array_equal(again.unknown_score(), model.unknown_score())
    np.testing.assert_array_equal(model.for_prediction().unknown_score(NEW), scores)


def test_samples_that_cannot_be_compared_have_no_score():
    mask = TASK.data.observed.copy()
    mask[7] = False
    fitted = MendClassifier(**MODEL, graph_samples=250)
    with pytest.warns(DataWarning, match="no view at all"):
        fitted.fit(TASK.data.views, TASK.y, mask=mask)
    scores = fitted.unknown_score()
    assert np.isnan(scores[7])
    assert np.isfinite(scores).sum() == 250
    outside = np.flatnonzero(np.isnan(scores) & mask.any(axis=1))
    assert np.isfinite(fitted.unknown_score(some(outside))).all()


def test_new_samples_without_any_view_are_warned_of_once_and_rightly(model):
    blank = [view.copy() for view in NEW]
    for view in blank:
        view[:3] = np.nan
    with pytest.warns(DataWarning) as noted:
        scores = model.unknown_score(blank)
    assert [str(note.message) for note in noted] == [
        f"3 of {len(scores)} samples have no view at all and get no score, NaN; fill in what is "
        f"known of them"
    ]
    assert np.isnan(scores[:3]).all()
    with pytest.warns(DataWarning) as noted:
        decision = model.decide(blank, unknown_rate=0.1)
    assert len(noted) == 1
    assert "get the class shares" in str(noted[0].message)
    np.testing.assert_array_equal(decision.unknown, scores >= 0.9)


def test_without_regressions_distances_tell():
    fitted = MendClassifier(n_landmarks=60, n_rounds=0).fit(some(FITTED), TASK.y[FITTED])
    assert roc_auc_score(STRANGE[~FITTED], fitted.unknown_score(NEW)) > 0.95


def test_too_few_labels_for_the_rate_raise_no_alarm(model):
    with pytest.warns(DataWarning, match="takes 999 or more: no sample is taken for unknown"):
        assert not model.decide(NEW, unknown_rate=0.001).unknown.any()
    with pytest.raises(InvalidParameterError, match="unknown_rate must be"):
        model.decide(NEW, unknown_rate=1.5)
    plain = MendClassifier(**MODEL, calibration=None).fit(some(FITTED), TASK.y[FITTED])
    with pytest.raises(InvalidParameterError, match="fit with calibration='cross_fit'"):
        plain.unknown_score(NEW)


def test_rounding_raises_no_need_of_labels():
    """One false alarm in 161 takes 160 labels, though 161 times that rate is less than one."""
    rate = 1 / 161
    assert rate * 161 < 1
    y = np.where(np.arange(400) < 160, TASK.y_true, -1)
    fitted = MendClassifier(**MODEL).fit(TASK.data, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        fitted.decide(unknown_rate=rate)


def test_no_number_of_labels_is_enough_for_the_smallest_rate(model):
    with pytest.warns(DataWarning, match="cannot be promised"):
        assert not model.decide(NEW, unknown_rate=5e-324).unknown.any()
