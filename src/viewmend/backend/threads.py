"""How many threads the kernels and the linear algebra may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numba
from threadpoolctl import threadpool_limits

__all__ = ["limited_threads"]


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
