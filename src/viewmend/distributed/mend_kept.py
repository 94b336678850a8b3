"""Stages of Mend over blocks, as a `BlockCheckpoint` keeps them.

Blocks keep their scores and classes, the client what it knows beside. Features and neighbours are
not kept: they are computed again from the views.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from viewmend.core.mend.samples import MendSamples
from viewmend.core.mend.stage import MendProgress, Stage, StageRecord, SummedGraph
from viewmend.distributed.callbacks import BlockCheckpoint
from viewmend.distributed.kept_files import (
    KeptFile,
    broken_as_checkpoint_error,
    read_arrays,
    write_arrays,
)
from viewmend.distributed.rows import DaskRows

# Of a `Stage`, in the file of the client.
OF_STAGE = ("F", "mass", "graph_weights", "shares", "class_weights", "trust", "noise")
# Beside these: whether labels are in doubt, which a noise that is given does not say by itself.
IN_DOUBT = "in_doubt"


class StageKeeper:
    """A callback in the place of a `BlockCheckpoint`, which keeps stages where it is due.

    ``fingerprint`` is what the fit is told by; ``n_stages`` is how many there are, of which the
    last is not kept, because nothing goes on from it.
    """

    def __init__(
        self,
        checkpoint: BlockCheckpoint,
        fingerprint: dict[str, Any],
        runner: DaskRows,
        n_stages: int,
    ) -> None:
        self.checkpoint, self.fingerprint, self.runner = checkpoint, fingerprint, runner
        self.n_stages = n_stages
        self.history: list[dict[str, Any]] = []

    def on_resume(self, history: Sequence[StageRecord]) -> None:
        self.history = list(map(asdict, history))

    def __call__(self, record: StageRecord, stage: Stage) -> None:
        self.history.append(asdict(record))
        n_done = len(self.history)
        if n_done == self.n_stages or not self.checkpoint.due(n_done):
            return

        def write(paths: list[Path]) -> list[str]:
            # Labels that are not in doubt are those of the input: something stands for them.
            doubted = stage.classes if stage.doubted is None else stage.doubted
            columns = stage.P, stage.classes, doubted, paths
            return self.runner.gather(write_stage_rows, *columns, shared=None)

        arrays = {name: np.asarray(getattr(stage, name)) for name in OF_STAGE}
        arrays[IN_DOUBT] = np.asarray(stage.doubted is not None)
        self.checkpoint.keep(self.fingerprint, self.history, arrays, len(stage.P), write)


def read_stages(
    checkpoint: BlockCheckpoint, fingerprint: dict[str, Any], samples: MendSamples, runner: DaskRows
) -> MendProgress | None:
    """The last stage that was kept of this fit, to go on from; None where there is none."""
    kept = checkpoint.read(fingerprint, len(samples.blocks), to_the_end=True)
    if kept is None:
        return None
    with broken_as_checkpoint_error(kept.client):
        history = tuple(map(read_record, kept.history))
        of_stage = {name: kept.arrays[name] for name in OF_STAGE}
        weights = of_stage.pop("graph_weights")
        equal, labels, scores = map(float, of_stage.pop("trust"))
        noise, in_doubt = float(of_stage.pop("noise")), bool(kept.arrays[IN_DOUBT])
    pending = runner.start(read_stage_rows, kept.files, shared=None, n_results=3)
    pending.sums()
    P, classes, doubted = pending.results
    graph = SummedGraph(samples.graphs.weighted(weights), weights)
    stage = Stage(
        name=history[-1].name,
        P=P,
        classes=classes,
        graph=graph,
        guide=None,
        trust=(equal, labels, scores),
        noise=noise,
        doubted=doubted if in_doubt else None,
        **of_stage,
    )
    return MendProgress(stage, history)


def write_stage_rows(
    P: np.ndarray, classes: np.ndarray, doubted: np.ndarray, path: Path, _shared: None
) -> str:
    """Scores, classes and doubted labels of a block in a file, whose digest it gives."""
    return write_arrays(path, {"P": P, "classes": classes, "doubted": doubted})


def read_stage_rows(file: KeptFile, _shared: None) -> tuple[Any, ...]:
    """What `write_stage_rows` was given, and no sums."""
    arrays = read_arrays(*file)
    with broken_as_checkpoint_error(file[0]):
        return arrays["P"], arrays["classes"], arrays["doubted"], {}


def read_record(entry: dict[str, Any]) -> StageRecord:
    """A record from what `dataclasses.asdict` and JSON made of it."""
    tuples = {name: tuple(entry[name]) for name in ("graph_weights", "view_r2")}
    return StageRecord(**(entry | tuples))
