"""Neighbour search: recall and seconds, against comparing all rows.

python benchmarks/neighbours.py [--rows 10000 35000] [--columns 784] [--data FILE.npz --view KEY]
python benchmarks/neighbours.py --points 70000 --columns 10

All representations of a view are searched at once, and the time is that of them all. Without a
file, the view is a mixture of low-rank Gaussians. With ``--points``, class shares are searched. The
exact search is timed on a share of the rows as queries and scaled up; the recall is that of these
rows. Seconds of the processor count all threads.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from viewmend.core.graphs.exact import Neighbours, nearest_rows
from viewmend.core.graphs.nearest import nearest_points, neighbour_search, recall
from viewmend.core.mend.representations import REPRESENTATIONS, represent

N_QUERIES = 1000
Result = TypeVar("Result")


@dataclass(frozen=True)
class Seconds:
    """By the clock, and of the processor in all threads."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:.2f} | {self.cpu:.2f}"


def timed(call: Callable[[], Result]) -> tuple[Result, Seconds]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    return result, Seconds(time.perf_counter() - wall, time.process_time() - cpu)


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


def class_shares(n_rows: int, n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Square roots of class shares, most of them close to a corner."""
    scores = rng.normal(size=(n_rows, 4)) @ rng.normal(size=(4, n_classes))
    scores[np.arange(n_rows), rng.integers(n_classes, size=n_rows)] += rng.exponential(8, n_rows)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.sqrt(shares / shares.sum(axis=1, keepdims=True)).astype(np.float32)


def missed_by(found: Neighbours, X: np.ndarray, queries: np.ndarray) -> tuple[float, float]:
    """Recall of these rows, and seconds of the exact search of all rows, scaled up from them."""
    k = found.indices.shape[1]
    exact, seconds = timed(lambda: nearest_rows(X, k + 1, queries=X[queries]))
    # Rows that are their own queries come first, at distance zero, and are left out.
    others = Neighbours(exact.indices[:, 1:], exact.squared_distances[:, 1:])
    sampled = Neighbours(found.indices[queries], found.squared_distances[queries])
    return recall(sampled, others), seconds.wall * len(X) / len(queries)


def report(
    searched: Mapping[str, np.ndarray], found: Mapping[str, Neighbours], queries: np.ndarray
) -> None:
    for name, X in searched.items():
        share, exact = missed_by(found[name], X, queries)
        print(f"| {len(X)} | {name} | {X.shape[1]} | | | {share:.3f} | {exact:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 20_000])
    parser.add_argument("--points", type=int, nargs="*", default=[])
    parser.add_argument("--columns", type=int, default=784)
    parser.add_argument("--neighbours", type=int, default=11)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--view")
    args = parser.parse_args()
    # Compiles.
    warm = np.random.default_rng(1).normal(size=(6000, 8)).astype(np.float32)
    neighbour_search({"warm": warm}, args.neighbours)
    nearest_points(warm, args.neighbours)
    print("| n | representation | columns | s | processor s | recall | exact s |")
    print("|---|---|---|---|---|---|---|")
    for n_rows in args.points or args.rows:
        rng = np.random.default_rng(0)
        if args.points:
            points = class_shares(n_rows, args.columns, rng)
            searched = {"points": points}
            near, seconds = timed(lambda P=points: nearest_points(P, args.neighbours))
            found = {"points": near}
        else:
            X = load(args, n_rows, rng)
            searched = {name: each(X) for name, each in represent(X, REPRESENTATIONS).items()}
            found, seconds = timed(lambda S=searched: neighbour_search(S, args.neighbours))
        print(f"| {n_rows} | all of them | | {seconds} | | |", flush=True)
        report(searched, found, rng.permutation(n_rows)[:N_QUERIES])


if __name__ == "__main__":
    main()
