"""Suggestions of a fitted `MendClassifier`: samples to label, views to measure."""

import warnings

import numpy as np
import pandas as pd
import pytest

import viewmend
from viewmend import MendClassifier
from viewmend.core.advice.labels import STRATEGIES
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import DataWarning, InvalidParameterError, InvalidViewsError
from viewmend.models.advice import known_of_fit
from viewmend.models.suggestions import change_words, reach_words


def blobs(n_samples=150, noise=5.0, label_rate=0.08, seed=0):
    made = make_multiview_blobs(n_samples=n_samples, noise=noise, random_state=seed)
    return hide(made.views, made.y, missing_rate=0.4, label_rate=label_rate, random_state=seed)


def fitted(data, y, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return MendClassifier(n_rounds=2, **parameters).fit(data, y)


@pytest.fixture(scope="module")
def task():
    return blobs()


@pytest.fixture(scope="module")
def model(task):
    return fitted(task.data, task.y)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_batches_are_unlabelled_different_and_explained(model, task, strategy):
    found = model.suggest_labels(7, strategy)
    assert len(set(found.samples.tolist())) == len(found.reasons) == 7
    assert task.unlabelled[found.samples].all()
    assert all(found.reasons)
    assert found.summary().count("sample ") >= 7
    assert "7 samples" in repr(found)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rows_in_another_order_are_suggested_in_it(task, strategy):
    order = np.random.default_rng(1).permutation(len(task.y))
    plain = fitted(task.data, task.y).suggest_labels(6, strategy)
    turned = fitted(task.data[order], task.y[order]).suggest_labels(6, strategy)
    np.testing.assert_array_equal(order[turned.samples], plain.samples)
    np.testing.assert_array_equal(turned.scores, plain.scores)


def test_rows_of_a_larger_graph_in_another_order_are_suggested_in_it():
    """Its modes are found by iterations, which must not see the order either."""
    many = blobs(500)
    order = np.random.default_rng(1).permutation(500)
    plain = fitted(many.data, many.y, calibration=None).suggest_labels(6)
    turned = fitted(many.data[order], many.y[order], calibration=None).suggest_labels(6)
    np.testing.assert_array_equal(order[turned.samples], plain.samples)
    np.testing.assert_array_equal(turned.scores, plain.scores)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_classes_by_other_names_suggest_the_same(task, strategy):
    names = np.array(["c", "a", "b"])
    renamed = np.where(task.y < 0, None, names[task.y])
    plain = fitted(task.data, task.y).suggest_labels(5, strategy)
    other = fitted(task.data, renamed).suggest_labels(5, strategy)
    np.testing.assert_array_equal(plain.samples, other.samples)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_duplicated_sample_is_suggested_once(task, strategy):
    first = fitted(task.data, task.y).suggest_labels(1, strategy).samples[0]
    copies = np.concatenate([np.arange(len(task.y)), np.full(15, first)])
    found = fitted(task.data[copies], task.y[copies]).suggest_labels(40, strategy).samples
    assert len(set(copies[found].tolist())) == 40


def test_the_same_row_in_another_view_is_another_sample():
    """Two views of the same columns: samples that have one of them each, with equal rows there."""
    rng = np.random.default_rng(0)
    centres = np.repeat(np.eye(3)[:, [0, 1, 2, 0]] * 6, 20, axis=0)
    rows = centres + rng.normal(size=(60, 4))
    mask = np.ones((61, 2), dtype=bool)
    mask[59], mask[60] = [True, False], [False, True]
    views = [np.vstack([view, rows[59]]) for view in (rows, rng.normal(size=(60, 4)))]
    y = np.full(61, -1)
    y[[0, 1, 20, 21, 40, 41]] = [0, 0, 1, 1, 2, 2]
    y[59] = 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        model = MendClassifier(n_rounds=2).fit(views, y, mask)
        first = MendClassifier().suggest_first_labels(views, 61, y, mask)
    free = set(np.flatnonzero(y < 0).tolist())
    assert set(model.suggest_labels(61).samples.tolist()) == free
    assert set(first.samples.tolist()) == free


@pytest.mark.parametrize("parameters", [{}, {"graph_samples": 60}, {"n_rounds": 0}])
def test_expected_changes_are_of_the_answers_that_the_model_gives(parameters):
    """Of samples that labels reach over the graph, and of others: a cluster far away has no label.

    All answers are at the temperature one of the closed form.
    """
    apart = blobs(90)
    views = [np.vstack([view, 1000 + view[:20]]) for view in apart.data.views]
    mask = np.vstack([apart.data.observed, apart.data.observed[:20]])
    y = np.concatenate([apart.y, np.full(20, -1)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        near = {"representations": ["standard"], "n_neighbors": 3}
        settings = near | {"n_rounds": 2, "calibration": None} | parameters
        model = MendClassifier(**settings).fit(views, y, mask)
    rows = model.fitted_state_.order
    known = known_of_fit(model, rows)
    free = known.codes < 0
    assert model.off_graph_[rows].any()
    np.testing.assert_allclose(
        known.answers.shares()[free], model.label_distributions_[rows][free], atol=1e-5
    )


def test_copies_of_labelled_samples_are_not_suggested(task):
    labelled = np.flatnonzero(~task.unlabelled)[:5]
    copies = np.concatenate([np.arange(len(task.y)), labelled])
    y = np.concatenate([task.y, np.full(5, -1)])
    found = fitted(task.data[copies], y).suggest_labels(len(y))
    assert set(found.samples) == set(np.flatnonzero(task.unlabelled))


def test_costs_scale_and_dear_samples_wait(model, task):
    n_samples = len(task.y)
    plain = model.suggest_labels(5)
    other_currency = model.suggest_labels(5, costs=np.full(n_samples, 4.0))
    np.testing.assert_array_equal(plain.samples, other_currency.samples)
    np.testing.assert_allclose(plain.scores, 4 * other_currency.scores)
    costs = np.ones(n_samples)
    costs[plain.samples[0]] = 1e9
    assert plain.samples[0] not in model.suggest_labels(5, costs=costs).samples


def test_excluded_samples_are_left_out_as_a_mask_and_as_rows(model, task):
    first = model.suggest_labels(5).samples
    mask = np.isin(np.arange(len(task.y)), first)
    by_mask, by_rows = (model.suggest_labels(5, exclude=each).samples for each in (mask, first))
    np.testing.assert_array_equal(by_mask, by_rows)
    assert not set(by_mask.tolist()) & set(first.tolist())
    everything = np.ones(len(task.y), dtype=bool)
    assert len(model.suggest_labels(5, exclude=everything)) == 0


def test_the_change_of_all_answers_is_looked_for_among_samples_that_can_be_asked_for():
    """It is computed of some samples alone: others must take the place of those that cannot."""
    many = blobs(300)
    model = fitted(many.data, many.y, calibration=None)
    gone: list[int] = []
    while len(gone) < 80:
        found = model.suggest_labels(1, "change", exclude=gone)
        assert found.scores[0] > 0.01
        gone.append(int(found.samples[0]))
    dear = np.ones(300)
    dear[gone] = 1e6
    cheap = model.suggest_labels(1, "change", costs=dear)
    expected = model.suggest_labels(1, "change", exclude=gone)
    np.testing.assert_array_equal(cheap.samples, expected.samples)
    np.testing.assert_allclose(cheap.scores, expected.scores)


def test_costs_and_exclusions_under_an_index_are_not_taken_by_position(task):
    """Read from a table, they may stand in another order than the samples of the fit."""
    ids = [f"p{i}" for i in range(len(task.y))]
    frames = {
        name: pd.DataFrame(view, index=ids)
        for name, view in zip(("rna", "scan"), task.data.views, strict=True)
    }
    model = fitted(frames, pd.Series(task.y, index=ids), calibration=None)
    costs = pd.Series(np.arange(1.0, 1 + len(ids)), index=ids)
    plain = model.suggest_labels(5, costs=costs.to_numpy())
    np.testing.assert_array_equal(model.suggest_labels(5, costs=costs).samples, plain.samples)
    turned = costs[::-1]
    for refused in (
        lambda: model.suggest_labels(5, costs=turned),
        lambda: model.suggest_labels(5, exclude=turned > 9),
        lambda: model.suggest_views(5, exclude=turned > 9),
        lambda: model.suggest_first_labels(frames, 5, costs=turned),
        lambda: model.suggest_first_labels(frames, 5, exclude=turned > 9),
    ):
        with pytest.raises(InvalidParameterError, match="in another order"):
            refused()


def test_values_under_row_numbers_in_another_order_are_not_taken_by_position(model, task):
    """A series that was sorted by its values, say, has the row numbers in their order."""
    costs = pd.Series(np.arange(150.0, 0, -1)).sort_values()
    for refused in (
        lambda: model.suggest_labels(5, costs=costs),
        lambda: model.suggest_labels(5, exclude=costs > 9),
        lambda: model.suggest_views(5, exclude=costs > 9),
        lambda: model.suggest_first_labels(task.data, 5, costs=costs),
    ):
        with pytest.raises(InvalidParameterError, match="in another order"):
            refused()
    plain = model.suggest_labels(5, costs=costs.sort_index())
    by_array = model.suggest_labels(5, costs=costs.sort_index().to_numpy())
    np.testing.assert_array_equal(plain.samples, by_array.samples)


def test_columns_of_views_are_found_by_name_also_without_identifiers(model):
    dear = pd.DataFrame({"view 1": np.full(150, 1e6), "view 0": np.ones(150)})
    found = model.suggest_views(5, costs=dear)
    assert set(found.views) == {"view 0"}
    assert (found.costs == 1).all()
    assert set(model.suggest_views(exclude=dear > 1).views) == {"view 0"}
    with pytest.raises(InvalidParameterError, match="a column for each of the views"):
        model.suggest_views(5, costs=dear.rename(columns={"view 1": "rna"}))


def test_excluded_samples_may_be_called_by_their_identifiers(task):
    ids = [f"p{i}" for i in range(len(task.y))]
    frames = {
        name: pd.DataFrame(view, index=ids)
        for name, view in zip(("rna", "scan"), task.data.views, strict=True)
    }
    model = fitted(frames, pd.Series(task.y, index=ids), calibration=None)
    for suggest in (model.suggest_labels, model.suggest_views):
        first = suggest(4)
        by_name, by_row = (suggest(4, exclude=each) for each in (first.names, first.samples))
        np.testing.assert_array_equal(by_name.samples, by_row.samples)
        assert not set(by_name.names) & set(first.names)
        with pytest.raises(InvalidParameterError, match=r"exclude names .*'p999'"):
            suggest(4, exclude=["p999"])
    first = MendClassifier().suggest_first_labels(frames, 4)
    second = MendClassifier().suggest_first_labels(frames, 4, exclude=first.names)
    assert len(second) == 4
    assert not set(second.names) & set(first.names)


def test_costs_of_views_by_name_may_be_in_any_order(task):
    ids = [f"p{i}" for i in range(len(task.y))]
    frames = {
        name: pd.DataFrame(view, index=ids)
        for name, view in zip(("rna", "scan"), task.data.views, strict=True)
    }
    model = fitted(frames, pd.Series(task.y, index=ids), calibration=None)
    expected = model.suggest_views(costs={"rna": 1, "scan": 100})
    by_name = pd.Series({"scan": 100, "rna": 1})
    by_pair = pd.DataFrame({"scan": 100.0, "rna": 1.0}, index=ids)
    for costs in (by_name, by_pair):
        found = model.suggest_views(costs=costs)
        np.testing.assert_array_equal(found.views, expected.views)
        np.testing.assert_array_equal(found.costs, expected.costs)
    never = pd.DataFrame({"scan": True, "rna": False}, index=ids)
    assert set(model.suggest_views(exclude=never).views) == {"rna"}
    with pytest.raises(InvalidParameterError, match="column for each of the views"):
        model.suggest_views(costs=by_pair[["scan"]])


def test_few_labels_ask_for_coverage_and_more_for_doubt():
    few, many = blobs(label_rate=0.05), blobs(label_rate=0.3, seed=2)
    start, later = fitted(few.data, few.y), fitted(many.data, many.y)
    start_by_coverage = start.suggest_labels(8, "coverage")
    np.testing.assert_array_equal(start.suggest_labels(8).samples, start_by_coverage.samples)
    confidence = later.label_distributions_.max(axis=1)
    chosen, covering = (later.suggest_labels(8, name).samples for name in ("auto", "coverage"))
    assert confidence[chosen].mean() < confidence[covering].mean()


@pytest.mark.parametrize(
    ("count", "words"),
    [(0.2, "hardly any sample that"), (0.7, "about 1 sample that"), (7.6, "about 8 samples that")],
)
def test_reasons_are_sentences_for_every_number(count, words):
    assert reach_words(count) == f"similar to {words} no label reaches yet"


@pytest.mark.parametrize(
    ("count", "words"), [(0.04, "hardly any prediction"), (0.06, "0.1 predictions")]
)
def test_no_label_is_expected_to_change_zero_answers(count, words):
    assert change_words(count) == f"its label is expected to change {words}"


def test_first_labels_are_of_different_clusters():
    """Five at random are of three or four of five clusters; these are of four or five."""
    found_of = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        y = np.repeat(np.arange(5), 30)
        centres = 20 * rng.normal(size=(2, 5, 6))
        views = [centre[y] + rng.normal(size=(150, 6)) for centre in centres]
        task = hide(views, y, missing_rate=0.4, label_rate=0.1, random_state=0)
        model = MendClassifier()
        found = model.suggest_first_labels(task.data, 5)
        found_of.append(len(set(task.y_true[found.samples])))
        assert not hasattr(model, "classes_")
        # One label of some class is there: other clusters come next.
        y = np.full(150, -1)
        y[found.samples[0]] = 7
        others = model.suggest_first_labels(task.data, 4, y)
        found_of.append(len(set(task.y_true[[found.samples[0], *others.samples]])))
    assert min(found_of) >= 4
    assert np.mean(found_of) > 4.4


def test_first_labels_need_views_in_memory(task):
    dask = pytest.importorskip("dask.array")
    lazy = [dask.from_array(np.asarray(view)) for view in task.data.views]
    with pytest.raises(InvalidViewsError, match="in memory"):
        MendClassifier().suggest_first_labels(lazy, 3)


def test_views_are_missing_ones_of_unlabelled_samples(model, task):
    found = model.suggest_views()
    names = list(model.view_names_)
    columns = [names.index(view) for view in found.views]
    assert not model.observed_[found.samples, columns].any()
    assert task.unlabelled[found.samples].all()
    assert (np.diff(found.gains) <= 0).all()
    assert sum(worth.n_pairs for worth in found.by_view) == len(found)
    assert sum(worth.gain for worth in found.by_view) == pytest.approx(found.gains.sum())
    for worth in found.by_view:
        assert str(worth) in found.summary()


def test_view_gains_do_not_exceed_what_a_label_brings(model):
    """Once its class is known, an answer is right: no measurement can be worth more."""
    found = model.suggest_views()
    label_gains = 1 - model.label_distributions_[found.samples].max(axis=1)
    assert (found.gains <= label_gains + 1e-9).all()


def test_costs_of_views_decide_between_them(model):
    names = model.view_names_
    found = model.suggest_views(costs={names[0]: 1000.0})
    both_missing = ~model.observed_[found.samples].any(axis=1)
    assert (found.views[both_missing] == names[1]).all()
    assert set(found.costs[found.views == names[0]]) <= {1000.0}
    cheap = model.suggest_views(budget=3.0)
    assert cheap.costs.sum() <= 3.0
    assert len(cheap) == 3


def test_excluded_pairs_are_left_out(model):
    mask = np.zeros(model.observed_.shape, dtype=bool)
    mask[:, 0] = True
    assert set(model.suggest_views(exclude=mask).views) <= {model.view_names_[1]}
    assert len(model.suggest_views(exclude=np.ones(len(mask), dtype=bool))) == 0


def test_suggestions_survive_a_file(model, tmp_path):
    viewmend.save(model, tmp_path / "model.vm")
    again = viewmend.load(tmp_path / "model.vm")
    np.testing.assert_array_equal(again.suggest_labels(5).samples, model.suggest_labels(5).samples)
    np.testing.assert_array_equal(again.suggest_views(5).samples, model.suggest_views(5).samples)


def test_samples_outside_the_graph_are_measured_and_not_labelled(task):
    some = fitted(task.data, task.y, graph_samples=60)
    assert set(some.suggest_labels(5).samples) <= set(some.fitted_state_.order)
    assert set(some.suggest_views().samples) - set(some.fitted_state_.order)


def test_samples_without_a_view_get_views_and_no_labels(task):
    views = [np.array(view) for view in task.data.views]
    mask = task.data.observed.copy()
    lost = np.flatnonzero(task.unlabelled)[:3]
    mask[lost] = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        lacking = MendClassifier(n_rounds=2).fit(views, task.y, mask)
    assert not set(lacking.suggest_labels(20).samples) & set(lost)
    assert set(lost) <= set(lacking.suggest_views().samples)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda m: m.suggest_labels(0), "n must be"),
        (lambda m: m.suggest_labels(2, "best"), "strategy='best'"),
        (lambda m: m.suggest_labels(2, ["best"]), r"strategy=\['best'\]"),
        (lambda m: m.suggest_labels(2, costs=[1.0]), "costs must be one per sample"),
        (lambda m: m.suggest_labels(2, costs=np.zeros(150)), "positive"),
        (lambda m: m.suggest_labels(2, costs=[1.0] * 149 + [-2]), "that of sample 149 is -2.0;"),
        (lambda m: m.suggest_labels(2, costs=np.ma.masked_less(np.arange(150), 3)), "is nan;"),
        (lambda m: m.suggest_labels(2, costs="minutes"), "costs must be numbers, .* 'minutes'"),
        (lambda m: m.suggest_labels(2, costs={"a": 1}), "costs must be numbers, one per sample"),
        (lambda m: m.suggest_labels(2, exclude=True), "exclude must be rows below 150"),
        (lambda m: m.suggest_views(costs={"view 1": "a"}), "costs must be numbers, one per view"),
        (lambda m: m.suggest_views(costs={"view 1": -3}), "that of view 'view 1' is -3.0;"),
        (lambda m: m.suggest_labels(2, exclude=[150]), "exclude must be"),
        (lambda m: m.suggest_labels(2, exclude=["a"]), "exclude names .*'a'.* no identifiers"),
        (lambda m: m.suggest_labels(2, exclude=[1] * 150), "exclude has 0 or 1"),
        (lambda m: m.suggest_views(costs={"rna": 1}), "rna"),
        (lambda m: m.suggest_views(costs=np.ones(7)), "one per view"),
        (lambda m: m.suggest_views(budget=-1), "budget must be"),
        (lambda m: m.suggest_views(exclude=[1] * 150), "exclude has 0 or 1"),
        (lambda m: m.suggest_views(exclude=np.ones((150, 2))), "exclude must be bool"),
        (lambda m: m.suggest_views(exclude=[[1], [2, 3]]), "exclude must be rows below 150"),
    ],
)
def test_errors_name_what_is_wrong(model, call, match):
    with pytest.raises(InvalidParameterError, match=match):
        call(model)


def test_a_model_for_predictions_alone_says_what_it_lacks(model):
    light = model.for_prediction()
    for suggest in (light.suggest_labels, light.suggest_views):
        with pytest.raises(InvalidParameterError, match="samples of fit"):
            suggest(3)


def test_views_need_regressions(task):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        bare = MendClassifier(n_rounds=0).fit(task.data, task.y)
    with pytest.raises(InvalidParameterError, match="n_rounds"):
        bare.suggest_views()
    assert len(bare.suggest_labels(3)) == 3


def test_no_suggestion_says_why(model, task):
    every = np.arange(len(task.y))
    assert "every other one has a label" in model.suggest_labels(3, exclude=every).summary()
    assert "print its summary" in repr(model.suggest_labels(3, exclude=every))
    assert "by the budget" in model.suggest_views(budget=1e-9).summary()
