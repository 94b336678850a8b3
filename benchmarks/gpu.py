"""How long a round of AGF-TI takes on a GPU through PyTorch, and whether it says the same.

python benchmarks/gpu.py --device cuda [--cpu] [--rounds 6]

Random graphs of the sizes of real data sets; a round is the mean of all but the first, which warms
up. The labels of the smallest problem, and with ``--cpu`` of all, are compared with NumPy's, and
the script fails where they differ by more than 1e-6 in float64.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, replace

import numpy as np
import torch

from viewmend.backend.namespace import to_numpy
from viewmend.core import Problem, Result, solve

# Samples, views, anchors, classes.
SIZES = [(2000, 3, 256, 10), (5000, 2, 256, 10), (10158, 6, 256, 50), (70000, 3, 256, 10)]
TRANSFORMS = ("waves", "fourier")
AGREEMENT = 1e-6
NEIGHBOURS = 7
MISSING_RATE = 0.3
LABEL_RATE = 0.05


def random_problem(size: tuple[int, int, int, int], transform: str) -> Problem:
    """Graphs with a few classes in them, rows of a few neighbours, missing rows uniform."""
    n, n_views, m, n_classes = size
    rng = np.random.default_rng(0)
    classes = rng.integers(n_classes, size=n)
    observed = rng.random((n, n_views)) > MISSING_RATE
    observed[np.arange(n), rng.integers(n_views, size=n)] = True
    Z = np.full((n_views, n, m), 1 / m)
    for v in range(n_views):
        Z[v][observed[:, v]] = random_rows(classes, n_classes, m, rng)[observed[:, v]]
    Y = np.eye(n_classes)[classes] * (rng.random(n) < LABEL_RATE)[:, None]
    problem = Problem(Z, Y, observed, lam=float(n_views**2), beta=n_views / 2, rho=100.0)
    if transform == "fourier":
        return problem
    # Only its orthonormal columns matter for the time.
    U = np.linalg.qr(rng.standard_normal((n, m)))[0]
    return replace(problem, U=U, G=Z, eta=10.0, without=frozenset({"alignment"}))


def random_rows(classes: np.ndarray, n_classes: int, m: int, rng: np.random.Generator):
    """Rows on the simplex; most neighbours of a sample are anchors of its class."""
    anchors = (
        classes[:, None] + n_classes * rng.integers(m // n_classes, size=(len(classes), 5))
    ) % m
    others = rng.integers(m, size=(len(classes), NEIGHBOURS - 5))
    rows = np.zeros((len(classes), m))
    np.put_along_axis(rows, np.hstack([anchors, others]), rng.random((len(classes), NEIGHBOURS)), 1)
    return rows / rows.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class Timing:
    """Seconds of a round, and the labels at the end."""

    seconds: float
    F: np.ndarray


def timed(problem: Problem, rounds: int) -> Timing:
    """Mean seconds of the rounds after the first."""
    ends: list[float] = []

    def note(_round, _state) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        ends.append(time.perf_counter())

    result: Result = solve(problem, max_iter=rounds, tol=0.0, callbacks=[note])
    return Timing((ends[-1] - ends[0]) / (len(ends) - 1), to_numpy(result.F))


def placed(problem: Problem, device: str, dtype: torch.dtype) -> Problem:
    return problem.converted(
        lambda array: torch.tensor(
            array, device=device, dtype=None if array.dtype == bool else dtype
        )
    )


def row(size: tuple[int, int, int, int], transform: str, args: argparse.Namespace) -> list[str]:
    """One line of the table; fails where the labels are not NumPy's."""
    problem = random_problem(size, transform)
    double, single = (
        timed(placed(problem, args.device, dtype), args.rounds)
        for dtype in (torch.float64, torch.float32)
    )
    host = timed(problem, args.rounds) if args.cpu or size == SIZES[0] else None
    off = 0.0 if host is None else np.abs(double.F - host.F).max()
    if off > AGREEMENT:
        sys.exit(f"{size}, {transform}: labels differ from NumPy's by {off:.1e}")
    return [
        str(size),
        transform,
        "" if host is None else f"{1e3 * host.seconds:.1f}",
        f"{1e3 * double.seconds:.1f}",
        f"{1e3 * single.seconds:.1f}",
        "" if host is None else f"{host.seconds / double.seconds:.1f}",
        "" if host is None else f"{off:.0e}",
        f"{np.abs(single.F - double.F).max():.0e}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda", help="device of PyTorch")
    parser.add_argument("--cpu", action="store_true", help="time NumPy at every size")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument(
        "--sizes", type=int, default=len(SIZES), help="how many, the smallest first"
    )
    args = parser.parse_args()
    cuda = args.device.startswith("cuda")
    name = torch.cuda.get_device_name(args.device) if cuda else "CPU"
    print(f"{name}, PyTorch {torch.__version__}, a mean of {args.rounds - 1} rounds\n")
    titles = ["n, V, m, c", "transform", "NumPy ms", "float64 ms", "float32 ms", "ratio"]
    titles += ["off NumPy", "float32 off"]
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}")
    for size in SIZES[: args.sizes]:
        for transform in TRANSFORMS:
            print(f"| {' | '.join(row(size, transform, args))} |", flush=True)


if __name__ == "__main__":
    main()
