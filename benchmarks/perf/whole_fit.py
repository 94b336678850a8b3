"""A whole fit of `viewmend.AGFTIClassifier` by stage: anchors and graphs included.

python -m benchmarks.perf.whole_fit [--samples 70000] [--device cuda] [--data FILE.npz] [--out DIR]

The file holds ``view_0``, ``view_1``, ... and ``y``. Where there is none, random views of 784, 144
and 64 columns stand in: seconds are about the same, accuracy says nothing. 30 % of the rows are
missing and 1 % of the samples labelled.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from viewmend import AGFTIClassifier
from viewmend.core.agfti.anchors import ANCHOR_METHODS
from viewmend.datasets import Task, hide
from viewmend.models import agfti_geometry, agfti_problem

from .cases import REPOSITORY
from .measuring import limited, peak_bytes, synchronize
from .profiling import Target, profiled
from .records import common_parser, line, titles, write

__all__ = ["STAGES", "main", "random_views", "staged_fit"]

DATA = REPOSITORY.parent / "shared" / "data" / "mnist70k_3view.npz"
COLUMNS = (784, 144, 64)
N_CLASSES = 10
MISSING_RATE = 0.3
LABEL_RATE = 0.01

# Functions by stage.
STAGES: dict[str, list[Target]] = {
    "validation": [(AGFTIClassifier, "_check_fit")],
    "order": [(agfti_geometry, "canonical_order"), (agfti_geometry, "_view_contents")],
    "anchors": [
        (agfti_geometry, "_drawn_anchors"),
        *((ANCHOR_METHODS, name) for name in ANCHOR_METHODS),
    ],
    "graphs": [(agfti_geometry, "anchor_graphs")],
    "waves": [(agfti_geometry, "graph_spectrum"), (agfti_geometry, "summed_graph")],
    "solve": [(agfti_problem, "solve")],
}


def random_views(n_samples: int, seed: int = 0) -> tuple[list[np.ndarray], np.ndarray]:
    """Views in float32 around a centre of every class, and the classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(N_CLASSES, size=n_samples)
    views = []
    for n_columns in COLUMNS:
        view = rng.standard_normal((n_samples, n_columns), dtype=np.float32)
        view += rng.normal(size=(N_CLASSES, n_columns)).astype(np.float32)[y]
        views.append(view)
    return views, y


def read_views(path: Path, n_samples: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Some rows of a file, drawn at random."""
    with np.load(path) as file:
        y = file["y"]
        rows = np.random.default_rng(0).permutation(len(y))[:n_samples]
        names = sorted(name for name in file.files if name.startswith("view_"))
        return [file[name][rows].astype(np.float32) for name in names], y[rows]


def staged_fit(task: Task, parameters: Mapping[str, Any], device: str) -> dict[str, Any]:
    """Seconds of a fit by stage; the rest is what no stage claims.

    Parameters
    ----------
    task : Task
    parameters : dict
        Of the classifier.
    device : str
        Where the clock is to wait.
    """
    model = AGFTIClassifier(**parameters)
    with (
        warnings.catch_warnings(),
        profiled(STAGES, partial(synchronize, device)) as profile,
    ):
        # That a run ends at its last round stands in the figures.
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        model.fit(task.data, task.y)
        synchronize(device)
        total = time.perf_counter() - start
    right = (model.transduction_ == task.y_true)[task.unlabelled]
    return {
        "seconds": total,
        "stages": {**profile.seconds, "rest": total - sum(profile.seconds.values())},
        "calls": profile.calls,
        "n_iter": model.n_iter_,
        "status": model.status_,
        "accuracy": float(right.mean()),
    }


def fit_row(task: Task, dtype: str, args: argparse.Namespace) -> dict[str, Any]:
    """The fastest of the repeats after a small fit that compiles, and its peak memory."""
    parameters = {
        "dtype": dtype,
        "imputation": args.imputation,
        "n_anchors": args.anchors,
        "device": {"cpu": None, "torch": "cpu"}.get(args.device, args.device),
        "random_state": 0,
    }
    staged_fit(_small_task(), parameters | {"n_anchors": 64, "max_iter": 2}, args.device)
    fits = [staged_fit(task, parameters, args.device) for _ in range(args.repeats)]
    fit = min(fits, key=lambda fit: fit["seconds"])
    if args.memory:
        again = partial(staged_fit, task, parameters, args.device)
        fit["peak_bytes"] = peak_bytes(again, args.device)
    return {"dtype": dtype, "n_samples": len(task.y), "n_views": task.data.n_views, **fit}


def _small_task() -> Task:
    views, y = random_views(2000)
    return hide(views, y, missing_rate=MISSING_RATE, label_rate=0.05, random_state=0)


def parser() -> argparse.ArgumentParser:
    """The options of this script."""
    found = common_parser(__doc__ or "")
    found.set_defaults(repeats=1)
    found.add_argument("--samples", "--n", type=int, default=70_000)
    found.add_argument("--anchors", type=int, default=256)
    found.add_argument("--imputation", choices=("graph", "fourier"), default="graph")
    found.add_argument("--dtypes", nargs="*", default=["float64", "float32"])
    found.add_argument("--memory", action="store_true", help="one more fit for peak memory")
    found.add_argument("--data", type=Path, default=DATA)
    return found


def main(argv: Sequence[str] | None = None) -> None:
    args = parser().parse_args(argv)
    real = args.data.is_file()
    views, y = read_views(args.data, args.samples) if real else random_views(args.samples)
    task = hide(views, y, missing_rate=MISSING_RATE, label_rate=LABEL_RATE, random_state=0)
    del views
    rows: list[dict[str, Any]] = []
    print(f"{len(y)} samples of {args.data.stem if real else 'random views'}")
    print(titles(HEAD))
    with limited(args.threads, args.device):
        for dtype in args.dtypes:
            source = args.data.stem if real else "random"
            rows.append({"source": source, **fit_row(task, dtype, args)})
            print(line(cells(rows[-1])), flush=True)
        write("whole_fit", args, rows)


HEAD = ("dtype", *STAGES, "rest", "all", "rounds", "accuracy")


def cells(row: Mapping[str, Any]) -> Iterator[str]:
    """The row as text, in seconds."""
    yield row["dtype"]
    for seconds in (*row["stages"].values(), row["seconds"]):
        yield f"{seconds:.3g}"
    yield str(row["n_iter"])
    yield f"{100 * row['accuracy']:.1f} %"


if __name__ == "__main__":
    main(sys.argv[1:])
