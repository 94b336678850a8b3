"""Data files that are damaged or lie: `viewmend inspect` and `viewmend fit` up to the views."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attacks import array_edits, hdf5_edits
from attacks.data_seeds import SECRET, SEEDS, views, write_seeds
from attacks.mutations import damaged
from attacks.outcomes import Outcome, Verdict, judged
from viewmend.data import Request, read_view_tables
from viewmend.data.container import MultiViewData
from viewmend.inspection import inspect_data


@dataclass(frozen=True)
class DataFiles:
    """A file of known content, damaged at random or edited to do harm, and read.

    A third of the cases are edits. What must not be loaded, and is, is a silent difference; so is
    a number that stands in another file of the machine, and another value in a format that has
    checksums.
    """

    name: str = "data files"
    n_cases: int = 3000
    time_limit: float = 60.0

    def prepare(self, folder: Path) -> None:
        write_seeds(folder)

    def attempt(self, folder: Path, rng: np.random.Generator) -> Outcome:
        seed = list(SEEDS)[rng.integers(len(SEEDS))]
        with tempfile.TemporaryDirectory() as place:
            copy = Path(place) / seed
            source = folder / seed
            (shutil.copytree if source.is_dir() else shutil.copy)(source, copy)
            edit = _edit(copy, rng, folder) if rng.random() < 0.35 else _damage(copy, rng)
            return judged(lambda: _verdict(seed, edit, _read(copy, rng)))


def _damage(path: Path, rng: np.random.Generator) -> str:
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    file = files[rng.integers(len(files))]
    file.write_bytes(damaged(file.read_bytes(), rng))
    return "damaged"


def _edit(path: Path, rng: np.random.Generator, folder: Path) -> str:
    """Make one of the edits of the format; tells its name."""
    if path.name in HDF5:
        import h5py

        edits = (*hdf5_edits.FORBIDDEN, *hdf5_edits.FOREIGN_FILES, *hdf5_edits.SURVIVABLE)
        edit = edits[rng.integers(len(edits))]
        # An edit that the library itself does not allow is none.
        forbidden = contextlib.suppress(ValueError, KeyError, TypeError, OSError, RuntimeError)
        with h5py.File(path, "r+") as file, forbidden:
            edit(file, rng, folder)
            return edit.__name__
        return "none"
    edits = EDITS[path.suffix]
    file = path / "photo.csv" if path.is_dir() else path
    edit = edits[rng.integers(len(edits))]
    edit(file, rng)
    return edit.__name__


HDF5 = ("new.mat", "plain.h5ad", "packed.h5ad", "two.h5mu")
TEXT = (
    *(array_edits.csv_odd_cell,) * 4,
    *(array_edits.csv_not_text,) * 3,
    array_edits.csv_wide,
    array_edits.not_a_file,
)
EDITS: Mapping[str, tuple[array_edits.Edit, ...]] = {
    "": TEXT,
    ".csv": TEXT,
    ".tsv": TEXT,
    ".parquet": (*(array_edits.parquet_odd_type,) * 6, array_edits.parquet_bomb),
    ".npz": (
        *(array_edits.npz_huge_shape,) * 3,
        *(array_edits.npz_odd_member,) * 3,
        *(array_edits.npz_odd_content,) * 5,
        array_edits.npz_bomb,
    ),
    ".mat": (
        *(array_edits.mat_sparse,) * 6,
        *(array_edits.mat_huge,) * 4,
        *(array_edits.mat_deep,) * 2,
        array_edits.mat_bomb,
    ),
}


def _read(path: Path, rng: np.random.Generator) -> MultiViewData:
    """What `inspect` and `fit` do with a file before anything is fitted."""
    request = Request(views=(("X",) if path.suffix == ".h5ad" and rng.integers(2) else ()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        tables = read_view_tables(path, request)
        inspect_data(*tables.unmended()[:2], ids=tables.unmended()[2])
        return tables.aligned()


def _verdict(seed: str, edit: str, data: MultiViewData) -> Outcome | None:
    if edit in MUST_BE_REFUSED:
        return Outcome(Verdict.SILENT, f"{seed} was loaded after {edit}: {data!r}")
    for view in data.views:
        if (view == SECRET).any():
            return Outcome(Verdict.SILENT, f"{seed} after {edit} holds another file: {data!r}")
    if edit == "damaged" and seed in CHECKSUMMED and not all(map(_known, data.views)):
        return Outcome(Verdict.SILENT, f"values of {seed} changed: {data!r}")
    return None


def _known(view: np.ndarray) -> bool:
    return any(np.array_equal(view, known) for known in views().values())


CHECKSUMMED = ("plain.npz", "packed.npz", "packed.mat")
MUST_BE_REFUSED = frozenset(
    edit.__name__
    for edit in (
        *hdf5_edits.FORBIDDEN,
        array_edits.mat_sparse,
        array_edits.npz_bomb,
        array_edits.mat_bomb,
        array_edits.npz_huge_shape,
        array_edits.npz_odd_member,
        array_edits.csv_wide,
        array_edits.not_a_file,
    )
)
