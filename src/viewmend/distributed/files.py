"""Blocks, and what the client holds of a round, as files of plain arrays."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from viewmend.core.agfti.state import InnerStep, Round
from viewmend.distributed.blocks import Block, Small
from viewmend.distributed.packing import packed_arrays, unpacked_arrays
from viewmend.distributed.solver import BlockState
from viewmend.distributed.stages import Runner
from viewmend.exceptions import CheckpointError

__all__ = ["block_paths", "read_round", "read_state", "small_arrays", "whole", "write_block"]

# Fields of `Small`, and of what Algorithm 1 was told, in the file of the client.
OF_SMALL = ("alpha", "T", "Q", "scaled_Q", "eta")
OF_ANSWER = ("cost", "size", "agreements", "spread")


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A path to write to, which becomes ``path`` once all is written; two writers do no harm."""
    partial = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        yield partial
        os.replace(partial, path)  # noqa: PTH105  on Windows, Path.rename does not replace
    finally:
        partial.unlink(missing_ok=True)


def block_paths(folder: Path, n_blocks: int) -> list[Path]:
    """Files of all blocks of a round."""
    return [folder / f"block-{i:06d}.npz" for i in range(n_blocks)]


def write_block(block: Block, W: np.ndarray, path: Path, _shared: None) -> None:
    """A block and its ``W`` in a file."""
    arrays: dict[str, Any] = packed_arrays("Z", block.Z) | packed_arrays("P", block.P)
    arrays |= {"observed": block.observed, "codes": block.codes, "F": block.F, "W": W}
    with whole(path) as partial, partial.open("wb") as stream:
        np.savez(stream, **arrays)


def read_block(path: Path, _shared: None) -> tuple[Block, np.ndarray, dict[str, Any]]:
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
    return Block(arrays["observed"], arrays["codes"], Z, P, arrays["F"]), arrays["W"], {}


def small_arrays(state: BlockState) -> dict[str, np.ndarray]:
    """What the client holds, by name."""
    small = {name: np.asarray(getattr(state.small, name)) for name in OF_SMALL}
    return small | {name: np.asarray(state.answered[name]) for name in OF_ANSWER}


def read_state(
    paths: list[Path], arrays: dict[str, np.ndarray], history: tuple[Round, ...], runner: Runner
) -> BlockState:
    """The state whose blocks are in files, and read by the workers."""
    pending = runner.start(read_block, paths, shared=None, n_kept=2)
    pending.sums()
    blocks, W = pending.kept
    values: dict[str, Any] = {name: arrays[name] for name in OF_SMALL}
    small = replace(Small(**values), eta=float(arrays["eta"]))
    answered = {name: arrays[name] for name in OF_ANSWER}
    return BlockState(blocks, W, small, answered, history)


def read_round(entry: dict[str, Any]) -> Round:
    """A round from what `dataclasses.asdict` made of it."""
    inner = tuple(InnerStep(**step) for step in entry["inner"])
    return Round(**(entry | {"alpha": tuple(entry["alpha"]), "inner": inner}))
