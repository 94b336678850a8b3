"""What a rule of the ledger is given and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from viewmend.bench.runs import Record
from viewmend.bench.summaries import grouped, percent

from .beside import Beside
from .claims import Bars, Claim
from .exports import revision_text, selected

# "not run" where there is no record yet, "unavailable" where nobody can make one.
VERDICTS = ("reproduced", "partly", "refuted", "unavailable", "not run")

PERCENT = {"ACC": "accuracy", "PREC": "macro_recall", "REC": "macro_recall", "F1": "macro_f1"}


@dataclass(frozen=True)
class Judgement:
    """The verdict on a claim, what it rests on, and the revision of the records."""

    verdict: str
    ours: str = ""
    revision: str = ""


@dataclass(frozen=True)
class Sources:
    """All that verdicts are made from."""

    exports: Mapping[str, Sequence[Record]]
    beside: Sequence[Beside]
    # By statement and quantity, as printed; and the revision that measured them.
    theory: Mapping[str, str]
    theory_revision: str
    bars: Bars

    def records(self, claim: Claim) -> list[Record]:
        """The records that a claim is about."""
        return selected(self.exports.get(claim.export, ()), claim.select)


NOT_RUN = Judgement("not run", "no record")

# A rule judges a claim by the sources.
Rule = Callable[[Claim, Sources], Judgement]


def judged(verdict: str, ours: str, records: Sequence[Record]) -> Judgement:
    """A judgement that rests on records."""
    return Judgement(verdict, ours, revision_text(records))


def runs_text(records: Sequence[Record]) -> str:
    """How many runs stand behind a mean: "3 runs", "1 to 3 runs"."""
    cells = grouped(records, lambda one: (one.key.condition, one.key.method, one.key.setting))
    counts = sorted({len(runs) for runs in cells.values()})
    several = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
    return f"{several} run{'s' if counts[-1] > 1 else ''}"


def cell_means(
    records: Sequence[Record], metric: str = "ACC"
) -> dict[tuple[str, str, float, float], dict[str, float]]:
    """Means in percent by (protocol, data, missing rate, label rate) and method."""
    # Methods come before rates in the order of the records.
    ordered = sorted(records, key=lambda one: (one.key.missing_rate, one.key.label_rate))
    by_data = grouped(ordered, lambda one: (one.key.protocol, one.key.data))
    known = grouped(records, lambda one: (one.key.protocol, one.key.data))
    by_cell = {
        cell: runs
        for place in known
        for cell, runs in grouped(by_data[place], lambda one: one.key.condition).items()
    }
    return {
        (c.protocol, c.data, c.missing_rate, c.label_rate): {
            method: mean(percent(one.value(PERCENT[metric])) for one in some)
            for method, some in grouped(runs, lambda one: one.key.method).items()
        }
        for c, runs in by_cell.items()
    }


def slashed(values: Sequence[float], form: str = ".1f") -> str:
    """Numbers as the paper's text has them, with strokes between."""
    return " / ".join(format(value, form) for value in values)
