"""How much faster the specialised kernels are: ratios measured in one run on one machine.

python benchmarks/kernels.py [--samples 5000] [--anchors 256] [--views 3]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from viewmend.backend import agnostic, dispatch
from viewmend.backend.namespace import array_namespace
from viewmend.core.tensor_nuclear import prox_tnn

REPEATS = 5


def best_seconds(call: Callable[[], object]) -> float:
    """Shortest of several runs, after one that compiles and warms up."""
    call()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def prox_by_svd(Y: np.ndarray, tau: float) -> np.ndarray:
    """The tensor step of the textbook: full transform, one SVD per frequency."""
    slices = np.fft.fft(Y, axis=1).transpose(1, 2, 0)
    U, sigma, Vh = np.linalg.svd(slices, full_matrices=False)
    shrunk = (U * np.maximum(sigma - tau, 0)[:, None]) @ Vh
    return np.fft.ifft(shrunk.transpose(2, 0, 1), axis=1).real


def cases(n: int, m: int, n_views: int) -> dict[str, tuple[Callable, Callable]]:
    rng = np.random.default_rng(0)
    B, previous = rng.normal(size=(n, m)) / 10, np.full((n, m), 1 / m)
    A = rng.normal(size=(m, m))
    spd = A @ A.T + m * np.eye(m)
    Y = rng.random((n_views, n, m))
    xp = array_namespace(B)
    pairs = {
        "project_simplex_rows": (B,),
        "project_positive_rows": (B, previous),
        "nearest_anchor_weights": (np.abs(B), 7),
        "inner": (B, previous),
        "solve_spd": (spd, A[:, :10]),
    }
    found = {
        name: (
            lambda name=name, a=a: getattr(agnostic, name)(*a, xp=xp),
            lambda name=name, a=a: getattr(dispatch, name)(*a),
        )
        for name, a in pairs.items()
    }
    found["prox_tnn, against full FFT + SVD"] = (
        lambda: prox_by_svd(Y, 1.0),
        lambda: prox_tnn(Y, 1.0),
    )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=5000)
    parser.add_argument("--anchors", type=int, default=256)
    parser.add_argument("--views", type=int, default=3)
    args = parser.parse_args()
    print(f"n = {args.samples}, m = {args.anchors}, V = {args.views}, float64, best of {REPEATS}")
    print("| kernel | plain ms | ours ms | ratio |\n|---|---|---|---|")
    for name, (plain, ours) in cases(args.samples, args.anchors, args.views).items():
        before, after = best_seconds(plain), best_seconds(ours)
        print(f"| {name} | {1e3 * before:.1f} | {1e3 * after:.1f} | {before / after:.1f} |")


if __name__ == "__main__":
    main()
