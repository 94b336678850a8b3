"""Weights of classes change decisions, as they should, and no probability."""

import io

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import balanced_accuracy_score, recall_score

import viewmend
from viewmend import AGFTIClassifier, MendClassifier
from viewmend.data import check_views, result_frame
from viewmend.exceptions import InvalidParameterError

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:the model is no better than chance"),
]


def imbalanced(seed, n=330, label_rate=0.2):
    """Two overlapping classes, the common one ten times as large, in two views with gaps."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.where(np.arange(n) < n // 11, "rare", "common"))
    shift = 1.2 * (truth == "rare")[:, None]
    views = [rng.normal(size=(n, 3)) + shift for _ in range(2)]
    absent = rng.random((n, 2)) < 0.3
    absent[absent.all(axis=1)] = False
    views = [np.where(absent[:, [v]], np.nan, view) for v, view in enumerate(views)]
    # The same share of labels in both classes.
    labelled = np.zeros(n, dtype=bool)
    for label in ("rare", "common"):
        rows = np.flatnonzero(truth == label)
        labelled[rng.choice(rows, round(label_rate * len(rows)), replace=False)] = True
    return views, truth, np.where(labelled, truth, "")


@pytest.fixture(scope="module")
def fits():
    """The same data fitted without weights, balanced, and with weights by class."""
    views, truth, y = imbalanced(0)
    models = {
        str(weight): MendClassifier(n_rounds=2, class_weight=weight).fit(views, y)
        for weight in (None, "balanced", {"rare": 3.0})
    }
    return views, truth, y, models


def test_balanced_decisions_find_more_of_the_rare_class():
    """Balanced accuracy and recall of the rare class, on average over the seeds of benchmarks."""
    scores = {None: [], "balanced": []}
    for seed in range(100, 105):
        views, truth, y = imbalanced(seed)
        for weight, found in scores.items():
            told = MendClassifier(n_rounds=2, class_weight=weight).fit(views, y).transduction_
            judged = (truth[y == ""], told[y == ""])
            rare = recall_score(*judged, pos_label="rare")
            found.append((balanced_accuracy_score(*judged), rare))
    gain = np.mean(scores["balanced"], axis=0) - np.mean(scores[None], axis=0)
    assert gain[0] > 0
    assert gain[1] > 0.1


def test_probabilities_stay_and_classes_are_the_largest_of_probability_times_weight(fits):
    _, _, y, models = fits
    plain = models["None"]
    assert_array_equal(plain.decision_weights_, [1, 1])
    shares = plain.label_distributions_
    weights = {"balanced": 1 / (2 * shares.mean(axis=0)), "{'rare': 3.0}": np.array([1.0, 3.0])}
    for name, expected in weights.items():
        model = models[name]
        assert_array_equal(model.label_distributions_, shares)
        assert_allclose(model.decision_weights_, expected)
        codes = np.argmax(shares * expected, axis=1)
        assert_array_equal(
            model.transduction_, np.where(y == "", model.classes_[codes], y.astype(object))
        )
        told = np.searchsorted(model.classes_, model.transduction_.astype(str))
        assert_array_equal(model.confidence_, shares[np.arange(len(y)), told])
        assert (model.transduction_ != plain.transduction_).any()


def test_everything_that_decides_follows(fits):
    views, _, _, models = fits
    new = [view[:40] for view in views]
    model = models["balanced"]
    shares = model.predict_proba(new)
    assert_array_equal(shares, models["None"].predict_proba(new))
    codes = np.argmax(shares * model.decision_weights_, axis=1)
    assert (codes != np.argmax(shares, axis=1)).any()
    told = model.classes_[codes]
    assert_array_equal(model.predict(new), told)
    assert_array_equal(result_frame(model, new=check_views(new))["class"], told)
    decision = model.decide(new, threshold=0.6)
    assert_array_equal(decision.labels, told)
    assert_array_equal(decision.confidence, shares[np.arange(40), codes])
    assert_array_equal(decision.abstained, decision.confidence < 0.6)
    rows = np.flatnonzero(model.transduction_ != models["None"].transduction_)[:3]
    assert_array_equal(model.explain(rows).labels, model.transduction_[rows])


def test_a_saved_model_decides_the_same(fits):
    views, _, _, models = fits
    for model in models.values():
        file = io.BytesIO()
        viewmend.save(model, file)
        file.seek(0)
        loaded = viewmend.load(file)
        assert loaded.class_weight == model.class_weight
        assert_array_equal(loaded.predict(views), model.predict(views))


def test_a_method_without_weights_decides_as_it_did(fits):
    views, _, y, _ = fits
    model = AGFTIClassifier(max_iter=2, random_state=0).fit(views, y)
    codes = np.argmax(model.label_distributions_, axis=1)[y == ""]
    assert_array_equal(model.transduction_[y == ""], model.classes_[codes])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (
            "even",
            "class_weight of .* must be one of None, 'balanced' or a dict .*, got 'even'",
        ),
        ({"rare": 0.0}, "class_weight of MendClassifier must be "),
        ({"rare": np.inf}, "class_weight of MendClassifier must be "),
        ({"rare": "most"}, "class_weight of MendClassifier must be "),
        ([1.0, 2.0], "class_weight of MendClassifier must be "),
        ({"rarer": 2.0}, r"class_weight names \['rarer'\], but the labels seen are \['common'"),
    ],
)
def test_refused_weights(weight, message):
    views, _, y = imbalanced(0, n=44)
    with pytest.raises(InvalidParameterError, match=message):
        MendClassifier(n_rounds=0, class_weight=weight).fit(views, y)
