"""Rows in float32, moved and scaled, in fewer columns where they have many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from viewmend.backend.threads import parallel_map
from viewmend.exceptions import InvalidViewsError

# Rows that centre, scale and directions are found from.
SAMPLE_ROWS = 2048
# Of subspace iteration: directions need not be exact.
ROUNDS = 2
# Rows of a block, at least, and blocks at most: in some of the work each has a note of all rows.
BLOCK_ROWS, MOST_BLOCKS = 512, 64
# Entries of scaled rows: squared distances of as many as 2^20 columns do not overflow.
FARTHEST = 2.0**50


@dataclass(frozen=True, eq=False)
class Projection:
    """``(x - centre) / scale``, times ``linear`` (n_features, n_columns) where that is not None."""

    centre: np.ndarray
    scale: float
    linear: np.ndarray | None

    @classmethod
    def of(cls, X: np.ndarray, most_columns: int) -> Projection:
        """Of rows (n_rows, n_features), to the directions in which they vary most."""
        sample = X[:: max(len(X) // SAMPLE_ROWS, 1)]
        centre = sample.mean(axis=0, dtype=np.float64).astype(X.dtype)
        scale = float(np.max(np.abs(sample - centre))) or 1.0
        if X.shape[1] <= most_columns:
            return cls(centre, scale, None)
        scaled = ((sample - centre) / scale).astype(np.float32)
        return cls(centre, scale, _directions(scaled, most_columns))

    def __call__(self, X: np.ndarray, order: np.ndarray | None = None) -> np.ndarray:
        """Rows of float32 of ``X``, all, or some in this order."""
        n_rows = len(X) if order is None else len(order)
        columns = self.centre.size if self.linear is None else self.linear.shape[1]
        rows = np.empty((n_rows, columns), dtype=np.float32)

        def work(part: slice) -> float:
            block = (X[part] if order is None else X[order[part]]) - self.centre
            block /= self.scale
            block = block.astype(np.float32, copy=False)
            rows[part] = block if self.linear is None else block @ self.linear
            return float(np.max(np.abs(rows[part]), initial=0))

        # NumPy's maximum is NaN where anything is, which that of Python is not.
        farthest = float(np.max(parallel_map(work, blocks(n_rows)), initial=0))
        if not farthest < FARTHEST:
            msg = (
                f"rows to compare must be finite and of similar size, got one of {X.dtype} that is "
                f"{farthest:.0e} times as far from the mean as most; rescale the view"
            )
            raise InvalidViewsError(msg)
        return rows


def blocks(n_rows: int) -> list[slice]:
    """Rows in pieces, each of which one thread works on."""
    step = max(BLOCK_ROWS, -(-n_rows // MOST_BLOCKS))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def _directions(centred: np.ndarray, n_columns: int) -> np.ndarray:
    """Orthonormal directions (n_features, n_columns) in which rows vary most, about.

    By subspace iteration from evenly spaced rows.
    """
    step = max(len(centred) // n_columns, 1)
    basis = centred[::step][:n_columns].T
    for _ in range(ROUNDS):
        basis, _ = np.linalg.qr(centred.T @ (centred @ basis))
    return np.ascontiguousarray(basis, dtype=np.float32)
