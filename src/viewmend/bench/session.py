"""An experiment together with the folders it works in."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from viewmend.bench.experiment import Experiment, narrowed, read_experiment
from viewmend.bench.measures import RunFolders
from viewmend.bench.plan import Count, counts, final_records, known_runs
from viewmend.bench.runner import RunOutcome, Spread, Worker, carry_out
from viewmend.bench.runs import Record
from viewmend.bench.store import ResultStore
from viewmend.datasets.catalogue import absent

__all__ = ["Session", "open_experiment"]

# Measures of random numbers.
WITHOUT_DATA = ("tnn_step",)


@dataclass(frozen=True)
class Session:
    """An experiment, its results and its data.

    Attributes
    ----------
    experiment : Experiment
    store : ResultStore
    folders : RunFolders
    absent : dict of str
        Why data sets of the experiment cannot be had.
    """

    experiment: Experiment
    store: ResultStore
    folders: RunFolders
    absent: Mapping[str, str]

    @property
    def possible(self) -> Experiment:
        """The experiment on the data sets that are there."""
        there = tuple(name for name in self.experiment.data if name not in self.absent)
        return replace(self.experiment, data=there)

    def counts(self) -> dict[str, Count]:
        """Possible runs by row and by what became of them."""
        return counts(self.possible, self.store.records())

    def final_records(self) -> list[Record]:
        """Records that stand in the tables."""
        return final_records(self.experiment, self.store.records())

    def failures(self) -> list[Record]:
        """Records of known runs that failed."""
        records = map(self.store.get, known_runs(self.possible, self.store))
        return [record for record in records if record is not None and record.status == "error"]

    def carry_out(
        self,
        spread: Spread,
        watch: Callable[[RunOutcome], None],
        time_limit: float = math.inf,
    ) -> None:
        """Do all runs that are possible and not done; see `viewmend.bench.runner.carry_out`.

        After ``time_limit`` seconds no run is begun.
        """
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
) -> Session:
    """An experiment of a file, with its folders.

    Parameters
    ----------
    path : path
        TOML.
    results : path
        Folder of the store; what runs share lies in its folder ``cache``.
    data : path
        Folder of the data sets.
    only, repetitions
        A part of the experiment, see `viewmend.bench.experiment.narrowed`.
    """
    experiment = narrowed(read_experiment(path), only, repetitions)
    names = () if experiment.measure in WITHOUT_DATA else experiment.data
    folders = RunFolders(data.resolve(), (results / "cache").resolve())
    return Session(experiment, ResultStore(results.resolve()), folders, absent(names, data))
