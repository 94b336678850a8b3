"""Resilient back-propagation with improved weight backtracking (iRprop+).

C. Igel, M. Hüsken, Empirical evaluation of the improved Rprop learning algorithms,
Neurocomputing 50, 2003.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from viewmend.backend.numba_networks import move_by_signs

Function = Callable[[list[np.ndarray]], tuple[float, Sequence[np.ndarray]]]

# Factors and bounds of the steps, as in the paper; the first step is that of Fan and Cheng.
_GROW, _SHRINK = 1.2, 0.5
_FIRST_STEP, _LONGEST_STEP = 0.0123, 50.0


@dataclass(frozen=True, eq=False)
class IRpropResult:
    """The best point seen, the loss at every point visited, and "converged" or "max_iter"."""

    parameters: list[np.ndarray]
    losses: tuple[float, ...]
    status: str


def minimise_irprop(
    function: Function,
    start: Sequence[np.ndarray],
    *,
    max_iter: int = 500,
    tol: float = 1e-8,
    enough: float = -np.inf,
) -> IRpropResult:
    """A local minimum of a smooth function, from the signs of its gradient alone.

    Every coordinate has a step of its own, which grows while the sign of its derivative stays and
    shrinks where it turns. A coordinate whose sign turned takes its last move back, but only if
    the loss rose; then it waits for one round.

    The function takes arrays shaped as ``start``, all of one dtype, and returns the loss and its
    gradients, one array per array. It may reuse the memory of the gradients and must not keep or
    change what it is given. After at most ``max_iter`` moves the search ends, earlier where the
    loss falls by less than ``tol`` or below ``enough``, or where no derivative is above ``tol``.
    """
    point = np.concatenate([np.ravel(array) for array in start])
    blocks, best, best_loss = _blocks(point, start), np.empty_like(point), np.inf
    parts = [block.reshape(-1) for block in blocks]
    states = [(np.full_like(x, _FIRST_STEP), np.zeros_like(x), np.zeros_like(x)) for x in parts]
    factors = tuple(point.dtype.type(factor) for factor in (_GROW, _SHRINK, _LONGEST_STEP))
    losses: list[float] = []
    for _ in range(max_iter + 1):
        loss, gradients = function(blocks)
        losses.append(float(loss))
        if loss < best_loss:
            best[:], best_loss = point, loss
        if _finished(losses, gradients, tol, enough):
            return IRpropResult(_blocks(best, start), tuple(losses), "converged")
        rose = len(losses) > 1 and losses[-1] > losses[-2]
        for x, gradient, state in zip(parts, gradients, states, strict=True):
            move_by_signs(x, gradient.reshape(-1), state, factors, rose)
    return IRpropResult(_blocks(best, start), tuple(losses), "max_iter")


def _blocks(point: np.ndarray, like: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Windows on a vector, shaped as the arrays it was joined from."""
    ends = np.cumsum([array.size for array in like])[:-1]
    parts = np.split(point, ends)
    return [part.reshape(array.shape) for part, array in zip(parts, like, strict=True)]


def _finished(
    losses: list[float], gradients: Sequence[np.ndarray], tol: float, enough: float
) -> bool:
    stalled = len(losses) > 1 and 0 < losses[-2] - losses[-1] < tol
    return stalled or losses[-1] < enough or all(np.abs(g).max() < tol for g in gradients)
