"""Algorithm 2 on one block of rows: what a worker does between two sums over all blocks.

Every formula is one of `viewmend.core`, called with some rows instead of all of them. A round
passes over the blocks as often as it needs sums of them::

    evaluate_weights   sums of Algorithm 1 for weights alpha (per Newton step after the first)
    settle             P for the final weights; sums for Q and T
    spread             F; sums of the tensor step
    advance            G, W; Z of the next round; sums of Algorithm 1 at its first weights

Between rounds a block keeps ``Z``, ``P``, ``F`` and, apart because it is large, ``W``. Graphs are
packed, because rows on the simplex are mostly zeros and blocks wait on disk.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import csr_array

from viewmend.backend import dispatch
from viewmend.core import Problem, State
from viewmend.core.agfti.admm import impute_graphs, steps_for
from viewmend.core.agfti.fusion import BestResponse, Game, aligned_graphs, best_response, evaluate
from viewmend.core.agfti.graph_fourier import restored, summed_graph, wave_sums
from viewmend.core.agfti.held_out import rows_without_labels
from viewmend.core.agfti.objective import sample_gain
from viewmend.core.agfti.propagation import label_distances, label_sums, sample_labels
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
    def aligns(self) -> bool:
        return "alignment" not in self.problem.without

    @property
    def dtype(self) -> DTypeLike:
        return self.problem.Z.dtype

    def later_eta(self, eta: float) -> float:
        """The penalty of the next round."""
        return min(self.problem.eta_growth * eta, self.problem.eta_max)

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


def begin(block: RowBlock, shared: Shared) -> tuple[RowBlock, np.ndarray, Sums]:
    """Start of the first round: ``W = 0``, and ``G`` is zero or the start of ``Z``."""
    problem = shared[0].problem_of(block)
    W = np.zeros_like(problem.Z)
    G = W if shared[0].waves is None else problem.Z
    block, sums = _open_round(block, problem, (G, W), shared)
    return block, W, sums


def evaluate_weights(block: RowBlock, shared: Shared) -> Sums:
    """The sums that Algorithm 1 asks for at the weights ``alpha``."""
    common, current = shared
    return _response_sums(evaluate(_game(block, unpack(block.Z), common, current), current.alpha))


def settle(block: RowBlock, shared: Shared) -> tuple[RowBlock, Sums]:
    """``P`` for the weights ``alpha``, and the sums that ``Q`` and ``T`` need of it."""
    common, current = shared
    problem = common.problem_of(block)
    P = best_response(_game(block, problem.Z, common, current), current.alpha)
    sums = vars(label_sums(P, problem.Y, problem.B_samples)).copy()
    sums["squares"] = dispatch.inners([(P, P)])[0]
    if common.aligns:
        sums["products"] = dispatch.cross_products(problem.Z, P)
    return replace(block, P=pack(P)), _in_double(sums)


def spread(block: RowBlock, W: np.ndarray | None, shared: Shared) -> tuple[RowBlock, Sums]:
    """``F`` from ``Q``; and the sums of the tensor step, where it needs no more than sums."""
    common, current = shared
    problem, P = common.problem_of(block), unpack(block.P)
    F = sample_labels(P, problem.Y, problem.B_samples, current.scaled_Q)
    F_old = np.zeros_like(F) if block.F is None else block.F
    sums: Sums = {
        "change_F": np.abs(F - F_old).max(initial=0.0),
        "gain": sample_gain(F, P, current.scaled_Q, problem),
    }
    if common.waves is not None and W is not None:
        Y = dispatch.shifted(problem.Z, W, 1 / current.eta)
        sums["Y_hat"], sums["gram_Y"] = wave_sums(_waves_of(problem, common), Y)
    return replace(block, F=F), _in_double(sums)


def shifted_graphs(block: RowBlock, W: np.ndarray, shared: Shared) -> np.ndarray:
    """``Z + W / eta``, from where the tensor step starts."""
    return dispatch.shifted(unpack(block.Z), W, 1 / shared[1].eta)


def advance(
    block: RowBlock,
    W: np.ndarray,
    G: np.ndarray | None,
    shared: tuple[SharedProblem, GlobalState, Any],
) -> tuple[RowBlock, np.ndarray, Sums]:
    """End of a round and start of the next: ``G``, ``W``, then missing rows of ``Z``.

    ``G`` is given where the tensor step is a transform along the rows, and made here from what
    the waves tell otherwise.
    """
    common, current, shrunk = shared
    problem = common.problem_of(block)
    Z = problem.Z
    if G is None:
        U = _waves_of(problem, common)
        Y = dispatch.shifted(Z, W, 1 / current.eta)
        G = restored(U, Y, shrunk, out=Y)
    W, (along_W, squared_gap) = dispatch.ascend(W, Z, G, current.eta)
    later = replace(current, eta=common.later_eta(current.eta))
    block, sums = _open_round(block, problem, (G, W), (common, later))
    return block, W, sums | {"along_W": along_W, "squared_gap": squared_gap}


def final_sums(block: RowBlock, common: SharedProblem) -> Sums:
    """What the labels to give out need of the finished graph, and which anchors it joins."""
    problem, P = common.problem_of(block), unpack(block.P)
    touched = (P > 0).astype(np.float32)
    sums = vars(label_sums(P, problem.Y, problem.B_samples)).copy()
    sums["joined"] = touched.T @ touched > 0
    sums["labelled"] = touched[block.codes >= 0].sum(axis=0)
    sums["free"] = P[block.codes < 0].sum(axis=0)
    return _in_double(sums)


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


def _open_round(
    block: RowBlock,
    problem: Problem,
    tensors: tuple[np.ndarray, np.ndarray],
    shared: Shared,
) -> tuple[RowBlock, Sums]:
    """Missing rows of ``Z`` (Eq. update_Z_v), and the first answer of Algorithm 1 to them."""
    common, current = shared
    Z, P = problem.Z.copy(), unpack(block.P)
    state = State(Z, P, current.alpha, block.F, current.Q, current.T, *tensors, current.eta)
    impute_graphs(state, problem, steps_for(common.problem))
    response = evaluate(_game(block, Z, common, current), current.alpha)
    return replace(block, Z=pack(Z)), _response_sums(response)


def _game(block: RowBlock, Z: np.ndarray, common: SharedProblem, current: GlobalState) -> Game:
    """Algorithm 1 on some rows; before the first labels, with ``H = 0``."""
    problem = common.problem
    A = steps_for(problem).rotate(Z, current.T, None)
    if block.P is None:
        H = np.zeros(Z.shape[1:], dtype=Z.dtype)
    else:
        H = label_distances(block.F, current.scaled_Q)
    return Game(A, H, problem.lam, problem.beta)


def _response_sums(response: BestResponse) -> Sums:
    return {name: getattr(response, name) for name in RESPONSE}


def _waves_of(problem: Problem, common: SharedProblem) -> np.ndarray:
    """Rows of ``U``, in the precision of the graphs."""
    N = summed_graph(problem.Z, problem.observed)
    return wave_rows(N, common.waves.astype(N.dtype, copy=False))


def _in_double(sums: Sums) -> Sums:
    """Sums of blocks are added in double precision."""
    return {
        name: value if np.asarray(value).dtype == bool else np.asarray(value, dtype=np.float64)
        for name, value in sums.items()
    }
