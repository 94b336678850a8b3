"""Kernels for NVIDIA GPUs in Triton, each of which passes over its arrays once.

PyTorch alone writes every intermediate of these steps to memory; here a row stays in the registers
of one program. Triton comes with the CUDA builds of PyTorch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from viewmend.backend.namespace import Array, to_numpy
from viewmend.backend.triton_fourier import shrink_fourier

__all__ = ["KERNELS"]

# Entries per program of an entry-wise kernel.
PIECE = 4096


def imputed_rows(
    G: Array, W: Array, rows: Array, pull: Array, weight: float, eta: float, *, xp: Any
) -> Array:
    """See `viewmend.backend.agnostic.imputed_rows`."""
    pull = pull.contiguous()
    out = torch.empty_like(pull)
    n_columns = pull.shape[1]
    _impute[(rows.shape[0],)](
        G.contiguous(), W.contiguous(), rows, pull, *_halves(weight / eta), *_halves(-1 / eta),
        out, n_columns, BLOCK=_block(n_columns),
    )  # fmt: skip
    return out


def project_simplex_rows(B: Array, *, xp: Any) -> Array:
    """See `viewmend.backend.agnostic.project_simplex_rows`."""
    B = B.contiguous()
    out = torch.empty_like(B)
    if B.shape[0]:
        _project[(B.shape[0],)](B, out, B.shape[1], BLOCK=_block(B.shape[1]))
    return out


def best_response_rows(
    A: Array, H: Array, weights: np.ndarray, scale: float, *, xp: Any
) -> tuple[Array, np.ndarray, np.ndarray, np.ndarray]:
    """See `viewmend.backend.agnostic.best_response_rows`; all sums in one transfer to the host."""
    n_views, n_rows, n_columns = A.shape
    A, H = A.contiguous(), H.contiguous()
    P = torch.empty_like(H)
    # From pinned memory they reach the device while the host goes on.
    factors = torch.tensor(
        np.append(scale * weights, -scale).tolist(), dtype=H.dtype, pin_memory=True
    ).to(H.device, non_blocking=True)
    sums = torch.empty((n_rows, n_views + 2 + n_views**2), dtype=H.dtype, device=H.device)
    _best_response[(n_rows,)](A, H, factors, P, sums, n_columns, V=n_views, BLOCK=_block(n_columns))
    totals = to_numpy(torch.sum(sums, dim=0, dtype=torch.float64))
    agreements, penalties, spread = np.split(totals, [n_views, n_views + 2])
    return P, agreements, penalties, spread.reshape(n_views, n_views)


def ascend(
    W: Array, Z: Array, G: Array, eta: float, out: Array = None, *, xp: Any
) -> tuple[Array, Array]:
    """See `viewmend.backend.agnostic.ascend`."""
    W, Z, G = W.contiguous(), Z.contiguous(), G.contiguous()
    if out is None or not out.is_contiguous():
        out = torch.empty_like(W)
    n_programs = triton.cdiv(W.numel(), PIECE)
    sums = torch.empty((2, n_programs), dtype=torch.float64, device=W.device)
    _ascend[(n_programs,)](W, Z, G, *_halves(eta), out, sums, W.numel(), BLOCK=PIECE)
    return out, torch.sum(sums, dim=1)


def _halves(number: float) -> tuple[float, float]:
    """Two numbers whose sum is ``number``: Triton passes scalars in single precision."""
    first = float(np.float32(number))
    return first, number - first


def _block(n_columns: int) -> int:
    return max(16, triton.next_power_of_2(n_columns))


@triton.jit
def _whole(first, second, kind: tl.constexpr):  # type: ignore[no-untyped-def]
    """See `_halves`."""
    return tl.cast(first, kind) + tl.cast(second, kind)


@triton.jit
def _threshold(b, inside):  # type: ignore[no-untyped-def]
    """Newton's method for the ``tau`` that the entries exceed by 1 in all.

    ``tau`` rises and entries drop out; it is final when none did in the last step.
    """
    count = tl.sum(tl.where(inside, 1.0, 0.0))
    tau = (tl.sum(tl.where(inside, b, 0.0)) - 1.0) / count
    before = count + 1.0
    while count < before:
        before = count
        above = inside & (b > tau)
        count = tl.sum(tl.where(above, 1.0, 0.0))
        tau += (tl.sum(tl.where(above, b - tau, 0.0)) - 1.0) / count
    return tau


@triton.jit
def _nearest(b, inside):  # type: ignore[no-untyped-def]
    """The nearest row on the simplex."""
    # Shifting a row changes nothing, and keeps large numbers from cancelling.
    b -= tl.max(tl.where(inside, b, float("-inf")))
    return tl.maximum(b - _threshold(b, inside), 0.0)


@triton.jit
def _impute(  # type: ignore[no-untyped-def]
    G, W, rows, pull, along, along_2, against, against_2, out, n_columns, BLOCK: tl.constexpr
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, BLOCK)
    inside = j < n_columns
    source = tl.load(rows + i) * n_columns + j
    target = i * n_columns + j
    kind = out.dtype.element_ty
    aim = _whole(along, along_2, kind) * tl.load(pull + target, mask=inside, other=0.0)
    aim += _whole(against, against_2, kind) * tl.load(W + source, mask=inside, other=0.0)
    aim += tl.load(G + source, mask=inside, other=0.0)
    tl.store(out + target, _nearest(aim, inside), mask=inside)


@triton.jit
def _project(B, out, n_columns, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0).to(tl.int64) * n_columns
    j = tl.arange(0, BLOCK)
    inside = j < n_columns
    b = tl.load(B + row + j, mask=inside, other=0.0)
    tl.store(out + row + j, _nearest(b, inside), mask=inside)


@triton.jit
def _best_response(A, H, factors, P, sums, n_columns, V: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0).to(tl.int64)
    stride = tl.num_programs(0).to(tl.int64) * n_columns
    j = tl.arange(0, BLOCK)
    inside = j < n_columns
    # Views are stored one after the other: stride entries apart, for the same row and columns.
    entry = i * n_columns + j
    H_i = tl.load(H + entry, mask=inside, other=0.0)
    aim = tl.load(factors + V) * H_i
    for v in tl.static_range(V):
        aim += tl.load(factors + v) * tl.load(A + v * stride + entry, mask=inside, other=0.0)
    # Padding beyond the columns is not projected, and must not count in the sums.
    p = tl.where(inside, tl.maximum(aim - _threshold(aim, inside), 0.0), 0.0)
    tl.store(P + entry, p, mask=inside)
    support = p > 0
    size = tl.sum(tl.where(support, 1.0, 0.0))
    target = sums + i * (V + 2 + V * V)
    tl.store(target + V, tl.sum(p * p))
    tl.store(target + V + 1, tl.sum(p * H_i))
    for v in tl.static_range(V):
        a = tl.load(A + v * stride + entry, mask=inside, other=0.0)
        tl.store(target + v, tl.sum(p * a))
        # Views are read again instead of being held in registers. It is enough to centre one of
        # the two factors of the scatter matrix.
        centred = tl.where(support, a - tl.sum(tl.where(support, a, 0.0)) / size, 0.0)
        for u in tl.static_range(V):
            b = tl.load(A + u * stride + entry, mask=inside, other=0.0)
            tl.store(target + V + 2 + v * V + u, tl.sum(centred * b))


@triton.jit
def _ascend(W, Z, G, eta, eta_2, out, sums, size, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    program = tl.program_id(0)
    entry = program.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = entry < size
    w = tl.load(W + entry, mask=inside, other=0.0)
    gap = tl.load(Z + entry, mask=inside, other=0.0) - tl.load(G + entry, mask=inside, other=0.0)
    eta = _whole(eta, eta_2, out.dtype.element_ty)
    tl.store(out + entry, w + eta * gap, mask=inside)
    # Partial sums per program, added up later in a fixed order: atomics would have none.
    tl.store(sums + program, tl.sum(w * gap).to(tl.float64))
    tl.store(sums + tl.num_programs(0) + program, tl.sum(gap * gap).to(tl.float64))


KERNELS = {
    "best_response_rows": best_response_rows,
    "ascend": ascend,
    "imputed_rows": imputed_rows,
    "project_simplex_rows": project_simplex_rows,
    "shrink_fourier": shrink_fourier,
}
