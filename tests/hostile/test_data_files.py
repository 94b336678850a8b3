"""Data files that are damaged or lie are refused in our own words, and do no harm."""

import os
import shutil
import struct
import zipfile

import numpy as np
import pytest
import scipy.sparse
from attacks import array_edits, hdf5_edits
from attacks.data_files import DataFiles
from attacks.data_seeds import N_SAMPLES, SEEDS, views, write_seeds
from attacks.outcomes import GOOD
from attacks.running import run_case

from viewmend.data import load_mat, load_npz, read_view_tables, read_views
from viewmend.data.io.border import reading
from viewmend.data.sparse import check_sparse
from viewmend.exceptions import InvalidViewsError, TooLargeError
from viewmend.inspection import inspect_data

pytest.importorskip("anndata")
pytest.importorskip("mudata")
h5py = pytest.importorskip("h5py")

# What the libraries plan to change.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("seeds")
    write_seeds(folder)
    return folder


@pytest.fixture
def copy_of(seeds, tmp_path):
    def make(name):
        (shutil.copytree if (seeds / name).is_dir() else shutil.copy)(seeds / name, tmp_path / name)
        return tmp_path / name

    return make


@pytest.mark.parametrize("name", list(SEEDS))
def test_whole_files_of_every_format_are_read_as_they_were_written(seeds, name):
    data = read_views(seeds / name)
    known = list(views().values())
    assert all(any(np.array_equal(view, other) for other in known) for view in data.views)
    assert len(data.views) in (1, 2)


# Cases that crashed, hung or let a foreign exception out before there was a border, and some more.
@pytest.mark.parametrize("case", range(120))
def test_damaged_files(seeds, case, monkeypatch):
    # Bombs of the size of a small machine.
    monkeypatch.setattr("attacks.array_edits.memory", lambda: 2**28)
    monkeypatch.setattr("viewmend.memory.machine_memory", lambda: 2**28)
    outcome = run_case(DataFiles(), seeds, 4, case)
    assert outcome.verdict in GOOD, outcome.detail


def edited(path, edit, seeds, rng):
    with h5py.File(path, "r+") as file:
        edit(file, rng, seeds)
    return path


@pytest.mark.parametrize("name", ["new.mat", "plain.h5ad", "packed.h5ad", "two.h5mu"])
@pytest.mark.parametrize("edit", hdf5_edits.FORBIDDEN[:2])
def test_sparse_indices_of_hdf5_files(copy_of, seeds, name, edit):
    path = edited(copy_of(name), edit, seeds, np.random.default_rng(0))
    with pytest.raises(InvalidViewsError, match="sparse matrix that contradicts itself"):
        read_view_tables(path)


@pytest.mark.parametrize("draw", range(12))
def test_sparse_indices_of_old_matlab_files(tmp_path, draw):
    array_edits.mat_sparse(tmp_path / "evil.mat", np.random.default_rng(draw))
    with pytest.raises(InvalidViewsError, match=r"evil\.mat"):
        load_mat(tmp_path / "evil.mat")


def test_starts_that_are_wrong_where_nothing_is_stored():
    # SciPy's own full check lets this pass, because there are no values to check.
    matrix = scipy.sparse.csr_array((3, 4))
    matrix.indptr = np.array([0, 1000, 2000, 0], dtype=np.int32)
    with pytest.raises(InvalidViewsError, match="do not ascend"):
        check_sparse(matrix, "view 'a'")


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
def test_right_sparse_matrices_of_all_forms_pass(form):
    check_sparse(scipy.sparse.csr_array(views()["count"]).asformat(form), "view 'a'")


@pytest.mark.parametrize("edit", hdf5_edits.FOREIGN_FILES)
@pytest.mark.parametrize("draw", range(3))
def test_other_files_of_the_machine_are_not_read(copy_of, seeds, edit, draw):
    path = edited(copy_of("plain.h5ad"), edit, seeds, np.random.default_rng(draw))
    with pytest.raises(InvalidViewsError, match="must hold its data itself"):
        read_view_tables(path)


def test_headers_that_declare_terabytes(copy_of):
    path = copy_of("plain.npz")
    array_edits.npz_huge_shape(path, np.random.default_rng(0))
    with pytest.raises(InvalidViewsError, match=r"plain\.npz .*more\.npy declares"):
        load_npz(path)


def test_archives_larger_than_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("viewmend.memory.machine_memory", lambda: 2**20)
    np.savez(
        tmp_path / "large.npz",
        y=np.zeros(2**16),
        view_0=np.random.default_rng(0).random((2**16, 1)),
    )
    with pytest.raises(TooLargeError, match=r"large\.npz would need about 0\.0 GiB"):
        load_npz(tmp_path / "large.npz")


@pytest.mark.parametrize("name", ["plain.h5ad", "new.mat"])
def test_datasets_that_are_declared_and_not_there(copy_of, seeds, name):
    path = edited(copy_of(name), hdf5_edits.huge, seeds, np.random.default_rng(1))
    with pytest.raises((InvalidViewsError, TooLargeError), match="bytes of data"):
        read_view_tables(path)


def test_groups_in_a_circle(copy_of, seeds):
    path = edited(copy_of("plain.h5ad"), hdf5_edits.hard_loop, seeds, np.random.default_rng(0))
    with pytest.raises(InvalidViewsError, match="deep in each other"):
        read_view_tables(path)


def test_a_heap_without_end(copy_of):
    path = copy_of("plain.h5ad")
    content = path.read_bytes()
    heap = content.index(b"GCOL")
    # The first object becomes free space of no size, on which HDF5 would not move on.
    path.write_bytes(content[: heap + 16] + bytes(16) + content[heap + 32 :])
    with pytest.raises(InvalidViewsError, match="an object of 0 bytes in a heap"):
        read_view_tables(path)


@pytest.mark.parametrize("draw", range(6))
def test_cells_in_cells(tmp_path, draw):
    array_edits.mat_deep(tmp_path / "deep.mat", np.random.default_rng(draw))
    with pytest.raises(InvalidViewsError, match=r"deep\.mat .*class 1"):
        load_mat(tmp_path / "deep.mat")


def test_matlab_values_of_no_kind(tmp_path):
    values = array_edits.element(200, np.ones(3 * N_SAMPLES).tobytes())
    cell = array_edits.matrix(array_edits.MX_DOUBLE, (N_SAMPLES, 3), values)
    array_edits.write_mat(tmp_path / "odd.mat", cell, rng=np.random.default_rng(0))
    with pytest.raises(InvalidViewsError, match="values of kind 200"):
        load_mat(tmp_path / "odd.mat")


def test_rows_that_a_wide_header_would_fill_up(tmp_path):
    array_edits.csv_wide(tmp_path / "wide.csv", np.random.default_rng(0))
    with pytest.raises(InvalidViewsError, match="claim to be"):
        read_view_tables(tmp_path / "wide.csv")


def test_a_text_that_stands_in_every_row(tmp_path, monkeypatch):
    monkeypatch.setattr("attacks.array_edits.memory", lambda: 2**32)
    array_edits.parquet_bomb(tmp_path / "long.parquet", np.random.default_rng(1))
    with pytest.raises((InvalidViewsError, TooLargeError), match=r"long\.parquet"):
        read_view_tables(tmp_path / "long.parquet")


def test_a_pipe_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "table.csv")
    with pytest.raises(InvalidViewsError, match="pipe or a device"):
        read_view_tables(tmp_path / "table.csv")


def test_members_that_are_no_arrays(copy_of):
    path = copy_of("plain.npz")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("notes.txt", "nothing to load")
    with pytest.raises(InvalidViewsError, match=r"plain\.npz cannot be read as a NumPy archive"):
        load_npz(path)


def test_the_border_tells_file_and_reason_in_one_line_and_keeps_the_cause(tmp_path):
    path = tmp_path / "a.npz"
    with pytest.raises(InvalidViewsError) as caught, reading(path):
        raise struct.error("unpack\nrequires " + "bytes " * 100)
    assert isinstance(caught.value.__cause__, struct.error)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("error", [FileNotFoundError, PermissionError, ImportError, TooLargeError])
def test_what_is_no_fault_of_the_file_passes_the_border(tmp_path, error):
    with pytest.raises(error), reading(tmp_path / "a.npz"):
        raise error


def test_values_near_the_largest_float_are_inspected(tmp_path):
    big = np.full((4, 2), 1.7e308) * [[1, 1], [-1, 1], [1, -1], [1, 1]]
    big[0, 0] = np.nan
    np.savez(tmp_path / "big.npz", a=big)
    found = read_view_tables(tmp_path / "big.npz")
    told = [finding.message for finding in inspect_data(found.unmended()[0]).findings]
    assert "4 row(s) hold values that are infinite or beyond 1e+140 (0, 1, 2, 3)" in told
