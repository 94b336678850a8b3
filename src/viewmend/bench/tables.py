"""Which tables there are, and which of them suit a list of records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from viewmend.bench.paper_values import PRINTED, is_printed
from viewmend.bench.run_tables import (
    completeness_table,
    footprint_table,
    inner_errors_table,
    settings_table,
    times_table,
)
from viewmend.bench.runs import Record
from viewmend.bench.score_tables import (
    differences_table,
    problem_scores,
    ranks_table,
    scores_table,
)
from viewmend.bench.summaries import Look, done, settings_vary
from viewmend.bench.tabular import Table
from viewmend.exceptions import InvalidParameterError

__all__ = ["TABLES", "TableKind", "build_table", "suitable_tables"]


@dataclass(frozen=True)
class TableKind:
    """A table that can be made of records.

    Attributes
    ----------
    build : function of (records, look)
        Records are of one protocol.
    suits : function of (records, look)
        Whether the records hold what the table shows.
    by_metric : bool
        Whether there is one for every metric.
    title : str
        In a report; empty for the name.
    """

    build: Callable[[Sequence[Record], Look], Table]
    suits: Callable[[Sequence[Record], Look], bool]
    by_metric: bool = False
    title: str = ""


def build_table(name: str, records: Sequence[Record], look: Look) -> Table:
    """The table of a name, made of records of one protocol.

    Parameters
    ----------
    name : str
        Row of `TABLES`.
    records : sequence of Record
    look : Look

    Returns
    -------
    Table
    """
    if name not in TABLES:
        msg = f"there is no table {name!r}; it must be one of {', '.join(TABLES)}"
        raise InvalidParameterError(msg)
    if not TABLES[name].suits(records, look):
        msg = (
            f"the records do not hold what the table {name!r} shows; tables they suit: "
            f"{', '.join(suitable_tables(records, look)) or 'none'}"
        )
        raise InvalidParameterError(msg)
    return TABLES[name].build(records, look)


def suitable_tables(records: Sequence[Record], look: Look) -> list[str]:
    """Names of the tables that the records hold."""
    return [name for name, kind in TABLES.items() if kind.suits(records, look)]


def _one_setting(records: Sequence[Record], _look: Look) -> bool:
    return bool(done(records)) and not settings_vary(records)


def _rankable(records: Sequence[Record], look: Look) -> bool:
    if not _one_setting(records, look):
        return False
    data, methods, _, _ = problem_scores(records, look.metric)
    return len(data) >= 2 and len(methods) >= 3


def _printed(records: Sequence[Record], look: Look) -> bool:
    if look.paper is None or not _one_setting(records, look):
        return False
    return is_printed(records, look.paper, PRINTED)


def _of_measure(measure: str) -> Callable[[Sequence[Record], Look], bool]:
    return lambda records, _look: bool(done(records, measure))


def _posed(records: Sequence[Record], _look: Look) -> bool:
    return any("observed_pairs" in one.result for one in records)


def _tuned(records: Sequence[Record], look: Look) -> bool:
    return _one_setting(records, look) and any(one.key.setting for one in done(records))


TABLES = {
    "scores": TableKind(scores_table, _one_setting, by_metric=True),
    "ranks": TableKind(ranks_table, _rankable, by_metric=True),
    "times": TableKind(times_table, _one_setting),
    "paper": TableKind(differences_table, _printed, title="beside the paper"),
    "settings": TableKind(settings_table, _tuned),
    "inner_errors": TableKind(inner_errors_table, _of_measure("trace")),
    "footprint": TableKind(footprint_table, _of_measure("tnn_step")),
    "completeness": TableKind(completeness_table, _posed),
}
