"""Whether values read from a file have the types that their owners declare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from viewmend.storage.errors import expect


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


# What may stand for a type; arrays of any library in `viewmend.core` are NumPy's in a file.
_ACCEPTED: Mapping[Any, Any] = {
    float: (int, float, np.integer, np.floating),
    int: (int, np.integer),
    Any: np.ndarray,
}


def _conforms(value: Any, hint: Any) -> bool:
    kind, args = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        return any(_conforms(value, option) for option in args)
    if kind is tuple:
        # All of them are tuple[X, ...].
        return isinstance(value, tuple) and all(_conforms(entry, args[0]) for entry in value)
    if kind in (dict, Mapping):
        return isinstance(value, dict) and all(
            _conforms(key, args[0]) and _conforms(entry, args[1]) for key, entry in value.items()
        )
    if kind in (int, float) and isinstance(value, bool):
        return False
    # Which function it may be, the vocabulary of the reader has decided.
    return isinstance(value, _ACCEPTED.get(kind, kind))
