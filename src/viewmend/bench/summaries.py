"""Records put in order for tables and figures: conditions, scores, what a metric means."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from viewmend.bench.protocols import PROTOCOLS
from viewmend.bench.runs import Condition, Record, Setting
from viewmend.exceptions import InvalidParameterError

Thing = TypeVar("Thing")
Group = TypeVar("Group", bound=Hashable)


@dataclass(frozen=True)
class Metric:
    """A column of the paper's tables."""

    # Entry of a record's ``result``.
    field: str
    words: str
    # Whether the protocol says which entry bears the name.
    by_protocol: bool = False

    def field_under(self, protocol: str) -> str:
        """Entry of a record's ``result`` that bears this name under a protocol."""
        return PROTOCOLS[protocol].precision if self.by_protocol else self.field

    def note_under(self, protocol: str) -> str:
        """What the name hides, empty where it hides nothing."""
        if self.field_under(protocol) == self.field:
            return ""
        was, now = (name.replace("_", " ") for name in (self.field, self.field_under(protocol)))
        return (
            f"Under the protocol {protocol!r} PREC is {now}, not {was}: the authors' code reads "
            "its confusion matrix transposed, and their tables are compared like for like."
        )


METRICS = {
    "ACC": Metric("accuracy", "accuracy"),
    "PREC": Metric("macro_precision", "precision", by_protocol=True),
    "REC": Metric("macro_recall", "recall"),
    "F1": Metric("macro_f1", "F1"),
}


# Percent, one value per repetition, by condition and method.
Scores = dict[Condition, dict[str, list[float]]]


def metric_named(name: str) -> Metric:
    """The metric of a name; an error lists the names."""
    if name not in METRICS:
        msg = f"the metric must be one of {', '.join(METRICS)} but is {name!r}"
        raise InvalidParameterError(msg)
    return METRICS[name]


def done(records: Iterable[Record], measure: str = "fit") -> list[Record]:
    """Records of a measure that came to an end."""
    return [one for one in records if one.status == "done" and one.key.measure == measure]


def with_status(records: Iterable[Record], status: str) -> list[Record]:
    """Records of a status, of `viewmend.bench.runs.STATUSES`."""
    return [one for one in records if one.status == status]


def grouped(things: Iterable[Thing], of: Callable[[Thing], Group]) -> dict[Group, list[Thing]]:
    """Things by what ``of`` says of them, groups and members in the order they came."""
    groups: dict[Group, list[Thing]] = {}
    for thing in things:
        groups.setdefault(of(thing), []).append(thing)
    return groups


def by_protocol(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Records by protocol, for tables and figures show one at a time."""
    return grouped(records, lambda one: one.key.protocol)


def only_protocol(records: Sequence[Record]) -> str:
    """The protocol of all records; two in one table would be compared by mistake."""
    protocols = list(by_protocol(records))
    if len(protocols) != 1:
        names = ", ".join(map(repr, protocols)) or "none"
        msg = (
            f"records of exactly one protocol are needed but these are of {names}; use by_protocol"
        )
        raise InvalidParameterError(msg)
    return protocols[0]


def scores(records: Sequence[Record], metric: str) -> Scores:
    """Percent by condition and method, one value per repetition.

    Records must be those that stand in a table: no two settings of a method in a condition. Those
    that are not "fit" or not done are left out. Data sets and methods come in the order of the
    records, rates and repetitions ascending.
    """
    return metric_scores(records, metric_named(metric))


def metric_scores(records: Sequence[Record], metric: Metric) -> Scores:
    """As `scores`, of any metric."""
    conditions = grouped(done(records), lambda one: one.key.condition)
    methods = list(grouped(done(records), lambda one: one.key.method))
    data = list(grouped(conditions, lambda c: c.data))
    table: Scores = {}
    for condition in sorted(
        conditions, key=lambda c: (data.index(c.data), c.missing_rate, c.label_rate)
    ):
        runs = grouped(conditions[condition], lambda one: one.key.method)
        field = metric.field_under(condition.protocol)
        table[condition] = {
            name: _values(runs[name], field, condition) for name in methods if name in runs
        }
    return table


def method_names(by_condition: Mapping[Condition, Mapping[str, object]]) -> list[str]:
    """Methods of all conditions, in the order they came."""
    return list(dict.fromkeys(name for methods in by_condition.values() for name in methods))


def _values(runs: list[Record], field: str, condition: Condition) -> list[float]:
    if len({one.key.setting for one in runs}) > 1:
        msg = (
            f"{runs[0].key.method} has several settings at {condition.text}; pass the runs of one "
            "setting, or give the variants names of their own"
        )
        raise InvalidParameterError(msg)
    ordered = sorted(runs, key=lambda one: one.key.repetition)
    return [percent(one.value(field)) for one in ordered]


def settings_vary(records: Sequence[Record]) -> tuple[str, ...]:
    """Names of the parameters that take several values for a method within a condition."""
    runs = grouped(done(records), lambda one: (one.key.condition, one.key.method))
    varying: set[str] = set()
    for group in runs.values():
        settings = [dict(one.key.setting) for one in group]
        names = {name for setting in settings for name in setting}
        varying |= {name for name in names if len({one.get(name) for one in settings}) > 1}
    return tuple(sorted(varying))


def setting_text(setting: Setting) -> str:
    """A setting in words, "default" where it has none."""
    return ", ".join(f"{name}={value}" for name, value in setting) or "default"


def percent(share: float) -> float:
    """A share in percent, without the last bits in which equal counts may differ."""
    return round(100 * share, 10)
