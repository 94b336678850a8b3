"""The values printed in the paper, from files the user has, and how ours compare with them.

The files are not part of this package. A folder may hold any of

- ``main_results.csv``: dataset, vmr_percent, lar_percent, method, metric, mean, std, and
  optionally agfti_vs_method_wilcoxon (better, tie, worse);
- ``ablation.csv``: dataset, vmr_percent, lar_percent, variant, metric, mean, std;
- ``deep_baselines.csv``: dataset, vmr_percent, lar_percent, method, metric, mean. Here "prec" is
  macro precision; in the other tables it is macro recall, as the authors' code computes it;
- ``running_time.csv``: dataset, method, seconds;
- ``tnn_footprint.csv``: n_samples, n_views, n_anchors, seconds, memory_gib.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import sqrt
from pathlib import Path

from viewmend.bench.runs import Condition, Record
from viewmend.bench.stats import Summary, summarise, verdict
from viewmend.bench.summaries import METRICS, done, metric_scores
from viewmend.exceptions import InvalidParameterError

# Runs behind every mean of the paper.
PAPER_RUNS = 10

# Metrics of its tables.
PRINTED = ("ACC", "PREC", "F1")
SUBJECT = "AGF-TI"
# What the paper's ablation study calls the whole method.
WHOLE = "full"
# What the paper's metrics are in our results, and what the authors' code takes for them.
FIELDS = {name: metric.field for name, metric in METRICS.items()}
FIELDS_OF_AUTHORS = {**FIELDS, "PREC": FIELDS["REC"]}
_VERDICTS = {"better": "better", "tie": "tied", "worse": "worse", "": ""}

CsvRow = Mapping[str, str]
# Data set, missing rate, label rate, method, metric.
Place = tuple[str, float, float, str, str]


@dataclass(frozen=True)
class PaperValue:
    """A printed mean, in percent."""

    mean: float
    # Entry of our results that it can be compared with.
    field: str
    # Where the table has it.
    std: float | None = None
    # AGF-TI against the method, of `viewmend.bench.stats.VERDICTS`; empty where there is none.
    verdict: str = ""


@dataclass(frozen=True)
class Footprint:
    """Seconds and GiB of the tensor step."""

    seconds: float
    gibibytes: float


@dataclass(frozen=True)
class PaperTables:
    """What is printed in the paper."""

    # Metrics by the names of `METRICS`; variants of the ablation study as methods, "AGF-TI w/o T".
    values: Mapping[Place, PaperValue] = field(default_factory=dict)
    # By data and method: running time with completion, missing rate 50 %, label rate 5 %.
    seconds: Mapping[tuple[str, str], float] = field(default_factory=dict)
    # By numbers of samples, views and anchors.
    footprints: Mapping[tuple[int, int, int], Footprint] = field(default_factory=dict)
    # Files that the folder lacks.
    absent: tuple[str, ...] = ()

    def value(self, condition: Condition, method: str, metric: str) -> PaperValue | None:
        """The printed value of a condition, whatever its protocol; None where there is none."""
        return self.values.get((*_problem(condition), paper_method(method), metric))


@dataclass(frozen=True)
class Look:
    """How records are looked at."""

    # Row of `viewmend.bench.summaries.METRICS`.
    metric: str = "ACC"
    # Method that the others are tested against.
    subject: str = "AGF-TI"
    # The paper's printed values, drawn as ghosts beside ours.
    paper: PaperTables | None = None

    def required_paper(self) -> PaperTables:
        """The paper's printed values; an error says how to give them."""
        if self.paper is None:
            msg = "a comparison needs the paper's tables; pass the folder that holds them"
            raise InvalidParameterError(msg)
        return self.paper


@dataclass(frozen=True)
class Difference:
    """Our mean of a condition beside the paper's."""

    condition: Condition
    method: str
    metric: str
    ours: Summary
    paper: PaperValue
    # Of our runs, as that of `PaperValue`; empty for AGF-TI itself and where it was not run.
    verdict: str

    @property
    def difference(self) -> float:
        """Ours less the paper's, in points."""
        return self.ours.mean - self.paper.mean

    @property
    def standard_errors(self) -> float | None:
        """The difference in units of its standard error; None where no error can be estimated."""
        if self.paper.std is None or self.ours.n < 2:
            return None
        # Deviations are divided by n, so n - 1 here makes the variance unbiased.
        variance = self.paper.std**2 / (PAPER_RUNS - 1) + self.ours.std**2 / (self.ours.n - 1)
        return self.difference / sqrt(variance) if variance > 0 else None


def read_paper_tables(folder: str | Path) -> PaperTables:
    """Read the printed tables of a folder with at least one of the files that the module names."""
    folder = Path(folder)
    present = [name for name in _FILES if (folder / name).is_file()]
    if not present:
        msg = (
            f"{folder} holds none of the paper's tables; expected a folder with at least one of "
            f"{', '.join(_FILES)}"
        )
        raise InvalidParameterError(msg)
    tables: dict[str, dict] = {"values": {}, "seconds": {}, "footprints": {}}
    for name in present:
        kind, columns, entry = _FILES[name]
        for row in _rows(folder / name, columns):
            place, value = entry(row)
            # The first file to print a value has it with the most digits.
            tables[kind].setdefault(place, value)
    return PaperTables(**tables, absent=tuple(name for name in _FILES if name not in present))


def paper_method(method: str) -> str:
    """The name under which the paper prints a method of ours."""
    return ALIASES.get(method, method)


def compare_with_paper(
    records: Sequence[Record], paper: PaperTables, metrics: Sequence[str] = PRINTED
) -> list[Difference]:
    """Our means that the paper prints too, each beside what the paper measures under that name.

    By metric, condition and method; the records may be of several protocols.
    """
    by_field = {
        metric.field: metric_scores(records, replace(metric, by_protocol=False))
        for metric in METRICS.values()
    }
    return [
        Difference(
            condition, method, metric, summarise(runs[method]), printed, _verdict(runs, method)
        )
        for metric in metrics
        for condition, methods in by_field[FIELDS["ACC"]].items()
        for method in methods
        if (printed := paper.value(condition, method, metric)) is not None
        for runs in (by_field[printed.field][condition],)
    ]


def is_printed(records: Sequence[Record], paper: PaperTables, metrics: Sequence[str]) -> bool:
    """Whether the paper prints any of the metrics of any run that is done."""
    runs = {(one.key.condition, one.key.method) for one in done(records)}
    return any(paper.value(*run, metric) is not None for run in runs for metric in metrics)


def not_run(differences: Sequence[Difference], paper: PaperTables) -> list[Place]:
    """Printed values of the metrics compared that have no run of ours."""
    compared = {one.metric for one in differences}
    ours = {(*_problem(one.condition), paper_method(one.method)) for one in differences}
    return [place for place in paper.values if place[4] in compared and place[:4] not in ours]


def _verdict(methods: Mapping[str, Sequence[float]], method: str) -> str:
    tested = method != SUBJECT and SUBJECT in methods
    return verdict(methods[SUBJECT], methods[method]) if tested else ""


def _rows(path: Path, columns: Sequence[str]) -> Iterator[CsvRow]:
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        missing = [name for name in columns if name not in (reader.fieldnames or ())]
        if missing:
            msg = f"{path} has no column {', '.join(missing)}; expected {', '.join(columns)}"
            raise InvalidParameterError(msg)
        yield from reader


def _problem(condition: Condition) -> tuple[str, float, float]:
    return condition.data, _rate(100 * condition.missing_rate), _rate(100 * condition.label_rate)


def _rate(percent: float | str) -> float:
    return round(float(percent) / 100, 6)


def _score(fields: Mapping[str, str], row: CsvRow) -> tuple[Place, PaperValue]:
    metric = row["metric"].upper()
    if metric not in fields:
        msg = f"metrics of the paper are {', '.join(fields)} but a row has {row['metric']!r}"
        raise InvalidParameterError(msg)
    rates = _rate(row["vmr_percent"]), _rate(row["lar_percent"])
    std = float(row["std"]) if row.get("std") else None
    marked = _VERDICTS[row.get("agfti_vs_method_wilcoxon") or ""]
    value = PaperValue(float(row["mean"]), fields[metric], std, marked)
    return (row["dataset"], *rates, row["method"], metric), value


def _ablation_row(row: CsvRow) -> tuple[Place, PaperValue]:
    variant = row["variant"]
    method = SUBJECT if variant == WHOLE else f"{SUBJECT} {variant}"
    return _score(FIELDS_OF_AUTHORS, {**row, "method": method})


def _footprint_row(row: CsvRow) -> tuple[tuple[int, int, int], Footprint]:
    sizes = int(row["n_samples"]), int(row["n_views"]), int(row["n_anchors"])
    return sizes, Footprint(float(row["seconds"]), float(row["memory_gib"]))


# Our names of what the paper prints under another name.
ALIASES = {
    # What the printed figures were made with.
    "AGF-TI (released code)": "AGF-TI",
    "AGF-TI (released code) without alignment": "AGF-TI w/o T",
    "AGF-TI (released code) without weights": "AGF-TI w/o alpha",
    "AGF-TI (released code) without imputation": "AGF-TI w/o TI",
    "AGF-TI without alignment": "AGF-TI w/o T",
    "AGF-TI without weights": "AGF-TI w/o alpha",
    "AGF-TI without imputation": "AGF-TI w/o TI",
}

_CELL = ("dataset", "vmr_percent", "lar_percent")
# File: what it holds, the columns it must have, how a row is read.
_FILES: dict[str, tuple[str, tuple[str, ...], Callable[[CsvRow], tuple]]] = {
    "main_results.csv": (
        "values",
        (*_CELL, "method", "metric", "mean", "std"),
        partial(_score, FIELDS_OF_AUTHORS),
    ),
    "ablation.csv": ("values", (*_CELL, "variant", "metric", "mean", "std"), _ablation_row),
    # Its row of AGF-TI repeats the main table, which is read before.
    "deep_baselines.csv": ("values", (*_CELL, "method", "metric", "mean"), partial(_score, FIELDS)),
    "running_time.csv": (
        "seconds",
        ("dataset", "method", "seconds"),
        lambda row: ((row["dataset"], row["method"]), float(row["seconds"])),
    ),
    "tnn_footprint.csv": (
        "footprints",
        ("n_samples", "n_views", "n_anchors", "seconds", "memory_gib"),
        _footprint_row,
    ),
}
