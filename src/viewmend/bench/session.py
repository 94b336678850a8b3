"""An experiment together with the folders it works in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from viewmend.bench.experiment import Experiment, narrowed, read_experiment
from viewmend.bench.measures import Context
from viewmend.bench.plan import Count, counts, final_records, known_runs
from viewmend.bench.runner import Outcome, Spread, Worker, carry_out, forget_failures
from viewmend.bench.runs import Record
from viewmend.bench.store import ResultStore
from viewmend.datasets.catalogue import absent

__all__ = ["Opened", "open_experiment"]

# Measures of random numbers.
WITHOUT_DATA = ("tnn_step",)


@dataclass(frozen=True)
class Opened:
    """An experiment, its results and its data.

    Attributes
    ----------
    experiment : Experiment
    store : ResultStore
    context : Context
    absent : dict of str
        Why data sets of the experiment cannot be had.
    """

    experiment: Experiment
    store: ResultStore
    context: Context
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
        found = map(self.store.get, known_runs(self.possible, self.store))
        return [record for record in found if record is not None and record.status == "error"]

    def carry_out(self, spread: Spread, watch: Callable[[Outcome], None]) -> None:
        """Do all runs that are possible and not done; see `viewmend.bench.runner.carry_out`."""
        worker = Worker(self.store, self.context, self.experiment.plugins)
        carry_out(self.possible, worker, spread, watch)

    def forget_failures(self) -> None:
        """Make runs that failed to do again."""
        forget_failures((record.key for record in self.failures()), self.store)


def open_experiment(
    path: Path,
    results: Path,
    data: Path,
    only: Sequence[str] = (),
    repetitions: int | None = None,
) -> Opened:
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
    context = Context(data.resolve(), (results / "cache").resolve())
    return Opened(experiment, ResultStore(results.resolve()), context, absent(names, data))
