"""How near a method with few labels comes to what nine tenths of the labels would give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from viewmend.bench.runs import Condition, Record
from viewmend.bench.summaries import scores
from viewmend.bench.tables.paired import Interval, mean_interval
from viewmend.bench.tables.table import GAP, Entry, Table, condition_table
from viewmend.exceptions import InvalidParameterError

__all__ = ["Way", "limit_table", "overall_share", "ways"]

COLUMNS = ("union graph", "Mend", "limit", "by", "still to gain", "share of the way")

NOTE = (
    "The limit is the accuracy on a tenth of every class when the other nine tenths are labelled, "
    "under the same missing pairs; of the methods that were run so, the best of the cell counts, "
    "so that it is a little high where a tenth is few samples. The share of the way is (Mend - "
    "union graph) / (limit - union graph), both of them with the labels of the protocol 'honest' "
    "and on all samples without one. ± is the half-width of the 95 % interval of that quotient "
    "over the repetitions; a dash stands where the limit is not above the union graph. The last "
    "line divides the means."
)


@dataclass(frozen=True, eq=False)
class Way:
    """From the start to the limit in a cell: accuracies (n_repetitions,) in percent.

    ``by`` is the method that reaches the limit.
    """

    start: np.ndarray
    reached: np.ndarray
    limit: np.ndarray
    by: str

    @property
    def room(self) -> float:
        """Points between start and limit."""
        return float(np.mean(self.limit - self.start))

    @property
    def gain(self) -> float:
        """Points of these that are covered."""
        return float(np.mean(self.reached - self.start))

    @property
    def share(self) -> Interval | None:
        """Percent of the way, with the delta method's interval; None without room."""
        if self.room <= 0:
            return None
        share = self.gain / self.room
        rest = (self.reached - self.start) - share * (self.limit - self.start)
        return Interval(100 * share, 100 * mean_interval(rest).half_width / self.room)


def ways(
    few: Sequence[Record],
    most: Sequence[Record],
    subject: str = "Mend",
    start: str = "union graph",
    metric: str = "ACC",
) -> dict[Condition, Way]:
    """The way of every cell that both have, from records with few labels and with most labels."""
    limits = {replace(cell, protocol=""): line for cell, line in scores(most, metric).items()}
    found = {}
    for cell, line in scores(few, metric).items():
        limit = limits.get(replace(cell, protocol=""))
        if limit and {subject, start} <= line.keys():
            by = max(limit, key=lambda name: float(np.mean(limit[name])))
            runs = [np.array(values) for values in (line[start], line[subject], limit[by])]
            _check_lengths(runs, cell)
            found[cell] = Way(*runs, by)
    return found


def overall_share(by_cell: Mapping[Condition, Way]) -> float:
    """Percent of the way over all cells: the gains over the room."""
    room = sum(way.room for way in by_cell.values())
    return 100 * sum(way.gain for way in by_cell.values()) / room


def limit_table(by_cell: Mapping[Condition, Way]) -> Table:
    """A line for every cell, and one for their means."""
    means = [
        float(np.mean([np.mean(part) for part in parts]))
        for parts in zip(*((w.start, w.reached, w.limit) for w in by_cell.values()), strict=True)
    ]
    last = _line(*means, "", Entry(f"{overall_share(by_cell):.0f} %", overall_share(by_cell)))
    lines = {
        cell: _line(*map(np.mean, (w.start, w.reached, w.limit)), w.by, _share_entry(w.share))
        for cell, w in by_cell.items()
    }
    title = "From the union graph to the limit (accuracy, %)"
    return condition_table(title, COLUMNS, lines, {"mean of the lines": last}, (NOTE,))


def _line(start: float, reached: float, limit: float, by: str, share: Entry) -> dict[str, Entry]:
    numbers = [Entry(f"{x:.1f}", float(x)) for x in (start, reached, limit)]
    left = Entry(f"{limit - reached:+.1f}", float(limit - reached))
    return dict(zip(COLUMNS, (*numbers, Entry(by), left, share), strict=True))


def _share_entry(share: Interval | None) -> Entry:
    if share is None:
        return GAP
    spread = "" if np.isnan(share.half_width) else f" ± {share.half_width:.0f}"
    return Entry(f"{share.mean:.0f}{spread} %", share.mean)


def _check_lengths(runs: Sequence[np.ndarray], cell: Condition) -> None:
    lengths = {len(values) for values in runs}
    if len(lengths) > 1:
        msg = (
            f"{cell.text} has {sorted(lengths)} repetitions with few and with most labels; do the "
            "runs that lack, so that both are of the same masks"
        )
        raise InvalidParameterError(msg)
