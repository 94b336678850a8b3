"""Few samples, many columns, two classes: Mend beside what labels alone can teach.

    python benchmarks/omics.py --data DIR --out docs/results [--seeds 0 1 2] [--jobs 2]
    python benchmarks/omics.py --out docs/results --table

Every task of `omics_tasks` is posed with 5, 20 and 50 % labels, drawn at random within the classes.
A third of the seeds each has 10, 30 and 50 % of the views missing. Accuracy is that of the samples
without a label. The first form writes ``omics.csv`` and the page ``omics.md``, the second the page
alone.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from csv_rows import append_rows, read_rows, shown, shown_row, write_rows
from dots import draw_dots
from omics_tasks import TASKS

from viewmend import MendClassifier
from viewmend.baselines import LateFusionClassifier, LateTreesClassifier, UnionGraphClassifier
from viewmend.bench.environment import check_publishable, environment
from viewmend.datasets import Task, hide
from viewmend.datasets.catalogue import DATA_VARIABLE

METHODS: dict[str, Callable[[], Any]] = {
    "Mend": lambda: MendClassifier(calibration=None, n_jobs=1),
    "late fusion": LateFusionClassifier,
    "late trees": LateTreesClassifier,
    "union graph": UnionGraphClassifier,
}
LABELS = (0.05, 0.2, 0.5)
MISSING = (0.1, 0.3, 0.5)
FIELDS = ("task", "labels", "missing", "seed", "method", "accuracy", "seconds", "revision")


def pose(kind: str, labels: float, seed: int, folder: Path | None) -> tuple[Task, float]:
    """The task of a seed, and the share of its views that is missing."""
    views, y = TASKS[kind](folder, np.random.default_rng(seed))
    missing = MISSING[seed % len(MISSING)]
    task = hide(views, y, missing_rate=missing, label_rate=labels, random_state=seed)
    return task, missing


def run(kind: str, labels: float, seed: int, folder: Path | None) -> list[dict[str, Any]]:
    """Accuracy of every method on one task."""
    warnings.simplefilter("ignore")
    task, missing = pose(kind, labels, seed, folder)
    key = {"task": kind, "labels": labels, "missing": missing, "seed": seed}
    rows, free = [], task.unlabelled
    for method, make in METHODS.items():
        begin = time.process_time()
        found = make().fit(task.data, task.y).transduction_
        seconds = time.process_time() - begin
        accuracy = float(np.mean(found[free] == task.y_true[free]))
        rows.append(key | {"method": method, "accuracy": accuracy, "seconds": seconds})
    return rows


def run_all(args: argparse.Namespace) -> None:
    known = environment()
    check_publishable([known], args.out)
    cells = [
        (kind, labels, seed, args.data)
        for seed in args.seeds
        for kind in args.tasks
        for labels in LABELS
    ]
    pool = joblib.Parallel(n_jobs=args.jobs, return_as="generator")
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / "omics.csv"
    write_rows(path, FIELDS, [])
    # As they come, seed after seed: a run that is stopped leaves those that are done.
    for rows in pool(joblib.delayed(run)(*cell) for cell in cells):
        found = (shown_row(row | {"revision": known["revision"]}) for row in rows)
        append_rows(path, FIELDS, found)


def accuracies(rows: list[dict[str, str]], method: str, **key: object) -> np.ndarray:
    """Percent by seed of a method in one setting, in the order of the file."""
    wanted = {"method": method} | {field: shown(value) for field, value in key.items()}
    return np.array([100 * float(row["accuracy"]) for row in rows if wanted.items() <= row.items()])


def difference(rows: list[dict[str, str]], rival: str, **key: object) -> str:
    """Mean and standard error of what Mend is ahead of a rival on the same tasks."""
    gaps = accuracies(rows, "Mend", **key) - accuracies(rows, rival, **key)
    error = gaps.std(ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else np.nan
    return f"{gaps.mean():+.1f} ± {error:.1f}"


def table(rows: list[dict[str, str]]) -> str:
    """Means over the seeds by task and labels, then what Mend is ahead of each rival."""
    lines = ["| task | labels | " + " | ".join(METHODS) + " |", "|---|---|" + "---|" * len(METHODS)]
    for kind in dict.fromkeys(row["task"] for row in rows):
        for labels in LABELS:
            found = [accuracies(rows, each, task=kind, labels=labels).mean() for each in METHODS]
            best = max(round(each, 1) for each in found)
            cells = (f"**{one:.1f}**" if round(one, 1) == best else f"{one:.1f}" for one in found)
            lines.append(f"| {kind} | {labels:.0%} | " + " | ".join(cells) + " |")
    rivals = [method for method in METHODS if method != "Mend"]
    lines += ["", "| labels | " + " | ".join(f"Mend - {rival}" for rival in rivals) + " |"]
    lines.append("|---|" + "---|" * len(rivals))
    for labels in LABELS:
        cells = (difference(rows, rival, labels=labels) for rival in rivals)
        lines.append(f"| {labels:.0%} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def means(rows: list[dict[str, str]], labels: float) -> dict[str, dict[str, float]]:
    """Accuracy in percent by task and method, with one share of labels."""
    kinds = dict.fromkeys(row["task"] for row in rows)
    return {
        kind: {
            method: float(accuracies(rows, method, task=kind, labels=labels).mean())
            for method in METHODS
        }
        for kind in kinds
    }


def opening(rows: list[dict[str, str]]) -> str:
    """What the tables say, in a sentence."""
    parts = [
        f"{difference(rows, 'late fusion', labels=labels)} points with {labels:.0%} labels"
        for labels in LABELS
    ]
    return (
        "On tables of few samples and many columns, Mend is more accurate than late fusion of "
        f"logistic regressions, by {', '.join(parts)}."
    )


def page(rows: list[dict[str, str]]) -> str:
    """The page: a sentence, a chart, what was done, and the tables."""
    seeds = sorted({int(row["seed"]) for row in rows})
    told = ", ".join(sorted({row["revision"] for row in rows}))
    text = f"""\
# Few samples, many columns

{opening(rows)}

![Accuracy by task, method and share of labels](omics.png)

The tasks resemble omics data: two classes, at most 300 samples, and hundreds to thousands of
columns, most of which contain no information about the classes. The real tables are parts of the
data on which Mend was developed and of data that comes with scikit-learn; to some, columns of noise
are added. *counts* are generated. Labels are drawn at random within the classes; 10, 30 or 50 % of
the views are missing. The table shows accuracies in percent on the samples without a label, means
over seeds {seeds[0]}-{seeds[-1]}. `MendClassifier()` has its defaults. *late fusion* is the mean of
log probabilities of a logistic regression per view; *late trees* is the same with extremely
randomised trees.

{{tables}}

The next table has the accuracy of Mend minus that of the other method, in points: mean and standard
error over all tasks. `benchmarks/omics.py`, revision {told}; [every run](omics.csv).
"""
    cells, ahead = table(rows).split("\n\n")
    return text.format(tables=cells) + f"\n{ahead}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get(DATA_VARIABLE))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="write the page of --out alone")
    args = parser.parse_args()
    if not args.table:
        run_all(args)
    rows = read_rows(args.out / "omics.csv")
    check_publishable(rows, args.out)
    (args.out / "omics.md").write_text(page(rows))
    panels = {f"{labels:.0%} labels": means(rows, labels) for labels in LABELS}
    draw_dots(args.out / "omics.png", panels, "accuracy, %")


if __name__ == "__main__":
    main()
