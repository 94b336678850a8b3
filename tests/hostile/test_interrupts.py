"""Ctrl-C in the middle of threads, of a fit and of a command."""

import signal
import threading

import numpy as np
import pytest
from attacks.fitting import blas_threads, digest, make_model, make_task
from attacks.interrupts import Interrupts
from typer.testing import CliRunner

from viewmend.backend import threads
from viewmend.backend.threads import available_threads, limited_threads, parallel_map
from viewmend.callbacks import ProgressBar
from viewmend.cli import app
from viewmend.cli.interrupts import heard_interrupts
from viewmend.core.graphs import points


def test_no_lane_runs_and_none_begins_once_an_interrupt_is_out(monkeypatch):
    begun, done = [], []
    other_began, release = threading.Event(), threading.Event()

    def work(item):
        begun.append(item)
        if threading.current_thread() is threading.main_thread():
            other_began.wait(2)
            raise KeyboardInterrupt
        other_began.set()
        release.wait(2)
        done.append(item)

    def wait(lanes):
        # Ctrl-C once more, while the lanes are waited for.
        if not release.is_set():
            release.set()
            raise KeyboardInterrupt
        return real_wait(lanes)

    real_wait = getattr(threads, "wait", None)
    monkeypatch.setattr(threads, "wait", wait, raising=False)
    with limited_threads(2), pytest.raises(KeyboardInterrupt):
        parallel_map(work, range(4))
    assert (len(begun), len(done)) == (2, 1)
    with limited_threads(2):
        assert available_threads() == 2
        assert parallel_map(lambda item: item + 1, range(50)) == list(range(1, 51))


def test_a_search_ends_in_all_threads_before_an_interrupt_is_out(monkeypatch):
    """Kernels know nothing of the interpreter: one that went on would write to freed memory."""
    running, kernel = [], points.numba_leaves.scan_leaves

    def scan(*arguments):
        running.append(arguments[0])
        try:
            if threading.current_thread() is threading.main_thread():
                signal.raise_signal(signal.SIGINT)
            return kernel(*arguments)
        finally:
            running.pop()

    monkeypatch.setattr(points.numba_leaves, "scan_leaves", scan)
    X = np.random.default_rng(0).normal(size=(6000, 6))
    with limited_threads(2), pytest.raises(KeyboardInterrupt):
        points.search_points(X, 5)
    assert running == []


@pytest.mark.parametrize("method", ["Mend", "AGF-TI"])
def test_the_next_fit_after_an_interrupt_has_the_right_bits(method):
    def interrupt(_round, _state):
        signal.raise_signal(signal.SIGINT)

    task, before = make_task(80, 0), blas_threads()
    expected = digest(make_model(method, n_jobs=2).fit(task.data, task.y))
    model = make_model(method, n_jobs=2).fit(task.data, task.y).set_callbacks(interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(task.data, task.y)
    assert not [name for name in vars(model) if name.endswith("_")]
    assert blas_threads() == before
    assert digest(model.set_callbacks().fit(task.data, task.y)) == expected


def test_an_interrupted_command_says_what_was_kept(tmp_path, monkeypatch):
    def interrupted(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("viewmend.cli.fit.read_view_tables", interrupted)
    command = ["fit", str(tmp_path), "-l", "y", "-o", str(tmp_path / "never.vm")]
    result = CliRunner().invoke(app, command, prog_name="viewmend")
    assert result.exit_code == 130
    first, *others = result.stderr.splitlines()
    assert first == "Interrupted: you stopped viewmend fit (Ctrl-C) before its end."
    assert "Nothing was kept" in " ".join(others)
    assert result.stdout == ""


def test_a_command_that_gets_a_signal_in_a_round_of_its_fit(tmp_path, monkeypatch):
    def interrupt(_bar):
        signal.raise_signal(signal.SIGINT)

    Interrupts(n_samples=80).write_data(tmp_path)
    monkeypatch.setattr(ProgressBar, "on_rounds_begin", interrupt)
    command = ["fit", str(tmp_path / "data.npz"), "-l", "y", "-o", str(tmp_path / "never.vm")]
    result = CliRunner().invoke(app, command, prog_name="viewmend")
    assert result.exit_code == 130, result.output
    assert result.stderr.count("Interrupted:") == 1
    assert not (tmp_path / "never.vm").exists()


def test_an_interrupt_that_meets_a_finalizer_is_not_lost():
    class Disposed:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)
            # Python runs the handler between two steps of the interpreter, thus here.
            caught.append(True)

    def dispose_and_wait():
        with heard_interrupts():
            Disposed()
            assert caught == [True]
            # What it waits for ends, too: nobody would press Ctrl-C again.
            ended.append(threading.Event().wait(600))

    caught, ended = [], []
    with pytest.raises(KeyboardInterrupt):
        dispose_and_wait()
    assert not ended
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
