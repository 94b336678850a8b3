"""Seconds per round of AGF-TI beside a plain transcription, at the sizes of the paper's data.

python benchmarks/perf/rounds.py [--quick] [--rounds 6] [--plain-rounds 2] [--only NAME ...]

Both solve the same random problem in the same run on one thread, so that the ratio holds on any
machine though the seconds do not. Seconds are those of the processor, which other programs slow
down less than the clock. Answers: how often a round solves for the fused graph. Memory is the most
that arrays of a solve take at once, the problem itself not counted, also as a multiple of ``Z``.
"""

from __future__ import annotations

import argparse
import os
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

# Threads of the linear algebra are counted when it is loaded.
for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402
from transcription import transcribed  # noqa: E402

from viewmend.backend import dispatch  # noqa: E402
from viewmend.core import Problem, solve  # noqa: E402
from viewmend.core.bipartite import anchor_graphs  # noqa: E402


@dataclass(frozen=True)
class Size:
    """Samples, views, anchors and classes of a data set; ``quick``: seconds on any machine."""

    n_samples: int
    n_views: int
    n_anchors: int
    n_classes: int
    quick: bool = False


SIZES = {
    "CUB": Size(600, 2, 64, 10, quick=True),
    "UCI-Digit": Size(2000, 3, 256, 10, quick=True),
    "OutScene": Size(2688, 4, 256, 8),
    "MNIST-USPS": Size(5000, 2, 256, 10),
    "Caltech101-20": Size(2386, 6, 256, 20),
    "AwA": Size(10158, 6, 256, 50),
}


def random_problem(size: Size, missing_rate: float = 0.4, seed: int = 0) -> Problem:
    """Classes around random centres, seen through random views; anchors are random samples."""
    rng = np.random.default_rng(seed)
    y = rng.integers(size.n_classes, size=size.n_samples)
    latent = rng.normal(size=(size.n_classes, 16))[y] + rng.normal(size=(size.n_samples, 16))
    observed = rng.random((size.n_samples, size.n_views)) > missing_rate
    observed[~observed.any(axis=1), 0] = True
    views = [_random_view(latent, rng) for _ in range(size.n_views)]
    anchors = [
        view[rng.choice(np.flatnonzero(observed[:, v]), size.n_anchors, replace=False)]
        for v, view in enumerate(views)
    ]
    Z = anchor_graphs(views, observed, anchors, k=7)
    Y = np.eye(size.n_classes)[y] * (rng.random(size.n_samples) < 0.05)[:, None]
    return Problem(Z, Y, observed, lam=float(size.n_views**2), beta=4.0, rho=100.0)


def _random_view(latent: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    view = latent @ rng.normal(size=(latent.shape[1], 20))
    view += rng.normal(size=view.shape)
    return view / np.linalg.norm(view, axis=1, keepdims=True)


def seconds_per_round(run: Callable[[int], object], n_rounds: int) -> float:
    """Difference of a long and a short run, so that the start of a solve does not count."""
    times = []
    for rounds in (1, 1 + n_rounds):
        start = time.process_time()
        run(rounds)
        times.append(time.process_time() - start)
    return (times[1] - times[0]) / n_rounds


def peak_megabytes(run: Callable[[int], object]) -> float:
    tracemalloc.start()
    run(2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def answers_per_round(run: Callable[[int], object], n_rounds: int) -> float:
    """How often Algorithm 1 solves for ``P``."""
    calls = 0
    kernel = dispatch.answer_rows

    def counting(*arguments: object) -> object:
        nonlocal calls
        calls += 1
        return kernel(*arguments)

    dispatch.answer_rows = counting
    try:
        run(n_rounds)
    finally:
        dispatch.answer_rows = kernel
    return (calls - 1) / n_rounds


def row(name: str, size: Size, n_rounds: int, plain_rounds: int) -> str:
    """One line of the table."""
    problem = random_problem(size)

    def ours(rounds: int) -> object:
        return solve(problem, max_iter=rounds, tol=0.0)

    def plain(rounds: int) -> object:
        return transcribed(problem, max_iter=rounds, tol=0.0)

    ours(1)
    fast, slow = seconds_per_round(ours, n_rounds), seconds_per_round(plain, plain_rounds)
    memory = peak_megabytes(ours)
    cells = [
        name,
        f"{size.n_samples}, {size.n_views}, {size.n_anchors}, {size.n_classes}",
        f"{fast:.3f}",
        f"{slow:.3f}",
        f"{slow / fast:.1f}",
        f"{answers_per_round(ours, n_rounds):.1f}",
        f"{memory:.0f}",
        f"{memory / (problem.Z.nbytes / 1e6):.1f}",
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the small sizes alone")
    parser.add_argument("--only", nargs="*", choices=list(SIZES), help="these sizes alone")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--plain-rounds", type=int, default=2)
    args = parser.parse_args()
    print("| size of | n, V, m, c | ours s | plain s | ratio | answers | peak MB | of Z |")
    print("|---|---|---|---|---|---|---|---|")
    for name, size in SIZES.items():
        if (size.quick or not args.quick) and name in (args.only or SIZES):
            print(row(name, size, args.rounds, args.plain_rounds), flush=True)


if __name__ == "__main__":
    main()
