"""Blocks, and what the client holds of a round, as files of plain arrays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from viewmend.core.agfti.state import InnerStep, Round
from viewmend.distributed.blocks import GlobalState, RowBlock
from viewmend.distributed.packing import packed_arrays, unpacked_arrays
from viewmend.distributed.solver import BlockState
from viewmend.distributed.stages import Runner
from viewmend.exceptions import CheckpointError
from viewmend.storage.atomic import replacing

__all__ = ["block_paths", "current_arrays", "read_round", "read_state", "write_block"]

# Fields of `GlobalState`, and of what Algorithm 1 was told, in the file of the client.
OF_CURRENT = ("alpha", "T", "Q", "scaled_Q", "eta")
OF_ANSWER = ("cost", "size", "agreements", "spread")


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
    return current | {name: np.asarray(state.answered[name]) for name in OF_ANSWER}


def read_state(
    paths: list[Path], arrays: dict[str, np.ndarray], history: tuple[Round, ...], runner: Runner
) -> BlockState:
    """The state whose blocks are in files, and read by the workers."""
    pending = runner.start(read_block, paths, shared=None, n_results=2)
    pending.sums()
    blocks, W = pending.results
    values: dict[str, Any] = {name: arrays[name] for name in OF_CURRENT}
    current = replace(GlobalState(**values), eta=float(arrays["eta"]))
    answered = {name: arrays[name] for name in OF_ANSWER}
    return BlockState(blocks, W, current, answered, history)


def read_round(entry: dict[str, Any]) -> Round:
    """A round from what `dataclasses.asdict` made of it."""
    inner = tuple(InnerStep(**step) for step in entry["inner"])
    return Round(**(entry | {"alpha": tuple(entry["alpha"]), "inner": inner}))
