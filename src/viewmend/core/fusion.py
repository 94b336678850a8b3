"""Algorithm 1: adversarial graph fusion, the min-max over view weights and fused graph.

With the other variables fixed, the weights ``alpha`` (on the simplex) and the graph ``P`` (rows on
the simplex) play the game::

    min over alpha of h(alpha),
    h(alpha) = max over P of  lam sum_v alpha_v^2 <P, Z_v T_v> - beta |P|_F^2 - <H, P>

``P`` has a closed-form answer to every ``alpha``. ``h`` is convex and differentiable (Theorem 1)
and is minimised by reduced gradient descent; every trial weight gets its own answer ``P``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.optimize import brentq

from viewmend.backend import dispatch
from viewmend.backend.namespace import Array, array_namespace
from viewmend.core.simplex import project_simplex
from viewmend.core.state import InnerStep

__all__ = [
    "Fusion",
    "Game",
    "agreements",
    "aligned_graphs",
    "base_view",
    "best_response",
    "descent_direction",
    "fuse",
    "gradient",
    "inner_step",
    "largest_step",
    "line_search",
    "target",
    "value",
    "weighted_graph",
]


@dataclass(frozen=True, eq=False)
class Game:
    """What stays fixed during Algorithm 1.

    Attributes
    ----------
    A : array (n_views, n_samples, n_anchors)
        Aligned graphs ``Z_v T_v``.
    H : array (n_samples, n_anchors)
        Soft-label distances, taken with the degrees of the incoming ``P``: with degrees that
        followed ``P``, ``h`` would be neither convex nor have the gradient of Theorem 1.
    lam, beta : float
    """

    A: Array
    H: Array
    lam: float
    beta: float


@dataclass(frozen=True, eq=False)
class Fusion:
    """Answer of Algorithm 1: ``P`` (n_samples, n_anchors), ``alpha`` (n_views,), its steps."""

    P: Array
    alpha: np.ndarray
    steps: tuple[InnerStep, ...]


def aligned_graphs(Z: Array, T: Array) -> Array:
    """``Z_v T_v`` for every view, (n_views, n_samples, n_anchors)."""
    return Z @ T


def weighted_graph(A: Array, alpha: np.ndarray) -> Array:
    """``sum_v alpha_v^2 A_v``, (n_samples, n_anchors)."""
    xp = array_namespace(A)
    return xp.tensordot(xp.asarray(alpha**2, dtype=A.dtype), A, axes=1)


def target(game: Game, alpha: np.ndarray) -> Array:
    """``(lam sum_v alpha_v^2 A_v - H) / (2 beta)``, whose projection is the best ``P``."""
    aim = game.lam * weighted_graph(game.A, alpha)
    aim -= game.H
    aim /= 2 * game.beta
    return aim


def best_response(game: Game, alpha: np.ndarray) -> Array:
    """``P*`` of the inner maximum (Eq. subp_P)."""
    return project_simplex(target(game, alpha))


def agreements(A: Array, P: Array) -> np.ndarray:
    """``<P, A_v>`` for every view, (n_views,)."""
    return np.array([dispatch.inner(P, A[v, ...]) for v in range(A.shape[0])])


def value(game: Game, alpha: np.ndarray, P: Array) -> float:
    """Payoff of the game; ``h(alpha)`` if ``P`` is the best response."""
    penalty = game.beta * dispatch.inner(P, P) + dispatch.inner(game.H, P)
    return float(game.lam * np.sum(alpha**2 * agreements(game.A, P)) - penalty)


def gradient(game: Game, alpha: np.ndarray, P: Array) -> np.ndarray:
    """``dh/dalpha_v = 2 lam alpha_v <P*, A_v>`` (Theorem 1), (n_views,)."""
    return 2 * game.lam * alpha * agreements(game.A, P)


def base_view(alpha: np.ndarray, grad: np.ndarray) -> int:
    """The largest weight; equal weights are told apart by their gradients, not by their order."""
    return int(np.lexsort((grad, alpha))[-1])


def descent_direction(alpha: np.ndarray, grad: np.ndarray, u: int) -> np.ndarray:
    """Minus the reduced gradient (Eqs. reduced_grad and descent_grad), (n_views,).

    View ``u`` balances the others, so that the entries sum to zero; a weight of zero does not fall.
    """
    reduced = grad - grad[u]
    direction = np.where((alpha > 0) | (reduced < 0), -reduced, 0.0)
    direction[u] = 0.0
    direction[u] = -direction.sum()
    return direction


def largest_step(alpha: np.ndarray, direction: np.ndarray) -> float:
    """Largest ``theta`` with ``alpha + theta direction >= 0``; 0 at a stationary point."""
    falling = direction < 0
    return float(np.min(alpha[falling] / -direction[falling])) if falling.any() else 0.0


def line_search(
    slope: Callable[[float], float], theta_guess: float, theta_max: float, xtol: float
) -> float:
    """Argmin over [0, theta_max] of a convex function, given its slope, negative at 0.

    The bracket grows from the guess: every evaluation solves for ``P``, and a narrow bracket
    around the answer saves most of them.
    """
    slope = cache(slope)
    low, high = 0.0, min(theta_guess, theta_max)
    while slope(high) < 0:
        if high == theta_max:
            return theta_max
        low, high = high, min(2 * high, theta_max)
    # Where the slope is flat the bracket shrinks slowly, and any point of it will do.
    return float(brentq(slope, low, high, xtol=xtol, rtol=1e-12, disp=False))


def fuse(game: Game, alpha: np.ndarray, tol: float = 1e-4, max_iter: int = 100) -> Fusion:
    """Minimise ``h`` from ``alpha`` by reduced gradient steps with an exact line search.

    Stops when no weight moved by more than ``tol``, unless the step ended where a weight became
    zero: there the direction was cut short, and the next one may still fall.

    Parameters
    ----------
    game : Game
    alpha : array (n_views,)
    tol : float
    max_iter : int

    Returns
    -------
    Fusion
    """
    P = best_response(game, alpha)
    steps: list[InnerStep] = []
    for _ in range(max_iter):
        grad = gradient(game, alpha, P)
        direction = descent_direction(alpha, grad, base_view(alpha, grad))
        # Below the rounding of the gradient there is no descent left to measure.
        if -direction @ grad <= 1e-14 * np.abs(grad).max() * np.abs(direction).max():
            break
        theta = _best_step(game, alpha, grad, direction, tol)
        alpha_old, alpha = alpha, _move(alpha, direction, theta)
        P_old, P = P, best_response(game, alpha)
        steps.append(inner_step(alpha_old, alpha, P_old, P, value(game, alpha, P)))
        if np.abs(alpha - alpha_old).max() <= tol and theta < largest_step(alpha_old, direction):
            break
    return Fusion(P, alpha, tuple(steps))


def _best_step(
    game: Game, alpha: np.ndarray, grad: np.ndarray, direction: np.ndarray, tol: float
) -> float:
    """Exact line search from the Newton step, with the curvature that a fixed ``P`` has."""

    def slope(theta: float) -> float:
        trial = _move(alpha, direction, theta)
        return float(gradient(game, trial, best_response(game, trial)) @ direction)

    theta_max = largest_step(alpha, direction)
    # grad / alpha is the diagonal of that curvature; a weight of zero adds nothing to it.
    curvature = np.divide(grad, alpha, out=np.zeros_like(grad), where=alpha > 0) @ direction**2
    guess = -(grad @ direction) / curvature if curvature > 0 else theta_max
    # A tenth of the tolerance on alpha, so that the search is not what ends the descent.
    return line_search(slope, guess, theta_max, xtol=0.1 * tol / np.abs(direction).max())


def _move(alpha: np.ndarray, direction: np.ndarray, theta: float) -> np.ndarray:
    """``alpha + theta direction``, back on the simplex after rounding."""
    moved = np.maximum(alpha + theta * direction, 0.0)
    return moved / moved.sum()


def inner_step(
    alpha_old: np.ndarray, alpha: np.ndarray, P_old: Array, P: Array, cost: float
) -> InnerStep:
    """How far one step moved the weights and the graph."""
    xp = array_namespace(P)
    return InnerStep(
        alpha_error=float(np.sum((alpha - alpha_old) ** 2)),
        P_error=float(xp.sum((P - P_old) ** 2)),
        cost=cost,
    )
