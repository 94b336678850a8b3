"""Which array library an array belongs to; the sole importer of array-api-compat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import array_api_compat
import numpy as np

__all__ = [
    "Array",
    "array_namespace",
    "fetched",
    "is_numpy",
    "is_torch",
    "row_maxima",
    "row_selector",
    "to_numpy",
    "torch_device",
]

# Arrays of any library that follows the array-API standard.
Array = Any


def array_namespace(*arrays: Array) -> Any:
    """Namespace (NumPy, PyTorch, ...) that all the arrays share; mixed inputs are an error."""
    return array_api_compat.array_namespace(*arrays)


def is_numpy(xp: Any) -> bool:
    """Whether a namespace is NumPy, for which the compiled kernels are written."""
    return bool(array_api_compat.is_numpy_namespace(xp))


def is_torch(xp: Any) -> bool:
    """Whether a namespace is PyTorch, on any of its devices."""
    return bool(array_api_compat.is_torch_namespace(xp))


def to_numpy(array: Array) -> np.ndarray:
    """The same numbers as a NumPy array on the host."""
    if array_api_compat.is_torch_array(array):
        array = array.detach().cpu()
    return np.asarray(array)


def fetched(arrays: Sequence[Array]) -> list[np.ndarray]:
    """Numbers and small arrays on the host, those of PyTorch all in one transfer.

    A GPU is idle while the host waits for a number and prepares the next step.
    """
    there = [array for array in arrays if array_api_compat.is_torch_array(array)]
    if not there:
        return [np.asarray(array) for array in arrays]
    # Everything in one flat array of float64, cut into its parts again on the host.
    xp = array_namespace(*there)
    flat = [xp.astype(xp.reshape(array, (-1,)), xp.float64, copy=False) for array in there]
    ends = np.cumsum([array.shape[0] for array in flat])
    parts = iter(np.split(to_numpy(xp.concat(flat)), ends[:-1]))
    return [
        next(parts).reshape(tuple(array.shape))
        if array_api_compat.is_torch_array(array)
        else np.asarray(array)
        for array in arrays
    ]


def torch_device(thing: object) -> str | None:
    """Name of the device of a PyTorch tensor; None for anything else, PyTorch present or not."""
    return str(thing.device) if array_api_compat.is_torch_array(thing) else None  # type: ignore[attr-defined]


def row_maxima(P: Array) -> Array:
    """The largest entry of every row of ``P`` (n_rows, n_columns), (n_rows, 1)."""
    xp = array_namespace(P)
    if is_numpy(xp):
        # NumPy begins anew in every row; across columns, which are few, it takes many rows at once.
        return np.ascontiguousarray(P.T).max(axis=0)[:, None]
    return xp.max(P, axis=1, keepdims=True)


def row_selector(mask: Array) -> Array:
    """The fastest index to read and write the rows of ``mask`` (n,): their positions, if possible.

    On a GPU a mask is counted at every use, for which the host must wait. The array-API standard
    has no assignment to positions, so that libraries with nothing beyond it keep the mask.
    """
    xp = array_namespace(mask)
    return xp.nonzero(mask)[0] if is_numpy(xp) or is_torch(xp) else mask
