"""Names lead to files, files to rows sorted by class; what is absent is said to be."""

import os

import numpy as np
import pandas as pd
import pytest
import scipy.io
from numpy.testing import assert_array_equal

from viewmend.datasets import load_uci_digits
from viewmend.datasets.catalogue import (
    DATA_VARIABLE,
    EMBEDDED,
    FILES,
    DataAbsentError,
    absent,
    data_directory,
    digest,
    find,
    load,
)
from viewmend.exceptions import InvalidLabelsError, InvalidParameterError

Y = np.array([2, 0, 1, 0, 2, 1])
VIEWS = [np.arange(6.0)[:, None] + 1, np.arange(12.0).reshape(6, 2) + 1]


def write_npz(path, views=VIEWS, y=Y):
    np.savez(path, y=y, **{f"view_{v}": view for v, view in enumerate(views)})


def test_rows_come_by_class_and_within_a_class_as_in_the_file(tmp_path):
    write_npz(tmp_path / "mine.npz")
    source = load("mine", tmp_path)
    assert_array_equal(source.y, [0, 0, 1, 1, 2, 2])
    # The first view numbers the rows of the file from 1.
    assert_array_equal(source.views[0][:, 0], [2, 4, 3, 6, 1, 5])
    assert_array_equal(source.views[1], VIEWS[1][[1, 3, 2, 5, 0, 4]])
    assert source.observed.all()


def test_the_file_a_name_stands_for(tmp_path):
    for names in FILES.values():
        assert len(set(names)) == len(names)
    write_npz(tmp_path / "outscene_4view_surrogate.npz")
    assert find("OutScene (surrogate)", tmp_path).name == "outscene_4view_surrogate.npz"
    # A surrogate never stands in for what it is a surrogate of.
    with pytest.raises(DataAbsentError):
        find("OutScene", tmp_path)
    write_npz(tmp_path / "OutScene.npz")
    assert find("OutScene", tmp_path).name == "OutScene.npz"


def test_absent_data_names_the_files_and_the_remedy(tmp_path):
    with pytest.raises(DataAbsentError, match=r"'AwA' is not in .*awa.npz, AwA.mat.*; put one"):
        load("AwA", tmp_path)
    with pytest.raises(DataAbsentError, match=r"mine.npz, mine.mat, mine;"):
        load("mine", tmp_path)
    write_npz(tmp_path / "cub.npz")
    reasons = absent(["CUB", "AwA", "UCI-Digit (embedded)", "UCI-Digit"], tmp_path)
    assert list(reasons) == ["AwA", "UCI-Digit"]


def test_embedded_data_has_a_name_of_its_own(tmp_path):
    source, original = load("UCI-Digit (embedded)", tmp_path), load_uci_digits()
    assert_array_equal(source.views[0], original.views[0])
    assert_array_equal(source.y, original.y)
    assert not set(EMBEDDED) & set(FILES)


def test_matlab_files_and_folders_are_read_too(tmp_path):
    cells = np.empty((1, 2), dtype=object)
    cells[0, 0], cells[0, 1] = VIEWS
    scipy.io.savemat(tmp_path / "AwA.mat", {"X": cells, "gnd": Y[:, None] + 1})
    folder = tmp_path / "tables"
    folder.mkdir()
    for v, view in enumerate(VIEWS):
        frame = pd.DataFrame(view, columns=[f"c{j}" for j in range(view.shape[1])])
        frame.insert(0, "id", [f"s{i}" for i in range(6)])
        frame[v:].to_csv(folder / f"view_{v}.csv", index=False)
    labels = pd.DataFrame({"id": [f"s{i}" for i in range(6)], "label": Y})
    labels.to_csv(folder / "labels.csv", index=False)
    published, joined = load("AwA", tmp_path), load("tables", tmp_path)
    assert_array_equal(published.y, joined.y)
    assert_array_equal(published.views[0], joined.views[0])
    # The second table lacks the first sample of the file, which is of class 2.
    assert_array_equal(np.flatnonzero(~joined.observed[:, 1]), [4])
    assert digest(published) != digest(joined)


def test_a_sample_without_label_cannot_be_scored(tmp_path):
    (tmp_path / "pets").mkdir()
    frame = pd.DataFrame({"id": ["a", "b"], "x": [1.0, 2.0], "label": ["cat", None]})
    frame.to_csv(tmp_path / "pets" / "photo.csv", index=False)
    with pytest.raises(InvalidLabelsError, match="'pets' has 1 sample without a label"):
        load("pets", tmp_path)


def test_another_content_is_read_again_and_has_another_digest(tmp_path):
    write_npz(tmp_path / "mine.npz")
    before = load("mine", tmp_path)
    assert load("mine", tmp_path) is before
    changed = [VIEWS[0], VIEWS[1] + np.eye(6, 2)]
    write_npz(tmp_path / "mine.npz", changed)
    os.utime(tmp_path / "mine.npz", ns=(0, 1))
    after = load("mine", tmp_path)
    assert digest(after) != digest(before)
    assert_array_equal(after.views[1], changed[1][[1, 3, 2, 5, 0, 4]])
    # The same samples in another order of classes are the same data.
    order = [1, 3, 0, 4, 2, 5]
    write_npz(tmp_path / "other.npz", [view[order] for view in VIEWS], Y[order])
    assert digest(load("other", tmp_path)) == digest(before)


@pytest.mark.parametrize("name", ["../secrets", "a/b", ".."])
def test_a_name_cannot_leave_the_directory(tmp_path, name):
    with pytest.raises(InvalidParameterError, match="without a path"):
        find(name, tmp_path)


def test_the_directory_given_stands_over_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    with pytest.raises(DataAbsentError, match=f"set the environment variable {DATA_VARIABLE}"):
        data_directory()
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    assert data_directory() == tmp_path
    assert data_directory(tmp_path / "x") == tmp_path / "x"
