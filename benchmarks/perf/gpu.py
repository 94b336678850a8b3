"""Thirty rounds of AGF-TI on a GPU through PyTorch, and whether they say the same as NumPy.

python -m benchmarks.perf.gpu [--only NAME ...] [--transforms fourier waves] [--out DIR]

From given anchor graphs, which lie on the device already; "waves" is the tensor step along the
waves of a graph, the library's default, and "fourier" the paper's. The soft labels of the small
sizes are compared with those of NumPy, and the script fails where they differ by more than 1e-6 in
float64. ``--device torch`` runs the same without a GPU.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from viewmend.backend.namespace import to_numpy
from viewmend.core import Problem, solve

from .cases import CASES, Case, random_problem
from .measuring import limited, placement
from .records import common_parser, line, titles, write
from .rounds import DTYPES, our_run

__all__ = ["GPU_CASES", "TRANSFORMS", "main", "soft_labels"]

GPU_CASES = {
    **{name: CASES[name] for name in ("UCI-Digit", "MNIST-USPS", "AwA-256", "AwA-512")},
    "MNIST-70k": Case(70_000, 3, 256, 10),
    "YTF50": Case(126_054, 4, 1024, 50),
}
AGREEMENT = 1e-6

# Penalty from which the library leaves a good start of the missing rows.
WARM_PENALTY = 10.0


def along_waves(problem: Problem) -> Problem:
    """The tensor step along an orthonormal basis, as `viewmend.AGFTIClassifier` sets it up.

    For the time it takes, any basis is as good as that of the graph.
    """
    n_samples, n_anchors = problem.Z.shape[1:]
    noise = np.random.default_rng(0).standard_normal((n_samples, n_anchors), dtype=np.float32)
    U = np.linalg.qr(noise.astype(problem.Z.dtype))[0]
    return replace(problem, U=U, G=problem.Z, eta=WARM_PENALTY, without=frozenset({"alignment"}))


TRANSFORMS: dict[str, Callable[[Problem], Problem]] = {
    "fourier": lambda problem: problem,
    "waves": along_waves,
}


def soft_labels(problem: Problem, device: str, rounds: int) -> np.ndarray:
    """``F`` after some rounds on a device."""
    placed = problem.converted(placement(device))
    return to_numpy(solve(placed, max_iter=rounds, tol=0.0).F)


def case_row(name: str, case: Case, transform: str, args: argparse.Namespace) -> dict[str, Any]:
    """Both precisions on the device, and how far apart their labels are."""
    row: dict[str, Any] = {
        "case": name,
        "n_samples": case.n_samples,
        "n_views": case.n_views,
        "n_anchors": case.n_anchors,
        "n_classes": case.n_classes,
        "transform": transform,
        "ours": {},
    }
    labels = {}
    for dtype in DTYPES:
        problem = TRANSFORMS[transform](random_problem(case, dtype))
        row["ours"][dtype] = our_run(problem, args)
        labels[dtype] = soft_labels(problem, args.device, args.rounds)
        if dtype == "float64" and case.n_entries <= args.compare_entries:
            host = soft_labels(problem, "cpu", args.rounds)
            row["off_numpy"] = float(np.abs(labels[dtype] - host).max())
    double, single = (labels[dtype] for dtype in DTYPES)
    row["off_float64"] = float(np.abs(single - double).max())
    row["same_classes"] = float(np.mean(double.argmax(axis=1) == single.argmax(axis=1)))
    return row


HEAD = ("size of", "n, V, m, c", "transform", "float64 s", "float32 s", "peak / Z", "off NumPy")
HEAD += ("float32 off", "same classes")


def cells(row: Mapping[str, Any]) -> Iterator[str]:
    """The row as text."""
    yield row["case"]
    yield ", ".join(str(row[key]) for key in ("n_samples", "n_views", "n_anchors", "n_classes"))
    yield row["transform"]
    for dtype in DTYPES:
        yield f"{row['ours'][dtype]['seconds']:.3f}"
    yield f"{row['ours'][DTYPES[0]]['peak_multiple']:.1f}"
    yield f"{row['off_numpy']:.0e}" if "off_numpy" in row else ""
    yield f"{row['off_float64']:.0e}"
    yield f"{100 * row['same_classes']:.2f} %"


def parser() -> argparse.ArgumentParser:
    """The options of this script."""
    found = common_parser(__doc__ or "")
    found.set_defaults(device="cuda", plain_rounds=0, tol=0.0)
    found.add_argument("--only", nargs="*", choices=list(GPU_CASES), help="these sizes alone")
    found.add_argument("--rounds", type=int, default=30)
    found.add_argument("--transforms", nargs="*", choices=list(TRANSFORMS), default=[*TRANSFORMS])
    found.add_argument(
        "--compare-entries", type=int, default=3_000_000, help="largest graphs NumPy also solves"
    )
    return found


def main(argv: Sequence[str] | None = None) -> None:
    args = parser().parse_args(argv)
    rows: list[dict[str, Any]] = []
    print(titles(HEAD))
    with limited(args.threads, args.device):
        for name in args.only or GPU_CASES:
            for transform in args.transforms:
                rows.append(case_row(name, GPU_CASES[name], transform, args))
                print(line(cells(rows[-1])), flush=True)
        write("gpu", args, rows)
    wrong = [row["case"] for row in rows if row.get("off_numpy", 0.0) > AGREEMENT]
    if wrong:
        sys.exit(f"labels differ from NumPy's by more than {AGREEMENT} at {', '.join(wrong)}")


if __name__ == "__main__":
    main(sys.argv[1:])
