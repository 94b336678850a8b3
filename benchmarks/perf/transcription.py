"""Algorithm 2 of the AGF-TI paper, line by line in dense NumPy: an oracle, and a measure of speed.

Nothing here is shared with the library but the problem's data class: full Fourier transform, one
singular value decomposition per frequency, projections by sorting, reduced gradient descent. For
the line search of that descent the paper asks for "a linear search mechanism, e.g. Armijo's rule";
all in `LINE_SEARCHES` let ``P`` answer every trial step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

__all__ = ["LINE_SEARCHES", "Line", "armijo", "golden_section", "transcribed", "zero_slope"]

GOLDEN = (5**0.5 + 1) / 2


class Line(NamedTuple):
    """What a line search may ask for.

    Attributes
    ----------
    cost, slope : float -> float
        Of ``h`` after a step of that length.
    longest : float
        Step at which the first weight becomes zero.
    reach : float
        Largest move of a weight by a step of length one.
    descent : float
        Slope at the start.
    """

    cost: Callable[[float], float]
    slope: Callable[[float], float]
    longest: float
    reach: float
    descent: float


LineSearch = Callable[[Line, float], float]


def zero_slope(line: Line, tol: float) -> float:
    """Step at which the slope is zero, to a tenth of ``tol`` in the weights, or the longest."""
    if line.slope(line.longest) <= 0:
        return float(line.longest)
    return float(brentq(line.slope, 0, line.longest, xtol=0.1 * tol / line.reach, rtol=1e-12))


def golden_section(line: Line, _tol: float, precision: float = 1e-3) -> float:
    """Best of the last four points of a golden section, as in the authors' released code.

    That stops at a bracket of ``precision`` times the longest step, whatever the tolerance, and
    takes both inner points of every bracket anew. The start is left only for a lower cost.
    """
    thetas = [0.0, line.longest]
    costs = [line.cost(theta) for theta in thetas]
    while thetas[-1] - thetas[0] > precision * line.longest:
        low, high = thetas[0], thetas[-1]
        right = low + (high - low) / GOLDEN
        left = low + (right - low) / GOLDEN
        thetas = [low, left, right, high]
        costs = [costs[0], line.cost(left), line.cost(right), costs[-1]]
        # The bracket shrinks to the neighbours of the best point, from one side at a time.
        best = int(np.argmin(costs))
        kept = slice(0, best + 2) if best < 2 else slice(best - 1, 4)
        thetas, costs = thetas[kept], costs[kept]
    return thetas[int(np.argmin(costs))]


def armijo(line: Line, tol: float, share: float = 1e-4) -> float:
    """First of the longest step, its half, ... that keeps a share of what the slope promises.

    The paper's example. A step that moves no weight by a tenth of ``tol`` is taken as it is.
    """
    start, step = line.cost(0.0), line.longest
    while line.cost(step) > start + share * step * line.descent and step * line.reach > 0.1 * tol:
        step /= 2
    return step


LINE_SEARCHES: dict[str, LineSearch] = {
    "slope": zero_slope,
    "golden": golden_section,
    "armijo": armijo,
}


def transcribed(
    problem: Any, max_iter: int = 30, tol: float = 1e-4, line_search: LineSearch = zero_slope
) -> dict[str, Any]:
    """Run Algorithm 2 on a `viewmend.core.Problem` of NumPy arrays, in their precision.

    Beyond the paper, and as in the library, it does not stop before ``Z`` has come to ``G``.

    Returns
    -------
    dict
        ``F``, ``Q``, ``P``, ``T``, ``alpha``, ``Z`` and ``n_iter``, as in `viewmend.core.Result`.
    """
    lam, beta, rho, eta = problem.lam, problem.beta, problem.rho, problem.eta
    Z = problem.Z.copy()
    V, n, m = Z.shape
    T = np.stack([np.eye(m, dtype=Z.dtype)] * V)
    alpha = np.full(V, 1 / V, dtype=Z.dtype)
    G, W = np.zeros_like(Z), np.zeros_like(Z)
    P = respond(Z @ T, np.zeros((n, m), dtype=Z.dtype), lam, beta, alpha)
    F, Q = propagate(P, problem)
    n_iter, change, residual = 0, np.inf, np.inf
    while n_iter < max_iter and (change >= tol or residual >= tol * np.sqrt(V * n)):
        old = F, Q, alpha
        for v in range(V):
            rows = ~problem.observed[:, v]
            aim = G[v] - (W[v] - lam * alpha[v] ** 2 * P @ T[v].T) / eta
            Z[v, rows] = project(aim[rows])
        P, alpha = fuse(Z @ T, distances(F, Q, P), alpha, problem, line_search)
        F, Q = propagate(P, problem)
        G = shrink(Z + W / eta, rho / eta)
        residual = np.linalg.norm(Z - G)
        T = np.stack([procrustes(Z[v].T @ P) for v in range(V)])
        W = W + eta * (Z - G)
        eta = min(problem.eta_growth * eta, problem.eta_max)
        change = max(np.abs(a - b).max() for a, b in zip(old, (F, Q, alpha), strict=True))
        n_iter += 1
    return {"F": F, "Q": Q, "P": P, "T": T, "alpha": alpha, "Z": Z, "n_iter": n_iter}


def project(B: np.ndarray) -> np.ndarray:
    """Rows on the simplex nearest those of ``B``."""
    falling = -np.sort(-B, axis=1)
    taus = (np.cumsum(falling, axis=1) - 1) / np.arange(1, B.shape[1] + 1, dtype=B.dtype)
    size = np.sum(falling > taus, axis=1)
    return np.maximum(B - taus[np.arange(len(B)), size - 1][:, None], 0)


def respond(A: np.ndarray, H: np.ndarray, lam: float, beta: float, alpha: np.ndarray) -> np.ndarray:
    """``P`` that answers the weights (Eq. subp_P)."""
    return project((lam * np.einsum("v,vij->ij", alpha**2, A) - H) / (2 * beta))


def fuse(
    A: np.ndarray, H: np.ndarray, alpha: np.ndarray, problem: Any, line_search: LineSearch
) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 1: reduced gradient descent."""
    lam, beta, tol = problem.lam, problem.beta, problem.inner_tol

    def gradient(weights: np.ndarray) -> np.ndarray:
        P = respond(A, H, lam, beta, weights)
        return 2 * lam * weights * np.array([np.sum(P * A_v) for A_v in A])

    def cost(weights: np.ndarray) -> float:
        P = respond(A, H, lam, beta, weights)
        fused = sum(a**2 * np.sum(P * A_v) for a, A_v in zip(weights, A, strict=True))
        return float(lam * fused - beta * np.sum(P * P) - np.sum(H * P))

    for _ in range(problem.inner_max_iter):
        grad = gradient(alpha)
        direction = reduced(alpha, grad)
        if np.abs(direction).max() < 1e-12:
            break
        line = searched(alpha, direction, grad, cost, gradient)
        step = line_search(line, tol)
        moved = step * direction
        alpha = np.maximum(alpha + moved, 0)
        if np.abs(moved).max() <= tol and step < line.longest:
            break
    return respond(A, H, lam, beta, alpha), alpha


def reduced(alpha: np.ndarray, grad: np.ndarray) -> np.ndarray:
    """Descent direction (Eqs. reduced_grad and descent_grad)."""
    u = int(np.argmax(alpha))
    direction = np.where((alpha > 0) | (grad < grad[u]), grad[u] - grad, 0)
    direction[u] = 0.0
    direction[u] = -direction.sum()
    return direction


def searched(
    alpha: np.ndarray, direction: np.ndarray, grad: np.ndarray, cost: Any, gradient: Any
) -> Line:
    """The line from ``alpha``, where the gradient is ``grad``, along ``direction``."""
    falling = direction < 0
    return Line(
        cost=lambda theta: cost(alpha + theta * direction),
        slope=lambda theta: float(gradient(alpha + theta * direction) @ direction),
        longest=float(np.min(alpha[falling] / -direction[falling])),
        reach=float(np.abs(direction).max()),
        descent=float(grad @ direction),
    )


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
