"""Algorithm 2 over blocks of rows: the client's part, which holds nothing that grows with them.

The loop is that of `viewmend.core.agfti.admm`. Here are its steps, as passes over the blocks and
what the client makes of their sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from dask.delayed import Delayed

from viewmend.backend.threads import serial_blas
from viewmend.core.agfti.admm import run_rounds
from viewmend.core.agfti.fusion import BestResponse, Fusion, Game, fuse
from viewmend.core.agfti.graph_fourier import shrink_waves
from viewmend.core.agfti.objective import RoundSums, anchor_loss, largest_change
from viewmend.core.agfti.propagation import LabelSums, anchor_labels
from viewmend.core.agfti.state import Round
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

    @property
    def alpha(self) -> np.ndarray:
        """View weights (n_views,)."""
        return self.current.alpha

    @property
    def eta(self) -> float:
        """The penalty."""
        return self.current.eta


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
    with serial_blas():
        state = start if isinstance(start, BlockState) else _initialise(start, common, runner)
        rounds = RoundsOverBlocks(state, common, sizes, runner, keep)
        status = run_rounds(rounds, common.problem, stopping, tuple(callbacks))
        return BlockResult(rounds.done, rounds.state.current, status, rounds.history)


def _initialise(blocks: list[Delayed], common: SharedProblem, runner: DaskRows) -> BlockState:
    """Start of Algorithm 2 and of its first round."""
    n_views, _, n_anchors = common.problem.Z.shape
    T = np.stack([np.eye(n_anchors, dtype=common.dtype)] * n_views)
    current = GlobalState(np.full(n_views, 1 / n_views), T, None, None, common.problem.eta)
    runner.round = 1
    blocks, sums = runner.both(tasks.start_graph, blocks, shared=(common, current))
    Q, scaled_Q = anchor_labels_of(sums, common)
    current = replace(current, Q=Q, scaled_Q=scaled_Q)
    pending = runner.start(tasks.begin, blocks, shared=(common, current), n_results=2)
    blocks, W = pending.results
    return BlockState(blocks, W, current, pending.sums(), ())


@dataclass(eq=False)
class RoundsOverBlocks:
    """`viewmend.core.agfti.admm.Rounds` whose rows are in blocks on Dask.

    What needs no sums waits for the next pass: ``F``, ``G`` and ``W`` are made in the pass of the
    ascent, and so are the missing rows of ``Z`` for the next round.
    """

    state: BlockState
    common: SharedProblem
    sizes: tuple[int, ...]
    runner: DaskRows
    keep: Callable[[BlockState], BlockState]
    # Blocks at the end of a round, or what it starts from.
    done: list[Delayed] = field(init=False)
    # What the passes of this round summed, and what it is told by.
    _settled: dict[str, Any] = field(init=False, default_factory=dict)
    _sums: dict[str, Any] = field(init=False, default_factory=dict)
    # The tensor step: what every block needs to make G, and G itself where it is made already.
    _shrunk: tuple[Any, list[Any]] = field(init=False, default=(None, []))

    def __post_init__(self) -> None:
        self.done = self.state.blocks

    @property
    def residual_scale(self) -> float:
        """See `viewmend.core.agfti.admm.Rounds`."""
        return self.common.steps.residual_scale(self.common.problem.Z.shape[0], sum(self.sizes))

    @property
    def history(self) -> tuple[Round, ...]:
        """Rounds that are behind the state."""
        return self.state.history

    @history.setter
    def history(self, history: tuple[Round, ...]) -> None:
        self.state.history = history

    def impute(self, number: int) -> None:
        """Nothing: the last pass imputed them. A state that is new may be kept before its round."""
        if self._sums:
            self.state = self.keep(self.state)
        # Blocks of the last round are needed no more.
        self.done, self.runner.round = self.state.blocks, number

    def fuse(self) -> None:
        """Passes for Algorithm 1, and one for the ``P`` of its weights."""
        fusion = _fuse(self.state, self.common, self.runner)
        self._tell(alpha=fusion.alpha)
        # Where the tensor step is a transform along the rows, this pass can leave W on disk.
        by_waves = self.common.waves is not None
        W: list[Any] = self.state.W if by_waves else [None] * len(self.sizes)
        shared = self.common, self.state.current
        self.done, self._settled = self.runner.both(
            tasks.settle, self.state.blocks, W, shared=shared
        )
        self.state.blocks, self._sums = self.done, {"inner": fusion.steps}

    def shrink(self) -> None:
        """From sums of the waves; or by passes over columns, for a transform along the rows."""
        common, state = self.common, self.state
        tau = common.problem.rho / state.eta
        if common.waves is not None:
            Y_hat = self._settled["Y_hat"].astype(common.dtype)
            shrunk = shrink_waves(Y_hat, self._settled["gram_Y"], tau, sum(self.sizes))
            self._shrunk, norm = (shrunk, [None] * len(self.sizes)), shrunk.norm
        else:
            shared = common, state.current
            Y = self.runner.lazy(tasks.shifted_rows, self.done, state.W, shared=shared)
            G, norm = self.runner.computed(
                "shrink", *shrunk_by_columns(Y, self.sizes, common.problem.Z, tau)
            )
            self._shrunk = None, G
        self._sums["norm_G"] = norm

    def propagate(self) -> None:
        """``Q`` from the sums of the last pass."""
        Q, scaled_Q = anchor_labels_of(self._settled, self.common)
        self._sums["of_anchors"] = anchor_loss(Q, self.common.problem.B_anchors)
        self._sums["change_Q"] = largest_change(Q, self.state.current.Q)
        self._tell(Q=Q, scaled_Q=scaled_Q)

    def align(self) -> None:
        """``T`` from the sums of the last pass."""
        products, T = self._settled["products"], self.state.current.T
        T, self._sums["agreed"] = self.common.steps.align(products, T)
        self._tell(T=T.astype(self.common.dtype, copy=False))

    def ascend(self) -> None:
        """One pass for all that waited for this round's sums, and for the start of the next."""
        state, (shrunk, G) = self.state, self._shrunk
        shared = self.common, state.current, shrunk
        pending = self.runner.start(
            tasks.advance, self.done, state.W, G, shared=shared, n_results=2
        )
        # Room for the next W as soon as a block of this one is used.
        state.W, self._shrunk, G = [], (None, []), []
        opened = pending.sums()
        self._sums |= {name: opened[name] for name in ("of_samples", "change_F", "gap")}
        blocks, W = pending.results
        later = replace(state.current, eta=self.common.problem.later_eta(state.eta))
        self.state = BlockState(blocks, W, later, opened, state.history)

    def sums(self) -> RoundSums:
        """See `Rounds`."""
        return RoundSums(**self._sums)

    def _tell(self, **changes: Any) -> None:
        """What the next pass tells every block."""
        self.state.current = replace(self.state.current, **changes)


def _fuse(state: BlockState, common: SharedProblem, runner: DaskRows) -> Fusion:
    """Algorithm 1: its weights and steps. ``P`` stays with the rows."""
    problem = common.problem
    nothing = np.empty((0, problem.Z.shape[2]), dtype=common.dtype)
    known = {state.alpha.tobytes(): state.answered}

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
    fusion = fuse(game, state.alpha, problem.inner_tol, problem.inner_max_iter, evaluate)
    # How far P moved would take both graphs of a step in one place.
    steps = tuple(replace(step, P_error=math.nan) for step in fusion.steps)
    return replace(fusion, steps=steps)


def anchor_labels_of(sums: dict[str, Any], common: SharedProblem) -> tuple[np.ndarray, np.ndarray]:
    """``Q`` and ``Lambda^{-1/2} Q`` from the sums over all blocks."""
    names = ("degrees", "gram", "pulled")
    label_sums = LabelSums(*(sums[name].astype(common.dtype) for name in names))
    return anchor_labels(label_sums, common.problem.B_anchors)
