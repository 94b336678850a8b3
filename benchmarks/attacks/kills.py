"""Kills at random moments: what goes on afterwards must end as if nothing had happened.

A process that is to be killed tells of every step on a pipe, and each case draws at which of its
steps, and how much later, it dies; so kills are drawn over the work and not over the time that
Python takes to start.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import pkgutil
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import viewmend
from attacks.outcomes import Outcome, Verdict, judged
from viewmend.datasets import hide, make_multiview_blobs

# Longest pause, in seconds, between the step that a case draws and the kill.
PAUSE = 0.05

# Imports everything once, and forks from there: kills need many processes that do little.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["viewmend.bench.runner", "viewmend.distributed"])

Tell = Callable[[], None]


class Victim:
    """A function in a session of its own, which can be killed with all that it started.

    The function is given what to call at every step, and its own arguments.
    """

    def __init__(self, work: Callable[..., None], *arguments: Any) -> None:
        self.said, theirs = FORKS.Pipe(duplex=False)
        self.process = FORKS.Process(target=_alone, args=(theirs, work, arguments))
        self.process.start()
        theirs.close()

    def killed(self, rng: np.random.Generator, n_steps: int) -> str:
        """Kill it some time after one of its steps; how it failed before, or nothing."""
        due, pause = rng.integers(n_steps), PAUSE * rng.random()
        for _ in range(due + 1):
            said = self._heard()
            if said != "step":
                return self.failure(said)
        time.sleep(pause)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid or 0, signal.SIGKILL)
        return self.failure()

    def failure(self, said: str = "step") -> str:
        """Wait for its end; the traceback of what it raised, or nothing."""
        while said == "step":
            said = self._heard()
        self.process.join()
        self.said.close()
        return said

    def _heard(self) -> str:
        try:
            return str(self.said.recv())
        except (EOFError, OSError):
            return ""


def _alone(said: Any, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    os.setsid()
    try:
        work(partial(said.send, "step"), *arguments)
    except BaseException:
        said.send(traceback.format_exc())


def carry_out(tell: Tell, folder: Path, results: Path, jobs: int) -> None:
    """Run the benchmark in a folder, and tell of every run."""
    from viewmend.bench.runner import open_experiment, spread_over

    session = open_experiment(folder / "kills.toml", results, folder)
    tell()
    session.carry_out(spread_over(jobs, None), lambda _: tell())


TOML = """
name = "kills"
protocols = ["paper", "honest"]
data = ["blobs"]
missing_rates = [0.2, 0.4]
label_rates = [0.1]
methods = ["union graph", "mean + spreading"]
repetitions = 3
"""


@dataclass(frozen=True)
class StoreKills:
    """A benchmark, killed again and again until it ends: its store is that of one in peace."""

    name: str = "store kills"
    n_cases: int = 30
    time_limit: float = 300.0
    # Kills of a case; then it may end.
    n_kills: int = 3
    # Share of the kills that hit a benchmark on two processes.
    parallel: float = 0.1

    def prepare(self, folder: Path) -> None:
        (folder / "kills.toml").write_text(TOML)
        write_blobs(folder / "blobs.npz")
        failed = Victim(carry_out, folder, folder / "whole", 1).failure()
        if failed:
            raise RuntimeError(failed)

    def attempt(self, folder: Path, rng: np.random.Generator) -> Outcome:
        from viewmend.bench.store import ResultStore

        store, whole = ResultStore(folder / f"killed-{rng.integers(2**62)}"), folder / "whole"
        n_steps = len(list((whole / "runs").iterdir())) // self.n_kills
        for _ in range(self.n_kills):
            jobs = 1 + (rng.random() < self.parallel)
            failed = Victim(carry_out, folder, store.folder, jobs).killed(rng, n_steps)
            if failed:
                return Outcome(Verdict.FOREIGN, failed)
            while store.running():
                # The system frees the locks of killed processes when it has cleared them away.
                time.sleep(0.01)
        failed = Victim(carry_out, folder, store.folder, 1).failure()
        if failed:
            return Outcome(Verdict.FOREIGN, failed)
        if comparable(store) != comparable(ResultStore(whole)):
            return Outcome(Verdict.SILENT, f"{store.folder} differs from the store in peace")
        left = [*store.drafts.iterdir(), *store.interrupted()]
        return Outcome(Verdict.SILENT, f"left over: {left}") if left else Outcome(Verdict.RIGHT)


def write_blobs(path: Path) -> None:
    """A small data set."""
    blobs = make_multiview_blobs(60, n_views=2, noise=4.0, random_state=0)
    np.savez(path, y=blobs.y, **{f"view_{v}": view for v, view in enumerate(blobs.views)})


def comparable(store: Any) -> list[Any]:
    """Records without what differs from run to run: seconds."""
    return [(r.key, r.status, r.result, r.message) for r in store.records()]


# What is compared of a fitted model, as far as it has it.
FITTED = ("transduction_", "label_distributions_", "view_weights_", "fused_graph_", "view_graphs_")


@dataclass(frozen=True)
class CheckpointKills:
    """A fit with a checkpoint, killed again and again until it ends: the bits of one in peace.

    ``estimator`` and ``callback``, which keeps its rounds, are ``module:class``. ``n_rounds`` are
    to be expected; kills are drawn over them.
    """

    name: str = "checkpoint kills"
    n_cases: int = 30
    time_limit: float = 300.0
    estimator: str = "viewmend:AGFTIClassifier"
    callback: str = "viewmend.callbacks:Checkpoint"
    settings: Mapping[str, Any] = field(
        default_factory=lambda: {"n_anchors": 32, "max_iter": 12, "tol": 0.0, "random_state": 0}
    )
    n_rounds: int = 12
    # Rows of a block; 0 for arrays in memory.
    chunk: int = 0
    # Kills of a case; then it may end.
    n_kills: int = 3

    def prepare(self, folder: Path) -> None:
        failed = self._begun(folder / "whole").failure()
        if failed:
            raise RuntimeError(failed)

    def attempt(self, folder: Path, rng: np.random.Generator) -> Outcome:
        own = folder / f"killed-{rng.integers(2**62)}"
        for _ in range(self.n_kills):
            failed = self._begun(own).killed(rng, self.n_rounds)
            if failed:
                return Outcome(Verdict.FOREIGN, failed)
        failed = self._begun(own).failure()
        if failed:
            return Outcome(Verdict.FOREIGN, failed)
        return same_arrays(folder / "whole" / "fit.npz", own / "fit.npz")

    def _begun(self, own: Path) -> Victim:
        own.mkdir(exist_ok=True)
        return Victim(fit_and_keep, own, self)


MEND_CHECKPOINT_KILLS = CheckpointKills(
    name="Mend checkpoint kills",
    estimator="viewmend:MendClassifier",
    settings={"random_state": 0},
    n_rounds=4,
)
BLOCK_CHECKPOINT_KILLS = CheckpointKills(
    name="block checkpoint kills",
    n_cases=10,
    callback="viewmend.distributed:BlockCheckpoint",
    settings={"n_anchors": 16, "max_iter": 8, "tol": 0.0, "random_state": 0},
    n_rounds=8,
    chunk=100,
)


def fit_and_keep(tell: Tell, folder: Path, attack: CheckpointKills) -> None:
    """Fit with a checkpoint in a folder, tell of every round, and leave what was fitted there."""
    model = pkgutil.resolve_name(attack.estimator)(**attack.settings)
    keeper = pkgutil.resolve_name(attack.callback)(folder / "rounds", every=1)
    model.set_callbacks(keeper, lambda *_: tell())
    task = small_task()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if attack.chunk:
            import dask

            dask.config.set(scheduler="synchronous")
            model.fit(in_blocks(task, attack.chunk), task.y)
        else:
            model.fit(task.data, task.y)
    save_fit(model, folder / "fit.npz")


def small_task() -> Any:
    """Samples for a fit of a second."""
    blobs = make_multiview_blobs(400, noise=3.0, random_state=5)
    return hide(blobs.views, blobs.y, missing_rate=0.4, label_rate=0.1, random_state=5)


def in_blocks(task: Any, rows: int) -> list[Any]:
    """The views of a task as Dask arrays."""
    import dask.array as da

    return [da.from_array(view, chunks=(rows, -1)) for view in task.data.views]


def save_fit(model: Any, path: Path) -> None:
    """What a model learnt, in a file."""
    arrays = {name: np.asarray(getattr(model, name)) for name in FITTED if hasattr(model, name)}
    np.savez(path, **arrays)


def same_arrays(wanted: Path, found: Path) -> Outcome:
    """Whether two files hold the same bits."""
    with np.load(wanted) as one, np.load(found) as other:
        differ = [name for name in one if one[name].tobytes() != other[name].tobytes()]
    return Outcome(Verdict.SILENT, f"{differ} differ") if differ else Outcome(Verdict.RIGHT)


@dataclass(frozen=True)
class WorkerKills:
    """A fit over blocks whose workers are killed at random blocks: the same bits, or our error."""

    name: str = "worker kills"
    n_cases: int = 20
    time_limit: float = 300.0
    rows: int = 80
    most_kills: int = 2

    def prepare(self, folder: Path) -> None:
        counter = Killer(())
        self._fit(folder / "whole.npz", counter)
        (folder / "n_calls").write_text(str(counter.n_calls))

    def attempt(self, folder: Path, rng: np.random.Generator) -> Outcome:
        n_calls = int((folder / "n_calls").read_text())
        due = rng.integers(1, n_calls, size=rng.integers(1, self.most_kills + 1))
        own = folder / f"killed-{rng.integers(2**62)}.npz"

        def call() -> Outcome:
            self._fit(own, Killer(due))
            return same_arrays(folder / "whole.npz", own)

        return judged(call)

    def _fit(self, path: Path, killer: Killer) -> None:
        task, settings = small_task(), {"n_anchors": 16, "max_iter": 4, "tol": 0.0}
        model = viewmend.AGFTIClassifier(random_state=0, **settings)
        with two_workers() as killer.cluster, warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.set_callbacks(killer).fit(in_blocks(task, self.rows), task.y)
            # The blocks of a model that is not computed yet may be lost, too.
            save_fit(model, path)


class Killer:
    """Kills a worker without a word whenever it has been told of blocks so many times."""

    def __init__(self, due: Any) -> None:
        self.due = {int(n) for n in due}
        self.n_calls = 0
        self.cluster: Any = None

    def __call__(self, _round: Any, _state: Any) -> None:
        """Nothing: blocks are what it counts."""

    def on_blocks(self, _stage: str, _done: int, _total: int) -> None:
        self.n_calls += 1
        if self.n_calls in self.due:
            # Without asking the workers, who may be gone: an answer would be waited for.
            nannies = self.cluster.workers.values()
            pids = [nanny.pid for nanny in nannies if nanny.is_alive()]
            if pids:
                os.kill(pids[0], signal.SIGKILL)


@contextmanager
def two_workers() -> Iterator[Any]:
    """A cluster of two processes, which restarts those that die. Every case has one of its own.

    One that has lost many workers gives up to replace them, and then nothing can go on.
    """
    import dask

    import distributed

    settings = {
        **{f"distributed.comm.timeouts.{kind}": "120s" for kind in ("connect", "tcp")},
        # A cluster gives a worker up for good that is not back by then.
        "distributed.deploy.lost-worker-timeout": "120s",
    }
    quiet = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with (
        dask.config.set(settings),
        tempfile.TemporaryDirectory() as folder,
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, local_directory=folder, **quiet
        ) as cluster,
        distributed.Client(cluster, timeout=120),
    ):
        yield cluster
