"""The variables of a MATLAB file up to version 7, checked before SciPy reads them.

SciPy allocates what a header declares, follows cells in cells as deep as they go, and inflates
what is compressed to the end; all three must be bounded first.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import BinaryIO

from viewmend.data.io.border import check_size, unreadable

HEADER = 128
BYTE_ORDERS = {b"IM": "<", b"MI": ">"}
# Kinds of elements, and classes of matrices: cells, characters, sparse, numbers.
MATRIX, COMPRESSED = 14, 15
CELL, CHARACTERS, SPARSE, NUMBERS = 1, 4, 5, range(6, 16)
# Kinds of elements that hold values; SciPy looks others up where there is nothing.
VALUES = frozenset({1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 17, 18})
# Bytes of a variable that hold its name, unless that is longer than MATLAB allows.
HEAD = 1024


@dataclass(frozen=True)
class Part:
    """An element of a file: its kind, and where its content begins and ends."""

    kind: int
    begin: int
    end: int


def checked_variables(path: Path, wanted: Sequence[str]) -> tuple[list[str], BinaryIO]:
    """Names of all variables, and a file in memory of the wanted ones, inflated.

    These are numbers, characters and sparse matrices, or cells of such, whose sizes are true.
    """
    names, kept = [], []
    with path.open("rb") as file:
        head = file.read(HEADER)
        order = BYTE_ORDERS.get(head[126:128])
        if order is None:
            raise unreadable(path, "its header is not that of version 5 to 7.2")
        for variable in _variables(file, order):
            name, size = variable.name_and_size()
            names.append(name)
            if name in wanted:
                kept.append((variable, size))
    check_size(path, sum(size for _, size in kept))
    plain = io.BytesIO(head)
    plain.seek(HEADER)
    for variable, size in kept:
        content = variable.content(size)
        Walk(content, order).check_variable()
        plain.write(content)
    plain.seek(0)
    return names, plain


def _variables(file: BinaryIO, order: str) -> Iterator[Variable]:
    while tag := file.read(8):
        kind, size = struct.unpack(f"{order}II", tag)
        stored = file.read(size)
        if len(stored) < size or kind not in (MATRIX, COMPRESSED):
            msg = f"element of kind {kind} and {size} bytes, of which {len(stored)} are there"
            raise ValueError(msg)
        yield Variable(tag + stored if kind == MATRIX else stored, kind == COMPRESSED, order)


@dataclass(frozen=True)
class Variable:
    """A variable as it is stored."""

    stored: bytes
    compressed: bool
    order: str

    def name_and_size(self) -> tuple[str, int]:
        """Its name, and its bytes when it is inflated."""
        head = (
            zlib.decompressobj().decompress(self.stored, HEAD) if self.compressed else self.stored
        )
        kind, size = struct.unpack_from(f"{self.order}II", head)
        if kind != MATRIX:
            msg = f"a variable of kind {kind} is no matrix"
            raise ValueError(msg)
        return Walk(head, self.order).name(), 8 + size

    def content(self, size: int) -> bytes:
        """Its ``size`` bytes, inflated."""
        if not self.compressed:
            return self.stored
        inflater = zlib.decompressobj()
        # One more, which is not there, makes zlib compare the checksum.
        content = inflater.decompress(self.stored, size + 1)
        if len(content) != size or not inflater.eof:
            msg = f"a variable of {size} bytes inflates to {len(content)} or more"
            raise ValueError(msg)
        return content


@dataclass(frozen=True)
class Walk:
    """A way through the elements of a variable."""

    content: bytes
    order: str

    def part(self, begin: int) -> tuple[Part, int]:
        """The element at ``begin``, and where the next one begins."""
        kind, size = struct.unpack_from(f"{self.order}II", self.content, begin)
        if kind >> 16:
            # Up to four bytes stand in the place of their number.
            return Part(kind & 0xFFFF, begin + 4, begin + 4 + (kind >> 16)), begin + 8
        padding = 0 if kind == MATRIX else -size % 8
        return Part(kind, begin + 8, begin + 8 + size), begin + 8 + size + padding

    def head(self, begin: int) -> tuple[int, tuple[int, ...], str, int]:
        """Class, shape and name of the matrix whose content begins here, and where that ends."""
        flags, place = self.part(begin)
        shape, place = self.part(place)
        name, place = self.part(place)
        (kind,) = struct.unpack_from(f"{self.order}I", self.content, flags.begin)
        sizes = self.content[shape.begin : shape.end]
        text = self.content[name.begin : name.end].decode("latin-1")
        return kind & 0xFF, struct.unpack(f"{self.order}{len(sizes) // 4}i", sizes), text, place

    def name(self) -> str:
        return self.head(8)[2]

    def check_variable(self) -> None:
        """Refuse a shape that is larger than what is there, and what is neither array nor cell."""
        whole, _ = self.part(0)
        kind, shape, _, place = self.head(whole.begin)
        if kind != CELL:
            self._check_array(whole)
            return
        self._check_shape(shape, prod(shape), whole)
        for _ in range(prod(shape)):
            cell, place = self.part(place)
            # An empty one has no head.
            if cell.kind == MATRIX and cell.end > cell.begin:
                self._check_array(cell)

    def _check_array(self, whole: Part) -> None:
        """Numbers, characters or a sparse matrix, with values of a kind that there is."""
        kind, shape, _, place = self.head(whole.begin)
        if kind not in (CHARACTERS, SPARSE, *NUMBERS):
            msg = f"X must hold matrices, but a part of it is of class {kind}"
            raise ValueError(msg)
        # Of a sparse matrix, one number is stored per column.
        self._check_shape(shape, shape[-1] + 1 if kind == SPARSE else prod(shape), whole)
        while place < whole.end:
            values, place = self.part(place)
            if values.kind not in VALUES:
                msg = f"a matrix holds values of kind {values.kind}"
                raise ValueError(msg)

    def _check_shape(self, shape: Sequence[int], n_stored: int, whole: Part) -> None:
        room = min(whole.end, len(self.content)) - whole.begin
        if len(shape) < 2 or min(shape) < 0 or n_stored > room or whole.end > len(self.content):
            msg = f"a matrix of shape {tuple(shape)} cannot lie in {room} bytes"
            raise ValueError(msg)
