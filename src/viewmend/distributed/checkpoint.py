"""Rounds over blocks that outlive workers and client, in a folder that all of them see."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from viewmend.core.agfti.state import Round
from viewmend.exceptions import CheckpointError, InvalidParameterError
from viewmend.storage.atomic import replacing

if TYPE_CHECKING:
    from viewmend.distributed.solver import BlockState
    from viewmend.distributed.stages import Runner

__all__ = ["BlockCheckpoint", "SavedRounds"]

TABLE = "checkpoint.json"


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
        """The last rounds that were kept of this fit, or None.

        Parameters
        ----------
        fingerprint : dict
            What a fit is told by, in what JSON knows.
        n_blocks : int
        runner : Runner

        Raises
        ------
        CheckpointError
            If the folder has another fit.
        """
        from viewmend.distributed.files import block_paths, read_round, read_state

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
        from viewmend.distributed.files import block_paths, current_arrays, read_state, write_block

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
