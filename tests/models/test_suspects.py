"""Labels that the rest of the data contradicts: found, and taken for what they are."""

import io

import numpy as np
import pytest

from viewmend import MendClassifier, load, save
from viewmend.callbacks import Checkpoint
from viewmend.core.mend.labelling import label_likelihood
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import InvalidParameterError
from viewmend.models.mend_problem import possible_noise
from viewmend.models.suspects import judged_labels

MODEL = {"n_landmarks": 60, "n_rounds": 3}
BLOBS = make_multiview_blobs(240, n_views=3, noise=1.0, n_classes=4, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.25, random_state=0)
LABELLED = np.flatnonzero(TASK.y >= 0)


def flipped(rows):
    y = TASK.y.copy()
    y[rows] = (y[rows] + 1) % 4
    return y


def fit(y=TASK.y, data=TASK.data, **parameters):
    return MendClassifier(**(MODEL | parameters)).fit(data, y)


@pytest.fixture(scope="module")
def clean():
    return fit()


@pytest.fixture(scope="module")
def noisy():
    """A tenth of the labels wrong."""
    return fit(flipped(LABELLED[::10]))


@pytest.mark.parametrize("row", LABELLED[[3, 17, 40]])
def test_the_one_wrong_label_among_separated_classes_is_the_first_suspect(row):
    suspects = fit(flipped([row])).suspect_labels()
    assert suspects.samples[0] == row
    assert suspects.given[0] == (TASK.y_true[row] + 1) % 4
    assert suspects.suggested[0] == TASK.y_true[row]
    assert suspects.scores[0] > 0.5 > suspects.scores[1]


def test_separated_classes_with_right_labels_have_no_noise(clean):
    suspects = clean.suspect_labels()
    assert suspects.noise_rate == 0
    assert suspects.n_suspects == 0
    np.testing.assert_array_equal(suspects.suggested, suspects.given)
    np.testing.assert_array_equal(suspects.counts, np.diag(np.bincount(TASK.y[LABELLED])))
    np.testing.assert_array_equal(np.sort(suspects.samples), LABELLED)


def test_what_is_found_with_little_certainty_contradicts_no_label():
    """Without regressions all other classes together are more probable than the right one."""
    blobs = make_multiview_blobs(160, n_views=3, noise=2.0, n_classes=4, random_state=0)
    task = hide(blobs.views, blobs.y, missing_rate=0.35, label_rate=0.25, random_state=0)
    suspects = fit(task.y, task.data, n_rounds=0).suspect_labels()
    assert (suspects.scores > 0.5).all()
    np.testing.assert_array_equal(suspects.suggested, suspects.given)
    assert "the rest of the data says" not in suspects.summary()


def test_wrong_labels_come_first_and_are_counted(noisy):
    suspects, wrong = noisy.suspect_labels(), LABELLED[::10]
    np.testing.assert_array_equal(np.sort(suspects.samples[: len(wrong)]), wrong)
    assert suspects.noise_rate == pytest.approx(0.1, abs=0.02)
    assert (np.diff(suspects.scores) <= 0).all()
    right = TASK.y_true[suspects.samples]
    expected = np.zeros((4, 4))
    np.add.at(expected, (suspects.given, right), 1)
    np.testing.assert_allclose(suspects.counts, expected, atol=0.5)
    assert suspects.summary().count("\n") == len(wrong)


def test_a_label_does_not_speak_for_itself():
    """What the rest says of a sample is the same whichever label it has, but for the echo of it.

    In a clear case the echo over the graph is small beside the labels of others.
    """
    row = LABELLED[5]
    own, other = (fit(y).suspect_labels() for y in (TASK.y, flipped([row])))
    told = [s.suggested[np.flatnonzero(s.samples == row)[0]] for s in (own, other)]
    assert told == [TASK.y_true[row]] * 2


def test_order_of_rows_and_names_of_classes_do_not_matter(noisy):
    rows = np.random.default_rng(0).permutation(240)
    y = flipped(LABELLED[::10])
    names = np.array(["d", "a", "c", "b"])
    renamed = np.where(y[rows] < 0, "", names[y[rows]])
    other = fit(renamed, TASK.data[rows]).suspect_labels()
    first = noisy.suspect_labels()
    np.testing.assert_array_equal(rows[other.samples], first.samples)
    np.testing.assert_array_equal(other.given, names[first.given])
    np.testing.assert_allclose(other.scores, first.scores, atol=1e-5)
    assert other.noise_rate == pytest.approx(first.noise_rate)


def test_suspects_of_a_saved_model_are_the_same(noisy):
    file = io.BytesIO()
    save(noisy, file)
    file.seek(0)
    told, again = noisy.suspect_labels(), load(file).suspect_labels()
    np.testing.assert_array_equal(told.samples, again.samples)
    np.testing.assert_array_equal(told.scores, again.scores)
    with pytest.raises(InvalidParameterError, match="for_prediction has forgotten"):
        noisy.for_prediction().suspect_labels()


def test_labels_of_samples_without_any_view_are_not_judged():
    data, y = TASK.data, flipped([LABELLED[0]])
    mask = data.observed.copy()
    mask[LABELLED[1]] = False
    with pytest.warns(UserWarning, match="no view at all"):
        model = MendClassifier(**MODEL).fit(data.views, y, mask=mask)
    suspects = model.suspect_labels()
    assert suspects.samples[0] == LABELLED[0]
    assert LABELLED[1] not in suspects.samples


# ------------------------------------------------------------------ labels in doubt


def test_without_doubt_every_label_is_kept(noisy):
    y = flipped(LABELLED[::10])
    np.testing.assert_array_equal(noisy.transduction_[LABELLED], y[LABELLED])
    assert noisy.label_noise_ == 0
    assert not noisy.decide(threshold=1.0).abstained[LABELLED].any()


@pytest.mark.parametrize("noise", [0.1, 0.3, "auto"])
def test_wrong_labels_in_doubt_are_not_kept_and_right_ones_are(noise):
    model = fit(flipped(LABELLED[::10]), label_noise=noise)
    np.testing.assert_array_equal(model.transduction_[LABELLED], TASK.y_true[LABELLED])
    assert model.label_noise_ == pytest.approx(0.1 if noise == "auto" else noise, abs=0.02)


def test_labels_cannot_be_wrong_more_often_than_guesses():
    """Of guesses, every label is equally probable in every class; beyond, it speaks against its."""
    np.testing.assert_allclose(label_likelihood(np.eye(4), possible_noise(0.75, 4)), 0.25)
    with pytest.raises(InvalidParameterError, match=r"at most 0\.75, .* 4 classes, got 0\.76"):
        fit(label_noise=0.76, n_rounds=0)


def test_right_labels_of_separated_classes_are_kept_by_an_estimate_of_no_noise(clean):
    """No noise is found, so that the fit is the one without doubt, bit by bit."""
    model = fit(label_noise="auto")
    assert model.label_noise_ == 0
    np.testing.assert_array_equal(model.transduction_, clean.transduction_)
    unlabelled = TASK.y < 0
    np.testing.assert_array_equal(
        model.label_distributions_[unlabelled], clean.label_distributions_[unlabelled]
    )


def test_a_label_is_outweighed_once_the_noise_makes_it_less_probable_than_the_rest():
    """The posterior of the class, given the label and what others say: by hand."""
    row = LABELLED[0]
    model = fit(flipped([row]), label_noise=0.2, calibration=None)
    rows, judged = judged_labels(model.fitted_state_, model.graph_)
    others = judged[rows == row][0][(TASK.y_true[row] + 1) % 4]
    shares = model.label_distributions_[row]
    given, right = (TASK.y_true[row] + 1) % 4, TASK.y_true[row]
    odds = 0.8 / (0.2 / 3) * others / (1 - others)
    assert shares[given] / (1 - shares[given]) == pytest.approx(odds, rel=1e-6)
    assert shares[right] > shares[given]


def test_explanations_of_labels_in_doubt_sum_to_the_log_odds():
    blobs = make_multiview_blobs(150, n_views=2, noise=4.0, n_classes=3, random_state=1)
    task = hide(blobs.views, blobs.y, missing_rate=0.3, label_rate=0.3, random_state=1)
    model = MendClassifier(**MODEL, label_noise=0.2, calibration=None).fit(task.data, task.y)
    rows = np.arange(150)
    told = model.explain(rows)
    place = {label: i for i, label in enumerate(model.classes_.tolist())}
    labels, rivals = (np.array([place[x] for x in y.tolist()]) for y in (told.labels, told.rivals))
    shares = model.label_distributions_
    odds = np.log(shares[rows, labels] / shares[rows, rivals])
    np.testing.assert_allclose(told.log_odds.sum(axis=1), odds, atol=1e-3)
    assert told.reasons[-1] == "given label"
    assert not told.log_odds[task.y < 0, -1].any()
    np.testing.assert_array_equal(told.labels, model.transduction_)


def test_a_fit_that_goes_on_from_a_checkpoint_doubts_the_same(tmp_path):
    y, path = flipped(LABELLED[::10]), tmp_path / "kept"
    whole, first, second = (
        MendClassifier(**MODEL, label_noise="auto", calibration=None) for _ in range(3)
    )
    first.set_callbacks(Checkpoint(path), lambda record, _: record.iteration == 4)
    second.set_callbacks(Checkpoint(path))
    for model in (whole, first, second):
        model.fit(TASK.data, y)
    assert (first.n_iter_, second.n_iter_) == (4, 5)
    np.testing.assert_array_equal(second.label_distributions_, whole.label_distributions_)
