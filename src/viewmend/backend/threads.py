"""How many threads the work may use, and the one pool that all of it shares.

Compiled kernels and linear algebra run on one thread each, and their rows are spread over the pool
from here: two pools of threads that wait for each other by spinning would fight for the cores,
and a product on one thread has the same digits whatever the number of threads.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from queue import SimpleQueue
from typing import Any, TypeVar

import numba
import numpy as np
import scipy.linalg  # noqa: F401  its linear algebra must be loaded before it is looked for
from threadpoolctl import LibController, ThreadpoolController, threadpool_limits

from viewmend.backend.namespace import is_numpy

Item = TypeVar("Item")
Output = TypeVar("Output")

__all__ = [
    "BLOCK",
    "available_threads",
    "blocks_for",
    "for_each",
    "limited_threads",
    "over_rows",
    "parallel_map",
    "row_blocks",
    "serial_blas",
    "taken_rows",
]

# Entries of a block of rows: they fit in a core's cache, and take longer than waking a thread.
BLOCK = 1 << 16

# Seconds after which a caller looks again whether a lane is over, should its bell have been missed.
TICK = 0.05

_here = threading.local()

# Who wants linear algebra on one thread at the moment, and the threads that its libraries had
# before. These settings are of the whole process, in which several fits may run at once.
_serial_uses: set[object] = set()
_threads_before: list[tuple[LibController, int]] = []
_lock = threading.Lock()
# A fork in the middle of a change would leave its child with a lock that nobody opens.
if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )


@contextmanager
def limited_threads(n_jobs: int | None) -> Iterator[None]:
    """Run on ``n_jobs`` threads: None for as many as Numba has, -1 for every core.

    Linear algebra runs on one thread throughout, as in `serial_blas`, so that results do not
    depend on ``n_jobs``.
    """
    _load_numba()
    if n_jobs is None:
        with serial_blas():
            yield
        return
    # A NumPy integer is not what the libraries take.
    n_jobs = int(n_jobs)
    n_threads = n_jobs if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)
    before = getattr(_here, "n_threads", None)
    with serial_blas(), threadpool_limits(n_threads, user_api="openmp"):
        try:
            _here.n_threads = n_threads
            yield
        finally:
            _here.n_threads = before


def available_threads() -> int:
    """Threads that the caller may use at the moment: one inside the pool."""
    if getattr(_here, "in_pool", False):
        return 1
    return getattr(_here, "n_threads", None) or int(numba.get_num_threads())


@contextmanager
def serial_blas() -> Iterator[None]:
    """Run linear algebra on one thread, so that it rounds the same everywhere.

    The first that enters lowers the number of its threads, the last that leaves restores it. What
    Ctrl-C keeps from being restored, the next one restores.
    """
    use = object()
    try:
        _serial_uses.add(use)
        with _lock:
            if not _threads_before:
                _threads_before[:] = [(library, library.num_threads) for library in _blas()]
                _set_threads((library, 1) for library in _blas())
        yield
    finally:
        _serial_uses.discard(use)
        with _lock:
            if not _serial_uses:
                _set_threads(_threads_before)
                _threads_before.clear()


def parallel_map(work: Callable[[Item], Output], items: Iterable[Item]) -> list[Output]:
    """Results of ``work`` on every item, on as many threads as are available.

    Linear algebra inside runs on one thread, so that the numbers are the same whatever the number
    of threads. Inside ``work`` there is nothing left to share: a further call runs one by one. An
    error, or Ctrl-C, is raised when the items under way have ended, and no other one is begun.
    """
    items = list(items)
    results: list[Any] = [None] * len(items)
    # One iterator for all lanes, each of which takes the next position when it is free. Next is
    # atomic under the interpreter's lock.
    positions = iter(range(len(items)))

    def lane() -> None:
        try:
            for i in positions:
                results[i] = work(items[i])
        finally:
            # After an error the other lanes would go on to the end.
            _use_up(positions)

    _load_numba()
    n_lanes = min(available_threads(), len(items))
    others = [_Lane(lane) for _ in range(n_lanes - 1)]
    with serial_blas():
        try:
            for other in others:
                _pool(os.getpid()).put(other)
            # The caller works too, rather than wait.
            _in_pool(lane)
        finally:
            _to_the_end(partial(_end_lanes, others, positions))
    for other in others:
        if other.error is not None:
            raise other.error
    return results


def for_each(work: Callable[[Item], Output], items: Iterable[Item], xp: Any) -> list[Output]:
    """`parallel_map` for NumPy; one by one for libraries with threads of their own."""
    return parallel_map(work, items) if is_numpy(xp) else [work(item) for item in items]


def blocks_for(n_rows: int, row_size: int, xp: Any) -> list[slice]:
    """`row_blocks` for NumPy; all rows at once for libraries that cut their work themselves."""
    return row_blocks(n_rows, row_size) if is_numpy(xp) else [slice(0, n_rows)]


def row_blocks(n_rows: int, row_size: int, per_block: int = BLOCK) -> list[slice]:
    """Blocks of about ``per_block`` entries that cover the rows, whatever the number of threads.

    No rows are one empty block.
    """
    rows = max(1, per_block // max(1, row_size))
    return [slice(start, min(start + rows, n_rows)) for start in range(0, max(n_rows, 1), rows)]


def over_rows(kernel: Callable[..., None], n_rows: int, row_size: int, *arguments: Any) -> None:
    """``kernel((start, stop), *arguments)`` on blocks of rows, on all available threads.

    The kernel is compiled for one thread, without the interpreter's lock, and reads ``row_size``
    entries of a row.
    """
    blocks = row_blocks(n_rows, row_size)
    parallel_map(lambda rows: kernel((rows.start, rows.stop), *arguments), blocks)


def taken_rows(X: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """``X[rows]``, copied on all available threads: of new memory, every page takes its time."""
    # Checked before, because numbers that are clipped are not looked at one by one.
    if rows.size and not 0 <= rows.min() <= rows.max() < len(X):
        msg = f"rows must be 0 to {len(X) - 1}, got {rows.min()} to {rows.max()}"
        raise IndexError(msg)
    taken = np.empty((len(rows), *X.shape[1:]), dtype=X.dtype)
    blocks = row_blocks(len(rows), max(X[:1].size, 1))
    parallel_map(lambda part: X.take(rows[part], axis=0, out=taken[part], mode="clip"), blocks)
    return taken


def _in_pool(lane: Callable[[], None]) -> None:
    before = getattr(_here, "in_pool", False)
    try:
        _here.in_pool = True
        lane()
    finally:
        _here.in_pool = before


class _Lane:
    """Work for a thread of the pool, which its caller can always end, and wait for.

    Ctrl-C may come between any two steps of the caller, and each of them can be done again. That
    is why there are flags and no counts, and none of the locks that Python's own futures hold:
    an interrupt leaves those closed for ever now and then.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self.wanted, self.begun, self.over = True, False, False
        self.error: BaseException | None = None
        self.bell = threading.Lock()
        self.bell.acquire()

    def __call__(self) -> None:
        # First the one flag, then the other: a caller that sees this one unset is seen here.
        self.begun = True
        try:
            if self.wanted:
                _in_pool(self.work)
        except BaseException as error:
            self.error = error
        finally:
            self.over = True
            self.bell.release()

    def end(self) -> None:
        """Wait until it is over; one that has not begun will do nothing."""
        self.wanted = False
        while self.begun and not self.over:
            self.bell.acquire(timeout=TICK)


def _end_lanes(lanes: Sequence[_Lane], positions: Iterator[int]) -> None:
    """Begin nothing more, and wait until no lane runs.

    Lanes still write to arrays of the caller, and the settings of linear algebra must not change
    under them.
    """
    _use_up(positions)
    for lane in lanes:
        lane.end()


def _use_up(positions: Iterator[int]) -> None:
    """Leave nothing for any lane to begin."""
    deque(positions, maxlen=0)


def _to_the_end(wait_for_it: Callable[[], None]) -> None:
    """Wait, also where Ctrl-C is pressed meanwhile; it is raised afterwards."""
    try:
        wait_for_it()
    except BaseException:
        _to_the_end(wait_for_it)
        raise


@cache
def _load_numba() -> None:
    """Let Numba load the rest of itself, which it leaves for its first kernel.

    In a thread of its own, which Ctrl-C does not reach: no kernel runs any more in a process
    where Numba was half loaded.
    """
    loading = threading.Thread(target=numba.njit(lambda: None))
    loading.start()
    _to_the_end(loading.join)


@cache
def _pool(_process: int) -> SimpleQueue[_Lane]:
    """What the threads of a process take their work from; a fork starts without its parent's."""
    lanes: SimpleQueue[_Lane] = SimpleQueue()

    def serve() -> None:
        while True:
            lanes.get()()

    for number in range(max(1, (os.cpu_count() or 1) - 1)):
        threading.Thread(target=serve, name=f"viewmend_{number}", daemon=True).start()
    return lanes


def _set_threads(numbers: Iterable[tuple[LibController, int]]) -> None:
    for library, n_threads in numbers:
        _take_control(library)
        library.set_num_threads(n_threads)
        _take_control(library)


def _take_control(library: LibController) -> None:
    """Let any thread set the number next.

    Since version 3.8, threadpoolctl listens to the first thread that sets one, and to no other,
    without a word; here the settings are those of all threads, and `_lock` keeps them in order.
    """
    if hasattr(library, "clear_controlling_thread"):
        library.clear_controlling_thread(force=True)


@cache
def _blas() -> tuple[LibController, ...]:
    """The libraries of linear algebra in this process."""
    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)
