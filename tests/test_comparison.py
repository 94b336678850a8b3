"""Methods beside each other: what is held out, what is found, and what is said of it."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.base import BaseEstimator
from sklearn.metrics import balanced_accuracy_score

from viewmend import check_views, compare_methods
from viewmend.baselines import LateFusionClassifier, UnionGraphClassifier
from viewmend.baselines.registry import METHODS, SIMPLER_FIRST
from viewmend.comparison import (
    DEFAULT_METHODS,
    ComparedMethod,
    MethodComparison,
    paired_difference,
)
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import DataWarning, InvalidLabelsError, InvalidParameterError
from viewmend.plot import plot_comparison

QUICK = ["union graph", "mean + logistic", "late fusion"]


def task_of(noise, n_samples=150, label_rate=0.5):
    blobs = make_multiview_blobs(n_samples, noise=noise, random_state=0)
    return hide(blobs.views, blobs.y, missing_rate=0.3, label_rate=label_rate, random_state=0)


TASK = task_of(5.0)


class Spy(BaseEstimator):
    """Remembers what every fit was given, and says the first class."""

    fits: list = []  # noqa: RUF012

    def fit(self, X, y):
        self.fits.append((X, np.array([-1 if label is None else label for label in y])))
        self.transduction_ = np.full(len(y), 0)
        return self


class Broken(BaseEstimator):
    def fit(self, _X, _y):
        raise RuntimeError("the matrix is\nsingular")


def row_of(name, is_right, truth=None):
    is_right = np.asarray(is_right, dtype=bool)
    truth = np.arange(len(is_right)) % 2 if truth is None else np.asarray(truth)
    return ComparedMethod(name, is_right, truth, 0.1)


def comparison_of(*rows):
    """Of rows that are given simplest first."""
    best_first = sorted(rows, key=lambda row: -row.is_right.sum())
    return MethodComparison(tuple(best_first), tuple(row.name for row in rows), 5)


def test_on_separated_classes_all_are_right_and_the_simplest_is_recommended():
    task = task_of(0.5)
    found = compare_methods(task.data, task.y)
    assert {row.name for row in found.methods} == {*DEFAULT_METHODS}
    assert all(row.accuracy > 0.97 for row in found.methods)
    assert found.recommended.name == "mean + logistic" == found.simpler_first[0]
    assert found.beats_guessing
    assert "mean + logistic" in found.advice()


def test_on_noise_nothing_beats_the_most_frequent_class():
    rng = np.random.default_rng(3)
    views = [rng.normal(size=(150, 4)), rng.normal(size=(150, 3))]
    y = np.where(np.arange(150) < 110, rng.random(150) < 0.3, -1)
    found = compare_methods(views, y, methods=QUICK)
    _, counts = np.unique(y[y >= 0], return_counts=True)
    assert not found.beats_guessing
    assert "No method is shown to beat guessing" in found.advice()
    assert f"right for {counts.max() / counts.sum():.2f} of the held-out" in found.advice()


def test_held_out_labels_reach_no_fit_and_every_other_label_does():
    Spy.fits.clear()
    # Two labels of class 2, one of class 3, in a container that holds the labels too.
    y = np.where(TASK.y == 2, -1, TASK.y)
    y[np.flatnonzero(TASK.y == 2)[:3]] = [2, 2, 3]
    data = check_views([*TASK.data.views])
    data = type(data)(data.views, data.observed, data.names, y=y)
    found = compare_methods(data, methods={"spy": Spy()}, n_splits=4)
    assert all(X.y is None for X, _ in Spy.fits)
    given = np.array([labels for _, labels in Spy.fits])
    assert given.shape == (4, 150)
    hidden = (given == -1) & (y >= 0)
    assert_array_equal(hidden.sum(axis=0), (y >= 0) & (y != 3))
    assert_array_equal(given[~hidden], np.tile(y, (4, 1))[~hidden])
    assert all(set(labels) == {-1, 0, 1, 2, 3} for labels in given)
    assert found.never_held_out == (3,)
    assert found["spy"].accuracy == np.mean(y[(y >= 0) & (y != 3)] == 0)


def test_all_methods_are_asked_the_same_labels():
    found = compare_methods(TASK.data, TASK.y, methods=QUICK)
    first, *others = found.methods
    for row in others:
        assert_array_equal(row.truth, first.truth)
    assert len(first.truth) == (TASK.y >= 0).sum()


def test_rows_in_another_order_give_the_same_table():
    order = np.random.default_rng(0).permutation(150)
    first = compare_methods(TASK.data, TASK.y, methods=QUICK, random_state=7)
    second = compare_methods(TASK.data[order], TASK.y[order], methods=QUICK, random_state=7)
    for row in first.methods:
        assert_array_equal(second[row.name].is_right, row.is_right)


def test_labels_of_samples_without_any_view_do_not_count():
    """All of a class but one: it is never held out, and no method fails for lack of it."""
    mask, rows = TASK.data.observed.copy(), np.flatnonzero(TASK.y == 1)[1:]
    mask[rows] = False
    with pytest.warns(DataWarning, match=f"labels of {len(rows)} samples without any view"):
        found = compare_methods(TASK.data.views, TASK.y, mask, QUICK)
    fewer = np.where(mask.any(axis=1), TASK.y, -1)
    expected = compare_methods(TASK.data.views, fewer, mask, QUICK)
    assert found.never_held_out == expected.never_held_out == (1,)
    for row in expected.methods:
        assert row.failure is None
        assert_array_equal(found[row.name].is_right, row.is_right)
    mask[TASK.y == 1] = False
    with pytest.raises(InvalidLabelsError, match="class 1 has labels, but only of"):
        compare_methods(TASK.data.views, TASK.y, mask, QUICK)


def test_a_failing_method_is_the_last_row_with_its_reason():
    models = {"broken": Broken(), "graph": UnionGraphClassifier()}
    found = compare_methods(TASK.data, TASK.y, methods=models)
    assert [row.name for row in found.methods] == ["graph", "broken"]
    assert found["broken"].failure == "RuntimeError: the matrix is singular"
    assert found.records()[1]["accuracy"] is None
    assert "broken  failed: RuntimeError: the matrix is singular" in found.table()
    # It is simpler, but there is nothing to recommend of it.
    assert found.recommended is found.best is found["graph"]


def test_where_all_fail_the_sentence_says_so():
    found = compare_methods(TASK.data, TASK.y, methods={"broken": Broken()})
    assert found.best is None
    assert found.recommended is None
    assert found.summary().endswith("No method could be fitted; the table says why.")


@pytest.mark.parametrize("n_right", [0, 1, 17, 39, 40])
def test_intervals_contain_their_values_and_shrink_with_labels(n_right):
    truth = np.arange(40) % 3
    few = row_of("few", np.arange(40) < n_right, truth)
    many = row_of("many", np.tile(few.is_right, 9), np.tile(truth, 9))
    assert_allclose(few.accuracy, n_right / 40)
    assert_allclose(
        few.balanced_accuracy,
        balanced_accuracy_score(truth, np.where(few.is_right, truth, (truth + 1) % 3)),
    )
    for row in (few, many):
        assert row.interval[0] <= row.accuracy <= row.interval[1]
        low, high = row.balanced_interval
        assert 0 <= low <= row.balanced_accuracy <= high <= 1
    assert np.ptp(many.interval) < np.ptp(few.interval)
    assert np.ptp(many.balanced_interval) < np.ptp(few.balanced_interval)


def test_balanced_intervals_hold_the_truth_as_often_as_promised():
    rng, recalls, truth = (
        np.random.default_rng(0),
        np.array([0.9, 0.6]),
        np.repeat([0, 1], [30, 60]),
    )
    held = []
    for _ in range(400):
        low, high = row_of("m", rng.random(90) < recalls[truth], truth).balanced_interval
        held.append(low <= recalls.mean() <= high)
    # 95 % within four standard errors.
    assert 0.905 <= np.mean(held) <= 0.995


def test_balanced_intervals_count_the_groups_of_each_class():
    """Labels that are the same within groups tell as much as one label of each, class by class."""
    is_right, truth = np.array([1, 0, 1, 1, 0, 1, 1, 1], dtype=bool), np.repeat([0, 2], [2, 6])
    alone = ComparedMethod("m", is_right, truth, 0.1)
    sizes = np.where(truth == 0, 10, 3)
    grouped = ComparedMethod(
        "m", np.repeat(is_right, sizes), np.repeat(truth, sizes), 0.1, None, 8, np.array([2, 0, 6])
    )
    assert grouped.balanced_accuracy == alone.balanced_accuracy
    assert_allclose(grouped.balanced_interval, alone.balanced_interval)


def test_paired_differences_count_samples_that_one_method_alone_finds():
    both, neither = np.ones(50, bool), np.zeros(30, bool)
    first = np.concatenate([both, neither, np.ones(14, bool), np.zeros(4, bool)])
    second = np.concatenate([both, neither, np.zeros(14, bool), np.ones(4, bool)])
    lead = paired_difference(first, second)
    assert_allclose(lead.value, first.mean() - second.mean())
    # Wald's interval with one sample more on either side: Bonett and Price, 2012.
    middle = 10 / 100
    reach = norm.ppf(0.975) * np.sqrt((20 / 100 - middle**2) / 100)
    assert_allclose([lead.low, lead.high], [middle - reach, middle + reach])
    back = paired_difference(second, first)
    assert_allclose([back.value, back.low, back.high], [-lead.value, -lead.high, -lead.low])


def test_methods_that_agree_are_told_equal_by_many_labels_only():
    leads = [paired_difference(np.ones(n, bool), np.ones(n, bool)) for n in (5, 50, 500)]
    assert all(lead.value == 0 for lead in leads)
    assert all(more.high < less.high for less, more in pairwise(leads))


def test_a_simpler_method_is_as_good_only_if_the_labels_show_it():
    n = 400
    best = np.arange(n) < 380
    cases = {
        # One label fewer, of 400.
        "as good": (np.arange(n) < 379, slice(None)),
        # A tenth fewer.
        "no simpler method is as good": (np.arange(n) < 340, slice(None)),
        # The same shares of 40 labels leave both open.
        "cannot be told apart from": (np.arange(n) % 10 != 0, slice(0, 40)),
    }
    for words, (simple, rows) in cases.items():
        truth = np.arange(n)[rows] % 4
        found = comparison_of(
            row_of("plain", (best & simple)[rows], truth), row_of("elaborate", best[rows], truth)
        )
        assert words in found.advice(), found.advice()
        expected = "plain" if words == "as good" else "elaborate"
        assert found.recommended.name == expected


def test_every_registered_method_has_its_place_among_the_simpler_ones():
    assert sorted(SIMPLER_FIRST) == sorted(METHODS)
    assert len(set(SIMPLER_FIRST)) == len(SIMPLER_FIRST)


def test_a_method_whose_simplicity_is_unknown_comes_last(monkeypatch):
    monkeypatch.setattr("viewmend.comparison.contest.SIMPLER_FIRST", ("union graph",))
    found = compare_methods(TASK.data, TASK.y, methods=["late fusion", "union graph"], n_splits=2)
    assert found.simpler_first == ("union graph", "late fusion")


def test_names_are_sorted_by_simplicity_and_estimators_stay_as_given():
    found = compare_methods(TASK.data, TASK.y, methods=QUICK, n_splits=2)
    assert found.simpler_first == ("mean + logistic", "late fusion", "union graph")
    models = {"b": UnionGraphClassifier(), "a": LateFusionClassifier()}
    assert compare_methods(TASK.data, TASK.y, methods=models, n_splits=2).simpler_first == (
        "b",
        "a",
    )


def test_methods_and_splits_that_cannot_be_used_are_refused():
    with pytest.raises(
        InvalidParameterError, match="no method 'magic'; choose one of Mend, AGF-TI"
    ):
        compare_methods(TASK.data, TASK.y, methods=["magic"])
    with pytest.raises(InvalidParameterError, match="methods must be a list of names"):
        compare_methods(TASK.data, TASK.y, methods="Mend")
    with pytest.raises(InvalidParameterError, match="pass estimators as a dict"):
        compare_methods(TASK.data, TASK.y, methods=[UnionGraphClassifier()])
    y = np.full(150, -1)
    y[:4] = [0, 0, 1, 1]
    with pytest.raises(InvalidLabelsError, match=r"n_splits=5 must be at most .* got 4"):
        compare_methods(TASK.data, y, methods=QUICK)
    # No estimator was asked to search, so that it cannot be used without.
    with pytest.raises(InvalidLabelsError, match=r"two samples of some class in different groups$"):
        compare_methods(TASK.data, TASK.y, methods=QUICK, groups=np.zeros(150))


def test_every_fit_is_told():
    steps = []
    compare_methods(
        TASK.data, TASK.y, methods=QUICK[:2], n_splits=2, on_step=lambda *step: steps.append(step)
    )
    names = ["mean + logistic", "union graph"]
    assert steps == [(name, done, 2) for name in names for done in range(2)]


def test_what_goes_wrong_in_a_callback_is_no_failure_of_a_method():
    def stop(*_step):
        raise StopIteration

    with pytest.raises(StopIteration):
        compare_methods(TASK.data, TASK.y, methods=QUICK, on_step=stop)


def test_the_picture_shows_accuracies_intervals_and_guessing():
    found = comparison_of(row_of("plain", np.arange(40) < 20), row_of("best", np.arange(40) < 30))
    ax = found.plot(Figure().subplots())
    dots, dashed = ax.lines
    assert_allclose(dots.get_xdata(), [0.75, 0.5])
    assert_allclose(dashed.get_xdata(), [0.5, 0.5])
    drawn = [segment[:, 0] for segment in ax.collections[0].get_segments()]
    assert_allclose(drawn, [row.interval for row in found.methods])
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["best", "plain"]
    assert len(plot_comparison(["a"], [0.5], [(0.4, 0.6)], ax=Figure().subplots()).lines) == 1


def test_rows_are_found_by_name_and_an_unknown_name_is_told():
    found = comparison_of(row_of("one", [1, 0, 1]), row_of("two", [1, 1, 1]))
    assert [row.name for row in found] == [row.name for row in found.methods]
    assert len(found) == len(found.methods)
    assert found.methods[0].name in found
    assert "Mendel" not in found
    assert repr(found["two"]) == "<two: accuracy 1.00 (0.29 to 1.00)>"
    with pytest.raises(InvalidParameterError, match="'Mendel' is none of the methods compared"):
        found["Mendel"]


def test_names_and_seeds_are_checked_before_any_fit():
    blobs = make_multiview_blobs(30, random_state=0)
    with pytest.raises(InvalidParameterError, match="text for names, got 1"):
        compare_methods(blobs.views, blobs.y, methods={1: UnionGraphClassifier()})
    with pytest.raises(InvalidParameterError, match="random_state must be"):
        compare_methods(blobs.views, blobs.y, methods=["union graph"], random_state=-1)
