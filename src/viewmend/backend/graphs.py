"""Which kernels of graphs serve which array library.

The modules have functions of the same names, which take and give arrays of their library.
"""

from __future__ import annotations

from types import ModuleType

from viewmend.backend import numba_graphs, torch_graphs
from viewmend.backend.namespace import Array, array_namespace, is_numpy, is_torch

__all__ = ["kernels_for"]


def kernels_for(*arrays: Array) -> ModuleType:
    """The module of kernels for the library that the arrays belong to."""
    xp = array_namespace(*arrays)
    if is_numpy(xp):
        return numba_graphs
    if is_torch(xp):
        return torch_graphs
    msg = f"graphs are of NumPy or PyTorch arrays, got those of {xp.__name__}"
    raise TypeError(msg)
