"""How far the probabilities, and the accuracy that a fit tells, can be taken at their word.

    python benchmarks/calibration.py --data DIR --out docs/results [--seeds 0 1 2] [--jobs 2]
    python benchmarks/calibration.py --out docs/results --table

Every (data set, labels, seed) is fitted without calibration and with it, on one geometry: half of
the views missing, labels drawn at random within every class, a number or a share of it.
Probabilities are compared with the true classes of the unlabelled samples, which no fit sees; so is
the accuracy that the fit itself estimates. The first form writes ``calibration.csv``,
``calibration_bins.csv`` and ``calibration.png``, the second prints the table.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np
from csv_rows import read_rows, shown, shown_row, write_rows
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from viewmend import AGFTIClassifier, MendClassifier
from viewmend.bench.environment import check_publishable, environment
from viewmend.core.common.calibration import BINS, calibration_error, log_loss
from viewmend.data import MultiViewData
from viewmend.datasets import Task, hide
from viewmend.datasets.catalogue import DATA_VARIABLE, load
from viewmend.exceptions import DataWarning
from viewmend.models.base import TwoStepClassifier
from viewmend.models.search_contests import SharedGeometry
from viewmend.plot.style import GREY, PALETTE, plot_style

NOISE = "noise"
DATA = (
    NOISE,
    "UCI-Digit (embedded)",
    "CUB",
    "MNIST-USPS",
    "OutScene (3 views)",
    "Caltech101-20 (surrogate)",
)
# Labels of every class: so many, or this share.
LABELS = (1.0, 2.0, 5.0, 20.0, 0.3, 0.5)
MISSING = 0.5
WANTED = 0.95


@dataclass(frozen=True)
class Contest:
    """A classifier, its ways to calibrate, and the data and labels that it is tried on."""

    model: TwoStepClassifier
    calibrated: str
    data: tuple[str, ...]
    labels: tuple[float, ...]


CONTESTS = {
    "MendClassifier": Contest(MendClassifier(n_jobs=1), "cross_fit", DATA, LABELS),
    "AGFTIClassifier": Contest(
        AGFTIClassifier(random_state=0, n_jobs=1), "leave_one_out", DATA[:4], (5.0, 20.0)
    ),
}
SHORT = {"MendClassifier": "Mend", "AGFTIClassifier": "AGF-TI"}
# What the picture shows.
DRAWN = 5.0
KEY = ("data", "model", "labels", "seed", "calibration")
FIELDS = (
    *KEY,
    "n_labels",
    "temperature",
    "accuracy",
    "estimate",
    "low",
    "high",
    "confidence",
    "ece",
    "nll",
    "coverage",
    "accuracy_decided",
    "geometry_seconds",
    "seconds",
)
BIN_FIELDS = (*KEY, "bin", "mean_confidence", "mean_accuracy")


def source(name: str, folder: Path | None, seed: int) -> MultiViewData:
    """A data set, or views that tell nothing of its three classes."""
    if name != NOISE:
        return load(name, folder)
    rng = np.random.default_rng(seed)
    views = tuple(rng.normal(size=(600, 20)) for _ in range(2))
    seen = np.ones((600, 2), dtype=bool)
    return MultiViewData(views, seen, ("a", "b"), y=rng.integers(0, 3, 600))


def draw_labels(y: np.ndarray, labels: float, rng: np.random.Generator) -> np.ndarray:
    """``y`` where a label is given, -1 elsewhere; one sample of a class at least is without."""
    given = np.full(len(y), -1)
    for c in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == c))
        wanted = int(labels if labels >= 1 else round(labels * len(rows)))
        chosen = rows[: min(max(wanted, 1), len(rows) - 1)]
        given[chosen] = c
    return given


def measures(model: TwoStepClassifier, free: np.ndarray, codes: np.ndarray) -> dict[str, float]:
    """Errors of the class shares of unlabelled samples, given their true classes."""
    shares = model.label_distributions_[free]
    told = {
        "temperature": model.calibration_.temperature,
        "accuracy": np.mean(np.argmax(shares, axis=1) == codes),
        "confidence": shares.max(axis=1).mean(),
        "ece": calibration_error(shares, codes),
        "nll": log_loss(shares, codes),
    }
    estimate = model.estimated_accuracy_
    if estimate is not None:
        low, high = estimate.interval
        told |= {"estimate": estimate.accuracy, "low": low, "high": high}
    return told | promise(model, shares, codes)


def promise(model: TwoStepClassifier, shares: np.ndarray, codes: np.ndarray) -> dict[str, float]:
    """Coverage and accuracy of the samples decided at the threshold for an accuracy of `WANTED`."""
    try:
        threshold = model.calibration_.threshold_for(WANTED)
    except ValueError:
        return {}
    decided = shares.max(axis=1) >= threshold
    correct = np.argmax(shares, axis=1)[decided] == codes[decided]
    return {
        "coverage": decided.mean(),
        "accuracy_decided": correct.mean() if decided.any() else np.nan,
    }


def bins_of(shares: np.ndarray, codes: np.ndarray) -> Iterator[dict[str, float]]:
    """Mean confidence and accuracy in bins of equal mass."""
    confidence, correct = shares.max(axis=1), np.argmax(shares, axis=1) == codes
    for i, rows in enumerate(np.array_split(np.argsort(confidence, kind="stable"), BINS)):
        found = {"mean_confidence": confidence[rows].mean(), "mean_accuracy": correct[rows].mean()}
        yield {"bin": i, **found}


def run(
    data: str, kind: str, labels: float, seed: int, folder: Path | None
) -> tuple[list[dict], list[dict]]:
    """Figures and bins of one cell, without calibration and with it."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", DataWarning)
    contest, given = CONTESTS[kind], source(data, folder, seed)
    task: Task = hide(
        given.views, given.y, missing_rate=MISSING, label_rate=0.05, random_state=seed
    )
    y = draw_labels(task.y_true, labels, np.random.default_rng([seed, int(100 * labels)]))
    reader = clone(contest.model)
    begin = time.process_time()
    shared = SharedGeometry(contest.model, *reader.prepare(task.data, y))
    shared.geometry(reader)
    geometry_seconds = time.process_time() - begin
    key = {"data": data, "model": kind, "labels": labels, "seed": seed}
    figures, bins, free = [], [], y < 0
    for how in (None, contest.calibrated):
        begin = time.process_time()
        model = shared.fit({"calibration": how}, shared.labels)
        seconds = {"seconds": time.process_time() - begin, "geometry_seconds": geometry_seconds}
        row = key | {"calibration": str(how), "n_labels": int((~free).sum())} | seconds
        figures.append(row | measures(model, free, task.y_true[free]))
        if labels == DRAWN:
            shares = model.label_distributions_[free]
            here = key | {"calibration": str(how)}
            bins += [here | row for row in bins_of(shares, task.y_true[free])]
    return figures, bins


def run_all(args: argparse.Namespace) -> None:
    check_publishable([environment()], args.out)
    cells = [
        (data, kind, labels, seed, args.data)
        for kind, contest in CONTESTS.items()
        for data in contest.data
        for labels in contest.labels
        for seed in args.seeds
    ]
    results = joblib.Parallel(n_jobs=args.jobs, verbose=5)(
        joblib.delayed(run)(*cell) for cell in cells
    )
    args.out.mkdir(parents=True, exist_ok=True)
    settings = (shown_row(row) for rows, _ in results for row in rows)
    write_rows(args.out / "calibration.csv", FIELDS, settings)
    bins = (shown_row(row) for _, rows in results for row in rows)
    write_rows(args.out / "calibration_bins.csv", BIN_FIELDS, bins)
    draw(args.out)


def picked(rows: Sequence[dict], **key: object) -> list[dict]:
    """Rows of one setting."""
    wanted = {field: shown(value) for field, value in key.items()}
    return [row for row in rows if wanted.items() <= row.items()]


def mean_of(rows: list[dict], field: str) -> float:
    """Mean over the seeds that have a value."""
    values = [float(row[field]) for row in rows if row[field] not in ("", "nan")]
    return float(np.mean(values)) if values else np.nan


def draw(folder: Path) -> None:
    """Reliability diagrams: means over the seeds of every bin, before and after."""
    import matplotlib.pyplot as plt

    rows = read_rows(folder / "calibration_bins.csv")
    with plot_style():
        figure, axes = plt.subplots(2, 5, figsize=(14, 6), sharex=True, sharey=True)
        panels = [(kind, data) for kind, contest in CONTESTS.items() for data in contest.data]
        for ax, (kind, data) in zip(axes.flat, panels, strict=True):
            styles = {
                "None": (GREY, "scores"),
                CONTESTS[kind].calibrated: (PALETTE[0], "calibrated"),
            }
            ax.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=0.8)
            for how, (color, label) in styles.items():
                here = picked(rows, data=data, model=kind, calibration=how)
                points = [picked(here, bin=i) for i in range(BINS)]
                fields = ("mean_confidence", "mean_accuracy")
                x, y = ([mean_of(point, field) for point in points] for field in fields)
                ax.plot(x, y, "o-", color=color, label=label, linewidth=1.2)
            name = kind.removesuffix("Classifier")
            ax.set_title(f"{name}, {data.partition(' (')[0]}", fontsize=9)
        axes[0, 0].legend(frameon=False, loc="upper left")
        for ax in axes[1]:
            ax.set_xlabel("confidence")
        for ax in axes[:, 0]:
            ax.set_ylabel("accuracy")
        figure.tight_layout()
        figure.savefig(folder / "calibration.png", dpi=110)


def print_table(path: Path) -> None:
    """Means over the seeds; an arrow leads from the bare scores to the calibrated ones."""
    rows = read_rows(path)
    heads = ("accuracy", "estimated", "held", "confidence", "ECE", "NLL", "T", "95 %", "cost")
    print("| data | model | labels |", " | ".join(heads), "|")
    print("|---|---|---:|" + "---:|" * len(heads))
    for kind, contest in CONTESTS.items():
        for data in contest.data:
            for labels in contest.labels:
                here = picked(rows, data=data, model=kind, labels=labels)
                if here:
                    cells = _cells(here, contest.calibrated)
                    name = f"{labels:.0%}" if labels < 1 else f"{labels:.0f} per class"
                    named = data.removesuffix(" (embedded)"), SHORT[kind], name
                    print(f"| {' | '.join(named)} |", " | ".join(cells), "|")


def _cells(rows: list[dict], calibrated: str) -> list[str]:
    before, after = picked(rows, calibration="None"), picked(rows, calibration=calibrated)

    def arrow(field: str, unit: float, form: str) -> str:
        values = [mean_of(part, field) * unit for part in (before, after)]
        return f"{values[0]:{form}} → {values[1]:{form}}"

    told = [row for row in after if row["estimate"]]
    held = [float(row["low"]) <= float(row["accuracy"]) <= float(row["high"]) for row in told]
    kept = mean_of(after, "accuracy_decided"), mean_of(after, "coverage")
    whole = mean_of(before, "geometry_seconds") + mean_of(before, "seconds")
    extra = mean_of(after, "seconds") - mean_of(before, "seconds")
    return [
        f"{100 * mean_of(after, 'accuracy'):.1f}",
        f"{100 * mean_of(after, 'estimate'):.0f}" if told else "-",
        f"{sum(held)} of {len(held)}" if told else "-",
        arrow("confidence", 100, ".0f"),
        arrow("ece", 100, ".1f"),
        arrow("nll", 1, ".3f"),
        f"{np.median([float(row['temperature']) for row in after]):.2f}",
        "-" if np.isnan(kept[1]) else f"{100 * kept[0]:.1f} of {100 * kept[1]:.0f}",
        f"{round(100 * extra / whole):+d} %",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get(DATA_VARIABLE))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="print the table of --out")
    args = parser.parse_args()
    if args.table:
        print_table(args.out / "calibration.csv")
    else:
        run_all(args)


if __name__ == "__main__":
    main()
