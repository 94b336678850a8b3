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
from viewmend.bench.methods import CONTESTANTS, Contestant, contestant, implementation_of
from viewmend.bench.protocols import PROTOCOLS
from viewmend.bench.runs import Record, RunKey, Setting, setting_of

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
        made = PROTOCOLS[self.protocol].rules, implementation_of(self.row.method, measure)
        return RunKey(measure, *problem, self.row.method, setting, repetition, *made)


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


class Plan:
    """The runs of an experiment as far as they are known by the records at hand."""

    def __init__(self, experiment: Experiment, records: Iterable[Record]):
        self.experiment = experiment
        # Runs are the same where their digests are.
        self._records = {record.key.digest: record for record in records}
        self._planned = [
            group
            for group in run_groups(experiment)
            if experiment.reason_against(group.row, group.data) is None
        ]

    def known_runs(self) -> list[RunKey]:
        """Every run that is known to be needed now, done or not.

        Runs on the same missing pairs follow each other, so that what is computed once for them,
        the completion of missing views, is at hand.
        """
        different = {key.digest: key for group in self._planned for key in self._runs_of(group)}
        place = {name: i for i, name in enumerate(self.experiment.data)}

        def mask(key: RunKey) -> tuple[int, float, float, int, str]:
            rates = key.missing_rate, key.label_rate
            return place[key.data], *rates, key.repetition, key.protocol

        return sorted(different.values(), key=mask)

    def unfinished_runs(self) -> list[RunKey]:
        """The known runs of which there is no record."""
        return [key for key in self.known_runs() if self._lacks(key)]

    def chosen_settings(self) -> dict[tuple[str, str, float, float, str], Setting]:
        """The setting of every tuned group whose choice is made, by `RunGroup.name`."""
        tuned = [group for group in self._planned if self._trials(group)]
        settings = {group.name: self._setting(group) for group in tuned}
        return {name: setting for name, setting in settings.items() if setting is not None}

    def final_runs(self) -> list[RunKey]:
        """The runs that stand in the experiment's tables, as far as they are known."""
        return [key for group in self._planned for key in self._final_runs_of(group)]

    def final_records(self) -> list[Record]:
        """The records that stand in the tables, under the names of their rows.

        A group that is left out has one record, with status "left_out" and the reason; one whose
        trials all failed has their records.
        """
        return [
            replace(record, key=replace(record.key, method=group.row.name))
            for group in run_groups(self.experiment)
            for record in self._final_records_of(group)
        ]

    def counts(self) -> dict[str, Count]:
        """Runs of every row by what became of them; one not yet known is to do."""
        by_row: dict[str, Count] = {}
        for group in run_groups(self.experiment):
            by_row[group.row.name] = by_row.get(group.row.name, Count()) + self._count(group)
        return by_row

    def _get(self, key: RunKey) -> Record | None:
        return self._records.get(key.digest)

    def _lacks(self, key: RunKey) -> bool:
        return key.digest not in self._records

    def _candidates(self, group: RunGroup) -> list[Setting]:
        """Settings that may become the group's, in the order of the grid; one if none is sought."""
        fixed = self.experiment.fixed_setting(group.row)
        sought = group.row.tuned and PROTOCOLS[group.protocol].tuned
        if sought and group.row.method not in CONTESTANTS:
            # Its grid is known by the code that brings it.
            self.experiment.check_trusted()
        grid = GRIDS[self.experiment.grids](contestant(group.row.method)) if sought else ()
        settings = [setting_of({**point, **fixed}) for point in grid or ({},)]
        return list(dict.fromkeys(settings))

    def _trials(self, group: RunGroup) -> list[RunKey]:
        """The runs that decide on the group's setting; none where there is one candidate."""
        settings = self._candidates(group)
        return [group.run(TUNING_MEASURE, s, 0) for s in settings] if len(settings) > 1 else []

    def _setting(self, group: RunGroup) -> Setting | None:
        """The best setting of the trials; None before they are all there, or where all failed."""
        trials = self._trials(group)
        if not trials:
            return self._candidates(group)[0]
        merits = {key.setting: _merit(self._get(key)) for key in trials}
        if any(map(self._lacks, trials)) or max(merits.values()) == FAILED:
            return None
        return max(merits, key=lambda setting: merits[setting])  # the first of equals

    def _final_runs_of(self, group: RunGroup) -> list[RunKey]:
        setting, measure = self._setting(group), self.experiment.measure
        if setting is None:
            return []
        return [group.run(measure, setting, i) for i in self.experiment.numbers]

    def _runs_of(self, group: RunGroup) -> list[RunKey]:
        return self._trials(group) + self._final_runs_of(group)

    def _final_records_of(self, group: RunGroup) -> list[Record]:
        reason = self.experiment.reason_against(group.row, group.data)
        if reason is not None:
            setting = setting_of(self.experiment.fixed_setting(group.row))
            key = group.run(self.experiment.measure, setting, 0)
            return [Record(key, "left_out", message=reason)]
        trials = self._trials(group)
        undecided = any(map(self._lacks, trials))
        keys = self._final_runs_of(group) or ([] if undecided else trials)
        return [record for record in map(self._get, keys) if record is not None]

    def _count(self, group: RunGroup) -> Count:
        n_runs = self.experiment.repetitions
        if self.experiment.reason_against(group.row, group.data) is not None:
            return Count(left_out=n_runs)
        known = {key.digest: self._get(key) for key in self._runs_of(group)}
        statuses = [record.status for record in known.values() if record is not None]
        done, failed = statuses.count("done"), statuses.count("error")
        to_do = len(known) - done - failed
        if any(map(self._lacks, self._trials(group))):
            # Runs that will be known once the trials are done; the best trial is repetition 0.
            shared = 0 in self.experiment.numbers and self.experiment.measure == TUNING_MEASURE
            to_do += n_runs - int(shared)
        return Count(done, failed, 0, to_do)


def _merit(record: Record | None) -> float:
    if record is None or record.status != "done":
        return FAILED
    return float(record.value("accuracy") + record.value("macro_f1"))
