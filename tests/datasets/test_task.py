"""hide: what is taken away, what stays, and in which order the rows come."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewmend import MendClassifier
from viewmend.datasets import (
    LABEL_PROTOCOLS,
    MISSING_PROTOCOLS,
    hide,
    make_broken_moons,
    make_multiview_blobs,
)
from viewmend.exceptions import InvalidLabelsError, InvalidParameterError, InvalidViewsError

ORDERS = ["shuffled", "file", "released"]


@pytest.fixture(scope="module")
def sorted_blobs():
    """Views and labels sorted by class, as benchmark files come."""
    dataset = make_multiview_blobs(90, n_views=3, n_features=[2, 3, 4], random_state=0)
    rows = np.argsort(dataset.y, kind="stable")
    return [view[rows] for view in dataset.views], dataset.y[rows]


def hide_half(views, y, **options):
    return hide(views, y, **{"missing_rate": 0.5, "label_rate": 0.1, "random_state": 7} | options)


def assert_same_task(one, other):
    np.testing.assert_array_equal(one.order, other.order)
    np.testing.assert_array_equal(one.y, other.y)
    np.testing.assert_array_equal(one.data.observed, other.data.observed)
    np.testing.assert_array_equal(one.data.stacked(), other.data.stacked())


@pytest.mark.parametrize("missing", MISSING_PROTOCOLS)
@pytest.mark.parametrize("labels", LABEL_PROTOCOLS)
@pytest.mark.parametrize("order", ORDERS)
def test_rows_are_the_original_rows_or_nan(sorted_blobs, missing, labels, order):
    views, y = sorted_blobs
    task = hide_half(views, y, missing=missing, labels=labels, order=order)
    np.testing.assert_array_equal(np.sort(task.order), np.arange(y.size))
    np.testing.assert_array_equal(task.y_true, y[task.order])
    for original, view, seen in zip(views, task.data.views, task.data.observed.T, strict=True):
        np.testing.assert_array_equal(view[seen], original[task.order][seen])
        assert np.isnan(view[~seen]).all()
        assert 0 < seen.sum() < y.size


@given(seed=st.integers(0, 2**32 - 1), percent=st.integers(1, 99))
def test_only_the_labelled_share_is_revealed(sorted_blobs, seed, percent):
    views, y = sorted_blobs
    task = hide_half(views, y, label_rate=percent / 100, random_state=seed)
    revealed = task.y >= 0
    assert revealed.sum() == 3 * -(-30 * percent // 100)
    np.testing.assert_array_equal(task.y[revealed], task.y_true[revealed])
    np.testing.assert_array_equal(task.y[~revealed], -1)
    np.testing.assert_array_equal(task.labelled, revealed)
    np.testing.assert_array_equal(task.unlabelled, ~revealed)


def test_views_do_not_depend_on_the_labels_they_hide(sorted_blobs):
    """With random labels, wrong classes for all samples must leave the same pairs missing."""
    views, y = sorted_blobs
    right, wrong = hide_half(views, y), hide_half(views, (y + 1) % 3)
    np.testing.assert_array_equal(right.data.observed, wrong.data.observed)
    np.testing.assert_array_equal(right.order, wrong.order)


@pytest.mark.parametrize("order", ORDERS)
def test_a_seed_fixes_the_task(sorted_blobs, order):
    assert_same_task(hide_half(*sorted_blobs, order=order), hide_half(*sorted_blobs, order=order))
    other = hide_half(*sorted_blobs, order=order, random_state=8)
    assert (other.data.observed != hide_half(*sorted_blobs, order=order).data.observed).any()


def test_a_generator_gives_a_sequence_of_different_tasks(sorted_blobs):
    one, other = np.random.default_rng(7), np.random.default_rng(7)
    first, second = (hide_half(*sorted_blobs, random_state=one) for _ in range(2))
    assert (first.order != second.order).any()
    assert_same_task(first, hide_half(*sorted_blobs, random_state=other))
    assert_same_task(second, hide_half(*sorted_blobs, random_state=other))


def test_rows_are_shuffled_unless_told_otherwise(sorted_blobs):
    views, y = sorted_blobs
    task = hide_half(views, y)
    # Sorted, all but two neighbours share their class; shuffled, 29 of 89 do on average.
    assert np.mean(task.y_true[1:] == task.y_true[:-1]) < 0.6
    np.testing.assert_array_equal(hide_half(views, y, order="file").order, np.arange(y.size))


@pytest.mark.parametrize("labels", LABEL_PROTOCOLS)
def test_the_order_changes_the_layout_only(sorted_blobs, labels):
    by_row = []
    for order in ORDERS:
        task = hide_half(*sorted_blobs, labels=labels, order=order)
        back = np.argsort(task.order)
        by_row.append(np.column_stack([task.data.stacked(), task.y, task.y_true])[back])
    np.testing.assert_array_equal(by_row[0], by_row[1])
    np.testing.assert_array_equal(by_row[0], by_row[2])


def test_released_order_puts_the_most_complete_labelled_rows_first(sorted_blobs):
    views, y = sorted_blobs
    task = hide_half(views, y, label_rate=0.6, labels="most_complete", order="released")
    per_class, n_labelled = 18, 54
    np.testing.assert_array_equal(np.flatnonzero(task.labelled), np.arange(n_labelled))
    np.testing.assert_array_equal(task.y[:n_labelled], np.repeat([0, 1, 2], per_class))
    n_seen = task.data.observed.sum(axis=1)[:n_labelled].reshape(3, per_class)
    assert (np.diff(n_seen, axis=1) <= 0).all()
    assert (n_seen[:, 0] > n_seen[:, -1]).all()
    assert (np.diff(task.order[n_labelled:]) > 0).all()


def test_the_choices_are_independent(sorted_blobs):
    """More labels neither move rows nor hide other pairs; another rate keeps the order."""
    task = hide_half(*sorted_blobs)
    more_labels = hide_half(*sorted_blobs, label_rate=0.6, labels="most_complete")
    np.testing.assert_array_equal(task.data.observed, more_labels.data.observed)
    np.testing.assert_array_equal(task.order, more_labels.order)
    more_missing = hide_half(*sorted_blobs, missing_rate=0.8)
    np.testing.assert_array_equal(task.order, more_missing.order)
    np.testing.assert_array_equal(task.y, more_missing.y)


def test_the_callers_arrays_stay_whole(sorted_blobs):
    views, y = sorted_blobs
    copies = [view.copy() for view in views]
    hide_half(views, y, order="file")
    for view, copy in zip(views, copies, strict=True):
        np.testing.assert_array_equal(view, copy)


def test_integer_views_become_float_and_names_are_kept():
    counts = np.arange(12, dtype=np.uint8).reshape(6, 2)
    task = hide_half([counts, counts], np.array([0, 0, 0, 5, 5, 5]), view_names=["a", "b"])
    assert task.data.names == ("a", "b")
    assert [view.dtype for view in task.data.views] == [np.float64, np.float64]
    np.testing.assert_array_equal(
        task.data.rows_seen(0), counts[task.order][task.data.observed[:, 0]]
    )
    assert set(task.y) == {-1, 0, 5}


def arrays_reached_from(thing):
    """All arrays that the attributes of an object lead to, whatever they are called."""
    if isinstance(thing, np.ndarray):
        return [thing, *arrays_reached_from(thing.base)]
    parts = list(vars(thing).values()) if hasattr(thing, "__dict__") else ()
    parts = list(thing) if isinstance(thing, (tuple, list)) else parts
    return [array for part in parts for array in arrays_reached_from(part)]


@pytest.mark.parametrize("order", ORDERS)
def test_nothing_leads_from_the_data_to_the_hidden_classes(order):
    """Neither labels, identifiers nor views: every array that is reached is about what is seen."""
    blobs = make_multiview_blobs(40, n_views=2, random_state=1)
    named = replace(blobs, ids=np.array([f"s{i}" for i in range(40)]))
    task = hide_half(named, None, order=order)
    np.testing.assert_array_equal(task.data.y, task.y)
    assert task.data.ids.tolist() == [f"s{i}" for i in task.order]
    for array in arrays_reached_from(task.data):
        if array.shape == (40,) and array.dtype.kind in "iu":
            assert (array[task.unlabelled] == -1).all()
        assert not np.shares_memory(array, task.y_true)
        assert not any(np.shares_memory(array, given) for given in (*blobs.views, blobs.y))
    # Labels that were in the data before are put out of reach too.
    again = replace(task, data=replace(task.data, y=task.y_true))
    np.testing.assert_array_equal(again.data.y, task.y)


def test_a_task_is_fitted_by_its_data_alone():
    task = make_broken_moons(random_state=0)
    told = MendClassifier(n_rounds=0).fit(task.data)
    given = MendClassifier(n_rounds=0).fit(task.data, task.y)
    np.testing.assert_array_equal(told.label_distributions_, given.label_distributions_)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a", "b", "a", "b"], "must hold integers but has dtype <U1"),
        ([0.0, 1.0, 0.0, 1.0], "must hold integers but has dtype float64"),
        ([True, False, True, False], "must hold integers but has dtype bool"),
        ([0, 1, -1, 1], "must be non-negative but holds -1"),
        ([0, 1, 0], r"shape \(4,\), but has shape \(3,\)"),
        ([[0], [1], [0], [1]], r"shape \(4,\), but has shape \(4, 1\)"),
    ],
)
def test_labels_that_cannot_be_used(y, message):
    with pytest.raises(InvalidLabelsError, match=message):
        hide_half([np.zeros((4, 2)), np.ones((4, 3))], y)


@pytest.mark.parametrize(
    ("views", "message"),
    [
        ([], "no views: expected at least one array"),
        ([np.zeros((4, 2)), np.ones((3, 4))], "view 1 has 3 rows but view 0 has 4"),
        ([np.zeros((4, 2)), [[1.0], [np.nan], [2.0], [np.inf]]], "view 1 .* 2 of its values are"),
        ([[["a"], ["b"], ["c"], ["d"]]], "view 0 must be numeric, got dtype <U1"),
    ],
)
def test_views_that_cannot_be_used(views, message):
    with pytest.raises(InvalidViewsError, match=message):
        hide_half(views, [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"missing_rate": 1}, "missing rate must lie in"),
        ({"label_rate": 0}, "label rate must lie in"),
        (
            {"missing": "mcar"},
            "missing='mcar' is not known; choose one of 'independent', 'samples'",
        ),
        ({"labels": "first"}, "labels='first' is not known; choose one of 'most_complete'"),
        ({"order": "sorted"}, "order='sorted' is not known; choose one of 'shuffled', 'file'"),
        ({"view_names": ["a"]}, "view_names must be a sequence of 3 names"),
        ({"view_names": "abc"}, "view_names must be a sequence of 3 names"),
    ],
)
def test_options_that_cannot_be_used(sorted_blobs, options, message):
    with pytest.raises(InvalidParameterError, match=message):
        hide_half(*sorted_blobs, **options)
