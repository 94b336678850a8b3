"""PyTorch: how to find its devices, and versions of the kernels that suit a GPU.

A GPU is fast at passes over whole arrays and at matrix products, slow at sorting and at singular
value decompositions, and idle while the host waits for a number. Every kernel takes PyTorch's
namespace ``xp`` as its last keyword, so that PyTorch, an extra, is imported by its users alone.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np

from viewmend.backend import agnostic
from viewmend.backend.namespace import Array, to_numpy, torch_device
from viewmend.backend.polar import N_COURSES, SMALLEST_SHARE, quintics
from viewmend.backend.threads import parallel_map, row_blocks
from viewmend.extras import how_to_install

__all__ = [
    "ascend",
    "best_response_rows",
    "copied_through",
    "cuda_is_there",
    "gpu_memory",
    "import_torch",
    "imputed_rows",
    "is_out_of_memory",
    "mover_to",
    "multiply",
    "nearest_anchor_weights",
    "polar_factors",
    "project_positive_rows",
    "project_simplex_rows",
    "shifted",
    "shrink_fourier",
    "shrink_slices",
    "solve_spd",
    "squared_gap",
    "to_host",
    "triton_kernels",
]

# Entries of the page-locked memory that large arrays come through.
STAGE = 1 << 22

# Steps of the simplex threshold between two checks whether all rows are done, each of which makes
# the host wait for the GPU.
STEPS_UNASKED = 4

# Columns that one small matrix product sums over: a product of few rows and very many columns
# would keep most of the GPU idle.
PIECE = 256


def import_torch() -> Any:
    """The module ``torch``; without it, an `ImportError` that says how to install it."""
    try:
        return importlib.import_module("torch")
    except ModuleNotFoundError as error:
        msg = (
            f"PyTorch is needed here and is not installed; {how_to_install('torch')}, or set "
            f"device=None for NumPy where that is a choice"
        )
        raise ImportError(msg) from error


def cuda_is_there() -> bool:
    """Whether PyTorch finds a GPU; without PyTorch there is none."""
    try:
        return bool(import_torch().cuda.is_available())
    except ImportError:
        return False


def gpu_memory(device: str) -> int | None:
    """Bytes of a GPU that are free, or kept by PyTorch for what comes; None for other devices."""
    if not device.startswith("cuda"):
        return None
    cuda = import_torch().cuda
    free, _ = cuda.mem_get_info(device)
    return int(free + cuda.memory_reserved(device) - cuda.memory_allocated(device))


def is_out_of_memory(error: Exception) -> bool:
    """Whether PyTorch raised it because the memory of a GPU is full."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(error, torch.cuda.OutOfMemoryError)


def mover_to(device: str | None) -> Callable[[np.ndarray], Array]:
    """A function that copies NumPy arrays to a device of PyTorch; None leaves them as they are."""
    if device is None:
        return lambda array: array
    torch = import_torch()
    # Contiguous first: PyTorch takes no negative strides.
    return lambda array: torch.tensor(np.ascontiguousarray(array), device=device)


def to_host(array: Array) -> np.ndarray:
    """As `viewmend.backend.namespace.to_numpy`; large arrays of a GPU several times faster.

    They come through page-locked memory, which the GPU writes to directly, and from there on all
    threads: PyTorch by itself fills new memory page by page on one.
    """
    if not (torch_device(array) or "").startswith("cuda") or array.numel() <= STAGE:
        return to_numpy(array)
    stage = import_torch().empty(STAGE, dtype=array.dtype, pin_memory=True)
    return copied_through(stage, array.detach())


def copied_through(stage: Array, tensor: Array) -> np.ndarray:
    """A tensor as an array on the host, copied to the ``stage`` (n_entries,) there part by part."""
    flat, staged = tensor.reshape(-1), stage.numpy()
    copy = np.empty(flat.shape[0], dtype=staged.dtype)
    for part in row_blocks(len(copy), 1, len(staged)):
        target = copy[part]
        stage[: len(target)].copy_(flat[part])
        parallel_map(partial(_copy_some, staged, target), row_blocks(len(target), 1))
    return copy.reshape(tuple(tensor.shape))


def _copy_some(source: np.ndarray, target: np.ndarray, entries: slice) -> None:
    target[entries] = source[entries]


@cache
def triton_kernels() -> Mapping[str, Callable[..., Any]]:
    """Kernels for CUDA devices, see `viewmend.backend.triton_gpu`; none where Triton is not."""
    try:
        module = importlib.import_module("viewmend.backend.triton_gpu")
    except ImportError:
        return {}
    return dict(module.KERNELS)


def project_simplex_rows(B: Array, *, xp: Any) -> Array:
    """See `viewmend.backend.agnostic.project_simplex_rows`; without a sort."""
    B = B - xp.max(B, axis=1, keepdims=True)
    return xp.clamp(B - _thresholds(B, xp), min=0)


def project_positive_rows(B: Array, previous: Array, *, xp: Any) -> Array:
    """See `viewmend.backend.agnostic.project_positive_rows`."""
    positive = B > 0
    some = xp.any(positive, axis=1, keepdims=True)
    # Rows without a positive entry are not projected, but must not become NaN on the way.
    on_face = xp.where(positive | ~some, B, -xp.inf * xp.ones_like(B))
    return xp.where(some, project_simplex_rows(on_face, xp=xp), previous)


def _thresholds(B: Array, xp: Any) -> Array:
    """Michelot's iteration on all rows at once; the largest entry of every row is 0.

    The threshold rises to the mean excess of the entries above it, from -1, which no threshold
    of the simplex falls below. A row that is done stays as it is, so that all may run on.
    """
    tau = -xp.ones_like(B[:, :1])
    active = xp.zeros_like(tau, dtype=xp.int64)
    while True:
        for _ in range(STEPS_UNASKED):
            before, (tau, active) = active, _raised(B, tau, xp)
        if bool(xp.all(before == active)):
            return tau


def _raised(B: Array, tau: Array, xp: Any) -> tuple[Array, Array]:
    """Thresholds after one step, and how many entries they come from."""
    above = tau < B
    active = xp.sum(above, axis=1, keepdims=True)
    total = xp.sum(xp.where(above, B, xp.zeros_like(tau)), axis=1, keepdims=True)
    return xp.maximum(tau, (total - 1) / active), active


def imputed_rows(
    G: Array, W: Array, rows: Array, pull: Array, weight: float, eta: float, *, xp: Any
) -> Array:
    """See `viewmend.backend.agnostic.imputed_rows`."""
    return project_simplex_rows(agnostic.aim_rows(G, W, rows, pull, weight, eta, xp=xp), xp=xp)


def nearest_anchor_weights(E: Array, k: int, *, xp: Any) -> Array:
    """See `viewmend.backend.agnostic.nearest_anchor_weights`; sorts the nearest alone."""
    return agnostic.weights_within(xp.topk(E, k + 1, dim=1, largest=False).values[:, k:], E, xp)


def multiply(A: Array, B: Array, out: Array = None, *, xp: Any) -> Array:
    """See `viewmend.backend.agnostic.multiply`."""
    return xp.matmul(A, B, out=out)


def solve_spd(A: Array, B: Array, *, xp: Any) -> Array:
    """See `viewmend.backend.agnostic.solve_spd`; by a Cholesky factor.

    To check that there is one would make the host wait; where there is none, the result is NaN.
    """
    factor, failed = xp.linalg.cholesky_ex(A)
    return xp.cholesky_solve(B, xp.where(failed == 0, factor, xp.nan))


def polar_factors(C: Array, *, xp: Any) -> Array:
    """See `viewmend.backend.agnostic.polar_factors`; by matrix products alone, in float64.

    The steps are known beforehand, so that the host waits for the GPU only at the end of a course.
    A course also raises singular values that are too small for it, so that a second one may do.
    A matrix that is nearly singular gets the factor of its singular value decomposition.
    """
    X = xp.astype(C, xp.float64)
    # The Frobenius norm is an upper bound of the largest singular value, and cheap.
    norms = xp.linalg.matrix_norm(X, keepdims=True)
    X = X / xp.clamp(norms, min=np.finfo(np.float64).tiny)
    for _ in range(N_COURSES):
        for a, b, c in quintics(SMALLEST_SHARE, np.finfo(np.float64).eps):
            gram = X.mT @ X
            X = xp.baddbmm(X, X, xp.baddbmm(gram, gram, gram, beta=b, alpha=c), beta=a)
        gap = X.mT @ X - xp.eye(X.shape[-1], dtype=X.dtype, device=X.device)
        if bool(xp.max(xp.abs(gap)) < 1e-8):
            return xp.astype(X, C.dtype)
    U, _, Vh = xp.linalg.svd(xp.astype(C, xp.float64), full_matrices=False)
    return xp.astype(U @ Vh, C.dtype)


def best_response_rows(
    A: Array, H: Array, weights: np.ndarray, scale: float, *, xp: Any
) -> tuple[Array, np.ndarray, np.ndarray, np.ndarray]:
    """See `viewmend.backend.agnostic.best_response_rows`; all sums in one transfer to the host."""
    n_views = A.shape[0]
    aim = xp.tensordot(xp.asarray(weights, dtype=A.dtype, device=A.device), A, axes=1) - H
    P = project_simplex_rows(scale * aim, xp=xp)
    # (n, V, m): for every row a small matrix of its views.
    A_i = xp.permute_dims(A, (1, 0, 2))
    sums = [
        xp.sum(A_i @ P[:, :, None], axis=0, dtype=xp.float64)[:, 0],
        xp.stack([xp.sum(P * other, dtype=xp.float64) for other in (P, H)]),
        xp.reshape(xp.sum(_row_spreads(A_i, P > 0, xp), axis=0, dtype=xp.float64), (-1,)),
    ]
    numbers = to_numpy(xp.concat(sums))
    agreements, penalties, spread = np.split(numbers, [n_views, n_views + 2])
    return P, agreements, penalties, spread.reshape(n_views, n_views)


def _row_spreads(A_i: Array, support: Array, xp: Any) -> Array:
    """Scatter matrices (n, V, V) of the views (n, V, m) over the support (n, m) of each row."""
    inside = xp.astype(support, A_i.dtype)[:, None, :]
    # A row so large that subtracting one is lost to rounding has no support.
    sizes = xp.clip(xp.sum(inside, axis=2, keepdims=True), 1, None)
    centred = (A_i - xp.sum(A_i * inside, axis=2, keepdims=True) / sizes) * inside
    return centred @ xp.matrix_transpose(centred)


def ascend(
    W: Array, Z: Array, G: Array, eta: float, out: Array = None, *, xp: Any
) -> tuple[Array, Array]:
    """See `viewmend.backend.agnostic.ascend`."""
    gap = Z - G
    sums = xp.stack([xp.sum(other * gap, dtype=xp.float64) for other in (W, gap)])
    return xp.add(W, gap, alpha=eta, out=out), sums


def squared_gap(A: Array, B: Array, *, xp: Any) -> Array:
    """See `viewmend.backend.agnostic.squared_gap`; with one array of work instead of two."""
    return xp.linalg.vector_norm(A - B, dtype=xp.float64) ** 2


def shifted(A: Array, B: Array, scale: float, out: Array = None, *, xp: Any) -> Array:
    """See `viewmend.backend.agnostic.shifted`."""
    return xp.add(A, B, alpha=scale, out=out)


def shrink_slices(Y_hat: Array, tau: Any, *, xp: Any) -> tuple[Array, Array]:
    """See `viewmend.backend.agnostic.shrink_slices`; two views need no eigenvectors."""
    gram = _slice_grams(Y_hat, xp)
    tau = xp.asarray(tau, dtype=xp.float64, device=gram.device)[..., None]
    filtered = _filter_of_two if gram.shape[1] == 2 else _filter_of_many
    filters, norms = filtered(gram, tau, xp)
    G_k = xp.matrix_transpose(xp.astype(filters, Y_hat.dtype)) @ xp.permute_dims(Y_hat, (1, 0, 2))
    return xp.permute_dims(G_k, (1, 0, 2)), norms


def shrink_fourier(Y: Array, tau: Any, out: Array = None, *, xp: Any) -> tuple[Array, Array]:
    """See `viewmend.backend.agnostic.shrink_fourier`."""
    return agnostic.shrink_fourier(Y, tau, out, xp=xp, shrink=shrink_slices)


def _slice_grams(Y_hat: Array, xp: Any) -> Array:
    """``Y_u^H Y_v`` of the views of every slice, (n_slices, V, V), in double precision."""
    n_views, n_slices, size = Y_hat.shape
    double = xp.complex128 if xp.isdtype(Y_hat.dtype, "complex floating") else xp.float64
    if n_slices > 1:
        return xp.astype(_grams(Y_hat, xp), double)
    # One slice alone, as of the directions outside the waves: its columns are cut into pieces.
    whole = size // PIECE * PIECE
    pieces = xp.reshape(Y_hat[:, 0, :whole], (n_views, whole // PIECE, PIECE))
    return xp.sum(_grams(pieces, xp), axis=0, dtype=double) + _grams(Y_hat[:, :, whole:], xp)


def _grams(Y_hat: Array, xp: Any) -> Array:
    Y_k = xp.permute_dims(Y_hat, (1, 0, 2))
    return xp.conj(Y_k) @ xp.matrix_transpose(Y_k)


def _filter_of_two(gram: Array, tau: Array, xp: Any) -> tuple[Array, Array]:
    """The same as `_filter_of_many` for 2 x 2 matrices, without eigenvectors.

    A function of a 2 x 2 matrix is the linear one that agrees with it at both eigenvalues.
    """
    first, second = xp.real(gram[:, 0, 0]), xp.real(gram[:, 1, 1])
    middle = (first + second) / 2
    radius = xp.hypot((first - second) / 2, xp.abs(gram[:, 0, 1]))
    squares = xp.stack([middle - radius, middle + radius], axis=1)
    shrink, norms = _shrinkage(squares, tau, xp)
    level = xp.mean(shrink, axis=1)
    # Where both eigenvalues agree, the matrix is a multiple of the identity and needs no slope.
    apart = radius > 0
    slope = (shrink[:, 1] - level) / xp.where(apart, radius, xp.ones_like(radius))
    identity = xp.eye(2, dtype=gram.dtype, device=gram.device)
    off_middle = gram - middle[:, None, None] * identity
    return level[:, None, None] * identity + slope[:, None, None] * off_middle, norms


def _filter_of_many(gram: Array, tau: Array, xp: Any) -> tuple[Array, Array]:
    """``R diag((1 - tau/sigma)_+) R^H`` of matrices ``R diag(sigma^2) R^H`` (n_slices, V, V).

    Returned with the nuclear norms (n_slices,), sums of ``(sigma - tau)_+``.
    """
    squares, R = xp.linalg.eigh(gram)
    shrink, norms = _shrinkage(squares, tau, xp)
    return (R * shrink[:, None, :]) @ xp.conj(xp.matrix_transpose(R)), norms


def _shrinkage(squares: Array, tau: Array, xp: Any) -> tuple[Array, Array]:
    """``(1 - tau/sigma)_+`` from ``sigma^2`` (n_slices, V), and the sums of ``(sigma - tau)_+``."""
    sigma = xp.sqrt(xp.clamp(squares, min=0))
    left = xp.clamp(sigma - tau, min=0)
    return left / xp.where(sigma > 0, sigma, xp.ones_like(sigma)), xp.sum(left, axis=1)
