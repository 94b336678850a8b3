"""Seconds and memory beside those that the paper prints, which are of another machine.

Each function takes records of one protocol and how to look at them, and gives a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from viewmend.bench.paper_values import Footprint, Look, paper_method
from viewmend.bench.runs import Record
from viewmend.bench.summaries import done, grouped, only_protocol
from viewmend.bench.tables.runs import GIB, tensor_sizes, total_seconds
from viewmend.bench.tables.table import GAP, Entry, Line, Table

# Rates of the paper's table of running time.
MISSING_RATE, LABEL_RATE = 0.5, 0.05


def timed_runs(records: Sequence[Record], look: Look) -> dict[tuple[str, str], list[Record]]:
    """Runs at the rates of the paper's table, by data set and method, where it prints seconds."""
    printed = look.required_paper().seconds
    rates = MISSING_RATE, LABEL_RATE
    comparable = [one for one in done(records) if _rates(one) == rates]
    runs = grouped(comparable, lambda one: (one.key.data, one.key.method))
    return {
        cell: some for cell, some in runs.items() if (cell[0], paper_method(cell[1])) in printed
    }


def seconds_table(records: Sequence[Record], look: Look) -> Table:
    """Median seconds of a run beside the paper's, by data set and method."""
    printed = look.required_paper().seconds
    lines = []
    for (data, method), runs in timed_runs(records, look).items():
        ours = median(map(total_seconds, runs))
        completion = median(one.timings.get("imputation", 0.0) for one in runs)
        theirs = printed[data, paper_method(method)]
        entries = (_seconds(ours), _seconds(completion), _seconds(theirs), _times(ours, theirs))
        lines.append(Line((data, method, str(len(runs))), entries))
    return Table(
        f"Seconds beside the paper's, protocol {only_protocol(records)!r}, VMR 50 %, LAR 5 %",
        ("data", "method", "runs"),
        ("ours", "of it completion", "paper", "paper / ours"),
        tuple(lines),
        (
            "Ours are medians of fit and completion together, on one thread of the machine that "
            "the records name. The paper's are of its authors' machine, so that only orders of "
            "size and the order of the methods can be compared.",
        ),
    )


def step_runs(records: Sequence[Record], look: Look) -> dict[tuple[int, int, int], list[Record]]:
    """Runs of the tensor step by their sizes, where the paper prints the step of these sizes."""
    runs = grouped(done(records, "tnn_step"), tensor_sizes)
    return {sizes: runs[sizes] for sizes in sorted(runs) if sizes in _footprints(look)}


def footprint_beside_paper_table(records: Sequence[Record], look: Look) -> Table:
    """Seconds and peak memory of the tensor step beside the paper's, by its sizes."""
    lines = []
    for sizes, runs in step_runs(records, look).items():
        seconds = median(one.value("seconds") for one in runs)
        gibibytes = median(one.value("peak_bytes") for one in runs) / GIB
        theirs = _footprints(look)[sizes]
        entries = (
            _seconds(seconds),
            _seconds(theirs.seconds),
            _times(seconds, theirs.seconds),
            _gibibytes(gibibytes),
            _gibibytes(theirs.gibibytes),
            _times(gibibytes, theirs.gibibytes),
        )
        lines.append(Line(tuple(map(str, sizes)), entries))
    absent = len(_footprints(look)) - len(lines)
    return Table(
        "Footprint of the tensor step beside the paper's",
        ("samples", "views", "anchors"),
        ("seconds", "paper", "paper / ours", "GiB", "paper", "paper / ours"),
        tuple(lines),
        (
            f"{len(lines)} sizes are compared; {absent} printed sizes have no run here.",
            "Ours are medians on one thread in float64; memory is the peak beyond the input. The "
            "paper's are of another machine. Its code stops at 32,767 frequencies, so that from "
            "65,535 samples on its figures are those of a part of the step.",
        ),
    )


def _footprints(look: Look) -> Mapping[tuple[int, int, int], Footprint]:
    return look.required_paper().footprints


def _rates(record: Record) -> tuple[float, float]:
    return round(record.key.missing_rate, 6), round(record.key.label_rate, 6)


def _seconds(value: float) -> Entry:
    return Entry(f"{value:.2f}", value)


def _gibibytes(value: float) -> Entry:
    return Entry(f"{value:.3f}", value)


def _times(ours: float, theirs: float) -> Entry:
    return Entry(f"{theirs / ours:.1f}", theirs / ours) if ours > 0 else GAP
