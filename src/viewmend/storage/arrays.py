"""Arrays as bytes of the .npy format, and back without trust in any of the bytes."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import IO, Any

import numpy as np

from viewmend.storage.errors import ModelFileError, expect

# Nothing that holds Python objects, and nothing whose width depends on the machine.
ALLOWED_DTYPE = re.compile(
    r"\|b1|\|[iu]1|[<>][iu][248]|[<>]f[48]|\|S\d{1,6}|[<>]U\d{1,6}|[<>][Mm]8(\[[0-9a-zA-Z]{1,8}\])?"
)
MOST_DIMENSIONS = 8
# Smaller types by kind, the smallest first.
NARROWER = {"f": ("f4",), "i": ("i1", "i2", "i4"), "u": ("u1", "u2", "u4")}
LAST_CODE_POINT = 0x10FFFF
CHUNK = 2**20


@dataclass(frozen=True)
class ArraySpec:
    """Dtype, shape and layout of an array, as the manifest declares them.

    ``stored`` is the dtype in the file, which holds the same numbers, if need be in fewer bytes.
    """

    dtype: np.dtype
    shape: tuple[int, ...]
    fortran: bool
    stored: np.dtype

    @property
    def n_bytes(self) -> int:
        # In Python's integers, which do not overflow.
        return math.prod(self.shape) * self.stored.itemsize

    @property
    def header(self) -> bytes:
        """The header of a .npy file, version 1.0: a multiple of 64 bytes."""
        text = (
            f"{{'descr': {self.stored.str!r}, 'fortran_order': {self.fortran}, "
            f"'shape': {self.shape}, }}"
        )
        padding = " " * (-(len(text) + 11) % 64)
        body = f"{text}{padding}\n".encode("ascii")
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(body)) + body

    def to_json(self) -> dict[str, Any]:
        return {
            "dtype": self.dtype.str,
            "shape": list(self.shape),
            "fortran": self.fortran,
            "stored": self.stored.str,
        }

    @classmethod
    def from_json(cls, name: str, entry: Any) -> ArraySpec:
        """Read an entry of the manifest."""
        keys = {"dtype", "shape", "fortran", "stored"}
        expect(isinstance(entry, Mapping) and set(entry) == keys, name, f"of keys {keys}", entry)
        shape, fortran = entry["shape"], entry["fortran"]
        dtype, stored = (_read_dtype(name, entry[key]) for key in ("dtype", "stored"))
        narrower = stored == dtype or (stored.kind == dtype.kind and np.can_cast(stored, dtype))
        expect(narrower, f"stored dtype of {name}", f"one that {dtype.str} holds", stored.str)
        expect(isinstance(shape, list), f"shape of {name}", "a list", shape)
        expect(len(shape) <= MOST_DIMENSIONS, f"shape of {name}", "short", shape)
        fits = all(type(size) is int and 0 <= size < 2**62 for size in shape)
        expect(fits, f"shape of {name}", "of sizes >= 0", shape)
        expect(isinstance(fortran, bool), f"fortran of {name}", "true or false", fortran)
        return cls(dtype, tuple(shape), fortran, stored)


def spec_of(name: str, array: np.ndarray) -> ArraySpec:
    """Declaration of an array; a layout that is neither C nor Fortran becomes C."""
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    dtype = _allowed_dtype(name, array.dtype.str)
    return ArraySpec(dtype, array.shape, bool(fortran), dtype)


def narrowed(spec: ArraySpec, array: np.ndarray) -> ArraySpec:
    """The same array in the smallest dtype of its kind that holds every number of it exactly."""
    if not array.size or not spec.dtype.isnative:
        return spec
    for code in NARROWER.get(spec.dtype.kind, ()):
        dtype = np.dtype(code)
        if dtype.itemsize < spec.dtype.itemsize and _holds(dtype, array):
            return replace(spec, stored=dtype)
    return spec


def _holds(dtype: np.dtype, array: np.ndarray) -> bool:
    if dtype.kind != "f":
        limits = np.iinfo(dtype)
        return bool(limits.min <= array.min() and array.max() <= limits.max)
    # Most that do not fit show it in the first number.
    with np.errstate(over="ignore"):
        first = array.flat[0]
        return bool(dtype.type(first) == first and (array.astype(dtype) == array).all())


def array_bytes(spec: ArraySpec, array: np.ndarray) -> memoryview:
    """The bytes after the header, without a copy where the layout allows it."""
    stored = np.ascontiguousarray(array.T if spec.fortran else array, dtype=spec.stored)
    return stored.reshape(-1).view(np.uint8).data


def read_array(name: str, spec: ArraySpec, stream: IO[bytes], length: int) -> np.ndarray:
    """The array in the next ``length`` bytes, header and all, if it is what was declared."""
    header = spec.header
    got = length - len(header)
    expect(got == spec.n_bytes, f"{name} after its header", f"{spec.n_bytes} bytes", got)
    found = stream.read(len(header))
    expect(found == header, f"header of {name}", "that of its dtype and shape", found[:80])
    stored = np.empty(spec.shape[::-1] if spec.fortran else spec.shape, spec.stored)
    raw = stored.reshape(-1).view(np.uint8)
    # In pieces: large arrays are in memory once.
    for start in range(0, spec.n_bytes, CHUNK):
        wanted = raw[start : start + CHUNK]
        piece = stream.read(len(wanted))
        expect(len(piece) == len(wanted), name, f"{spec.n_bytes} bytes", start + len(piece))
        wanted[:] = np.frombuffer(piece, np.uint8)
    _check_values(name, stored)
    whole = stored.astype(spec.dtype, copy=False)
    return whole.T if spec.fortran else whole


def _check_values(name: str, array: np.ndarray) -> None:
    """Finite floats, bools of 0 and 1, and strings of code points that exist."""
    if array.dtype.kind == "f":
        expect(np.isfinite(array).all(), f"values of {name}", "finite", "NaN or infinity")
    elif array.dtype.kind == "b":
        expect((array.view(np.uint8) <= 1).all(), f"values of {name}", "0 or 1", "other bytes")
    elif array.dtype.kind == "U" and array.size:
        points = np.frombuffer(array.tobytes(), dtype=f"{array.dtype.byteorder}u4")
        expect(points.max() <= LAST_CODE_POINT, f"values of {name}", "text", "other bytes")


def _read_dtype(name: str, text: Any) -> np.dtype:
    expect(isinstance(text, str), f"dtype of {name}", "a string", text)
    return _allowed_dtype(name, text)


def _allowed_dtype(name: str, text: str) -> np.dtype:
    if ALLOWED_DTYPE.fullmatch(text):
        try:
            dtype = np.dtype(text)
        except (TypeError, ValueError) as error:
            msg = f"dtype of {name} must be one of NumPy's, got {text!r}; {error}"
            raise ModelFileError(msg) from error
        if dtype.itemsize and dtype.str == text:
            return dtype
    msg = (
        f"dtype of {name} must be bool, int, uint, float32, float64, text, bytes or a date, got "
        f"{text!r}; recode labels of other types as ints or strings"
    )
    raise ModelFileError(msg)
