"""Blocks in files of the worker that made them, so that its memory is free for tasks.

Dask moves results to disk as memory fills up, and writes them again whenever they were read. What
a fit makes once and reads many times is better written once, by the task that makes it. A task that
reads it maps the file into memory, of which the system keeps what there is room for.

Dask holds a `KeptBlock` in the place of the block. It counts as large as the block, so that tasks
run where it is. To another worker it goes with all that is in its file; to Dask's own disk without.
"""

from __future__ import annotations

import mmap
import pickle
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any
from uuid import uuid4

import dask

# Blocks of less stay in memory: they would fill a folder with small files.
LEAST_BYTES = 2**20
# Arrays begin at multiples of that many bytes.
ALIGNMENT = 64

# The directory of the worker in this process, once a task has told it.
_last_known: dict[str, Path] = {}


@dataclass(frozen=True, eq=False)
class KeptBlock:
    """A block whose arrays are in a file.

    ``head`` is its pickle without them, and ``places`` are the first and last byte of each in the
    file, which is at ``path`` in the folder of the fit.
    """

    folder: str
    path: Path
    head: bytes
    places: tuple[tuple[int, int], ...]

    def open(self) -> Any:
        """The block, with arrays that are read from the file when they are used.

        Who writes to them changes no file.
        """
        content = self._content()
        return pickle.loads(self.head, buffers=[content[start:stop] for start, stop in self.places])

    def _content(self) -> memoryview:
        with self.path.open("rb") as stream:
            return memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY))

    def __sizeof__(self) -> int:
        """Of the block: Dask runs tasks where the most bytes of what they need are."""
        return len(self.head) + (self.places[-1][1] if self.places else 0)

    def __reduce_ex__(self, protocol: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """With all that is in the file, which another process need not reach."""
        content = self._content()
        # Which Dask sends without a copy.
        sent = pickle.PickleBuffer(content) if int(protocol) >= 5 else bytes(content)
        return _received, (self.folder, self.head, self.places, sent)


def keep(block: Any, folder: str) -> Any:
    """A block in a file in the ``folder`` of a fit, or itself where it is small."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(block, protocol=5, buffer_callback=buffers.append)
    arrays = [buffer.raw() for buffer in buffers]
    if sum(array.nbytes for array in arrays) < LEAST_BYTES:
        return block
    sizes = [-(-array.nbytes // ALIGNMENT) * ALIGNMENT for array in arrays]
    starts = [0, *accumulate(sizes)][:-1]
    places = tuple(
        (start, start + array.nbytes) for start, array in zip(starts, arrays, strict=True)
    )
    path = _new_path(folder)
    with path.open("wb") as stream:
        for start, array in zip(starts, arrays, strict=True):
            stream.seek(start)
            stream.write(array)
    return KeptBlock(folder, path, head, places)


def opened(argument: Any) -> Any:
    """What a task is called with: blocks that are kept in files are opened."""
    return argument.open() if isinstance(argument, KeptBlock) else argument


@contextmanager
def files_of_fit() -> Iterator[str]:
    """The name of a folder for the blocks of a fit, which goes with it on every worker."""
    folder = f"viewmend-{uuid4().hex}"
    try:
        yield folder
    finally:
        _remove(folder, _directory_without_worker())
        client = _active_client()
        if client is not None and client.status == "running":
            # Workers that are gone have taken their folders with them. Where the scheduler is gone
            # too, there is another error to be told of; what that is here depends on how far it is.
            with suppress(Exception):
                client.run(_remove_from_worker, folder, on_error="ignore")


def _received(
    folder: str, head: bytes, places: tuple[tuple[int, int], ...], content: Any
) -> KeptBlock:
    """A block that comes from another process, in a file here."""
    path = _new_path(folder)
    path.write_bytes(content)
    return KeptBlock(folder, path, head, places)


def _new_path(folder: str) -> Path:
    path = _directory() / folder
    path.mkdir(parents=True, exist_ok=True)
    return path / uuid4().hex


def _directory() -> Path:
    """Where the worker that runs here writes; without one, where Dask is told to, or anywhere."""
    try:
        from distributed import get_worker

        _last_known["worker"] = Path(get_worker().local_directory)
    except (ImportError, ValueError):
        # What another worker sends is received beside the tasks.
        if "worker" not in _last_known:
            return _directory_without_worker()
    return _last_known["worker"]


def _directory_without_worker() -> Path:
    return Path(dask.config.get("temporary-directory") or tempfile.gettempdir())


def _remove(folder: str, *directories: Path) -> None:
    for directory in directories:
        shutil.rmtree(directory / folder, ignore_errors=True)


def _remove_from_worker(folder: str, dask_worker: Any) -> None:
    _remove(folder, Path(dask_worker.local_directory), _directory_without_worker())


def _active_client() -> Any:
    try:
        from distributed import default_client

        return default_client()
    except (ImportError, ValueError):
        return None


def _register() -> None:
    """Tell Dask how kept blocks travel, and how they go to its own disk."""
    from distributed.protocol.serialize import (
        dask_deserialize,
        dask_serialize,
        pickle_dumps,
        pickle_loads,
    )

    @dask_serialize.register(KeptBlock)
    def _dumps(kept: KeptBlock, context: Any = None) -> tuple[dict[str, Any], list[Any]]:
        # Messages to others have a context. Without one, this process reads it again.
        if context is None:
            return {"here": (kept.folder, str(kept.path), kept.head, kept.places)}, []
        header, frames = pickle_dumps(kept, context)
        return {"pickled": header}, frames

    @dask_deserialize.register(KeptBlock)
    def _loads(header: dict[str, Any], frames: list[Any]) -> Any:
        if "pickled" in header:
            return pickle_loads(header["pickled"], frames)
        folder, path, head, places = header["here"]
        return KeptBlock(folder, Path(path), head, tuple(map(tuple, places)))


# On a worker, it is there before anything of viewmend is.
if "distributed" in sys.modules:
    _register()
