"""Archives of NumPy, which are read without running any code that they may hold."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from viewmend.data.io.border import check_size, reading

# Version 3 is for names of fields, which no view has.
NPY_HEADERS: Mapping[tuple[int, int], Callable[[Any], Any]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_npz(path: str | Path) -> dict[str, np.ndarray]:
    """All arrays of a NumPy archive by their names; objects, which could hold code, are refused."""
    path = Path(path)
    with reading(path):
        with zipfile.ZipFile(path) as archive:
            check_size(path, sum(member.file_size for member in archive.infolist()))
            for member in archive.infolist():
                _check_member(archive, member)
        with np.load(path, allow_pickle=False) as arrays:
            return {key: arrays[key] for key in arrays.files}


def _check_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Refuse an array whose header declares another size than the archive, before it is made."""
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        shape, _, dtype = NPY_HEADERS[version](stream)
        declared = prod(shape) * dtype.itemsize
        stored = member.file_size - stream.tell()
    if dtype.hasobject or min(shape, default=0) < 0 or declared != stored:
        msg = f"{member.filename} declares {shape} of {dtype} and has {stored} bytes"
        raise ValueError(msg)
