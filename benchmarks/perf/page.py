"""The speed page of AGF-TI: Markdown tables and pictures from a folder of JSON files.

python -m benchmarks.perf.page --data DIR --out docs/benchmarks/agfti_speed.md

Pictures land beside the page. Files of one script, precision and machine share a table.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from viewmend.bench.environment import check_publishable

from . import gpu, growth, hardware, pictures, rounds, tnn, whole_fit
from .records import Record, line, read, titles
from .transcription import LINE_SEARCHES

__all__ = ["Group", "grouped", "machine_text", "main", "page"]

Row = Mapping[str, Any]
Picture = tuple[str, Callable[[Path], None]]

HEAD = """\
# Speed of AGF-TI

`python -m benchmarks.perf.page` made this page from runs of the scripts in `benchmarks/perf`. The
docstring of each script says what it measures. Compare the ratios, which were measured in one run
on one machine; seconds depend on the machine, which is named.
"""

TITLES = {
    "rounds": "A whole solve beside plain transcriptions of the paper",
    "growth": "Growth with the number of samples",
    "tnn": "The tensor step",
    "hardware": "What limits the kernels",
    "whole_fit": "A whole fit by stage",
    "gpu": "Rounds on a GPU",
}

DEVICE_NAMES = {"cpu": "", "torch": "PyTorch on the CPU", "cuda": "PyTorch on a GPU"}

NOTES = {
    "rounds": """\
Random problems of the sizes of the paper's data. The transcriptions differ in their line search:
*armijo* is the rule that the paper names; *golden* is the golden section of the authors' released
code; *slope* is an exact search, which neither has and which is the fastest. A star marks seconds
that were scaled up from the first rounds; the ratio is then that of these rounds. A ratio is the
time of a transcription, in float64 unless noted, divided by ours. *Steps* are those of Algorithm 1
in a round.
Memory is the peak of a solve beyond its problem, in multiples of the graphs `Z`.""",
    "growth": """\
Two views; memory is the peak of a solve beyond its problem, in multiples of the graphs `Z`:
of arrays, and as the operating system sees it.""",
    "tnn": """\
GB/s are those of six passes over the input (transform, shrink, transform back). GiB include the
input. The paper's figures are those of its server.""",
    "hardware": """\
Share: of the measured rate, from the bytes of a single pass over the arrays of a kernel against a
copy, or from the operations of the textbook's way against a matrix product. Readable: the version
in plain array API that the tests compare with.""",
    "whole_fit": "Seconds. 30 % of the rows are missing, 1 % of the samples labelled.",
    "gpu": """\
Seconds of all rounds from given graphs on the device. *waves*: the tensor step along the waves of a
graph; *fourier*: the paper's. *Off*: largest difference of a soft label from NumPy's, or of float32
from float64; *same classes*: samples whose class is the same in both precisions.""",
}


@dataclass(frozen=True)
class Group:
    """Records of one script, device, precision and machine.

    Attributes
    ----------
    benchmark : str
    records : list of Record
    """

    benchmark: str
    records: list[Record]

    @property
    def rows(self) -> list[Row]:
        """Of all records, without those that hold rates of the machine."""
        return [row for row in self._all() if not {"rates", "copies"} & set(row)]

    @property
    def rates(self) -> Row:
        """Rates of the machine that were measured on the way."""
        found: dict[str, float] = {}
        for row in self._all():
            found |= row.get("rates", {}) | row.get("copies", {})
        return found

    @property
    def slug(self) -> str:
        """What to tell its pictures by."""
        settings = self.records[0].settings
        parts = (self.benchmark, settings["device"], settings.get("dtype", ""))
        return "-".join(part for part in parts if part and part != "cpu")

    def _all(self) -> Iterator[Row]:
        for record in self.records:
            yield from record.rows


def grouped(records: Iterable[Record]) -> list[Group]:
    """Groups in the order of `TITLES`, those of NumPy first."""
    found: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        settings, machine = record.settings, record.machine
        where = machine["cpu"], machine["cores"], machine.get("gpu"), machine["kernel_threads"]
        key = record.benchmark, settings["device"], settings.get("dtype"), where
        found.setdefault(key, []).append(record)
    order, devices = list(TITLES), list(DEVICE_NAMES)
    keys = sorted(found, key=lambda key: (order.index(key[0]), devices.index(key[1])))
    return [Group(key[0], found[key]) for key in keys]


def page(groups: Sequence[Group], folder: Path) -> str:
    """Markdown; the pictures are drawn into the folder."""
    parts = [HEAD]
    seen: list[str] = []
    for group in groups:
        parts += [
            f"## {_title(group)}\n",
            NOTES[group.benchmark] + "\n",
            machine_text(group) + "\n",
        ]
        parts += [f"{table}\n" for table in TABLES[group.benchmark](group)]
        seen.append(group.slug)
        # The same script ran on several machines.
        number = f"-{seen.count(group.slug)}" if seen.count(group.slug) > 1 else ""
        parts += [f"{text}\n" for text in _drawn(group, folder, number)]
    return "\n".join(parts)


def _title(group: Group) -> str:
    settings = group.records[0].settings
    marks = [TITLES[group.benchmark], settings.get("dtype", ""), DEVICE_NAMES[settings["device"]]]
    return ", ".join(mark for mark in marks if mark)


def machine_text(group: Group) -> str:
    """One sentence about where the figures come from, and one about the settings that count."""
    record = group.records[0]
    machine, settings = record.machine, record.settings
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    gpu_name = f"{machine['gpu']}, {machine['gpu_memory_gb']:.0f} GB; " if "gpu" in machine else ""
    loads = [
        r.machine["load_before"] for r in group.records if r.machine["load_before"] is not None
    ]
    shown = ("rounds", "tol", "repeats", "samples", "views", "anchors", "imputation")
    options = [
        f"{key} {settings[key]}"
        for key in shown
        if isinstance(settings.get(key), str | int | float)
    ]
    return (
        f"{gpu_name}{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']:.0f} GB; "
        f"threads: {machine['kernel_threads']} of the kernels, {machine['blas_threads']} of "
        f"{' and '.join(machine['blas'])}; {versions}. Load before: "
        f"{max(loads, default=float('nan')):.1f}. Settings: {', '.join(options)}."
    )


def _drawn(group: Group, folder: Path, number: str) -> Iterator[str]:
    for name, draw in PICTURES[group.benchmark](group):
        file = f"speed-{group.slug}{number}{name}.png"
        draw(folder / file)
        yield f"![{TITLES[group.benchmark]}]({file})"


def _table(head: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    return "\n".join([titles(head), *(line(row) for row in rows)])


def rounds_tables(group: Group) -> Iterator[str]:
    """Seconds, ratios, and the shares of the steps."""
    sides = [(search, dtype) for search in LINE_SEARCHES for dtype in rounds.DTYPES]
    head = ["size of", "n, V, m, c", "rounds", *(f"ours, {dtype}" for dtype in rounds.DTYPES)]
    head += [f"{search}, {dtype}" for search, dtype in sides]
    yield _table([*head, "paper"], map(_seconds_cells, group.rows))
    head = ["size of", *(f"{search} / float64" for search in LINE_SEARCHES)]
    head += [f"{search} / float32" for search in LINE_SEARCHES]
    head += [f"{search} in float32 / float32" for search in LINE_SEARCHES]
    yield _table([*head, "steps", "memory", "memory, float32"], map(_ratio_cells, group.rows))
    yield _shares_table(_shares(group.rows))


def _seconds_cells(row: Row) -> Iterator[str]:
    yield row["case"]
    yield ", ".join(str(row[key]) for key in ("n_samples", "n_views", "n_anchors", "n_classes"))
    yield str(max(ours["n_iter"] for ours in row["ours"].values()))
    for dtype in rounds.DTYPES:
        yield f"{row['ours'][dtype]['seconds']:.3g}" if dtype in row["ours"] else ""
    runs = {(run["search"], run["dtype"]): run for run in row["plain"]}
    for search in LINE_SEARCHES:
        for dtype in rounds.DTYPES:
            run = runs.get((search, dtype))
            yield "" if run is None else f"{run['seconds']:.3g}{'*' * run['scaled']}"
    yield "" if row["paper_seconds"] is None else f"{row['paper_seconds']:.3g}"


def _ratio_cells(row: Row) -> Iterator[str]:
    yield row["case"]
    for dtype, plain in (("float64", "float64"), ("float32", "float64"), ("float32", "float32")):
        for search in LINE_SEARCHES:
            found = rounds.ratio(row, dtype, search, plain)
            yield "" if found is None else f"{found:.1f}"
    yield f"{next(iter(row['ours'].values()))['inner_steps']:.1f}"
    for dtype in rounds.DTYPES:
        yield f"{row['ours'][dtype]['peak_multiple']:.1f}" if dtype in row["ours"] else ""


def _shares(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Shares of the steps by the size, the transform where there are several, and precision."""
    return {
        ", ".join(part for part in (row["case"], row.get("transform", ""), dtype) if part): ours[
            "shares"
        ]
        for row in rows
        for dtype, ours in row["ours"].items()
    }


def _shares_table(shares: Mapping[str, Mapping[str, float]]) -> str:
    head = ["percent of the time", *next(iter(shares.values()))]
    rows = ([name, *(f"{100 * x:.0f}" for x in row.values())] for name, row in shares.items())
    return _table(head, rows)


def growth_tables(group: Group) -> Iterator[str]:
    """The sizes, and the ratio of the two that are a factor of ten apart."""
    yield _table(growth.HEAD, map(growth.cells, group.rows))
    found = growth.growth_ratio(group.rows)
    if found is not None:
        yield f"Ten times the samples, from 8 000 to 80 000, take {found:.1f} times as long."


def hardware_tables(group: Group) -> Iterator[str]:
    """Rates of the machine, then the kernels."""
    rates = ((name, f"{rate / 1e9:.1f}") for name, rate in group.rates.items())
    yield _table(["machine", "G/s"], rates)
    yield _table(hardware.HEAD, map(hardware.cells, group.rows))


def tnn_tables(group: Group) -> Iterator[str]:
    """The copy that bandwidth is told by, then the grid."""
    rates = (f"{rate / 1e9:.1f} GB/s ({n})" for n, rate in group.rates.items())
    yield f"A copy moves {', '.join(rates)}, reading and writing counted."
    yield _table(tnn.HEAD, map(tnn.cells, group.rows))


TABLES: dict[str, Callable[[Group], Iterable[str]]] = {
    "rounds": rounds_tables,
    "growth": growth_tables,
    "tnn": tnn_tables,
    "hardware": hardware_tables,
    "whole_fit": lambda group: [_table(whole_fit.HEAD, map(whole_fit.cells, group.rows))],
    "gpu": lambda group: [
        _table(gpu.HEAD, map(gpu.cells, group.rows)),
        _shares_table(_shares(group.rows)),
    ],
}


def _rounds_pictures(group: Group) -> Iterator[Picture]:
    if any(row["plain"] for row in group.rows):
        yield "-ratios", lambda path: pictures.draw_ratios(group.rows, path)
    yield from _share_pictures(group)


def _share_pictures(group: Group) -> Iterator[Picture]:
    yield "-shares", lambda path: pictures.draw_shares(_shares(group.rows), path)


def _tnn_pictures(group: Group) -> Iterator[Picture]:
    if not all(row["skipped"] for row in group.rows):
        yield "", lambda path: pictures.draw_tnn(group.rows, max(group.rates.values()), path)


def _growth_pictures(group: Group) -> Iterator[Picture]:
    if not all(row["skipped"] for row in group.rows):
        yield "", lambda path: pictures.draw_growth(group.rows, path)


PICTURES: dict[str, Callable[[Group], Iterable[Picture]]] = {
    "rounds": _rounds_pictures,
    "growth": _growth_pictures,
    "tnn": _tnn_pictures,
    "hardware": lambda group: [("", lambda path: pictures.draw_hardware(group.rows, path))],
    "whole_fit": lambda group: [("", lambda path: pictures.draw_fit(group.rows, path))],
    "gpu": _share_pictures,
}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of JSON files")
    parser.add_argument("--out", type=Path, required=True, help="Markdown file to write")
    args = parser.parse_args(argv)
    records = read(args.data)
    check_publishable((record.machine for record in records), args.out)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(page(grouped(records), args.out.parent))


if __name__ == "__main__":
    main(sys.argv[1:])
