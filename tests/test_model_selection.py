"""Folds and scores of the labelled samples, and scikit-learn's tools on incomplete views."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    train_test_split,
)
from sklearn.pipeline import Pipeline, make_pipeline

from viewmend import LabelSearchCV, MendClassifier, check_views
from viewmend.baselines import SelfTrainingLogistic, UnionGraphClassifier
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import InvalidLabelsError, InvalidParameterError, InvalidViewsError
from viewmend.impute import ColumnMeanImputer, NeighbourImputer
from viewmend.model_selection import (
    LabelledStratifiedKFold,
    cross_val_transduce,
    labelled_scorer,
)
from viewmend.models.label_folds import label_folds

BLOBS = make_multiview_blobs(120, n_views=2, noise=3.0, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.2, random_state=0)
DATA, Y = TASK.data, TASK.y
SIZES = DATA.n_features
# Masked rows hold something that must not matter.
FILLED = [np.where(np.isnan(view), 7.0, view) for view in DATA.views]
FULL = np.hstack(FILLED)
LABELLED = np.flatnonzero(Y >= 0)
FOLDS = LabelledStratifiedKFold(3)
QUICK = MendClassifier(n_rounds=0, representations=("unit",))
FORMS = [
    pytest.param(DATA, None, id="MultiViewData"),
    pytest.param(DATA.stacked(), SIZES, id="stacked"),
]


def splits(y, n_splits, **how):
    return list(LabelledStratifiedKFold(n_splits, **how).split(np.zeros((len(y), 1)), y))


# ------------------------------------------------------------------------------------------ folds


@given(
    y=st.lists(st.integers(-1, 3), min_size=4, max_size=30).map(np.array),
    n_splits=st.integers(2, 4),
    seed=st.none() | st.integers(0, 9),
)
def test_folds_hold_out_labelled_samples_only(y, n_splits, seed):
    classes, counts = np.unique(y[y >= 0], return_counts=True)
    assume(len(classes) >= 2 and counts[counts > 1].sum() >= n_splits)
    how = {} if seed is None else {"shuffle": True, "random_state": seed}
    parts = splits(y, n_splits, **how)
    held_out = np.concatenate([test for _, test in parts])
    np.testing.assert_array_equal(
        np.sort(held_out), np.flatnonzero(np.isin(y, classes[counts > 1]))
    )
    for train, test in parts:
        np.testing.assert_array_equal(np.sort([*train, *test]), np.arange(len(y)))
        assert set(y[train]) >= set(classes)
    for label in classes:
        dealt = [(y[test] == label).sum() for _, test in parts]
        assert max(dealt) - min(dealt) <= 1


def test_folds_are_those_of_the_search():
    codes = np.array([1, -1, 0, 0, 1, 2, 1, -1, 0])
    found = [test for _, test in splits(codes, 3)]
    for test, fold in zip(found, label_folds(codes, np.arange(9), 3), strict=True):
        np.testing.assert_array_equal(test, np.sort(fold))


def test_folds_know_every_mark_of_an_unlabelled_sample():
    marks = [["a", "b", None, "a", "b"], ["a", "b", float("nan"), "a", "b"], [7, 8, -1, 7, 8]]
    for y in marks:
        assert all(2 in train for train, _ in splits(y, 2))


def test_shuffled_folds_follow_the_seed():
    first, again, other = (
        np.concatenate([test for _, test in splits(Y, 3, shuffle=True, random_state=seed)])
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert sorted(first) == sorted(other)


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ({"n_splits": 1}, InvalidParameterError, "n_splits must be .* 2, got 1; pass the"),
        (
            {"n_splits": 2, "random_state": 0},
            InvalidParameterError,
            "random_state must be None where shuffle=False, got 0",
        ),
        (
            {"n_splits": 5},
            InvalidLabelsError,
            "n_splits=5 must be at most the number of labels that can be held out, got 4",
        ),
    ],
)
def test_impossible_folds_are_refused(how, error, message):
    with pytest.raises(error, match=message):
        splits(np.array([0, 0, 1, 1, -1, 2]), **how)


# ----------------------------------------------------------------------------------------- scores


def grid_search(**how):
    search = GridSearchCV(clone(QUICK), {"spreading": [0.9]}, **how)
    return search.fit(DATA, Y).best_score_


def test_plain_search_counts_the_mark_of_unlabelled_samples_as_a_class():
    """The survey's .03 in place of .80: no classifier ever answers -1."""
    plain = grid_search(cv=StratifiedKFold(3), scoring="accuracy")
    right = grid_search(cv=StratifiedKFold(3), scoring=labelled_scorer("accuracy"))
    assert plain < 0.25
    assert right > 0.8
    # As large as it can be: unlabelled samples never count as found.
    assert plain <= len(LABELLED) / len(Y)


def test_own_score_is_the_labelled_accuracy():
    by_default = grid_search(cv=StratifiedKFold(3))
    assert by_default == grid_search(cv=StratifiedKFold(3), scoring=labelled_scorer("accuracy"))
    assert grid_search(cv=FOLDS) == pytest.approx(grid_search(cv=FOLDS, scoring="accuracy"))


def test_score_weights_samples_and_skips_unlabelled_ones():
    model = clone(QUICK).fit(DATA, Y)
    weights = np.random.default_rng(0).random(len(Y))
    wrong = np.where(Y == 0, 1, Y)
    found = model.predict(DATA)
    expected = np.average(found[LABELLED] == wrong[LABELLED], weights=weights[LABELLED])
    assert model.score(DATA, wrong, weights) == pytest.approx(expected)
    assert 0 < expected < 1


def test_search_scores_as_its_best_estimator_does():
    search = LabelSearchCV(clone(QUICK), {"spreading": [0.9]}).fit(DATA, Y)
    y = np.where(TASK.y_true == 0, -1, TASK.y_true)
    assert search.score(DATA, y) == search.best_estimator_.score(DATA, y)
    assert search.score(DATA, y) == accuracy_score(y[y >= 0], search.predict(DATA)[y >= 0])


def test_any_metric_of_labels_that_are_no_numbers():
    names = np.array(["owl", "cat", "dog"])[TASK.y_true]
    y = np.where(Y >= 0, names, None)
    model = clone(QUICK).fit(DATA, y)
    wrong = np.where(y == "owl", "cat", y)
    expected = f1_score(wrong[LABELLED].astype(str), model.predict(DATA)[LABELLED], average="macro")
    assert labelled_scorer("f1_macro")(model, DATA, wrong) == expected < 1
    own = labelled_scorer(make_scorer(f1_score, average="macro", pos_label=None))
    assert own(model, DATA.stacked(), wrong) == expected


def test_nothing_to_compare_with_is_an_error():
    model = clone(QUICK).fit(DATA, Y)
    message = r"no label to compare with, .* got 120 unlabelled samples; split with Labelled"
    for score in (model.score, lambda X, y: labelled_scorer()(model, X, y)):
        with pytest.raises(InvalidLabelsError, match=message):
            score(DATA, np.full(len(Y), -1))


SCORES = {
    "score": lambda model: model.score,
    "scorer": lambda model: lambda X, y: labelled_scorer()(model, X, y),
}


@pytest.mark.parametrize("score", SCORES.values(), ids=SCORES.keys())
def test_labels_of_other_samples_are_not_scored(score):
    score = score(clone(QUICK).fit(DATA, Y))
    for n_labels in (60, 119):
        with pytest.raises(InvalidLabelsError, match=f"y has {n_labels} labels but X has 120"):
            score(DATA, Y[:n_labels])
    with pytest.raises(InvalidLabelsError, match="y has 120 labels but X has 60 samples"):
        score(DATA[:60], Y)
    with pytest.raises(InvalidLabelsError, match="the target y is None"):
        score(replace(DATA, y=None), None)
    pandas = pytest.importorskip("pandas")
    named = replace(DATA, ids=np.array([f"p{i}" for i in range(120)]))
    y = pandas.Series(Y, index=named.ids)
    assert score(named, y) == score(named, Y)
    with pytest.raises(InvalidLabelsError, match="y must have its rows in the order of the views"):
        score(named, y[::-1])


def test_labels_of_another_type_than_in_fit_are_not_all_wrong():
    model = clone(QUICK).fit(DATA, Y)
    text = np.where(Y >= 0, Y.astype(str), "")
    message = r"y must call the classes as fit did, but has '(\d)' where fit saw \1;"
    with pytest.raises(InvalidLabelsError, match=message):
        model.score(DATA, text)
    assert model.score(DATA, Y.astype(float)) == model.score(DATA, Y)
    # A class that fit did not see is a miss.
    assert model.score(DATA, np.where(Y >= 0, 7, -1)) == 0


@pytest.mark.parametrize(
    "weights",
    [np.ones(119), np.ones((120, 1)), -np.ones(120), np.full(120, np.nan), (Y < 0).astype(float)],
)
def test_weights_that_are_no_weights_are_refused(weights):
    model = clone(QUICK).fit(DATA, Y)
    with pytest.raises(InvalidParameterError, match="sample_weight must be a number from 0 for"):
        model.score(DATA, Y, weights)


def test_weights_under_an_index_are_those_of_the_rows():
    pandas = pytest.importorskip("pandas")
    named = replace(DATA, ids=np.array([f"p{i}" for i in range(120)]))
    weights = pandas.Series(np.arange(1.0, 121.0), index=named.ids)
    model = clone(QUICK).fit(named, Y)
    assert model.score(named, Y, weights) == model.score(named, Y, weights.to_numpy())
    with pytest.raises(InvalidLabelsError, match="sample_weight must have its rows in the order"):
        model.score(named, Y, weights[::-1])


@pytest.mark.parametrize("form", [list, tuple, lambda views: dict(zip("ab", views, strict=True))])
def test_a_scorer_cannot_take_rows_of_views_in_a_list(form):
    model = clone(QUICK).fit(DATA, Y)
    with pytest.raises(InvalidViewsError, match=r"a row for each of the 120 labels, .* check_view"):
        labelled_scorer()(model, form(DATA.views), Y)


def test_what_a_scorer_is_told_of_samples_is_told_of_all_of_them():
    seen = {}

    def spy(_, X, y, **told):
        seen.update(told, n_samples=len(X), n_labels=len(y))
        return 0.0

    numbers = np.arange(120)
    labelled_scorer(spy)(None, DATA, Y, sample_weight=numbers, nothing=None)
    np.testing.assert_array_equal(seen["sample_weight"], LABELLED)
    assert "nothing" not in seen
    with pytest.raises(
        InvalidParameterError, match="sample_weight must have one entry for each of"
    ):
        labelled_scorer(spy)(None, DATA, Y, sample_weight=numbers[:60])
    pandas = pytest.importorskip("pandas")
    named = replace(DATA, ids=np.array([f"p{i}" for i in range(120)]))
    weights = pandas.Series(numbers, index=named.ids)
    with pytest.raises(InvalidLabelsError, match="sample_weight must have its rows in the order"):
        labelled_scorer(spy)(None, named, Y, sample_weight=weights[::-1])


def test_folds_of_labels_or_groups_in_another_order_are_refused():
    pandas = pytest.importorskip("pandas")
    named = replace(DATA, ids=np.array([f"p{i}" for i in range(120)]))
    y = pandas.Series(Y, index=named.ids)
    groups = pandas.Series(np.arange(120) // 2, index=named.ids)
    for X in (named, pandas.DataFrame(FULL, index=named.ids)):
        expected = list(FOLDS.split(DATA, Y, groups.to_numpy()))
        for fold, again in zip(expected, FOLDS.split(X, y, groups), strict=True):
            np.testing.assert_array_equal(fold[1], again[1])
        with pytest.raises(InvalidLabelsError, match="y must have its rows in the order"):
            list(FOLDS.split(X, y[::-1]))
        with pytest.raises(InvalidLabelsError, match="groups must have its rows in the order"):
            list(FOLDS.split(X, y, groups[::-1]))


def test_several_metrics_at_once_and_in_another_process():
    scoring = {name: labelled_scorer(name) for name in ("accuracy", "f1_macro")}
    scoring["sent"] = pickle.loads(pickle.dumps(scoring["accuracy"]))
    found = cross_validate(clone(QUICK), DATA, Y, cv=StratifiedKFold(3), scoring=scoring)
    alone = cross_val_score(clone(QUICK), DATA, Y, cv=StratifiedKFold(3))
    np.testing.assert_array_equal(found["test_accuracy"], alone)
    np.testing.assert_array_equal(found["test_sent"], alone)
    assert (found["test_f1_macro"] != alone).any()


@pytest.mark.filterwarnings("ignore:the model is no better than chance")
def test_probabilities_of_cross_val_predict_have_a_class_for_unlabelled_samples():
    """What the documentation warns of, as long as scikit-learn does it."""
    found = cross_val_predict(clone(QUICK), DATA, Y, cv=3, method="predict_proba")
    assert found.shape[1] == 1 + len(set(Y[LABELLED]))


def test_scorer_is_named_after_what_it_wraps():
    assert repr(labelled_scorer("accuracy")).startswith("labelled_scorer(make_scorer(accuracy_sco")


# --------------------------------------------------------------- transductive cross-validation


class Spy(ClassifierMixin, BaseEstimator):
    """Finds nothing but what it is told."""

    def fit(self, X, y):  # noqa: ARG002
        self.transduction_ = np.where(np.equal(y, None), "hidden", y)
        return self


def test_held_out_labels_never_reach_the_fit():
    rows, classes = cross_val_transduce(Spy(), DATA, Y)
    np.testing.assert_array_equal(np.sort(rows), LABELLED)
    assert set(classes) == {"hidden"}


def test_held_out_labels_do_not_matter():
    folds = list(FOLDS.split(DATA, Y))[:1]
    other = Y.copy()
    test = folds[0][1]
    other[test] = np.roll(Y[test], 1)
    assert (other != Y).any()
    for model in (UnionGraphClassifier(), SelfTrainingLogistic()):
        found, again = (cross_val_transduce(model, DATA, y, cv=folds)[1] for y in (Y, other))
        np.testing.assert_array_equal(found, again)


def test_transduction_finds_held_out_classes_and_ignores_unlabelled_test_samples():
    for cv in (FOLDS, StratifiedKFold(3)):
        rows, classes = cross_val_transduce(UnionGraphClassifier(), list(DATA.views), Y, cv=cv)
        np.testing.assert_array_equal(np.sort(rows), LABELLED)
        assert accuracy_score(Y[rows], classes) > 0.8


def test_a_number_of_folds_stands_for_so_many():
    rows, classes = cross_val_transduce(UnionGraphClassifier(), DATA, Y, cv=3)
    expected = cross_val_transduce(UnionGraphClassifier(), DATA, Y, cv=LabelledStratifiedKFold(3))
    np.testing.assert_array_equal(rows, expected[0])
    np.testing.assert_array_equal(classes, expected[1])
    assert rows.tolist() != cross_val_transduce(UnionGraphClassifier(), DATA, Y)[0].tolist()


def test_transduction_takes_a_mask():
    expected = cross_val_transduce(UnionGraphClassifier(), DATA, Y)[1]
    found = cross_val_transduce(UnionGraphClassifier(), FILLED, Y, mask=DATA.observed)[1]
    np.testing.assert_array_equal(found, expected)


# ----------------------------------------------------------------- scikit-learn's tools, both forms


def sized(estimator, view_sizes):
    return clone(estimator).set_params(view_sizes=view_sizes)


@pytest.mark.parametrize(("X", "view_sizes"), FORMS)
def test_cross_validation_is_a_loop_over_folds(X, view_sizes):
    model = sized(QUICK, view_sizes)
    scores = cross_val_score(model, X, Y, cv=FOLDS)
    for score, (train, test) in zip(scores, FOLDS.split(DATA, Y), strict=True):
        fitted = clone(QUICK).fit(DATA[train], Y[train])
        assert score == np.mean(fitted.predict(DATA[test]) == Y[test])


@pytest.mark.parametrize(("X", "view_sizes"), FORMS)
def test_splits_in_two_give_the_model_of_the_same_rows(X, view_sizes):
    rows = np.arange(len(Y))
    X_train, X_test, train, test = train_test_split(X, rows, random_state=0)
    model = sized(QUICK, view_sizes).fit(X_train, Y[train])
    expected = clone(QUICK).fit(DATA[train], Y[train])
    np.testing.assert_array_equal(model.predict_proba(X_test), expected.predict_proba(DATA[test]))


@pytest.mark.parametrize(("X", "view_sizes"), FORMS)
def test_search_over_a_pipeline_compares_an_imputer_with_none(X, view_sizes):
    imputer, model = (sized(step, view_sizes) for step in (ColumnMeanImputer(), QUICK))
    steps = Pipeline([("impute", imputer), ("classify", model)])
    search = GridSearchCV(steps, {"impute": [imputer, "passthrough"]}, cv=FOLDS).fit(X, Y)
    imputed, plain = search.cv_results_["mean_test_score"]
    assert plain == np.mean(cross_val_score(clone(QUICK), DATA, Y, cv=FOLDS))
    assert imputed == np.mean([_imputed_score(*rows) for rows in FOLDS.split(DATA, Y)])
    assert search.score(X, Y) > 0.9


def _imputed_score(train, test):
    imputer = ColumnMeanImputer()
    model = clone(QUICK).fit(imputer.fit_transform(DATA[train]), Y[train])
    return model.score(imputer.transform(DATA[test]), Y[test])


@pytest.mark.parametrize(("X", "view_sizes"), FORMS)
def test_classifiers_of_one_array_follow_an_imputer(X, view_sizes):
    imputer = sized(NeighbourImputer(), view_sizes)
    found = cross_val_predict(
        make_pipeline(imputer, LogisticRegression(max_iter=1000)), X, TASK.y_true, cv=3
    )
    expected = np.empty_like(TASK.y_true)
    for train, test in StratifiedKFold(3).split(FULL, TASK.y_true):
        filled = NeighbourImputer().fit(DATA[train])
        model = LogisticRegression(max_iter=1000).fit(
            filled.fit_transform(DATA[train]).stacked(), TASK.y_true[train]
        )
        expected[test] = model.predict(filled.transform(DATA[test]).stacked())
    np.testing.assert_array_equal(found, expected)


def test_views_in_any_form_become_a_container_that_can_be_split():
    data = check_views(dict(zip("ab", FILLED, strict=True)), mask=DATA.observed)
    np.testing.assert_array_equal(
        cross_val_score(clone(QUICK), data, Y, cv=FOLDS),
        cross_val_score(clone(QUICK), DATA, Y, cv=FOLDS),
    )


def test_a_stacked_frame_can_be_split():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(DATA.stacked()).add_prefix("gene")
    np.testing.assert_array_equal(
        cross_val_score(sized(QUICK, SIZES), frame, pandas.Series(Y), cv=FOLDS),
        cross_val_score(clone(QUICK), DATA, Y, cv=FOLDS),
    )


def test_views_survive_a_configuration_that_asks_for_frames():
    pytest.importorskip("pandas")
    pipeline = make_pipeline(NeighbourImputer(), clone(QUICK))
    expected = pipeline.fit(DATA, Y)[-1].label_distributions_
    with config_context(transform_output="pandas"):
        np.testing.assert_array_equal(pipeline.fit(DATA, Y)[-1].label_distributions_, expected)
        assert pipeline[-1].view_n_features_ == SIZES


# ------------------------------------------------------------------------------- metadata routing


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


MASK = {"mask": DATA.observed}


def masked(estimator):
    """Asks for ``mask`` wherever it can be given."""
    sized_one = sized(estimator, SIZES)
    for method in ("fit", "score", "predict", "predict_proba", "transform"):
        if hasattr(sized_one, method):
            sized_one = getattr(sized_one, f"set_{method}_request")(mask=True)
    return sized_one


@pytest.mark.usefixtures("routing")
def test_masks_are_split_with_the_samples():
    expected = cross_val_score(clone(QUICK), DATA, Y, cv=FOLDS)
    found = cross_val_score(masked(QUICK), FULL, Y, cv=FOLDS, params=MASK)
    np.testing.assert_array_equal(found, expected)
    rolled = {"mask": np.roll(DATA.observed, 1, axis=0)}
    other = cross_val_score(masked(QUICK), FULL, Y, cv=FOLDS, params=rolled)
    assert (other != expected).any()


@pytest.mark.usefixtures("routing")
def test_masks_reach_the_estimator_of_a_search():
    grid = {"spreading": [0.5, 0.99]}
    plain = GridSearchCV(clone(QUICK), grid, cv=FOLDS).fit(DATA, Y)
    found = GridSearchCV(masked(QUICK), grid, cv=FOLDS).fit(FULL, Y, **MASK)
    for split in range(3):
        key = f"split{split}_test_score"
        np.testing.assert_array_equal(found.cv_results_[key], plain.cv_results_[key])
    np.testing.assert_array_equal(
        found.best_estimator_.label_distributions_, plain.best_estimator_.label_distributions_
    )


@pytest.mark.usefixtures("routing")
def test_masks_reach_a_search_by_labels():
    search = LabelSearchCV(sized(QUICK, SIZES), {"spreading": [0.5]})
    search = search.set_fit_request(mask=True).set_score_request(mask=True)
    plain = LabelSearchCV(clone(QUICK), {"spreading": [0.5]})
    np.testing.assert_array_equal(
        cross_val_score(search, FULL, Y, cv=FOLDS, params=MASK),
        cross_val_score(plain, DATA, Y, cv=FOLDS),
    )


@pytest.mark.usefixtures("routing")
def test_masks_pass_through_a_pipeline():
    plain = make_pipeline(NeighbourImputer(), clone(QUICK)).fit(DATA, Y)
    # The imputer leaves nothing missing, and the classifier must say that it wants no mask.
    classifier = clone(QUICK).set_fit_request(mask=False).set_predict_request(mask=False)
    found = make_pipeline(masked(NeighbourImputer()), classifier).fit(FULL, Y, **MASK)
    np.testing.assert_array_equal(found[-1].label_distributions_, plain[-1].label_distributions_)
    np.testing.assert_array_equal(found.predict(FULL, **MASK), plain.predict(DATA))


@pytest.mark.usefixtures("routing")
def test_masks_nobody_asked_for_are_refused():
    with pytest.raises(ValueError, match="mask"):
        cross_val_score(sized(QUICK, SIZES), FULL, Y, cv=FOLDS, params=MASK)


@pytest.mark.usefixtures("routing")
def test_weights_reach_the_scorer_within_without_the_unlabelled_samples():
    weights = np.random.default_rng(0).random(len(Y))
    scorer = labelled_scorer(make_scorer(accuracy_score).set_score_request(sample_weight=True))
    wrong = np.where(np.arange(len(Y)) % 3 == 0, (Y + 1) % 3, Y)
    wrong[Y < 0] = -1
    found = cross_val_score(
        clone(QUICK),
        DATA,
        wrong,
        cv=StratifiedKFold(2),
        scoring=scorer,
        params={"sample_weight": weights},
    )
    for score, (train, test) in zip(found, StratifiedKFold(2).split(FULL, wrong), strict=True):
        test = test[wrong[test] >= 0]
        hits = clone(QUICK).fit(DATA[train], wrong[train]).predict(DATA[test]) == wrong[test]
        assert score == pytest.approx(np.average(hits, weights=weights[test]))
