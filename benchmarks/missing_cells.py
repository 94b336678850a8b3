"""What fills missing cells best, judged by the classes that `MendClassifier` then finds.

    python benchmarks/missing_cells.py --data DIR --out missing_cells.csv [--rows 600] [--seeds 0 1]
    python benchmarks/missing_cells.py --out missing_cells.csv --table

Views missing 50 %, 5 % labels. Of the rows that are left, 5, 20 or 50 % of the
cells are hidden: each by itself, or in one block of neighbouring columns per row. Every way to fill
sees one view and no label. The first form appends one line per fit to the CSV and skips those that
are there; the second prints means over the seeds, in percent.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from csv_rows import append_rows, read_rows
from sklearn.impute import KNNImputer

from viewmend import MendClassifier, MultiViewData
from viewmend.bench.environment import check_publishable, environment
from viewmend.data import cells
from viewmend.datasets import Task, hide
from viewmend.datasets.catalogue import load
from viewmend.exceptions import DataWarning

DATA = ("UCI-Digit", "CUB", "MNIST-USPS", "OutScene (surrogate)", "OutScene (3 views)")
RATES = (0.05, 0.2, 0.5)
COMPLETE = "complete"
FIELDS = ("data", "seed", "rate", "pattern", "fill", "accuracy", "error", "seconds")


def single_cells(shape: tuple[int, int], rate: float, rng: np.random.Generator) -> np.ndarray:
    """Each cell hidden by itself, (n_rows, n_columns) of bool."""
    return rng.random(shape) < rate


def blocks(shape: tuple[int, int], rate: float, rng: np.random.Generator) -> np.ndarray:
    """One block of neighbouring columns per row; around the end it begins again at the front."""
    n_rows, n_columns = shape
    width = max(round(rate * n_columns), 1)
    places = np.arange(n_columns) - rng.integers(n_columns, size=(n_rows, 1))
    return places % n_columns < width


PATTERNS = {"cells": single_cells, "blocks": blocks}


def by_library(how: str) -> Callable[[np.ndarray], np.ndarray]:
    """Rows filled by what is learned from them."""
    return lambda rows: cells.FILLS[how](rows)(rows)


FILLS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "median": by_library("median"),
    "low_rank": by_library("low_rank"),
    # Distances over the cells that both rows have; tried, and not kept.
    "neighbors": KNNImputer(n_neighbors=5, keep_empty_features=True).fit_transform,
}


def tasks(args: argparse.Namespace) -> Iterator[tuple[str, int, Task]]:
    """Every data set under every seed, at most so many rows of it."""
    for name, seed in product(args.names, args.seeds):
        data = load(name, args.data).data
        rows = np.random.default_rng(seed).permutation(data.n_samples)[: args.rows]
        views, y = [view[rows] for view in data.views], np.asarray(data.y)[rows]
        yield name, seed, hide(views, y, missing_rate=0.5, label_rate=0.05, random_state=seed)


def hidden_cells(task: Task, pattern: str, rate: float, seed: int) -> list[np.ndarray]:
    """Cells to hide in the observed rows of every view; every row keeps one."""
    rng, hidden = np.random.default_rng([seed, int(100 * rate)]), []
    for v, view in enumerate(task.data.views):
        gone = PATTERNS[pattern](view.shape, rate, rng) & task.data.observed[:, [v]]
        gone[np.arange(len(view)), rng.integers(view.shape[1], size=len(view))] = False
        hidden.append(gone)
    return hidden


def filled(
    data: MultiViewData, hidden: list[np.ndarray], fill: Callable[[np.ndarray], np.ndarray]
) -> tuple[MultiViewData, float]:
    """The data with hidden cells filled, and their error relative to that of column means."""
    views, squares, baseline = [], 0.0, 0.0
    for v, (view, gone) in enumerate(zip(data.views, hidden, strict=True)):
        seen = data.observed[:, v]
        rows, told = view[seen], gone[seen]
        punched = np.where(told, np.nan, rows)
        scale = np.nanstd(punched, axis=0)
        scale[~(scale > 0)] = np.inf
        made = fill(punched)
        squares += ((((made - rows) / scale) ** 2)[told]).sum()
        baseline += ((((np.nanmean(punched, axis=0) - rows) / scale) ** 2)[told]).sum()
        whole = view.copy()
        whole[seen] = made
        views.append(whole)
    return replace(data, views=tuple(views)), float(np.sqrt(squares / baseline))


def accuracy(task: Task, data: MultiViewData) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        model = MendClassifier(calibration=None).fit(data, task.y)
    return float((model.transduction_ == task.y_true)[task.unlabelled].mean())


def run(args: argparse.Namespace) -> None:
    check_publishable([environment()], args.out)
    done = {tuple(row[k] for k in FIELDS[:5]) for row in read_rows(args.out)}
    for name, seed, task in tasks(args):
        settings = [("0", "none", COMPLETE), *product(map(str, RATES), PATTERNS, args.fills)]
        for rate, pattern, fill in settings:
            key = (name, str(seed), rate, pattern, fill)
            if key not in done:
                found = dict(zip(FIELDS, (*key, *judged(task, key)), strict=True))
                append_rows(args.out, FIELDS, [found])


def judged(task: Task, key: tuple[str, ...]) -> tuple[str, ...]:
    """Accuracy, error of the cells and seconds to fill them, of one line of the CSV."""
    _, seed, rate, pattern, fill = key
    if fill == COMPLETE:
        return f"{accuracy(task, task.data):.4f}", "", ""
    hidden = hidden_cells(task, pattern, float(rate), int(seed))
    begin = time.process_time()
    data, error = filled(task.data, hidden, FILLS[fill])
    seconds = time.process_time() - begin
    return f"{accuracy(task, data):.4f}", f"{error:.4f}", f"{seconds:.3f}"


def show(rows: list[dict[str, str]]) -> None:
    """Accuracy in percent, means over data sets and seeds, one line per pattern and rate."""

    def mean(pattern: str, rate: str, fill: str) -> float:
        key = {"pattern": pattern, "rate": rate, "fill": fill}
        hits = [float(row["accuracy"]) for row in rows if key.items() <= row.items()]
        return 100 * float(np.mean(hits)) if hits else np.nan

    print(f"with all cells: {mean('none', '0', COMPLETE):.1f}", end="\n\n")
    print("| hidden |", " | ".join(FILLS), "|")
    print("|---|" + "---|" * len(FILLS))
    for pattern, rate in product(PATTERNS, map(str, RATES)):
        cells_of = [f"{mean(pattern, rate, fill):.1f}" for fill in FILLS]
        print(f"| {pattern}, {float(rate):.0%} |", " | ".join(cells_of), "|")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--seeds", type=int, nargs="+", default=[100, 101, 102, 103, 104])
    parser.add_argument("--names", nargs="+", default=DATA)
    parser.add_argument("--fills", nargs="+", default=list(FILLS))
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    if not args.table:
        run(args)
    show(read_rows(args.out))


if __name__ == "__main__":
    main()
