"""Planted defects are found, named and counted, and data without any raises no alarm."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from viewmend import MendClassifier
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import DataWarning, InvalidLabelsError, InvalidViewsError
from viewmend.inspection import inspect_data


def clean(n_samples=40, seed=0):
    """Two views of which every sample has one, four labels per class, in no order."""
    rng = np.random.default_rng(seed)
    views = {"photo": rng.normal(size=(n_samples, 3)), "text": rng.normal(size=(n_samples, 2))}
    views["photo"][8 + rng.permutation(n_samples - 8)[: n_samples // 4]] = np.nan
    y = np.full(n_samples, None, dtype=object)
    y[:8] = rng.permutation(["cat", "dog"] * 4)
    return views, y


def found(severity, views, y=None, **options):
    """Findings of one severity as (subject, message)."""
    findings = inspect_data(views, y, **options).findings
    return [(f.subject, f.message) for f in findings if f.severity == severity]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(12, 80))
def test_clean_data_raise_no_alarm(seed, n_samples):
    views, y = clean(n_samples, seed)
    assert inspect_data(views, y).findings == ()


def test_an_inspection_prints_in_one_line():
    views, y = clean()
    views["photo"][0, 0] = np.inf
    line = "<Inspection of 40 samples, 8 of them labelled, in 2 view(s); findings: 1 error>"
    assert repr(inspect_data(views, y)) == line


def test_measurements_worked_out_by_hand():
    nan = np.nan
    photo = [[1.0, 5.0], [2.0, 5.0], [nan, nan], [1.0, 5.0]]
    text = [[nan], [3.0], [4.0], [nan]]
    data = inspect_data({"photo": np.array(photo), "text": np.array(text)}, ["a", "b", None, "b"])
    one, other = data.views
    assert (one.n_columns, one.n_observed, one.coverage, one.n_labelled) == (2, 3, 0.75, 3)
    assert (one.n_constant_columns, one.n_duplicate_rows) == (1, 1)
    assert_array_equal(one.conflicting_rows, [0, 3])
    assert one.scale == pytest.approx(np.sqrt((1 + 4 + 1 + 3 * 25) / 6))
    assert (other.coverage, other.n_labelled) == (0.5, 1)
    assert data.samples_by_views == (0, 3, 1)
    assert [(p.views, p.n_samples) for p in data.patterns] == [
        (("photo",), 2),
        (("photo", "text"), 1),
        (("text",), 1),
    ]
    assert data.class_counts == {"a": 1, "b": 2}
    assert data.label_rate == 0.75


def test_a_mask_says_the_same_as_rows_of_nan():
    views, y = clean()
    mask = np.column_stack([~np.isnan(view).any(axis=1) for view in views.values()])
    filled = {name: np.nan_to_num(view, nan=9.0) for name, view in views.items()}
    one, other = inspect_data(views, y), inspect_data(filled, y, mask=mask)
    assert one.patterns == other.patterns
    assert [v.scale for v in one.views] == [v.scale for v in other.views]
    assert [v.order for v in one.views] == [v.order for v in other.views]


def test_what_a_fit_refuses_is_an_error_under_the_names_of_the_samples():
    views, y = clean()
    views["text"][3, 0] = np.inf
    for view in views.values():
        view[10] = np.nan
    ids = [f"p{i}" for i in range(40)]
    assert found("error", views, y, ids=ids) == [
        ("text", "1 row(s) hold values that are infinite or beyond 1e+140 (p3)"),
    ]
    with pytest.raises(InvalidViewsError):
        MendClassifier().fit(views, y)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_numbers_too_large_or_too_small_for_a_fit_are_errors():
    views, y = clean()
    views["photo"] *= 1e-200
    views["text"][5] *= 1e300
    assert found("error", views, y) == [
        ("text", "1 row(s) hold values that are infinite or beyond 1e+140 (5)"),
        ("photo", "its values are below 1e-140, so that their squares are rounded to zero"),
    ]
    for name in views:
        with pytest.raises(InvalidViewsError, match=name):
            MendClassifier().fit({name: views[name][:8]}, y[:8])


def test_a_view_that_nobody_has():
    views, y = clean()
    views["sound"] = np.full((40, 2), np.nan)
    assert found("error", views, y) == [("sound", "no sample is observed")]
    assert found("warning", views, y) == []


@pytest.mark.parametrize(
    ("y", "counts"),
    [([None] * 40, {}), (["cat"] * 40, {"cat": 40}), (["cat", "dog"], {})],
    ids=["none", "one class", "too few"],
)
def test_labels_that_a_fit_refuses_are_an_error_in_its_own_words(y, counts):
    views, _ = clean()
    data = inspect_data(views, y)
    with pytest.raises(InvalidLabelsError) as refusal:
        MendClassifier().fit(views, y)
    (finding,) = data.findings
    assert (finding.severity, finding.subject) == ("error", "labels")
    assert f"{finding.message}; {finding.remedy}" == str(refusal.value)
    assert data.class_counts == counts


def test_defects_that_a_fit_survives_are_warnings():
    views, y = clean()
    views["text"][[20, 5]] = 0
    views["photo"][1] = views["photo"][0]
    y[0], y[1], y[9] = "cat", "dog", "cow"
    views["text"][9] = np.nan
    views["photo"][9] = 1.0
    for view in views.values():
        view[10] = np.nan
    assert found("warning", views, y) == [
        ("samples", "1 of 40 samples have no view at all (10)"),
        ("photo", "2 row(s) equal a labelled row of another class (0, 1)"),
        ("labels", "1 of 3 classes have one labelled sample (cow)"),
    ]
    assert ("text", "2 row(s) are all zero, which a fit treats as data (5, 20)") in found(
        "info", views, y
    )
    with pytest.warns(DataWarning, match="1 of 40 samples have no view at all"):
        MendClassifier().fit(views, y)


def test_equal_rows_of_zeros_are_neither_copies_nor_conflicts():
    views, y = clean()
    before = inspect_data(views, y)
    rows = np.flatnonzero(~np.isnan(views["text"]).any(axis=1))[:6]
    views["text"][rows] = 0
    y[rows[0]], y[rows[1]] = "cat", "dog"
    after = inspect_data(views, y)
    assert len(after.views[1].zero_rows) == 6
    assert len(after.views[1].conflicting_rows) == 0
    assert after.views[1].n_duplicate_rows == before.views[1].n_duplicate_rows


def test_a_class_of_samples_without_any_view_and_a_view_of_zeros_are_errors():
    views, y = clean()
    y[0], y[1], y[10] = "cat", "dog", "cow"
    for view in views.values():
        view[10] = np.nan
    views["sound"] = np.where(np.arange(40)[:, None] == 10, np.nan, np.zeros((40, 2)))
    assert found("error", views, y) == [
        ("labels", "no labelled sample of class cow has a view"),
        ("sound", "it has nothing but zeros"),
    ]
    for refused in (views, {name: views[name] for name in ("photo", "text")}):
        with pytest.raises((InvalidViewsError, InvalidLabelsError), match=r"sound|cow"):
            MendClassifier().fit(refused, y)


def test_equal_rows_of_one_class_or_without_label_do_not_conflict():
    views, y = clean()
    views["text"][20:24] = views["text"][0]
    views["text"][1], y[1] = views["text"][0], y[0]
    assert found("warning", views, y) == []
    assert found("info", views, y) == [("text", "5 of 40 rows equal an earlier one")]


def test_a_view_without_labelled_samples():
    views, y = clean()
    views["photo"][:8] = np.nan
    assert found("warning", views, y) == [("photo", "no labelled sample has this view")]
    assert found("warning", views) == []


def test_columns_made_from_the_labels_are_suspected():
    views, y = clean()
    tables = {name: pd.DataFrame(view) for name, view in views.items()}
    code = np.where(y == "cat", 7.0, 2.0)
    tables["text"]["grade"] = np.where(y == None, 7.0, code)  # noqa: E711 - of every entry
    assert found("warning", tables, y) == []
    y = np.where(np.arange(40) % 2, "cat", "dog").astype(object)[
        np.random.default_rng(0).permutation(40)
    ]
    tables["text"]["grade"] = np.where(y == "cat", 7.0, 2.0)
    message = "column(s) grade have one value per class in all labelled rows"
    assert found("warning", tables, y) == [("text", message)]
    tables["text"].loc[0, "grade"] = 9.0 - tables["text"].loc[0, "grade"]
    assert found("warning", tables, y) == []


def test_columns_that_tell_nothing():
    views, y = clean()
    views["photo"] = np.column_stack(
        [views["photo"], np.where(np.isnan(views["photo"][:, 0]), np.nan, 3)]
    )
    views["flat"] = np.ones((40, 2))
    assert found("info", views, y)[0] == ("photo", "1 of 4 columns have one value in all rows")
    assert found("warning", views) == [("flat", "2 of 2 columns have one value in all rows")]


def test_views_of_very_different_scale():
    views, y = clean()
    views["text"] *= 1e6
    ((subject, message),) = found("info", views, y)
    assert subject == "text"
    ratio = np.sqrt(np.nanmean(views["text"] ** 2) / np.nanmean(views["photo"] ** 2))
    assert message == f"its values are {ratio:.0f} times as large as those of photo"


@pytest.mark.parametrize(("order", "alarm"), [("file", True), ("shuffled", False)])
def test_a_file_sorted_by_class_is_told_by_its_labels(order, alarm):
    blobs = make_multiview_blobs(150, random_state=0)
    by_class = np.argsort(blobs.y, kind="stable")
    views, y = [view[by_class] for view in blobs.views], blobs.y[by_class]
    task = hide(views, y, missing_rate=0.3, label_rate=0.2, order=order, random_state=0)
    subjects = found("warning", task.data, task.y)
    assert [subject for subject, _ in subjects] == ["rows"] * alarm
    if alarm:
        assert "share their class in 93% of cases, 31% by chance" in subjects[0][1]


def test_a_sorted_file_is_told_by_its_rows_without_any_label():
    blobs = make_multiview_blobs(150, random_state=0)
    views = [view[np.argsort(blobs.y, kind="stable")] for view in blobs.views]
    ((subject, message),) = found("warning", views)
    assert subject == "rows"
    assert f"alike in {len(views)} of {len(views)} views" in message
    assert found("warning", blobs.views) == []


def test_the_moments_of_neighbours_are_those_over_all_orders_of_the_labels():
    """Mean and deviation of the share of equal neighbours, by enumeration."""
    labels = ["a", "a", "a", "b", "b", "c", "c"]
    orders = [list(order) for order in itertools.permutations(labels)]
    shares = np.array([np.mean([a == b for a, b in itertools.pairwise(o)]) for o in orders])
    order = inspect_data(np.arange(1.0, 8)[:, None], labels).label_order
    assert order.observed == pytest.approx(4 / 6)
    assert order.expected == pytest.approx(shares.mean())
    assert order.deviations == pytest.approx((4 / 6 - shares.mean()) / shares.std())


def test_the_likeness_of_rows_is_judged_against_that_of_all_pairs():
    """The expectation is the mean over all orders, and deviations are not overstated."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(6, 2)) ** 3
    order = inspect_data(rows).views[0].order
    everything = [
        inspect_data(rows[list(p)]).views[0].order.observed
        for p in itertools.permutations(range(6))
    ]
    assert order.expected == pytest.approx(np.mean(everything))
    assert np.std(everything) <= 1 / np.sqrt(5)


def test_nothing_depends_on_the_units_of_a_view():
    views, y = clean()
    scaled = {name: 256.0 * view for name, view in views.items()}
    one, other = inspect_data(views, y), inspect_data(scaled, y)
    assert one.findings == other.findings
    assert [v.order for v in one.views] == [v.order for v in other.views]


def test_names_given_are_used_and_counted():
    views, y = clean()
    data = inspect_data(list(views.values()), y, names=["a", "b"])
    assert [view.name for view in data.views] == ["a", "b"]
    with pytest.raises(InvalidViewsError, match=r"names must be one per view, got .* for 2 views"):
        inspect_data(list(views.values()), names=["a"])


def test_a_view_that_repeats_another_is_named_and_others_are_not():
    rng = np.random.default_rng(0)
    one, wide = rng.normal(size=(40, 5)), rng.normal(size=(40, 500))
    # The same in other units, another order of the columns, and with some rows missing.
    copy = (3.0 * one + 1.0)[:, ::-1].copy()
    copy[5:15] = np.nan
    other = one + 0.3 * rng.normal(size=one.shape)
    views = {"one": one, "copy": copy, "near": other, "wide": wide, "also wide": wide[:, ::-1] ** 2}
    found = inspect_data(views)
    assert found.repeated_views == (("one", "copy"),)
    told = [finding for finding in found.findings if "same information" in finding.message]
    assert [(one.severity, one.subject) for one in told] == [("warning", "copy")]
    assert "the view one" in told[0].message


def test_views_that_no_common_sample_joins_repeat_nothing():
    view = np.random.default_rng(0).normal(size=(30, 4))
    first, second = view.copy(), view.copy()
    first[15:], second[:15] = np.nan, np.nan
    assert inspect_data([first, second]).repeated_views == ()
    assert inspect_data([np.ones((30, 2)), np.ones((30, 2))]).repeated_views == ()


def test_a_view_with_hardly_any_label_is_told():
    view = np.random.default_rng(0).normal(size=(30, 4))
    rare = view.copy()
    rare[:18] = np.nan
    y = np.where(np.arange(30) < 20, np.arange(30) % 2, -1)
    messages = [one.message for one in inspect_data({"a": view, "rare": rare}, y).findings]
    assert "2 labelled sample(s) have this view" in messages


def test_missing_cells_and_empty_columns_are_counted():
    view = np.arange(12.0).reshape(4, 3)
    view[0, 0], view[:, 2], view[3] = np.nan, np.nan, np.nan
    (summary,) = inspect_data([view]).views
    # Of the three rows that are there.
    assert summary.n_missing_cells == 4
    assert summary.empty_columns == (2,)
