"""Which file of the data directory a data set is in, under the names that the paper uses."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from viewmend.data.container import MultiViewData
from viewmend.data.io.folders import IncompleteDataset, load_folder
from viewmend.data.io.mat import load_mat
from viewmend.datasets import MultiViewDataset, load_npz, load_uci_digits
from viewmend.exceptions import InvalidLabelsError, InvalidParameterError

__all__ = [
    "DATA_VARIABLE",
    "EMBEDDED",
    "FILES",
    "DataAbsentError",
    "Source",
    "absent",
    "data_directory",
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
EMBEDDED: Mapping[str, Callable[[], MultiViewDataset]] = {
    "UCI-Digit (embedded)": load_uci_digits,
}


class DataAbsentError(FileNotFoundError):
    """A data set is not in the data directory."""


@dataclass(frozen=True, eq=False)
class Source:
    """Data to hide views and labels of, with its rows sorted by class.

    The paper's files are sorted by class, and its masks and its method go by the number of the
    row; a file that is not is brought into that order, so that "the paper's order" means the same
    for all data.

    Attributes
    ----------
    name : str
    data : MultiViewData
        Pairs of sample and view may be missing from the start.
    y : array (n_samples,) of int
        True classes, counted from 0. For scoring and for drawing labels, never for a model.
    digest : str
        Sixteen hexadecimal digits that stand for all values.
    """

    name: str
    data: MultiViewData
    y: np.ndarray
    digest: str

    @property
    def n_classes(self) -> int:
        return np.unique(self.y).size


def data_directory(given: str | Path | None = None) -> Path:
    """The directory given, else that of the environment variable `DATA_VARIABLE`.

    Parameters
    ----------
    given : str or Path, optional

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
    """Why data cannot be had, by name, for those of ``names`` of which that is so.

    Parameters
    ----------
    names : iterable of str
    data_dir : str or Path

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


def load(name: str, data_dir: str | Path) -> Source:
    """A data set by its name; kept in memory until two others have been asked for.

    Parameters
    ----------
    name : str
        Row of `EMBEDDED`, or as in `find`.
    data_dir : str or Path

    Returns
    -------
    Source
    """
    if name in EMBEDDED:
        return _source(name, EMBEDDED[name]())
    path = find(name, data_dir)
    return _load_file(name, path, _last_change(path))


@lru_cache(maxsize=2)
def _load_file(name: str, path: Path, _changed: int) -> Source:
    return _source(name, READERS.get(path.suffix, load_folder)(path))


def _last_change(path: Path) -> int:
    # A folder does not change with the content of its files.
    return max(part.stat().st_mtime_ns for part in (path, *path.glob("*")))


READERS: Mapping[str, Callable[[Path], MultiViewDataset | IncompleteDataset]] = {
    ".npz": load_npz,
    ".mat": load_mat,
}


def _source(name: str, dataset: MultiViewDataset | IncompleteDataset) -> Source:
    """Rows sorted by class, those of a class in the order of the file."""
    data = _container(dataset)
    n_unknown = int(np.sum(dataset.y < 0))
    if n_unknown:
        msg = (
            f"{n_unknown} samples of {name!r} have no label, and a benchmark must know all to "
            "score what was hidden; remove these samples or complete the labels"
        )
        raise InvalidLabelsError(msg)
    by_class = np.argsort(dataset.y, kind="stable")
    data, y = data[by_class], dataset.y[by_class]
    return Source(name, data, y, _digest([*data.views, data.observed, y]))


def _container(dataset: MultiViewDataset | IncompleteDataset) -> MultiViewData:
    if isinstance(dataset, IncompleteDataset):
        return dataset.data
    everywhere = np.ones((dataset.y.size, len(dataset.views)), dtype=bool)
    return MultiViewData(dataset.views, everywhere, dataset.view_names)


def _digest(arrays: Iterable[np.ndarray]) -> str:
    found = hashlib.blake2b(digest_size=8)
    for array in arrays:
        found.update(repr((array.shape, array.dtype.str)).encode())
        found.update(np.ascontiguousarray(array))
    return found.hexdigest()
