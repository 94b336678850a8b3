"""Algorithm 2 of the AGF-TI paper, line by line in dense NumPy: an oracle, and a measure of speed.

Nothing here is shared with the library but the problem's data class: full Fourier transform, one
singular value decomposition per frequency, projections by sorting, reduced gradient descent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq

__all__ = ["transcribed"]


def transcribed(problem: Any, max_iter: int = 30, tol: float = 1e-4) -> dict[str, np.ndarray]:
    """Run Algorithm 2 on a `viewmend.core.Problem` of NumPy arrays.

    Returns
    -------
    dict
        ``F``, ``Q``, ``P``, ``T``, ``alpha``, ``Z``, as in `viewmend.core.Result`.
    """
    lam, beta, rho, eta = problem.lam, problem.beta, problem.rho, problem.eta
    Z = problem.Z.copy()
    V, n, m = Z.shape
    T = np.stack([np.eye(m)] * V)
    alpha = np.full(V, 1 / V)
    G, W = np.zeros_like(Z), np.zeros_like(Z)
    P = respond(Z @ T, np.zeros((n, m)), lam, beta, alpha)
    F, Q = propagate(P, problem)
    for _ in range(max_iter):
        old = F, Q, alpha
        for v in range(V):
            rows = ~problem.observed[:, v]
            aim = G[v] - (W[v] - lam * alpha[v] ** 2 * P @ T[v].T) / eta
            Z[v, rows] = project(aim[rows])
        P, alpha = fuse(Z @ T, distances(F, Q, P), alpha, problem)
        F, Q = propagate(P, problem)
        G = shrink(Z + W / eta, rho / eta)
        T = np.stack([procrustes(Z[v].T @ P) for v in range(V)])
        W = W + eta * (Z - G)
        eta = min(problem.eta_growth * eta, problem.eta_max)
        if max(np.abs(a - b).max() for a, b in zip(old, (F, Q, alpha), strict=True)) < tol:
            break
    return {"F": F, "Q": Q, "P": P, "T": T, "alpha": alpha, "Z": Z}


def project(B: np.ndarray) -> np.ndarray:
    """Rows on the simplex nearest those of ``B``."""
    falling = -np.sort(-B, axis=1)
    taus = (np.cumsum(falling, axis=1) - 1) / np.arange(1, B.shape[1] + 1)
    size = np.sum(falling > taus, axis=1)
    return np.maximum(B - taus[np.arange(len(B)), size - 1][:, None], 0)


def respond(A: np.ndarray, H: np.ndarray, lam: float, beta: float, alpha: np.ndarray) -> np.ndarray:
    """``P`` that answers the weights (Eq. subp_P)."""
    return project((lam * np.einsum("v,vij->ij", alpha**2, A) - H) / (2 * beta))


def fuse(
    A: np.ndarray, H: np.ndarray, alpha: np.ndarray, problem: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 1: reduced gradient descent with an exact line search."""
    lam, beta = problem.lam, problem.beta

    def gradient(weights: np.ndarray) -> np.ndarray:
        P = respond(A, H, lam, beta, weights)
        return 2 * lam * weights * np.array([np.sum(P * A_v) for A_v in A])

    for _ in range(problem.inner_max_iter):
        direction = reduced(alpha, gradient(alpha))
        if np.abs(direction).max() < 1e-12:
            break
        longest = np.min(alpha[direction < 0] / -direction[direction < 0])
        step = line_search(gradient, alpha, direction, longest, problem.inner_tol)
        moved = step * direction
        alpha = np.maximum(alpha + moved, 0)
        if np.abs(moved).max() <= problem.inner_tol and step < longest:
            break
    return respond(A, H, lam, beta, alpha), alpha


def reduced(alpha: np.ndarray, grad: np.ndarray) -> np.ndarray:
    """Descent direction (Eqs. reduced_grad and descent_grad)."""
    u = int(np.argmax(alpha))
    direction = np.where((alpha > 0) | (grad < grad[u]), grad[u] - grad, 0.0)
    direction[u] = 0.0
    direction[u] = -direction.sum()
    return direction


def line_search(
    gradient: Any, alpha: np.ndarray, direction: np.ndarray, longest: float, tol: float
) -> float:
    """Step at which the slope along the direction is zero, or the longest."""

    def slope(theta: float) -> float:
        return float(gradient(alpha + theta * direction) @ direction)

    if slope(longest) <= 0:
        return float(longest)
    return float(brentq(slope, 0, longest, xtol=0.1 * tol / np.abs(direction).max(), rtol=1e-12))


def degrees(P: np.ndarray) -> np.ndarray:
    """Anchor degrees to the power -1/2, zero for isolated anchors."""
    total = P.sum(axis=0)
    return np.where(total > 0, 1 / np.sqrt(np.where(total > 0, total, 1)), 0)


def propagate(P: np.ndarray, problem: Any) -> tuple[np.ndarray, np.ndarray]:
    """Eq. (update_F_Q)."""
    S = P * degrees(P)
    inverse = 1 / (1 + problem.B_samples)[:, None]
    right = inverse * problem.B_samples[:, None] * problem.Y
    Q = np.linalg.solve(np.diag(1 + problem.B_anchors) - S.T @ (inverse * S), S.T @ right)
    return right + inverse * (S @ Q), Q


def distances(F: np.ndarray, Q: np.ndarray, P: np.ndarray) -> np.ndarray:
    """``H``."""
    rows, columns = F / np.sqrt(P.sum(axis=1))[:, None], Q * degrees(P)[:, None]
    squares = np.sum(rows**2, axis=1)[:, None] + np.sum(columns**2, axis=1)
    return np.maximum(squares - 2 * rows @ columns.T, 0)


def shrink(Y: np.ndarray, tau: float) -> np.ndarray:
    """Eq. (update_G1): singular values of every Fourier slice fall by ``tau``."""
    U, sigma, Vh = np.linalg.svd(np.fft.fft(Y, axis=1).transpose(1, 2, 0), full_matrices=False)
    slices = (U * np.maximum(sigma - tau, 0)[:, None]) @ Vh
    return np.fft.ifft(slices.transpose(2, 0, 1), axis=1).real


def procrustes(C: np.ndarray) -> np.ndarray:
    """Eq. (update_T)."""
    U, _, Vh = np.linalg.svd(C)
    return U @ Vh
