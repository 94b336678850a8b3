"""Narrow tables, and columns in different units: what scaling columns instead of rows is worth.

    python benchmarks/narrow_views.py --out docs/results [--seeds 0 1 2] [--jobs 2]
    python benchmarks/narrow_views.py --out docs/results --table

Tables that come with scikit-learn are cut into views of neighbouring columns; a fifth of the pairs
of a sample and a view are missing, and a tenth of the samples have a label. In the moons, each view
lacks another part of both classes. `MendClassifier` is fitted as it is, and with its six
representations passed as a list, which no view then changes.

The first form adds what is missing to ``narrow_views.csv``; runs of other revisions are done again.
Both end with the page ``narrow_views.md``.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import joblib
import numpy as np
from csv_rows import read_rows, shown_row, write_rows
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from viewmend import MendClassifier
from viewmend.baselines import MeanImputedLogistic, UnionGraphClassifier
from viewmend.bench.environment import check_publishable, environment
from viewmend.core.mend.representations import REPRESENTATIONS
from viewmend.datasets import Task, hide, make_broken_moons
from viewmend.exceptions import DataWarning

MISSING, LABELLED = 0.2, 0.1
METHODS: Mapping[str, Callable[[], object]] = {
    "Mend": lambda: MendClassifier(n_jobs=1),
    "Mend, rows as in wide views": lambda: MendClassifier(list(REPRESENTATIONS), n_jobs=1),
    "logistic regression": lambda: MeanImputedLogistic(),
    "union graph": lambda: UnionGraphClassifier(),
}
KEY = ("data", "seed", "method")
FIELDS = (*KEY, "accuracy", "revision")


def cut(load: Callable[..., tuple], width: int, amounts: bool = False) -> Callable[[int], Task]:
    """Tasks by seed, of a table in views of so many columns; exponentials if asked for."""

    def pose(seed: int) -> Task:
        X, y = load(return_X_y=True)
        if amounts:
            X = np.exp(1.5 * (X - X.mean(axis=0)) / X.std(axis=0))
        starts = range(0, X.shape[1] - width + 1, width)
        views = [X[:, start : start + width] for start in starts]
        return hide(views, y, missing_rate=MISSING, label_rate=LABELLED, random_state=seed)

    return pose


TASKS: Mapping[str, Callable[[int], Task]] = {
    "iris, 2 views of 2 columns": cut(load_iris, 2),
    "wine, 6 views of 2 columns": cut(load_wine, 2),
    "wine, 2 views of 6 columns": cut(load_wine, 6),
    "breast cancer, 10 views of 3 columns": cut(load_breast_cancer, 3),
    "breast cancer, 3 views of 10 columns": cut(load_breast_cancer, 10),
    "breast cancer, 2 views of 15 columns": cut(load_breast_cancer, 15),
    "breast cancer, exponentials, 3 views of 10 columns": cut(load_breast_cancer, 10, True),
    "moons, 2 views of 2 columns": lambda seed: make_broken_moons(random_state=seed),
}


def run(name: str, seed: int) -> list[dict]:
    """Accuracy of all methods on the unlabelled samples of one task."""
    warnings.simplefilter("ignore", DataWarning)
    task = TASKS[name](seed)
    rows = []
    for method, make in METHODS.items():
        found = make().fit(task.data, task.y).transduction_  # type: ignore[attr-defined]
        accuracy = float(np.mean((found == task.y_true)[task.unlabelled]))
        row = {"data": name, "seed": seed, "method": method, "accuracy": accuracy}
        rows.append(shown_row(row | {"revision": environment()["revision"]}))
    return rows


def run_all(args: argparse.Namespace) -> None:
    """Add the runs that are missing, or that another revision made."""
    path, revision = args.out / "narrow_views.csv", environment()["revision"]
    kept = [row for row in read_rows(path) if row["revision"] == revision]
    done = {(row["data"], int(row["seed"])) for row in kept}
    todo = [(name, seed) for name in TASKS for seed in args.seeds if (name, seed) not in done]
    for rows in joblib.Parallel(args.jobs)(joblib.delayed(run)(*each) for each in todo):
        kept += rows
    write_rows(path, FIELDS, sorted(kept, key=lambda row: (row["data"], int(row["seed"]))))


def page(rows: list[dict]) -> str:
    """A sentence and a table of means over seeds."""
    cells = {
        (name, method): [
            100 * float(row["accuracy"])
            for row in rows
            if (row["data"], row["method"]) == (name, method)
        ]
        for name in TASKS
        for method in METHODS
    }
    real = [name for name in TASKS if not name.startswith("moons")]
    means = {m: np.mean([np.mean(cells[name, m]) for name in real]) for m in METHODS}
    ours, before, *_ = METHODS
    told = ", ".join(sorted({row["revision"] for row in rows}))
    seeds = sorted({int(row["seed"]) for row in rows})
    lines = [
        "# Narrow tables",
        "",
        f"On tables of few columns, or of columns in different units, the classes of "
        f"`MendClassifier` are right for {means[ours]:.1f} % of the samples. If all views were "
        f"compared as wide ones are, it would be {means[before]:.1f} %, and on the moons "
        f"{np.mean(cells['moons, 2 views of 2 columns', before]):.0f} % instead of "
        f"{np.mean(cells['moons, 2 views of 2 columns', ours]):.0f} %.",
        "",
        "Accuracy on the unlabelled samples in percent. Tables that come with scikit-learn are "
        f"cut into views; {MISSING:.0%} of the rows of a view are missing, and {LABELLED:.0%} of "
        "the samples have a label. The moons are those of [the paper's first figure](../theory.md#"
        "figure-1-the-sub-cluster-problem), with three labels each. *Rows as in wide views*: "
        "the six representations are passed as a list, so that no view changes them. In "
        "*exponentials*, a few values of each column are very large. Means over seeds "
        f"{seeds[0]} to {seeds[-1]}, with their standard errors. "
        "[How narrow views are compared](../mend.md#the-six-representations). "
        f"`benchmarks/narrow_views.py`, revision {told}; [every run](narrow_views.csv).",
        "",
        "| data | " + " | ".join(METHODS) + " |",
        "|---" * (len(METHODS) + 1) + "|",
    ]
    for name in TASKS:
        shown = [_with_error(cells[name, method]) for method in METHODS]
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    return "\n".join([*lines, ""])


def _with_error(values: list[float]) -> str:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.1f} ± {error:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(10)))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="write the page of --out alone")
    args = parser.parse_args()
    if not args.table:
        run_all(args)
    rows = read_rows(args.out / "narrow_views.csv")
    check_publishable(rows, args.out)
    (args.out / "narrow_views.md").write_text(page(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
