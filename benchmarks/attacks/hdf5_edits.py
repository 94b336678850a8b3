"""Edits of HDF5 files that only somebody who knows the format would make."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from attacks.data_seeds import SECRET_FILES

HUGE = 2**47


def _names(file: h5py.File, kind: type) -> list[str]:
    found: list[str] = []
    file.visititems(lambda name, item: found.append(name) if isinstance(item, kind) else None)
    return found


def _pick(rng: np.random.Generator, names: list[str]) -> str:
    return names[rng.integers(len(names))]


def _numeric(file: h5py.File) -> list[str]:
    return [
        name
        for name in _names(file, h5py.Dataset)
        if file[name].ndim and file[name].dtype.kind in "iuf"
    ]


def _replace(file: h5py.File, name: str, make: Callable[[str, h5py.Dataset], Any]) -> None:
    """Another object under the name of a dataset, with its attributes."""
    old = file[name]
    attributes = dict(old.attrs)
    cells = file["X"] if name.startswith("#refs#") else None
    del file[name]
    make(name, old)
    if isinstance(file.get(name), h5py.Dataset):
        file[name].attrs.update(attributes)
    if cells is not None and name in ("#refs#/a", "#refs#/b"):
        place = 0 if name.endswith("a") else 1
        cells[place, 0] = file[name].ref


def remove_something(file: h5py.File, rng: np.random.Generator, _secrets: Path) -> None:
    del file[_pick(rng, _names(file, object))]


def remove_attribute(file: h5py.File, rng: np.random.Generator, _secrets: Path) -> None:
    item = file[_pick(rng, _names(file, object))]
    for name in list(item.attrs)[:1]:
        del item.attrs[name]


def odd_attribute(file: h5py.File, rng: np.random.Generator, _secrets: Path) -> None:
    """A shape or a word of an encoding that cannot be."""
    places = [name for name in _names(file, object) if len(file[name].attrs)]
    item = file[_pick(rng, places)]
    name = _pick(rng, list(item.attrs))
    odd = [np.array([HUGE, 3]), np.array([-5, 3]), "csr_matrix", "nonsense", np.nan, np.zeros(0)]
    item.attrs[name] = odd[rng.integers(len(odd))]


def other_type(file: h5py.File, rng: np.random.Generator, _secrets: Path) -> None:
    def make(name: str, old: h5py.Dataset) -> None:
        dtype = ["f2", "S3", "u1", "c16", "i8", "?"][rng.integers(6)]
        file.create_dataset(name, shape=old.shape, dtype=dtype)

    _replace(file, _pick(rng, _numeric(file)), make)


def other_shape(file: h5py.File, rng: np.random.Generator, _secrets: Path) -> None:
    def make(name: str, old: h5py.Dataset) -> None:
        shapes = [(), (0,), (1, 1), old.shape[:-1], (*old.shape, 2), (old.shape[0] + 1,)]
        file.create_dataset(name, shape=shapes[rng.integers(6)], dtype=old.dtype)

    _replace(file, _pick(rng, _numeric(file)), make)


def huge(file: h5py.File, rng: np.random.Generator, _secrets: Path) -> None:
    """A dataset that is declared and not there."""

    def make(name: str, old: h5py.Dataset) -> None:
        shape = (HUGE, *old.shape[1:])
        file.create_dataset(name, shape=shape, dtype=old.dtype, chunks=(64, *old.shape[1:]))

    _replace(file, _pick(rng, _numeric(file)), make)


def _secret(rng: np.random.Generator, secrets: Path, kind: int) -> str:
    where = secrets / SECRET_FILES[kind]
    return str(where) if rng.integers(2) else f"../{secrets.name}/{where.name}"


def external_storage(file: h5py.File, rng: np.random.Generator, secrets: Path) -> None:
    def make(name: str, old: h5py.Dataset) -> None:
        bytes_of = [(_secret(rng, secrets, 0), 0, h5py.h5f.UNLIMITED)]
        file.create_dataset(name, shape=old.shape, dtype="f8", external=bytes_of)

    _replace(file, _pick(rng, _numeric(file)), make)


def external_link(file: h5py.File, rng: np.random.Generator, secrets: Path) -> None:
    name = _pick(rng, [name for name in _numeric(file) if not name.startswith("#refs#")])
    target = ["photo", "turned", "row"][rng.integers(3)]
    del file[name]
    file[name] = h5py.ExternalLink(_secret(rng, secrets, 1), target)


def virtual(file: h5py.File, rng: np.random.Generator, secrets: Path) -> None:
    def make(name: str, old: h5py.Dataset) -> None:
        layout = h5py.VirtualLayout(old.shape, "f8")
        sources = {1: "row", 2: "turned" if len(old) == 3 else "photo"}
        source = sources[min(old.ndim, 2)]
        shape = {"row": (3,), "photo": (12, 3), "turned": (3, 12)}[source]
        part = tuple(slice(0, min(a, b)) for a, b in zip(old.shape, shape, strict=True))
        layout[part] = h5py.VirtualSource(_secret(rng, secrets, 1), source, shape)[part]
        file.create_virtual_dataset(name, layout)

    _replace(file, _pick(rng, _numeric(file)), make)


def soft_link(file: h5py.File, rng: np.random.Generator, _secrets: Path) -> None:
    """To itself, to nothing, or to another part of the file."""
    name = _pick(rng, _names(file, object))
    del file[name]
    file[name] = h5py.SoftLink([f"/{name}", "/nothing", "/"][rng.integers(3)])


def hard_loop(file: h5py.File, rng: np.random.Generator, _secrets: Path) -> None:
    """A group inside itself."""
    group = _pick(rng, _names(file, h5py.Group))
    file[f"{group}/again"] = file[group]


def deep_groups(file: h5py.File, rng: np.random.Generator, _secrets: Path) -> None:
    group = file[_pick(rng, _names(file, h5py.Group))]
    for _ in range(300):
        group = group.create_group("d")


def _sparse_parts(file: h5py.File) -> list[tuple[str, str]]:
    """Starts and indices of the sparse matrices."""
    groups = ["", *_names(file, h5py.Group)]
    kinds = (("indptr", "indices"), ("jc", "ir"))
    return [
        (f"{group}/{starts}", f"{group}/{indices}")
        for group in groups
        for starts, indices in kinds
        if f"{group}/{starts}" in file
    ]


def _edit_sparse(file: h5py.File, rng: np.random.Generator, which: int, change: Any) -> None:
    pairs = _sparse_parts(file)
    name = pairs[rng.integers(len(pairs))][which]
    values = file[name][()].astype(np.int64)
    change(values)
    # HDF5 would write 0 for a negative number where it has no sign.
    values[values < 0] = 2**40 if file[name].dtype.kind == "u" else -1
    file[name][...] = values


def index_out_of_range(file: h5py.File, rng: np.random.Generator, _secrets: Path) -> None:
    def change(values: np.ndarray) -> None:
        values[rng.integers(len(values))] = [2**30, 10**5, -1, -(2**30), 12][rng.integers(5)]

    _edit_sparse(file, rng, 1, change)


def start_out_of_range(file: h5py.File, rng: np.random.Generator, _secrets: Path) -> None:
    def change(values: np.ndarray) -> None:
        values[rng.integers(1, len(values))] = [2**30, 10**5, -1, -(2**30)][rng.integers(4)]

    _edit_sparse(file, rng, 0, change)


def bad_reference(file: h5py.File, rng: np.random.Generator, _secrets: Path) -> None:
    if file.get("X") is None or getattr(file["X"], "dtype", None) != h5py.ref_dtype:
        return remove_something(file, rng, _secrets)
    file["#refs#/c"] = np.zeros((2, 12))
    dangling = file["#refs#/c"].ref
    del file["#refs#/c"]
    file["X"][rng.integers(2), 0] = [h5py.Reference(), dangling, file.ref][rng.integers(3)]
    return None


Edit = Callable[[h5py.File, np.random.Generator, Path], None]
# What makes a file that must not be loaded, and what it may survive.
FORBIDDEN: tuple[Edit, ...] = (
    index_out_of_range,
    start_out_of_range,
    index_out_of_range,
    start_out_of_range,
)
FOREIGN_FILES: tuple[Edit, ...] = (external_storage, external_link, virtual)
SURVIVABLE: tuple[Edit, ...] = (
    remove_something,
    remove_attribute,
    odd_attribute,
    other_type,
    other_shape,
    huge,
    soft_link,
    hard_loop,
    deep_groups,
    bad_reference,
)
