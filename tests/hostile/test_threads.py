"""Fits at once in one process, and the settings of linear algebra that they share."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from attacks.fitting import blas_threads, make_model, make_task
from attacks.outcomes import GOOD
from attacks.running import run_case
from attacks.threads import Threads
from threadpoolctl import threadpool_limits

from viewmend.backend.threads import (
    available_threads,
    limited_threads,
    parallel_map,
    serial_blas,
    taken_rows,
)


@pytest.fixture
def two_blas_threads():
    with threadpool_limits(2, user_api="blas"):
        yield blas_threads()


def test_fits_at_once_have_the_bits_of_fits_one_by_one(tmp_path):
    attack = Threads(n_samples=80)
    attack.prepare(tmp_path)
    for case in range(2):
        outcome = run_case(attack, tmp_path, 0, case)
        assert outcome.verdict in GOOD, outcome.detail


def test_the_last_that_leaves_gives_linear_algebra_its_threads_back(two_blas_threads):
    first, second = serial_blas(), serial_blas()
    first.__enter__()
    second.__enter__()
    assert set(blas_threads()) == {1}
    first.__exit__(None, None, None)
    assert set(blas_threads()) == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == two_blas_threads


def test_any_thread_may_be_the_one_that_lowers_them(two_blas_threads):
    """threadpoolctl listens to one thread only, here the one that asked for two threads."""

    def lowered():
        with serial_blas():
            return set(blas_threads())

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lowered).result() == {1}
    assert blas_threads() == two_blas_threads


def test_an_error_gives_linear_algebra_its_threads_back(two_blas_threads):
    def interrupt(_item):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        parallel_map(interrupt, range(3))
    assert blas_threads() == two_blas_threads


def test_after_an_error_in_one_thread_the_others_begin_nothing_more():
    begun, failed = [], threading.Event()

    def work(item):
        begun.append(item)
        if threading.current_thread() is not threading.main_thread():
            failed.set()
            raise ValueError(item)
        # All the items together take far longer than the other thread needs to end.
        failed.wait(2)
        time.sleep(0.05)

    with limited_threads(2), pytest.raises(ValueError, match=r"\d+"):
        parallel_map(work, range(100))
    assert failed.is_set()
    assert len(begun) < 100


@pytest.mark.parametrize("method", ["Mend", "AGF-TI"])
@pytest.mark.parametrize("n_jobs", [None, np.int64(2)])
def test_a_fit_runs_linear_algebra_on_one_thread_from_its_beginning(
    method, n_jobs, two_blas_threads, monkeypatch
):
    task, model, seen = make_task(80, 0), make_model(method, n_jobs=n_jobs), []
    build = type(model).build_geometry

    def watched(self, *arguments):
        seen.append(set(blas_threads()))
        return build(self, *arguments)

    monkeypatch.setattr(type(model), "build_geometry", watched)
    model.fit(task.data, task.y)
    assert seen == [{1}]
    assert blas_threads() == two_blas_threads


def test_threads_are_counted_for_each_thread_of_the_caller():
    @contextmanager
    def entered(n_jobs):
        with limited_threads(n_jobs):
            yield available_threads()

    before = available_threads()
    with entered(3) as outer, entered(np.int64(1)) as inner:
        assert (outer, inner) == (3, 1)
        # A lane of the pool has no thread left to share, whatever was asked for.
        assert parallel_map(lambda _: available_threads(), range(2)) == [1, 1]
    assert available_threads() == before


@pytest.mark.parametrize("n_rows", [0, 1, 5000])
def test_rows_taken_on_all_threads_are_those_that_are_asked_for(n_rows):
    X = np.random.default_rng(0).normal(size=(300, 40))
    rows = np.random.default_rng(1).integers(300, size=n_rows)
    np.testing.assert_array_equal(taken_rows(X, rows), X[rows])


@pytest.mark.parametrize("row", [-1, 300])
def test_rows_that_are_not_there_are_an_error(row):
    with pytest.raises(IndexError, match="rows must be 0 to 299"):
        taken_rows(np.zeros((300, 2)), np.array([0, row]))
