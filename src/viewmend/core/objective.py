"""The augmented Lagrangian of Algorithm 2, term by term (Eq. augmented_proposed)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from viewmend.backend import dispatch
from viewmend.backend.namespace import Array
from viewmend.core.propagation import anchor_scale
from viewmend.core.state import Problem, State

__all__ = ["Sums", "objective_terms", "propagation_gain"]


@dataclass(frozen=True, eq=False)
class Sums:
    """What the updates of a round sum over all entries on their way.

    Attributes
    ----------
    agreed : array (n_views,)
        ``<P, Z_v T_v>``.
    along_W, squared_gap : float
        ``<W, Z - G>`` and ``|Z - G|^2``, of the multiplier before it rises.
    """

    agreed: np.ndarray
    along_W: float
    squared_gap: float


def objective_terms(state: State, problem: Problem, eta: float, sums: Sums) -> dict[str, float]:
    """Every term of ``J`` by name, with its sign, so that ``J`` is their sum.

    ``propagation``: ``R(F, Q)``; ``fusion``: ``lam sum_v alpha_v^2 <P, Z_v T_v>``; ``smoothing``:
    ``-beta |P|^2``; ``low_rank``: ``-rho |G|_tnn``; ``multiplier``: ``-<W, Z - G>``; ``penalty``:
    ``-eta/2 |Z - G|^2``.
    """
    return {
        "propagation": propagation_gain(state.F, state.Q, state.P, problem),
        "fusion": problem.lam * float(state.alpha**2 @ sums.agreed),
        "smoothing": -problem.beta * float(dispatch.inners([(state.P, state.P)])[0]),
        "low_rank": -problem.rho * float(state.norm_G),
        "multiplier": -sums.along_W,
        "penalty": -0.5 * eta * sums.squared_gap,
    }


def propagation_gain(F: Array, Q: Array, P: Array, problem: Problem) -> float:
    """``R = 2 tr(F^T P Lambda^{-1/2} Q) + 2 tr(F^T B Y) - tr((I + B) (F F^T + Q Q^T))``."""
    B_n, B_m = problem.B_samples[:, None], problem.B_anchors[:, None]
    spread = dispatch.multiply(P, anchor_scale(P)[:, None] * Q)
    smooth, fit, size_F, size_Q = dispatch.inners(
        [(F, spread), (F * B_n, 2 * problem.Y - F), (F, F), ((1 + B_m) * Q, Q)]
    )
    return float(2 * smooth + fit - size_F - size_Q)
