"""Row indexing of the container, alone and through scikit-learn."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import KFold, train_test_split
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_array, check_consistent_length

from viewmend import MultiViewData, check_views
from viewmend.exceptions import InvalidLabelsError, InvalidViewsError

N_SAMPLES = 7


def make_data(n_samples=N_SAMPLES):
    """Rows tell their own index: row i is i + 1 in view "a", -(i + 1) in view "b", called s<i>."""
    index = np.arange(1.0, n_samples + 1)
    observed = np.column_stack([index % 3 != 0, index % 2 != 0])
    observed[~observed.any(axis=1)] = True
    views = (np.column_stack([index, index]), -index[:, None])
    missing = [np.where(observed[:, [v]], view, np.nan) for v, view in enumerate(views)]
    return MultiViewData(
        tuple(missing),
        observed,
        ("a", "b"),
        ids=np.array([f"s{i}" for i in range(n_samples)]),
        columns=(("p", "q"), ("r",)),
        y=np.array([None, "odd"] * n_samples, dtype=object)[:n_samples],
        name="counted",
        description="rows that tell their index",
    )


def assert_rows(data, rows):
    """``data`` holds the rows of `make_data` with these indices, in this order."""
    whole = make_data()
    np.testing.assert_array_equal(data.observed, whole.observed[rows])
    for view, expected in zip(data.views, whole.views, strict=True):
        np.testing.assert_array_equal(view, expected[rows])
    np.testing.assert_array_equal(data.ids, whole.ids[rows])
    assert data.y.tolist() == whole.y[rows].tolist()
    for about in ("names", "columns", "name", "description"):
        assert getattr(data, about) == getattr(whole, about)


@pytest.mark.parametrize(
    ("key", "rows"),
    [
        (2, [2]),
        (-1, [6]),
        (np.int64(3), [3]),
        (slice(1, 5, 2), [1, 3]),
        (slice(None, None, -1), [6, 5, 4, 3, 2, 1, 0]),
        ([3, 1, 4, 1], [3, 1, 4, 1]),
        (np.array([5, 0]), [5, 0]),
        (range(2, 4), [2, 3]),
        ([True, False, False, True, False, False, False], [0, 3]),
        (np.arange(N_SAMPLES) % 2 == 1, [1, 3, 5]),
        ([], []),
    ],
)
def test_index_takes_rows(key, rows):
    assert_rows(make_data()[key], rows)


@pytest.mark.parametrize(
    "key",
    [
        *(7, [0, 9], [-8], np.ones(3, dtype=bool), np.ones(8, dtype=bool), None, True, 1.0),
        *(
            [1.0, 2.0],
            [[0, 1]],
            "s1",
            ["s1", "s2"],
            (0, 1),
            (slice(None), 0),
            np.ones((7, 1), bool),
        ),
    ],
    ids=repr,
)
def test_what_are_no_rows_is_an_error(key):
    with pytest.raises(IndexError, match=r"rows must be numbers below 7, .*data\.ids"):
        make_data()[key]


def test_a_mask_under_an_index_is_not_taken_by_position():
    pd = pytest.importorskip("pandas")
    data = make_data()
    mask = pd.Series(np.arange(N_SAMPLES) < 2, index=data.ids)
    assert_rows(data[mask], [0, 1])
    assert_rows(data[mask.reset_index(drop=True)], [0, 1])
    with pytest.raises(InvalidViewsError, match="mask must have its rows in the order"):
        data[mask[::-1]]


@pytest.mark.parametrize("form", [list, tuple, "Series", "Index"])
def test_labels_and_identifiers_may_come_in_any_form(form):
    if isinstance(form, str):
        form = getattr(pytest.importorskip("pandas"), form)
    whole = make_data()
    made = replace(whole, y=form(whole.y.tolist()), ids=form(whole.ids.tolist()))
    assert made[[4, 2]].y.tolist() == whole.y[[4, 2]].tolist()
    assert made[[4, 2]].ids.tolist() == ["s4", "s2"]
    pairs = replace(whole, ids=form([("p", i) for i in range(N_SAMPLES)]))
    assert list(pairs[[4, 2]].ids) == [("p", 4), ("p", 2)]


def test_labels_under_an_index_are_those_of_the_rows():
    pd = pytest.importorskip("pandas")
    data = make_data()
    # Rows of a series that is indexed by numbers would be found by its index.
    turned = pd.Series(np.arange(7), index=np.arange(7)[::-1])
    assert replace(data, ids=None, y=turned)[[0, 1]].y.tolist() == [0, 1]
    labels = pd.Series(data.y, index=data.ids)
    assert replace(data, y=labels)[[1]].y.tolist() == ["odd"]
    with pytest.raises(InvalidLabelsError, match="y must have its rows in the order of the views"):
        replace(data, y=labels[::-1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: {"observed": d.observed.astype(int)}, "observed must be bool .* got int64"),
        (lambda d: {"observed": d.observed[:, 0]}, r"observed must be bool .* of shape \(7,\)"),
        (lambda _: {"names": ("a", "a")}, r"names different, got .*\('a', 'a'\)"),
    ],
)
def test_what_a_container_cannot_be_made_of_is_refused(change, message):
    data = make_data()
    with pytest.raises(InvalidViewsError, match=message):
        replace(data, **change(data))


def test_frames_in_a_container_are_refused():
    pd = pytest.importorskip("pandas")
    data = make_data()
    # Its rows would be taken as columns, and the names of its columns lost.
    views = (pd.DataFrame(data.views[0]), data.views[1])
    with pytest.raises(InvalidViewsError, match=r"'a' must be an array .* got a DataFrame"):
        replace(data, views=views)
    with pytest.raises(InvalidViewsError, match="'observed' must be an array"):
        replace(data, observed=pd.DataFrame(data.observed))


def test_lists_of_views_and_of_what_is_observed_become_tuples_and_an_array():
    data = make_data()
    made = replace(
        data, views=list(data.views), names=list(data.names), observed=data.observed.tolist()
    )
    assert_rows(made, np.arange(N_SAMPLES))


def test_iteration_visits_every_sample_once():
    for row, sample in enumerate(make_data()):
        assert_rows(sample, [row])
    assert row == N_SAMPLES - 1


@pytest.mark.parametrize(
    ("key", "rows"),
    [
        ([4, 0], [4, 0]),
        (np.array([4, 0]), [4, 0]),
        (slice(2, 4), [2, 3]),
        (np.arange(N_SAMPLES) < 2, [0, 1]),
        ([True, True, False, False, False, False, False], [0, 1]),
    ],
)
def test_safe_indexing(key, rows):
    assert_rows(_safe_indexing(make_data(), key), rows)


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, N_SAMPLES - 1))
def test_train_test_split_keeps_rows_and_labels_together(seed, size):
    index = np.arange(N_SAMPLES)
    train, test, i_train, i_test = train_test_split(
        make_data(), index, test_size=size, random_state=seed
    )
    assert_rows(train, i_train)
    assert_rows(test, i_test)
    assert sorted([*i_train, *i_test]) == index.tolist()


def test_folds_cover_the_samples():
    data = make_data()
    for train, test in KFold(3).split(data):
        assert_rows(data[train], train)
        assert_rows(data[test], test)


def test_length_is_compared_with_the_labels():
    check_consistent_length(make_data(), np.zeros(N_SAMPLES))
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[7, 6\]"):
        check_consistent_length(make_data(), np.zeros(6))


def test_indexing_copies():
    data = make_data()
    part = data[:]
    part.views[0][:] = 0
    part.observed[:] = False
    assert_rows(data, np.arange(N_SAMPLES))


def test_sizes_describe_the_stacked_form():
    data = make_data()
    assert (data.n_samples, data.n_views, data.n_features) == (7, 2, (2, 1))
    assert len(data) == 7
    stacked = data.stacked()
    assert data.shape == stacked.shape
    np.testing.assert_array_equal(stacked[:, :2], data.views[0])
    np.testing.assert_array_equal(stacked[:, 2:], data.views[1])


def test_one_array_is_the_stacked_form():
    data = make_data()
    np.testing.assert_array_equal(np.asarray(data), data.stacked())
    np.testing.assert_array_equal(check_array(data, ensure_all_finite=False), data.stacked())
    assert np.asarray(data, dtype=np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="Input contains NaN"):
        check_array(data)
    with pytest.raises(ValueError, match="needs a copy, but copy=False forbids it"):
        np.asarray(data, copy=False)


def test_dtype_is_that_of_the_stacked_form():
    data = make_data()
    narrow, wide = data.views[0].astype(np.float32), data.views[1]
    for views in ((narrow, narrow), (narrow, wide), (wide, wide)):
        mixed = MultiViewData(views, data.observed, data.names)
        assert mixed.dtype == mixed.stacked().dtype == np.asarray(mixed).dtype


def test_sizes_may_be_told_twice_but_not_differently():
    data = make_data()
    for sizes in ((2, 1), [2, 1], np.array([2, 1])):
        np.testing.assert_array_equal(check_views(data, view_sizes=sizes), data)
    with pytest.raises(InvalidViewsError, match=r"view_sizes=\(1, 2\) splits one 2-D array"):
        check_views(data, view_sizes=(1, 2))


def test_rows_seen_are_the_rows_that_are_not_nan():
    data = make_data()
    np.testing.assert_array_equal(data.rows_seen(0)[:, 0], [1, 2, 4, 5, 6, 7])
    np.testing.assert_array_equal(data.rows_seen(1)[:, 0], [-1, -3, -5, -6, -7])


def test_repr_tells_names_columns_and_shares():
    seen = "a: 2 columns, 100% observed, b: 1 column, 50% observed"
    data = make_data()[[0, 1]]
    assert repr(data) == f"MultiViewData(counted: 2 samples, 1 labelled; {seen})"
    bare = MultiViewData(data.views, data.observed, data.names)
    assert repr(bare) == f"MultiViewData(2 samples; {seen})"


def test_rows_without_labels_and_identifiers_can_be_taken_too():
    data = make_data()
    bare = MultiViewData(data.views, data.observed, data.names)[[4, 2]]
    assert (bare.ids, bare.y, bare.columns) == (None, None, None)
    np.testing.assert_array_equal(bare.sample_ids, [0, 1])
    np.testing.assert_array_equal(bare.views[1][:, 0], [-5, -3])


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("ids", ["s0"], "ids must have one row per sample, 7 of them, but has 1"),
        ("y", [0] * 8, "y must have one row per sample, 7 of them, but has 8"),
        ("views", (np.ones((7, 2)), np.ones((6, 1))), r"views\[1\] must .* but has 6"),
        ("names", ("a",), "names must have one entry per view, 2 of them, but has 1"),
        ("columns", ((),), "columns must have one entry per view"),
        (
            "columns",
            (("x", "y"), ("z", "w")),
            r"columns\[1\] must have one name per column of view 1, 1 of them, but has 2",
        ),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(part, value, message):
    with pytest.raises(InvalidViewsError, match=message):
        replace(make_data(), **{part: value})


@pytest.mark.parametrize(
    ("labels", "n_labelled"),
    [(None, 0), ([-1, 0, 1, 1, 0, -1, -1], 4), ([None, "a", "b", np.nan, "a", None, "c"], 4)],
)
def test_labelled_samples_are_counted_whatever_marks_the_others(labels, n_labelled):
    y = None if labels is None else np.array(labels, dtype=object)
    assert replace(make_data(), y=y).n_labelled == n_labelled


def test_labels_that_must_be_there_are_missed_by_name():
    assert make_data().required_labels() is not None
    with pytest.raises(InvalidLabelsError, match="the data 'counted' must have labels"):
        replace(make_data(), y=None).required_labels()


def test_a_check_keeps_what_lies_beside_the_views():
    assert_rows(check_views(make_data()), np.arange(N_SAMPLES))


def test_views_that_are_no_arrays_yet_are_read():
    """Whoever makes the object itself may put anything in it that has rows of numbers."""
    data = make_data()
    views = data.views[0].astype(object), np.ma.masked_invalid(data.views[1])
    checked = check_views(replace(data, views=views))
    np.testing.assert_array_equal(checked.stacked(), data.stacked())
    torch = pytest.importorskip("torch")
    checked = check_views(replace(data, views=tuple(map(torch.from_numpy, data.views))))
    np.testing.assert_array_equal(checked.stacked(), data.stacked())
    backwards = torch._neg_view(-torch.from_numpy(data.views[0]))
    np.testing.assert_array_equal(check_views([backwards]).views[0], data.views[0])
