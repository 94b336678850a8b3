"""From an experiment and the records at hand to the runs that are known, and those that count.

Protocols that tune try every setting of a method's grid in repetition 0 of a group, as runs like
any other; once all of them are there, the best one serves the group's other repetitions. So what is
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
    "Count",
    "RunGroup",
    "chosen_settings",
    "counts",
    "final_records",
    "final_runs",
    "known_runs",
    "run_groups",
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
class RunGroup:
    """A row of the experiment under one condition, up to repetitions: a cell of its table."""

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
        """One run of this group."""
        problem = (self.protocol, self.data, self.missing_rate, self.label_rate)
        rules = PROTOCOLS[self.protocol].rules
        return RunKey(measure, *problem, self.row.method, setting, repetition, rules)


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


def run_groups(experiment: Experiment) -> list[RunGroup]:
    """All groups of the experiment, also those left out, in the order of its tables."""
    problems = product(
        experiment.protocols, experiment.data, experiment.missing_rates, experiment.label_rates
    )
    return [
        RunGroup(*problem, row)
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
    """The setting of every tuned group whose choice is made.

    Returns
    -------
    dict of {(protocol, data, missing_rate, label_rate, name of the row): setting}
    """
    at_hand = Records(records)
    tuned = [group for group in _planned(experiment) if len(_candidates(experiment, group)) > 1]
    settings = {group.name: _setting(experiment, group, at_hand) for group in tuned}
    return {name: setting for name, setting in settings.items() if setting is not None}


def final_runs(experiment: Experiment, records: Iterable[Record]) -> list[RunKey]:
    """The runs that stand in the experiment's tables, as far as they are known."""
    at_hand = Records(records)
    return [
        key for group in _planned(experiment) for key in _final_runs_of(experiment, group, at_hand)
    ]


def final_records(experiment: Experiment, records: Iterable[Record]) -> list[Record]:
    """The records that stand in the tables, under the names of their rows.

    A group that is left out has one record, with status "left_out" and the reason; one whose
    trials all failed has their records.
    """
    at_hand = Records(records)
    return [
        replace(record, key=replace(record.key, method=group.row.name))
        for group in run_groups(experiment)
        for record in _final_records_of(experiment, group, at_hand)
    ]


def counts(experiment: Experiment, records: Iterable[Record]) -> dict[str, Count]:
    """Runs of every row by what became of them; one not yet known is to do."""
    at_hand = Records(records)
    by_row: dict[str, Count] = {}
    for group in run_groups(experiment):
        so_far = by_row.get(group.row.name, Count())
        by_row[group.row.name] = so_far + _count(experiment, group, at_hand)
    return by_row


def _known(experiment: Experiment, records: Records) -> list[RunKey]:
    keys = [key for group in _planned(experiment) for key in _runs_of(experiment, group, records)]
    place = {name: i for i, name in enumerate(experiment.data)}
    different = {key.digest: key for key in keys}.values()
    return sorted(different, key=lambda key: (place[key.data], *_mask_of(key)))


def _mask_of(key: RunKey) -> tuple[float, float, int, str]:
    return key.missing_rate, key.label_rate, key.repetition, key.protocol


def _planned(experiment: Experiment) -> list[RunGroup]:
    return [c for c in run_groups(experiment) if experiment.reason_against(c.row, c.data) is None]


def _candidates(experiment: Experiment, group: RunGroup) -> list[Setting]:
    """Settings that may become the group's, in the order of the grid; one where none is sought."""
    fixed = experiment.fixed_setting(group.row)
    sought = group.row.tuned and PROTOCOLS[group.protocol].tuned
    grid = GRIDS[experiment.grids](contestant(group.row.method)) if sought else ()
    settings = [setting_of({**point, **fixed}) for point in grid or ({},)]
    return list(dict.fromkeys(settings))


def _trials(experiment: Experiment, group: RunGroup) -> list[RunKey]:
    """The runs that decide on the group's setting; none where there is one candidate."""
    settings = _candidates(experiment, group)
    return [group.run(TUNING_MEASURE, s, 0) for s in settings] if len(settings) > 1 else []


def _setting(experiment: Experiment, group: RunGroup, records: Records) -> Setting | None:
    """The best setting of the trials; None before they are all there, or where all failed."""
    trials = _trials(experiment, group)
    if not trials:
        return _candidates(experiment, group)[0]
    merits = {key.setting: _merit(records.get(key)) for key in trials}
    if any(map(records.lacks, trials)) or max(merits.values()) == FAILED:
        return None
    return max(merits, key=lambda setting: merits[setting])  # the first of equals


def _merit(record: Record | None) -> float:
    if record is None or record.status != "done":
        return FAILED
    return float(record.result["accuracy"] + record.result["macro_f1"])


def _final_runs_of(experiment: Experiment, group: RunGroup, records: Records) -> list[RunKey]:
    setting = _setting(experiment, group, records)
    if setting is None:
        return []
    return [group.run(experiment.measure, setting, i) for i in range(experiment.repetitions)]


def _runs_of(experiment: Experiment, group: RunGroup, records: Records) -> list[RunKey]:
    return _trials(experiment, group) + _final_runs_of(experiment, group, records)


def _final_records_of(experiment: Experiment, group: RunGroup, records: Records) -> list[Record]:
    reason = experiment.reason_against(group.row, group.data)
    if reason is not None:
        setting = setting_of(experiment.fixed_setting(group.row))
        key = group.run(experiment.measure, setting, 0)
        return [Record(key, "left_out", message=reason)]
    trials = _trials(experiment, group)
    undecided = any(map(records.lacks, trials))
    keys = _final_runs_of(experiment, group, records) or ([] if undecided else trials)
    return [record for record in map(records.get, keys) if record is not None]


def _count(experiment: Experiment, group: RunGroup, records: Records) -> Count:
    if experiment.reason_against(group.row, group.data) is not None:
        return Count(left_out=experiment.repetitions)
    known = {key.digest: records.get(key) for key in _runs_of(experiment, group, records)}
    statuses = [record.status for record in known.values() if record is not None]
    done, failed = statuses.count("done"), statuses.count("error")
    return Count(done, failed, 0, len(known) - done - failed + _unknown(experiment, group, records))


def _unknown(experiment: Experiment, group: RunGroup, records: Records) -> int:
    """Runs of a group that will be known once its trials are done."""
    if not any(map(records.lacks, _trials(experiment, group))):
        return 0
    repeated = experiment.measure == TUNING_MEASURE  # the trial that wins is repetition 0
    return experiment.repetitions - int(repeated)
