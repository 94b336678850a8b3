"""One table: which implementation of a kernel serves which array library.

The agnostic version serves every library that has no entry, and is what the others are tested
against. Docstrings are those of `viewmend.backend.agnostic`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg

from viewmend.backend import agnostic, numba_cpu, numba_rounds, torch_gpu
from viewmend.backend.namespace import Array, array_namespace, is_numpy, is_torch

__all__ = [
    "answer_rows",
    "gap_products",
    "inner",
    "nearest_anchor_weights",
    "polar_factor",
    "project_positive_rows",
    "project_ragged_rows",
    "project_simplex_rows",
    "shrink_fourier",
    "shrink_slices",
    "solve_spd",
    "squared_distances",
]


def _cholesky_solve(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return scipy.linalg.cho_solve(scipy.linalg.cho_factor(A, check_finite=False), B)


def _inner(A: np.ndarray, B: np.ndarray) -> float:
    # Not BLAS: its dot product sums in an order that depends on the number of threads.
    return float(np.einsum("ij,ij->", A, B))


NUMPY_KERNELS: dict[str, Callable[..., Any]] = {
    "project_simplex_rows": numba_cpu.project_simplex_rows,
    "project_positive_rows": numba_cpu.project_positive_rows,
    "project_ragged_rows": numba_cpu.project_ragged_rows,
    "nearest_anchor_weights": numba_cpu.nearest_anchor_weights,
    "inner": _inner,
    "solve_spd": _cholesky_solve,
    "answer_rows": numba_rounds.answer_rows,
    "gap_products": numba_rounds.gap_products,
    "shrink_slices": numba_rounds.shrink_slices,
    "shrink_fourier": numba_rounds.shrink_fourier,
}

TORCH_KERNELS: dict[str, Callable[..., Any]] = {
    "project_simplex_rows": torch_gpu.project_simplex_rows,
    "project_positive_rows": torch_gpu.project_positive_rows,
    "nearest_anchor_weights": torch_gpu.nearest_anchor_weights,
    "inner": torch_gpu.inner,
    "solve_spd": torch_gpu.solve_spd,
    "polar_factor": torch_gpu.polar_factor,
    "answer_rows": torch_gpu.answer_rows,
    "gap_products": torch_gpu.gap_products,
    "shrink_slices": torch_gpu.shrink_slices,
    "shrink_fourier": torch_gpu.shrink_fourier,
}


def _kernel(name: str, *arrays: Array) -> Callable[..., Any]:
    xp = array_namespace(*arrays)
    if is_numpy(xp) and name in NUMPY_KERNELS:
        return NUMPY_KERNELS[name]
    kernels = TORCH_KERNELS if is_torch(xp) else {}
    return partial(kernels.get(name, getattr(agnostic, name)), xp=xp)


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


def inner(A: Array, B: Array) -> float:
    return float(_kernel("inner", A, B)(A, B))


def solve_spd(A: Array, B: Array) -> Array:
    return _kernel("solve_spd", A, B)(A, B)


def polar_factor(A: Array) -> Array:
    return _kernel("polar_factor", A)(A)


def answer_rows(
    A: Array, H: Array, weights: np.ndarray, scale: float
) -> tuple[Array, np.ndarray, np.ndarray, np.ndarray]:
    return _kernel("answer_rows", A, H)(A, H, weights, scale)  # type: ignore[no-any-return]


def gap_products(A: Array, B: Array, W: Array) -> tuple[float, float]:
    return _kernel("gap_products", A, B, W)(A, B, W)  # type: ignore[no-any-return]


def shrink_slices(Y_hat: Array, tau: Any) -> tuple[Array, Array]:
    return _kernel("shrink_slices", Y_hat)(Y_hat, tau)  # type: ignore[no-any-return]


def shrink_fourier(Y: Array, tau: Any) -> tuple[Array, Array]:
    return _kernel("shrink_fourier", Y)(Y, tau)  # type: ignore[no-any-return]
