"""Whether values read from a file have the types that their owners declare."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from viewmend.storage.errors import expect

__all__ = ["check_types", "record_types"]


@cache
def record_types(record: Any) -> dict[str, Any]:
    """Types of the fields of a data class."""
    hints = get_type_hints(record)
    return {field.name: hints[field.name] for field in fields(record)}


def check_types(what: str, values: Mapping[str, Any], types: Mapping[str, Any]) -> None:
    """Raise unless every value has its type."""
    for name, value in values.items():
        expected = getattr(types[name], "__name__", str(types[name]))
        expect(_conforms(value, types[name]), f"{name} of {what}", f"of type {expected}", value)


def _conforms(value: Any, hint: Any) -> bool:
    origin = get_origin(hint)
    check = _SHAPES_OF_TYPES.get(hint if origin is None else origin)
    return isinstance(value, hint) if check is None else check(value, get_args(hint))


def _is_tuple(value: Any, args: tuple[Any, ...]) -> bool:
    # All of them are tuple[X, ...].
    return isinstance(value, tuple) and all(_conforms(entry, args[0]) for entry in value)


def _is_dict(value: Any, args: tuple[Any, ...]) -> bool:
    return isinstance(value, dict) and all(
        _conforms(key, args[0]) and _conforms(entry, args[1]) for key, entry in value.items()
    )


def _is_union(value: Any, args: tuple[Any, ...]) -> bool:
    return any(_conforms(value, hint) for hint in args)


def _is_number(value: Any, _args: tuple[Any, ...]) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _is_integer(value: Any, _args: tuple[Any, ...]) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_array(value: Any, _args: tuple[Any, ...]) -> bool:
    return isinstance(value, np.ndarray)


def _is_function(value: Any, _args: tuple[Any, ...]) -> bool:
    # Which one it may be, the vocabulary of the reader has decided.
    return callable(value)


def _is_none(value: Any, _args: tuple[Any, ...]) -> bool:
    return value is None


_SHAPES_OF_TYPES: dict[Any, Callable[[Any, tuple[Any, ...]], bool]] = {
    tuple: _is_tuple,
    dict: _is_dict,
    Mapping: _is_dict,
    UnionType: _is_union,
    Union: _is_union,
    Callable: _is_function,
    NoneType: _is_none,
    float: _is_number,
    int: _is_integer,
    # Arrays of any library in `viewmend.core`, and NumPy's in a model.
    Any: _is_array,
}
