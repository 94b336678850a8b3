"""Accuracy of every method under the released protocol, next to the paper's printed figures.

    python benchmarks/methods.py --data DIR --out methods.csv [--jobs 2] [--names AMGL,MLAN]
    python benchmarks/methods.py --out methods.csv --table [--paper P.csv --deep D.csv]

Missing rate 50 %, 5 % labels, released masks and labels. Every method sees the same masks, and all
that need complete views the same completion by deep matrix factorisation. One line per grid point
is appended to the file; grid points already in it are not repeated, so that a run that was stopped
goes on where it was. A fit that raises leaves its error in the column ``status``, which is "ok"
elsewhere; take its line out of the file to try it again. Settings are chosen *on test labels*, as
in the paper: this reproduces its tables and is not an honest comparison.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from pathlib import Path

import joblib
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import f1_score
from sklearn.model_selection import ParameterGrid

from viewmend.backend.threads import limited_threads
from viewmend.baselines.registry import METHODS
from viewmend.core.common.scaling import unit_rows
from viewmend.datasets import Task, hide, load_npz
from viewmend.impute import DeepMatrixFactorization

SEEDS = {"cub": 5, "uci_digit": 3}
PAPER_NAMES = {"cub": "CUB", "uci_digit": "UCI-Digit"}
# Grids of which a full search takes hours, thinned over their whole range.
THINNED = {
    "SLIM": {"lam1": (1e-4, 1e-2, 1.0, 1e2, 1e4), "lam2": (1e-4, 1e-2, 1.0, 1e2, 1e4)},
    "FMSEL": {"lam1": (0.1,), "lam2": (0.1, 10.0), "xi": (1e-3, 0.1)},
    "CFMSC": {"lam": (1e-2, 1.0, 1e2), "beta": (0.1, 1.0, 10.0), "gamma": (1.0, 10.0, 100.0)},
}
FIELDS = ("data", "seed", "method", "parameters", "accuracy", "macro_f1", "seconds", "status")
# Fields that tell the fits apart.
KEY = FIELDS[:4]
MISSING = {"accuracy": "nan"}


class FixedCompletion(BaseEstimator):
    """An imputer that returns a completion made before."""

    def __init__(self, completed):
        self.completed = completed

    def fit_transform(self, _data):
        return self.completed


def task_of(path: Path, seed: int) -> Task:
    dataset = load_npz(path)
    by_class = np.argsort(dataset.y, kind="stable")
    return hide(
        [view[by_class] for view in dataset.views],
        dataset.y[by_class],
        missing_rate=0.5,
        label_rate=0.05,
        labels="most_complete",
        order="released",
        random_state=seed,
    )


def completion_of(path: Path, seed: int):
    """Deep matrix factorisation with the paper's sizes, on unit rows."""
    task = task_of(path, seed)
    n_classes = int(task.y_true.max()) + 1
    views = [unit_rows(view) for view in task.data.views]
    imputer = DeepMatrixFactorization(
        n_components=n_classes, n_hidden=10 * n_classes, random_state=seed
    )
    return imputer.fit_transform(views)


def grid_of(name: str, full: bool) -> list[dict]:
    paper = METHODS[name].estimator.grid
    values = paper if full else THINNED.get(name, paper)
    return list(ParameterGrid({key: list(column) for key, column in values.items()}))


def with_seed(name: str, parameters: dict, seed: int) -> dict:
    """Parameters with the seed, for methods that draw random numbers."""
    known = METHODS[name].estimator().get_params()
    return parameters | ({"random_state": seed} if "random_state" in known else {})


def key_of(path: Path, seed: int, name: str, parameters: dict) -> dict:
    """The columns that tell which fit a line is of, as the file spells them."""
    settings = repr(sorted(with_seed(name, parameters, seed).items()))
    return {"data": path.stem, "seed": str(seed), "method": name, "parameters": settings}


def scores(path: Path, seed: int, name: str, parameters: dict, completed) -> dict:
    """Accuracy and macro-F1 on the unlabelled samples."""
    task = task_of(path, seed)
    method = METHODS[name]
    fixed = {"imputer": FixedCompletion(completed)} if method.needs_imputation else {}
    with limited_threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = method.estimator(**with_seed(name, parameters, seed), **fixed)
        model.fit(task.data, task.y)
    judged = task.unlabelled
    truth, predicted = task.y_true[judged], model.transduction_[judged]
    return {
        "accuracy": np.mean(truth == predicted),
        "macro_f1": f1_score(truth, predicted, average="macro", zero_division=0),
    }


def run(path: Path, seed: int, name: str, parameters: dict, completed) -> dict:
    """One line of the file."""
    start = time.perf_counter()
    try:
        found = scores(path, seed, name, parameters, completed) | {"status": "ok"}
    # Whatever a method raises: hours of other fits must not end with it.
    except Exception as error:
        found = {"status": " ".join(f"{type(error).__name__}: {error}".split())}
    return key_of(path, seed, name, parameters) | found | {"seconds": time.perf_counter() - start}


def read(out: Path) -> list[dict]:
    """Lines of the file; those written before there was a status were all fine."""
    if not out.exists():
        return []
    with out.open() as file:
        return [{"status": "ok"} | row for row in csv.DictReader(file)]


def write(out: Path, rows: list[dict]) -> None:
    """The whole file, in one piece: a stop half-way leaves the old one."""
    draft = out.with_suffix(".draft")
    with draft.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows)
    draft.replace(out)


def append(out: Path, row: dict) -> None:
    with out.open("a", newline="") as file:
        csv.DictWriter(file, FIELDS).writerow(row)


def plan_of(args: argparse.Namespace, done: list[dict]) -> list[tuple]:
    """Arguments of `run` for all fits that the file does not have."""
    # AGF-TI itself is the subject of row_order.py.
    names = args.names.split(",") if args.names else [name for name in METHODS if name != "AGF-TI"]
    known = {tuple(row[field] for field in KEY) for row in done}
    return [
        (path, seed, name, parameters)
        for path in (args.data / f"{data}.npz" for data in args.sets.split(","))
        for seed in range(SEEDS[path.stem])
        for name in names
        for parameters in grid_of(name, args.full)
        if tuple(key_of(path, seed, name, parameters).values()) not in known
    ]


def run_all(args: argparse.Namespace) -> None:
    done = read(args.out)
    # Written anew: the file may come from before a column was added.
    write(args.out, done)
    plan = plan_of(args, done)
    tasks = sorted({(path, seed) for path, seed, *_ in plan})
    filled = joblib.Parallel(args.jobs)(joblib.delayed(completion_of)(*task) for task in tasks)
    completed = dict(zip(tasks, filled, strict=True))
    parallel = joblib.Parallel(args.jobs, return_as="generator_unordered")
    fits = (joblib.delayed(run)(*fit, completed[fit[:2]]) for fit in plan)
    for i, row in enumerate(parallel(fits)):
        append(args.out, row)
        if i % 50 == 0 or row["status"] != "ok":
            print(f"{i + 1}/{len(plan)} {row['method']} {row['parameters']}: {row['status']}")


def chosen(rows: list[dict]) -> tuple[np.ndarray, np.ndarray]:
    """Accuracies with the setting that is best in each run, and with that of the first run.

    A run in which the latter failed or is missing counts as NaN.
    """
    seeds = sorted({r["seed"] for r in rows})
    table = {(r["seed"], _without_seed(r["parameters"])): r for r in rows}
    best = {
        seed: max(
            (r for r in rows if r["seed"] == seed),
            key=lambda r: float(r["accuracy"]) + float(r["macro_f1"]),
        )
        for seed in seeds
    }
    first = _without_seed(best[seeds[0]]["parameters"])
    each = np.array([float(best[seed]["accuracy"]) for seed in seeds])
    reused = np.array([float(table.get((seed, first), MISSING)["accuracy"]) for seed in seeds])
    return 100 * each, 100 * reused


def _without_seed(parameters: str) -> str:
    return parameters.split("('random_state'")[0]


def paper_figures(args: argparse.Namespace) -> dict[tuple[str, str], str]:
    found = {}
    for path in filter(None, (args.paper, args.deep)):
        with path.open() as file:
            for row in csv.DictReader(file):
                if row["metric"] == "acc" and row.get("vmr_percent", "50") == "50":
                    found[row["dataset"], row["method"]] = row["mean"]
    return found


def print_table(args: argparse.Namespace) -> None:
    everything, paper = read(args.out), paper_figures(args)
    rows = [row for row in everything if row["status"] == "ok"]
    print("| method | data | paper | best of each run | setting of the first run | s per fit |")
    print("|---|---|---|---|---|---|")
    for name in METHODS:
        for data, printed_name in PAPER_NAMES.items():
            here = [r for r in rows if (r["method"], r["data"]) == (name, data)]
            if not here:
                continue
            each, reused = chosen(here)
            seconds = np.median([float(r["seconds"]) for r in here])
            printed = paper.get((printed_name, name), "-")
            print(
                f"| {name} | {printed_name} | {printed} "
                f"| {each.mean():.1f} ± {each.std(ddof=1):.1f} "
                f"| {reused.mean():.1f} ± {reused.std(ddof=1):.1f} | {seconds:.1f} |"
            )
    for row in everything:
        if row["status"] != "ok":
            print(f"\nFailed: {', '.join(row[field] for field in KEY)}: {row['status']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with cub.npz and uci_digit.npz")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--names", help="methods, separated by commas; all by default")
    parser.add_argument("--sets", default=",".join(SEEDS), help="data sets, separated by commas")
    parser.add_argument("--full", action="store_true", help="the paper's whole grids")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--table", action="store_true", help="print the table of --out")
    parser.add_argument("--paper", type=Path, help="the paper's main_results.csv")
    parser.add_argument("--deep", type=Path, help="the paper's deep_baselines.csv")
    args = parser.parse_args()
    (print_table if args.table else run_all)(args)


if __name__ == "__main__":
    main()
