"""Neighbour search: all rows against nearby cells, in every representation of a view.

python benchmarks/neighbours.py [--rows 10000 20000] [--columns 784] [--data FILE.npz --view KEY]

Without a file, the view is a mixture of low-rank Gaussians. The exact search is timed on a share
of the rows as queries and scaled up; the recall is that of these rows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from viewmend.core.common.rows import RowsInMemory
from viewmend.core.graphs.nearest import Neighbours, nearest_rows, nearest_rows_in_cells, recall
from viewmend.core.mend.representations import REPRESENTATIONS, component_rows, represent

N_QUERIES = 2000
Result = TypeVar("Result")


def timed(call: Callable[[], Result]) -> tuple[Result, float]:
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def mixture(n_rows: int, n_columns: int, rng: np.random.Generator) -> np.ndarray:
    """Ten classes, each a Gaussian on a space of twelve dimensions, with a little noise."""
    bases = rng.normal(size=(10, 13, n_columns))
    place = np.column_stack([np.full(n_rows, 2.0), rng.normal(size=(n_rows, 12))])
    label = rng.integers(10, size=n_rows)
    X = rng.normal(scale=0.3, size=(n_rows, n_columns))
    for c, basis in enumerate(bases):
        X[label == c] += place[label == c] @ basis
    return X


def load(args: argparse.Namespace, n_rows: int, rng: np.random.Generator) -> np.ndarray:
    if args.data is None:
        return mixture(n_rows, args.columns, rng)
    with np.load(args.data) as file:
        X = file[args.view]
    return X[np.sort(rng.permutation(len(X))[:n_rows])].astype(np.float64)


def others(queried: Neighbours) -> Neighbours:
    """Rows that were their own queries come first, at distance zero, and are left out."""
    return Neighbours(queried.indices[:, 1:], queried.squared_distances[:, 1:])


def compare(X: np.ndarray, k: int, queries: np.ndarray) -> tuple[float, float, float]:
    """Seconds of the exact search of all rows and of that in cells, and the recall of the last."""
    exact, part = timed(lambda: others(nearest_rows(X, k + 1, queries=X[queries])))
    found, in_cells = timed(lambda: nearest_rows_in_cells(X, k))
    sampled = Neighbours(found.indices[queries], found.squared_distances[queries])
    return part * len(X) / len(queries), in_cells, recall(sampled, exact)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 20_000])
    parser.add_argument("--columns", type=int, default=784)
    parser.add_argument("--neighbours", type=int, default=11)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--view")
    args = parser.parse_args()
    # Compiles.
    nearest_rows(np.eye(40, dtype=np.float32), 2)
    print("| n | representation | columns | exact s | cells s | recall | ratio |")
    print("|---|---|---|---|---|---|---|")
    for n_rows in args.rows:
        rng = np.random.default_rng(0)
        X = load(args, n_rows, rng)
        queries = rng.permutation(len(X))[:N_QUERIES]
        fitted = represent(RowsInMemory(), X, REPRESENTATIONS, component_rows(X))
        for name, representation in fitted.items():
            mapped = representation(X)
            exact, cells, found = compare(mapped, args.neighbours, queries)
            row = f"| {len(X)} | {name} | {mapped.shape[1]} | {exact:.2f} | {cells:.2f}"
            print(f"{row} | {found:.3f} | {exact / cells:.1f} |", flush=True)


if __name__ == "__main__":
    main()
