"""Algorithm 2: AGF-TI by the alternating direction method of multipliers.

The loop stands here once. `Rounds` says what it asks of the variables; `RoundsInMemory` has them in
the arrays of one process, `viewmend.distributed.solver.RoundsOverBlocks` in blocks of rows on Dask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from viewmend.backend.namespace import array_namespace, fetched
from viewmend.backend.threads import serial_blas
from viewmend.callbacks.notify import reason_to_stop
from viewmend.core.agfti.fusion import NOT_FINITE
from viewmend.core.agfti.objective import (
    RoundSums,
    anchor_loss,
    largest_change,
    named_terms,
    sample_sums,
)
from viewmend.core.agfti.propagation import (
    anchor_labels,
    anchor_scale,
    label_sums,
    propagate_labels,
    sample_labels,
)
from viewmend.core.agfti.state import Problem, Progress, Result, Round, State, has_converged
from viewmend.core.agfti.steps import (
    Steps,
    ascend_multiplier,
    first_graph,
    fusion_game,
    impute_graphs,
    shifted_graphs,
    steps_for,
)

# Called after each round with what the round did and the live state; True, or a word for the
# status, stops the solver.
Callback = Callable[[Round, State], bool | str | None]


class Rounds(Protocol):
    """The variables of Algorithm 2, wherever their rows are. Each of its steps changes some.

    Where rows are in blocks, a step may be done together with another one, in one pass over them.
    """

    history: tuple[Round, ...]

    @property
    def residual_scale(self) -> float:
        """What the stopping test measures ``|Z - G|`` by, see `Steps.residual_scale`."""

    @property
    def state(self) -> Any:
        """What callbacks see of the variables; has ``alpha`` (n_views,) and ``eta``."""

    def impute(self, number: int) -> None:
        """Round ``number`` begins: missing rows of every ``Z_v`` (Eq. update_Z_v)."""

    def fuse(self) -> None:
        """``alpha`` and ``P``: Algorithm 1 on the aligned graphs (Eq. min_max_problem)."""

    def shrink(self) -> None:
        """``G``: proximal step of the tensor norm at ``Z + W / eta`` (Eq. update_G1)."""

    def propagate(self) -> None:
        """``F`` and ``Q``: label propagation on ``P`` (Eq. update_F_Q)."""

    def align(self) -> None:
        """``T_v``: rotations of the anchors of every view to those of ``P`` (Eq. update_T)."""

    def ascend(self) -> None:
        """``W += eta (Z - G)``, then ``eta`` grows."""

    def sums(self) -> RoundSums:
        """The sums for the report of the round."""


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
        after the first, and ``|Z - G|`` is below ``tol`` per row: see `has_converged` for the
        flaw of the paper's rule, which ``compat="released"`` keeps.
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
        steps = steps_for(problem, compat)
        start = Progress(initialise(problem), ()) if start is None else start
        rounds = RoundsInMemory(start, problem, steps)
        status = run_rounds(rounds, problem, (max_iter, tol), tuple(callbacks))
        return rounds.result(status)


def run_rounds(
    rounds: Rounds,
    problem: Problem,
    stopping: tuple[int, float],
    callbacks: tuple[Callable[..., bool | str | None], ...],
) -> str:
    """The rounds of Algorithm 2 until ``stopping``, (max_iter, tol); the status at their end.

    Of the problem, only the constants are read.
    """
    max_iter, tol = stopping
    status = _converged(rounds, tol)
    while status is None and len(rounds.history) < max_iter:
        number, before = len(rounds.history) + 1, (rounds.state.alpha, rounds.state.eta)
        rounds.impute(number)
        rounds.fuse()
        # G, the labels and T do not depend on each other. G comes first: a GPU works on it for
        # long, and meanwhile the host sends the many small tasks of the labels.
        rounds.shrink()
        rounds.propagate()
        rounds.align()
        rounds.ascend()
        told = _told(number, problem, before, rounds.state.alpha, rounds.sums())
        rounds.history = (*rounds.history, told)
        stop = reason_to_stop(callbacks, told, rounds.state)
        status = _converged(rounds, tol) or stop
    return status or "max_iter"


def initialise(problem: Problem) -> State:
    """Start of Algorithm 2: ``T_v = I``, equal weights, ``W = 0``, and ``P`` with ``H = 0``."""
    xp = array_namespace(problem.Z, problem.Y)
    n_views, _, n_anchors = problem.Z.shape
    Z = xp.asarray(problem.Z, copy=True)
    T = xp.stack([xp.eye(n_anchors, dtype=Z.dtype, device=Z.device)] * n_views)
    alpha = np.full(n_views, 1 / n_views)
    P = first_graph(Z, alpha, problem)
    F, Q = propagate_labels(P, problem.Y, problem.B_samples, problem.B_anchors)
    G = xp.zeros_like(Z) if problem.G is None else xp.asarray(problem.G, copy=True)
    return State(Z, P, alpha, F, Q, T, G, xp.zeros_like(Z), problem.eta)


class RoundsInMemory:
    """`Rounds` whose variables are arrays of one library on one device, changed in place."""

    def __init__(self, start: Progress, problem: Problem, steps: Steps) -> None:
        self.state, self.history = start.state, start.history
        self.problem, self.steps = problem, steps
        # Lambda^{-1/2} Q, with the degrees of the P that Q was spread over.
        self.scaled_Q = anchor_scale(self.state.P)[:, None] * self.state.Q
        # What the round is told by, where the arrays are.
        self._sums: dict[str, Any] = {}

    @property
    def residual_scale(self) -> float:
        """See `Rounds`."""
        n_views, n_samples, _ = self.problem.Z.shape
        return self.steps.residual_scale(n_views, n_samples)

    def impute(self, _number: int) -> None:
        """See `Rounds`."""
        impute_graphs(self.state, self.problem, self.steps)

    def fuse(self) -> None:
        """See `Rounds`."""
        game = fusion_game(self.state, self.scaled_Q, self.problem, self.steps)
        fusion = self.steps.fuse(game, self.state, self.problem)
        self.state.P, self.state.alpha = fusion.P, fusion.alpha
        self._sums["inner"] = fusion.steps

    def shrink(self) -> None:
        """See `Rounds`."""
        state = self.state
        if self.steps.impute:
            # One array for all: G held the aligned graphs, then holds Y, then the new G.
            Y = shifted_graphs(state)
            state.G, state.norm_G = self.steps.shrink(Y, self.problem.rho / state.eta, Y)
        self._sums["norm_G"] = state.norm_G

    def propagate(self) -> None:
        """See `Rounds`."""
        state, problem = self.state, self.problem
        sums = label_sums(state.P, problem.Y, problem.B_samples)
        Q, self.scaled_Q = anchor_labels(sums, problem.B_anchors)
        F = sample_labels(state.P, problem.Y, problem.B_samples, self.scaled_Q)
        self._sums |= {
            "of_samples": sample_sums(F, state.P, self.scaled_Q, problem),
            "of_anchors": anchor_loss(Q, problem.B_anchors),
            "change_F": largest_change(F, state.F),
            "change_Q": largest_change(Q, state.Q),
        }
        state.F, state.Q = F, Q

    def align(self) -> None:
        """See `Rounds`."""
        state = self.state
        products = self.steps.products(state.Z, state.P)
        state.T, self._sums["agreed"] = self.steps.align(products, state.T)

    def ascend(self) -> None:
        """See `Rounds`."""
        state = self.state
        self._sums["gap"] = ascend_multiplier(state, self.problem, self.steps, out=state.W)

    def sums(self) -> RoundSums:
        """See `Rounds`; all numbers leave a device in one transfer."""
        inner = self._sums.pop("inner")
        moved = [step.P_error for step in inner]
        numbers = fetched([*self._sums.values(), *moved])
        named = dict(zip(self._sums, numbers, strict=False))
        errors = numbers[len(named) :]
        steps = [replace(s, P_error=float(e)) for s, e in zip(inner, errors, strict=True)]
        return RoundSums(inner=tuple(steps), **named)

    def result(self, status: str) -> Result:
        """The variables at the end of the rounds."""
        of_state = {name: getattr(self.state, name) for name in ("F", "Q", "P", "T", "alpha", "Z")}
        return Result(
            **of_state, n_iter=len(self.history), status=status, history=tuple(self.history)
        )


def _converged(rounds: Rounds, tol: float) -> str | None:
    return "converged" if has_converged(rounds.history, tol, rounds.residual_scale) else None


def _told(
    number: int,
    problem: Problem,
    before: tuple[np.ndarray, float],
    alpha: np.ndarray,
    sums: RoundSums,
) -> Round:
    """What a round did, from the weights and the penalty ``before`` it."""
    # On PyTorch the solver of the labels reports failure by NaN, without a wait for the GPU.
    if not np.isfinite(sums.change_F):
        raise FloatingPointError(NOT_FINITE)
    alpha_old, eta = before
    return Round(
        iteration=number,
        change_F=float(sums.change_F),
        change_Q=float(sums.change_Q),
        change_alpha=float(np.abs(alpha - alpha_old).max()),
        alpha=tuple(float(a) for a in alpha),
        objective=named_terms(problem, alpha, eta, sums),
        primal_residual=float(sums.gap[1]) ** 0.5,
        inner=sums.inner,
    )
