"""Complete multi-view data from files: NumPy archives and MATLAB files as published."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io

from viewmend.datasets.base import (
    MultiViewDataset,
    check_complete_views,
    check_integer_labels,
    check_view_names,
)
from viewmend.exceptions import InvalidLabelsError, InvalidViewsError

__all__ = ["load_mat", "load_npz"]

MAT_LABEL_VARIABLES = ("gnd", "Y")


def load_npz(path: str | Path) -> MultiViewDataset:
    """Read a NumPy archive with the arrays ``view_0`` ... ``view_{V-1}`` and ``y``.

    Parameters
    ----------
    path : str or Path
        Archive whose views are (n_samples, n_features_v) of any real dtype and whose ``y``
        (n_samples,) holds non-negative integers.

    Returns
    -------
    MultiViewDataset
        Float64 views; named after the file.
    """
    path = Path(path)
    with np.load(path, allow_pickle=False) as archive:
        content = {key: archive[key] for key in archive.files}
    keys = _view_keys(content, path)
    views = check_complete_views([content[key] for key in keys])
    return MultiViewDataset(
        name=path.stem,
        views=views,
        y=check_integer_labels(content["y"], len(views[0])),
        view_names=tuple(keys),
        description=f"{len(keys)} views read from {path.name}",
    )


def load_mat(path: str | Path) -> MultiViewDataset:
    """Read a MATLAB file in the form multi-view benchmarks are published in.

    Parameters
    ----------
    path : str or Path
        MATLAB file up to version 7 with a cell array ``X`` (1 x V or V x 1) of matrices
        (n_samples, n_features_v), dense or sparse, and a vector ``gnd`` or ``Y`` with one whole
        number per sample. Files of version 7.3 cannot be read yet.

    Returns
    -------
    MultiViewDataset
        Dense float64 views; labels renumbered 0 ... n_classes - 1 in ascending order.
    """
    path = Path(path)
    content = _read_mat(path)
    views = check_complete_views([_dense(cell) for cell in _cells(content, path)])
    y = _renumbered(_mat_labels(content, path), path)
    return MultiViewDataset(
        name=path.stem,
        views=views,
        y=check_integer_labels(y, len(views[0])),
        view_names=check_view_names(None, len(views)),
        description=f"{len(views)} views read from {path.name}",
    )


def _view_keys(content: Mapping[str, np.ndarray], path: Path) -> list[str]:
    numbers = sorted(int(key[5:]) for key in content if re.fullmatch(r"view_(0|[1-9]\d*)", key))
    if "y" not in content or not numbers or numbers != list(range(len(numbers))):
        msg = (
            f"{path} must hold y and view_0, view_1, ... without a break but holds "
            f"{_listed(content)}; save it with np.savez_compressed(path, y=y, view_0=..., ...)"
        )
        raise InvalidViewsError(msg)
    return [f"view_{v}" for v in numbers]


def _read_mat(path: Path) -> dict[str, Any]:
    try:
        return scipy.io.loadmat(path, appendmat=False)
    except NotImplementedError as error:
        msg = (
            f"{path} is a MATLAB file of version 7.3 (HDF5) but only versions up to 7 can be read; "
            "in MATLAB, load it and save it again with save(file, 'X', 'gnd', '-v7')"
        )
        raise InvalidViewsError(msg) from error
    except ValueError as error:
        msg = (
            f"{path} is not a MATLAB file that can be read ({error}); "
            "save X and gnd with save(file, 'X', 'gnd', '-v7')"
        )
        raise InvalidViewsError(msg) from error


def _cells(content: Mapping[str, Any], path: Path) -> list[Any]:
    if "X" not in content:
        msg = f"{path} must hold a cell array X of views but holds {_listed(content)}; rename it"
        raise InvalidViewsError(msg)
    cells = content["X"]
    # SciPy turns a cell array, and nothing else, into an array of objects.
    if cells.dtype.kind != "O" or max(cells.shape) != cells.size:
        msg = (
            f"X of {path} must be a 1 x V or V x 1 cell array but is a "
            f"{type(cells).__name__} of shape {cells.shape} and dtype {cells.dtype}; "
            "put the views into one cell each, as in X = {X1, X2}"
        )
        raise InvalidViewsError(msg)
    return list(cells.ravel())


def _dense(cell: Any) -> np.ndarray:
    return np.asarray(cell.toarray() if hasattr(cell, "toarray") else cell)


def _mat_labels(content: Mapping[str, Any], path: Path) -> np.ndarray:
    for variable in MAT_LABEL_VARIABLES:
        if variable in content:
            return _dense(content[variable])
    msg = f"{path} must hold the labels as gnd or Y but holds {_listed(content)}; rename them"
    raise InvalidLabelsError(msg)


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
    # Names with two underscores are the header loadmat adds.
    return ", ".join(sorted(key for key in content if not key.startswith("__"))) or "nothing"
