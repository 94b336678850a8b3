"""Many small clusterings at once in PyTorch, for the anchors of a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from viewmend.backend.agnostic import SPLIT_ROUNDS
from viewmend.backend.namespace import Array, to_numpy

__all__ = ["split_parts"]


def split_parts(
    X: Array, parts: Sequence[Array], starts: Sequence[np.ndarray], balanced: bool, *, xp: Any
) -> list[Array]:
    """See `viewmend.backend.agnostic.split_parts`; all parts at once, padded to the longest."""
    sizes = [rows.shape[0] for rows in parts]
    rows = xp.nn.utils.rnn.pad_sequence(list(parts), batch_first=True)
    left = np.zeros(rows.shape, dtype=bool)
    for padded, start in zip(left, starts, strict=True):
        padded[: len(start)] = start
    counts = xp.asarray(sizes, device=X.device)[:, None]
    real = xp.arange(rows.shape[1], device=X.device) < counts
    X_p = X[rows]
    total = xp.bmm(xp.astype(real, X.dtype)[:, None, :], X_p)
    left = xp.asarray(left, device=X.device)
    # A split that has converged stays as it is: to check would cost a wait for the device.
    for _ in range(SPLIT_ROUNDS):
        # Padding is infinitely far from the left, and so never among the lower half.
        gap = xp.where(real, _distance_gaps(X_p, total, (left, counts), xp), xp.inf)
        left = _lower_halves(gap, counts // 2, xp) if balanced else _nearer(gap, counts, xp)
    # The left rows of every part to its front, its padding to its end, all in their order.
    position = xp.argsort(2 * (~real).int() + (~left).int(), axis=1, stable=True)
    rows = xp.take_along_dim(rows, position, 1)
    ends = zip(rows, to_numpy(xp.sum(left, axis=1)), sizes, strict=True)
    return [side for row, n_left, size in ends for side in (row[:n_left], row[n_left:size])]


def _distance_gaps(X_p: Array, total: Array, sides: tuple[Array, Array], xp: Any) -> Array:
    """``|x_i - c_1|^2 - |x_i - c_2|^2`` of every row of every part, (n_parts, n_rows)."""
    left, counts = sides
    n_left = xp.sum(left, axis=1)[:, None, None]
    sum_1 = xp.bmm(xp.astype(left, X_p.dtype)[:, None, :], X_p)
    centre_1, centre_2 = sum_1 / n_left, (total - sum_1) / (counts[:, :, None] - n_left)
    level = xp.sum(centre_1**2, axis=2) - xp.sum(centre_2**2, axis=2)
    return 2 * xp.bmm(X_p, (centre_2 - centre_1).mT)[:, :, 0] + level


def _lower_halves(gap: Array, sizes: Array, xp: Any) -> Array:
    """Of every part the ``sizes`` (n_parts, 1) rows of smallest gap; of equal ones the first."""
    cut = xp.take_along_dim(xp.sort(gap, axis=1), sizes - 1, 1)
    below, at = gap < cut, gap == cut
    left_over = sizes - xp.sum(below, axis=1, keepdims=True)
    return below | (at & (xp.cumsum(at.int(), 1) <= left_over))


def _nearer(gap: Array, counts: Array, xp: Any) -> Array:
    """Rows nearer to the first centre; halves of the parts of which this is all rows or none."""
    left = gap < 0
    n_left = xp.sum(left, axis=1, keepdims=True)
    parted = (n_left > 0) & (n_left < counts)
    return xp.where(parted, left, _lower_halves(gap, counts // 2, xp))
