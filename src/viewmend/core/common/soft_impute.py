"""Matrices with hidden entries, completed by one of low rank.

R. Mazumder, T. Hastie, R. Tibshirani, Spectral regularization algorithms for learning large
incomplete matrices, Journal of Machine Learning Research 11, 2010.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# What shrinks singular values: a matrix (n, p) to one of lower rank, and its components (rank, p).
Shrink = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class LowRank:
    """``M`` (n, p), its relative change in every round, and "converged" or "max_iter".

    The components (rank, p) are its right singular vectors times the roots of its singular values.
    """

    M: np.ndarray
    components: np.ndarray
    changes: tuple[float, ...]
    status: str


def complete(
    X: np.ndarray, hidden: np.ndarray, shrink: Shrink, *, max_iter: int, tol: float
) -> LowRank:
    """Fixed point of ``M = shrink(O * X + (1 - O) * M)``, from ``M = 0``.

    The rounds are proximal gradient steps of length one; Nesterov's momentum, started afresh
    where it would climb, takes far fewer of them to the same point. ``X`` (n, p) is zero where
    ``hidden`` (n, p).
    """
    M, ahead, momentum = np.zeros_like(X), np.zeros_like(X), 1.0
    changes, status = [], "max_iter"
    for _ in range(max_iter):
        shrunk, components = shrink(np.where(hidden, ahead, X))
        move, M = shrunk - M, shrunk
        # Momentum that points uphill is dropped.
        momentum = 1.0 if np.vdot(ahead - M, move) > 0 else momentum
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead, momentum = M + (momentum - 1) / grown * move, grown
        # A matrix that stays zero changes by zero, not by 0 / 0.
        size = max(np.linalg.norm(M), np.finfo(float).tiny)
        changes.append(float(np.linalg.norm(move) / size))
        if changes[-1] <= tol:
            status = "converged"
            break
    return LowRank(M, components, tuple(changes), status)


class SubspaceShrink:
    """Shrinks singular values within a subspace of ``rank`` dimensions that follows the matrix.

    Every call turns the subspace by one step of the power method, from where the last call left
    it: between the rounds of `complete` the matrix changes little, so that one step is enough.
    Values are shrunk by the ``shrinkage`` in [0, 1) times the largest one of the first matrix.
    """

    def __init__(self, X: np.ndarray, rank: int, shrinkage: float) -> None:
        # Any start will do, if it is the same every time.
        start = np.random.default_rng(0).standard_normal((X.shape[1], min(rank, *X.shape)))
        self._basis = _turned(X, start)
        self.threshold = shrinkage * float(np.linalg.norm(X @ self._basis, 2))

    def __call__(self, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The shrunk matrix (n, p), and its components (rank, p) as in `LowRank`."""
        self._basis = _turned(A, self._basis)
        inner = A @ self._basis
        squares, turn = np.linalg.eigh(inner.T @ inner)
        singular = np.sqrt(np.maximum(squares, 0))
        kept = singular > self.threshold
        singular, turn = singular[kept], turn[:, kept]
        right = (self._basis @ turn).T
        M = (inner @ (turn * ((singular - self.threshold) / singular))) @ right
        return M, np.sqrt(singular - self.threshold)[:, None] * right


def _turned(A: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """A basis turned towards the leading right singular vectors, of orthonormal columns."""
    return np.asarray(np.linalg.qr(A.T @ (A @ basis))[0])


def fill_hidden(
    X: np.ndarray, hidden: np.ndarray, components: np.ndarray, threshold: float
) -> np.ndarray:
    """``X`` (n, p) with its hidden entries filled by ridge regressions on components (rank, p).

    Row by row ``s C`` for the argmin over ``s`` of ``|o * (x - s C)|^2 + threshold |s|^2``, where
    ``o`` leaves out what is ``hidden`` (n, p); ``X`` is zero there. ``threshold |M|_*`` is the
    least ``threshold / 2 (|S|^2 + |C|^2)`` over all ``M = S C``: this is what `complete` would give
    a row if the components were held fixed. No row depends on another.
    """
    ridge = threshold * np.eye(len(components))
    whole = components @ components.T + ridge
    filled = X.copy()
    for i in np.flatnonzero(hidden.any(axis=1)):
        gone = hidden[i]
        lost = components[:, gone]
        if 2 * lost.shape[1] <= len(gone):
            gram = whole - lost @ lost.T
        else:
            there = components[:, ~gone]
            gram = there @ there.T + ridge
        filled[i, gone] = np.linalg.solve(gram, components @ X[i]) @ lost
    return filled
