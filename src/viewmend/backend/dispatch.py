"""One table: which implementation of a kernel serves which array library.

The agnostic version serves every library that has no entry, and is what the others are tested
against. Docstrings are those of `viewmend.backend.agnostic`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
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

__all__ = [
    "aim_rows",
    "ascend",
    "best_response_rows",
    "column_sums",
    "cross_products",
    "gram",
    "imputed_rows",
    "inners",
    "leading_eigenvectors",
    "multiply",
    "nearest_anchor_weights",
    "polar_factors",
    "project_positive_rows",
    "project_ragged_rows",
    "project_simplex_rows",
    "shifted",
    "shrink_fourier",
    "shrink_slices",
    "solve_spd",
    "sparse_cross_products",
    "split_parts",
    "squared_distances",
    "squared_gap",
]


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


def project_simplex_rows(B: Array) -> Array:
    return _kernel("project_simplex_rows", B)(B)


def project_positive_rows(B: Array, previous: Array) -> Array:
    return _kernel("project_positive_rows", B, previous)(B, previous)


def project_ragged_rows(data: Array, starts: Array) -> Array:
    return _kernel("project_ragged_rows", data)(data, starts)


def squared_distances(X: Array, A: Array) -> Array:
    return _kernel("squared_distances", X, A)(X, A)


def nearest_anchor_weights(E: Array, k: int) -> Array:
    return _kernel("nearest_anchor_weights", E)(E, k)


def inners(pairs: Sequence[tuple[Array, Array]]) -> Array:
    return _kernel("inners", pairs[0][0])(pairs)


def aim_rows(G: Array, W: Array, rows: Array, pull: Array, weight: float, eta: float) -> Array:
    return _kernel("aim_rows", G, W)(G, W, rows, pull, weight, eta)


def imputed_rows(G: Array, W: Array, rows: Array, pull: Array, weight: float, eta: float) -> Array:
    return _kernel("imputed_rows", G, W)(G, W, rows, pull, weight, eta)


def solve_spd(A: Array, B: Array) -> Array:
    return _kernel("solve_spd", A, B)(A, B)


def polar_factors(C: Array) -> Array:
    return _kernel("polar_factors", C)(C)


def multiply(A: Array, B: Array, out: Array = None) -> Array:
    return _kernel("multiply", A, B)(A, B, out=out)


def column_sums(A: Array) -> Array:
    return _kernel("column_sums", A)(A)


def cross_products(A: Array, B: Array) -> Array:
    return _kernel("cross_products", A, B)(A, B)


def sparse_cross_products(A: Array, B: Array) -> Array:
    return _kernel("sparse_cross_products", A, B)(A, B)


def leading_eigenvectors(A: Array, size: int) -> tuple[Array, Array]:
    return _kernel("leading_eigenvectors", A)(A, size)  # type: ignore[no-any-return]


def split_parts(
    X: Array, parts: Sequence[Array], starts: Sequence[np.ndarray], balanced: bool
) -> list[Array]:
    return _kernel("split_parts", X)(X, parts, starts, balanced)  # type: ignore[no-any-return]


def gram(A: Array, weights: Array) -> Array:
    return _kernel("gram", A, weights)(A, weights)


def shifted(A: Array, B: Array, scale: float, out: Array = None) -> Array:
    return _kernel("shifted", A, B)(A, B, scale, out=out)


def best_response_rows(
    A: Array, H: Array, weights: np.ndarray, scale: float
) -> tuple[Array, np.ndarray, np.ndarray, np.ndarray]:
    return _kernel("best_response_rows", A, H)(A, H, weights, scale)  # type: ignore[no-any-return]


def ascend(W: Array, Z: Array, G: Array, eta: float, out: Array = None) -> tuple[Array, Array]:
    return _kernel("ascend", W, Z, G)(W, Z, G, eta, out=out)  # type: ignore[no-any-return]


def squared_gap(A: Array, B: Array) -> Array:
    return _kernel("squared_gap", A, B)(A, B)


def shrink_slices(Y_hat: Array, tau: Any) -> tuple[Array, Array]:
    return _kernel("shrink_slices", Y_hat)(Y_hat, tau)  # type: ignore[no-any-return]


def shrink_fourier(Y: Array, tau: Any, out: Array = None) -> tuple[Array, Array]:
    return _kernel("shrink_fourier", Y)(Y, tau, out=out)  # type: ignore[no-any-return]
