"""AGF-TI over Dask collections: words here, blocks in the rest of the package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.delayed import delayed

from viewmend.callbacks.protocol import Callback
from viewmend.core import Problem, Result
from viewmend.core.agfti.induction import Induction
from viewmend.core.agfti.propagation import damping_diagonals
from viewmend.distributed import blocks as tasks
from viewmend.distributed.blocks import SharedProblem
from viewmend.distributed.callbacks import BlockCheckpoint
from viewmend.distributed.final import FinalLabels, held_out_labels, spread_finally
from viewmend.distributed.geometry import (
    BlockGeometry,
    Reading,
    SampleGeometry,
    geometry_of_blocks,
)
from viewmend.distributed.given import (
    BlockInput,
    BlockRules,
    check_steps_left,
    fingerprint,
    gather_input,
)
from viewmend.distributed.kept_rounds import read_rounds, round_keeper
from viewmend.distributed.sampling import Draw
from viewmend.distributed.solver import BlockResult, BlockState, solve_blocks
from viewmend.protocols import AGFTIParameters, Damping

# Samples that anchors are drawn from, unless Dask's configuration names another number.
SAMPLE_ROWS = 30_000

RULES = BlockRules(
    possible={
        "compat": (None,),
        "ablation": (None,),
        "device": (None,),
        "calibration": ("leave_one_out", None),
    },
    after_rounds=frozenset(
        {
            *("calibration", "class_prior", "final_damping", "max_iter", "n_jobs", "tol"),
            *("verbose", "view_sizes"),
        }
    ),
    steps="rounds",
    limit="max_iter",
)


@dataclass(frozen=True, eq=False)
class BlockFit:
    """What a fit over blocks found."""

    # In the order of the data; ``P`` and ``Z`` are Dask arrays whose blocks stay where they are,
    # ``F`` and ``Q`` those of the labels that are given out.
    result: Result
    induction: Induction
    reachable: np.ndarray  # (n_samples,) of bool
    observed: np.ndarray  # (n_samples, n_views) of bool
    # Gives soft labels (n_held_out, n_classes) of labelled samples without their own label, by how
    # much the weights of the classes grow for the lack of it, and their codes.
    held_out: Callable[[], tuple[np.ndarray, np.ndarray, np.ndarray]]


def gather_blocks(
    parameters: AGFTIParameters, X: Any, y: Any, mask: Any, callbacks: Sequence[Callback]
) -> BlockInput:
    """Check everything once, and gather the sample that anchors are drawn from.

    Parameters as in `gather_input`.
    """
    size = int(dask.config.get("viewmend.sample-rows", SAMPLE_ROWS))
    return gather_input(parameters, (X, y, mask, None), callbacks, RULES, Draw(size))


def fit_blocks(
    parameters: AGFTIParameters,
    given: BlockInput,
    geometry: SampleGeometry,
    problem: Problem,
    callbacks: Sequence[Callback],
) -> BlockFit:
    """Algorithm 2 over blocks of rows, and the labels that are given out.

    Geometry and problem are those of the sample.
    """
    rows, start, keep = _start(parameters, given, geometry, callbacks)
    common = _shared_problem(parameters, problem, rows.waves)
    stopping = parameters.max_iter, parameters.tol
    sizes, runner = given.chunks.sizes, given.runner
    result = solve_blocks(start, common, sizes, stopping, runner, callbacks, keep)
    if parameters.final_damping is not None:
        common = _damped(parameters, common, parameters.final_damping)
    final = spread_finally(result.blocks, common, runner)
    for_new = Induction(
        rows.anchors,
        geometry.n_neighbors,
        common.problem.lam,
        common.problem.beta,
        result.current.alpha,
        result.current.T,
        final.scaled_Q,
    )
    return BlockFit(
        _gathered_result(given, result, final),
        for_new,
        final.reachable,
        final.observed,
        partial(_held_out, given, result, final, common),
    )


def _start(
    parameters: AGFTIParameters,
    given: BlockInput,
    geometry: SampleGeometry,
    callbacks: Sequence[Callback],
) -> tuple[BlockGeometry, BlockState | list[Any], Callable[[BlockState], BlockState]]:
    """The geometry of all rows, blocks or a state to start from, and what keeps rounds."""
    runner, n_blocks = given.runner, len(given.chunks.sizes)
    checkpoint = next((c for c in callbacks if isinstance(c, BlockCheckpoint)), None)
    told_by = fingerprint(parameters, given, RULES)
    saved = None if checkpoint is None else read_rounds(checkpoint, told_by, n_blocks, runner)
    start: BlockState | list[Any]
    if saved is not None:
        check_steps_left(parameters, len(saved.state.history), parameters.max_iter, RULES)
        for callback in callbacks:
            if hasattr(callback, "on_resume"):
                callback.on_resume(saved.state.history)
        rows, start = _geometry_from(saved.arrays, len(geometry.anchors)), saved.state
    else:
        reading = Reading(given.chunks.layout, parameters.normalize)
        rng = np.random.default_rng(parameters.random_state)
        choices = reading, parameters.anchor_method, rng
        samples = given.chunks, given.codes, given.sample
        rows = geometry_of_blocks(*samples, geometry, choices, runner)
        start = rows.blocks
    if checkpoint is None:
        return rows, start, lambda state: state
    return rows, start, round_keeper(checkpoint, told_by, _geometry_arrays(rows), runner)


def _geometry_arrays(rows: BlockGeometry) -> dict[str, np.ndarray]:
    arrays = {f"anchors {v}": anchors_v for v, anchors_v in enumerate(rows.anchors)}
    if rows.waves is not None:
        arrays["waves"] = rows.waves
    return arrays


def _geometry_from(arrays: dict[str, np.ndarray], n_views: int) -> BlockGeometry:
    anchors = tuple(arrays[f"anchors {v}"] for v in range(n_views))
    return BlockGeometry([], anchors, arrays.get("waves"))


def _shared_problem(
    parameters: AGFTIParameters, problem: Problem, waves: np.ndarray | None
) -> SharedProblem:
    """What all blocks share, from the problem of the sample."""
    none = slice(0, 0)
    problem = replace(
        problem,
        Z=problem.Z[:, none],
        Y=problem.Y[none],
        observed=problem.observed[none],
        B_samples=problem.B_samples[none],
        U=None,
        G=None,
    )
    common = SharedProblem(problem, problem.B_samples, problem.Y.shape[1], waves)
    return _damped(parameters, common, parameters.propagation_damping)


def _damped(parameters: AGFTIParameters, common: SharedProblem, damping: Damping) -> SharedProblem:
    """The same with other diagonals of ``B``."""
    B_samples, B_anchors = damping_diagonals(
        parameters.label_strength, damping, np.array([False, True]), common.problem.Z
    )
    problem = replace(common.problem, B_anchors=B_anchors)
    return replace(common, B_samples=B_samples, problem=problem)


def _gathered_result(given: BlockInput, result: BlockResult, final: FinalLabels) -> Result:
    """The end of Algorithm 2, with graphs as Dask arrays whose blocks stay where they are."""
    current = result.current
    n_views, n_anchors = current.T.shape[:2]
    pairs = list(zip(result.blocks, given.chunks.sizes, strict=True))
    dtype = current.T.dtype
    P = [
        da.from_delayed(delayed(tasks.fused_rows)(block), (size, n_anchors), dtype=dtype)
        for block, size in pairs
    ]
    Z = [
        da.from_delayed(delayed(tasks.view_rows)(block), (n_views, size, n_anchors), dtype=dtype)
        for block, size in pairs
    ]
    return Result(
        F=final.F,
        Q=final.Q,
        P=da.concatenate(P),
        T=current.T,
        alpha=current.alpha,
        Z=da.concatenate(Z, axis=1),
        n_iter=len(result.history),
        status=result.status,
        history=result.history,
    )


def _held_out(
    given: BlockInput, result: BlockResult, final: FinalLabels, common: SharedProblem
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    labels = given.labels
    labelled = np.flatnonzero(labels.labelled)
    if common.waves is not None:
        # The order of the content, in which a fit in memory looks at them.
        order = np.lexsort((labels.codes[labelled], given.sample.labelled_hashes))
        labelled = labelled[order]
    pairs = labelled, labels.codes[labelled]
    return held_out_labels(result, given.chunks.starts, pairs, final, common, given.runner)
