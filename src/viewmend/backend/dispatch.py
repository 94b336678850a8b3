"""One table: which implementation of a kernel serves which array library.

The agnostic version serves every library that has no entry, and is what the others are tested
against. Every kernel is called as in `viewmend.backend.agnostic` but without ``xp``, which follows
from the arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

import numpy as np
import scipy.linalg

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


def _cholesky_solve(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return scipy.linalg.cho_solve(scipy.linalg.cho_factor(A, check_finite=False), B)


# A kernel without an entry runs in its agnostic version.
NUMPY_KERNELS: dict[str, Callable[..., Any]] = {
    "project_simplex_rows": numba_cpu.project_simplex_rows,
    "project_positive_rows": numba_cpu.project_positive_rows,
    "project_ragged_rows": numba_cpu.project_ragged_rows,
    "nearest_anchor_weights": numba_cpu.nearest_anchor_weights,
    "inners": numba_rounds.inners,
    "imputed_rows": numba_rounds.imputed_rows,
    "solve_spd": _cholesky_solve,
    "best_response_rows": numba_rounds.best_response_rows,
    "ascend": numba_rounds.ascend,
    "squared_gap": numba_rounds.squared_gap,
    "multiply": numpy_products.multiply,
    "column_sums": numpy_products.column_sums,
    "cross_products": numpy_products.cross_products,
    "gram": numpy_products.gram,
    "leading_eigenvectors": numpy_products.leading_eigenvectors,
    "sparse_cross_products": numpy_products.sparse_cross_products,
    "shifted": numpy_products.shifted,
    "polar_factors": numpy_products.polar_factors,
    "shrink_slices": numba_rounds.shrink_slices,
    "shrink_fourier": numba_fourier.shrink_fourier,
}

# For all devices of PyTorch; on CUDA, those of Triton come on top.
TORCH_KERNELS: dict[str, Callable[..., Any]] = {
    "project_simplex_rows": torch_gpu.project_simplex_rows,
    "project_positive_rows": torch_gpu.project_positive_rows,
    "nearest_anchor_weights": torch_gpu.nearest_anchor_weights,
    "imputed_rows": torch_gpu.imputed_rows,
    "multiply": torch_gpu.multiply,
    "solve_spd": torch_gpu.solve_spd,
    "polar_factors": torch_gpu.polar_factors,
    "best_response_rows": torch_gpu.best_response_rows,
    "ascend": torch_gpu.ascend,
    "squared_gap": torch_gpu.squared_gap,
    "shifted": torch_gpu.shifted,
    "shrink_slices": torch_gpu.shrink_slices,
    "shrink_fourier": torch_gpu.shrink_fourier,
    "split_parts": torch_parts.split_parts,
}


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
