"""Algorithm 2 on one block of rows: what a worker does between two sums over all blocks.

Every formula is one of `viewmend.core`, called with some rows instead of all of them. A round
passes over the blocks as often as it needs sums of them::

    evaluate_weights   sums of Algorithm 1 for weights alpha (per Newton step after the first)
    settle             P for the final weights; sums for Q, T and G
    advance            F, G, W; Z of the next round; sums of Algorithm 1 at its first weights

Between rounds a block keeps ``Z``, ``P``, ``F`` and, apart because it is large, ``W``. Graphs are
packed, because rows on the simplex are mostly zeros and blocks wait on disk.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import csr_array

from viewmend.core import Problem, State
from viewmend.core.agfti.fusion import aligned_graphs, best_response, evaluate
from viewmend.core.agfti.graph_fourier import Shrunk, restored, summed_graph, wave_sums
from viewmend.core.agfti.held_out import rows_without_labels
from viewmend.core.agfti.objective import largest_change, sample_sums
from viewmend.core.agfti.propagation import label_sums, sample_labels
from viewmend.core.agfti.steps import (
    Steps,
    ascend_multiplier,
    first_graph,
    fusion_game,
    impute_graphs,
    shifted_graphs,
    steps_for,
)
from viewmend.distributed.waves import wave_rows

Sums = dict[str, Any]
# What Algorithm 1 is told at the weights it asks for.
RESPONSE = ("cost", "size", "agreements", "spread")
# The matrix, dense or sparse, and the shape of the array it was made of.
Packed = tuple[np.ndarray | csr_array, tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Some rows of what `viewmend.core.State` holds of all of them."""

    observed: np.ndarray  # (n_rows, n_views) of bool
    codes: np.ndarray  # (n_rows,): position of the label of a row, -1 without one
    Z: Packed  # (n_views, n_rows, n_anchors)
    P: Any = None  # packed (n_rows, n_anchors), None before the first answer
    F: Any = None  # (n_rows, n_classes), None before the first labels


@dataclass(frozen=True, eq=False)
class SharedProblem:
    """What all blocks share and no round changes."""

    problem: Problem  # without rows: constants alone
    B_samples: np.ndarray  # (2,): of rows without and with a label
    n_classes: int
    # Basis (n_anchors, n_frequencies) of the waves of the tensor step; None for the Fourier
    # transform along the rows.
    waves: Any

    @property
    def steps(self) -> Steps:
        """The versions of the updates; but that of the tensor step is `waves`."""
        return steps_for(self.problem)

    @property
    def dtype(self) -> DTypeLike:
        return self.problem.Z.dtype

    def problem_of(self, block: RowBlock) -> Problem:
        """The problem of some rows."""
        return replace(
            self.problem,
            Z=unpack(block.Z),
            Y=(block.codes[:, None] == np.arange(self.n_classes)).astype(self.dtype),
            observed=block.observed,
            B_samples=self.B_samples[(block.codes >= 0).astype(int)],
        )


@dataclass(frozen=True, eq=False)
class GlobalState:
    """What the client tells every block, and holds itself: nothing grows with the samples."""

    alpha: np.ndarray  # (n_views,)
    T: np.ndarray  # (n_views, n_anchors, n_anchors)
    Q: Any  # (n_anchors, n_classes)
    scaled_Q: Any  # Lambda^{-1/2} Q, of the same shape
    eta: float


Shared = tuple[SharedProblem, GlobalState]


def pack(array: np.ndarray) -> Packed:
    """An array (..., n_columns) as a matrix, sparse where that is smaller."""
    matrix = array.reshape(-1, array.shape[-1])
    sparse = csr_array(matrix)
    smaller = sparse.data.nbytes + sparse.indices.nbytes < matrix.nbytes
    return (sparse if smaller else matrix), array.shape


def unpack(packed: Packed) -> np.ndarray:
    """The array again; not to be written to."""
    matrix, shape = packed
    dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    return dense.reshape(shape)


def packed_arrays(name: str, packed: Packed) -> dict[str, np.ndarray]:
    """Plain arrays for a file, under names that begin with ``name``."""
    matrix, shape = packed
    of_shape = {f"{name}.shape": np.array(shape)}
    if isinstance(matrix, np.ndarray):
        return of_shape | {f"{name}.dense": matrix}
    parts = {part: getattr(matrix, part) for part in ("data", "indices", "indptr")}
    return of_shape | {f"{name}.{part}": array for part, array in parts.items()}


def unpacked_arrays(name: str, arrays: dict[str, np.ndarray]) -> Packed:
    """What `packed_arrays` was given."""
    shape = tuple(int(size) for size in arrays[f"{name}.shape"])
    if f"{name}.dense" in arrays:
        return arrays[f"{name}.dense"], shape
    parts = tuple(arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    matrix = csr_array(parts, shape=(int(np.prod(shape[:-1])), shape[-1]))
    # Compiled code follows the indices unchecked.
    matrix.check_format(full_check=True)
    return matrix, shape


def start_graph(block: RowBlock, shared: Shared) -> tuple[RowBlock, Sums]:
    """``P`` to start from, and the sums that ``Q`` needs of it."""
    common, current = shared
    problem = common.problem_of(block)
    P = first_graph(problem.Z, current.alpha, problem)
    return replace(block, P=pack(P)), _label_sums(P, problem)


def begin(block: RowBlock, shared: Shared) -> tuple[RowBlock, np.ndarray, Sums]:
    """Start of the first round: ``F``, ``W = 0``, and ``G`` is zero or the start of ``Z``."""
    common, current = shared
    problem = common.problem_of(block)
    state = _state_of(block, problem.Z, np.zeros_like(problem.Z), current)
    _spread(state, block, problem, current)
    state.G = state.W if common.waves is None else problem.Z
    return _open_round(block, problem, state, shared)


def evaluate_weights(block: RowBlock, shared: Shared) -> Sums:
    """The sums that Algorithm 1 asks for at the weights ``alpha``."""
    return _answered(_state_of(block, unpack(block.Z), None, shared[1]), shared)


def settle(block: RowBlock, W: np.ndarray | None, shared: Shared) -> tuple[RowBlock, Sums]:
    """``P`` for the weights ``alpha``, and the sums that ``Q``, ``T`` and ``G`` need.

    ``W`` is given where ``G`` needs no more than sums.
    """
    common, current = shared
    problem = common.problem_of(block)
    state, sums = _state_of(block, problem.Z, W, current), {}
    if W is not None:
        Y_sums = wave_sums(_waves_of(problem, common), shifted_graphs(state))
        sums["Y_hat"], sums["gram_Y"] = Y_sums
    game = fusion_game(state, current.scaled_Q, problem, common.steps)
    P = best_response(game, current.alpha)
    sums["products"] = common.steps.products(problem.Z, P)
    return replace(block, P=pack(P)), _in_double(sums) | _label_sums(P, problem)


def shifted_rows(block: RowBlock, W: np.ndarray, shared: Shared) -> np.ndarray:
    """``Z + W / eta``, (n_views, n_rows, n_anchors)."""
    return shifted_graphs(_state_of(block, unpack(block.Z), W, shared[1]))


def advance(
    block: RowBlock,
    W: np.ndarray,
    G: np.ndarray | None,
    shared: tuple[SharedProblem, GlobalState, Any],
) -> tuple[RowBlock, np.ndarray, Sums]:
    """End of a round and start of the next: ``F``, ``G``, ``W``, then missing rows of ``Z``.

    ``G`` is given where the tensor step is a transform along the rows, and made here from what
    the waves tell otherwise.
    """
    common, current, shrunk = shared
    problem = common.problem_of(block)
    state = _state_of(block, problem.Z, W, current)
    _spread(state, block, problem, current)
    sums = {
        "of_samples": sample_sums(state.F, state.P, current.scaled_Q, problem),
        "change_F": largest_change(state.F, block.F),
    }
    state.G = _shrunk_rows(state, problem, common, shrunk) if G is None else G
    sums["gap"] = ascend_multiplier(state, problem, common.steps)
    block, W, answered = _open_round(block, problem, state, (common, current))
    return block, W, answered | _in_double(sums)


def final_sums(block: RowBlock, common: SharedProblem) -> Sums:
    """What the labels to give out need of the finished graph, and which anchors it joins."""
    P = unpack(block.P)
    touched = (P > 0).astype(np.float32)
    sums = {"labelled": touched[block.codes >= 0], "free": P[block.codes < 0]}
    sums = {name: rows.sum(axis=0) for name, rows in sums.items()}
    of_labels = _label_sums(P, common.problem_of(block))
    return _in_double(sums) | of_labels | {"joined": touched.T @ touched > 0}


def final_labels(
    block: RowBlock, shared: tuple[SharedProblem, np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``F`` to give out, which rows a label reaches through ``reached`` anchors, ``observed``."""
    common, scaled_Q, reached = shared
    problem, P = common.problem_of(block), unpack(block.P)
    F = sample_labels(P, problem.Y, problem.B_samples, scaled_Q)
    return F, (P[:, reached] > 0).any(axis=1) | (block.codes >= 0), block.observed


def held_rows(block: RowBlock, rows: np.ndarray, shared: Shared) -> tuple[np.ndarray, np.ndarray]:
    """Rows of ``P``, and what they would be without labels, both in double precision."""
    common, current = shared
    T, problem = current.T.astype(np.float64), common.problem
    A = aligned_graphs(unpack(block.Z)[:, rows].astype(np.float64), T)
    unlabelled = rows_without_labels(
        A, block.observed[rows], current.alpha, problem.lam, problem.beta
    )
    return unpack(block.P)[rows].astype(np.float64), unlabelled


def fused_rows(block: RowBlock) -> np.ndarray:
    """``P``, (n_rows, n_anchors)."""
    return unpack(block.P)


def view_rows(block: RowBlock) -> np.ndarray:
    """``Z``, (n_views, n_rows, n_anchors)."""
    return unpack(block.Z)


def _state_of(block: RowBlock, Z: np.ndarray, W: np.ndarray | None, current: GlobalState) -> State:
    """The variables of some rows, with ``F`` of the last round and neither ``P`` nor ``G``."""
    told = current.alpha, block.F, current.Q, current.T
    return State(Z, None, *told, None, W, current.eta)


def _spread(state: State, block: RowBlock, problem: Problem, current: GlobalState) -> None:
    """``F`` from the ``P`` of the block and the labels of the anchors."""
    state.P = unpack(block.P)
    state.F = sample_labels(state.P, problem.Y, problem.B_samples, current.scaled_Q)


def _shrunk_rows(
    state: State, problem: Problem, common: SharedProblem, shrunk: Shrunk
) -> np.ndarray:
    """``G`` of some rows from what the waves tell."""
    Y = shifted_graphs(state)
    return restored(_waves_of(problem, common), Y, shrunk, out=Y)


def _open_round(
    block: RowBlock, problem: Problem, state: State, shared: Shared
) -> tuple[RowBlock, np.ndarray, Sums]:
    """Missing rows of ``Z`` (Eq. update_Z_v), and the first answer of Algorithm 1 to them."""
    state.Z = state.Z.copy()
    impute_graphs(state, problem, shared[0].steps)
    # Its memory may be that of W or of another task.
    state.G = None
    return replace(block, Z=pack(state.Z), F=state.F), state.W, _answered(state, shared)


def _answered(state: State, shared: Shared) -> Sums:
    """What Algorithm 1 is told by some rows at the weights ``alpha``."""
    common, current = shared
    game = fusion_game(state, current.scaled_Q, common.problem, common.steps)
    response = evaluate(game, current.alpha)
    return {name: getattr(response, name) for name in RESPONSE}


def _label_sums(P: np.ndarray, problem: Problem) -> Sums:
    return _in_double(vars(label_sums(P, problem.Y, problem.B_samples)))


def _waves_of(problem: Problem, common: SharedProblem) -> np.ndarray:
    """Rows of ``U``, in the precision of the graphs."""
    N = summed_graph(problem.Z, problem.observed)
    return wave_rows(N, common.waves.astype(N.dtype, copy=False))


def _in_double(sums: Sums) -> Sums:
    """Sums of blocks are added in double precision."""
    return {name: np.asarray(value, dtype=np.float64) for name, value in sums.items()}
