"""Algorithm 2: AGF-TI by the alternating direction method of multipliers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from viewmend.backend import dispatch
from viewmend.backend.namespace import Array, array_namespace, fetched
from viewmend.backend.threads import for_each, serial_blas
from viewmend.callbacks.notify import reason_to_stop
from viewmend.core.agfti import released
from viewmend.core.agfti.alignment import align_anchors, keep_anchors
from viewmend.core.agfti.fusion import NOT_FINITE, Fusion, Game, aligned_graphs, best_response, fuse
from viewmend.core.agfti.graph_fourier import prox_graph_norm
from viewmend.core.agfti.objective import RoundSums, gain_of, named_terms, objective_sums
from viewmend.core.agfti.propagation import propagate_labels, soft_label_distances
from viewmend.core.agfti.state import (
    InnerStep,
    Problem,
    Progress,
    Result,
    Round,
    State,
    has_converged,
)
from viewmend.core.agfti.tensor_nuclear import prox_tnn

# Called after each round with what the round did and the live state; True, or a word for the
# status, stops the solver.
Callback = Callable[[Round, State], bool | str | None]


@dataclass(frozen=True)
class Steps:
    """The updates of Algorithm 2 that have more than one version.

    Attributes
    ----------
    imputed : (Z_v, aim) -> rows on the simplex
        For the missing rows of ``Z_v``; ``aim`` are the arguments of `dispatch.aim_rows`.
    fuse : (game, state, problem) -> Fusion
    shrink : (Y, tau, out) -> (G, norm of G)
    align : (Z, P, T) -> (T, <P, Z_v T_v> of every view)
    rotate : (Z, T, out) -> A
        Graphs over the fused anchors, ``Z_v T_v``.
    rotate_back : (P, T_v) -> rows
        Rows of ``P`` over the anchors of a view, ``P T_v^T``.
    impute : bool
        Whether missing rows of ``Z`` are updated at all.
    """

    imputed: Callable[[Array, tuple[Any, ...]], Array]
    fuse: Callable[[Array, State, Problem], Fusion]
    shrink: Callable[[Array, float, Array], tuple[Array, Array]]
    align: Callable[[Array, Array, Array], tuple[Array, Array]]
    rotate: Callable[[Array, Array, Array], Array]
    rotate_back: Callable[[Array, Array], Array]
    impute: bool = True


def solve(
    problem: Problem,
    *,
    max_iter: int = 30,
    tol: float = 1e-4,
    compat: str | None = None,
    callbacks: Iterable[Callback] = (),
    start: Progress | None = None,
) -> Result:
    """Run Algorithm 2, in the library of the problem's arrays and on their device.

    On a device the host sees numbers of size ``V``, for the weights, and scalars of the report.

    Parameters
    ----------
    problem : Problem
    max_iter : int
    tol : float
        Converged when no entry of ``F``, ``Q`` and ``alpha`` changed by ``tol`` or more in a round
        after the first.
    compat : None or "released"
        None: the paper. "released": the authors' code, see `viewmend.core.agfti.released`, which
        has no graph Fourier basis.
    callbacks : iterable of callable
        Each is called as ``callback(round, state)`` after a round; a true answer stops the run.
    start : Progress, optional
        Rounds of an earlier run to go on from, as if it had not ended; their arrays are changed.

    Returns
    -------
    Result
    """
    with serial_blas():
        start = Progress(initialise(problem), ()) if start is None else start
        return _run(problem, steps_for(problem, compat), max_iter, tol, tuple(callbacks), start)


def _run(
    problem: Problem,
    steps: Steps,
    max_iter: int,
    tol: float,
    callbacks: tuple[Callback, ...],
    start: Progress,
) -> Result:
    """The rounds of Algorithm 2."""
    state, history = start.state, list(start.history)
    status = _converged(history, tol)
    while status is None and len(history) < max_iter:
        old = state.F, state.Q, state.alpha, state.eta
        impute_graphs(state, problem, steps)
        inner = fuse_graphs(state, problem, steps)
        # G, the labels and T do not depend on each other. G comes first: a GPU works on it for
        # long, and meanwhile the host sends the many small tasks of the labels and the report.
        shrink_graphs(state, problem, steps)
        state.F, state.Q = _propagate(state.P, problem)
        gap = ascend_multiplier(state, problem, steps)
        sums = objective_sums(state, problem), gap, *_changes(state, *old[:2])
        state.T, agreed = steps.align(state.Z, state.P, state.T)
        history.append(_round(len(history) + 1, state, problem, old, inner, (agreed, *sums)))
        stop = reason_to_stop(callbacks, history[-1], state)
        status = _converged(history, tol) or stop
    return _result(state, status or "max_iter", history)


def initialise(problem: Problem) -> State:
    """Start of Algorithm 2: ``T_v = I``, equal weights, ``W = 0``, and ``P`` with ``H = 0``."""
    xp = array_namespace(problem.Z, problem.Y)
    n_views, n_samples, n_anchors = problem.Z.shape
    like = {"dtype": problem.Z.dtype, "device": problem.Z.device}
    Z = xp.asarray(problem.Z, copy=True)
    T = xp.stack([xp.eye(n_anchors, **like)] * n_views)
    alpha = np.full(n_views, 1 / n_views)
    no_H = xp.zeros((n_samples, n_anchors), **like)
    # T is the identity and no label is known yet, so the graphs are aligned as they are.
    P = best_response(Game(Z, no_H, problem.lam, problem.beta), alpha)
    F, Q = _propagate(P, problem)
    G = xp.zeros_like(Z) if problem.G is None else xp.asarray(problem.G, copy=True)
    return State(Z, P, alpha, F, Q, T, G, xp.zeros_like(Z), problem.eta)


def impute_graphs(state: State, problem: Problem, steps: Steps) -> None:
    """Missing rows of ``Z_v``: projection of ``G_v - (W_v - lam alpha_v^2 P T_v^T) / eta``.

    The transpose stands in Eq. (Z_v2) and is lost in Eq. (update_Z_v).
    """

    # Observed rows are data and never change; the missing ones are written in place.
    def impute(missing: tuple[int, Array]) -> None:
        v, rows = missing
        Z_v, G_v, W_v, T_v = (array[v, ...] for array in (state.Z, state.G, state.W, state.T))
        weight = problem.lam * float(state.alpha[v]) ** 2
        pull = steps.rotate_back(state.P[rows], T_v)
        Z_v[rows] = steps.imputed(Z_v, (G_v, W_v, rows, pull, weight, state.eta))

    if steps.impute:
        for_each(impute, problem.missing_rows, array_namespace(state.Z))


def fuse_graphs(state: State, problem: Problem, steps: Steps) -> tuple[InnerStep, ...]:
    """``alpha`` and ``P``: Algorithm 1 on the aligned graphs (Eq. min_max_problem); its steps."""
    # Nothing reads G until the tensor step writes it anew: the aligned graphs may use its memory.
    A = steps.rotate(state.Z, state.T, state.G if steps.impute else None)
    fusion = steps.fuse(A, state, problem)
    state.P, state.alpha = fusion.P, fusion.alpha
    return fusion.steps


def shrink_graphs(state: State, problem: Problem, steps: Steps) -> None:
    """``G``: proximal step of the tensor norm at ``Z + W / eta`` (Eq. update_G1)."""
    if steps.impute:
        # One array for all: G held the aligned graphs, then holds Y, then the new G.
        Y = dispatch.shifted(state.Z, state.W, 1 / state.eta, out=state.G)
        state.G, state.norm_G = steps.shrink(Y, problem.rho / state.eta, Y)


def ascend_multiplier(state: State, problem: Problem, steps: Steps) -> Array:
    """``W += eta (Z - G)``, then ``eta`` grows; ``<W, Z - G>`` of the old ``W``, ``|Z - G|^2``."""
    # Without imputation Z stays as it is, and there is no constraint Z = G to enforce.
    eta = state.eta if steps.impute else 0.0
    state.W, gap = dispatch.ascend(state.W, state.Z, state.G, eta, out=state.W)
    if steps.impute:
        state.eta = min(problem.eta_growth * state.eta, problem.eta_max)
    return gap


def fuse_adversarially(A: Array, state: State, problem: Problem) -> Fusion:
    """Algorithm 1 from the weights of the last round."""
    game = _game(A, state, problem)
    # The old P was needed for the soft-label distances only; its memory is free from here.
    state.P = None
    return fuse(game, state.alpha, problem.inner_tol, problem.inner_max_iter)


def fuse_with_fixed_weights(A: Array, state: State, problem: Problem) -> Fusion:
    """The ablation "without alpha": only ``P`` moves."""
    return Fusion(best_response(_game(A, state, problem), state.alpha), state.alpha, ())


def _propagate(P: Array, problem: Problem) -> tuple[Array, Array]:
    return propagate_labels(P, problem.Y, problem.B_samples, problem.B_anchors)


def _converged(history: list[Round], tol: float) -> str | None:
    return "converged" if has_converged(history, tol) else None


def _game(A: Array, state: State, problem: Problem) -> Game:
    H = soft_label_distances(state.F, state.Q, state.P)
    return Game(A, H, problem.lam, problem.beta)


PAPER = Steps(
    imputed=lambda _Z_v, aim: dispatch.imputed_rows(*aim),
    fuse=fuse_adversarially,
    shrink=prox_tnn,
    align=lambda Z, P, _T: align_anchors(Z, P),
    rotate=aligned_graphs,
    rotate_back=lambda P, T_v: P @ T_v.T,
)
RELEASED = replace(
    PAPER,
    imputed=released.imputed_rows,
    fuse=released.fuse,
    shrink=released.prox_tnn,
)
COMPATIBILITY: dict[str | None, Steps] = {None: PAPER, "released": RELEASED}

_ABLATED: dict[str, dict[str, object]] = {
    "alignment": {
        "align": keep_anchors,
        "rotate": lambda Z, _T, _out: Z,
        "rotate_back": lambda P, _T_v: P,
    },
    "weights": {"fuse": fuse_with_fixed_weights},
    "imputation": {"impute": False},
}


def steps_for(problem: Problem, compat: str | None = None) -> Steps:
    """The versions of the updates that a problem asks for."""
    steps = COMPATIBILITY[compat]
    if problem.U is not None:
        if compat is not None:
            msg = f"compat={compat!r} has no graph Fourier basis, got U; pass U=None"
            raise ValueError(msg)
        steps = replace(steps, shrink=partial(prox_graph_norm, problem.U))
    for part in problem.without:
        steps = replace(steps, **_ABLATED[part])  # type: ignore[arg-type]
    return steps


def _round(
    iteration: int,
    state: State,
    problem: Problem,
    old: tuple[Array, Array, np.ndarray, float],
    inner: tuple[InnerStep, ...],
    sums: tuple[Array, ...],
) -> Round:
    """What a round did, of which all numbers leave a device in one transfer."""
    _, _, alpha_old, eta = old
    moved = [step.P_error for step in inner]
    on_device = [*sums, state.norm_G, *moved]
    agreed, terms, gap, change_F, change_Q, norm_G, *errors = fetched(on_device)
    # On PyTorch the solver of the labels reports failure by NaN, without a wait for the GPU.
    if not np.isfinite(change_F):
        raise FloatingPointError(NOT_FINITE)
    gain, (anchors, squares) = gain_of(terms[:3]), terms[3:]
    sizes = gain - float(anchors), float(squares), float(norm_G)
    return Round(
        iteration=iteration,
        change_F=float(change_F),
        change_Q=float(change_Q),
        change_alpha=float(np.abs(state.alpha - alpha_old).max()),
        alpha=tuple(float(a) for a in state.alpha),
        objective=named_terms(problem, state.alpha, eta, RoundSums(agreed, *gap.tolist()), sizes),
        primal_residual=float(gap[1]) ** 0.5,
        inner=tuple(
            replace(step, P_error=float(error)) for step, error in zip(inner, errors, strict=True)
        ),
    )


def _changes(state: State, F_old: Array, Q_old: Array) -> tuple[Array, Array]:
    """Largest absolute changes of ``F`` and of ``Q``, where they are."""
    xp = array_namespace(state.F)
    return xp.max(xp.abs(state.F - F_old)), xp.max(xp.abs(state.Q - Q_old))


def _result(state: State, status: str, history: list[Round]) -> Result:
    return Result(
        F=state.F,
        Q=state.Q,
        P=state.P,
        T=state.T,
        alpha=state.alpha,
        Z=state.Z,
        n_iter=len(history),
        status=status,
        history=tuple(history),
    )
