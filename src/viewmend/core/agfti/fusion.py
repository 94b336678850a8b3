"""Algorithm 1: adversarial graph fusion, the min-max over view weights and fused graph.

With the other variables fixed, the weights ``alpha`` (on the simplex) and the graph ``P`` (rows on
the simplex) play the game::

    min over alpha of h(alpha),
    h(alpha) = max over P of  lam sum_v alpha_v^2 <P, Z_v T_v> - beta |P|_F^2 - <H, P>

For every ``alpha`` the best ``P`` has a closed form: the projection of `target` on the simplex.
``h`` is convex and differentiable (Theorem 1). The paper minimises it by reduced gradient descent
with a line search, which evaluates ``h`` many times. One evaluation passes over all graphs; a
handful of sums over the same ``P`` also give the slope and the curvature of ``h``. So here ``h`` is
minimised by Newton's method on the simplex, which needs few evaluations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from viewmend.backend import dispatch
from viewmend.backend.namespace import Array, array_namespace
from viewmend.core.agfti.state import InnerStep
from viewmend.core.common.simplex import simplex_qp

# Share of the decrease promised by the slope that a step must keep.
SUFFICIENT = 1e-4

# Newton's method squares its error, so that stopping a hundred times below the tolerance costs
# at most one more evaluation and leaves an error that no reader of the weights sees.
STOP_SHARE = 0.01

# Steps shorter than this share of Newton's are taken as they are: only rounding is left.
SMALLEST_STEP = 1e-8


NOT_FINITE = "the soft labels are not finite; lower lam or rho, or take graphs in float64"


@dataclass(frozen=True, eq=False)
class Game:
    """What stays fixed during Algorithm 1: among it the aligned graphs ``A_v = Z_v T_v``.

    The soft-label distances ``H`` (n_samples, n_anchors) are taken with the degrees of the incoming
    ``P``: with degrees that followed ``P``, ``h`` would be neither convex nor have the gradient of
    Theorem 1.
    """

    A: Array
    H: Array
    lam: float
    beta: float


@dataclass(frozen=True, eq=False)
class BestResponse:
    """The ``P`` that is best against weights ``alpha``, and sums over it.

    ``cost`` is ``h(alpha)``. ``size`` is the sum of the absolute terms of the cost, which bounds
    its rounding: the terms cancel each other, their rounding errors do not. ``agreements``
    (n_views,) are ``<P, A_v>``. ``spread`` (n_views, n_views) is ``sum_i`` of the scatter matrix of
    row ``i`` of the graphs where ``P_i`` is positive.
    """

    alpha: np.ndarray
    P: Array
    cost: float
    size: float
    agreements: np.ndarray
    spread: np.ndarray


@dataclass(frozen=True, eq=False)
class Fusion:
    """Result of Algorithm 1: ``P`` (n_samples, n_anchors), ``alpha`` (n_views,), its steps."""

    P: Array
    alpha: np.ndarray
    steps: tuple[InnerStep, ...]


def aligned_graphs(Z: Array, T: Array, out: Array = None) -> Array:
    """``Z_v T_v`` for every view, (n_views, n_samples, n_anchors); written to ``out`` if given."""
    return dispatch.multiply(Z, T, out)


def weighted_graph(A: Array, alpha: np.ndarray) -> Array:
    """``sum_v alpha_v^2 A_v``, (n_samples, n_anchors)."""
    xp = array_namespace(A)
    return xp.tensordot(xp.asarray(alpha**2, dtype=A.dtype, device=A.device), A, axes=1)


def target(game: Game, alpha: np.ndarray) -> Array:
    """``(lam sum_v alpha_v^2 A_v - H) / (2 beta)``, whose projection is the best ``P``."""
    aim = game.lam * weighted_graph(game.A, alpha)
    aim -= game.H
    aim /= 2 * game.beta
    return aim


def best_response(game: Game, alpha: np.ndarray) -> Array:
    """``P*`` of the inner maximum (Eq. subp_P)."""
    return evaluate(game, alpha).P


def agreements(A: Array, P: Array) -> Array:
    """``<P, A_v>`` for every view, (n_views,)."""
    return dispatch.inners([(P, A[v, ...]) for v in range(A.shape[0])])


def evaluate(game: Game, alpha: np.ndarray) -> BestResponse:
    """The best ``P`` for weights ``alpha``, with the sums that Newton's method needs."""
    # One kernel for all of it: every row of the graphs is read once and stays in the cache.
    P, agreed, (squares, along_H), spread = dispatch.best_response_rows(
        game.A, game.H, game.lam * alpha**2, 1 / (2 * game.beta)
    )
    terms = np.array([game.lam * (alpha**2 @ agreed), -game.beta * squares, -along_H])
    return BestResponse(alpha, P, float(terms.sum()), float(np.abs(terms).sum()), agreed, spread)


def gradient(game: Game, at: BestResponse) -> np.ndarray:
    """``dh/dalpha_v = 2 lam alpha_v <P*, A_v>`` (Theorem 1), (n_views,)."""
    return 2 * game.lam * at.alpha * at.agreements


def curvature(game: Game, at: BestResponse) -> np.ndarray:
    """Second derivative of ``h``, positive semi-definite, (n_views, n_views).

    The derivative of `gradient` has two parts. For a fixed ``P``, ``2 lam <P*, A_v>`` on the
    diagonal. And ``P`` moves with the weights: a projection on the simplex moves along its
    support, by the change of `target` less the mean of that change over the support, so that
    ``d<P*, A_v>/dalpha_u = 2 lam alpha_u spread_uv / (2 beta)``.
    """
    rate = 2 * game.lam * at.alpha
    of_moving_P = rate[:, None] * at.spread * rate[None, :] / (2 * game.beta)
    # A view that disagrees with P bends h down; taken for flat, the model stays convex.
    of_fixed_P = np.diag(2 * game.lam * np.maximum(at.agreements, 0.0))
    return of_moving_P + of_fixed_P


def newton_step(game: Game, at: BestResponse) -> np.ndarray:
    """From ``alpha`` to the minimum over the simplex of the quadratic model of ``h``."""
    K = curvature(game, at)
    # The model g (a - alpha) + (a - alpha) K (a - alpha) / 2 is, up to a constant, half of
    # a K a - 2 a b with b = K alpha - g.
    return simplex_qp(K, K @ at.alpha - gradient(game, at)) - at.alpha


def fuse(
    game: Game,
    alpha: np.ndarray,
    tol: float = 1e-4,
    max_iter: int = 100,
    evaluate: Callable[[Game, np.ndarray], BestResponse] = evaluate,
) -> Fusion:
    """Minimise ``h`` from ``alpha`` (n_views,) by Newton steps on the simplex.

    Stops when the next step would move no weight by more than a hundredth of ``tol``. Where rows
    are on other machines, another ``evaluate`` evaluates there and adds up the sums.
    """
    at = evaluate(game, alpha)
    if not np.isfinite(at.cost):
        raise FloatingPointError(NOT_FINITE)
    steps: list[InnerStep] = []
    for _ in range(max_iter):
        direction = newton_step(game, at)
        slope = gradient(game, at) @ direction
        # Below the rounding of the gradient there is no descent left to measure.
        if np.abs(direction).max() <= STOP_SHARE * tol or -slope <= 0.1 * _rounding(at):
            break
        moved = _descend(game, at, direction, evaluate)
        steps.append(inner_step(at.alpha, moved.alpha, at.P, moved.P, moved.cost))
        at = moved
    return Fusion(at.P, at.alpha, tuple(steps))


def _descend(
    game: Game,
    at: BestResponse,
    direction: np.ndarray,
    evaluate: Callable[[Game, np.ndarray], BestResponse],
) -> BestResponse:
    """The response after a step by which ``h`` falls by a share of what its slope promised.

    Nearly always that is the full step. Otherwise the next trial is where the slope would be zero
    if it changed linearly between both ends of the last trial.
    """
    slope = float(gradient(game, at) @ direction)
    theta = 1.0
    while True:
        trial = evaluate(game, _move(at.alpha, direction, theta))
        slope_there = float(gradient(game, trial) @ direction)
        # Armijo's rule, with room for rounding: near the minimum the decrease is below it.
        enough = trial.cost <= at.cost + SUFFICIENT * theta * slope + _rounding(at)
        if enough or theta < SMALLEST_STEP:
            return trial
        theta *= float(np.clip(slope / (slope - slope_there), 0.1, 0.5))


def _rounding(at: BestResponse) -> float:
    """Differences of the cost below this are rounding, of its terms in the precision of ``P``."""
    return max(1e-13, float(array_namespace(at.P).finfo(at.P.dtype).eps)) * at.size


def _move(alpha: np.ndarray, direction: np.ndarray, theta: float) -> np.ndarray:
    """``alpha + theta direction``, back on the simplex after rounding."""
    moved = np.maximum(alpha + theta * direction, 0.0)
    return moved / moved.sum()


def inner_step(
    alpha_old: np.ndarray, alpha: np.ndarray, P_old: Array, P: Array, cost: float
) -> InnerStep:
    """How far one step moved the weights and the graph."""
    return InnerStep(
        alpha_error=float(np.sum((alpha - alpha_old) ** 2)),
        P_error=dispatch.squared_gap(P, P_old),
        cost=cost,
    )
