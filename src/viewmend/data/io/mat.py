"""Views and labels in MATLAB files of every version, as benchmarks publish them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csc_array

from viewmend.data.input_arrays import as_dense
from viewmend.data.io.border import reading
from viewmend.data.io.hdf5 import check_attribute, check_hdf5, check_heaps
from viewmend.data.io.mat5 import checked_variables
from viewmend.data.joining import check_room
from viewmend.data.sparse import check_compressed
from viewmend.exceptions import InvalidLabelsError, InvalidViewsError
from viewmend.extras import how_to_install

VIEWS = "X"
# The names that labels go by, the first that is there counts.
LABELS = ("gnd", "Y")
# Attribute of sparse matrices in files of version 7.3.
SPARSE_ROWS = "MATLAB_sparse"
# Files of version 7.3 are HDF5, mostly behind a header of MATLAB's own.
HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
HDF5_OFFSETS = (0, 512)


def read_mat(path: Path) -> tuple[list[np.ndarray], np.ndarray]:
    """Views (n_samples, n_features_v), dense, and labels (n_samples,) renumbered from 0."""
    with reading(path):
        cells, labels = _read_hdf5(path) if _is_hdf5(path) else _read_version_5(path)
        shapes = {f"view {v}": np.shape(cell) for v, cell in enumerate([*cells, labels])}
        wide = {name: shape[1] for name, shape in shapes.items() if len(shape) == 2}
        check_room(max((shape[0] for shape in shapes.values() if shape), default=0), wide)
        return [as_dense(cell, str(path)) for cell in cells], _renumbered(
            as_dense(labels, str(path)), path
        )


def _is_hdf5(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(max(HDF5_OFFSETS) + len(HDF5_SIGNATURE))
    return any(head[offset:].startswith(HDF5_SIGNATURE) for offset in HDF5_OFFSETS)


def _read_version_5(path: Path) -> tuple[list[Any], Any]:
    """Cells of ``X`` and labels, by SciPy."""
    import scipy.io

    names, plain = checked_variables(path, (VIEWS, *LABELS))
    content = {**dict.fromkeys(names), **scipy.io.loadmat(plain)}
    labels = _labels_name(content, path)
    cells = content[VIEWS]
    # SciPy turns a cell array, and nothing else, into an array of objects.
    _check_cells(cells.dtype.kind == "O", cells.shape, path)
    return list(cells.ravel()), content[labels]


def _read_hdf5(path: Path) -> tuple[list[Any], Any]:
    """Cells of ``X`` and labels, by h5py; MATLAB's columns are its rows."""
    try:
        import h5py
    except ImportError as error:
        msg = (
            f"{path} is a MATLAB file of version 7.3 (HDF5), which needs h5py, and that is not "
            f"installed; {how_to_install('omics')}, or load the file in MATLAB and save it again "
            f"with save(file, 'X', 'gnd', '-v7')"
        )
        raise InvalidViewsError(msg) from error
    check_heaps(path)
    with h5py.File(path, "r") as file:
        check_hdf5(path, file)
        labels = _labels_name(file, path)
        stored = file[VIEWS]
        # A cell array is an array of references to where its contents are.
        is_array = isinstance(stored, h5py.Dataset) and stored.dtype == h5py.ref_dtype
        _check_cells(is_array, getattr(stored, "shape", ()), path)
        cells = [file[reference] for reference in stored[()].ravel()]
        # What is referred to need not stand in any group, and may be referred to twice.
        check_hdf5(path, *cells)
        return [_hdf5_matrix(cell, path) for cell in cells], _hdf5_matrix(file[labels], path)


def _hdf5_matrix(stored: Any, path: Path) -> Any:
    """A matrix of a file of version 7.3: dense ones are datasets, sparse ones groups."""
    if SPARSE_ROWS not in stored.attrs:
        return stored[()].T
    check_attribute(path, stored, SPARSE_ROWS)
    n_rows = stored.attrs[SPARSE_ROWS]
    starts = stored["jc"][()].astype(np.int64)
    # Nothing is stored of a matrix of zeros but its shape.
    data = stored["data"][()] if "data" in stored else np.zeros(0)
    rows = stored["ir"][()].astype(np.int64) if "ir" in stored else np.zeros(0, np.int64)
    shape = (int(n_rows), starts.size - 1)
    check_compressed(starts, rows, len(data), shape[::-1], f"{stored.name} of {path}")
    return csc_array((data, rows, starts), shape=shape)


def _labels_name(content: Mapping[str, Any], path: Path) -> str:
    """The name that the labels go by, if they and the views are there."""
    if VIEWS not in content:
        msg = f"{path} must hold a cell array X of views but holds {_listed(content)}; rename it"
        raise InvalidViewsError(msg)
    for name in LABELS:
        if name in content:
            return name
    msg = f"{path} must hold the labels as gnd or Y but holds {_listed(content)}; rename them"
    raise InvalidLabelsError(msg)


def _check_cells(is_cell_array: bool, shape: tuple[int, ...], path: Path) -> None:
    if not is_cell_array or max(shape, default=0) != np.prod(shape):
        msg = (
            f"X of {path} must be a 1 x V or V x 1 cell array but is not, of shape {shape}; put "
            "the views into one cell each, as in X = {X1, X2}"
        )
        raise InvalidViewsError(msg)


def _renumbered(labels: np.ndarray, path: Path) -> np.ndarray:
    """Classes 0 ... c-1 from an n x 1 or 1 x n array of whole numbers (MATLAB counts from 1)."""
    if labels.size == 0 or max(labels.shape) != labels.size:
        msg = (
            f"the labels of {path} must be one column but have shape {labels.shape}; "
            "turn indicator columns into class numbers, as in [~, gnd] = max(Y, [], 2)"
        )
        raise InvalidLabelsError(msg)
    # MATLAB stores whole numbers as doubles; a fraction or NaN is no class number.
    if labels.dtype.kind not in "iufb" or not np.all(labels == np.floor(labels)):
        msg = (
            f"the labels of {path} must be whole numbers but have dtype {labels.dtype} and start "
            f"with {labels.ravel()[:3].tolist()}; number the classes 1, 2, ..."
        )
        raise InvalidLabelsError(msg)
    return np.unique(labels.ravel(), return_inverse=True)[1]


def _listed(content: Mapping[str, Any]) -> str:
    # Names with two underscores are the header loadmat adds; with a hash, parts of HDF5 files.
    names = sorted(name for name in content if not name.startswith(("__", "#")))
    return ", ".join(names) or "nothing"
