"""AGF-TI over Dask: equal to a fit in memory, out of core, and what it costs.

    python benchmarks/out_of_core.py equality
    python benchmarks/out_of_core.py growth --sizes 250000 500000 1000000 2000000
    python benchmarks/out_of_core.py overhead --samples 100000

Prints Markdown tables. Clusters are local, of processes with one thread each.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import psutil
from dask import delayed
from sklearn.exceptions import ConvergenceWarning

from distributed import Client, LocalCluster
from viewmend import AGFTIClassifier
from viewmend.datasets import hide, load_uci_digits, make_multiview_blobs
from viewmend.distributed import open_views

MEBIBYTE = 2**20
COMPARED = ("label_distributions_", "view_weights_", "fused_graph_", "view_graphs_")
N_CLASSES = 10


@dataclass(frozen=True)
class Blobs:
    """Generated views: samples around random centres, one per class."""

    n_features: int
    noise: float


BLOBS = Blobs(n_features=32, noise=4.0)

# Dask tells workers to give memory back at every turn, and half of their time then goes into
# asking for it again. Arrays of less than 16 MiB stay with the process; larger ones, the blocks,
# still go back at once, so that Dask sees what is in use.
ENVIRONMENT = "distributed.nanny.pre-spawn-environ"
KEEP_SMALL = {
    f"{ENVIRONMENT}.MALLOC_MMAP_THRESHOLD_": 2**24,
    f"{ENVIRONMENT}.MALLOC_TRIM_THRESHOLD_": 2**26,
}


@contextmanager
def cluster(n_workers: int, memory: float, n_threads: int = 1) -> Iterator[Client]:
    """Processes of some threads that share ``memory`` GiB, and spill to a folder of their own."""
    folder = tempfile.mkdtemp(prefix="viewmend-")
    sizes = {"n_workers": n_workers, "threads_per_worker": n_threads}
    limit = int(memory * 2**30 / n_workers)
    try:
        with (
            dask.config.set(KEEP_SMALL),
            LocalCluster(
                **sizes, memory_limit=limit, dashboard_address=":0", local_directory=folder
            ) as local,
            Client(local) as client,
        ):
            yield client
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Peak:
    """Largest resident memory of processes, together and of one, looked at ten times a second."""

    def __init__(self, pids: list[int]) -> None:
        self.processes = [psutil.Process(pid) for pid in pids]
        self.together = self.single = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            sizes = [process.memory_info().rss for process in self.processes]
            self.together = max(self.together, sum(sizes))
            self.single = max(self.single, *sizes)


class Passes:
    """A callback that counts and times the passes over the blocks."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()
        self._last = time.perf_counter()

    def __call__(self, _round: Any, _state: Any) -> None:
        return None

    def on_blocks(self, stage: str, done: int, total: int) -> None:
        if done == total:
            now = time.perf_counter()
            self.counts[stage] += 1
            self.seconds[stage] += now - self._last
            self._last = now


def view_rows(v: int, classes: np.ndarray, start: int, blobs: Blobs) -> np.ndarray:
    """Rows of one view of the blobs, three in ten of them missing but never from both views."""
    shape = N_CLASSES, blobs.n_features
    centres = np.random.default_rng(v).normal(scale=3.0, size=shape)
    rng = np.random.default_rng([v, start])
    X = centres[classes] + rng.normal(scale=blobs.noise, size=(len(classes), blobs.n_features))
    missing = np.random.default_rng([9, start]).random((len(classes), 2)) < 0.3
    missing[:, 0] &= ~missing[:, 1]
    X[missing[:, v]] = np.nan
    return X.astype(np.float32)


@contextmanager
def written_views(
    n_samples: int, chunk: int, blobs: Blobs
) -> Iterator[tuple[dict[str, Path], np.ndarray]]:
    """Two views in Zarr files, and the classes of their rows."""
    folder = Path(tempfile.mkdtemp(prefix="viewmend-views-"))
    y = np.random.default_rng(0).integers(N_CLASSES, size=n_samples, dtype=np.int8)
    paths = {name: folder / f"{name}.zarr" for name in ("first", "second")}
    try:
        for v, path in enumerate(paths.values()):
            blocks = [
                da.from_delayed(
                    delayed(view_rows)(v, y[start : start + chunk], start, blobs),
                    (min(chunk, n_samples - start), blobs.n_features),
                    dtype=np.float32,
                )
                for start in range(0, n_samples, chunk)
            ]
            da.concatenate(blocks).to_zarr(str(path))
        yield paths, y
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def few_labels(y: np.ndarray) -> np.ndarray:
    """One label in a hundred; -1 elsewhere."""
    return np.where(np.random.default_rng(1).random(len(y)) < 0.01, y, -1)


def large_model(rounds: int) -> AGFTIClassifier:
    return AGFTIClassifier(
        n_anchors=128, dtype="float32", max_iter=rounds, tol=0.0, random_state=0, n_jobs=1
    )


def _cpu_seconds(client: Client) -> float:
    return sum(client.run(lambda: sum(psutil.Process().cpu_times()[:2])).values())


def fit_measured(client: Client, paths: dict[str, Path], y: np.ndarray, rounds: int) -> dict:
    """Figures of one fit over Zarr files."""
    labels, passes, model = few_labels(y), Passes(), large_model(rounds)
    before, begin = _cpu_seconds(client), time.perf_counter()
    with Peak(list(client.run(os.getpid).values())) as peak:
        model.set_callbacks(passes).fit(open_views(paths), labels)
    seconds = time.perf_counter() - begin
    moved = client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
    spilled = client.run(lambda dask_worker: dict(dask_worker.data.cumulative_metrics))
    found = model.transduction_ == y
    return {
        "seconds": seconds,
        "cpu": _cpu_seconds(client) - before,
        "together": peak.together / MEBIBYTE,
        "single": peak.single / MEBIBYTE,
        "moved": sum(moved.values()) / MEBIBYTE,
        "spilled": sum(of.get(("disk-write", "bytes"), 0) for of in spilled.values()) / MEBIBYTE,
        "passes": passes,
        "accuracy": found[labels < 0].mean(),
    }


def growth(args: argparse.Namespace) -> None:
    """Time and memory as the number of samples grows."""
    print(
        "| samples | blocks | s | s per million and round | CPU s | peak MiB, all workers | "
        "peak MiB, one | MiB sent | MiB spilled | accuracy, % |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for n_samples in args.sizes:
        with (
            written_views(n_samples, args.chunk, BLOBS) as (paths, y),
            cluster(args.workers, args.memory) as client,
        ):
            found = fit_measured(client, paths, y, args.rounds)
        per_round = found["seconds"] / n_samples * 1e6 / args.rounds
        print(
            f"| {n_samples} | {-(-n_samples // args.chunk)} | {found['seconds']:.0f} | "
            f"{per_round:.1f} | {found['cpu']:.0f} | {found['together']:.0f} | "
            f"{found['single']:.0f} | {found['moved']:.0f} | {found['spilled']:.0f} | "
            f"{100 * found['accuracy']:.1f} |",
            flush=True,
        )
        for stage, count in found["passes"].counts.items():
            seconds = found["passes"].seconds[stage]
            print(f"{stage}: {count} passes, {seconds:.1f} s", file=sys.stderr, flush=True)


def overhead(args: argparse.Namespace) -> None:
    """A fit over Dask against one in memory, at a size that fits."""
    with written_views(args.samples, args.chunk, BLOBS) as (paths, y):
        views = [view.compute() for view in open_views(paths).views]
        model, begin, cpu = large_model(args.rounds), time.perf_counter(), time.process_time()
        model.fit(views, few_labels(y))
        in_memory = time.perf_counter() - begin, time.process_time() - cpu
        print("| | s | CPU s | ratio of CPU s |\n|---|---|---|---|")
        print(f"| in memory, 1 thread | {in_memory[0]:.1f} | {in_memory[1]:.1f} | 1.00 |")
        for n_workers in args.workers:
            with cluster(n_workers, args.memory) as client:
                cpu = time.process_time()
                found = fit_measured(client, paths, y, args.rounds)
                total = found["cpu"] + time.process_time() - cpu
            print(
                f"| {n_workers} workers, chunks of {args.chunk} | {found['seconds']:.1f} | "
                f"{total:.1f} | {total / in_memory[1]:.2f} |",
                flush=True,
            )


def equality(args: argparse.Namespace) -> None:
    """Largest difference of any fitted number from a fit in memory."""
    digits = load_uci_digits()
    blobs = make_multiview_blobs(20_000, n_features=16, noise=BLOBS.noise, random_state=0)
    tasks = {
        "UCI-Digit": (digits, 0.05, 64),
        "20 000 blobs": (blobs, 0.01, 32),
    }
    print("| data | imputation | workers | rows per chunk | largest difference |")
    print("|---|---|---|---|---|")
    for name, (data, label_rate, n_anchors) in tasks.items():
        task = hide(data.views, data.y, missing_rate=0.5, label_rate=label_rate, random_state=0)
        for imputation in ("graph", "fourier"):
            settings = {"imputation": imputation, "n_anchors": n_anchors, "max_iter": args.rounds}
            model = AGFTIClassifier(random_state=0, **settings).fit(task.data, task.y)
            for n_workers in args.workers:
                with cluster(n_workers, args.memory):
                    for parts in args.parts:
                        rows = -(-len(task.y) // parts)
                        views = [da.from_array(v, chunks=(rows, -1)) for v in task.data.views]
                        lazy = AGFTIClassifier(random_state=0, **settings).fit(views, task.y)
                        gap = max(
                            np.abs(np.asarray(getattr(lazy, of)) - getattr(model, of)).max()
                            for of in COMPARED
                        )
                        line = f"| {name} | {imputation} | {n_workers} | {rows} | {gap:.1e} |"
                        print(line, flush=True)
                        del lazy


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--memory", type=float, default=6.0, help="GiB of all workers together")
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("equality", help=equality.__doc__)
    one.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    one.add_argument("--parts", type=int, nargs="+", default=[3, 5, 8])
    one.add_argument("--rounds", type=int, default=8)
    one.set_defaults(run=equality)
    two = commands.add_parser("growth", help=growth.__doc__)
    sizes = [250_000, 500_000, 1_000_000, 2_000_000]
    two.add_argument("--sizes", type=int, nargs="+", default=sizes)
    two.add_argument("--workers", type=int, default=2)
    two.set_defaults(run=growth)
    three = commands.add_parser("overhead", help=overhead.__doc__)
    three.add_argument("--samples", type=int, default=100_000)
    three.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    three.set_defaults(run=overhead)
    for command in (two, three):
        command.add_argument("--chunk", type=int, default=25_000, help="rows of a block")
        command.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    # A few rounds are what is measured.
    warnings.simplefilter("ignore", ConvergenceWarning)
    args.run(args)


if __name__ == "__main__":
    main()
