"""Where the authors' released code departs from the paper (``compat="released"``).

1. Simplex projections of ``Z`` and ``P`` act on positive entries only, and leave a row without any
   as it was.
2. The search over ``alpha`` does not update ``P`` for the trial weights: ``P`` comes from the
   weights of the start of the round. The steps are those of golden section with a precision of
   1e-3 of the largest step, taken only if the cost falls; the gradient is divided by the number of
   views.
3. For an odd number of samples the two middle frequencies are thresholded twice.

These are kept apart from the paper's algorithm so that both can be read, and are proved against
outputs of the released code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from viewmend.backend import dispatch
from viewmend.backend.namespace import Array, array_namespace, to_numpy
from viewmend.core.agfti import tensor_nuclear
from viewmend.core.agfti.fusion import (
    Fusion,
    Game,
    agreements,
    inner_step,
    target,
)
from viewmend.core.agfti.propagation import anchor_scale, soft_label_distances
from viewmend.core.agfti.state import InnerStep, Problem, State

GOLDEN = (5**0.5 + 1) / 2
SEARCH_PRECISION = 1e-3
SMALLEST_WEIGHT = 1e-16
SMALLEST_DECREASE = 1e-4


def project_positive(aim: Array, previous: Array) -> Array:
    """Projection on the simplex of the positive entries; rows without any keep ``previous``."""
    return dispatch.project_positive_rows(aim, previous)


def prox_tnn(Y: Array, tau: float, out: Array = None) -> tuple[Array, Array]:
    """`tensor_nuclear.prox_tnn` with the highest frequency of odd ``n`` shrunk twice.

    Two shrinkages by ``tau`` are one by ``2 tau``.
    """
    xp = array_namespace(Y)
    n_samples = Y.shape[1]
    taus = tau * xp.ones(n_samples // 2 + 1, dtype=xp.float64, device=Y.device)
    if n_samples % 2 == 1:
        taus[-1] *= 2
    return tensor_nuclear.prox_tnn(Y, taus, out)


def fuse(game: Game, state: State, problem: Problem) -> Fusion:
    """Algorithm 1 as released.

    ``state`` is read for ``P``, ``F``, ``Q`` and ``alpha`` of the last round.
    """
    A, alpha = game.A, state.alpha
    # Every update of P below uses state.alpha, not the weights of the search: see the second
    # difference at the top.
    P = project_positive(target(game, alpha), state.P)
    costs = [_cost(A, state, problem, P)(alpha)]
    steps: list[InnerStep] = []
    while True:
        alpha_old, P_old = alpha, P
        grad = 2 * problem.lam * alpha * to_numpy(agreements(A, P)) / alpha.size
        P_trial = _best_response(A, state, problem, P)
        alpha, cost = _search(alpha, grad, _cost(A, state, problem, P_trial), costs[-1])
        # P moves only together with the weights.
        if cost < costs[-1]:
            P = P_trial
        costs.append(cost)
        steps.append(inner_step(alpha_old, alpha, P_old, P, cost))
        if np.abs(alpha - alpha_old).max() < 1e-4 / alpha.size or _stalled(costs):
            return Fusion(P, alpha, tuple(steps))


def imputed_rows(Z_v: Array, aim: tuple[Any, ...]) -> Array:
    """Missing rows of ``Z_v``; ``aim`` are the arguments of `dispatch.aim_rows`."""
    _, _, rows, *_ = aim
    return project_positive(dispatch.aim_rows(*aim), Z_v[rows])


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


def golden_section(
    cost: Callable[[float], float], theta_max: float, cost_0: float
) -> tuple[float, float]:
    """Best of the last points of a golden-section search on [0, theta_max], and its cost."""
    low, high = 0.0, theta_max
    cost_low, cost_high = cost_0, cost(theta_max)
    thetas, costs = [low, high], [cost_low, cost_high]
    while high - low > SEARCH_PRECISION * theta_max and high > np.finfo(float).eps:
        right = low + (high - low) / GOLDEN
        left = low + (right - low) / GOLDEN
        thetas = [low, left, right, high]
        costs = [cost_low, cost(left), cost(right), cost_high]
        best = int(np.argmin(costs))
        # The bracket shrinks to the neighbours of the best point, from one side at a time.
        if best < 2:
            high, cost_high = thetas[best + 1], costs[best + 1]
        else:
            low, cost_low = thetas[best - 1], costs[best - 1]
    best = int(np.argmin(costs))
    return thetas[best], costs[best]


def _best_response(A: Array, state: State, problem: Problem, P: Array) -> Array:
    """``P`` for the weights of the start of the round, whatever the trial weights are."""
    game = Game(A, soft_label_distances(state.F, state.Q, P), problem.lam, problem.beta)
    return project_positive(target(game, state.alpha), P)


def _cost(A: Array, state: State, problem: Problem, P: Array) -> Callable[[np.ndarray], float]:
    """Cost as a function of the weights, for a given ``P``."""
    F, Q = state.F, state.Q
    pairs = [(F, P @ (anchor_scale(P)[:, None] * Q)), (F, F), (Q, Q), (P, P)]
    smooth, size_F, size_Q, size_P = to_numpy(dispatch.inners(pairs))
    offset = 2 * smooth - size_F - size_Q - problem.beta * size_P
    gains = problem.lam * to_numpy(agreements(A, P))
    return lambda alpha: float(offset + np.sum(alpha**2 * gains))


def _search(
    alpha: np.ndarray, grad: np.ndarray, cost: Callable[[np.ndarray], float], cost_old: float
) -> tuple[np.ndarray, float]:
    """Weights after one step, and their cost; both unchanged where the cost would not fall."""
    direction = descent_direction(alpha, grad, int(np.argmax(alpha)))
    theta_max = largest_step(alpha, direction)
    if theta_max == 0:
        return alpha, cost_old
    theta, cost_new = golden_section(
        lambda theta: cost(_move(alpha, direction, theta)), theta_max, cost_old
    )
    return (_move(alpha, direction, theta), cost_new) if cost_new < cost_old else (alpha, cost_old)


def _move(alpha: np.ndarray, direction: np.ndarray, theta: float) -> np.ndarray:
    moved = alpha + theta * direction
    # The released code's way back on the simplex after rounding.
    moved[moved < SMALLEST_WEIGHT] = 0.0
    return moved / moved.sum()


def _stalled(costs: list[float]) -> bool:
    """Whether the last two relative decreases of the cost are both small."""
    if len(costs) < 4:
        return False
    before, middle, last = costs[-3:]
    return (middle - last) / last < SMALLEST_DECREASE and (
        before - middle
    ) / middle < SMALLEST_DECREASE
