"""The augmented Lagrangian of Algorithm 2, term by term (Eq. augmented_proposed)."""

from __future__ import annotations

from viewmend.backend import dispatch
from viewmend.backend.namespace import Array
from viewmend.core.fusion import agreements, aligned_graphs
from viewmend.core.propagation import anchor_scale
from viewmend.core.state import Problem, State

__all__ = ["objective_terms", "primal_residual", "propagation_gain"]


def objective_terms(state: State, problem: Problem) -> dict[str, float]:
    """Every term of ``J`` by name, with its sign, so that ``J`` is their sum.

    ``propagation``: ``R(F, Q)``; ``fusion``: ``lam sum_v alpha_v^2 <P, Z_v T_v>``; ``smoothing``:
    ``-beta |P|^2``; ``low_rank``: ``-rho |G|_tnn``; ``multiplier``: ``-<W, Z - G>``; ``penalty``:
    ``-eta/2 |Z - G|^2``.
    """
    agreed = agreements(aligned_graphs(state.Z, state.T), state.P)
    along_W, squared_gap = dispatch.gap_products(state.Z, state.G, state.W)
    return {
        "propagation": propagation_gain(state.F, state.Q, state.P, problem),
        "fusion": problem.lam * float(state.alpha**2 @ agreed),
        "smoothing": -problem.beta * dispatch.inner(state.P, state.P),
        "low_rank": -problem.rho * state.norm_G,
        "multiplier": -along_W,
        "penalty": -0.5 * state.eta * squared_gap,
    }


def propagation_gain(F: Array, Q: Array, P: Array, problem: Problem) -> float:
    """``R = 2 tr(F^T P Lambda^{-1/2} Q) + 2 tr(F^T B Y) - tr((I + B) (F F^T + Q Q^T))``."""
    B_n, B_m = problem.B_samples[:, None], problem.B_anchors[:, None]
    smooth = 2 * dispatch.inner(F, P @ (anchor_scale(P)[:, None] * Q))
    fit = dispatch.inner(F * B_n, 2 * problem.Y - F) - dispatch.inner(F, F)
    return smooth + fit - dispatch.inner((1 + B_m) * Q, Q)


def primal_residual(state: State) -> float:
    """``|Z - G|_F``."""
    return float(dispatch.gap_products(state.Z, state.G, state.G)[1] ** 0.5)
