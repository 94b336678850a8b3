"""What an HDF5 file may hold: objects of its own, in a tree, of sizes that can be."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from viewmend.data.io.border import check_size, unreadable
from viewmend.exceptions import InvalidViewsError

# A reader descends into every group again wherever a link leads to it, and links may lead in
# circles.
DEEPEST = 30
MOST_OBJECTS = 100_000
# How heaps of texts begin, before their size, and the size of what comes before each object.
HEAP, HEAP_HEADER = b"GCOL\x01\x00\x00\x00", 16
# What sparse matrices of AnnData call their shape, today and in old files.
SPARSE_SHAPES = ("shape", "h5sparse_shape")


def check_hdf5_file(path: Path) -> None:
    """`check_hdf5` of all that a file holds, attributes included."""
    import h5py

    check_heaps(path)
    with h5py.File(path, "r") as file:
        check_hdf5(path, file)
        for item in _objects(path, [file], 0):
            for name in item.attrs:
                check_attribute(path, item, name)


def check_attribute(path: Path, item: Any, name: str) -> None:
    """Refuse an attribute of a type that HDF5 crashes on."""
    _check_type(path, item.attrs.get_id(name).get_type(), f"{item.name}:{name}")


def check_hdf5(path: Path, *roots: Any) -> None:
    """Refuse links to other files and more data than there can be, before anything reads it.

    ``roots`` are the open file, or groups and datasets of it.
    """
    n_bytes = 0
    for count, item in enumerate(_objects(path, roots, 0)):
        n_bytes += _declared_bytes(path, item)
        if count >= MOST_OBJECTS:
            raise unreadable(path, f"its links lead to more than {MOST_OBJECTS} objects")
    check_size(path, n_bytes)


def check_heaps(path: Path) -> None:
    """Refuse heaps of texts in which an object has no size, in which HDF5 goes round for ever."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        begin = content.find(HEAP)
        while begin >= 0:
            (size,) = struct.unpack_from("<Q", content, begin + 8)
            end, place = begin + size, begin + HEAP_HEADER
            while place + HEAP_HEADER <= min(end, len(content)):
                number, length = struct.unpack_from("<H6xQ", content, place)
                # Number 0 is what is free, its header included.
                step = HEAP_HEADER + length + -length % 8 if number else length
                if not 0 < step <= end - place:
                    raise unreadable(path, f"an object of {length} bytes in a heap of {size}")
                place += step
            begin = content.find(HEAP, begin + len(HEAP))


def _objects(path: Path, items: Any, depth: int) -> Iterator[Any]:
    """Everything below these, as often as links lead to it."""
    if depth > DEEPEST:
        raise unreadable(path, f"its groups lie more than {DEEPEST} deep in each other")
    for item in items:
        yield item
        if hasattr(item, "keys"):
            yield from _objects(path, _members(path, item), depth + 1)


def _members(path: Path, group: Any) -> Iterator[Any]:
    import h5py

    for name in group:
        link = group.get(name, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            raise _elsewhere(path, f"{group.name}/{name}", f"is a link to {link.filename!r}")
        yield group[name]


def _declared_bytes(path: Path, item: Any) -> int:
    """Bytes that a dataset or a sparse matrix takes in memory."""
    if hasattr(item, "keys"):
        shapes = [item.attrs[name] for name in SPARSE_SHAPES if name in item.attrs]
        return sum(8 * int(size) for shape in shapes for size in np.ravel(shape))
    if getattr(item, "shape", None) is None:
        return 0
    _check_own(path, item)
    _check_type(path, item.id.get_type(), item.name)
    # A part of a chunk is read by reading all of it.
    n_values = max(prod(item.shape), prod(item.chunks or ()))
    return n_values * max(item.dtype.itemsize, item.id.get_type().get_size())


def _check_type(path: Path, kind: Any, name: str) -> None:
    """Refuse lists of varying length, which no format has and HDF5 may crash on; texts are none."""
    import h5py

    if kind.get_class() == h5py.h5t.VLEN:
        raise unreadable(path, f"{name} holds lists of varying length")
    if kind.get_class() == h5py.h5t.ARRAY:
        _check_type(path, kind.get_super(), name)
    if kind.get_class() == h5py.h5t.COMPOUND:
        for member in range(kind.get_nmembers()):
            _check_type(path, kind.get_member_type(member), name)


def _check_own(path: Path, dataset: Any) -> None:
    """Refuse a dataset whose values lie in other files."""
    import h5py

    made = dataset.id.get_create_plist()
    if made.get_layout() == h5py.h5d.VIRTUAL:
        raise _elsewhere(path, dataset.name, "is put together from other datasets")
    if made.get_external_count():
        other = made.get_external(0)[0].decode(errors="replace")
        raise _elsewhere(path, dataset.name, f"lies in {other!r}")


def _elsewhere(path: Path, name: str, what: str) -> InvalidViewsError:
    msg = (
        f"{path} must hold its data itself, but its part {name!r} {what}; copy the data into one "
        "file"
    )
    return InvalidViewsError(msg)
