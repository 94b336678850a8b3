"""Records of arrays: the same in another array library, or on another device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, cast

from scipy.sparse import issparse

Record = TypeVar("Record")


def converted(record: Record, convert: Callable[[Any], Any]) -> Record:
    """A dataclass, tuple, list or mapping with every array in it replaced by ``convert(array)``.

    Arrays are what has a shape. Numbers, words and functions stay as they are, and so do sparse
    arrays, which only the host has.
    """
    return cast(Record, _converted(record, convert))


def _converted(thing: Any, convert: Callable[[Any], Any]) -> Any:
    if is_dataclass(thing) and not isinstance(thing, type):
        parts = {
            each.name: _converted(getattr(thing, each.name), convert) for each in fields(thing)
        }
        return type(thing)(**parts)
    if isinstance(thing, (tuple, list)):
        return type(thing)(_converted(part, convert) for part in thing)
    if isinstance(thing, Mapping):
        return {key: _converted(part, convert) for key, part in thing.items()}
    return convert(thing) if hasattr(thing, "shape") and not issparse(thing) else thing
