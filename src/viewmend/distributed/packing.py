"""Graphs in little room: rows on the simplex are mostly zeros, and blocks wait on disk."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

__all__ = ["Packed", "pack", "packed_arrays", "unpack", "unpacked_arrays"]

# The matrix, dense or sparse, and the shape of the array it was made of.
Packed = tuple[np.ndarray | csr_array, tuple[int, ...]]


def pack(array: np.ndarray) -> Packed:
    """An array (..., n_columns) as a matrix, sparse where that is smaller."""
    matrix = array.reshape(-1, array.shape[-1])
    sparse = csr_array(matrix)
    smaller = sparse.data.nbytes + sparse.indices.nbytes < matrix.nbytes
    return (sparse if smaller else matrix), array.shape


def unpack(packed: Packed) -> np.ndarray:
    """The array again; not to be written to."""
    matrix, shape = packed
    dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    return dense.reshape(shape)


def packed_arrays(name: str, packed: Packed) -> dict[str, np.ndarray]:
    """Plain arrays for a file, under names that begin with ``name``."""
    matrix, shape = packed
    of_shape = {f"{name}.shape": np.array(shape)}
    if isinstance(matrix, np.ndarray):
        return of_shape | {f"{name}.dense": matrix}
    parts = {part: getattr(matrix, part) for part in ("data", "indices", "indptr")}
    return of_shape | {f"{name}.{part}": array for part, array in parts.items()}


def unpacked_arrays(name: str, arrays: dict[str, np.ndarray]) -> Packed:
    """What `packed_arrays` was given."""
    shape = tuple(int(size) for size in arrays[f"{name}.shape"])
    if f"{name}.dense" in arrays:
        return arrays[f"{name}.dense"], shape
    parts = tuple(arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    return csr_array(parts, shape=(int(np.prod(shape[:-1])), shape[-1])), shape
