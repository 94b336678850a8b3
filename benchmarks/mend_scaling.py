"""Seconds and memory of MendClassifier as the number of samples grows.

    python benchmarks/mend_scaling.py --data mnist70k_3view.npz --sizes 5000,10000,20000,40000,70000

Half of the views missing, 1 % labels, shuffled rows; every size in a process of its own, because
peak memory never falls. Prints a Markdown table; the ratio is that of seconds per sample to the
first row's.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from viewmend import MendClassifier
from viewmend.datasets import hide, load_npz, make_multiview_blobs


def fit_once(path: Path, n_samples: int, n_views: int) -> str:
    """One row of the table."""
    complete = load_npz(path)
    rows = np.sort(np.random.default_rng(0).permutation(len(complete.y))[:n_samples])
    views = [np.asarray(view[rows]) for view in complete.views[:n_views]]
    task = hide(views, complete.y[rows], missing_rate=0.5, label_rate=0.01, random_state=0)
    warm_up()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    model = MendClassifier().fit(task.data, task.y)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    accuracy = np.mean((model.transduction_ == task.y_true)[task.unlabelled])
    return f"{n_samples} {seconds:.2f} {before / 1024:.0f} {peak / 1024:.0f} {100 * accuracy:.1f}"


def warm_up() -> None:
    """Compile the kernels on a small problem, so that no size pays for it."""
    blobs = make_multiview_blobs(random_state=0)
    task = hide(blobs.views, blobs.y, missing_rate=0.3, label_rate=0.1, random_state=0)
    MendClassifier().fit(task.data, task.y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sizes", default="5000,10000,20000,40000,70000")
    parser.add_argument("--views", type=int, default=3, help="the first so many")
    parser.add_argument("--one", type=int, help="fit this size here, and print its figures")
    args = parser.parse_args()
    if args.one:
        print(fit_once(args.data, args.one, args.views))
        return
    print("| samples | s | ratio per sample | MB before fit | MB peak | accuracy, % |")
    print("|---|---|---|---|---|---|")
    base = None
    for size in args.sizes.split(","):
        command = [sys.executable, __file__, "--data", str(args.data), "--views", str(args.views)]
        done = subprocess.run([*command, "--one", size], capture_output=True, text=True, check=True)
        n, seconds, before, peak, accuracy = done.stdout.split()
        per_sample = float(seconds) / int(n)
        base = base or per_sample
        print(f"| {n} | {seconds} | {per_sample / base:.2f} | {before} | {peak} | {accuracy} |")


if __name__ == "__main__":
    main()
