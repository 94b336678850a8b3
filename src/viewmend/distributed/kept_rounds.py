"""Rounds of AGF-TI over blocks, as a `BlockCheckpoint` keeps them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from viewmend.core.agfti.state import InnerStep, Round
from viewmend.distributed.blocks import (
    RESPONSE,
    GlobalState,
    RowBlock,
    packed_arrays,
    unpacked_arrays,
)
from viewmend.distributed.callbacks import BlockCheckpoint
from viewmend.distributed.kept_files import (
    KeptFile,
    broken_as_checkpoint_error,
    read_arrays,
    write_arrays,
)
from viewmend.distributed.rows import DaskRows
from viewmend.distributed.solver import BlockState

# Fields of `GlobalState`, in the file of the client.
OF_CURRENT = ("alpha", "T", "Q", "scaled_Q", "eta")


@dataclass(frozen=True, eq=False)
class SavedRounds:
    """What a folder holds: the state, and arrays of the geometry by name."""

    state: BlockState
    arrays: dict[str, np.ndarray]


def read_rounds(
    checkpoint: BlockCheckpoint, fingerprint: dict[str, Any], n_blocks: int, runner: DaskRows
) -> SavedRounds | None:
    """What `BlockCheckpoint.read` finds, as a state."""
    kept = checkpoint.read(fingerprint, n_blocks)
    if kept is None:
        return None
    with broken_as_checkpoint_error(kept.client):
        known, history = global_state(kept.arrays), tuple(map(read_round, kept.history))
    return SavedRounds(read_state(kept.files, known, history, runner), kept.arrays)


def round_keeper(
    checkpoint: BlockCheckpoint,
    fingerprint: dict[str, Any],
    geometry: dict[str, np.ndarray],
    runner: DaskRows,
) -> Callable[[BlockState], BlockState]:
    """What keeps a state every few rounds, and gives back one that begins with its files."""

    def keep(state: BlockState) -> BlockState:
        if not checkpoint.due(len(state.history)):
            return state

        def write(paths: list[Path]) -> list[str]:
            return runner.gather(write_block, state.blocks, state.W, paths, shared=None)

        history, arrays = list(map(asdict, state.history)), current_arrays(state)
        n_blocks = len(state.blocks)
        files = checkpoint.keep(fingerprint, history, arrays | geometry, n_blocks, write)
        return read_state(files, global_state(arrays), state.history, runner)

    return keep


def write_block(block: RowBlock, W: np.ndarray, path: Path, _shared: None) -> str:
    """A block and its ``W`` in a file, whose digest it gives."""
    arrays: dict[str, Any] = packed_arrays("Z", block.Z) | packed_arrays("P", block.P)
    arrays |= {"observed": block.observed, "codes": block.codes, "F": block.F, "W": W}
    return write_arrays(path, arrays)


def read_block(file: KeptFile, _shared: None) -> tuple[RowBlock, np.ndarray, dict[str, Any]]:
    """What `write_block` was given, and no sums; ``file`` is its path and digest."""
    path, _ = file
    arrays = read_arrays(*file)
    with broken_as_checkpoint_error(path):
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
    files: list[KeptFile],
    known: tuple[GlobalState, dict[str, np.ndarray]],
    history: tuple[Round, ...],
    runner: DaskRows,
) -> BlockState:
    """The state whose blocks are in files, and read by the workers."""
    pending = runner.start(read_block, files, shared=None, n_results=2)
    pending.sums()
    blocks, W = pending.results
    return BlockState(blocks, W, *known, history)


def read_round(entry: dict[str, Any]) -> Round:
    """A round from what `dataclasses.asdict` made of it."""
    inner = tuple(InnerStep(**step) for step in entry["inner"])
    return Round(**(entry | {"alpha": tuple(entry["alpha"]), "inner": inner}))
