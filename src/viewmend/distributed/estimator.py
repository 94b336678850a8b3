"""`AGFTIClassifier` over Dask collections: words here, blocks in the rest of the package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.delayed import delayed

from viewmend.core import Problem, Result
from viewmend.core.agfti.induction import Induction
from viewmend.core.common.class_shares import class_weights
from viewmend.core.common.content_order import row_hashes
from viewmend.data.labels import Labels, check_class_prior, check_labels
from viewmend.distributed import blocks as tasks
from viewmend.distributed.blocks import Frame
from viewmend.distributed.checkpoint import BlockCheckpoint
from viewmend.distributed.final import FinalLabels, held_out_labels, spread_finally
from viewmend.distributed.geometry import BlockGeometry, Reading, geometry_of_blocks
from viewmend.distributed.inputs import Chunks, as_chunks, is_lazy
from viewmend.distributed.sampling import Sample, Survey, gather_sample, survey_chunks
from viewmend.distributed.solver import BlockResult, BlockState, solve_blocks
from viewmend.distributed.stages import Runner
from viewmend.exceptions import CheckpointError, InvalidParameterError

__all__ = ["fit_blocks"]

# Samples that anchors are drawn from, unless Dask's configuration names another number.
SAMPLE_ROWS = 30_000

# Values of parameters that a fit over blocks can follow.
POSSIBLE = {
    "compat": (None,),
    "ablation": (None,),
    "device": (None,),
    "calibration": ("leave_one_out", None),
}

# Parameters that change no round.
AFTER_ROUNDS = {"calibration", "class_prior", "final_damping", "max_iter", "n_jobs", "tol"}
AFTER_ROUNDS |= {"verbose", "view_sizes"}


@dataclass(frozen=True, eq=False)
class _Given:
    """What a fit is given: checked rows in chunks, labels, and who runs the tasks."""

    chunks: Chunks
    labels: Labels
    codes: np.ndarray
    sample: Sample
    survey: Survey
    runner: Runner


def fit_blocks(model: Any, X: Any, y: Any, mask: Any) -> None:
    """Fit an `AGFTIClassifier` on Dask collections; see `viewmend.distributed.DaskMixin`.

    Parameters
    ----------
    model : AGFTIClassifier
    X, mask
        As in `viewmend.distributed.inputs.lazy_views`.
    y : array (n_samples,), in memory or of Dask
        Labels as in a fit in memory.
    """
    _check_parameters(model)
    given = _look(model, X, y, mask)
    sampled = Labels(given.labels.classes, given.sample.codes.astype(np.int64))
    geometry = model._geometry(given.sample.data, sampled)
    rows, start, keep = _start(model, given, geometry)
    frame = _frame(model, model._make_problem(geometry, sampled), rows.waves)
    stopping = model.max_iter, model.tol
    watchers, sizes = model._all_callbacks(), given.chunks.sizes
    result = solve_blocks(start, frame, sizes, stopping, given.runner, watchers, keep)
    damping = model.propagation_damping if model.final_damping is None else model.final_damping
    final_frame = _damped(model, frame, damping)
    final = spread_finally(result.blocks, final_frame, given.runner)
    _store_graphs(model, given, result, final)
    model.anchors_ = rows.anchors
    model._induction = Induction(
        rows.anchors,
        geometry.n_neighbors,
        frame.problem.lam,
        frame.problem.beta,
        result.small.alpha,
        result.small.T,
        final.scaled_Q,
    )
    _store_labels(model, given, result, final, final_frame)


def _check_parameters(model: Any) -> None:
    for name, values in POSSIBLE.items():
        if getattr(model, name) not in values:
            allowed = " or ".join(map(repr, values))
            msg = (
                f"{name} must be {allowed} where the views are Dask collections, got "
                f"{getattr(model, name)!r}; set {name}={values[0]!r}, or fit on arrays in memory"
            )
            raise InvalidParameterError(msg)
    for callback in model._all_callbacks():
        if hasattr(callback, "starting_point"):
            msg = (
                f"{type(callback).__name__} keeps rounds that are in the memory of one process; "
                f"where the views are Dask collections, use viewmend.distributed.BlockCheckpoint"
            )
            raise InvalidParameterError(msg)


def _look(model: Any, X: Any, y: Any, mask: Any) -> _Given:
    """Check everything once, and gather the sample."""
    chunks = as_chunks(X, mask, model.view_sizes, np.dtype(model.dtype))
    labels = check_labels(dask.compute(y)[0] if is_lazy(y) else y, chunks.n_samples)
    check_class_prior(model.class_prior, labels)
    model.classes_, model.view_names_ = labels.classes, chunks.layout.names
    model.view_n_features_ = chunks.layout.n_features
    model.n_features_in_ = sum(chunks.layout.n_features)
    runner = Runner(_watch(model))
    size = int(dask.config.get("viewmend.sample-rows", SAMPLE_ROWS))
    survey = survey_chunks(chunks, size, runner)
    # In as few bytes as the classes allow, because they travel with the tasks.
    codes = labels.codes.astype(np.min_scalar_type(-labels.n_classes))
    sample = gather_sample(chunks, codes, survey, size, runner)
    return _Given(chunks, labels, codes, sample, survey, runner)


def _watch(model: Any) -> Callable[[str, int, int], None] | None:
    """Who is told of blocks, as one callable."""
    told = [c.on_blocks for c in model._all_callbacks() if hasattr(c, "on_blocks")]

    def watch(stage: str, done: int, total: int) -> None:
        for tell in told:
            tell(stage, done, total)

    return watch if told else None


def _start(
    model: Any, given: _Given, geometry: Any
) -> tuple[BlockGeometry, Any, Callable[[BlockState], BlockState]]:
    """The geometry of all rows, blocks or a state to start from, and what keeps rounds."""
    callbacks, runner, n_blocks = model._all_callbacks(), given.runner, len(given.chunks.sizes)
    checkpoint = next((c for c in callbacks if isinstance(c, BlockCheckpoint)), None)
    fingerprint = _fingerprint(model, given)
    kept = None if checkpoint is None else checkpoint.found(fingerprint, n_blocks, runner)
    start: Any
    if kept is not None:
        _check_rounds_left(kept.state, model.max_iter)
        for callback in (c for c in callbacks if hasattr(c, "on_resume")):
            callback.on_resume(kept.state.history)
        rows, start = _geometry_from(kept.arrays, len(geometry.anchors)), kept.state
    else:
        reading = Reading(given.chunks.layout, model.normalize)
        choices = reading, model.anchor_method, np.random.default_rng(model.random_state)
        rows = geometry_of_blocks(
            given.chunks, given.codes, given.sample, geometry, choices, runner
        )
        start = rows.blocks
    if checkpoint is None:
        return rows, start, lambda state: state
    return rows, start, checkpoint.keeper(fingerprint, _geometry_arrays(rows), runner)


def _check_rounds_left(state: BlockState, max_iter: int) -> None:
    n_rounds = len(state.history)
    if n_rounds >= max_iter:
        msg = (
            f"the checkpoint holds {n_rounds} rounds, but max_iter is {max_iter}; rounds cannot "
            f"be taken back; raise max_iter, or delete the folder and fit anew"
        )
        raise CheckpointError(msg)


def _fingerprint(model: Any, given: _Given) -> dict[str, Any]:
    """What tells a fit from another one: all that its rounds depend on."""
    parameters = {
        name: repr(value)
        for name, value in model.get_params(deep=False).items()
        if name not in AFTER_ROUNDS
    }
    # Of one row: the order counts.
    (labels,) = row_hashes(given.labels.codes[None, :])
    return {
        "views": given.survey.content,
        "labels": int(labels),
        "chunks": list(given.chunks.sizes),
        "parameters": parameters,
    }


def _geometry_arrays(rows: BlockGeometry) -> dict[str, np.ndarray]:
    arrays = {f"anchors {v}": anchors_v for v, anchors_v in enumerate(rows.anchors)}
    if rows.waves is not None:
        arrays["waves"] = rows.waves
    return arrays


def _geometry_from(arrays: dict[str, np.ndarray], n_views: int) -> BlockGeometry:
    anchors = tuple(arrays[f"anchors {v}"] for v in range(n_views))
    return BlockGeometry([], anchors, arrays.get("waves"))


def _frame(model: Any, problem: Problem, waves: np.ndarray | None) -> Frame:
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
    frame = Frame(problem, problem.B_samples, problem.Y.shape[1], waves)
    return _damped(model, frame, model.propagation_damping)


def _damped(model: Any, frame: Frame, damping: Any) -> Frame:
    """The frame with other diagonals of ``B``."""
    B_samples, B_anchors = model._damped(damping, np.array([False, True]), frame.problem.Z)
    return replace(frame, B_samples=B_samples, problem=replace(frame.problem, B_anchors=B_anchors))


def _store_graphs(model: Any, given: _Given, result: BlockResult, final: FinalLabels) -> None:
    """Graphs as Dask arrays whose blocks stay where they are."""
    n_views, n_anchors = result.small.T.shape[:2]
    dtype, pairs = result.small.T.dtype, list(zip(result.blocks, given.chunks.sizes, strict=True))
    P = [
        da.from_delayed(delayed(tasks.fused_rows)(block), (size, n_anchors), dtype=dtype)
        for block, size in pairs
    ]
    Z = [
        da.from_delayed(delayed(tasks.view_rows)(block), (n_views, size, n_anchors), dtype=dtype)
        for block, size in pairs
    ]
    small = result.small
    model._store(
        Result(
            F=final.F,
            Q=final.Q,
            P=da.concatenate(P),
            T=small.T,
            alpha=small.alpha,
            Z=da.concatenate(Z, axis=1),
            n_iter=len(result.history),
            status=result.status,
            history=result.history,
        )
    )


def _store_labels(
    model: Any, given: _Given, result: BlockResult, final: FinalLabels, frame: Frame
) -> None:
    """Labels of the samples, weighted to meet the class shares and calibrated."""
    labels, prior = given.labels, check_class_prior(model.class_prior, given.labels)
    soft = np.where(final.reachable[:, None], final.F, 0)
    model._class_weights = 1.0 if prior is None else class_weights(soft, prior)
    model.observed_ = final.observed

    def hold_out() -> tuple[np.ndarray, np.ndarray]:
        labelled = np.flatnonzero(labels.labelled)
        if frame.waves is not None:
            # The order of the content, in which a fit in memory looks at them.
            order = np.lexsort((labels.codes[labelled], given.sample.labelled_hashes))
            labelled = labelled[order]
        F, growth, codes = held_out_labels(
            result,
            given.chunks.starts,
            (labelled, labels.codes[labelled]),
            final,
            frame,
            given.runner,
        )
        return (F if prior is None else F * growth * model._class_weights), codes

    model._store_trusted(
        soft * model._class_weights, labels, final.reachable, {"leave_one_out": hold_out}
    )
