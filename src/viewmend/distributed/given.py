"""What a fit over blocks is given, checked: rows in chunks, labels, a sample, and who runs tasks.

Nothing here knows a method. Each has a `BlockRules`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import dask
import numpy as np

from viewmend.callbacks.protocol import Callback
from viewmend.core.common.content_order import row_hashes
from viewmend.data.given_labels import labels_for
from viewmend.data.groups import with_groups
from viewmend.data.labels import Labels, check_class_prior, check_labels
from viewmend.distributed.inputs import Chunks, as_chunks
from viewmend.distributed.lazy import is_lazy
from viewmend.distributed.row_indices import check_index_of
from viewmend.distributed.rows import DaskRows
from viewmend.distributed.sampling import Draw, Sample, Survey, gather_sample, survey_chunks
from viewmend.exceptions import CheckpointError, InvalidParameterError
from viewmend.parameters import HasParameters, in_full
from viewmend.protocols import ClassPrior


class BlockParameters(HasParameters, Protocol):
    """Parameters that every estimator has which fits over blocks."""

    class_prior: ClassPrior
    view_sizes: Sequence[int] | None
    dtype: str


@dataclass(frozen=True)
class BlockRules:
    """What a fit over blocks does with the parameters of an estimator.

    ``possible`` are the values that it can follow, of the parameters of which it cannot follow all;
    the first of them is the remedy. Parameters ``after_rounds`` change no round. ``steps`` are what
    a checkpoint keeps, "rounds" or "stages"; the parameter ``limit`` says how many there are.
    ``check_prior`` refuses class priors that are none. Chunks of more than ``most_rows(parameters,
    n_views)`` rows are cut, if it is there.
    """

    possible: Mapping[str, tuple[Any, ...]]
    after_rounds: frozenset[str]
    steps: str
    limit: str
    check_prior: Callable[[ClassPrior, Labels], object] = check_class_prior
    most_rows: Callable[[Any, int], int] | None = None


@dataclass(frozen=True, eq=False)
class BlockInput:
    """What a fit is given: checked rows in chunks, labels, a sample, and who runs the tasks."""

    chunks: Chunks
    labels: Labels  # of all samples
    codes: np.ndarray  # (n_samples,): those of the labels, in as few bytes as they need
    sample: Sample
    survey: Survey
    runner: DaskRows

    @property
    def sampled_labels(self) -> Labels:
        """Labels of the sample."""
        return self.labels.at(self.sample.rows)


def gather_input(
    parameters: BlockParameters,
    views: tuple[Any, Any, Any, Any],
    callbacks: Sequence[Callback],
    rules: BlockRules,
    draw: Draw,
) -> BlockInput:
    """Check everything once, and gather a sample.

    ``views`` are ``X``, ``y`` (n_samples,) in memory or of Dask, the mask, and the groups like
    ``y``; ``X`` and mask as in `viewmend.distributed.inputs.lazy_views`.
    """
    X, y, mask, groups = views
    _check_parameters(parameters, callbacks, rules)
    most_rows = None if rules.most_rows is None else partial(rules.most_rows, parameters)
    chunks = as_chunks(X, mask, parameters.view_sizes, np.dtype(parameters.dtype), most_rows)
    for what, told in (("y", y), ("groups", groups)):
        check_index_of(told, chunks.index, what)
    y, groups = (dask.compute(told)[0] if is_lazy(told) else told for told in (y, groups))
    labels = with_groups(check_labels(labels_for(X, y), chunks.n_samples), X, groups)
    rules.check_prior(parameters.class_prior, labels)
    runner = DaskRows(_block_watcher(callbacks))
    # In as few bytes as the classes allow, because they travel with the tasks.
    codes = labels.codes.astype(np.min_scalar_type(-labels.n_classes))
    survey = survey_chunks(chunks, codes, draw, runner)
    sample = gather_sample(chunks, codes, survey, draw, runner)
    return BlockInput(chunks, labels, codes, sample, survey, runner)


def fingerprint(
    parameters: BlockParameters, given: BlockInput, rules: BlockRules
) -> dict[str, Any]:
    """What tells a fit from another one: all that its rounds depend on."""
    values = {
        name: in_full(value)
        for name, value in parameters.get_params(deep=False).items()
        if name not in rules.after_rounds
    }
    # Of one row: the order counts.
    (labels,) = row_hashes(given.labels.codes[None, :])
    return {
        # In their order, which parameters of the rounds have too.
        "views": list(map(int, given.survey.content)),
        "labels": int(labels),
        "chunks": list(given.chunks.sizes),
        "parameters": values,
    }


def check_steps_left(
    parameters: BlockParameters, n_kept: int, n_all: int, rules: BlockRules
) -> None:
    """Raise a CheckpointError if the ``n_kept`` steps of a checkpoint leave none of ``n_all``."""
    if n_kept >= n_all:
        msg = (
            f"the checkpoint holds {n_kept} {rules.steps}, but with "
            f"{rules.limit}={getattr(parameters, rules.limit)} there are {n_all}; {rules.steps} "
            f"cannot be taken back; raise {rules.limit}, or delete the folder and fit again"
        )
        raise CheckpointError(msg)


def _check_parameters(
    parameters: BlockParameters, callbacks: Sequence[Callback], rules: BlockRules
) -> None:
    for name, values in rules.possible.items():
        if getattr(parameters, name) not in values:
            allowed = " or ".join(map(repr, values))
            msg = (
                f"{name} must be {allowed} where the views are Dask collections, got "
                f"{getattr(parameters, name)!r}; set {name}={values[0]!r}, or fit on arrays in "
                f"memory"
            )
            raise InvalidParameterError(msg)
    for callback in callbacks:
        if hasattr(callback, "starting_point"):
            msg = (
                f"{type(callback).__name__} keeps rounds that are in the memory of one process; "
                f"where the views are Dask collections, use viewmend.distributed.BlockCheckpoint"
            )
            raise InvalidParameterError(msg)


def _block_watcher(callbacks: Sequence[Callback]) -> Callable[[str, int, int], None] | None:
    """Who is told of blocks, as one callable."""
    hooks = [callback.on_blocks for callback in callbacks if hasattr(callback, "on_blocks")]

    def watch(stage: str, done: int, total: int) -> None:
        for tell in hooks:
            tell(stage, done, total)

    return watch if hooks else None
