"""Mend over Dask: out of core, with a worker that is killed, and on graph samples of many sizes.

    python benchmarks/mend_out_of_core.py growth --sizes 250000 1000000 2000000
    python benchmarks/mend_out_of_core.py killed --samples 2000000
    python benchmarks/mend_out_of_core.py samples --data mnist70k_3view.npz --sizes 5000 20000

Prints Markdown tables. Clusters are local, of two processes with ``--threads`` threads each.
``--out DIR`` also writes records as JSON, that of ``growth`` for the speed page, see
`perf.mend_page`. The two fits of ``killed`` may be run one by one, ``--steps plain`` first, where
``--classes FILE`` takes the classes from the one to the other; those of ``growth`` do as well.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from out_of_core import (
    MEBIBYTE,
    N_CLASSES,
    Blobs,
    Passes,
    Peak,
    cluster,
    few_labels,
    written_views,
)
from perf.records import Record, line, machine, save, titles

from distributed import Client
from viewmend import MendClassifier
from viewmend.datasets import hide, load_npz
from viewmend.distributed import open_views

BLOBS = Blobs(n_features=64, noise=6.0)


class KeptFiles:
    """A callback that measures the files of the workers once all features are made."""

    def __init__(self, client: Client) -> None:
        self.client, self.n_bytes = client, 0

    def __call__(self, record: Any, _stage: Any) -> None:
        if record.iteration == 1:
            self.n_bytes = sum(self.client.run(_bytes_of_files).values())


def _bytes_of_files(dask_worker: Any) -> int:
    folders = Path(dask_worker.local_directory).glob("viewmend-*")
    return sum(path.stat().st_size for folder in folders for path in folder.iterdir())


class Killer:
    """Kills a worker, without a word, half way through a pass of the last round."""

    def __init__(self, client: Client, n_rounds: int) -> None:
        self.client, self.n_stages, self.killed = client, 0, False
        # Two stages come before the rounds.
        self.n_before = n_rounds + 1

    def __call__(self, record: Any, _stage: Any) -> None:
        self.n_stages = record.iteration

    def on_blocks(self, _stage: str, done: int, total: int) -> None:
        if self.n_stages >= self.n_before and done >= total // 2 and not self.killed:
            self.killed = True
            os.kill(next(iter(self.client.run(os.getpid).values())), signal.SIGKILL)


def model_for(args: argparse.Namespace) -> MendClassifier:
    return MendClassifier(
        graph_samples=args.graph_samples, n_rounds=args.rounds, dtype="float32", n_jobs=args.jobs
    )


def fit_measured(
    client: Client, paths: dict[str, Path], y: np.ndarray, args: argparse.Namespace
) -> dict[str, Any]:
    """Figures of one fit over Zarr files."""
    labels, passes, model, files = few_labels(y), Passes(), model_for(args), KeptFiles(client)
    workers = set(client.run(os.getpid).values())
    begin = time.perf_counter()
    with Peak(list(workers)) as peak, Peak([os.getpid()]) as of_client:
        model.set_callbacks(passes, files).fit(open_views(paths), labels)
    seconds = time.perf_counter() - begin
    spilled = client.run(lambda dask_worker: dict(dask_worker.data.cumulative_metrics))
    moved = client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
    return {
        "seconds": seconds,
        "cpu": sum(client.run(lambda: sum(os.times()[:2])).values()),
        "together": peak.together / MEBIBYTE,
        "single": peak.single / MEBIBYTE,
        "client": of_client.single / MEBIBYTE,
        "restarts": len(workers - set(client.run(os.getpid).values())),
        "moved": sum(moved.values()) / MEBIBYTE,
        "kept": files.n_bytes / MEBIBYTE,
        "spilled": sum(of.get(("disk-write", "bytes"), 0) for of in spilled.values()) / MEBIBYTE,
        "accuracy": float((model.transduction_ == y)[labels < 0].mean()),
        "classes": model.transduction_,
        "passes": passes,
    }


TITLES = (
    ("seconds", "s"),
    ("cpu", "CPU s"),
    ("together", "peak MiB, both"),
    ("single", "peak MiB, one"),
    ("client", "peak MiB, client"),
    ("restarts", "workers restarted"),
    ("moved", "MiB sent"),
    ("kept", "MiB in files"),
    ("spilled", "MiB spilled"),
)


def growth(args: argparse.Namespace) -> None:
    """Time and memory as the number of samples grows."""
    print(titles(["samples", "blocks", *(title for _, title in TITLES)]), flush=True)
    facts, rows = machine("dask"), []
    for n_samples in args.sizes:
        with written_views(n_samples, args.chunk, BLOBS) as (paths, y), started(args) as client:
            found = fit_measured(client, paths, y, args)
        figures = (f"{found[name]:.0f}" for name, _ in TITLES)
        print(line([n_samples, -(-n_samples // args.chunk), *figures]), flush=True)
        tell_passes(found)
        np.save(args.classes, found["classes"])
        rows.append(recorded_row(n_samples, found))
        save(Record("mend", facts, recorded_settings(args), rows), args)


def started(args: argparse.Namespace) -> Any:
    """The cluster of a run."""
    return cluster(2, args.memory, args.threads)


def recorded_row(n_samples: int, found: dict[str, Any]) -> dict[str, Any]:
    """The figures of a fit as `perf.mend` writes them."""
    return {
        "family": "samples",
        "source": "generated",
        "n_samples": n_samples,
        "columns": [BLOBS.n_features] * 2,
        "n_classes": N_CLASSES,
        "dtype": "float32",
        "fit": {
            "seconds": found["seconds"],
            "stages": {},
            "passes": dict(found["passes"].seconds),
            "peak_bytes": int(found["together"] * MEBIBYTE),
            "accuracy": found["accuracy"],
        },
        "workers": {name: found[name] for name, _ in TITLES},
    }


def recorded_settings(args: argparse.Namespace) -> dict[str, Any]:
    """What decides the figures."""
    names = ("chunk", "rounds", "graph_samples", "memory", "threads", "jobs")
    return {"device": "dask", "workers": 2, **{name: getattr(args, name) for name in names}}


def tell_passes(found: dict[str, Any]) -> None:
    print(f"accuracy {found['accuracy']:.4f}", file=sys.stderr)
    for stage, seconds in found["passes"].seconds.most_common():
        count = found["passes"].counts[stage]
        print(f"{stage}: {count} passes, {seconds:.1f} s", file=sys.stderr, flush=True)


def killed(args: argparse.Namespace) -> None:
    """A fit in which a worker dies, against one in which none does."""
    row: dict[str, Any] = {"n_samples": args.samples}
    facts = machine("dask")
    with written_views(args.samples, args.chunk, BLOBS) as (paths, y):
        for step in args.steps:
            row |= KILLED_STEPS[step](paths, y, args)
            save(Record("mend-killed", facts, recorded_settings(args), [row]), args)
    print(titles(list(row)), line(row.values()), sep="\n", flush=True)


def fit_undisturbed(
    paths: dict[str, Path], y: np.ndarray, args: argparse.Namespace
) -> dict[str, Any]:
    """The fit in which no worker dies; its classes are kept in a file."""
    with started(args) as client:
        found = fit_measured(client, paths, y, args)
    tell_passes(found)
    np.save(args.classes, found["classes"])
    return {"seconds": found["seconds"], "restarts": found["restarts"]}


def fit_with_a_death(
    paths: dict[str, Path], y: np.ndarray, args: argparse.Namespace
) -> dict[str, Any]:
    """The fit in which one dies; its classes are compared with those in the file."""
    with started(args) as client:
        killer, model, begin = Killer(client, args.rounds), model_for(args), time.perf_counter()
        model.set_callbacks(killer).fit(open_views(paths), few_labels(y))
        seconds = time.perf_counter() - begin
    assert killer.killed, "no worker was killed"
    differ = int((model.transduction_ != np.load(args.classes)).sum())
    return {"seconds_with_a_killed_worker": seconds, "classes_that_differ": differ}


KILLED_STEPS = {"plain": fit_undisturbed, "killed": fit_with_a_death}


def samples(args: argparse.Namespace) -> None:
    """Accuracy on graph samples of many sizes against that of a fit with all in the graph."""
    complete = load_npz(args.data)
    print("| graph_samples | seed | s | accuracy, % | below the full fit, points |")
    print("|---|---|---|---|---|")
    for seed in args.seeds:
        task = hide(
            complete.views, complete.y, missing_rate=0.5, label_rate=0.01, random_state=seed
        )
        full = None
        for size in (None, *args.sizes):
            model, begin = MendClassifier(graph_samples=size), time.perf_counter()
            model.fit(task.data, task.y)
            seconds = time.perf_counter() - begin
            accuracy = 100 * np.mean((model.transduction_ == task.y_true)[task.unlabelled])
            full = accuracy if full is None else full
            line = f"| {size or 'all'} | {seed} | {seconds:.1f} | {accuracy:.2f} | "
            print(f"{line}{full - accuracy:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("growth", help=growth.__doc__)
    one.add_argument("--sizes", type=int, nargs="+", default=[250_000, 1_000_000, 2_000_000])
    one.set_defaults(run=growth)
    two = commands.add_parser("killed", help=killed.__doc__)
    two.add_argument("--samples", type=int, default=2_000_000)
    two.add_argument("--steps", nargs="+", choices=KILLED_STEPS, default=list(KILLED_STEPS))
    two.set_defaults(run=killed)
    classes = Path(tempfile.gettempdir()) / "viewmend-classes.npy"
    for command in (one, two):
        command.add_argument("--classes", type=Path, default=classes, help="file of those found")
        command.add_argument("--chunk", type=int, default=25_000, help="rows of a block")
        command.add_argument("--rounds", type=int, default=8)
        command.add_argument("--graph-samples", type=int, default=None)
        command.add_argument("--memory", type=float, default=6.0, help="GiB of both workers")
        command.add_argument("--threads", type=int, default=1, help="of each worker")
        command.add_argument("--jobs", type=int, default=1, help="threads of the client")
        command.add_argument("--out", type=Path, help="folder for a JSON file of the figures")
        command.add_argument("--name", help="name of that file, if not that of the command")
    three = commands.add_parser("samples", help=samples.__doc__)
    three.add_argument("--data", type=Path, required=True)
    three.add_argument("--sizes", type=int, nargs="+", default=[5_000, 10_000, 20_000, 40_000])
    three.add_argument("--seeds", type=int, nargs="+", default=[0])
    three.set_defaults(run=samples)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
