"""How many threads the kernels and the linear algebra may use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import numba
from threadpoolctl import threadpool_limits

Item = TypeVar("Item")
Result = TypeVar("Result")

__all__ = ["available_threads", "limited_threads", "parallel_map", "serial_blas"]


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
    """Threads that compiled kernels may use at the moment."""
    return int(numba.get_num_threads())


def serial_blas() -> threadpool_limits:
    """Context in which linear algebra runs on one thread, and rounds the same everywhere."""
    return threadpool_limits(1, user_api="blas")


def parallel_map(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Results of ``work`` on every item, on as many threads as the kernels may use.

    Linear algebra inside runs on one thread, so that the numbers are the same whatever the number
    of threads. ``work`` must not call a parallel kernel itself.
    """
    with serial_blas():
        if available_threads() == 1:
            return [work(item) for item in items]
        with ThreadPoolExecutor(available_threads()) as pool:
            return list(pool.map(work, items))
