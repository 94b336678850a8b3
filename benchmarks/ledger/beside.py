"""Our means beside the paper's printed ones, kept as differences in a record of their own.

The paper's tables are not ours to publish as files. Where a folder with them is given, every mean
of ours that the paper prints too is compared with it, and what remains is
``paper/beside_print.csv``: our mean, how far it lies from the printed one, and in how many standard
errors.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from viewmend.bench.paper_values import Difference, PaperTables, compare_with_paper
from viewmend.bench.runs import Record
from viewmend.bench.summaries import done
from viewmend.exceptions import InvalidParameterError

from .claims import RELEASED, SUBJECT

FILE = "beside_print.csv"
# Exports whose means the paper prints, and the protocols under which they are compared.
COMPARED = {
    "main": ("paper",),
    "paper_text": ("paper-text", "paper-text-shuffled"),
    "ablation": ("paper",),
    "deep": ("paper",),
    "methods": ("paper",),
}


@dataclass(frozen=True)
class Beside:
    """One mean of ours beside the paper's; in percent and points, rounded as the paper prints."""

    export: str
    protocol: str
    data: str
    missing_rate: float
    label_rate: float
    method: str
    metric: str
    ours: float
    runs: int
    difference: float
    # Not there where the paper prints no deviation, or we have one run.
    standard_errors: float | None
    # What AGF-TI is against the method, by our runs and as printed; empty where not tested.
    verdict: str
    printed_verdict: str


def compared(exports: Mapping[str, Sequence[Record]], paper: PaperTables) -> list[Beside]:
    """Every mean that the paper prints too, the authors' program under its own name.

    Baselines are tested against the authors' program, or where it was not run against the
    algorithm as written.
    """
    return [
        _beside(name, subject, one)
        for name, protocols in COMPARED.items()
        for subject, records in _by_subject(exports.get(name, ())).items()
        for one in compare_with_paper(records, paper)
        if one.condition.protocol in protocols
    ]


def _by_subject(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Records of the authors' program under the name the paper prints, and those of ours."""
    finished = done(records)
    theirs = [_renamed(one) for one in finished if one.key.method.startswith(RELEASED)]
    rest = [one for one in finished if not one.key.method.startswith(RELEASED)]
    ours = [one for one in rest if one.key.method.startswith(SUBJECT)]
    baselines = [one for one in rest if not one.key.method.startswith(SUBJECT)]
    return {RELEASED: theirs + baselines, SUBJECT: ours} if theirs else {SUBJECT: rest}


def _renamed(record: Record) -> Record:
    method = record.key.method.replace(RELEASED, SUBJECT)
    return replace(record, key=replace(record.key, method=method))


def _beside(export: str, subject: str, one: Difference) -> Beside:
    errors = one.standard_errors
    c = one.condition
    return Beside(
        export=export,
        protocol=c.protocol,
        data=c.data,
        missing_rate=c.missing_rate,
        label_rate=c.label_rate,
        method=one.method.replace(SUBJECT, subject),
        metric=one.metric,
        # Pages round it to one decimal: of two, a 5 at the end may come from a 4.
        ours=round(one.ours.mean, 4),
        runs=one.ours.n,
        difference=round(one.difference, 2),
        standard_errors=None if errors is None else round(errors, 1),
        verdict=one.verdict,
        printed_verdict=one.paper.verdict,
    )


def to_csv(rows: Iterable[Beside]) -> str:
    """One line per comparison."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [one.name for one in fields(Beside)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return text.getvalue()


def read_beside(path: Path) -> list[Beside]:
    """The comparisons of a file; none where it is absent."""
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        return [_row(row) for row in csv.DictReader(file)]


def _row(row: Mapping[str, str]) -> Beside:
    numbers = ("missing_rate", "label_rate", "ours", "difference")
    return Beside(
        **{
            **row,
            **{name: float(row[name]) for name in numbers},
            "runs": int(row["runs"]),
            "standard_errors": float(row["standard_errors"]) if row["standard_errors"] else None,
        }  # type: ignore[arg-type]
    )


def check_fresh(rows: Sequence[Beside], exports: Mapping[str, Sequence[Record]]) -> None:
    """Refuse comparisons of other records than those at hand."""
    metrics = {"ACC": "accuracy"}
    for row in rows:
        if row.metric not in metrics:
            continue
        runs = [
            one.value(metrics[row.metric])
            for one in done(exports.get(row.export, ()))
            if (one.key.protocol, one.key.data, one.key.missing_rate, one.key.method)
            == (row.protocol, row.data, row.missing_rate, row.method)
        ]
        mean = 100 * sum(runs) / len(runs) if runs else float("nan")
        if len(runs) != row.runs or abs(mean - row.ours) > 0.006:
            msg = (
                f"{FILE} has {row.ours} of {row.runs} runs for {row.method} on {row.data} at "
                f"{row.missing_rate}, but {row.export}.csv has {mean:.2f} of {len(runs)}; pass "
                "the folder of the paper's tables with --paper to compare again"
            )
            raise InvalidParameterError(msg)
