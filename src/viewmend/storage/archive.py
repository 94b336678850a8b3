"""The archive: one JSON document and its arrays in a zip file, checked before it is believed.

The comment at the end of the file is a digest of every byte before it, so that no accident goes
unnoticed: a byte that is changed, added or lost, two files that were joined. Whoever forges a file
can make its digest too; the checks of everything that is read are for that.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, BinaryIO

import numpy as np
import scipy
import sklearn

from viewmend.memory import check_memory
from viewmend.storage.arrays import ArraySpec, array_bytes, narrowed, read_array, spec_of
from viewmend.storage.errors import DAMAGED, ModelFileError, expect
from viewmend.version import __version__

FORMAT = "viewmend model"
# Raised whenever a reader could not make sense of a file of the other; 1 is that of version 0.1.
SCHEMA = 5
MANIFEST = "model.json"
KEYS = {"format", "schema", "versions", "class", "parameters", "fitted", "arrays"}

# JSON grows about fiftyfold when read; arrays do not, and need no limit beyond the file itself.
MOST_MANIFEST_BYTES = 32 * 2**20
MOST_MEMBERS = 50_000
# A compressed array takes at most so many times its place when it is read.
MOST_EXPANSION = 1000
# Arrays are compressed if that spares at least this share of a sample of so many pieces.
WORTH, N_PIECES, PIECE = 0.05, 16, 2**14
ZIP_START = b"PK\x03\x04"
# The last bytes of a file, with the digest in the place of the blanks.
SEAL = b"sha256 "
BLANK_SEAL = SEAL + bytes(64)
CHUNK = 2**20
# The same model gives the same bytes, whenever it is saved.
EPOCH = (1980, 1, 1, 0, 0, 0)
# What zipfile is known to raise on files that are not zip archives of today.
ARCHIVE_ERRORS = (
    zipfile.BadZipFile,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
    IndexError,
    OSError,
    zlib.error,
)


def library_versions() -> dict[str, str]:
    """Of viewmend, and of the libraries that its numbers come from."""
    return {
        "viewmend": __version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


@dataclass(frozen=True, eq=False)
class Document:
    """A model as data: trees of `viewmend.storage.tree`, and arrays by the names that they use.

    ``versions`` are those of the libraries that the file is, or was, written with.
    """

    class_name: Any
    parameters: Any
    fitted: Any
    arrays: Mapping[str, np.ndarray]
    versions: Mapping[str, str] = field(default_factory=library_versions)


def write_archive(file: BinaryIO, document: Document, *, compact: bool = False) -> None:
    """Write all members to a file that is open for writing; small, or in little time."""
    specs = {name: spec_of(name, array) for name, array in document.arrays.items()}
    if compact:
        specs = {name: narrowed(spec, document.arrays[name]) for name, spec in specs.items()}
    manifest = {
        "format": FORMAT,
        "schema": SCHEMA,
        "versions": dict(document.versions),
        "class": document.class_name,
        "parameters": document.parameters,
        "fitted": document.fitted,
        "arrays": {name: spec.to_json() for name, spec in specs.items()},
    }
    text = json.dumps(manifest, allow_nan=False, indent=1).encode("ascii")
    if len(text) > MOST_MANIFEST_BYTES:
        msg = (
            f"{MANIFEST} would have {len(text)} bytes, at most {MOST_MANIFEST_BYTES} can be read; "
            f"use labels of one type, ints or strings, which are kept in arrays"
        )
        raise ModelFileError(msg)
    arrays = (
        (_member(name), (spec.header, array_bytes(spec, document.arrays[name])))
        for name, spec in specs.items()
    )
    write_members(file, chain([(MANIFEST, (text,))], arrays), compact=compact)


def write_members(
    file: BinaryIO,
    members: Iterable[tuple[str, Sequence[bytes | memoryview]]],
    *,
    compact: bool = False,
) -> None:
    """Write a zip archive of members, by name and in pieces, with the digest of all at its end."""
    with zipfile.ZipFile(_Sealing(file), "w") as archive:
        archive.comment = BLANK_SEAL
        for name, pieces in members:
            info = zipfile.ZipInfo(name, EPOCH)
            info.file_size = sum(map(len, pieces))
            if compact and name != MANIFEST and _worth_compressing(pieces):
                info.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(info, "w") as member:
                for piece in pieces:
                    member.write(piece)


def _worth_compressing(pieces: Sequence[bytes | memoryview]) -> bool:
    """Whether it spares enough, as a sample tells, and less than a reader would refuse."""
    largest = max(pieces, key=len)
    starts = range(0, len(largest), max(len(largest) // N_PIECES, PIECE))
    sample = b"".join(bytes(largest[start : start + PIECE]) for start in starts)
    if len(zlib.compress(sample, 1)) > (1 - WORTH) * len(sample):
        return False
    packer = zlib.compressobj()
    packed = sum(len(packer.compress(piece)) for piece in pieces) + len(packer.flush())
    return sum(map(len, pieces)) < (MOST_EXPANSION - 1) * packed


class _Sealing:
    """Passes on what is written, and a digest of it in the place of the blank seal.

    It cannot seek, so that `zipfile` writes from the beginning to the end.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.digest = file, hashlib.sha256()

    def write(self, data: bytes | memoryview) -> int:
        if data == BLANK_SEAL:
            data = _seal(self.digest.digest())
        self.digest.update(data)
        self.file.write(data)
        return len(data)

    def flush(self) -> None:
        self.file.flush()

    def close(self) -> None:
        """Leave the file open, which is its owner's."""


def _seal(digest: bytes) -> bytes:
    return SEAL + digest.hex().encode("ascii")


def _is_sealed(file: BinaryIO, size: int) -> bool:
    """Whether the file ends with the digest of all that comes before."""
    left = max(size - len(BLANK_SEAL), 0)
    file.seek(left)
    seal = file.read(len(BLANK_SEAL))
    if not seal.startswith(SEAL):
        return False
    digest = hashlib.sha256()
    file.seek(0)
    while left > 0 and (chunk := file.read(min(CHUNK, left))):
        digest.update(chunk)
        left -= len(chunk)
    return left == 0 and _seal(digest.digest()) == seal


def read_archive(file: BinaryIO) -> Document:
    """Read a seekable file that is open for reading.

    One that is truncated, damaged, no model, or of another schema raises a ModelFileError.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    start = file.read(len(ZIP_START))
    if start != ZIP_START:
        msg = (
            "the file does not begin as a file of viewmend does: it is of another kind, or empty; "
            "pass a file that viewmend.save wrote"
        )
        raise ModelFileError(msg)
    try:
        sealed = _is_sealed(file, size)
        with zipfile.ZipFile(file) as archive:
            return _read(archive, size, sealed)
    except ModelFileError:
        raise
    except ARCHIVE_ERRORS as error:
        msg = f"the file must be a whole zip archive, got a truncated one ({error}); {DAMAGED}"
        raise ModelFileError(msg) from error


def _read(archive: zipfile.ZipFile, size: int, sealed: bool) -> Document:
    members = _checked_members(archive, size)
    if MANIFEST not in members:
        msg = f"the archive must hold {MANIFEST}, got a zip archive without; {DAMAGED}"
        raise ModelFileError(msg)
    length = members[MANIFEST].file_size
    expect(length <= MOST_MANIFEST_BYTES, MANIFEST, f"at most {MOST_MANIFEST_BYTES} bytes", length)
    manifest = _parsed(archive.read(members[MANIFEST]))
    # Before the seal, which files of version 0.1 do not have.
    _check_schema(manifest)
    expect(sealed, "the end of the file", "the digest of all before it", "something else")
    _check_manifest(manifest)
    specs = {name: ArraySpec.from_json(name, e) for name, e in manifest["arrays"].items()}
    names = {MANIFEST, *map(_member, specs)}
    expect(set(members) == names, "members", f"{len(names)} of known name", sorted(members))
    arrays = {
        name: _read_member(archive, members[_member(name)], name, spec)
        for name, spec in specs.items()
    }
    class_name, parameters, fitted = (manifest[key] for key in ("class", "parameters", "fitted"))
    return Document(class_name, parameters, fitted, arrays, manifest["versions"])


def _read_member(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, spec: ArraySpec
) -> np.ndarray:
    with archive.open(info) as member:
        return read_array(name, spec, member, info.file_size)


def _checked_members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Members by name, whose sizes together the file can hold: few expand, none overlap."""
    infos = archive.infolist()
    expect(len(infos) <= MOST_MEMBERS, "members", f"at most {MOST_MEMBERS}", len(infos))
    for info in infos:
        title = f"member {info.filename!r}"
        plain = info.compress_type == zipfile.ZIP_STORED and info.compress_size == info.file_size
        packed = info.compress_type == zipfile.ZIP_DEFLATED and info.filename != MANIFEST
        expect(plain or packed, title, "stored, or an array deflated", info.compress_type)
        expand = info.file_size <= MOST_EXPANSION * info.compress_size
        expect(expand, title, f"at most {MOST_EXPANSION} times its place", info.file_size)
        expect(not info.flag_bits & 1, title, "not encrypted", info.flag_bits)
    total = sum(info.compress_size for info in infos)
    expect(total <= size, "the members", f"at most {size} bytes, as the file has", total)
    needed = sum(info.file_size for info in infos)
    check_memory(needed, "the model file", "for its arrays", "load it on a larger machine")
    members = {info.filename: info for info in infos}
    expect(len(members) == len(infos), "names of members", "distinct", len(infos))
    return members


def _parsed(text: bytes) -> Any:
    """JSON without repeated keys, NaN, infinity, or numbers that overflow."""
    try:
        return json.loads(
            text.decode("ascii"),
            object_pairs_hook=_distinct_keys,
            parse_constant=_finite,
            parse_float=_finite,
        )
    except ModelFileError:
        raise
    except (ValueError, RecursionError) as error:
        msg = f"{MANIFEST} must be JSON, got something else ({error}); {DAMAGED}"
        raise ModelFileError(msg) from error


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    expect(len(entries) == len(pairs), f"keys in {MANIFEST}", "distinct", [key for key, _ in pairs])
    return entries


def _finite(text: str) -> float:
    number = float(text)
    expect(math.isfinite(number), f"numbers in {MANIFEST}", "finite", text)
    return number


def _check_schema(manifest: Any) -> None:
    """Format, then schema: newer and older files are told from damaged ones."""
    expect(isinstance(manifest, dict), MANIFEST, "an object", manifest)
    expect(manifest.get("format") == FORMAT, "format", repr(FORMAT), manifest.get("format"))
    schema = manifest.get("schema")
    expect(type(schema) is int and schema >= 1, "schema", "a positive integer", schema)
    if schema > SCHEMA:
        msg = (
            f"the file has schema {schema}, this version of viewmend reads up to {SCHEMA}; "
            f"upgrade viewmend to open it, or save the model again with this version"
        )
        raise ModelFileError(msg)
    if schema < SCHEMA:
        msg = (
            f"the file was written by an older viewmend (schema {schema}), and this version reads "
            f"files of schema {SCHEMA}; fit again and save with this version, or open the file "
            f"with the older one"
        )
        raise ModelFileError(msg)


def _check_manifest(manifest: dict[str, Any]) -> None:
    expect(set(manifest) == KEYS, f"keys of {MANIFEST}", str(sorted(KEYS)), sorted(manifest))
    expect(isinstance(manifest["arrays"], dict), "arrays", "an object", manifest["arrays"])
    versions = manifest["versions"]
    named = isinstance(versions, dict) and isinstance(versions.get("viewmend"), str)
    expect(named, "versions", "an object with that of viewmend", versions)


def _member(name: str) -> str:
    return f"arrays/{name}.npy"
