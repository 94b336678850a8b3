"""One value per sample, such as labels and groups, from whatever holds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from viewmend.data.indices import objects


def one_each(values: Any) -> np.ndarray:
    """The values as an array: of objects, unless NumPy has a type that changes none of them."""
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(object), np.nan)
    elif isinstance(values, (list, tuple)):
        values = _of_list(values)
    elif _is_tensor(values):
        values = values.detach().cpu()
        # NumPy has no bfloat16.
        values = values.double() if values.is_floating_point() else values
    array = np.asarray(values)
    if array.dtype.names is not None:
        # A row of one field is a value, as those of a list are.
        array = _of_list(array.tolist())
    return array if array.dtype.kind in "biufUSMm" else array.astype(object)


def _of_list(values: Sequence[Any]) -> np.ndarray:
    """As objects, because NumPy would make two strings of ["a", -1], and a table of tuples.

    Rows of one value each, as a database gives, are a column.
    """
    values = [each.item() if _is_wrapped(each) else each for each in values]
    if any(isinstance(each, tuple) and len(each) != 1 for each in values):
        return objects(values)
    return np.asarray(values, dtype=object)


def _is_wrapped(value: Any) -> bool:
    """Whether it is a tensor or an array of one value, which no other of the same value equals."""
    is_array = isinstance(value, np.ndarray) or _is_tensor(value)
    return is_array and tuple(value.shape) == ()


def _is_tensor(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "torch"
