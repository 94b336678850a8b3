"""Seconds and memory of `viewmend.MendClassifier` by samples, views, columns and classes.

python -m benchmarks.perf.mend --data mnist70k_3view.npz [--only samples views] [--device cuda]
    [--sizes 5000 20000 70000] [--out DIR] [--name NAME]

Half of the views are missing and 1 % of the samples labelled. The family "samples" is MNIST, of
784, 144 and 64 columns; "views", "columns" and "classes" are 10 000 generated samples each. On
request there are "million" and "million-mnist": a million generated samples of three views of 64
columns, and MNIST repeated with noise. Beside every fit, in the same run: scikit-learn's
``LabelSpreading(kernel="knn")`` on the views side by side, with column means for missing rows, and
a search of the 11 nearest rows among the observed rows of each view that compares every pair (by
scikit-learn; by PyTorch on a GPU). Both are left out where they take more than ``--limit`` seconds.

Every figure comes from a process of its own, after fits that compile all kernels: peak memory never
falls. The JSON file is written anew after every case, so that an interrupted run leaves what it
has. ``--scale 0.01`` tries the script out.

The library is the one that Python finds: ``PYTHONPATH=OTHER/src`` times another revision of it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .mend_cases import FAMILIES, Case, cases_of
from .mend_timing import MEASURES
from .records import Record, common_parser, line, save, titles

__all__ = ["HEAD", "cells", "main", "parser"]

SIZES = (5_000, 20_000, 70_000)
NEW_SAMPLES = {"cpu": 5_000, "torch": 5_000, "cuda": 100_000}
# What a fit is compared with, by the name of its measure.
SIDES = ("spreading", "brute")
# Seconds that a process may take beside what it measures: data, and imports.
SETTING_UP = 120.0
THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def parser() -> argparse.ArgumentParser:
    """The options of this script."""
    found = common_parser(__doc__ or "")
    found.set_defaults(repeats=2)
    found.add_argument("--data", type=Path, help="archive of MNIST in three views")
    found.add_argument("--only", nargs="+", choices=FAMILIES, default=list(FAMILIES[:4]))
    found.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), help="of MNIST")
    found.add_argument("--scale", type=float, default=1.0, help="multiplies numbers of samples")
    found.add_argument("--sides", nargs="*", choices=SIDES, default=SIDES, help="to compare with")
    found.add_argument("--limit", type=float, default=60.0, help="seconds of what is compared")
    found.add_argument("--fit-limit", type=float, default=7200.0, help="seconds of one process")
    found.add_argument("--graph-samples", type=int, help="the parameter of the classifier")
    found.add_argument("--measure", choices=list(MEASURES), help=argparse.SUPPRESS)
    found.add_argument("--case", type=json.loads, help=argparse.SUPPRESS)
    found.add_argument("--new", type=int, help="samples to predict; 5000, or 100 000 on a GPU")
    return found


def main(argv: Sequence[str] | None = None) -> None:
    args = parser().parse_args(argv)
    if args.new is None:
        args.new = max(int(args.scale * NEW_SAMPLES[args.device]), 1)
    if args.measure:
        case = None if args.case is None else Case.of(args.case)
        print(json.dumps(MEASURES[args.measure](case, args)))
        return
    machine = apart("machine", None, args, args.fit_limit)
    if "error" in machine:
        sys.exit(machine["error"])
    rows: list[dict[str, Any]] = []
    print(titles(HEAD))
    for case in cases_of(args.only, args.sizes, args.scale):
        rows.append(case_row(case, args, rows))
        print(line(cells(rows[-1])), flush=True)
        save(Record("mend", machine, recorded(args), rows), args)


def case_row(
    case: Case, args: argparse.Namespace, before: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """A fit, and what it is compared with; ``before`` tells what cannot end in time."""
    row = {**asdict(case), "fit": apart("fit", case, args, args.fit_limit)}
    for side in args.sides:
        guess = expected(side, case, before)
        if guess is not None and guess > 2 * args.limit:
            row[side] = {"beyond": guess, "error": f"would take about {guess:.0f} s"}
        else:
            row[side] = apart(side, case, args, args.limit + SETTING_UP)
    return row


def expected(side: str, case: Case, before: Sequence[Mapping[str, Any]]) -> float | None:
    """Seconds from those of the largest smaller case, as pairs times columns; None if unknown."""
    smaller = [row for row in before if row["n_samples"] < case.n_samples]
    known = [row for row in smaller if "seconds" in row[side]]
    if not known:
        return None
    last = max(known, key=lambda row: row["n_samples"])
    grown = (case.n_samples / last["n_samples"]) ** 2 * sum(case.columns) / sum(last["columns"])
    return float(last[side]["seconds"] * grown)


def apart(
    measure: str, case: Case | None, args: argparse.Namespace, limit: float
) -> dict[str, Any]:
    """What a measure finds in a process of its own, or its ``error``; ``beyond`` if too slow."""
    package = (__spec__.parent if __spec__ else None) or "benchmarks.perf"
    command = [sys.executable, "-m", f"{package}.mend", "--measure", measure]
    if case is not None:
        command += ["--case", json.dumps(asdict(case))]
    for name in ("device", "repeats", "data", "scale", "new", "graph_samples", "threads"):
        if (value := getattr(args, name)) is not None:
            command += [f"--{name.replace('_', '-')}", str(value)]
    # Found wherever this script was started from, as the library is.
    paths = [os.environ.get("PYTHONPATH", ""), str(Path(__file__).parents[len(package.split("."))])]
    told = {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **told, **dict.fromkeys(THREADS, str(args.threads))},
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"beyond": limit, "error": f"took more than {limit:.0f} s"}
    if done.returncode:
        reasons = done.stderr.strip().splitlines() or [f"ended with code {done.returncode}"]
        return {"error": reasons[-1]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def recorded(args: argparse.Namespace) -> dict[str, Any]:
    """The options that decide what is measured."""
    names = ("threads", "repeats", "device", "scale", "limit", "graph_samples")
    return {name: getattr(args, name) for name in names}


HEAD = ("case", "samples", "columns", "classes", "s", "us a sample", "GB", "GB on the GPU")
HEAD += ("predict, s", "accuracy", "LabelSpreading, s", "brute force, s")


def cells(row: Mapping[str, Any]) -> Iterator[str]:
    """The row as text."""
    fit = row["fit"]
    yield row["family"]
    yield str(row["n_samples"])
    yield " ".join(map(str, row["columns"]))
    yield str(row["n_classes"])
    if "error" in fit:
        yield fit["error"]
        yield from [""] * 5
    else:
        yield f"{fit['seconds']:.3g}"
        yield f"{1e6 * fit['seconds'] / row['n_samples']:.0f}"
        yield f"{fit['peak_bytes'] / 1e9:.2f}"
        yield f"{fit['device_bytes'] / 1e9:.2f}" if "device_bytes" in fit else ""
        yield f"{fit['predict_seconds']:.3g} ({fit['n_new']})"
        yield f"{100 * fit['accuracy']:.1f} %"
    for side in SIDES:
        found = row.get(side, {"error": ""})
        yield f"{found['seconds']:.3g}" if "seconds" in found else found["error"]


if __name__ == "__main__":
    main(sys.argv[1:])
