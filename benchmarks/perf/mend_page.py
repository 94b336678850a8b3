"""The page that says how long a fit of `viewmend.MendClassifier` takes, from records of ``mend``.

python -m benchmarks.perf.mend_page --data docs/benchmarks/mend --out docs/benchmarks/speed.md

The folder holds records of ``benchmarks.perf.mend``, ``benchmarks.perf.mend_agreement`` and of
``benchmarks/mend_out_of_core.py``, of one or more machines. The picture lands beside the page.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from viewmend.bench.environment import check_publishable

from . import mend_agreement
from .mend_cases import MNIST_COLUMNS, columns_text
from .mend_picture import curves_of, draw
from .page import Group, machine_text
from .records import Record, line, read, titles

__all__ = ["Fit", "fits_of", "main", "page"]

PICTURE = "speed-mend.png"
# Records of fits; other records of the folder belong to other pages.
FITS = "mend"


def _dask(record: Record) -> str:
    threads = record.settings["threads"]
    workers = f"{record.settings['workers']} workers of {threads} thread{'s' * (threads > 1)}"
    return f"Dask, {workers}, {record.settings['rounds']} rounds"


# Names of engines by the device of a record.
ENGINES: dict[str, Callable[[Record], str]] = {
    "cpu": lambda record: f"CPU, {record.machine['kernel_threads']} threads",
    "torch": lambda _: "PyTorch on the CPU",
    "cuda": lambda record: str(record.machine["gpu"]),
    "dask": _dask,
}

HEAD = """\
# Speed

## How long will my fit take

Seconds and memory of `MendClassifier()`. Half of the views are missing, and 1 % of the samples have
a label.
"""

TABLE_NOTE = """\
MNIST has three views of 784, 144 and 64 columns; more than 70 000 samples of it are its rows again,
with noise. The other data are generated: classes around random centres. *GB* is the most memory of
the whole process, the views included; on Dask, of all workers together. *Predict* is the first call
on a fitted model, with so many new samples. *x brute force*: the fit over a search of the 11
nearest rows in each view that compares all pairs of observed rows. *x LabelSpreading*: the fit over
scikit-learn's `LabelSpreading(kernel="knn")` on the views side by side, with column means for what
is missing; in brackets its accuracy. Both were measured in the same run on the same machine. A dash
says that they take more than a minute or were not run. On Dask three in ten rows are missing, and
20 000 samples are in the graphs unless another number is given. Dask and fits of a million samples
have `dtype="float32"`. Where no rounds are given there are eight, as by default.
"""

GROWTH_NOTE = """\
Samples and views decide: every view is compared in six representations, each of which gives a
graph between the samples that have the view. Columns count where rows are compared, classes in the
rounds."""

STAGE_NOTE = """\
The largest fit of MNIST on each engine. *Rounds* spread the labels and regress them on the views,
*calibration* repeats some rounds without a third of the labels."""

AGREEMENT_NOTE = """\
The same fits of MNIST by NumPy and by PyTorch. They differ where their neighbours differ: with more
than 5000 rows NumPy misses two or three neighbours in a hundred, and PyTorch hardly any. With an
*exact* search on the CPU only arithmetic differs, because kernels are float32 and differ in their
last digit. Every sample then has the same class on both engines, at all three sizes. Of the soft
labels, 99.6 % or more are within 1e-4; for PyTorch on the CPU with 5000 samples it is 98 %.

*NumPy twice, a digit changed* has no PyTorch in it: it shows what the recipe itself makes of a
changed last digit. Small ridges enlarge it, and now and then the class of a sample near a border
changes, as it does at 5000 samples. The Gaussians of the evidence are fitted to classes, so one
such sample moves the soft labels of others, and from round to round more of them."""

ADVICE = """\
## When it is too slow

- `device="cuda"` runs the same fit on an NVIDIA GPU; `device="auto"` takes one if there is one.
- `graph_samples=20_000` puts so many samples into the neighbour graphs, those with a label first.
  All others are joined to their nearest samples of the graphs; regressions and class shares still
  use all. Choose it by what you can wait for: the graphs then no longer grow with the data.
- `calibration=None` leaves *calibration* out. No class changes, but probabilities are not
  calibrated, and there is no estimate of the accuracy.
- `n_rounds` below 8 shortens *rounds* in proportion.
- `n_landmarks` below 1000 shortens *kernel features* and the regressions of every round.
- Fewer `representations` shorten *neighbours* and *graphs*: there is a graph for each in each view.
- Where memory is short: `dtype="float32"` keeps the views in half of it, `graph_samples` bounds the
  graphs, and [Dask](../distributed.md) reads the views in blocks.

The first fit on a machine compiles the kernels, once; no figure here counts that.
See also [GPU and large data](../guide/large.md). AGF-TI has a [page of its own](agfti_speed.md).
"""

COMMANDS = """\
## How this was measured

```
NUMBA_NUM_THREADS=2 taskset -c 0,1 python -m benchmarks.perf.mend \\
    --data mnist70k_3view.npz --out docs/benchmarks/mend
python -m benchmarks.perf.mend --device cuda --threads 16 --repeats 4 --sides brute \\
    --only samples --data mnist70k_3view.npz --out docs/benchmarks/mend
python -m benchmarks.perf.mend --device cuda --threads 16 --only million-mnist --sides \\
    --name mend-cuda-million --data mnist70k_3view.npz --out docs/benchmarks/mend
python -m benchmarks.perf.mend --device cuda --threads 16 --sides brute \\
    --only columns views classes --name mend-cuda-families --out docs/benchmarks/mend
python -m benchmarks.perf.mend_agreement --data mnist70k_3view.npz --out docs/benchmarks/mend
python -m benchmarks.perf.mend_agreement --device torch --name mend_agreement-torch \\
    --data mnist70k_3view.npz --out docs/benchmarks/mend
python benchmarks/mend_out_of_core.py growth --out docs/benchmarks/mend
python -m benchmarks.perf.mend_page --data docs/benchmarks/mend --out docs/benchmarks/speed.md
```

Every figure comes from a process of its own, after smaller fits that compile all kernels; seconds
are those of the fastest of as many fits as the settings below repeat, or of one where that takes
more than 20 s. The records, with the seconds of all fits, lie in `docs/benchmarks/mend`.
"""

# What the stages of a record are called here; rounds of all kinds count together.
STAGES = {
    "input": "checking the input",
    "representations": "representations",
    "neighbours": "neighbours",
    "kernel features": "kernel features",
    "samples outside the graph": "samples outside the graph",
    "graphs": "graphs",
    "rounds": "rounds",
    "calibration": "calibration",
    "result": "results",
}


@dataclass(frozen=True)
class Fit:
    """A fit that was measured: the engine it ran on, and its row of the record."""

    engine: str
    row: Mapping[str, Any]

    @property
    def data(self) -> str:
        """What was fitted, without the number of samples."""
        return "MNIST" if self.row["source"] == "mnist" else "generated"

    @property
    def ended(self) -> bool:
        return "seconds" in self.row["fit"]

    def __getitem__(self, name: str) -> Any:
        return self.row["fit"][name]

    def is_like(self, columns: Sequence[int], n_classes: int = 10) -> bool:
        """Whether it has these columns and classes, and came to an end."""
        same = list(self.row["columns"]) == list(columns) and self.row["n_classes"] == n_classes
        return same and self.ended


def engine_of(record: Record) -> str:
    """What the fits of a record ran on, and with which size of the graphs, if one was given."""
    name, size = ENGINES[record.settings["device"]](record), record.settings.get("graph_samples")
    return name if size is None else f"{name}, graph_samples={size}"


def in_order(records: Iterable[Record]) -> list[Record]:
    """Records in the order of `ENGINES`."""
    order = list(ENGINES)
    return sorted(records, key=lambda record: order.index(record.settings["device"]))


def fits_of(records: Iterable[Record]) -> list[Fit]:
    """All fits by engine, in the order of `ENGINES`, and by their samples."""
    found: dict[tuple[Any, ...], Fit] = {}
    for record in in_order(records):
        engine = engine_of(record)
        for row in record.rows:
            columns = tuple(row["columns"])
            key = engine, row["source"], columns, row["n_classes"], row["n_samples"]
            if key in found:
                msg = (
                    f"two records hold {engine} with {row['n_samples']} samples of {columns} "
                    "columns; one of them must go"
                )
                raise ValueError(msg)
            found[key] = Fit(engine, row)
    engines = list(dict.fromkeys(fit.engine for fit in found.values()))
    # Records of one engine may have come in any order.
    return sorted(found.values(), key=lambda fit: (engines.index(fit.engine), fit.row["n_samples"]))


def page(records: Sequence[Record], folder: Path) -> str:
    """Markdown; the picture is drawn into the folder."""
    compared = [record for record in records if record.benchmark == mend_agreement.NAME]
    fits = fits_of(record for record in records if record.benchmark == FITS)
    records = [record for record in records if record.benchmark in (FITS, mend_agreement.NAME)]
    parts = [HEAD, "\n".join(opening(fits)) + "\n"]
    if curves_of(fits):
        draw(fits, folder / PICTURE)
        parts.append(f"![Seconds and memory against samples]({PICTURE})\n")
    parts += [f"{fit_table(fits)}\n", TABLE_NOTE]
    grown = "\n".join(growth(fits))
    sections = {
        "How the time grows": grown and f"{GROWTH_NOTE}\n\n{grown}",
        "Where the time goes": stage_table(fits),
        "Do the engines agree": agreement_table(compared),
    }
    parts += [f"## {title}\n\n{text}\n" for title, text in sections.items() if text]
    parts += [ADVICE, COMMANDS, *(f"- {text}" for text in machines(records))]
    return "\n".join(parts) + "\n"


def by_engine(fits: Iterable[Fit]) -> dict[str, list[Fit]]:
    found: dict[str, list[Fit]] = {}
    for fit in fits:
        found.setdefault(fit.engine, []).append(fit)
    return found


def opening(fits: Sequence[Fit]) -> Iterator[str]:
    """One line per engine: the fits of the data that were tried with most samples."""
    for engine, own in by_engine(fits).items():
        ended = [fit for fit in own if fit.ended]
        mnist = [fit for fit in ended if fit.is_like(MNIST_COLUMNS)]
        shown = mnist or [fit for fit in ended if fit.row["family"] in ("samples", "million")]
        told = "; ".join(
            f"{thousands(fit.row['n_samples'])} samples {seconds(fit['seconds'])}, "
            f"{gigabytes(fit['peak_bytes'])}{on_device(fit)}"
            for fit in shown
        )
        if told:
            columns = columns_text(shown[0].row["columns"])
            yield f"- **{engine}**, {shown[0].data}, {columns} columns: {told}."


TABLE_HEAD = ("engine", "data", "samples", "columns", "classes", "fit", "ms per sample", "GB")
TABLE_HEAD += ("GB of the GPU", "predict", "accuracy, %", "x brute force", "x LabelSpreading")


def fit_table(fits: Sequence[Fit]) -> str:
    """All fits."""
    return "\n".join([titles(TABLE_HEAD), *(line(table_cells(fit)) for fit in fits)])


def table_cells(fit: Fit) -> Iterator[str]:
    """The cells of a fit; one that did not end says why."""
    row = fit.row
    yield from (fit.engine, fit.data, thousands(row["n_samples"]), columns_text(row["columns"]))
    yield str(row["n_classes"])
    if not fit.ended:
        yield row["fit"]["error"].replace("|", " ")
        yield from [""] * (len(TABLE_HEAD) - 6)
        return
    yield seconds(fit["seconds"])
    yield two_digits(1e3 * fit["seconds"] / row["n_samples"])
    yield f"{fit['peak_bytes'] / 1e9:.1f}"
    yield f"{fit['device_bytes'] / 1e9:.1f}" if "device_bytes" in row["fit"] else ""
    used = "predict_seconds" in row["fit"]
    yield f"{thousands(fit['n_new'])} in {seconds(fit['predict_seconds'])}" if used else ""
    yield f"{100 * fit['accuracy']:.1f}"
    for side in ("brute", "spreading"):
        yield ratio_text(fit, side)


def ratio_text(fit: Fit, side: str) -> str:
    """Seconds of the fit over those of a side, and the accuracy of the side if it has one."""
    other = fit.row.get(side, {"beyond": None})
    if "seconds" not in other:
        return "-" if "beyond" in other else "failed"
    correct = f" ({100 * other['accuracy']:.1f} %)" if "accuracy" in other else ""
    return two_digits(fit["seconds"] / other["seconds"]) + correct


# What grows, from where to where: columns and classes of both ends, on generated data.
GROWTHS = (
    ("views, of 64 columns each", (2, 8), lambda n: ((64,) * n, 10)),
    ("columns in each of three views", (64, 1024), lambda n: ((n,) * 3, 10)),
    ("classes", (2, 50), lambda n: ((64,) * 3, n)),
)


def growth(fits: Sequence[Fit]) -> Iterator[str]:
    """What more samples, views, columns and classes cost on every engine."""
    for engine, own in by_engine(fits).items():
        mnist = [fit for fit in own if fit.is_like(MNIST_COLUMNS)]
        least, most = mnist[:1], mnist[1:][-1:]
        told = [growth_of_two("samples of MNIST", *least, *most)] if least and most else []
        for name, ends, problem in GROWTHS:
            found = [next((f for f in own if f.is_like(*problem(n))), None) for n in ends]
            if found[0] is not None and found[1] is not None:
                factor = found[1]["seconds"] / found[0]["seconds"]
                told.append(f"{ends[0]} to {ends[1]} {name}: {factor:.1f} times as long")
        if told:
            yield f"- **{engine}**. {'; '.join(told)}."


def growth_of_two(name: str, least: Fit, most: Fit) -> str:
    """How much longer the larger of two fits takes, in all and per sample."""
    n, m = least.row["n_samples"], most.row["n_samples"]
    factor = most["seconds"] / least["seconds"]
    return (
        f"{thousands(n)} to {thousands(m)} {name}, {m / n:.3g} times as many: "
        f"{factor:.3g} times as long, {factor * n / m:.2f} times per sample"
    )


def stage_table(fits: Sequence[Fit]) -> str:
    """Percent of the time of the largest fit of MNIST on every engine; empty without any."""
    largest = {
        engine: max(mnist, key=lambda fit: fit.row["n_samples"])
        for engine, own in by_engine(fits).items()
        if (mnist := [fit for fit in own if fit.is_like(MNIST_COLUMNS) and fit["stages"]])
    }
    if not largest:
        return ""
    sizes = [f"{engine}, {thousands(f.row['n_samples'])} samples" for engine, f in largest.items()]
    shares = [stage_shares(fit) for fit in largest.values()]
    rows = [
        [name, *(f"{100 * share.get(stage, 0.0):.0f}" for share in shares)]
        for stage, name in STAGES.items()
        if any(share.get(stage, 0.0) > 0 for share in shares)
    ]
    table = [titles(["percent of the fit", *sizes]), *map(line, rows)]
    return "\n".join([*table, "", STAGE_NOTE])


def agreement_table(records: Sequence[Record]) -> str:
    """Classes and soft labels of the same fit on two engines; empty without any."""
    rows = [
        [engine_of(record), *mend_agreement.cells(row)] for record in records for row in record.rows
    ]
    head = titles(["engine", *mend_agreement.HEAD])
    return "\n".join([head, *map(line, rows), "", AGREEMENT_NOTE]) if rows else ""


def stage_shares(fit: Fit) -> dict[str, float]:
    """Shares of the stages in the time of a fit; rounds of all kinds are one."""
    found: dict[str, float] = {}
    for stage, taken in fit["stages"].items():
        kind = stage.split(":")[0]
        found[kind] = found.get(kind, 0.0) + taken / fit["seconds"]
    return found


def machines(records: Iterable[Record]) -> list[str]:
    """Every machine and revision once."""
    texts = (
        f"{engine_of(record)}: {machine_text(Group('mend', [record]))} "
        f"Revision {record.machine['revision']}."
        for record in in_order(records)
    )
    return list(dict.fromkeys(texts))


def thousands(number: int) -> str:
    """A number with spaces between its thousands."""
    return f"{number:,}".replace(",", " ")


def seconds(number: float) -> str:
    """Seconds to three digits, minutes from ten of them on."""
    return f"{number / 60:.0f} min" if number >= 600 else f"{number:.3g} s"


def two_digits(number: float) -> str:
    """Two digits, or all before the point."""
    return f"{number:.0f}" if number >= 100 else f"{number:.2g}"


def gigabytes(number: float) -> str:
    return f"{number / 1e9:.1f} GB"


def on_device(fit: Fit) -> str:
    """Memory of the GPU, where there is one."""
    known = "device_bytes" in fit.row["fit"]
    return f" and {gigabytes(fit['device_bytes'])} of the GPU" if known else ""


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of JSON files")
    parser.add_argument("--out", type=Path, required=True, help="Markdown file to write")
    args = parser.parse_args(argv)
    records = read(args.data)
    check_publishable((record.machine for record in records), args.out)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(page(records, args.out.parent))


if __name__ == "__main__":
    main(sys.argv[1:])
