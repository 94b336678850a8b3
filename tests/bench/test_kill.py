"""A benchmark that is killed again and again ends with the store of one that was not."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import viewmend
from viewmend import cli
from viewmend.bench.methods import CONTESTANTS
from viewmend.bench.store import ResultStore
from viewmend.datasets import make_multiview_blobs

# A method that takes its time, so that there is a middle to be killed in; tuned under "paper".
PLUGIN = """
import time

from viewmend.baselines import UnionGraphClassifier
from viewmend.bench.methods import CONTESTANTS, Contestant


class SlowUnionGraph(UnionGraphClassifier):
    def fit(self, X, y):
        time.sleep(0.03)
        return super().fit(X, y)


CONTESTANTS["slow"] = Contestant(f"{__name__}:SlowUnionGraph", thinned={"n_neighbors": [3, 5, 8]})
"""
TOML = """
name = "killed"
protocols = ["paper", "honest"]
data = ["blobs", "more blobs"]
missing_rates = [0.2, 0.4]
label_rates = [0.1]
methods = ["slow"]
repetitions = 8
plugins = ["plugin_of_test_kill.py"]
"""
N_RUNS = 2 * 2 * (3 + 7) + 2 * 2 * 8
COMMAND = "from viewmend.cli import app; app()"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "plugin_of_test_kill.py").write_text(PLUGIN)
    (tmp_path / "killed.toml").write_text(TOML)
    for seed, name in enumerate(["blobs", "more blobs"]):
        blobs = make_multiview_blobs(60, n_views=2, noise=4.0, random_state=seed)
        views = {f"view_{v}": view for v, view in enumerate(blobs.views)}
        np.savez(tmp_path / f"{name}.npz", y=blobs.y, **views)
    yield tmp_path
    CONTESTANTS.pop("slow", None)
    sys.modules.pop("plugin_of_test_kill", None)


def arguments(folder, results, jobs):
    paths = [str(folder / "killed.toml"), "--data", str(folder), "--results", str(results)]
    return ["bench", "run", *paths, "--jobs", str(jobs)]


def start(folder, results, jobs):
    """A benchmark in a session of its own, so that its workers can be killed with it."""
    environment = os.environ | {"PYTHONPATH": str(Path(viewmend.__file__).parents[1])}
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, *arguments(folder, results, jobs)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def wait_until(happened, seconds=120):
    limit = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < limit, "it did not happen"
        time.sleep(0.005)


def kill_at_a_random_moment(process, store, moments):
    """Kill a benchmark some records and milliseconds after the first one it wrote."""
    before = len(list(store.runs.glob("*.json")))
    n_records, pause = moments.randint(1, 8), moments.uniform(0, 0.1)
    wait_until(lambda: len(list(store.runs.glob("*.json"))) >= before + n_records)
    time.sleep(pause)
    assert process.poll() is None, "it ended by itself"
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait(20) == -signal.SIGKILL


def run_to_the_end(folder, results):
    result = CliRunner().invoke(cli.app, arguments(folder, results, 1), env={"TERM": "dumb"})
    assert result.exit_code == 0, result.output
    return ResultStore(results)


def comparable(store):
    return [(r.key, r.status, r.result, r.message) for r in store.records()]


def test_killed_three_times_and_resumed_ends_as_if_never_killed(folder):
    store, moments = ResultStore(folder / "killed"), random.Random(2025)
    for jobs in (1, 2, 1):
        process = start(folder, store.folder, jobs)
        try:
            kill_at_a_random_moment(process, store, moments)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(20)
        # The workers of a process that was killed go a moment after it.
        wait_until(lambda: store.running() == [])
        records = store.records()  # a record cut short would be a warning, which is an error here
        assert 0 < len(records) < N_RUNS
    resumed = run_to_the_end(folder, store.folder)
    whole = run_to_the_end(folder, folder / "whole")
    assert len(comparable(whole)) == N_RUNS
    assert comparable(resumed) == comparable(whole)
    # A process killed between the record and the end of its claim leaves a lock of a run that is
    # done, which nobody holds or asks for again.
    done = {path.stem for path in resumed.runs.glob("*.json")}
    assert {path.stem for path in resumed.claims.iterdir()} <= done
    assert resumed.interrupted() == []
    assert not list(resumed.drafts.iterdir())
