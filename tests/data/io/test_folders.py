"""Tables are joined by identifier: what one view does not hold is missing there."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from viewmend.data import load_folder
from viewmend.exceptions import DataWarning, InvalidLabelsError, InvalidViewsError

PHOTO = pd.DataFrame({"id": ["a", "b", "007"], "x": [1.0, 2.0, 3.0], "y": [4, 5, 6]})
TEXT = pd.DataFrame({"id": ["c", "b"], "w": [7.0, 8.0]})
LABELS = pd.DataFrame({"id": ["a", "b", "c"], "label": ["cat", "dog", "cat"]})


def folder_of(path, **tables):
    path.mkdir(exist_ok=True)
    for name, table in tables.items():
        table.to_csv(path / f"{name}.csv", index=False)
    return path


def test_an_outer_join_worked_out_by_hand(tmp_path):
    found = load_folder(folder_of(tmp_path / "pets", photo=PHOTO, text=TEXT, labels=LABELS))
    nan = np.nan
    assert found.ids.tolist() == ["a", "b", "007", "c"]
    assert found.names == ("photo", "text")
    assert_array_equal(found.views[0], [[1, 4], [2, 5], [3, 6], [nan, nan]])
    assert_array_equal(found.views[1], [[nan], [8], [nan], [7]])
    assert_array_equal(found.observed.T, [[1, 1, 1, 0], [0, 1, 0, 1]])
    assert found.columns == (("x", "y"), ("w",))
    # The third sample has no label.
    assert found.y.tolist() == ["cat", "dog", None, "cat"]
    assert found.name == "pets"


@st.composite
def tables(draw):
    """Three views over up to seven samples; the first sample is in all of them."""
    owners = draw(st.lists(st.sets(st.integers(0, 2), min_size=1), min_size=2, max_size=6))
    held = [[0] + [i for i, views in enumerate(owners, 1) if v in views] for v in range(3)]
    return [draw(st.permutations(rows)) for rows in held]


@settings(max_examples=25, deadline=None)
@given(tables())
def test_every_value_is_found_under_its_identifier_and_nothing_else(held):
    with tempfile.TemporaryDirectory() as folder:
        views = {
            f"view{v}": pd.DataFrame({"id": rows, "x": [10.0 * v + i + 1 for i in rows]})
            for v, rows in enumerate(held)
        }
        everyone = sorted({i for rows in held for i in rows})
        labels = pd.DataFrame({"id": everyone, "label": [i % 2 for i in everyone]})
        found = load_folder(folder_of(Path(folder), labels=labels, **views))
    assert sorted(map(int, found.ids)) == everyone
    for row, sample in enumerate(map(int, found.ids)):
        for v, rows in enumerate(held):
            assert found.observed[row, v] == (sample in rows)
            expected = 10.0 * v + sample + 1 if sample in rows else np.nan
            assert_array_equal(found.views[v][row], [expected])
        assert found.y[row] == sample % 2


def test_labels_may_be_a_column_of_any_view(tmp_path):
    photo = PHOTO.assign(label=["cat", None, None])
    text = TEXT.assign(label=["cat", "dog"])
    found = load_folder(folder_of(tmp_path, photo=photo, text=text))
    assert found.n_features == (2, 1)
    labels = dict(zip(found.ids, found.y, strict=True))
    assert labels == {"a": "cat", "b": "dog", "007": None, "c": "cat"}


def test_parquet_and_csv_mean_the_same(tmp_path):
    pytest.importorskip("pyarrow")
    plain = folder_of(tmp_path / "plain", photo=PHOTO, text=TEXT, labels=LABELS)
    mixed = folder_of(tmp_path / "mixed", photo=PHOTO)
    TEXT.to_parquet(mixed / "text.parquet")
    LABELS.to_parquet(mixed / "labels.parquet")
    one, other = load_folder(plain), load_folder(mixed)
    for a, b in zip(one.views, other.views, strict=True):
        assert_array_equal(a, b)
    assert_array_equal(one.y, other.y)
    assert_array_equal(one.ids, other.ids)


def test_other_columns_can_be_named(tmp_path):
    photo = PHOTO.rename(columns={"id": "patient"}).assign(stage=[2, 1, 2])
    found = load_folder(folder_of(tmp_path, photo=photo), id_column="patient", label_column="stage")
    assert_array_equal(found.y, [2, 1, 2])


def test_labels_of_unknown_samples_are_told_of(tmp_path):
    strangers = pd.concat([LABELS, pd.DataFrame({"id": ["z"], "label": ["cat"]})])
    with pytest.warns(DataWarning, match="1 labelled samples of .*'z'.* left out"):
        found = load_folder(folder_of(tmp_path, photo=PHOTO, text=TEXT, labels=strangers))
    assert "z" not in found.ids


@pytest.mark.parametrize(
    ("tables", "error", "message"),
    [
        ({}, InvalidViewsError, "one .csv or .parquet file per view but holds nothing"),
        ({"labels": LABELS}, InvalidViewsError, "but holds labels.csv"),
        (
            {"photo": PHOTO},
            InvalidLabelsError,
            "'label' is none of their columns .*a file labels.csv",
        ),
        (
            {"photo": PHOTO.drop(columns="id"), "labels": LABELS},
            InvalidViewsError,
            "photo.csv has no column 'id' .*'x', 'y'.*id_column",
        ),
        (
            {"photo": pd.concat([PHOTO, PHOTO[:1]]), "labels": LABELS},
            InvalidViewsError,
            "column 'id' of .*photo.csv must .* once, but holds 'a' more than once",
        ),
        (
            {"photo": PHOTO.assign(label=["dog", "dog", "cat"]), "labels": LABELS},
            InvalidLabelsError,
            r"'a' has the labels \['cat', 'dog'\]",
        ),
        (
            {"photo": PHOTO.assign(day=["2024-05-01", "2024-05-02", ""]), "labels": LABELS[:2]},
            InvalidViewsError,
            "column 'day' has 2 of 2 cells that are dates",
        ),
        (
            {"photo": PHOTO, "text": TEXT.assign(id=["C", "B"]), "labels": LABELS},
            InvalidViewsError,
            "view 'photo' must share an identifier",
        ),
    ],
)
def test_folders_that_cannot_be_used(tmp_path, tables, error, message):
    with pytest.raises(error, match=message):
        load_folder(folder_of(tmp_path, **tables))


def test_two_tables_of_one_name_are_refused(tmp_path):
    folder = folder_of(tmp_path, photo=PHOTO, labels=LABELS)
    (folder / "photo.parquet").write_bytes(b"")
    with pytest.raises(InvalidViewsError, match="several tables named photo"):
        load_folder(folder)
