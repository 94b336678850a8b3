"""How many threads the work may use, and the one pool that all of it shares.

Compiled kernels and linear algebra run on one thread each, and their rows are spread over the pool
from here: two pools of threads that wait for each other by spinning would fight for the cores,
and a product on one thread has the same digits whatever the number of threads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any, TypeVar

import numba
import scipy.linalg  # noqa: F401  its linear algebra must be loaded before it is looked for
from threadpoolctl import ThreadpoolController, threadpool_limits

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
]

# Entries of a block of rows: they fit in a core's cache, and take longer than waking a thread.
BLOCK = 1 << 16

_here = threading.local()


@contextmanager
def limited_threads(n_jobs: int | None) -> Iterator[None]:
    """Run with ``n_jobs`` threads: None leaves all as it is, -1 means every core."""
    if n_jobs is None:
        yield
        return
    n_threads = n_jobs if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)
    before = numba.get_num_threads()
    # Numba cannot go beyond the threads it launched.
    numba.set_num_threads(min(n_threads, numba.config.NUMBA_NUM_THREADS))  # type: ignore[attr-defined]
    try:
        with threadpool_limits(n_threads):
            yield
    finally:
        numba.set_num_threads(before)


def available_threads() -> int:
    """Threads that the caller may use at the moment: one inside the pool."""
    return 1 if getattr(_here, "in_pool", False) else int(numba.get_num_threads())


def serial_blas() -> AbstractContextManager[Any]:
    """Context in which linear algebra runs on one thread, and rounds the same everywhere."""
    return _blas().limit(limits=1)


def parallel_map(work: Callable[[Item], Output], items: Iterable[Item]) -> list[Output]:
    """Results of ``work`` on every item, on as many threads as are available.

    Linear algebra inside runs on one thread, so that the numbers are the same whatever the number
    of threads. Inside ``work`` there is nothing left to share: a further call runs one by one.
    """
    items = list(items)
    results: list[Any] = [None] * len(items)
    # One iterator for all lanes, each of which takes the next position when it is free. Next is
    # atomic under the interpreter's lock.
    positions = iter(range(len(items)))

    def lane() -> None:
        for i in positions:
            results[i] = work(items[i])

    n_lanes = min(available_threads(), len(items))
    with serial_blas():
        others = [_pool(os.getpid()).submit(_in_pool, lane) for _ in range(n_lanes - 1)]
        try:
            # The caller works too, rather than wait.
            _in_pool(lane)
        finally:
            for other in others:
                other.result()
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


def _in_pool(lane: Callable[[], None]) -> None:
    before = getattr(_here, "in_pool", False)
    _here.in_pool = True
    try:
        lane()
    finally:
        _here.in_pool = before


@cache
def _pool(_process: int) -> ThreadPoolExecutor:
    """The threads of a process; a fork starts without those of its parent."""
    return ThreadPoolExecutor(max(1, (os.cpu_count() or 1) - 1), thread_name_prefix="viewmend")


@cache
def _blas() -> Any:
    return ThreadpoolController().select(user_api="blas")
