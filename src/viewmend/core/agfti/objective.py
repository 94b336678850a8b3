"""The augmented Lagrangian of Algorithm 2, term by term (Eq. augmented_proposed)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from viewmend.backend import dispatch
from viewmend.backend.namespace import Array, to_numpy
from viewmend.core.agfti.propagation import anchor_scale
from viewmend.core.agfti.state import Problem, State


@dataclass(frozen=True, eq=False)
class RoundSums:
    """Sums over all entries that the updates of a round compute anyway.

    ``agreed`` (n_views,) are ``<P, Z_v T_v>``, ``along_W`` and ``squared_gap`` are ``<W, Z - G>``
    and ``|Z - G|^2``, of the multiplier before it rises.
    """

    agreed: np.ndarray
    along_W: float
    squared_gap: float


def named_terms(
    problem: Problem,
    alpha: np.ndarray,
    eta: float,
    sums: RoundSums,
    sizes: tuple[float, float, float],
) -> dict[str, float]:
    """Every term of ``J`` by name, with its sign, so that ``J`` is their sum.

    ``propagation``: ``R(F, Q) = 2 tr(F^T P Lambda^{-1/2} Q) + 2 tr(F^T B Y) - tr((I + B) (F F^T +
    Q Q^T))``; ``fusion``: ``lam sum_v alpha_v^2 <P, Z_v T_v>``; ``smoothing``: ``-beta |P|^2``;
    ``low_rank``: ``-rho |G|_tnn``; ``multiplier``: ``-<W, Z - G>``; ``penalty``:
    ``-eta/2 |Z - G|^2``. The ``sizes`` are ``R(F, Q)``, ``|P|^2`` and the norm of ``G``.
    """
    gain, squares, norm_G = sizes
    return {
        "propagation": gain,
        "fusion": problem.lam * float(alpha**2 @ sums.agreed),
        "smoothing": -problem.beta * squares,
        "low_rank": -problem.rho * norm_G,
        "multiplier": -sums.along_W,
        "penalty": -0.5 * eta * sums.squared_gap,
    }


def objective_sums(state: State, problem: Problem) -> Array:
    """The sums that the terms need and no update computes, (5,), on the device of the arrays.

    Three sums of `gain_of`, the loss of the anchors and ``|P|^2``.
    """
    # One kernel call on the device; the host fetches them with the other numbers of a round.
    F, Q, P = state.F, state.Q, state.P
    of_samples = _sample_pairs(F, P, anchor_scale(P)[:, None] * Q, problem)
    return dispatch.inners([*of_samples, _anchor_pair(Q, problem.B_anchors), (P, P)])


def gain_of(sums: np.ndarray) -> float:
    """The part of ``R`` that is a sum over the samples, from its three sums."""
    smooth, fit, size = sums
    return float(2 * smooth + fit - size)


def sample_gain(F: Array, P: Array, scaled_Q: Array, problem: Problem) -> float:
    """`gain_of` of some samples; ``scaled_Q`` is ``Lambda^{-1/2} Q``."""
    return gain_of(to_numpy(dispatch.inners(_sample_pairs(F, P, scaled_Q, problem))))


def anchor_loss(Q: Array, B_anchors: Array) -> float:
    """The rest of ``R``, ``tr((I + B) Q Q^T)``."""
    return float(dispatch.inners([_anchor_pair(Q, B_anchors)])[0])


def _sample_pairs(
    F: Array, P: Array, scaled_Q: Array, problem: Problem
) -> list[tuple[Array, Array]]:
    """Their products add up to ``tr(F^T P Lambda^{-1/2} Q)``, ``tr(F^T B (2Y - F))``, ``|F|^2``."""
    # 2 tr(F^T B Y) - tr(F^T B F) in one pass, as <B F, 2 Y - F>.
    B_n = problem.B_samples[:, None]
    return [(F, dispatch.multiply(P, scaled_Q)), (F * B_n, 2 * problem.Y - F), (F, F)]


def _anchor_pair(Q: Array, B_anchors: Array) -> tuple[Array, Array]:
    return (1 + B_anchors[:, None]) * Q, Q
