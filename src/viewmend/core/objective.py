"""The augmented Lagrangian of Algorithm 2, term by term (Eq. augmented_proposed)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from viewmend.backend import dispatch
from viewmend.backend.namespace import Array
from viewmend.core.propagation import anchor_scale
from viewmend.core.state import Problem, State

__all__ = [
    "Sums",
    "anchor_loss",
    "named_terms",
    "objective_terms",
    "propagation_gain",
    "sample_gain",
]


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
    gain = propagation_gain(state.F, state.Q, state.P, problem)
    squares = float(dispatch.inners([(state.P, state.P)])[0])
    return named_terms(problem, state.alpha, eta, sums, (gain, squares, float(state.norm_G)))


def named_terms(
    problem: Problem,
    alpha: np.ndarray,
    eta: float,
    sums: Sums,
    sizes: tuple[float, float, float],
) -> dict[str, float]:
    """`objective_terms` from ``R(F, Q)``, ``|P|^2`` and the norm of ``G``, the ``sizes``."""
    gain, squares, norm_G = sizes
    return {
        "propagation": gain,
        "fusion": problem.lam * float(alpha**2 @ sums.agreed),
        "smoothing": -problem.beta * squares,
        "low_rank": -problem.rho * norm_G,
        "multiplier": -sums.along_W,
        "penalty": -0.5 * eta * sums.squared_gap,
    }


def propagation_gain(F: Array, Q: Array, P: Array, problem: Problem) -> float:
    """``R = 2 tr(F^T P Lambda^{-1/2} Q) + 2 tr(F^T B Y) - tr((I + B) (F F^T + Q Q^T))``."""
    gain = sample_gain(F, P, anchor_scale(P)[:, None] * Q, problem)
    return gain - anchor_loss(Q, problem.B_anchors)


def sample_gain(F: Array, P: Array, scaled_Q: Array, problem: Problem) -> float:
    """The part of ``R`` that is a sum over the samples; ``scaled_Q`` is ``Lambda^{-1/2} Q``."""
    B_n, spread = problem.B_samples[:, None], dispatch.multiply(P, scaled_Q)
    smooth, fit, size = dispatch.inners([(F, spread), (F * B_n, 2 * problem.Y - F), (F, F)])
    return float(2 * smooth + fit - size)


def anchor_loss(Q: Array, B_anchors: Array) -> float:
    """The rest of ``R``, ``tr((I + B) Q Q^T)``."""
    return float(dispatch.inners([((1 + B_anchors[:, None]) * Q, Q)])[0])
