"""Mend over Dask collections: words here, blocks in the rest of the package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Protocol

import dask
import numpy as np

from viewmend.callbacks.protocol import Callback
from viewmend.core.common.content_order import row_hashes
from viewmend.core.common.rows import Column
from viewmend.core.mend.geometry import MendGeometry
from viewmend.core.mend.labelling import Labelling
from viewmend.core.mend.recipe import mend, n_stages
from viewmend.core.mend.samples import MendSamples, reached_samples
from viewmend.core.mend.stage import Mended, MendProgress, MendSettings, StageRecord
from viewmend.data.labels import Labels, check_class_prior
from viewmend.distributed.callbacks import BlockCheckpoint
from viewmend.distributed.given import (
    BlockInput,
    BlockParameters,
    BlockRules,
    check_steps_left,
    fingerprint,
    gather_input,
)
from viewmend.distributed.mend_blocks import SampleGeometry as SampleGeometry
from viewmend.distributed.mend_blocks import samples_in_blocks
from viewmend.distributed.mend_kept import StageKeeper, read_stages
from viewmend.distributed.rows import DaskRows
from viewmend.distributed.sampling import Draw
from viewmend.protocols import ClassPrior, Seed

# Samples of the graph, unless the parameter ``graph_samples`` says another number.
GRAPH_SAMPLES = 20_000
# What a task makes of a block at most, unless Dask's configuration "viewmend.block-bytes" says
# another number: little to any worker. Larger chunks are cut.
BLOCK_BYTES = 2**27
# Of that, bytes of the edges and leverages of a row per view.
EDGE_BYTES = 500


class MendParameters(BlockParameters, Protocol):
    """Parameters that the blocks of a `viewmend.MendClassifier` depend on."""

    graph_samples: int | None
    n_landmarks: int
    random_state: Seed


def check_prior(prior: ClassPrior, labels: Labels) -> None:
    """Refuse class priors that are none; "auto" is one of Mend."""
    if not isinstance(prior, str) or prior != "auto":
        check_class_prior(prior, labels)


def most_rows(parameters: MendParameters, n_views: int) -> int:
    """Rows of a block whose features and edges take as many bytes as they may, in all views."""
    most_bytes = int(dask.config.get("viewmend.block-bytes", BLOCK_BYTES))
    return max(most_bytes // (n_views * (2 * parameters.n_landmarks + EDGE_BYTES)), 1)


RULES = BlockRules(
    possible={"device": (None,)},
    after_rounds=frozenset(
        {"calibration", "class_weight", "n_jobs", "n_rounds", "verbose", "view_sizes"}
    ),
    steps="stages",
    limit="n_rounds",
    check_prior=check_prior,
    most_rows=most_rows,
)

# What rows are compared with travels to every worker once, some tens of megabytes: Dask would warn.
LARGE_GRAPHS = {"distributed.admin.large-graph-warning-threshold": "1GB"}


@dataclass(frozen=True, eq=False)
class BlockFit:
    """What a fit over blocks found: the end of the recipe, on which samples, of which geometry.

    Of all samples, in their order: scores ``P`` (n_samples, n_classes), ``observed`` (n_samples,
    n_views), and whether a path joins them to a label, ``reached`` (n_samples,) of bool.
    """

    mended: Mended
    samples: MendSamples
    geometry: MendGeometry
    P: np.ndarray
    observed: np.ndarray
    reached: np.ndarray


def gather_blocks(
    parameters: MendParameters,
    views: tuple[Any, Any, Any],
    groups: Any,
    callbacks: Sequence[Callback],
) -> BlockInput:
    """Check everything once, and gather the graph sample; parameters as in `gather_input`."""
    draw = Draw(parameters.graph_samples or GRAPH_SAMPLES, labelled_first=True)
    return gather_input(parameters, (*views, groups), callbacks, RULES, draw)


def fit_blocks(
    parameters: MendParameters,
    given: BlockInput,
    sample: SampleGeometry,
    labelling: Labelling,
    settings: MendSettings,
    callbacks: Sequence[Callback],
) -> BlockFit:
    """The recipe over blocks of rows, with the labels of all samples in the labelling's place."""
    runner, n_classes = given.runner, given.labels.n_classes
    with dask.config.set(LARGE_GRAPHS):
        samples, geometry = samples_in_blocks(given, sample, settings.neighbours)
        codes = given.chunks.split(given.codes)
        labelling = replace(labelling, Y=runner.map(one_hot_rows, codes, shared=n_classes))
        start, watchers = _start(parameters, given, samples, settings, callbacks)
        mended = mend(samples, labelling, settings, watchers, start)
        reached = reached_samples(samples, mended.stage, labelling)
        columns = mended.stage.P, samples.outlines, reached
        parts = runner.gather(result_rows, *columns, shared=None)
    P, observed, joined = (np.concatenate(part) for part in zip(*parts, strict=True))
    return BlockFit(mended, samples, geometry, P, observed, joined)


def one_hot_rows(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """One-hot rows of labels (n_rows,), zero rows where there is none."""
    return (codes[:, None] == np.arange(n_classes)).astype(np.float32)


def result_rows(P: np.ndarray, outline: Any, reached: np.ndarray, _shared: None) -> Column:
    """What is told of the rows of a block."""
    return P, outline.observed, reached


def _start(
    parameters: MendParameters,
    given: BlockInput,
    samples: MendSamples,
    settings: MendSettings,
    callbacks: Sequence[Callback],
) -> tuple[MendProgress | None, list[Any]]:
    """Stages to go on from, and the callbacks, of which a checkpoint keeps stages."""
    told_by, n_all = _fingerprint(parameters, given, samples), n_stages(settings)
    checkpoint = next((c for c in callbacks if isinstance(c, BlockCheckpoint)), None)
    start = None if checkpoint is None else read_stages(checkpoint, told_by, samples, given.runner)
    watchers = [
        StageKeeper(callback, told_by, given.runner, n_all)
        if isinstance(callback, BlockCheckpoint)
        else callback
        for callback in (_Numbered(given.runner), *callbacks)
    ]
    if start is not None:
        check_steps_left(parameters, len(start.history), n_all, RULES)
        for callback in watchers:
            if hasattr(callback, "on_resume"):
                callback.on_resume(start.history)
    return start, watchers


def _fingerprint(
    parameters: MendParameters, given: BlockInput, samples: MendSamples
) -> dict[str, Any]:
    """The same with the landmarks, where no seed tells which are drawn."""
    told_by = fingerprint(parameters, given, RULES)
    if isinstance(parameters.random_state, Integral):
        return told_by
    drawn = [row_hashes(view.landmarks[None, :])[0] for view in samples.views]
    return told_by | {"random_state": list(map(int, drawn))}


class _Numbered:
    """Tells who runs the tasks which stage they are of."""

    def __init__(self, runner: DaskRows) -> None:
        self.runner = runner
        runner.round = 1

    def on_resume(self, history: Sequence[StageRecord]) -> None:
        self.runner.round = len(history) + 1

    def __call__(self, record: StageRecord, _stage: Any) -> None:
        self.runner.round = record.iteration + 1
