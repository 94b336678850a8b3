"""Algorithm 2 over blocks of rows: the client's part, which holds nothing that grows with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from dask.delayed import Delayed

from viewmend.backend.threads import serial_blas
from viewmend.callbacks.notify import reason_to_stop
from viewmend.core.agfti.alignment import align_products
from viewmend.core.agfti.fusion import BestResponse, Fusion, Game, fuse
from viewmend.core.agfti.graph_fourier import Shrunk, shrink_waves
from viewmend.core.agfti.objective import RoundSums, anchor_loss, named_terms
from viewmend.core.agfti.propagation import LabelSums, anchor_labels, inverse_roots
from viewmend.core.agfti.state import Round, has_converged
from viewmend.distributed import blocks as tasks
from viewmend.distributed.blocks import GlobalState, SharedProblem
from viewmend.distributed.fourier import shrunk_by_columns
from viewmend.distributed.rows import DaskRows


@dataclass
class BlockState:
    """Where Algorithm 2 stands, at the start of a round: ``Z`` is imputed and nothing fused."""

    blocks: list[Delayed]  # of `viewmend.distributed.blocks.RowBlock`
    W: list[Delayed]  # of arrays (n_views, n_rows, n_anchors)
    current: GlobalState
    answered: dict[str, Any]  # what Algorithm 1 was told at the weights it starts from
    history: tuple[Round, ...]


@dataclass(frozen=True, eq=False)
class BlockResult:
    """The end of Algorithm 2; see `viewmend.core.agfti.state.Result`."""

    blocks: list[Delayed]
    current: GlobalState
    status: str
    history: tuple[Round, ...]


def solve_blocks(
    start: BlockState | list[Delayed],
    common: SharedProblem,
    sizes: tuple[int, ...],
    stopping: tuple[int, float],
    runner: DaskRows,
    callbacks: Iterable[Callable[..., bool | str | None]] = (),
    keep: Callable[[BlockState], BlockState] = lambda state: state,
) -> BlockResult:
    """Run Algorithm 2, as `viewmend.core.solve`, until ``stopping``: (max_iter, tol).

    It starts from a state, or from blocks that have ``Z`` alone; ``sizes`` are their rows.
    Callbacks see a `BlockState` after each round. ``keep`` may save the state between two rounds,
    and let the next go on from what it saved.
    """
    max_iter, tol = stopping
    with serial_blas():
        state = start if isinstance(start, BlockState) else _initialise(start, common, runner)
        status, done = None, state.blocks
        while status is None and len(state.history) < max_iter:
            runner.round = len(state.history) + 1
            done, current, state = _round(state, common, sizes, runner)
            stop = reason_to_stop(callbacks, state.history[-1], state)
            status = "converged" if has_converged(state.history, tol) else stop
            if status is None and len(state.history) < max_iter:
                state = keep(state)
        return BlockResult(done, current, status or "max_iter", state.history)


def _initialise(blocks: list[Delayed], common: SharedProblem, runner: DaskRows) -> BlockState:
    """Start of Algorithm 2 and of its first round."""
    n_views, _, n_anchors = common.problem.Z.shape
    T = np.stack([np.eye(n_anchors, dtype=common.dtype)] * n_views)
    current = GlobalState(np.full(n_views, 1 / n_views), T, None, None, common.problem.eta)
    blocks, sums = runner.both(tasks.settle, blocks, shared=(common, current))
    Q, scaled_Q = anchor_labels_of(sums, common)
    current = replace(current, Q=Q, scaled_Q=scaled_Q)
    blocks, _ = runner.both(tasks.spread, blocks, [None] * len(blocks), shared=(common, current))
    pending = runner.start(tasks.begin, blocks, shared=(common, current), n_results=2)
    blocks, W = pending.results
    return BlockState(blocks, W, current, pending.sums(), ())


def _round(
    state: BlockState, common: SharedProblem, sizes: tuple[int, ...], runner: DaskRows
) -> tuple[list[Delayed], GlobalState, BlockState]:
    """One round: its blocks, what the client knows at its end, and the state of the next."""
    before, W = state.current, state.W
    fusion, agreed = _fuse(state, common, runner)
    current = replace(before, alpha=fusion.alpha)
    blocks, settled = runner.both(tasks.settle, state.blocks, shared=(common, current))
    Q, scaled_Q = anchor_labels_of(settled, common)
    current = replace(current, Q=Q, scaled_Q=scaled_Q)
    blocks, spread = runner.both(tasks.spread, blocks, W, shared=(common, current))
    shrunk, G, norm_G = _shrink(blocks, W, (common, current), sizes, spread, runner)
    if common.aligns:
        T, agreed = align_products(settled["products"].astype(common.dtype))
        current = replace(current, T=T)
    pending = runner.start(
        tasks.advance, blocks, W, G, shared=(common, current, shrunk), n_results=2
    )
    # Room for the next W as soon as a block of this one is used.
    state.W = W = G = []
    opened = pending.sums()
    sums = RoundSums(agreed, float(opened["along_W"]), float(opened["squared_gap"]))
    gain = float(spread["gain"]) - anchor_loss(Q, common.problem.B_anchors)
    sizes_of_terms = gain, float(settled["squares"]), norm_G
    terms = named_terms(common.problem, current.alpha, current.eta, sums, sizes_of_terms)
    done = _report(state, current, fusion, float(spread["change_F"]), terms, sums.squared_gap)
    later = replace(current, eta=common.later_eta(current.eta))
    next_blocks, next_W = pending.results
    history = (*state.history, done)
    return blocks, current, BlockState(next_blocks, next_W, later, opened, history)


def _report(
    state: BlockState,
    current: GlobalState,
    fusion: Fusion,
    change_F: float,
    terms: dict[str, float],
    squared_gap: float,
) -> Round:
    """What a round did, as `viewmend.core` tells it."""
    before = state.current
    return Round(
        iteration=len(state.history) + 1,
        change_F=change_F,
        change_Q=float(np.abs(current.Q - before.Q).max()),
        change_alpha=float(np.abs(current.alpha - before.alpha).max()),
        alpha=tuple(float(a) for a in current.alpha),
        objective=terms,
        primal_residual=squared_gap**0.5,
        inner=fusion.steps,
    )


def _fuse(state: BlockState, common: SharedProblem, runner: DaskRows) -> tuple[Fusion, np.ndarray]:
    """Algorithm 1: its weights, and ``<P, A_v>`` at them. ``P`` stays with the rows."""
    problem = common.problem
    nothing = np.empty((0, problem.Z.shape[2]), dtype=common.dtype)
    known = {state.current.alpha.tobytes(): state.answered}

    def evaluate(_game: Game, alpha: np.ndarray) -> BestResponse:
        if alpha.tobytes() not in known:
            shared = common, replace(state.current, alpha=alpha)
            known[alpha.tobytes()] = runner.sums(
                tasks.evaluate_weights, state.blocks, shared=shared
            )
        sums = known[alpha.tobytes()]
        cost, size = float(sums["cost"]), float(sums["size"])
        return BestResponse(alpha, nothing, cost, size, sums["agreements"], sums["spread"])

    game = Game(nothing, nothing, problem.lam, problem.beta)
    fusion = fuse(game, state.current.alpha, problem.inner_tol, problem.inner_max_iter, evaluate)
    # How far P moved would take both graphs of a step in one place.
    steps = tuple(replace(step, P_error=math.nan) for step in fusion.steps)
    return replace(fusion, steps=steps), known[fusion.alpha.tobytes()]["agreements"]


def anchor_labels_of(sums: dict[str, Any], common: SharedProblem) -> tuple[np.ndarray, np.ndarray]:
    """``Q`` and ``Lambda^{-1/2} Q`` from the sums over all blocks."""
    names = ("degrees", "gram", "pulled")
    label_sums = LabelSums(*(sums[name].astype(common.dtype) for name in names))
    Q = anchor_labels(label_sums, common.problem.B_anchors)
    return Q, inverse_roots(label_sums.degrees)[:, None] * Q


def _shrink(
    blocks: list[Delayed],
    W: list[Delayed],
    shared: tuple[SharedProblem, GlobalState],
    sizes: tuple[int, ...],
    sums: dict[str, Any],
    runner: DaskRows,
) -> tuple[Shrunk | None, list[Any], float]:
    """The tensor step: what every block needs to make ``G``, or ``G`` itself; its norm."""
    common, current = shared
    tau = common.problem.rho / current.eta
    if common.waves is not None:
        scale = sum(sizes) ** -0.5
        Y_hat = sums["Y_hat"].astype(common.dtype)
        shrunk = shrink_waves(Y_hat, sums["gram_Y"], tau * scale)
        return shrunk, [None] * len(blocks), float(scale * shrunk.norm)
    Y = runner.lazy(tasks.shifted_graphs, blocks, W, shared=shared)
    G, norm = runner.computed("shrink", *shrunk_by_columns(Y, sizes, common.problem.Z, tau))
    return None, G, norm
