"""Groups of samples: names of any kind, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from viewmend import MendClassifier
from viewmend.data.groups import check_groups
from viewmend.exceptions import DataWarning, InvalidLabelsError


@pytest.mark.parametrize(
    "names",
    [
        np.array([7, 3, 7, 9, 3]),
        np.array([0.5, 2.0, 0.5, 1.0, 2.0]),
        ["b", "a", "b", "c", "a"],
        [("p", 1), "a", ("p", 1), 4, "a"],
        [("b", 1), ("a", 1), ("b", 1), ("b", 2), ("a", 1)],
        pd.Index(["b", "a", "b", "c", "a"]),
        pd.Series(["b", "a", "b", "c", "a"], dtype="category"),
        pd.array([7, 3, 7, 9, 3], dtype="Int64"),
    ],
)
def test_equal_names_are_one_group(names):
    found = check_groups(names, 5)
    expected = [[0, 2], [1, 4], [3]]
    assert [np.flatnonzero(found == found[rows[0]]).tolist() for rows in expected] == expected


@pytest.mark.parametrize(
    "names",
    [
        ["a", None, "a", None, ""],
        [1.0, np.nan, 1.0, np.nan, -1.0],
        [1, -1, 1, -1, -1],
        np.ma.masked_array([1, 7, 1, 7, 7], mask=[0, 1, 0, 1, 1]),
    ],
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
        ("patient", r"got shape \(\), 'patient', which can name a column of obs alone"),
        ([[1], [1, 2], [2], [2], [2]], "hashable"),
        ([["a"], "b", "c", "d", "e"], "hashable"),
    ],
)
def test_what_is_no_group_per_sample_is_refused(names, words):
    with pytest.raises(InvalidLabelsError, match=words):
        check_groups(names, 5)


def test_columns_tuples_and_tensors_are_names_of_groups():
    pd = pytest.importorskip("pandas")
    for column in ([[1], [1], [2], [2], [2]], pd.DataFrame({"patient": list("aabbb")})):
        assert check_groups(column, 5).tolist() == [0, 0, 1, 1, 1]
    pairs = [("a", 1), ("a", 1), ("a", 2), ("b", 1), ("b", 1)]
    assert check_groups(pairs, 5).tolist() == [0, 0, 1, 2, 2]
    torch = pytest.importorskip("torch")
    # Tensors of the same number are not equal, and every sample would be a group by itself.
    assert check_groups([*torch.tensor([7, 7, 8, 8, 8])], 5).tolist() == [0, 0, 1, 1, 1]


def test_text_for_no_group_is_one_group_with_a_warning():
    """As ``astype(str)`` makes of the empty cells of a frame."""
    names = pd.Series(["a", np.nan, "a", np.nan, "b"]).astype(str)
    with pytest.warns(DataWarning, match="2 samples of groups 'nan' are treated as one group"):
        found = check_groups(names, 5)
    assert found[1] == found[3]


def test_patients_may_be_an_index_and_a_column_that_obs_lacks_is_called_groups():
    anndata = pytest.importorskip("anndata")
    views = [np.random.default_rng(0).normal(size=(12, 3)) for _ in range(2)]
    y = np.tile([0, 1], 6)
    patients = pd.Index(np.repeat(list("abcdef"), 2))
    model = MendClassifier(n_rounds=1).fit(views, y, groups=patients)
    assert model.estimated_accuracy_.n_groups == 6
    held = anndata.AnnData(
        views[0], obs=pd.DataFrame({"stage": y}, index=[f"c{i}" for i in range(12)])
    )
    with pytest.raises(InvalidLabelsError, match="groups must name a column of obs"):
        MendClassifier(n_rounds=1).fit(held, "stage", groups="patient")
