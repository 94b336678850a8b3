"""Which array library an array belongs to; the sole importer of array-api-compat."""

from __future__ import annotations

from typing import Any

import array_api_compat
import numpy as np

__all__ = ["Array", "array_namespace", "is_numpy", "to_numpy"]

# Arrays of any library that follows the array-API standard.
Array = Any


def array_namespace(*arrays: Array) -> Any:
    """Namespace (NumPy, PyTorch, ...) that all the arrays share; mixed inputs are an error."""
    return array_api_compat.array_namespace(*arrays)


def is_numpy(xp: Any) -> bool:
    """Whether a namespace is NumPy, for which the specialised kernels are written."""
    return bool(array_api_compat.is_numpy_namespace(xp))


def to_numpy(array: Array) -> np.ndarray:
    """The same numbers as a NumPy array on the host."""
    if array_api_compat.is_torch_array(array):
        array = array.detach().cpu()
    return np.asarray(array)
