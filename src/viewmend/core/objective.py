"""The augmented Lagrangian of Algorithm 2, term by term (Eq. augmented_proposed)."""

from __future__ import annotations

from viewmend.backend import dispatch
from viewmend.backend.namespace import Array, array_namespace
from viewmend.core.fusion import aligned_graphs, weighted_graph
from viewmend.core.propagation import anchor_scale
from viewmend.core.state import Problem, State

__all__ = ["objective_terms", "primal_residual", "propagation_gain"]


def objective_terms(state: State, problem: Problem) -> dict[str, float]:
    """Every term of ``J`` by name, with its sign, so that ``J`` is their sum.

    ``propagation``: ``R(F, Q)``; ``fusion``: ``lam sum_v alpha_v^2 <P, Z_v T_v>``; ``smoothing``:
    ``-beta |P|^2``; ``low_rank``: ``-rho |G|_tnn``; ``multiplier``: ``-<W, Z - G>``; ``penalty``:
    ``-eta/2 |Z - G|^2``.
    """
    fused = weighted_graph(aligned_graphs(state.Z, state.T), state.alpha)
    gap = state.Z - state.G
    return {
        "propagation": propagation_gain(state.F, state.Q, state.P, problem),
        "fusion": problem.lam * dispatch.inner(state.P, fused),
        "smoothing": -problem.beta * dispatch.inner(state.P, state.P),
        "low_rank": -problem.rho * state.norm_G,
        "multiplier": -_inner_3d(state.W, gap),
        "penalty": -0.5 * state.eta * _inner_3d(gap, gap),
    }


def propagation_gain(F: Array, Q: Array, P: Array, problem: Problem) -> float:
    """``R = 2 tr(F^T P Lambda^{-1/2} Q) + 2 tr(F^T B Y) - tr((I + B) (F F^T + Q Q^T))``."""
    B_n, B_m = problem.B_samples[:, None], problem.B_anchors[:, None]
    smooth = 2 * dispatch.inner(F, P @ (anchor_scale(P)[:, None] * Q))
    fit = dispatch.inner(F * B_n, 2 * problem.Y - F) - dispatch.inner(F, F)
    return smooth + fit - dispatch.inner((1 + B_m) * Q, Q)


def primal_residual(state: State) -> float:
    """``|Z - G|_F``."""
    gap = state.Z - state.G
    return float(_inner_3d(gap, gap) ** 0.5)


def _inner_3d(A: Array, B: Array) -> float:
    xp = array_namespace(A)
    flat = (-1, A.shape[-1])
    return dispatch.inner(xp.reshape(A, flat), xp.reshape(B, flat))
