"""Callbacks of fits over blocks: one shows how far they are, one keeps rounds in a folder.

Blocks, and what the client holds of a round, are files of plain arrays.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from viewmend.callbacks.progress import LogRounds
from viewmend.core.agfti.state import InnerStep, Round
from viewmend.distributed.blocks import (
    RESPONSE,
    GlobalState,
    RowBlock,
    packed_arrays,
    unpacked_arrays,
)
from viewmend.exceptions import CheckpointError, InvalidParameterError
from viewmend.storage.atomic import replacing

if TYPE_CHECKING:
    from viewmend.distributed.solver import BlockState
    from viewmend.distributed.stages import Runner


TABLE = "checkpoint.json"
# Fields of `GlobalState`, in the file of the client.
OF_CURRENT = ("alpha", "T", "Q", "scaled_Q", "eta")


class LogBlocks(LogRounds):
    """Write which stage of which round is under way, and how many of its blocks are done.

    Any callback with a method ``on_blocks(stage, done, total)`` is told of blocks in the same way,
    where the fit runs on a `distributed.Client`. ``total`` counts the results of all blocks and
    the one of their sums.

    Parameters
    ----------
    stream : text stream, optional
        Standard error by default.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__(stream)
        self.n_rounds = 0

    def on_blocks(self, stage: str, done: int, total: int) -> None:
        line = f"\rround {self.n_rounds + 1:3d}  {stage:<16s} {done:6d} / {total}"
        (self.stream or sys.stderr).write(line + ("\n" if done == total else ""))

    def __call__(self, round_: Any, _state: Any) -> None:
        self.n_rounds = round_.iteration
        super().__call__(round_, _state)


@dataclass(frozen=True, eq=False)
class SavedRounds:
    """What a folder holds: the state, and arrays of the geometry by name."""

    state: BlockState
    arrays: dict[str, np.ndarray]


class BlockCheckpoint:
    """Keep the rounds of a fit over blocks in a folder, and go on from there.

    A callback: ``AGFTIClassifier().set_callbacks(BlockCheckpoint("folder"))``. Workers write their
    blocks, the client what it holds itself, and the last file makes the others count; so kill
    anything at any time. A fit that finds the folder goes on after the last round in it, to the
    same result. A fit of other data, in other chunks, or with other parameters is refused. What
    Dask must compute again for a lost worker begins at the last round that was kept.

    Parameters
    ----------
    folder : path
        Seen by the client and by all workers under the same name. It is made, and it stays.
    every : int, default=5
        Rounds between two writings, each of about ``4 V m`` bytes per sample in float32.
    """

    def __init__(self, folder: str | os.PathLike[str], every: int = 5) -> None:
        if every < 1:
            msg = (
                f"every must be at least 1, got {every}; leave BlockCheckpoint out to keep nothing"
            )
            raise InvalidParameterError(msg)
        self.folder = Path(folder).absolute()
        self.every = every

    def __call__(self, _round: Round, _state: Any) -> None:
        """Nothing: rounds are kept where the next can go on from what was kept."""

    def read(
        self, fingerprint: dict[str, Any], n_blocks: int, runner: Runner
    ) -> SavedRounds | None:
        """The last rounds that were kept of this fit, or None; a CheckpointError if of another.

        The ``fingerprint`` is what a fit is told by, in what JSON knows.
        """
        if not (self.folder / TABLE).exists():
            return None
        table = json.loads((self.folder / TABLE).read_text())
        other = [name for name in fingerprint if table["fingerprint"][name] != fingerprint[name]]
        if other:
            msg = (
                f"the checkpoint in {self.folder} is of another fit: {', '.join(other)} differ; "
                f"delete the folder or name another one"
            )
            raise CheckpointError(msg)
        folder = self.folder / table["folder"]
        with np.load(folder / "client.npz") as file:
            arrays = dict(file)
        history = tuple(map(read_round, table["history"]))
        paths = block_paths(folder, n_blocks)
        return SavedRounds(read_state(paths, arrays, history, runner), arrays)

    def keeper(
        self, fingerprint: dict[str, Any], geometry: dict[str, np.ndarray], runner: Runner
    ) -> Callable[[BlockState], BlockState]:
        """What keeps a state every few rounds, and gives back one that begins with its files."""

        def keep(state: BlockState) -> BlockState:
            if len(state.history) % self.every:
                return state
            folder = self.folder / f"round-{len(state.history):05d}"
            folder.mkdir(parents=True, exist_ok=True)
            paths, arrays = block_paths(folder, len(state.blocks)), current_arrays(state)
            runner.gathered(write_block, state.blocks, state.W, paths, shared=None)
            self._declare(folder, arrays | geometry, fingerprint, state.history)
            return read_state(paths, arrays, state.history, runner)

        return keep

    def _declare(
        self,
        folder: Path,
        arrays: dict[str, Any],
        fingerprint: dict[str, Any],
        history: tuple[Round, ...],
    ) -> None:
        """Make the files of a round the ones that count, and remove those of the round before."""
        with replacing(folder / "client.npz") as stream:
            np.savez(stream, **arrays)
        rounds = [asdict(round_) for round_ in history]
        table = {"folder": folder.name, "fingerprint": fingerprint, "history": rounds}
        with replacing(self.folder / TABLE) as stream:
            stream.write(json.dumps(table).encode())
        for old in self.folder.glob("round-*"):
            if old != folder:
                shutil.rmtree(old)


def block_paths(folder: Path, n_blocks: int) -> list[Path]:
    """Files of all blocks of a round."""
    return [folder / f"block-{i:06d}.npz" for i in range(n_blocks)]


def write_block(block: RowBlock, W: np.ndarray, path: Path, _shared: None) -> None:
    """A block and its ``W`` in a file."""
    arrays: dict[str, Any] = packed_arrays("Z", block.Z) | packed_arrays("P", block.P)
    arrays |= {"observed": block.observed, "codes": block.codes, "F": block.F, "W": W}
    with replacing(path) as stream:
        np.savez(stream, **arrays)


def read_block(path: Path, _shared: None) -> tuple[RowBlock, np.ndarray, dict[str, Any]]:
    """What `write_block` was given, and no sums."""
    try:
        with np.load(path) as file:
            arrays = dict(file)
    except (OSError, ValueError) as error:
        msg = (
            f"the checkpoint lacks {path}, or it is broken ({error}); see that all workers reach "
            f"the folder, or delete it and fit anew"
        )
        raise CheckpointError(msg) from error
    Z, P = (unpacked_arrays(name, arrays) for name in ("Z", "P"))
    return RowBlock(arrays["observed"], arrays["codes"], Z, P, arrays["F"]), arrays["W"], {}


def current_arrays(state: BlockState) -> dict[str, np.ndarray]:
    """What the client holds, by name."""
    current = {name: np.asarray(getattr(state.current, name)) for name in OF_CURRENT}
    return current | {name: np.asarray(state.answered[name]) for name in RESPONSE}


def read_state(
    paths: list[Path], arrays: dict[str, np.ndarray], history: tuple[Round, ...], runner: Runner
) -> BlockState:
    """The state whose blocks are in files, and read by the workers."""
    # Here, because Dask is behind it, which not everybody has.
    from viewmend.distributed.solver import BlockState

    pending = runner.start(read_block, paths, shared=None, n_results=2)
    pending.sums()
    blocks, W = pending.results
    values: dict[str, Any] = {name: arrays[name] for name in OF_CURRENT}
    current = replace(GlobalState(**values), eta=float(arrays["eta"]))
    answered = {name: arrays[name] for name in RESPONSE}
    return BlockState(blocks, W, current, answered, history)


def read_round(entry: dict[str, Any]) -> Round:
    """A round from what `dataclasses.asdict` made of it."""
    inner = tuple(InnerStep(**step) for step in entry["inner"])
    return Round(**(entry | {"alpha": tuple(entry["alpha"]), "inner": inner}))
