"""Blocks of rows, and what the client knows, in a folder: files of plain arrays, with digests."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from viewmend.exceptions import CheckpointError
from viewmend.storage.archive import ARCHIVE_ERRORS
from viewmend.storage.atomic import replacing

# A file and its digest.
KeptFile = tuple[Path, str]

ROUND_FOLDER = re.compile(r"round-\d+")
# What a file that is missing, cut or foreign is known to raise.
BROKEN = (*ARCHIVE_ERRORS, OSError, KeyError, TypeError, AttributeError, MemoryError, zlib.error)


@contextmanager
def broken_as_checkpoint_error(path: Path) -> Iterator[None]:
    """Errors of a file of the folder name it and what to do."""
    try:
        yield
    except CheckpointError:
        raise
    except BROKEN as error:
        msg = (
            f"the checkpoint lacks {path}, or it is broken ({type(error).__name__}: {error}); see "
            f"that all workers reach the folder, or delete it and fit again"
        )
        raise CheckpointError(msg) from error


def read_table(path: Path) -> dict[str, Any]:
    """The table of a checkpoint, as it was written."""
    signed = json.loads(path.read_bytes())
    table = signed["table"]
    if signed["digest"] != _table_digest(table) or not ROUND_FOLDER.fullmatch(table["folder"]):
        msg = "its content is not what was written"
        raise ValueError(msg)
    return dict(table)


def write_table(path: Path, table: Mapping[str, Any]) -> None:
    """Write what `read_table` reads."""
    signed = {"table": table, "digest": _table_digest(table)}
    with replacing(path) as stream:
        stream.write(json.dumps(signed).encode())


def _table_digest(table: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()


def write_arrays(path: Path, arrays: dict[str, Any]) -> str:
    """Write arrays to a file, and give its digest."""
    with replacing(path) as stream:
        np.savez(stream, **arrays)
    return _file_digest(path)


def read_arrays(path: Path, digest: str) -> dict[str, Any]:
    """The arrays of a file that must be the one that was written, before any of it is believed."""
    with broken_as_checkpoint_error(path):
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
