"""Mend beside the tools that a reader knows, on the same tasks.

    python benchmarks/familiar.py --data DIR --out docs/results [--seeds 0 1 2] [--jobs 2]
    python benchmarks/familiar.py --out docs/results --table

Every data set is posed with half of the views missing and 5, 20 and 50 % labels, and twice with
50 % labels where nothing is missing: with all views, and with the one that has most columns. Labels
are drawn at random within the classes. Accuracy is that of the samples without a label. MOFA takes
part where the package mofapy2 is installed.

The first form adds what is missing to ``familiar.csv``: a run that was interrupted goes on. It ends
with the page ``familiar.md`` and its chart, which the second form writes alone.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import familiar_page
import joblib
import numpy as np
from csv_rows import read_rows, shown, shown_row, write_rows
from familiar_tools import NEEDS, TOOLS, at_hand
from imbalance import linear_score
from omics_tasks import TASKS, Drawn

from viewmend.bench.environment import check_publishable, environment
from viewmend.datasets import Task, hide
from viewmend.datasets.catalogue import DATA_VARIABLE, load

# Samples at most, drawn anew for every seed.
MOST_SAMPLES = 1000
SETS = (
    "UCI-Digit (embedded)",
    "CUB",
    "MNIST-USPS",
    "OutScene (3 views)",
    "Caltech101-20 (surrogate)",
)
# Places of the views that are used where not all are: the others have thousands of columns, on
# which boosting takes minutes.
VIEWS = {"Caltech101-20 (surrogate)": (0, 1, 2)}
OMICS = (
    "scenes, coast against country",
    "cell nuclei",
    "counts, weak and wide",
    "counts, two batches",
)


def threshold_rule(rng: np.random.Generator) -> Drawn:
    """Two views of 12 Gaussian columns; two signs of each say the class of nine samples in ten."""
    y = rng.integers(0, 2, MOST_SAMPLES)
    views = []
    for _ in range(2):
        X = rng.normal(size=(len(y), 12))
        told = np.where(rng.random(len(y)) < 0.1, 1 - y, y)
        X[:, 1] = np.abs(X[:, 1]) * np.where(told == 1, 1, -1) * np.sign(X[:, 0])
        views.append(X)
    return views, y


# Where classes are no groups of similar samples.
GENERATED: Mapping[str, Callable[[np.random.Generator], Drawn]] = {
    "linear score": lambda rng: linear_score(0.5, rng),
    "threshold rule": threshold_rule,
}
ALL = (*SETS, *OMICS, *GENERATED)


@dataclass(frozen=True)
class Setting:
    """What is hidden, and whether all views are given or the widest alone."""

    missing: float
    labels: tuple[float, ...]
    one_view: bool = False


SETTINGS = {
    "half missing": Setting(0.5, (0.05, 0.2, 0.5)),
    "complete": Setting(0.0, (0.5,)),
    "one view": Setting(0.0, (0.5,), one_view=True),
}
KEY = ("data", "setting", "labels", "seed", "method")
FIELDS = (*KEY, "accuracy", "seconds", "revision")


def views_of(name: str, seed: int, folder: Path | None) -> Drawn:
    """Complete views of some samples of a data set, and their classes."""
    rng = np.random.default_rng(seed)
    if name in GENERATED:
        return GENERATED[name](rng)
    if name in TASKS:
        return TASKS[name](folder, rng)
    given = load(name, folder)
    rows = np.sort(rng.permutation(given.n_samples)[:MOST_SAMPLES])
    places = VIEWS.get(name, range(given.n_views))
    return [np.asarray(given.views[v])[rows] for v in places], given.y[rows]


def pose(name: str, setting: Setting, seed: int, folder: Path | None) -> Iterator[Task]:
    """The tasks of a cell, which differ in their labels alone."""
    views, y = views_of(name, seed, folder)
    if setting.one_view:
        views = [max(views, key=lambda view: view.shape[1])]
    for labels in setting.labels:
        yield hide(views, y, missing_rate=setting.missing, label_rate=labels, random_state=seed)


def run(name: str, setting: str, seed: int, folder: Path | None) -> list[dict[str, Any]]:
    """Accuracy of every tool on the tasks of one cell."""
    warnings.simplefilter("ignore")
    rows = []
    tasks = pose(name, SETTINGS[setting], seed, folder)
    for labels, task in zip(SETTINGS[setting].labels, tasks, strict=True):
        for method, tool in at_hand().items():
            begin = time.process_time()
            found = tool(task.data, task.y)
            seconds = time.process_time() - begin
            right = (found == task.y_true)[task.unlabelled]
            told = (name, setting, labels, seed, method, float(right.mean()), seconds)
            rows.append(dict(zip(FIELDS, told, strict=False)))
    return rows


def run_all(args: argparse.Namespace) -> None:
    """Run the cells that the file does not have yet, and write each as it is done."""
    path, revision = args.out / "familiar.csv", environment()["revision"]
    check_publishable([environment()], args.out)
    args.out.mkdir(parents=True, exist_ok=True)
    for name in sorted(set(TOOLS) - set(at_hand())):
        print(f"{name} is left out: {NEEDS[name]} is not installed")
    kept = read_rows(path)
    done = {(row["data"], row["setting"], row["seed"]) for row in kept}
    cells = [
        (name, setting, seed, args.data)
        for seed in args.seeds
        for setting in SETTINGS
        for name in args.sets
        if (name, setting, shown(seed)) not in done
    ]
    jobs = joblib.Parallel(n_jobs=args.jobs, return_as="generator")
    for rows in jobs(joblib.delayed(run)(*cell) for cell in cells):
        kept += [shown_row(row | {"revision": revision}) for row in rows]
        write_rows(path, FIELDS, kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get(DATA_VARIABLE))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--sets", nargs="+", choices=ALL, default=list(ALL))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="write the page of --out alone")
    args = parser.parse_args()
    if not args.table:
        run_all(args)
    rows = read_rows(args.out / "familiar.csv")
    check_publishable(rows, args.out)
    familiar_page.write(rows, args.out)


if __name__ == "__main__":
    main()
