"""Values as JSON trees that name arrays, and back, by a table of the kinds of values there are.

Data classes and functions are written by name, and read only where the `Vocabulary` of the caller
has that name: nothing is ever looked up in a module by a name from a file.

None, bools, ints, strings and finite floats are themselves. Everything else is an object with one
key, the tag: ``{"tuple": [1, 2]}``, ``{"array": "a0"}``, ``{"record": ["Stage", {...}]}``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime
from types import FunctionType
from typing import Any

import numpy as np
from scipy.sparse import csr_array, triu

from viewmend.parameters import short
from viewmend.storage.arrays import spec_of
from viewmend.storage.errors import ModelFileError, expect
from viewmend.storage.types import check_types, record_types

PLAIN = (type(None), bool, int, str)
# Of sparse arrays, whose compiled code knows the byte order of the machine only.
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
INDICES = (np.dtype(np.int32), np.dtype(np.int64))
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class Vocabulary:
    """The data classes and functions that a kind of file may hold, by their names."""

    def __init__(
        self, records: Iterable[type] = (), functions: Iterable[Callable[..., Any]] = ()
    ) -> None:
        self.records: dict[str, Any] = {record.__name__: record for record in records}
        self.functions = {function.__name__: function for function in functions}


class Writer:
    """Turns values into trees, and collects the arrays they name; the same array once."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.arrays: dict[str, np.ndarray] = {}
        self._names: dict[int, str] = {}

    def __call__(self, value: Any) -> Any:
        if type(value) in PLAIN or (type(value) is float and math.isfinite(value)):
            return value
        tag = _tag_of(value)
        return {tag: TAGS[tag].write(value, self)}

    def name(self, array: np.ndarray) -> str:
        """Name of an array, which is kept, so that no other can get its address."""
        if id(array) not in self._names:
            spec_of("an array", array)
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                msg = "NaN or infinity in an array cannot be saved; fit again on finite numbers"
                raise ModelFileError(msg)
            name = self._names[id(array)] = f"a{len(self.arrays)}"
            self.arrays[name] = array
        return self._names[id(array)]


class Reader:
    """Turns trees into values, and remembers which arrays they named."""

    def __init__(self, arrays: Mapping[str, np.ndarray], vocabulary: Vocabulary) -> None:
        self.arrays = arrays
        self.vocabulary = vocabulary
        self.used: set[str] = set()

    def __call__(self, tree: Any) -> Any:
        if type(tree) in PLAIN or type(tree) is float:
            return tree
        expect(isinstance(tree, dict) and len(tree) == 1, "a value", "an object of one tag", tree)
        ((tag, body),) = tree.items()
        expect(tag in TAGS, "tag", f"one of {sorted(TAGS)}", tag)
        return TAGS[tag].read(body, self)

    def array(self, name: Any) -> np.ndarray:
        known = isinstance(name, str) and name in self.arrays
        expect(known, "name of an array", f"one of the {len(self.arrays)} in the file", name)
        self.used.add(name)
        return self.arrays[name]


@dataclass(frozen=True)
class Tag:
    """How one kind of value is written and read."""

    write: Callable[[Any, Writer], Any]
    read: Callable[[Any, Reader], Any]


def _tag_of(value: Any) -> str:
    if isinstance(value, np.generic):
        return "scalar"
    if type(value) is np.ndarray and value.dtype.kind == "O":
        return "objects"
    if is_dataclass(value):
        return "record"
    if type(value) is csr_array and _is_symmetric(value):
        return "symmetric"
    if type(value) not in TAG_OF_TYPE:
        msg = (
            f"{short(value)} of type {type(value).__name__} cannot be saved; expected numbers, "
            f"strings, booleans, dates, None, and tuples, lists, dicts or arrays of them"
        )
        raise ModelFileError(msg)
    return TAG_OF_TYPE[type(value)]


def _write_float(value: float, _write: Writer) -> str:
    return next(word for word, number in NOT_FINITE.items() if repr(number) == repr(value))


def _read_float(body: Any, _read: Reader) -> float:
    expect(isinstance(body, str) and body in NOT_FINITE, "float", str(list(NOT_FINITE)), body)
    return NOT_FINITE[body]


def _read_time(kind: type[date]) -> Callable[[Any, Reader], Any]:
    """Reads dates, or dates with times, from the one form in which they are written."""

    def read(body: Any, _read: Reader) -> Any:
        try:
            value = kind.fromisoformat(body)
        except (TypeError, ValueError):
            value = None
        same = value is not None and value.isoformat() == body
        expect(same, kind.__name__, "in ISO form", body)
        return value

    return read


def _write_items(values: Any, write: Writer) -> list[Any]:
    return [write(value) for value in values]


def _read_list(body: Any, read: Reader) -> list[Any]:
    expect(isinstance(body, list), "entries", "a list", body)
    return [read(tree) for tree in body]


def _read_dict(body: Any, read: Reader) -> dict[Any, Any]:
    pairs = isinstance(body, list) and all(isinstance(p, list) and len(p) == 2 for p in body)
    expect(pairs, "a dict", "a list of pairs", body)
    try:
        entries = {read(key): read(entry) for key, entry in body}
    except TypeError:
        expect(False, "keys of a dict", "hashable", body)
    expect(len(entries) == len(body), "keys of a dict", "distinct", body)
    return entries


def _read_scalar(body: Any, read: Reader) -> Any:
    array = read.array(body)
    expect(array.shape == (), "array of a scalar", "of shape ()", array.shape)
    return array[()]


def _write_objects(value: np.ndarray, write: Writer) -> list[Any]:
    if value.ndim != 1:
        msg = f"arrays of objects must be 1-D to be saved, got shape {value.shape}; recode labels"
        raise ModelFileError(msg)
    return _write_items(value, write)


def _read_objects(body: Any, read: Reader) -> np.ndarray:
    values = _read_list(body, read)
    return np.fromiter(values, dtype=object, count=len(values))


def _write_csr(value: csr_array, write: Writer) -> list[Any]:
    parts = (value.data, value.indices, value.indptr)
    return [*map(int, value.shape), *map(write.name, parts)]


def _read_csr(body: Any, read: Reader) -> csr_array:
    """A sparse array whose every index is within it: compiled code follows them unchecked."""
    expect(isinstance(body, list) and len(body) == 5, "a sparse array", "of 5 parts", body)
    n_rows, n_columns, *names = body
    data, indices, indptr = map(read.array, names)
    sized = all(type(size) is int and 0 <= size < 2**62 for size in (n_rows, n_columns))
    expect(sized, "shape of a sparse array", "of sizes >= 0", (n_rows, n_columns))
    expect(data.dtype in FLOATS, "dtype of a sparse array", "a float", data.dtype.str)
    integral = indices.dtype == indptr.dtype and indices.dtype in INDICES
    expect(integral, "indices of a sparse array", "int32 or int64", indices.dtype.str)
    lengths = indptr.shape == (n_rows + 1,) and data.shape == indices.shape == (indptr[-1],)
    expect(lengths, "lengths of a sparse array", f"those of {n_rows} rows", indptr.shape)
    expect(indptr[0] == 0 and (np.diff(indptr) >= 0).all(), "row ends", "ascending", indptr[:3])
    inside = ((indices >= 0) & (indices < n_columns)).all()
    expect(inside, "columns of a sparse array", f"below {n_columns}", indices)
    matrix = csr_array((data, indices, indptr), shape=(n_rows, n_columns))
    # The constructor may narrow the indices, and then makes copies.
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    return matrix


def _is_symmetric(value: csr_array) -> bool:
    """Whether every entry is there twice, none is zero, and rows are in order."""
    if value.shape[0] != value.shape[1] or not value.has_canonical_format or not value.data.all():
        return False
    other = value.T.tocsr()
    pairs = (value.indptr, other.indptr), (value.indices, other.indices), (value.data, other.data)
    return all(np.array_equal(a, b) for a, b in pairs)


def _read_symmetric(body: Any, read: Reader) -> csr_array:
    """A sparse array from its entries on and above the diagonal."""
    upper = _read_csr(body, read)
    n_rows, n_columns = upper.shape
    expect(n_rows == n_columns, "shape of a symmetric array", "square", upper.shape)
    whole = csr_array(upper + triu(upper, k=1).T)
    indices = upper.indices.dtype
    whole.indices, whole.indptr = whole.indices.astype(indices), whole.indptr.astype(indices)
    return whole


def _write_record(value: Any, write: Writer) -> list[Any]:
    name, records = type(value).__name__, write.vocabulary.records
    if records.get(name) is not type(value):
        msg = f"{name} is no data class of the file format; expected one of {sorted(records)}"
        raise ModelFileError(msg)
    return [name, {field.name: write(getattr(value, field.name)) for field in fields(value)}]


def _read_record(body: Any, read: Reader) -> Any:
    expect(isinstance(body, list) and len(body) == 2, "a record", "a name and its fields", body)
    (name, trees), records = body, read.vocabulary.records
    known = isinstance(name, str) and name in records
    expect(known, "a record", f"one of {sorted(records)}", name)
    expect(isinstance(trees, dict), f"fields of {name}", "an object", trees)
    types = record_types(records[name])
    expect(set(trees) == set(types), f"fields of {name}", str(sorted(types)), sorted(trees))
    values = {field: read(tree) for field, tree in trees.items()}
    check_types(name, values, types)
    return records[name](**values)


def _write_function(value: FunctionType, write: Writer) -> str:
    functions = write.vocabulary.functions
    if functions.get(value.__name__) is not value:
        msg = f"function {value.__name__} cannot be saved; expected one of {sorted(functions)}"
        raise ModelFileError(msg)
    return value.__name__


def _read_function(body: Any, read: Reader) -> Callable[..., Any]:
    functions = read.vocabulary.functions
    known = isinstance(body, str) and body in functions
    expect(known, "a function", f"one of {sorted(functions)}", body)
    return functions[body]


def _write_generator(value: np.random.Generator, _write: Writer) -> list[int]:
    state: Any = value.bit_generator.state
    if state["bit_generator"] != "PCG64":
        msg = (
            f"a random_state of {state['bit_generator']} cannot be saved; use an int, or "
            f"numpy.random.default_rng, which is PCG64"
        )
        raise ModelFileError(msg)
    inner = state["state"]
    return [inner["state"], inner["inc"], state["has_uint32"], state["uinteger"]]


def _read_generator(body: Any, _read: Reader) -> np.random.Generator:
    bits = (128, 128, 1, 32)
    fits = (
        isinstance(body, list)
        and len(body) == len(bits)
        and all(type(n) is int and 0 <= n < 2**b for n, b in zip(body, bits, strict=True))
    )
    expect(fits, "a generator", f"integers of {bits} bits", body)
    state, inc, has_uint32, uinteger = body
    generator = np.random.PCG64()
    generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": state, "inc": inc},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }
    return np.random.Generator(generator)


TAGS = {
    "float": Tag(_write_float, _read_float),
    "list": Tag(_write_items, _read_list),
    "tuple": Tag(_write_items, lambda body, read: tuple(_read_list(body, read))),
    "dict": Tag(
        lambda value, write: [_write_items(pair, write) for pair in value.items()], _read_dict
    ),
    "array": Tag(lambda array, write: write.name(array), lambda body, read: read.array(body)),
    "scalar": Tag(lambda number, write: write.name(np.asarray(number)), _read_scalar),
    "objects": Tag(_write_objects, _read_objects),
    "csr": Tag(_write_csr, _read_csr),
    "symmetric": Tag(
        lambda value, write: _write_csr(csr_array(triu(value)), write), _read_symmetric
    ),
    "record": Tag(_write_record, _read_record),
    "function": Tag(_write_function, _read_function),
    "generator": Tag(_write_generator, _read_generator),
    "date": Tag(lambda value, _write: value.isoformat(), _read_time(date)),
    "datetime": Tag(lambda value, _write: value.isoformat(), _read_time(datetime)),
}
TAG_OF_TYPE: dict[type, str] = {
    float: "float",
    list: "list",
    tuple: "tuple",
    dict: "dict",
    np.ndarray: "array",
    csr_array: "csr",
    FunctionType: "function",
    np.random.Generator: "generator",
    date: "date",
    datetime: "datetime",
}
