"""Groups of samples: names of any kind, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from viewmend.data.groups import check_groups
from viewmend.exceptions import InvalidLabelsError


@pytest.mark.parametrize(
    "names",
    [
        np.array([7, 3, 7, 9, 3]),
        np.array([0.5, 2.0, 0.5, 1.0, 2.0]),
        ["b", "a", "b", "c", "a"],
        [("p", 1), "a", ("p", 1), 4, "a"],
        pd.Series(["b", "a", "b", "c", "a"], dtype="category"),
        pd.array([7, 3, 7, 9, 3], dtype="Int64"),
    ],
)
def test_equal_names_are_one_group(names):
    found = check_groups(names, 5)
    expected = [[0, 2], [1, 4], [3]]
    assert [np.flatnonzero(found == found[rows[0]]).tolist() for rows in expected] == expected


@pytest.mark.parametrize(
    "names", [["a", None, "a", None, ""], [1.0, np.nan, 1.0, np.nan, -1.0], [1, -1, 1, -1, -1]]
)
def test_samples_without_a_group_are_alone(names):
    found = check_groups(names, 5)
    assert found[0] == found[2]
    assert len(set(found)) == 4


def test_no_groups_stay_none():
    assert check_groups(None, 5) is None


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a"] * 4, r"\(5,\), got shape \(4,\)"),
        (np.zeros((5, 2)), r"got shape \(5, 2\)"),
        ("patient", r"got shape \(\)"),
        ([["a"], "b", "c", "d", "e"], "hashable"),
    ],
)
def test_what_is_no_group_per_sample_is_refused(names, words):
    with pytest.raises(InvalidLabelsError, match=words):
        check_groups(names, 5)
