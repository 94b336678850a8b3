"""Bytes of a model file after an accident, or after a forgery under a valid digest."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import pickle
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from viewmend.storage.archive import SEAL, Document, read_archive, write_archive, write_members

Rng = np.random.Generator
# One entry for every pickle that ran.
RAN: list[str] = []

# Accidents: (data, other, at, length, rng) -> data.


def _flip(data: bytes, _other: bytes, at: int, _length: int, rng: Rng) -> bytes:
    return data[:at] + bytes([data[at] ^ 1 << int(rng.integers(8))]) + data[at + 1 :]


def _swap(data: bytes, _other: bytes, at: int, length: int, rng: Rng) -> bytes:
    first, second = sorted((at, int(rng.integers(len(data)))))
    length = min(length, second - first, len(data) - second)
    a, b = data[first : first + length], data[second : second + length]
    return data[:first] + b + data[first + length : second] + a + data[second + length :]


ACCIDENTS: dict[str, Callable[[bytes, bytes, int, int, Rng], bytes]] = {
    "flip": _flip,
    "insert": lambda d, _o, at, n, rng: d[:at] + rng.bytes(n) + d[at:],
    "delete": lambda d, _o, at, n, _r: d[:at] + d[at + n :],
    "truncate": lambda d, _o, at, _n, _r: d[:at],
    "cut the beginning": lambda d, _o, at, _n, _r: d[at:],
    "zero": lambda d, _o, at, n, _r: d[:at] + bytes(n) + d[at + n :],
    "swap": _swap,
    "repeat": lambda d, _o, at, n, _r: d[: at + n] + d[at:],
    "junk before": lambda d, _o, _at, n, rng: rng.bytes(n) + d,
    "junk after": lambda d, _o, _at, n, rng: d + rng.bytes(n),
    "join": lambda d, other, _at, _n, _r: d + other,
    "half of another": lambda d, other, at, _n, _r: d[:at] + other[at:],
}


def damaged(data: bytes, other: bytes, rng: Rng) -> tuple[str, bytes]:
    """The name of an accident, and the bytes after it, which are never the same."""
    while True:
        kind = list(ACCIDENTS)[rng.integers(len(ACCIDENTS))]
        # Half of them where the structure is: in the directory at the end, or at the beginning.
        low, high = [(0, len(data)), (0, len(data)), (0, 4000), (len(data) - 3000, len(data))][
            rng.integers(4)
        ]
        at = int(rng.integers(low, high))
        changed = ACCIDENTS[kind](data, other, at, int(2 ** rng.uniform(0, 12)), rng)
        if changed not in (data, other):
            return kind, changed


# Forgeries: (data, rng) -> data with valid checksums and a valid digest.

JUNK: list[Any] = [None, True, 0, -1, 7, 2**70, 0.5, "", "a0", "a1", [], {}, [1, 2]]
JUNK += [{"tuple": []}, {"array": "a0"}, {"float": "nan"}, {"list": [[]]}, {"scalar": "a0"}]
JUNK += [{"float": "inf"}, {"dict": []}, {"objects": [1]}, {"function": "homophily_weights"}]
NUMBERS = [0, -1, 1, 2, 1e-300, 1e300, -1e300, 0.5, 1e16, 1e-16, 2**31, 2**63, -(2**63), 1e9, 3]
EXTREMES = [0.0, -1.0, 1.0, 1e300, -1e300, 1e-300, 1e38, -1e38, 1e20, 1e-20, 7.0, -0.5]


def forged(data: bytes, rng: Rng) -> tuple[str, bytes]:
    """The name of a forgery, and the file after it."""
    kind = list(FORGERIES)[rng.integers(len(FORGERIES))]
    return kind, FORGERIES[kind](data, rng)


def _spots(node: Any) -> list[tuple[Any, Any]]:
    """Every place of a JSON document, as its owner and its key there."""
    if not isinstance(node, (dict, list)):
        return []
    keys = list(node) if isinstance(node, dict) else list(range(len(node)))
    return [(node, key) for key in keys] + [s for key in keys for s in _spots(node[key])]


def _edit_tree(data: bytes, rng: Rng) -> bytes:
    """One value of the document is gone, another one's, or something else."""

    def edit(manifest: dict[str, Any]) -> None:
        spots = _spots(manifest)
        node, key = spots[rng.integers(len(spots))]
        choice = rng.integers(4)
        if choice == 0:
            del node[key]
        elif choice == 1:
            other, there = spots[rng.integers(len(spots))]
            node[key] = copy.deepcopy(other[there])
        else:
            node[key] = JUNK[rng.integers(len(JUNK))]

    return _with_manifest(data, edit)


def _edit_number(data: bytes, rng: Rng) -> bytes:
    """One number of the document is another number."""

    def edit(manifest: dict[str, Any]) -> None:
        spots = [
            (node, key)
            for part in ("parameters", "fitted")
            for node, key in _spots(manifest[part])
            if type(node[key]) in (int, float)
        ]
        node, key = spots[rng.integers(len(spots))]
        node[key] = NUMBERS[rng.integers(len(NUMBERS))]

    return _with_manifest(data, edit)


def _edit_text(data: bytes, rng: Rng) -> bytes:
    """One string of the document is another one of its strings."""

    def edit(manifest: dict[str, Any]) -> None:
        spots = [(node, key) for node, key in _spots(manifest) if type(node[key]) is str]
        (node, key), (other, there) = (spots[i] for i in rng.integers(len(spots), size=2))
        node[key] = other[there]

    return _with_manifest(data, edit)


def _edit_values(data: bytes, rng: Rng) -> bytes:
    """Some entries of one array, or all, are other numbers of its type."""

    def edit(array: np.ndarray) -> np.ndarray:
        array = array.copy()
        if array.size == 0:
            return array
        where = rng.integers(array.size, size=max(1, int(array.size ** rng.uniform(0, 1.2))))
        flat = array.reshape(-1)
        flat[where] = _other_values(flat[where], rng)
        return flat.reshape(array.shape)

    return _with_array(data, rng, edit)


def _other_values(values: np.ndarray, rng: Rng) -> np.ndarray:
    if values.dtype.kind == "f":
        extreme = EXTREMES[rng.integers(len(EXTREMES))]
        largest = float(np.finfo(values.dtype).max)
        options = [
            np.full(values.shape, np.clip(extreme, -largest, largest)),
            -values,
            rng.normal(size=values.shape) * 10.0 ** rng.integers(-30, 30),
            values * (1 + rng.normal(size=values.shape)),
        ]
        return options[rng.integers(4)].astype(values.dtype)
    if values.dtype.kind in "iu":
        info = np.iinfo(values.dtype)
        choices = np.array([info.min, info.max, 0, 1, 2, 35, 36, 2**31 - 1], dtype=object)
        return np.clip(rng.choice(choices, values.shape), info.min, info.max).astype(values.dtype)
    return rng.permutation(values)


def _edit_shape(data: bytes, rng: Rng) -> bytes:
    """One array has other dimensions."""
    edits = [
        lambda a: a[:-1] if a.ndim else a[None],
        lambda a: a[:0] if a.ndim else a,
        lambda a: np.concatenate([a, a]) if a.ndim else np.stack([a, a]),
        lambda a: a.T,
        lambda a: a.reshape(-1),
        lambda a: a[None],
        lambda a: a[..., None],
        lambda a: a[..., :-1] if a.ndim else a,
        lambda a: a[..., :0] if a.ndim else a,
        lambda a: a[..., ::-1] if a.ndim else a,
    ]
    return _with_array(data, rng, edits[rng.integers(len(edits))])


def _edit_dtype(data: bytes, rng: Rng) -> bytes:
    """One array is of another type."""
    dtypes = ["<f4", "<f8", ">f8", "<i4", "<i8", ">i8", "<u8", "|b1", "<U3", "|S2", "<M8[s]", "|u1"]

    def edit(array: np.ndarray) -> np.ndarray:
        try:
            return array.astype(dtypes[rng.integers(len(dtypes))])
        except (TypeError, ValueError):
            return array

    with np.errstate(all="ignore"):
        return _with_array(data, rng, edit)


def _exchange_arrays(data: bytes, rng: Rng) -> bytes:
    """Two arrays, often of the same shape, are in each other's place."""
    document = read_archive(io.BytesIO(data))
    arrays = dict(document.arrays)
    names = list(arrays)
    first = names[rng.integers(len(names))]
    alike = [name for name in names if arrays[name].shape == arrays[first].shape]
    second = alike[rng.integers(len(alike))] if rng.integers(2) else names[rng.integers(len(names))]
    arrays[first], arrays[second] = arrays[second], arrays[first]
    return _archive(document, arrays)


class _Explodes:
    def __reduce__(self) -> tuple[Any, ...]:
        return _run, ()


def _run() -> None:
    RAN.append("ran")


def _plant_pickle(data: bytes, rng: Rng) -> bytes:
    """A pickle in the place of a member, beside the others, or in an array of objects."""
    members = _members(data)
    names = list(members)
    name = names[rng.integers(len(names))]
    code = pickle.dumps(_Explodes())
    objects = io.BytesIO()
    np.save(objects, np.array([_Explodes()], dtype=object), allow_pickle=True)
    content = [code, objects.getvalue()][rng.integers(2)]
    where = rng.integers(3)
    if where == 0:
        members[name] = content
    elif where == 1:
        members[["model.pkl", "arrays/extra.npy", "../x.pkl", ".data"][rng.integers(4)]] = content
    else:
        manifest = json.loads(members["model.json"])
        array = list(manifest["arrays"])[rng.integers(len(manifest["arrays"]))]
        entry = {"dtype": "|O", "shape": [1], "fortran": False, "stored": "|O"}
        manifest["arrays"][array] = entry
        members["model.json"] = json.dumps(manifest).encode()
        members[f"arrays/{array}.npy"] = content
    return _sealed_zip(members)


def _edit_structure(data: bytes, rng: Rng) -> bytes:
    """An accident, most likely of the directory, under a valid digest."""
    length = len(SEAL) + 64
    _, changed = damaged(data[:-length], data, rng)
    return changed + SEAL + hashlib.sha256(changed).hexdigest().encode()


def _compress(data: bytes, rng: Rng) -> bytes:
    """Members that are compressed, or there twice, or many."""
    members, file = _members(data), io.BytesIO()
    method = [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_STORED][rng.integers(3)]
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", method) as archive:
        warnings.simplefilter("ignore")
        for name, content in members.items():
            archive.writestr(name, content)
        if method == zipfile.ZIP_STORED:
            archive.writestr(list(members)[rng.integers(len(members))], b"x")
        archive.comment = bytes(len(SEAL) + 64)
    body = file.getvalue()[: -len(SEAL) - 64]
    return body + SEAL + hashlib.sha256(body).hexdigest().encode()


FORGERIES: dict[str, Callable[[bytes, Rng], bytes]] = {
    "tree": _edit_tree,
    "number": _edit_number,
    "text": _edit_text,
    "values": _edit_values,
    "more values": lambda data, rng: _edit_values(_edit_values(data, rng), rng),
    "shape": _edit_shape,
    "dtype": _edit_dtype,
    "exchange": _exchange_arrays,
    "pickle": _plant_pickle,
    "structure": _edit_structure,
    "compression": _compress,
}


def _members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _sealed_zip(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    write_members(file, ((name, [content]) for name, content in members.items()))
    return file.getvalue()


def _with_manifest(data: bytes, edit: Callable[[dict[str, Any]], None]) -> bytes:
    members = _members(data)
    manifest = json.loads(members["model.json"])
    edit(manifest)
    return _sealed_zip(members | {"model.json": json.dumps(manifest).encode()})


def _with_array(data: bytes, rng: Rng, edit: Callable[[np.ndarray], np.ndarray]) -> bytes:
    document = read_archive(io.BytesIO(data))
    name = list(document.arrays)[rng.integers(len(document.arrays))]
    return _archive(document, dict(document.arrays) | {name: edit(document.arrays[name])})


def _archive(document: Document, arrays: dict[str, np.ndarray]) -> bytes:
    file = io.BytesIO()
    parts = (document.class_name, document.parameters, document.fitted)
    write_archive(file, Document(*parts, arrays))
    return file.getvalue()
