"""A benchmark that is killed again and again ends with the store of one that was not."""

import os
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

# A method that is tuned under "paper", and a death at a defined call, counted over all processes.
PLUGIN = """
import os, signal

from viewmend.baselines import UnionGraphClassifier
from viewmend.bench.methods import CONTESTANTS, Contestant

place, due, counter = os.environ.get("DIE_AT", "nowhere 0 -").split()


def dying(function, name):
    def call(*arguments, **options):
        if name == place:
            with open(counter, "ab", buffering=0) as calls:
                calls.write(b".")
                if calls.tell() == int(due):
                    os.killpg(0, signal.SIGKILL)
        return function(*arguments, **options)

    return call


class Mortal(UnionGraphClassifier):
    fit = dying(UnionGraphClassifier.fit, "fit")


os.fsync = dying(os.fsync, "fsync")
os.unlink = dying(os.unlink, "unlink")
CONTESTANTS["mortal"] = Contestant(f"{__name__}:Mortal", thinned={"n_neighbors": [3, 5, 8]})
"""
TOML = """
name = "killed"
protocols = ["paper", "honest"]
data = ["blobs", "more blobs"]
missing_rates = [0.2, 0.4]
label_rates = [0.1]
methods = ["mortal"]
repetitions = 3
plugins = ["plugin_of_test_kill.py"]
"""
N_RUNS = 2 * 2 * (3 + 2) + 2 * 2 * 3
COMMAND = "from viewmend.cli import app; app()"
# Jobs, and the call that a benchmark does not survive: in the middle of a run, while its record is
# written (two calls a record), and between the record and the end of its claim.
DEATHS = [(1, "fit 5"), (2, "fsync 7"), (1, "unlink 4")]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "plugin_of_test_kill.py").write_text(PLUGIN)
    (tmp_path / "killed.toml").write_text(TOML)
    for seed, name in enumerate(["blobs", "more blobs"]):
        blobs = make_multiview_blobs(60, n_views=2, noise=4.0, random_state=seed)
        views = {f"view_{v}": view for v, view in enumerate(blobs.views)}
        np.savez(tmp_path / f"{name}.npz", y=blobs.y, **views)
    fsync, unlink = os.fsync, os.unlink
    yield tmp_path
    os.fsync, os.unlink = fsync, unlink
    CONTESTANTS.pop("mortal", None)
    sys.modules.pop("plugin_of_test_kill", None)


def arguments(folder, results, jobs):
    paths = [str(folder / "killed.toml"), "--data", str(folder), "--results", str(results)]
    return ["bench", "run", *paths, "--trust", "--jobs", str(jobs)]


def run_until_killed(folder, results, jobs, death):
    """A benchmark in a session of its own, which dies with all its workers."""
    counter = folder / f"calls {death}".replace(" ", "_")
    own = {"PYTHONPATH": str(Path(viewmend.__file__).parents[1]), "DIE_AT": f"{death} {counter}"}
    died = subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments(folder, results, jobs)],
        env=os.environ | own,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        check=False,
    )
    assert died.returncode == -signal.SIGKILL


def run_to_the_end(folder, results):
    result = CliRunner().invoke(cli.app, arguments(folder, results, 1), env={"TERM": "dumb"})
    assert result.exit_code == 0, result.output
    return ResultStore(results)


def comparable(store):
    return [(r.key, r.status, r.result, r.message) for r in store.records()]


@pytest.mark.kills
def test_killed_three_times_and_resumed_ends_as_if_never_killed(folder):
    store, n_records = ResultStore(folder / "killed"), []
    for jobs, death in DEATHS:
        run_until_killed(folder, store.folder, jobs, death)
        while store.running():
            # The system frees the locks of the workers when it has cleared them away.
            time.sleep(0.01)
        # A record cut short would be a warning, which is an error here.
        n_records.append(len(store.records()))
    assert 0 < n_records[0] < n_records[1] < n_records[2] < N_RUNS
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
