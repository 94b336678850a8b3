"""Identifiers of rows are compared as text, wherever they come from."""

import warnings
from datetime import date, datetime

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from viewmend import check_views
from viewmend.data.given_labels import labels_for
from viewmend.data.indices import as_text, identifying
from viewmend.data.validation import check_complete_data
from viewmend.exceptions import DataWarning, InvalidLabelsError, InvalidViewsError

pd = pytest.importorskip("pandas")

LABELS = [0, 1, 0, 1]
# Identifiers of four rows, and the same ones from a table that holds them otherwise.
SPELLINGS = {
    "whole numbers and text": ([4, 7, 2, 9], ["4", "7", "2", "9"]),
    "floats and text": ([4.0, 7.0, 2.0, 9.5], ["4", "7", "2", "9.5"]),
    "floats and whole numbers": ([4.0, 7.0, 2.0, 9.0], [4, 7, 2, 9]),
    "counted and text": ([0, 1, 2, 3], ["0", "1", "2", "3"]),
    "mixed": ([4, "7", 2.0, "b"], ["4", 7, "2", "b"]),
    "bytes and text": ([b"p", b"q", b"r", b"s"], ["p", "q", "r", "s"]),
    "several parts": (
        pd.MultiIndex.from_product([["p", "q"], [1, 2]]),
        pd.MultiIndex.from_product([["p", "q"], ["1", "2"]]),
    ),
    "days": (
        pd.date_range("2024-01-01", periods=4),
        [f"2024-01-0{day}" for day in range(1, 5)],
    ),
    "hours": (
        pd.date_range("2024-01-01", periods=4, freq="h"),
        [f"2024-01-01 0{hour}:00:00" for hour in range(4)],
    ),
    "categories": (pd.CategoricalIndex(["a", "b", "d", "c"]), ["a", "b", "d", "c"]),
}


def frames(*indices):
    views = (pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]}, index=index) for index in indices)
    return dict(zip("ab", views, strict=False))


def series(index):
    return pd.Series(LABELS, index=index)


@pytest.mark.parametrize("spellings", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_identifiers_are_the_same_however_they_are_held(spellings):
    for ours, theirs in (spellings, spellings[::-1]):
        given, told = frames(ours), series(theirs)
        for X in (given, check_views(given)):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert_array_equal(labels_for(X, told), LABELS)
        with pytest.raises(InvalidLabelsError, match="the same identifiers in another order"):
            labels_for(given, told[::-1])
        check_views(frames(ours, theirs))
        with pytest.raises(InvalidViewsError, match="different row indices"):
            check_views(frames(ours, theirs[::-1]))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (["p1", "p2", "p3", "p4"], ["s1", "s2", "s3", "s4"]),
        ([11, 12, 13, 14], [21, 22, 23, 24]),
        ([11, 12, 13, 14], ["21", "22", "23", "24"]),
        (["p1", "p2", "p3", "p4"], ["p1", "p2", "p3", "p5"]),
    ],
)
def test_labels_of_other_samples_are_never_taken_in_silence(ours, theirs):
    with pytest.warns(DataWarning, match="y and the views have different row indices"):
        labels_for(frames(ours), series(theirs))


def test_labels_of_data_to_hide_are_those_of_its_rows():
    given, y = frames(list("pqrs"), list("pqrs")), series(list("pqrs"))
    assert check_complete_data(given, y).y.tolist() == LABELS
    with pytest.raises(InvalidLabelsError, match="y must have its rows in the order of the views"):
        check_complete_data(given, y[::-1])


@pytest.mark.parametrize("theirs", [[0, 1, 2, 3], ["0", "1", "2", "3"], [8, 3, 5, 1]])
def test_numbers_beside_names_say_nothing(theirs):
    # Pandas numbers rows that have no identifiers, and keeps the numbers of those that are taken.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels_for(frames(["p1", "p2", "p3", "p4"]), series(theirs))


def test_every_identifier_has_one_spelling():
    given = [7, 7.0, np.float32(7), -0.0, 0.5, True, b"7", ("a", 7.0), ("a", "7"), ("a",)]
    spelt = ["7", "7", "7", "0", "0.5", "True", "7", "('a', 7)", "('a', 7)", "('a')"]
    assert [as_text(pd.Index([each], dtype=object))[0] for each in given] == spelt
    days = [date(2024, 1, 2), datetime(2024, 1, 2), pd.Timestamp("2024-01-02")]
    assert {as_text(pd.Index([day], dtype=object))[0] for day in days} == {"2024-01-02"}
    assert as_text(np.array(["2024-01-02"], dtype="datetime64[ns]")).tolist() == ["2024-01-02"]


@pytest.mark.parametrize(
    "index", [None, [0, 1, 2], [0.0, 1.0, 2.0], ["a", "b", "a"], [5, "5", 6], [np.nan, np.nan, 1]]
)
def test_rows_that_are_counted_or_not_told_apart_have_no_identifiers(index):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=index)
    assert identifying(frame.index) is None
    assert check_views(frame).ids is None


def test_text_that_counts_is_kept_as_names():
    assert identifying(pd.Index(["0", "1", "2"])).tolist() == ["0", "1", "2"]
