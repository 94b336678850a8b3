"""What searches of nearest rows in PyTorch share: candidates measured by differences."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType

from viewmend.backend.namespace import Array
from viewmend.backend.torch_gpu import import_torch

__all__ = [
    "BLOCK_ENTRIES",
    "TILE",
    "Nearest",
    "blocks",
    "from_keys",
    "keys_of",
    "largest",
    "measured",
    "middle",
    "no_neighbours",
    "products_in",
    "rounded_up",
    "triton_nearest",
]

# Indices (n_queries, k) of int32 and squared distances (n_queries, k) of float32, nearest first;
# rows at equal distance by their number.
Nearest = tuple[Array, Array]

# Entries of rows that are held side by side at once (256 MiB of them).
BLOCK_ENTRIES = 2**26
# Scores of which the best is found first: `topk` is slow, a maximum costs one reading.
TILE = 64
# Rows, about, that the middle of all is read off.
MIDDLE_ROWS = 1024

# The precision of products is a setting of the process.
_SETTING = threading.RLock()


@contextmanager
def products_in(precision: str) -> Iterator[None]:
    """Products of float32 in "ieee" or in "tf32", which keeps ten bits, whatever was set before."""
    matmul = import_torch().backends.cuda.matmul
    # The older name is an error in newer versions once the other has been used.
    name = "fp32_precision" if hasattr(matmul, "fp32_precision") else "allow_tf32"
    with _SETTING:
        before = getattr(matmul, name)
        setattr(matmul, name, precision if name == "fp32_precision" else precision == "tf32")
        try:
            yield
        finally:
            setattr(matmul, name, before)


def no_neighbours(Q: Array, k: int) -> Nearest:
    """Room for ``k`` neighbours of each query; none if ``k`` is not positive."""
    torch, shape = import_torch(), (Q.shape[0], max(k, 0))
    indices = torch.empty(shape, dtype=torch.int32, device=Q.device)
    return indices, torch.empty(shape, dtype=torch.float32, device=Q.device)


def measured(Q: Array, X: Array, candidates: Array, k: int) -> Nearest:
    """The ``k`` nearest of the ``candidates`` (n_queries, n_candidates), which are rows of ``X``.

    Differences are of float32, and so are distances, which lose no more than a digit by sums.
    """
    indices, distances = no_neighbours(Q, k)
    n_entries = candidates.shape[1] * X.shape[1]
    for part in blocks(Q.shape[0], BLOCK_ENTRIES // n_entries):
        keys = keys_of(Q[part], X, candidates[part])
        indices[part], distances[part] = from_keys(import_torch().sort(keys, 1).values[:, :k])
    return indices, distances


def keys_of(Q: Array, X: Array, candidates: Array) -> Array:
    """Squared distance and row of each candidate as one number, (n_queries, n_candidates).

    Floats that are not negative sort as their bits do.
    """
    torch = import_torch()
    squared = _squared_distances(Q, X, candidates)
    return (squared.view(torch.int32).long() << 32) | candidates


def _squared_distances(Q: Array, X: Array, candidates: Array) -> Array:
    """``|q_i - x_j|^2`` (n_queries, n_candidates) of float32, by differences."""
    torch = import_torch()
    kernels = triton_nearest() if X.is_cuda and X.dtype == Q.dtype == torch.float32 else None
    if kernels is not None:
        return kernels.squared_distances(Q.contiguous(), X.contiguous(), candidates.contiguous())
    gaps = X[candidates] - Q[:, None]
    return torch.sum(gaps.square_(), 2, dtype=torch.float64).float()


def from_keys(keys: Array) -> Nearest:
    """Rows and squared distances, both of the shape of the keys; see `keys_of`."""
    torch = import_torch()
    return (keys & 0xFFFFFFFF).int(), (keys >> 32).int().view(torch.float32)


def largest(scores: Array, n_wanted: int) -> Array:
    """Columns (n_rows, n_wanted) of the largest scores of each row.

    The scores (n_rows, n_columns) are in whole tiles: `TILE` divides their number of columns.
    """
    torch, n_tiles = import_torch(), scores.shape[1] // TILE
    if n_tiles < 4 * n_wanted:
        return torch.topk(scores, n_wanted, 1, sorted=False).indices
    # Columns n_tiles apart make a tile: its maximum is then read as fast as memory allows. The best
    # scores are in as many tiles at most, which are those of largest maximum.
    tiled = scores.view(-1, TILE, n_tiles)
    tiles = torch.topk(torch.amax(tiled, 1), n_wanted, 1, sorted=False).indices
    inside = torch.take_along_dim(tiled, tiles[:, None, :], 2)
    best = torch.topk(inside.flatten(1), n_wanted, 1, sorted=False).indices
    return best // n_wanted * n_tiles + torch.take_along_dim(tiles, best % n_wanted, 1)


def middle(X: Array) -> Array:
    """Medians of the columns on evenly spaced rows: a mean would follow a row that is far away."""
    step = max(X.shape[0] // MIDDLE_ROWS, 1)
    return import_torch().median(X[::step], 0).values


def blocks(n_rows: int, size: int) -> Iterator[slice]:
    """Slices of at most ``size`` rows, and of at least one."""
    size = max(size, 1)
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def rounded_up(n: int, step: int) -> int:
    """The least multiple of ``step`` that is not below ``n``."""
    return -(-n // step) * step


@cache
def triton_nearest() -> ModuleType | None:
    """The module of kernels for CUDA devices; None where Triton is not."""
    try:
        return importlib.import_module("viewmend.backend.triton_nearest")
    except ImportError:
        return None
