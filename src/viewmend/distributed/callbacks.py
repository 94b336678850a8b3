"""Callbacks of fits over blocks: one shows how far they are, one keeps rounds in a folder.

Blocks, and what the client holds of a round, are files of plain arrays.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
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
from viewmend.storage.archive import ARCHIVE_ERRORS
from viewmend.storage.atomic import replacing

if TYPE_CHECKING:
    from viewmend.distributed.rows import DaskRows
    from viewmend.distributed.solver import BlockState


TABLE = "checkpoint.json"
CLIENT = "client.npz"
ROUND_FOLDER = re.compile(r"round-\d+")
# What a file that is missing, cut or foreign is known to raise.
BROKEN = (*ARCHIVE_ERRORS, OSError, KeyError, TypeError, AttributeError, MemoryError, zlib.error)
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
    same result. A fit of other data, in other chunks, or with other parameters is refused, and so
    is a folder with a file that is missing or not the one that was written. What Dask must compute
    again for a lost worker begins at the last round that was kept.

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
        self, fingerprint: dict[str, Any], n_blocks: int, runner: DaskRows
    ) -> SavedRounds | None:
        """The last rounds that were kept of this fit, or None; a CheckpointError if of another.

        The ``fingerprint`` is what a fit is told by, in what JSON knows.
        """
        with _broken_as_checkpoint_error(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / TABLE).exists():
            return None
        with _broken_as_checkpoint_error(self.folder / TABLE):
            table = _read_table(self.folder / TABLE)
            history = tuple(map(read_round, table["history"]))
            kept, folder = table["fingerprint"], self.folder / table["folder"]
            other = [name for name in fingerprint if kept[name] != fingerprint[name]]
        if other:
            msg = (
                f"the checkpoint in {self.folder} is of another fit: {', '.join(other)} differ; "
                f"delete the folder or name another one"
            )
            raise CheckpointError(msg)
        with _broken_as_checkpoint_error(self.folder / TABLE):
            paths = [*block_paths(folder, n_blocks), folder / CLIENT]
            *files, client = [(path, table["digests"][path.name]) for path in paths]
        arrays = _read_arrays(*client)
        with _broken_as_checkpoint_error(folder / CLIENT):
            known = global_state(arrays)
        return SavedRounds(read_state(files, known, history, runner), arrays)

    def keeper(
        self, fingerprint: dict[str, Any], geometry: dict[str, np.ndarray], runner: DaskRows
    ) -> Callable[[BlockState], BlockState]:
        """What keeps a state every few rounds, and gives back one that begins with its files."""

        def keep(state: BlockState) -> BlockState:
            if len(state.history) % self.every:
                return state
            folder = self.folder / f"round-{len(state.history):05d}"
            folder.mkdir(parents=True, exist_ok=True)
            paths, arrays = block_paths(folder, len(state.blocks)), current_arrays(state)
            digests = runner.gather(write_block, state.blocks, state.W, paths, shared=None)
            files = list(zip(paths, digests, strict=True))
            about = {"fingerprint": fingerprint, "history": list(map(asdict, state.history))}
            self._declare(folder, arrays | geometry, about, files)
            return read_state(files, global_state(arrays), state.history, runner)

        return keep

    def _declare(
        self,
        folder: Path,
        arrays: dict[str, Any],
        about: dict[str, Any],
        files: list[tuple[Path, str]],
    ) -> None:
        """Make the files of a round the ones that count, and remove those of the round before."""
        digests = {path.name: digest for path, digest in files}
        digests[CLIENT] = _write_arrays(folder / CLIENT, arrays)
        table = {"folder": folder.name, "digests": digests, **about}
        signed = {"table": table, "digest": _table_digest(table)}
        with replacing(self.folder / TABLE) as stream:
            stream.write(json.dumps(signed).encode())
        for old in self.folder.glob("round-*"):
            if old != folder:
                # What cannot be removed is in nobody's way.
                shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _broken_as_checkpoint_error(path: Path) -> Iterator[None]:
    """Errors of a file of the folder name it and what to do."""
    try:
        yield
    except CheckpointError:
        raise
    except BROKEN as error:
        msg = (
            f"the checkpoint lacks {path}, or it is broken ({type(error).__name__}: {error}); see "
            f"that all workers reach the folder, or delete it and fit anew"
        )
        raise CheckpointError(msg) from error


def _read_table(path: Path) -> dict[str, Any]:
    """The table of a checkpoint, as it was written."""
    signed = json.loads(path.read_bytes())
    table = signed["table"]
    if signed["digest"] != _table_digest(table) or not ROUND_FOLDER.fullmatch(table["folder"]):
        msg = "its content is not what was written"
        raise ValueError(msg)
    return dict(table)


def _table_digest(table: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()


def _write_arrays(path: Path, arrays: dict[str, Any]) -> str:
    """Write arrays to a file, and give its digest."""
    with replacing(path) as stream:
        np.savez(stream, **arrays)
    return _file_digest(path)


def _read_arrays(path: Path, digest: str) -> dict[str, Any]:
    """The arrays of a file that must be the one that was written, before any of it is believed."""
    with _broken_as_checkpoint_error(path):
        if _file_digest(path) != digest:
            msg = "it is not the file that was written"
            raise ValueError(msg)
        with np.load(path) as file:
            return dict(file)


def _file_digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def block_paths(folder: Path, n_blocks: int) -> list[Path]:
    """Files of all blocks of a round."""
    return [folder / f"block-{i:06d}.npz" for i in range(n_blocks)]


def write_block(block: RowBlock, W: np.ndarray, path: Path, _shared: None) -> str:
    """A block and its ``W`` in a file, whose digest it gives."""
    arrays: dict[str, Any] = packed_arrays("Z", block.Z) | packed_arrays("P", block.P)
    arrays |= {"observed": block.observed, "codes": block.codes, "F": block.F, "W": W}
    return _write_arrays(path, arrays)


def read_block(
    file: tuple[Path, str], _shared: None
) -> tuple[RowBlock, np.ndarray, dict[str, Any]]:
    """What `write_block` was given, and no sums; ``file`` is its path and digest."""
    path, _ = file
    arrays = _read_arrays(*file)
    with _broken_as_checkpoint_error(path):
        Z, P = (unpacked_arrays(name, arrays) for name in ("Z", "P"))
        return RowBlock(arrays["observed"], arrays["codes"], Z, P, arrays["F"]), arrays["W"], {}


def current_arrays(state: BlockState) -> dict[str, np.ndarray]:
    """What the client holds, by name."""
    current = {name: np.asarray(getattr(state.current, name)) for name in OF_CURRENT}
    return current | {name: np.asarray(state.answered[name]) for name in RESPONSE}


def global_state(arrays: dict[str, np.ndarray]) -> tuple[GlobalState, dict[str, np.ndarray]]:
    """What `current_arrays` was made from: the state of the client, and what it was answered."""
    values: dict[str, Any] = {name: arrays[name] for name in OF_CURRENT}
    current = replace(GlobalState(**values), eta=float(arrays["eta"]))
    return current, {name: arrays[name] for name in RESPONSE}


def read_state(
    files: list[tuple[Path, str]],
    known: tuple[GlobalState, dict[str, np.ndarray]],
    history: tuple[Round, ...],
    runner: DaskRows,
) -> BlockState:
    """The state whose blocks are in files, and read by the workers."""
    # Here, because Dask is behind it, which not everybody has.
    from viewmend.distributed.solver import BlockState

    pending = runner.start(read_block, files, shared=None, n_results=2)
    pending.sums()
    blocks, W = pending.results
    return BlockState(blocks, W, *known, history)


def read_round(entry: dict[str, Any]) -> Round:
    """A round from what `dataclasses.asdict` made of it."""
    inner = tuple(InnerStep(**step) for step in entry["inner"])
    return Round(**(entry | {"alpha": tuple(entry["alpha"]), "inner": inner}))
