"""MATLAB files of both kinds give the same data; others are refused by name."""

import sys

import numpy as np
import pytest
import scipy.io
from numpy.testing import assert_array_equal
from scipy.sparse import csc_array, issparse

from viewmend.data import load_mat, read_views
from viewmend.exceptions import DataWarning, InvalidLabelsError, InvalidViewsError

RNG = np.random.default_rng(0)
VIEWS = [RNG.normal(size=(6, d)) for d in (3, 1, 4)]
LABELS = np.array([[1.0], [3.0], [3.0], [1.0], [5.0], [3.0]])
WORDS = csc_array(np.where(RNG.random((6, 5)) < 0.3, RNG.normal(size=(6, 5)), 0))


class Cells(list):
    """What MATLAB writes as {a, b, c}."""


def write_version_5(path, variables):
    scipy.io.savemat(path, {name: as_objects(value) for name, value in variables.items()})
    return path


def as_objects(value):
    if not isinstance(value, Cells):
        return value
    array = np.empty((1, len(value)), dtype=object)
    for v, cell in enumerate(value):
        array[0, v] = cell
    return array


def write_version_73(path, variables):
    """The layout that MATLAB has: transposed arrays, cells by reference, a header of 512 bytes."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w", userblock_size=512) as file:
        hidden = file.create_group("#refs#")
        for name, value in variables.items():
            if isinstance(value, Cells):
                parts = [write_matrix(hidden, f"{name}{v}", cell) for v, cell in enumerate(value)]
                references = np.array([[part.ref] for part in parts], dtype=h5py.ref_dtype)
                file.create_dataset(name, data=references, dtype=h5py.ref_dtype)
            else:
                write_matrix(file, name, value)
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    return path


def write_matrix(parent, name, matrix):
    if not issparse(matrix):
        return parent.create_dataset(name, data=np.asarray(matrix).T)
    group = parent.create_group(name)
    group.attrs["MATLAB_sparse"] = np.uint64(matrix.shape[0])
    group.create_dataset("jc", data=matrix.indptr.astype(np.uint64))
    if matrix.nnz:
        group.create_dataset("ir", data=matrix.indices.astype(np.uint64))
        group.create_dataset("data", data=matrix.data)
    return group


@pytest.fixture(params=[write_version_5, write_version_73], ids=["v5", "v7.3"])
def write(request, tmp_path):
    return lambda **variables: request.param(tmp_path / "birds.mat", variables)


@pytest.mark.parametrize("name", ["gnd", "Y"])
@pytest.mark.parametrize("labels", [LABELS, LABELS.T, LABELS.astype(np.uint8)])
def test_what_was_written_is_read(write, name, labels):
    dataset = load_mat(write(X=Cells(VIEWS), **{name: labels}))
    for view, written in zip(dataset.views, VIEWS, strict=True):
        assert_array_equal(view, written)
        assert view.dtype == np.float64
    # 1, 3, 5 become 0, 1, 2: counted from 0, without a hole.
    assert_array_equal(dataset.y, [0, 1, 1, 0, 2, 1])
    assert dataset.name == "birds"


@pytest.mark.parametrize("words", [WORDS, csc_array((6, 5))], ids=["some", "none"])
def test_sparse_cells_become_dense(write, words):
    dataset = load_mat(write(X=Cells([VIEWS[0], words]), gnd=LABELS))
    assert_array_equal(dataset.views[1], words.toarray())


@pytest.mark.parametrize("shape", [(1, 3), (3, 1)])
def test_cells_may_lie_in_a_row_or_a_column(tmp_path, shape):
    cells = as_objects(Cells(VIEWS)).reshape(shape)
    dataset = load_mat(write_version_5(tmp_path / "a.mat", {"X": cells, "gnd": LABELS}))
    for view, written in zip(dataset.views, VIEWS, strict=True):
        assert_array_equal(view, written)
    assert dataset.view_names == ("view 0", "view 1", "view 2")


def test_one_view_of_small_integers(write):
    pixels = np.arange(12, dtype=np.uint8).reshape(6, 2)
    (view,) = load_mat(write(X=Cells([pixels]), gnd=LABELS)).views
    assert view.dtype == np.float64
    assert_array_equal(view, pixels)


def test_cells_in_a_square_are_refused(tmp_path):
    cells = as_objects(Cells(VIEWS[:1] * 4)).reshape(2, 2)
    with pytest.raises(InvalidViewsError, match=r"shape \(2, 2\)"):
        load_mat(write_version_5(tmp_path / "a.mat", {"X": cells, "gnd": LABELS}))


def test_square_views_are_not_transposed(write):
    square = np.arange(36.0).reshape(6, 6)
    assert_array_equal(load_mat(write(X=Cells([square]), gnd=LABELS)).views[0], square)


@pytest.mark.parametrize(
    ("variables", "error", "message"),
    [
        ({"data": VIEWS[0], "gnd": LABELS}, InvalidViewsError, "cell array X .* holds data, gnd;"),
        ({"X": VIEWS[0], "gnd": LABELS}, InvalidViewsError, r"X = \{X1, X2\}"),
        ({"X": Cells(VIEWS)}, InvalidLabelsError, "gnd or Y but holds X;"),
        ({"X": Cells(VIEWS), "gnd": np.eye(6, 3)}, InvalidLabelsError, r"shape \(6, 3\)"),
        (
            {"X": Cells(VIEWS), "gnd": LABELS / 2},
            InvalidLabelsError,
            "whole numbers but have dtype float64 and start with",
        ),
        (
            {"X": Cells(VIEWS), "gnd": LABELS[:4]},
            InvalidLabelsError,
            r"shape \(6,\), but has shape \(4,\)",
        ),
        (
            {"X": Cells([VIEWS[0], VIEWS[2].T]), "gnd": LABELS},
            InvalidViewsError,
            "view 1 has 4 rows but view 0 has 6; .*transpose",
        ),
    ],
)
def test_files_that_cannot_be_used(write, variables, error, message):
    with pytest.raises(error, match=message):
        load_mat(write(**variables))


def test_version_73_without_h5py_names_both_remedies(tmp_path, monkeypatch):
    path = tmp_path / "large.mat"
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(512, b"\0") + b"\x89HDF\r\n\x1a\n")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(InvalidViewsError, match=r"version 7.3 .*pip install .*omics.*'-v7'"):
        load_mat(path)


def test_a_broken_file_of_version_73_is_refused(tmp_path):
    pytest.importorskip("h5py")
    path = tmp_path / "cut.mat"
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(512, b"\0") + b"\x89HDF\r\n\x1a\n")
    with pytest.raises(InvalidViewsError, match=r"cut.mat cannot be read as a MATLAB file"):
        load_mat(path)


def test_other_files_are_not_taken_for_mat(tmp_path):
    path = tmp_path / "notes.mat"
    path.write_text("not a MATLAB file, but long enough to have a header " * 10)
    with pytest.raises(InvalidViewsError, match=r"notes.mat cannot be read as a MATLAB file"):
        load_mat(path)


def test_rows_of_zeros_are_missing_ones_where_a_file_is_read_to_be_fitted(write):
    views = [view.copy() for view in VIEWS]
    views[0][[1, 4]] = 0
    path = write(X=Cells(views), gnd=LABELS)
    with pytest.warns(DataWarning, match=r"view 0 has 2 all-zero row.*missing in files of MATLAB"):
        data = read_views(path)
    assert np.flatnonzero(~data.observed[:, 0]).tolist() == [1, 4]
    assert data.observed[:, 1:].all()
    # Data to hide parts of is complete, whatever its rows hold.
    assert load_mat(path).observed.all()
