"""Data sets of the AGF-TI paper by name, and the files of the data directory that hold them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from viewmend.data.container import MultiViewData
from viewmend.data.io.loading import load_folder, load_mat, load_npz
from viewmend.data.labels import check_labels
from viewmend.datasets.uci_digits import load_uci_digits
from viewmend.exceptions import InvalidLabelsError, InvalidParameterError
from viewmend.moved import old_names
from viewmend.text import counted

__all__ = [
    "DATA_VARIABLE",
    "EMBEDDED",
    "FILES",
    "DataAbsentError",
    "absent",
    "data_directory",
    "digest",
    "find",
    "load",
]

# Where data is looked for when no directory is given.
DATA_VARIABLE = "VIEWMEND_DATA"

# Names that a data set's file may have, the first that is there counts. Surrogates and other
# feature sets of the paper's images have names of their own: their accuracies are not the paper's.
FILES: Mapping[str, tuple[str, ...]] = {
    "CUB": ("cub.npz", "CUB.mat"),
    "UCI-Digit": ("uci_digit.npz", "UCI-Digit.mat", "UCI_Digit.mat", "UCI_Digits.mat"),
    "Caltech101-20": ("caltech101_20.npz", "Caltech101-20.mat"),
    "OutScene": ("outscene.npz", "OutScene.mat", "Out_Scene.mat"),
    "MNIST-USPS": ("mnist_usps.npz", "MNIST_USPS.mat", "MNIST-USPS.mat"),
    "AwA": ("awa.npz", "AwA.mat", "AWA_Deep_2view.mat"),
    "YTF50": ("ytf50.npz", "YTF50.mat"),
    "Caltech101-20 (surrogate)": ("caltech101_20_surrogate.npz",),
    "OutScene (surrogate)": ("outscene_4view_surrogate.npz",),
    "OutScene (3 views)": ("outscene_3view.npz",),
    "MNIST (3 views)": ("mnist70k_3view.npz",),
}

# Data that the package carries with it.
EMBEDDED: Mapping[str, Callable[[], MultiViewData]] = {
    "UCI-Digit (embedded)": load_uci_digits,
}


class DataAbsentError(FileNotFoundError):
    """A data set is not in the data directory."""


def data_directory(given: str | Path | None = None) -> Path:
    """The directory given, else that of the environment variable `DATA_VARIABLE`.

    Parameters
    ----------
    given : str or Path, optional
        The directory, if you name one.

    Returns
    -------
    Path
    """
    folder = given or os.environ.get(DATA_VARIABLE)
    if not folder:
        msg = (
            f"no data directory is known; name one, or set the environment variable {DATA_VARIABLE}"
        )
        raise DataAbsentError(msg)
    return Path(folder)


def find(name: str, data_dir: str | Path) -> Path:
    """The file or folder of a data set.

    Parameters
    ----------
    name : str
        Row of `FILES`, or any other name; ``name.npz``, ``name.mat`` and the folder ``name`` will
        always do.
    data_dir : str or Path
        The data directory.

    Returns
    -------
    Path

    Raises
    ------
    DataAbsentError
        Names the files that were looked for.
    """
    if Path(name).name != name or name in ("", ".."):
        msg = f"data must be named without a path but is {name!r}; put it into the data directory"
        raise InvalidParameterError(msg)
    general = (f"{name}.npz", f"{name}.mat", name)
    looked_for = tuple(dict.fromkeys((*FILES.get(name, ()), *general)))
    for file in looked_for:
        if (path := Path(data_dir) / file).exists():
            return path
    msg = (
        f"the data {name!r} is not in {data_dir}: looked for {', '.join(looked_for)}; put one of "
        "these there (view_0, view_1, ... and y; X and gnd; or a folder with a table per view), or "
        "name another directory"
    )
    raise DataAbsentError(msg)


def absent(names: Iterable[str], data_dir: str | Path) -> dict[str, str]:
    """Which of ``names`` are not available, and why, by name.

    Parameters
    ----------
    names : iterable of str
        Names as in `find`.
    data_dir : str or Path
        The data directory.

    Returns
    -------
    dict of str
    """
    reasons = {}
    for name in names:
        try:
            _ = name in EMBEDDED or find(name, data_dir)
        except DataAbsentError as error:
            reasons[name] = str(error)
    return reasons


def load(name: str, data_dir: str | Path) -> MultiViewData:
    """Load a data set by its name, sorted by class; the last two are kept in memory.

    The paper's files are sorted by class, and its masks and its method depend on row numbers. Files
    that are not sorted are sorted here, so that "the paper's order" means the same for all data.

    Parameters
    ----------
    name : str
        Row of `EMBEDDED`, or as in `find`.
    data_dir : str or Path
        The data directory.

    Returns
    -------
    MultiViewData
        Some views may be missing from the start. Its labels are the true classes, counted from 0.
        They are for scoring and for choosing labels; never pass them to a model.
    """
    if name in EMBEDDED:
        return _sorted_by_class(name, EMBEDDED[name]())
    path = find(name, data_dir)
    return _load_file(name, path, _last_change(path))


@lru_cache(maxsize=2)
def _load_file(name: str, path: Path, _changed: int) -> MultiViewData:
    return _sorted_by_class(name, READERS.get(path.suffix, load_folder)(path))


def _last_change(path: Path) -> int:
    # A folder does not change with the content of its files.
    return max(part.stat().st_mtime_ns for part in (path, *path.glob("*")))


READERS: Mapping[str, Callable[[Path], MultiViewData]] = {".npz": load_npz, ".mat": load_mat}


def _sorted_by_class(name: str, data: MultiViewData) -> MultiViewData:
    """Rows sorted by class, those of a class in the order of the file."""
    n_unknown = data.n_samples - data.n_labelled
    if n_unknown:
        msg = (
            f"{name!r} has {counted(n_unknown, 'sample')} without a label, and a benchmark must "
            "know all to score what was hidden; remove these samples or complete the labels"
        )
        raise InvalidLabelsError(msg)
    codes = check_labels(data.y, data.n_samples).codes
    return replace(data, y=codes, name=name)[np.argsort(codes, kind="stable")]


# The data is told by its identity, and as much of it kept as `load` does.
@lru_cache(maxsize=2)
def digest(data: MultiViewData) -> str:
    """Sixteen hexadecimal digits that stand for all values of the views, and for the labels.

    Parameters
    ----------
    data : MultiViewData
        The data to identify.

    Returns
    -------
    str
    """
    hashed = hashlib.blake2b(digest_size=8)
    labels = () if data.y is None else (data.y,)
    for array in (*data.views, data.observed, *labels):
        hashed.update(repr((array.shape, array.dtype.str)).encode())
        hashed.update(np.ascontiguousarray(array).data)
    return hashed.hexdigest()


__getattr__ = old_names(__name__, {"Source": MultiViewData})
