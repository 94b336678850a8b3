"""From an experiment and the records at hand to the runs that are known, and those that count.

Protocols that tune try every setting of a method's grid in repetition 0 of a cell, as runs like
any other; once all of them are there, the best one serves the cell's other repetitions. So what is
known grows with the records, and the plan is made anew after every wave of runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from viewmend.bench.experiment import Experiment, Row
from viewmend.bench.methods import Contestant, contestant
from viewmend.bench.protocols import PROTOCOLS
from viewmend.bench.runs import Record, RunKey, Setting, setting_of
from viewmend.bench.store import ResultStore

__all__ = [
    "Cell",
    "Count",
    "cells",
    "chosen_settings",
    "counts",
    "final_records",
    "final_runs",
    "known_runs",
    "unfinished_runs",
]

# What runs that choose a setting measure, whatever the experiment does.
TUNING_MEASURE = "fit"

# Below the merit of any run that ended.
FAILED = -math.inf

GRIDS: Mapping[str, Callable[[Contestant], Sequence[Mapping[str, Any]]]] = {
    "full": lambda method: method.grid,
    "thinned": lambda method: method.thinned_grid,
    "none": lambda _: (),
}


@dataclass(frozen=True)
class Cell:
    """A row of the experiment on one kind of problem: a cell of its table."""

    protocol: str
    data: str
    missing_rate: float
    label_rate: float
    row: Row

    @property
    def name(self) -> tuple[str, str, float, float, str]:
        """Protocol, data set, rates, and the name of the row."""
        return self.protocol, self.data, self.missing_rate, self.label_rate, self.row.name

    def run(self, measure: str, setting: Setting, repetition: int) -> RunKey:
        """One run of this cell."""
        problem = (self.protocol, self.data, self.missing_rate, self.label_rate)
        return RunKey(measure, *problem, self.row.method, setting, repetition)


@dataclass(frozen=True)
class Count:
    """Runs of a row by what became of them."""

    done: int = 0
    failed: int = 0
    left_out: int = 0
    to_do: int = 0

    def __add__(self, other: Count) -> Count:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Count(*(mine + theirs for mine, theirs in pairs))


class Records:
    """Records by run; runs are the same where their digests are."""

    def __init__(self, records: Iterable[Record]):
        self._by_digest = {record.key.digest: record for record in records}

    def get(self, key: RunKey) -> Record | None:
        """The record of a run, None where there is none."""
        return self._by_digest.get(key.digest)

    def lacks(self, key: RunKey) -> bool:
        """Whether a run is still to do."""
        return key.digest not in self._by_digest


def cells(experiment: Experiment) -> list[Cell]:
    """All cells of the experiment, also those left out, in the order of its tables."""
    problems = product(
        experiment.protocols, experiment.data, experiment.missing_rates, experiment.label_rates
    )
    return [
        Cell(*problem, row)
        for problem in problems
        for row in experiment.rows
        if row.data is None or problem[1] in row.data
    ]


def known_runs(experiment: Experiment, store: ResultStore) -> list[RunKey]:
    """Every run that is known to be needed now, done or not.

    Runs on the same missing pairs follow each other, so that what is computed once for them, the
    completion of missing views, is at hand.
    """
    return _known(experiment, Records(store.records()))


def unfinished_runs(experiment: Experiment, store: ResultStore) -> list[RunKey]:
    """The known runs of which there is no record."""
    records = Records(store.records())
    return [key for key in _known(experiment, records) if records.lacks(key)]


def chosen_settings(
    experiment: Experiment, records: Iterable[Record]
) -> dict[tuple[str, str, float, float, str], Setting]:
    """The setting of every tuned cell whose choice is made.

    Returns
    -------
    dict of {(protocol, data, missing_rate, label_rate, name of the row): setting}
    """
    at_hand = Records(records)
    tuned = [cell for cell in _planned(experiment) if len(_candidates(experiment, cell)) > 1]
    settings = {cell.name: _setting(experiment, cell, at_hand) for cell in tuned}
    return {name: setting for name, setting in settings.items() if setting is not None}


def final_runs(experiment: Experiment, records: Iterable[Record]) -> list[RunKey]:
    """The runs that stand in the experiment's tables, as far as they are known."""
    at_hand = Records(records)
    return [
        key for cell in _planned(experiment) for key in _final_runs_of(experiment, cell, at_hand)
    ]


def final_records(experiment: Experiment, records: Iterable[Record]) -> list[Record]:
    """The records that stand in the tables, under the names of their rows.

    A cell that is left out has one record, with status "left_out" and the reason; one whose
    trials all failed has their records.
    """
    at_hand = Records(records)
    return [
        replace(record, key=replace(record.key, method=cell.row.name))
        for cell in cells(experiment)
        for record in _final_records_of(experiment, cell, at_hand)
    ]


def counts(experiment: Experiment, records: Iterable[Record]) -> dict[str, Count]:
    """Runs of every row by what became of them; one not yet known is to do."""
    at_hand = Records(records)
    found: dict[str, Count] = {}
    for cell in cells(experiment):
        so_far = found.get(cell.row.name, Count())
        found[cell.row.name] = so_far + _count(experiment, cell, at_hand)
    return found


def _known(experiment: Experiment, records: Records) -> list[RunKey]:
    keys = [key for cell in _planned(experiment) for key in _runs_of(experiment, cell, records)]
    place = {name: i for i, name in enumerate(experiment.data)}
    different = {key.digest: key for key in keys}.values()
    return sorted(different, key=lambda key: (place[key.data], *_mask_of(key)))


def _mask_of(key: RunKey) -> tuple[float, float, int, str]:
    return key.missing_rate, key.label_rate, key.repetition, key.protocol


def _planned(experiment: Experiment) -> list[Cell]:
    return [c for c in cells(experiment) if experiment.reason_against(c.row, c.data) is None]


def _candidates(experiment: Experiment, cell: Cell) -> list[Setting]:
    """Settings that may become the cell's, in the order of the grid; one where none is sought."""
    fixed = experiment.fixed_setting(cell.row)
    sought = cell.row.tuned and PROTOCOLS[cell.protocol].tuned
    grid = GRIDS[experiment.grids](contestant(cell.row.method)) if sought else ()
    settings = [setting_of({**point, **fixed}) for point in grid or ({},)]
    return list(dict.fromkeys(settings))


def _trials(experiment: Experiment, cell: Cell) -> list[RunKey]:
    """The runs that decide on the cell's setting; none where there is one candidate."""
    settings = _candidates(experiment, cell)
    return [cell.run(TUNING_MEASURE, s, 0) for s in settings] if len(settings) > 1 else []


def _setting(experiment: Experiment, cell: Cell, records: Records) -> Setting | None:
    """The best setting of the trials; None before they are all there, or where all failed."""
    trials = _trials(experiment, cell)
    if not trials:
        return _candidates(experiment, cell)[0]
    merits = {key.setting: _merit(records.get(key)) for key in trials}
    if any(map(records.lacks, trials)) or max(merits.values()) == FAILED:
        return None
    return max(merits, key=lambda setting: merits[setting])  # the first of equals


def _merit(record: Record | None) -> float:
    if record is None or record.status != "done":
        return FAILED
    return float(record.result["accuracy"] + record.result["macro_f1"])


def _final_runs_of(experiment: Experiment, cell: Cell, records: Records) -> list[RunKey]:
    setting = _setting(experiment, cell, records)
    if setting is None:
        return []
    return [cell.run(experiment.measure, setting, i) for i in range(experiment.repetitions)]


def _runs_of(experiment: Experiment, cell: Cell, records: Records) -> list[RunKey]:
    return _trials(experiment, cell) + _final_runs_of(experiment, cell, records)


def _final_records_of(experiment: Experiment, cell: Cell, records: Records) -> list[Record]:
    reason = experiment.reason_against(cell.row, cell.data)
    if reason is not None:
        setting = setting_of(experiment.fixed_setting(cell.row))
        key = cell.run(experiment.measure, setting, 0)
        return [Record(key, "left_out", message=reason)]
    trials = _trials(experiment, cell)
    undecided = any(map(records.lacks, trials))
    keys = _final_runs_of(experiment, cell, records) or ([] if undecided else trials)
    return [record for record in map(records.get, keys) if record is not None]


def _count(experiment: Experiment, cell: Cell, records: Records) -> Count:
    if experiment.reason_against(cell.row, cell.data) is not None:
        return Count(left_out=experiment.repetitions)
    known = {key.digest: records.get(key) for key in _runs_of(experiment, cell, records)}
    statuses = [record.status for record in known.values() if record is not None]
    done, failed = statuses.count("done"), statuses.count("error")
    return Count(done, failed, 0, len(known) - done - failed + _unknown(experiment, cell, records))


def _unknown(experiment: Experiment, cell: Cell, records: Records) -> int:
    """Runs of a cell that will be known once its trials are done."""
    if not any(map(records.lacks, _trials(experiment, cell))):
        return 0
    repeated = experiment.measure == TUNING_MEASURE  # the trial that wins is repetition 0
    return experiment.repetitions - int(repeated)
