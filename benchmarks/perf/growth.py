"""How seconds and memory of a solve grow with the number of samples.

python -m benchmarks.perf.growth [--sizes 5000 ... 200000] [--device cuda] [--out DIR]

A fixed number of rounds at 256 anchors and two views; memory is the most that arrays of a solve
take at once beyond the problem itself, in multiples of its graphs. Sizes that may not fit the
budget are named and skipped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from viewmend.core import solve

from .cases import Case, random_problem
from .measuring import best_seconds, limited, peak_bytes, placement, resident_growth
from .records import common_parser, line, titles, write

__all__ = ["growth_ratio", "main", "size_row"]

SIZES = (5_000, 8_000, 10_000, 20_000, 40_000, 80_000, 126_054, 200_000)

# Multiples of the graphs that must fit: the problem, a solve, and room to work.
NEEDED = 9

# Rounds after which all arrays of a solve have been allocated.
FEW = 2


def size_row(case: Case, args: argparse.Namespace) -> dict[str, Any]:
    """Seconds and memory of a solve.

    Parameters
    ----------
    case : Case
    args : Namespace
        With ``rounds``, ``dtype``, ``device`` and ``repeats``.
    """
    problem = random_problem(case, args.dtype).converted(placement(args.device))
    run = partial(solve, problem, max_iter=args.rounds, tol=0.0)
    few = partial(solve, problem, max_iter=FEW, tol=0.0)
    few()
    seconds = best_seconds(run, args.repeats, args.device)
    unit = case.n_entries * np.dtype(args.dtype).itemsize
    resident = None if args.device == "cuda" else resident_growth(few)
    peak = peak_bytes(few, args.device)
    return {
        "seconds": seconds,
        "seconds_per_round": seconds / args.rounds,
        "peak_bytes": peak,
        "peak_multiple": peak / unit,
        "resident_multiple": None if resident is None else resident / unit,
    }


def grid_row(n_samples: int, args: argparse.Namespace) -> dict[str, Any]:
    """One size, or what it would need where that is too much."""
    case = Case(n_samples, args.views, args.anchors, args.classes)
    needed = NEEDED * case.n_entries * np.dtype(args.dtype).itemsize / 1e9
    row = {"n_samples": n_samples, "needed_gb": needed, "skipped": needed > args.budget_gb}
    return row if row["skipped"] else row | size_row(case, args)


def growth_ratio(
    rows: Sequence[Mapping[str, Any]], low: int = 8_000, high: int = 80_000
) -> float | None:
    """Seconds at ``high`` samples over those at ``low``; None where one was not measured."""
    found = {row["n_samples"]: row["seconds"] for row in rows if not row["skipped"]}
    return found[high] / found[low] if {low, high} <= set(found) else None


def parser() -> argparse.ArgumentParser:
    """The options of this script."""
    found = common_parser(__doc__ or "")
    found.add_argument("--sizes", nargs="*", type=int, default=list(SIZES))
    found.add_argument("--views", type=int, default=2)
    found.add_argument("--anchors", type=int, default=256)
    found.add_argument("--classes", type=int, default=10)
    found.add_argument("--rounds", type=int, default=5)
    found.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    found.add_argument("--budget-gb", type=float, default=16.0, help="memory that may be used")
    return found


def main(argv: Sequence[str] | None = None) -> None:
    args = parser().parse_args(argv)
    rows: list[dict[str, Any]] = []
    print(titles(HEAD))
    with limited(args.threads, args.device):
        for n_samples in args.sizes:
            rows.append(grid_row(n_samples, args))
            print(line(cells(rows[-1])), flush=True)
        write("growth", args, rows)
    ratio = growth_ratio(rows)
    if ratio is not None:
        print(f"\nt(80k) / t(8k) = {ratio:.2f}")


HEAD = ("n", "seconds a round", "us a sample and round", "peak / Z", "resident / Z")


def cells(row: Mapping[str, Any]) -> Iterator[str]:
    """The row as text."""
    yield str(row["n_samples"])
    if row["skipped"]:
        yield from (f"skipped, needs {row['needed_gb']:.1f} GB", "", "", "")
        return
    yield f"{row['seconds_per_round']:.4g}"
    yield f"{1e6 * row['seconds_per_round'] / row['n_samples']:.2f}"
    for key in ("peak_multiple", "resident_multiple"):
        yield "" if row[key] is None else f"{row[key]:.1f}"


if __name__ == "__main__":
    main(sys.argv[1:])
