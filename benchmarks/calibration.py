"""How far the probabilities of the two classifiers can be taken at their word.

    python benchmarks/calibration.py --data DIR --out docs/results [--seeds 3]
    python benchmarks/calibration.py --data DIR --out docs/results --per-class 2 --no-cross-fit
    python benchmarks/calibration.py --out docs/results --table

Views missing 50 %, 5 % labels or that many per class drawn at random, rows shuffled. The first form
fits every (data set, classifier, seed) without calibration, with "leave_one_out" and with
"cross_fit" on one geometry, compares probabilities with the true classes of the unlabelled samples,
which no fit sees, and writes ``calibration.csv``, ``calibration_bins.csv`` and ``calibration.png``;
the second ``calibration_2.csv``. The last prints the table.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from viewmend import AGFTIClassifier, MendClassifier
from viewmend.bench.environment import check_publishable, environment
from viewmend.core.common.calibration import (
    BINS,
    calibration_error,
    fit_temperature,
    log_loss,
    surest_first,
    tempered,
)
from viewmend.datasets import Task, hide
from viewmend.datasets.catalogue import DATA_VARIABLE, load
from viewmend.models.search_contests import SharedGeometry
from viewmend.plot.style import GREY, PALETTE, plot_style

DATA = ("UCI-Digit (embedded)", "CUB", "MNIST-USPS")
MODELS = {"MendClassifier": MendClassifier(), "AGFTIClassifier": AGFTIClassifier(random_state=0)}
CALIBRATIONS = (None, "leave_one_out", "cross_fit")
# Held-out labels of AGF-TI are found as often as others, so that it need not be fitted again.
CROSS_FITTED = ("MendClassifier",)
# The temperature that the true classes would choose: what one temperature can do at best.
BEST = "best"
WANTED = 0.95
FIELDS = (
    "data",
    "model",
    "seed",
    "calibration",
    "temperature",
    "held_out_accuracy",
    "accuracy",
    "ece",
    "nll",
    "accuracy_of_surest_80",
    "threshold",
    "coverage",
    "accuracy_decided",
    "seconds",
)
BIN_FIELDS = ("data", "model", "seed", "calibration", "bin", "confidence", "accuracy")


def measures(shares: np.ndarray, codes: np.ndarray) -> dict[str, float]:
    """Errors of class shares (n_samples, n_classes), given the true classes."""
    correct = np.argmax(shares, axis=1) == codes
    _, hits = surest_first(shares.max(axis=1), correct)
    surest = int(0.8 * len(codes))
    return {
        "accuracy": correct.mean(),
        "ece": calibration_error(shares, codes),
        "nll": log_loss(shares, codes),
        "accuracy_of_surest_80": hits[surest - 1] / surest,
    }


def promise(model, shares: np.ndarray, codes: np.ndarray) -> dict[str, float]:
    """Coverage and accuracy of the samples decided at the threshold for an accuracy of `WANTED`."""
    try:
        threshold = model.calibration_.threshold_for(WANTED)
    except ValueError:
        return {}
    decided = shares.max(axis=1) >= threshold
    correct = np.argmax(shares, axis=1)[decided] == codes[decided]
    return {
        "threshold": threshold,
        "coverage": decided.mean(),
        "accuracy_decided": correct.mean() if decided.any() else np.nan,
    }


def bins_of(shares: np.ndarray, codes: np.ndarray) -> Iterator[dict[str, float]]:
    """Mean confidence and accuracy in bins of equal mass."""
    confidence, correct = shares.max(axis=1), np.argmax(shares, axis=1) == codes
    for i, rows in enumerate(np.array_split(np.argsort(confidence, kind="stable"), BINS)):
        yield {"bin": i, "confidence": confidence[rows].mean(), "accuracy": correct[rows].mean()}


def run(task: Task, estimator, ways: Sequence[str | None]) -> Iterator[tuple[dict, list[dict]]]:
    """Figures and bins for every way to calibrate."""
    reader = clone(estimator)
    shared = SharedGeometry(estimator, *reader.prepare(task.data, task.y))
    shared.geometry(reader)
    codes = task.y_true[task.unlabelled]
    for how in ways:
        start = time.process_time()
        model = shared.fit({"calibration": how}, shared.labels)
        seconds = time.process_time() - start
        shares = model.label_distributions_[task.unlabelled]
        told = {
            "calibration": how,
            "temperature": model.calibration_.temperature,
            "held_out_accuracy": model.calibration_.correct.mean() if how else np.nan,
            "seconds": seconds,
        }
        yield (
            told | measures(shares, codes) | promise(model, shares, codes),
            [*bins_of(shares, codes)],
        )
        if how is None:
            temperature = fit_temperature(shares, codes)
            best = tempered(shares, temperature)
            told = {"calibration": BEST, "temperature": temperature}
            yield told | measures(best, codes), [*bins_of(best, codes)]


def run_all(args: argparse.Namespace) -> None:
    check_publishable([environment()], args.out)
    figures, bins = [], []
    for name in DATA:
        source = load(name, args.data)
        for seed in range(args.seeds):
            rates = {"missing_rate": 0.5, "label_rate": label_rate(source.y, args.per_class)}
            task = hide(source.data.views, source.y, **rates, random_state=seed)
            for kind, estimator in MODELS.items():
                key = {"data": name, "model": kind, "seed": seed}
                often = args.cross_fit and kind in CROSS_FITTED
                ways = CALIBRATIONS if often else CALIBRATIONS[:2]
                for told, in_bins in run(task, estimator, ways):
                    figures.append(key | told)
                    how = {"calibration": told["calibration"]}
                    bins += [key | how | row for row in in_bins]
                    print(", ".join(f"{k} {shown(v)}" for k, v in (key | told).items()), flush=True)
    write(args.out / f"{args.name}.csv", FIELDS, figures)
    if args.per_class is None:
        write(args.out / f"{args.name}_bins.csv", BIN_FIELDS, bins)
        draw(args.out)


def label_rate(y: np.ndarray, per_class: int | None) -> float:
    """Share of the labels to give; classes have the same size."""
    return 0.05 if per_class is None else (per_class - 0.5) / np.bincount(y).max()


def shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def write(path: Path, fields: tuple[str, ...], rows: list[dict]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: shown(v) for k, v in row.items()} for row in rows)


def read(path: Path) -> list[dict]:
    with path.open() as file:
        return list(csv.DictReader(file))


def seeds_of(rows: list[dict], data: str, model: str, how: str) -> list[dict]:
    """Rows of one setting."""
    key = {"data": data, "model": model, "calibration": how}
    return [row for row in rows if key.items() <= row.items()]


def mean_of(rows: list[dict], field: str) -> float:
    """Mean over the seeds that have a value."""
    values = [float(row[field]) for row in rows if row[field] not in ("", "nan")]
    return float(np.mean(values)) if values else np.nan


def draw(folder: Path) -> None:
    """Reliability diagrams: means over the seeds of every bin, before and after."""
    import matplotlib.pyplot as plt

    rows = read(folder / "calibration_bins.csv")
    styles = {"None": (GREY, "uncalibrated"), "leave_one_out": (PALETTE[0], "calibrated")}
    with plot_style():
        figure, axes = plt.subplots(2, 3, figsize=(9, 6.2), sharex=True, sharey=True)
        for line, model in zip(axes, MODELS, strict=True):
            for ax, data in zip(line, DATA, strict=True):
                ax.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=0.8)
                for how, (color, label) in styles.items():
                    here = seeds_of(rows, data, model, how)
                    points = [[r for r in here if r["bin"] == str(i)] for i in range(BINS)]
                    x, y = ([mean_of(p, f) for p in points] for f in ("confidence", "accuracy"))
                    ax.plot(x, y, "o-", color=color, label=label, linewidth=1.2)
                ax.set_title(f"{model}, {data.removesuffix(' (embedded)')}", fontsize=9)
        axes[0, 0].legend(frameon=False, loc="upper left")
        for ax in axes[1]:
            ax.set_xlabel("confidence")
        for ax in axes[:, 0]:
            ax.set_ylabel("accuracy")
        figure.tight_layout()
        figure.savefig(folder / "calibration.png", dpi=110)


def print_table(path: Path) -> None:
    rows = read(path)
    columns = {
        "T": ("temperature", 1, "{:.2f}"),
        "accuracy": ("accuracy", 100, "{:.1f}"),
        "held-out accuracy": ("held_out_accuracy", 100, "{:.1f}"),
        "ECE": ("ece", 100, "{:.1f}"),
        "NLL": ("nll", 1, "{:.3f}"),
        "surest 80 %": ("accuracy_of_surest_80", 100, "{:.1f}"),
        "decided": ("coverage", 100, "{:.0f}"),
        "accuracy decided": ("accuracy_decided", 100, "{:.1f}"),
        "seconds": ("seconds", 1, "{:.1f}"),
    }
    print("| data | model | calibration |", " | ".join(columns), "|")
    print("|---|---|---|" + "---|" * len(columns))
    for data in DATA:
        for model in MODELS:
            for how in (*map(str, CALIBRATIONS), BEST):
                if not (here := seeds_of(rows, data, model, how)):
                    continue
                means = [(mean_of(here, f) * unit, form) for f, unit, form in columns.values()]
                cells = ["-" if np.isnan(mean) else form.format(mean) for mean, form in means]
                print(f"| {data} | {model} | {how} |", " | ".join(cells), "|")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get(DATA_VARIABLE))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--table", action="store_true", help="print the table of --out")
    parser.add_argument("--per-class", type=int, help="labels per class, 5 %% by default")
    parser.add_argument("--no-cross-fit", action="store_false", dest="cross_fit")
    args = parser.parse_args()
    args.name = "calibration" if args.per_class is None else f"calibration_{args.per_class}"
    warnings.simplefilter("ignore", ConvergenceWarning)
    if args.table:
        print_table(args.out / f"{args.name}.csv")
    else:
        run_all(args)


if __name__ == "__main__":
    main()
