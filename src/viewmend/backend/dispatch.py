"""Which implementation of a kernel serves which array library.

A version for a library is a public function with the name of the kernel. The agnostic version
serves every library that has no other, and is what the others are tested against. Every kernel is
called as in `viewmend.backend.agnostic` but without ``xp``, which follows from the arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from types import ModuleType
from typing import Any

from viewmend.backend import (
    agnostic,
    numba_cpu,
    numba_fourier,
    numba_rounds,
    numpy_products,
    torch_gpu,
    torch_parts,
)
from viewmend.backend.namespace import Array, array_namespace, is_numpy, is_torch

__all__ = agnostic.__all__


def _versions(*modules: ModuleType) -> dict[str, Callable[..., Any]]:
    """Public functions of some modules that are named as a kernel."""
    names = [(module, name) for module in modules for name in module.__all__]
    return {name: getattr(module, name) for module, name in names if name in agnostic.__all__}


NUMPY_KERNELS = _versions(numba_cpu, numba_rounds, numba_fourier, numpy_products)
# For all devices of PyTorch; on CUDA, those of Triton come on top.
TORCH_KERNELS = _versions(torch_gpu, torch_parts)


def _kernel(name: str, *arrays: Array) -> Callable[..., Any]:
    xp = array_namespace(*arrays)
    if is_numpy(xp) and name in NUMPY_KERNELS:
        return NUMPY_KERNELS[name]
    kernels = _torch_kernels(arrays[0]) if is_torch(xp) else {}
    return partial(kernels.get(name, getattr(agnostic, name)), xp=xp)


def _torch_kernels(array: Array) -> dict[str, Callable[..., Any]]:
    return {**TORCH_KERNELS, **torch_gpu.triton_kernels()} if array.is_cuda else TORCH_KERNELS


def _dispatched(reference: Callable[..., Any], n_arrays: int = 1) -> Callable[..., Any]:
    """A kernel for the library that its first ``n_arrays`` arguments belong to."""

    @wraps(reference, assigned=("__name__", "__qualname__", "__doc__"))
    def kernel(*arguments: Any, **options: Any) -> Any:
        return _kernel(reference.__name__, *arguments[:n_arrays])(*arguments, **options)

    return kernel


def inners(pairs: Sequence[tuple[Array, Array]]) -> Array:
    """See `viewmend.backend.agnostic.inners`."""
    return _kernel("inners", pairs[0][0])(pairs)


project_simplex_rows = _dispatched(agnostic.project_simplex_rows)
project_positive_rows = _dispatched(agnostic.project_positive_rows, 2)
project_ragged_rows = _dispatched(agnostic.project_ragged_rows)
squared_distances = _dispatched(agnostic.squared_distances, 2)
nearest_anchor_weights = _dispatched(agnostic.nearest_anchor_weights)
aim_rows = _dispatched(agnostic.aim_rows, 2)
imputed_rows = _dispatched(agnostic.imputed_rows, 2)
solve_spd = _dispatched(agnostic.solve_spd, 2)
polar_factors = _dispatched(agnostic.polar_factors)
multiply = _dispatched(agnostic.multiply, 2)
column_sums = _dispatched(agnostic.column_sums)
cross_products = _dispatched(agnostic.cross_products, 2)
sparse_cross_products = _dispatched(agnostic.sparse_cross_products, 2)
leading_eigenvectors = _dispatched(agnostic.leading_eigenvectors)
split_parts = _dispatched(agnostic.split_parts)
gram = _dispatched(agnostic.gram, 2)
shifted = _dispatched(agnostic.shifted, 2)
best_response_rows = _dispatched(agnostic.best_response_rows, 2)
ascend = _dispatched(agnostic.ascend, 3)
squared_gap = _dispatched(agnostic.squared_gap, 2)
shrink_slices = _dispatched(agnostic.shrink_slices)
shrink_fourier = _dispatched(agnostic.shrink_fourier)
