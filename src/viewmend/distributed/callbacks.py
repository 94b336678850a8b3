"""Callbacks of fits over blocks: one shows the progress, one saves rounds in a folder.

Blocks, and what the client holds of a round, are files of plain arrays.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from viewmend.callbacks.progress import LogRounds
from viewmend.callbacks.protocol import Fit
from viewmend.distributed.kept_files import (
    KeptFile,
    block_paths,
    broken_as_checkpoint_error,
    read_arrays,
    read_table,
    write_arrays,
    write_table,
)
from viewmend.exceptions import CheckpointError, InvalidParameterError
from viewmend.parameters import Integer, short
from viewmend.storage.locks import try_lock

TABLE = "checkpoint.json"
CLIENT = "client.npz"
LOCK = "lock"
_EVERY = Integer(1)


class LogBlocks(LogRounds):
    """Log the current stage of each round, and how many of its blocks are done.

    Any callback may have a method ``on_blocks(stage, done, total)``, which is called in the same
    way if the fit runs on a `distributed.Client`. ``total`` counts the results of all blocks and
    the result of their sums.

    Parameters
    ----------
    stream : text stream, optional
        Where to write; standard error by default.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__(stream)
        self.n_rounds = 0

    def on_fit_begin(self, fit: Fit) -> None:
        super().on_fit_begin(fit)
        self.n_rounds = 0

    def on_resume(self, history: Sequence[Any]) -> None:
        self.n_rounds = len(history)

    def on_blocks(self, stage: str, done: int, total: int) -> None:
        line = f"\rround {self.n_rounds + 1:3d}  {stage:<16s} {done:6d} / {total}"
        (self.stream or sys.stderr).write(line + ("\n" if done == total else ""))

    def __call__(self, round_: Any, _state: Any) -> None:
        self.n_rounds = round_.iteration
        super().__call__(round_, _state)


@dataclass(frozen=True, eq=False)
class KeptRounds:
    """What a folder holds: files of blocks, arrays of the client, its file, and the history."""

    files: list[KeptFile]
    arrays: dict[str, np.ndarray]
    client: Path
    history: list[dict[str, Any]]


class BlockCheckpoint:
    """Save the rounds of a fit over blocks in a folder, and resume from it.

    Attach it with ``MendClassifier().set_callbacks(BlockCheckpoint("folder"))``. Workers write
    their blocks, the client its own arrays, and a last file marks the round as complete, so you can
    kill anything at any time. A fit that finds the folder resumes after the last round in it, with
    the same result; `MendClassifier` computes features and edges again before that. A fit on other
    data, in other chunks, or with other parameters is refused, and so is a folder with a
    missing or changed file, or one that another fit is using. If a worker is lost, Dask computes
    its blocks again; for `AGFTIClassifier`, from the last saved round. Fits on data in memory need
    `viewmend.callbacks.Checkpoint` instead.

    Parameters
    ----------
    folder : path
        Folder that the client and all workers can access under the same name. It is created if
        needed, and stays after the fit.
    every : int, default=5
        Save after every this many rounds. For `AGFTIClassifier`, a round takes about ``4 V m``
        bytes per sample in float32, with ``V`` views and ``m`` anchors; for `MendClassifier`, far
        less: scores and classes.
    """

    def __init__(self, folder: str | os.PathLike[str], every: int = 5) -> None:
        if not _EVERY.accepts(every):
            msg = (
                f"every must be {_EVERY.expected}, got {short(every)}; leave BlockCheckpoint out "
                f"to keep nothing"
            )
            raise InvalidParameterError(msg)
        self.folder = Path(folder).absolute()
        self.every = every
        # Of the file that is locked during a fit, and the thread of that fit.
        self._lock: tuple[int, int] | None = None
        # Of the rounds that count, and of earlier ones that this fit needs to its end.
        self._latest: Path | None = None
        self._needed: Path | None = None

    def __call__(self, _round: Any, _state: Any) -> None:
        """Nothing: rounds are kept where the next can go on from what was kept."""

    def on_fit_end(self, _fit: Any, _error: BaseException | None) -> None:
        if self._lock is not None and self._lock[1] == threading.get_ident():
            if self._needed is not None:
                self._needed = None
                self._remove_old()
            os.close(self._lock[0])
            self._lock = None

    def read(
        self, fingerprint: dict[str, Any], n_blocks: int, to_the_end: bool = False
    ) -> KeptRounds | None:
        """The last rounds that were kept of this fit, or None; a CheckpointError if of another.

        The ``fingerprint`` is what a fit is told by, in what JSON knows. Their files are left
        ``to_the_end`` of the fit if its blocks follow from them throughout: those of a worker that
        is lost are computed again.
        """
        with broken_as_checkpoint_error(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._take_folder()
        if not (self.folder / TABLE).exists():
            return None
        with broken_as_checkpoint_error(self.folder / TABLE):
            table = read_table(self.folder / TABLE)
            history = list(table["history"])
            kept, folder = table["fingerprint"], self.folder / table["folder"]
            other = [name for name in fingerprint if kept.get(name) != fingerprint[name]]
        if other:
            msg = (
                f"the checkpoint in {self.folder} is of another fit: {', '.join(other)} differ; "
                f"delete the folder or name another one"
            )
            raise CheckpointError(msg)
        with broken_as_checkpoint_error(self.folder / TABLE):
            paths = [*block_paths(folder, n_blocks), folder / CLIENT]
            *files, client = [(path, table["digests"][path.name]) for path in paths]
        self._latest, self._needed = folder, folder if to_the_end else None
        return KeptRounds(files, read_arrays(*client), client[0], history)

    def _take_folder(self) -> None:
        """Lock the folder: the rounds of one fit would remove those of another."""
        handle = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            free = try_lock(handle)
        except OSError:
            # Some file systems have no locks.
            free = True
        if not free:
            os.close(handle)
            msg = (
                f"another fit is using the checkpoint in {self.folder}; wait until it has ended, "
                f"or name another folder"
            )
            raise CheckpointError(msg)
        self._lock = handle, threading.get_ident()

    def due(self, n_rounds: int) -> bool:
        """Whether the state after that many rounds is one to keep."""
        return n_rounds % self.every == 0

    def keep(
        self,
        fingerprint: dict[str, Any],
        history: list[dict[str, Any]],
        arrays: dict[str, Any],
        n_blocks: int,
        write: Callable[[list[Path]], list[str]],
    ) -> list[KeptFile]:
        """Make a folder of a round, and remove those of earlier rounds; gives its blocks.

        ``write`` is told the paths of the blocks and gives the digests of their files.
        """
        folder = self.folder / f"round-{len(history):05d}"
        folder.mkdir(parents=True, exist_ok=True)
        paths = block_paths(folder, n_blocks)
        files = list(zip(paths, write(paths), strict=True))
        digests = {path.name: digest for path, digest in files}
        digests[CLIENT] = write_arrays(folder / CLIENT, arrays)
        about = {"fingerprint": fingerprint, "history": history}
        # From here on these files are the ones that count.
        write_table(self.folder / TABLE, {"folder": folder.name, "digests": digests, **about})
        self._latest = folder
        self._remove_old()
        return files

    def _remove_old(self) -> None:
        """Remove the rounds that no fit goes on from, and that this one does not need."""
        for old in self.folder.glob("round-*"):
            if old not in (self._latest, self._needed):
                # What cannot be removed is in nobody's way.
                shutil.rmtree(old, ignore_errors=True)
