"""Carrying out an experiment: in this process, on the cores of this machine, or on Dask."""

from __future__ import annotations

import importlib
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from viewmend.bench.experiment import Experiment, narrowed, read_experiment
from viewmend.bench.measures import RunFolders, measure
from viewmend.bench.plan import Count, Plan
from viewmend.bench.plugins import load_plugins
from viewmend.bench.processes import end_with_parent
from viewmend.bench.runs import STATUSES, InvalidRecordError, Record, RunKey
from viewmend.bench.store import ResultStore
from viewmend.bench.verifying import Claim, Verdict, verdict_on
from viewmend.datasets.catalogue import absent
from viewmend.exceptions import InvalidParameterError
from viewmend.extras import how_to_install

# In place of a status: another process is at the run, or there was no time left for it.
ELSEWHERE = "elsewhere"
NOT_BEGUN = "not begun"

# Pause before the store is looked at again, where others do all that is left.
PATIENCE = 2.0

# Measures of random numbers.
WITHOUT_DATA = ("tnn_step",)


class WorkerLostError(RuntimeError):
    """A process ended in the middle of a run, killed or out of memory."""


@dataclass(frozen=True)
class RunOutcome:
    """What became of a run: one of the statuses of a record, `ELSEWHERE` or `NOT_BEGUN`."""

    key: RunKey
    status: str


@dataclass(frozen=True)
class Worker:
    """Does one run after another and keeps their records; can be sent to another process."""

    store: ResultStore
    folders: RunFolders
    # Python files to import first.
    plugins: tuple[str, ...] = ()
    # No run is begun after this time, in seconds of `time.time`.
    deadline: float = math.inf
    measure: Callable[[RunKey, RunFolders], Record] = measure

    def __call__(self, key: RunKey) -> RunOutcome:
        """Do a run unless it is done, another process is at it, or the time is over."""
        if time.time() >= self.deadline:
            return RunOutcome(key, NOT_BEGUN)
        load_plugins(self.plugins)
        with self.store.claim(key) as mine:
            if not mine:
                return RunOutcome(key, ELSEWHERE)
            # Another process may have ended the run between the plan and the claim.
            record = self.store.get(key)
            if record is None:
                record = self._kept(self.measure(key, self.folders))
            return RunOutcome(key, record.status)

    def _kept(self, record: Record) -> Record:
        """The record as it stands in the store: one that cannot stand there is an error."""
        try:
            self.store.write(record)
        except InvalidRecordError as error:
            made = record.environment
            record = Record(record.key, "error", environment=made, message=str(error))
            self.store.write(record)
        return record


Spread = Callable[[Worker, Sequence[RunKey]], Iterator[RunOutcome]]


def carry_out(
    experiment: Experiment,
    worker: Worker,
    spread: Spread,
    watch: Callable[[RunOutcome], None] = lambda _: None,
) -> None:
    """Do all runs of an experiment, wave after wave, until its plan is fulfilled or time is over.

    ``watch`` is told of every run that this process ended.
    """
    experiment.check_trusted()
    while runs := Plan(experiment, worker.store.records()).unfinished_runs():
        statuses = set()
        for outcome in spread(worker, runs):
            statuses.add(outcome.status)
            if outcome.status in STATUSES:
                watch(outcome)
        if NOT_BEGUN in statuses:
            return
        if statuses == {ELSEWHERE}:
            time.sleep(PATIENCE)


def spread_over(jobs: int, dask: str | None) -> Spread:
    """How runs are spread: over a Dask cluster if it is given, else over ``jobs`` processes."""
    if dask is not None:
        return partial(on_dask, address=dask)
    return in_turn if jobs == 1 else partial(on_cores, jobs=jobs)


def in_turn(worker: Worker, keys: Sequence[RunKey]) -> Iterator[RunOutcome]:
    """One run after the other, in this process."""
    return map(worker, keys)


def on_cores(worker: Worker, keys: Sequence[RunKey], jobs: int) -> Iterator[RunOutcome]:
    """Runs on ``jobs`` processes of one thread each, -1 for one process per core.

    They end when this process does, also by a signal.
    """
    joblib = _require("joblib", "bench")
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    ties = {"initializer": end_with_parent, "initargs": (os.getpid(),)}
    with joblib.parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1, **ties):
        # One run at a time, so that the plan is gone through in its order.
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1)
        try:
            yield from parallel(joblib.delayed(worker)(key) for key in keys)
        except TerminatedWorkerError as error:
            raise _lost(worker.store) from error


def on_dask(worker: Worker, keys: Sequence[RunKey], address: str) -> Iterator[RunOutcome]:
    """Runs on the workers of a Dask cluster, which see the same folders under the same paths."""
    distributed = _require("distributed", "dask")
    try:
        client = distributed.Client(address, set_as_default=False)
    except OSError as error:
        msg = f"no Dask scheduler answers at {address!r}; start one with: dask scheduler"
        raise InvalidParameterError(msg) from error
    with client:
        futures = client.map(worker, keys, pure=False)
        try:
            for future in distributed.as_completed(futures, loop=client.loop):
                yield future.result()
        except distributed.KilledWorker as error:
            raise _lost(worker.store) from error
        finally:
            client.cancel(futures)


@dataclass(frozen=True)
class Session:
    """An experiment, its results and its data."""

    experiment: Experiment
    store: ResultStore
    folders: RunFolders
    # Why data sets of the experiment cannot be had.
    absent: Mapping[str, str]

    @property
    def possible(self) -> Experiment:
        """The experiment on the data sets that are there."""
        there = tuple(name for name in self.experiment.data if name not in self.absent)
        return replace(self.experiment, data=there)

    def counts(self) -> dict[str, Count]:
        """Possible runs by row and by what became of them."""
        return Plan(self.possible, self.store.records()).counts()

    def final_records(self) -> list[Record]:
        """Records that stand in the tables."""
        return Plan(self.experiment, self.store.records()).final_records()

    def failures(self) -> list[Record]:
        """Records of known runs that failed."""
        known = Plan(self.possible, self.store.records()).known_runs()
        records = map(self.store.get, known)
        return [record for record in records if record is not None and record.status == "error"]

    def carry_out(
        self, spread: Spread, watch: Callable[[RunOutcome], None], time_limit: float = math.inf
    ) -> None:
        """Do all runs that are possible and not done; begin none after ``time_limit`` seconds."""
        deadline = time.time() + time_limit
        worker = Worker(self.store, self.folders, self.experiment.plugins, deadline)
        carry_out(self.possible, worker, spread, watch)

    def forget_failures(self) -> None:
        """Make runs that failed to do again."""
        for record in self.failures():
            self.store.forget(record.key)


def open_experiment(
    path: Path,
    results: Path,
    data: Path,
    only: Sequence[str] = (),
    repetitions: int | None = None,
    trust: bool = False,
    first_repetition: int | None = None,
) -> Session:
    """An experiment of a TOML file, or a part of it, see `viewmend.bench.experiment.narrowed`.

    ``results`` is the folder of the store, in whose folder ``cache`` lies what runs share. Only
    with ``trust`` is code of others, which the file may name, ever imported.
    """
    experiment = narrowed(read_experiment(path, trust), only, repetitions, first_repetition)
    names = () if experiment.measure in WITHOUT_DATA else experiment.data
    folders = RunFolders(data.resolve(), (results / "cache").resolve())
    return Session(experiment, ResultStore(results.resolve()), folders, absent(names, data))


def done_again(
    claims: Sequence[Claim], data: Path, spread: Spread, tolerance: float
) -> Iterator[Verdict]:
    """Do the runs of claims once more, in a store and with a cache of their own, and compare."""
    with TemporaryDirectory() as folder:
        store = ResultStore(folder)
        worker = Worker(store, RunFolders(data.resolve(), Path(folder) / "cache"))
        by_key = {claim.key: claim for claim in claims}
        for outcome in spread(worker, list(by_key)):
            yield verdict_on(by_key[outcome.key], store.get(outcome.key), tolerance)


def experiment_files(path: Path) -> list[Path]:
    """The file of an experiment, or all of a folder in the order of their names."""
    files = sorted(path.glob("*.toml")) if path.is_dir() else [path]
    if not files:
        msg = f"there is no experiment in the folder {path}; expected files that end in .toml"
        raise InvalidParameterError(msg)
    return files


def _lost(store: ResultStore) -> WorkerLostError:
    cut_short = "; ".join(key.text for key in store.interrupted()) or "not known"
    msg = (
        "a process ended in the middle of a run, killed or out of memory; everything before is "
        f"kept. Cut short: {cut_short}. Resume with fewer jobs, or leave the run out"
    )
    return WorkerLostError(msg)


def _require(name: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        msg = f"running in parallel needs {name}, which is not installed; {how_to_install(extra)}, "
        msg += "or use --jobs 1"
        raise ImportError(msg) from error
