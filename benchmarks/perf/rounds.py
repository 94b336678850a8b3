"""A whole solve beside plain transcriptions of the paper, at the sizes of the paper's data.

python -m benchmarks.perf.rounds [--quick] [--only NAME ...] [--plain-rounds 3] [--out DIR]

Both sides solve the same random problem in the same run, with the same number of threads and the
same stopping rule; a ratio holds on any machine, though the seconds do not. Seconds are those of
the clock, the shortest of the repeats. "armijo" is the transcription with the rule that the paper
names for the line search, "golden" that with the golden section of the authors' released code,
"slope" that with an exact search, the fastest of them. With ``--plain-rounds`` the
transcriptions do that many rounds, the ratio is that of the same rounds on both sides, and their
seconds are ours times that ratio. It is above that of whole runs: in the first rounds a
transcription takes more steps of Algorithm 1, and imputed rows have few entries.

Memory is the most that arrays of a solve take at once, the problem itself not counted.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from viewmend.core import Problem, Result, solve
from viewmend.core.agfti import admm

from .cases import CASES, PAPER, Case, paper_seconds, random_problem
from .measuring import best_seconds, limited, peak_bytes, placement, resident_growth, synchronize
from .profiling import Target, profiled
from .records import common_parser, line, titles, write
from .transcription import LINE_SEARCHES, transcribed

__all__ = ["STEPS", "main", "our_run", "plain_run", "ratio", "scaled_seconds"]

DTYPES = ("float64", "float32")

# Functions of Algorithm 2 by step.
STEPS: dict[str, list[Target]] = {
    "start": [(admm, "initialise")],
    "impute": [(admm.RoundsInMemory, "impute")],
    "fuse": [(admm.RoundsInMemory, "fuse")],
    "propagate": [(admm.RoundsInMemory, "propagate")],
    "shrink": [(admm.RoundsInMemory, "shrink")],
    "align": [(admm.RoundsInMemory, "align")],
    "multiplier": [(admm.RoundsInMemory, "ascend")],
    "report": [(admm.RoundsInMemory, "sums")]
    + [(admm, name) for name in ("sample_sums", "anchor_loss", "largest_change", "_told")],
}

# Rounds after which all arrays of a solve have been allocated.
FEW = 3


def our_run(problem: Problem, args: argparse.Namespace) -> dict[str, Any]:
    """Seconds, rounds, memory and the shares of the steps of `viewmend.core.solve`.

    Parameters
    ----------
    problem : Problem
        Of NumPy arrays.
    args : Namespace
        With ``rounds``, ``plain_rounds``, ``tol``, ``repeats`` and ``device``.
    """
    placed = problem.converted(placement(args.device))
    results: list[Result] = []

    def run() -> None:
        results[:] = [solve(placed, max_iter=args.rounds, tol=args.tol)]

    few = partial(solve, placed, max_iter=min(FEW, args.rounds), tol=args.tol)
    few()
    seconds = first_seconds = best_seconds(run, args.repeats, args.device)
    if first_rounds(args) < args.rounds:
        first = partial(solve, placed, max_iter=first_rounds(args), tol=args.tol)
        first_seconds = best_seconds(first, args.repeats, args.device)
    peak = peak_bytes(few, args.device)
    return {
        "seconds": seconds,
        "first_seconds": first_seconds,
        "n_iter": results[0].n_iter,
        "status": results[0].status,
        "inner_steps": float(np.mean([len(round_.inner) for round_ in results[0].history])),
        "peak_bytes": peak,
        "peak_multiple": peak / problem.Z.nbytes,
        "resident_bytes": None if args.device == "cuda" else resident_growth(few),
        "shares": step_shares(run, args.device),
    }


def step_shares(run: Any, device: str) -> dict[str, float]:
    """Share of every step in one run."""
    with profiled(STEPS, partial(synchronize, device)) as profile:
        start = time.perf_counter()
        run()
        synchronize(device)
        total = time.perf_counter() - start
    return profile.shares(total)


def first_rounds(args: argparse.Namespace) -> int:
    """Rounds that the transcriptions do."""
    return int(min(args.rounds, args.plain_rounds or args.rounds))


def plain_run(
    problem: Problem, search: str, ours: Mapping[str, Any], args: argparse.Namespace
) -> dict[str, Any]:
    """Seconds of a transcription, scaled to a whole solve where it did not run to its end.

    Parameters
    ----------
    problem : Problem
        Of NumPy arrays.
    search : str
        Of `LINE_SEARCHES`.
    ours : dict
        Answer of `our_run` for the same problem.
    args : Namespace
        With ``rounds``, ``plain_rounds``, ``tol``, ``repeats`` and ``plain_repeats``.
    """
    done: list[int] = []

    def run() -> None:
        found = transcribed(problem, first_rounds(args), args.tol, LINE_SEARCHES[search])
        done[:] = [found["n_iter"]]

    measured = best_seconds(run, args.plain_repeats or args.repeats)
    scaled = done[0] == first_rounds(args) < ours["n_iter"]
    return {
        "search": search,
        "dtype": str(problem.Z.dtype),
        "seconds": scaled_seconds(measured, ours) if scaled else measured,
        "scaled": scaled,
        "measured_rounds": done[0],
        "measured_seconds": measured,
    }


def scaled_seconds(measured: float, ours: Mapping[str, Any]) -> float:
    """Seconds of a whole solve, if it is to the measured rounds as ours is to the same ones."""
    return float(measured * ours["seconds"] / ours["first_seconds"])


def ratio(
    row: Mapping[str, Any], dtype: str, search: str, plain_dtype: str = "float64"
) -> float | None:
    """How many times longer a transcription took than ours; None if it was not run."""
    if dtype not in row["ours"]:
        return None
    for plain in row["plain"]:
        if (plain["search"], plain["dtype"]) == (search, plain_dtype):
            return float(plain["seconds"] / row["ours"][dtype]["seconds"])
    return None


def case_row(name: str, case: Case, args: argparse.Namespace) -> dict[str, Any]:
    """All runs of one size."""
    ours: dict[str, Any] = {}
    plain: list[dict[str, Any]] = []
    for dtype in args.dtypes:
        problem = random_problem(case, dtype)
        ours[dtype] = our_run(problem, args)
        if dtype in args.plain_dtypes:
            plain += [plain_run(problem, search, ours[dtype], args) for search in args.plain]
    return {
        "case": name,
        "n_samples": case.n_samples,
        "n_views": case.n_views,
        "n_anchors": case.n_anchors,
        "n_classes": case.n_classes,
        "ours": ours,
        "plain": plain,
        "paper_seconds": paper_seconds(args.paper).get(case.paper),
    }


HEAD = ["size of", "n, V, m, c", "rounds", "float64 s", "float32 s", *LINE_SEARCHES]
HEAD += [*(f"{search}, 32" for search in LINE_SEARCHES), "peak / Z"]


def cells(row: Mapping[str, Any]) -> Iterator[str]:
    """The row as text; the last ratios are of float32 over the transcriptions in float64."""
    ours = row["ours"]
    first = next(iter(ours.values()))
    yield row["case"]
    yield ", ".join(str(row[key]) for key in ("n_samples", "n_views", "n_anchors", "n_classes"))
    yield str(first["n_iter"])
    for dtype in DTYPES:
        yield f"{ours[dtype]['seconds']:.3f}" if dtype in ours else ""
    for dtype in DTYPES:
        for search in LINE_SEARCHES:
            found = ratio(row, dtype, search)
            yield "" if found is None else f"{found:.1f}"
    yield f"{first['peak_multiple']:.1f}"


def parser() -> argparse.ArgumentParser:
    """The options of this script."""
    found = common_parser(__doc__ or "")
    found.add_argument("--quick", action="store_true", help="the small sizes alone")
    found.add_argument("--only", nargs="*", choices=list(CASES), help="these sizes alone")
    found.add_argument("--rounds", type=int, default=30)
    found.add_argument("--tol", type=float, default=1e-4, help="stopping rule of both sides")
    found.add_argument("--dtypes", nargs="*", choices=DTYPES, default=list(DTYPES))
    found.add_argument("--plain", nargs="*", choices=list(LINE_SEARCHES), default=[*LINE_SEARCHES])
    found.add_argument("--plain-dtypes", nargs="*", choices=DTYPES, default=list(DTYPES))
    found.add_argument("--plain-rounds", type=int, default=0, help="then scaled; 0: all")
    found.add_argument("--plain-repeats", type=int, default=0, help="0: as many as ours")
    found.add_argument("--paper", type=type(PAPER), default=PAPER, help="folder with its tables")
    return found


def main(argv: Sequence[str] | None = None) -> None:
    args = parser().parse_args(argv)
    print(titles(HEAD))
    rows = []
    with limited(args.threads, args.device):
        for name, case in CASES.items():
            if (case.quick or not args.quick) and name in (args.only or CASES):
                rows.append(case_row(name, case, args))
                print(line(cells(rows[-1])), flush=True)
        write("rounds", args, rows)


if __name__ == "__main__":
    main(sys.argv[1:])
