"""Confidence and accuracy that held-out labels have shown, or a word that they have not."""

import numpy as np
import pytest
from sklearn.base import clone

from viewmend import AGFTIClassifier, MendClassifier
from viewmend.core.common.accuracy import AccuracyEstimate
from viewmend.datasets import hide, load_uci_digits, make_multiview_blobs
from viewmend.exceptions import DataWarning, InvalidViewsError

N_LABELS = 60
MEND = MendClassifier(n_landmarks=60)


def noise(seed, n_samples=300, n_classes=3):
    """Views that tell nothing of the classes, and labels of the first samples."""
    rng = np.random.default_rng(seed)
    views = [rng.normal(size=(n_samples, 20)) for _ in range(2)]
    y = rng.integers(0, n_classes, n_samples)
    return views, y, np.where(np.arange(n_samples) < N_LABELS, y, -1)


@pytest.mark.parametrize("seed", [100, 101, 102, 103])
def test_noise_is_told_and_gives_no_confidence(seed):
    """Labels left out of the finished graph alone gave a confidence of 0.75 to 0.81 here."""
    views, truth, y = noise(seed)
    with pytest.warns(DataWarning, match=r"no better than chance on 60 held-out labels"):
        model = clone(MEND).fit(views, y)
    free = y < 0
    accuracy = (model.transduction_ == truth)[free].mean()
    assert model.confidence_[free].mean() < accuracy + 0.13
    assert not model.estimated_accuracy_.beats_guessing
    assert "not shown to be better than guessing" in repr(model)


@pytest.mark.parametrize("n_labels", [4, 40])
def test_views_of_one_value_are_refused(n_labels):
    """They gave a confidence of 1.0 to classes of which a quarter was right."""
    y = np.where(np.arange(200) < n_labels, np.arange(200) % 4, -1)
    with pytest.raises(InvalidViewsError, match="no view distinguishes any two samples"):
        clone(MEND).fit([np.ones((200, 3)), np.full((200, 2), 7.0)], y)


def test_a_view_of_one_value_beside_noise_gives_no_confidence():
    truth = np.random.default_rng(0).integers(0, 4, 200)
    y = np.where(np.arange(200) < 40, truth, -1)
    views = [np.ones((200, 3)), np.random.default_rng(1).normal(size=(200, 5))]
    with pytest.warns(DataWarning, match="no better than chance"):
        model = clone(MEND).fit(views, y)
    assert model.confidence_[y < 0].mean() < 0.4


def test_estimate_is_near_the_accuracy_on_samples_without_label():
    """Fits with fewer labels are less accurate, so that it may be lower and not much higher."""
    blobs = make_multiview_blobs(600, n_views=2, noise=4.0, n_classes=4, random_state=1)
    task = hide(blobs.views, blobs.y, missing_rate=0.5, label_rate=0.3, random_state=1)
    model = clone(MEND).fit(task.data, task.y)
    free = task.unlabelled
    accuracy = (model.transduction_ == task.y_true)[free].mean()
    estimate = model.estimated_accuracy_
    assert estimate.n_held_out == (~free).sum()
    assert estimate.interval[0] < accuracy < estimate.interval[1] + 0.05
    assert estimate.beats_guessing
    assert repr(model).splitlines()[0] == "MendClassifier(n_landmarks=60)"
    assert repr(model).splitlines()[1] == f"# {estimate}"


@pytest.mark.parametrize("seed", [0, 1])
def test_mean_confidence_stays_within_the_interval(seed):
    """Two weak views of few samples: the scores alone claim 0.90 where 0.78 are right."""
    digits = load_uci_digits(["fou", "zer"])
    views, y = [view[::4] for view in digits.views], digits.y[::4]
    task = hide(views, y, missing_rate=0.5, label_rate=0.1, random_state=seed)
    model = MendClassifier().fit(task.data, task.y)
    free = task.unlabelled
    mean = model.confidence_[free].mean()
    assert mean <= model.estimated_accuracy_.interval[1] + 1e-6
    bare = clone(model).set_params(calibration=None).fit(task.data, task.y)
    right = (model.transduction_ == task.y_true)[free].mean()
    assert abs(mean - right) < 0.75 * abs(bare.confidence_[free].mean() - right)


def test_labels_of_the_finished_graph_are_no_estimate():
    views, _, y = noise(0)
    model = AGFTIClassifier(random_state=0, max_iter=3, tol=10.0).fit(views, y)
    assert model.calibration_.n_samples == N_LABELS
    assert model.estimated_accuracy_ is None


# ------------------------------------------------------------------ the estimate itself


def test_interval_holds_as_often_as_it_says():
    """Of Clopper and Pearson: at least 95 % whatever the accuracy is."""
    rng = np.random.default_rng(0)
    for accuracy in (0.3, 0.7, 0.95):
        found = rng.binomial(40, accuracy, 2000)
        bounds = {n: AccuracyEstimate(int(n), (20, 20)).interval for n in np.unique(found)}
        held = np.mean([bounds[n][0] <= accuracy <= bounds[n][1] for n in found])
        assert held >= 0.94


def test_bounds_are_those_of_the_binomial_tails():
    from scipy.stats import binom

    low, high = AccuracyEstimate(17, (10, 15)).interval
    assert binom.sf(16, 25, low) == pytest.approx(0.025)
    assert binom.cdf(17, 25, high) == pytest.approx(0.025)
    assert AccuracyEstimate(0, (5, 5)).interval[0] == 0
    assert AccuracyEstimate(10, (5, 5)).interval[1] == 1


def test_guessing_is_a_class_at_random_or_the_most_frequent_one():
    estimate = AccuracyEstimate(30, (25, 10, 5))
    assert (estimate.chance, estimate.majority) == (1 / 3, 25 / 40)
    assert not estimate.beats_guessing
    assert AccuracyEstimate(38, (25, 10, 5)).beats_guessing
    assert str(estimate).startswith("estimated accuracy 0.75 (0.59 to 0.87), from 40 labels held")


def test_a_handful_of_labels_is_no_verdict():
    assert not AccuracyEstimate(3, (4, 3)).is_guessing
    assert AccuracyEstimate(13, (13, 12)).is_guessing
    assert not AccuracyEstimate(24, (13, 12)).is_guessing
