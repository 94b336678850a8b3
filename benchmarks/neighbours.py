"""Neighbour search of very many rows: recall, seconds and memory, beside pynndescent.

python -m benchmarks.neighbours [--kinds "low rank" generated cloud] [--rows 100000 200000]
    [--threads 1] [--out DIR] [--page FILE]

``PYTHONPATH`` must lead to this repository and, for a comparison, to pynndescent; where it is not
installed, it is left out. A search of viewmend is timed of one representation of a view, the
narrowest, and of all six at once, as `MendClassifier` searches; pynndescent, with its defaults and
a seed, of the one, and of all six one after the other. It is asked for as many neighbours as are
wanted, and for more, of which the nearest are kept: that raises its recall. Recall is that of some
rows, drawn at random and compared with all.

Every method has a process of its own for each kind of rows. A search of few rows compiles all
kernels first. Seconds of the processor count all threads; on a busy machine they are the ones to
compare. ``--page`` writes the page of the records in ``--out``.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.perf.mend_cases import generated_rows
from benchmarks.perf.mend_timing import forget_peak, peaks
from benchmarks.perf.records import Record, common_parser, line, machine, save, titles

from viewmend.backend.threads import limited_threads
from viewmend.core.common.rows import RowsInMemory
from viewmend.core.graphs import cells
from viewmend.core.graphs.exact import Neighbours, nearest_rows
from viewmend.core.graphs.nearest import neighbour_search, recall
from viewmend.core.mend.representations import REPRESENTATIONS, component_rows, represent

N_COLUMNS = 64
N_NEIGHBOURS = 11
# Asked for where more are to be found.
MORE = 20
N_QUERIES = 500
SEED = 0
# Rows of the search that compiles: as many as are not compared with all others.
WARM_UP = 7_000
THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def low_rank(n_rows: int) -> np.ndarray:
    """Ten classes, each a Gaussian on a space of twelve dimensions, with a little noise."""
    rng = np.random.default_rng(SEED)
    bases = rng.normal(size=(10, 13, N_COLUMNS))
    place = np.column_stack([np.full(n_rows, 2.0), rng.normal(size=(n_rows, 12))])
    label = rng.integers(10, size=n_rows)
    X = rng.normal(scale=0.3, size=(n_rows, N_COLUMNS))
    for c, basis in enumerate(bases):
        X[label == c] += place[label == c] @ basis
    return X.astype(np.float32)


def generated(n_rows: int) -> np.ndarray:
    """A view of the million samples that a fit is timed on: ten classes that fill all columns."""
    return generated_rows(n_rows, (N_COLUMNS,), 10)[0][0]


def cloud(n_rows: int) -> np.ndarray:
    """One cloud without groups, whose deviations fall as a power of their rank."""
    rng = np.random.default_rng(SEED)
    X = rng.standard_normal((n_rows, N_COLUMNS), dtype=np.float32)
    X *= (np.arange(1, N_COLUMNS + 1) ** -0.7).astype(np.float32)
    return X @ np.linalg.qr(rng.normal(size=(N_COLUMNS, N_COLUMNS)))[0].astype(np.float32)


KINDS: dict[str, Callable[[int], np.ndarray]] = {
    "low rank": low_rank,
    "generated": generated,
    "cloud": cloud,
}
Found = dict[str, Neighbours]
Search = Callable[[Mapping[str, np.ndarray]], Found]


def by_viewmend(searched: Mapping[str, np.ndarray]) -> Found:
    return neighbour_search(searched, N_NEIGHBOURS)


def by_pynndescent(searched: Mapping[str, np.ndarray], asked: int = N_NEIGHBOURS) -> Found:
    """Of every representation by itself; the nearest row is the row itself."""
    from pynndescent import NNDescent

    found = {}
    for name, X in searched.items():
        index = NNDescent(X, n_neighbors=asked + 1, random_state=SEED)
        near, distances = (each[:, 1 : N_NEIGHBOURS + 1] for each in index.neighbor_graph)
        found[name] = Neighbours(near, np.square(distances, dtype=np.float64))
    return found


PEER = "pynndescent"
SEARCHES: dict[str, Search] = {
    "viewmend": by_viewmend,
    PEER: by_pynndescent,
    f"{PEER}, {MORE} asked for": partial(by_pynndescent, asked=MORE),
}


def representations_of(X: np.ndarray) -> dict[str, np.ndarray]:
    fitted = represent(RowsInMemory(), X, tuple(REPRESENTATIONS), component_rows(X))
    return {name: each(X) for name, each in fitted.items()}


def warm_up(method: str) -> None:
    """Compile what a search of very many rows needs."""
    before, cells.MANY = cells.MANY, WARM_UP // 2
    SEARCHES[method](representations_of(low_rank(WARM_UP)))
    cells.MANY = before


def measured(method: str, kind: str, n_rows: int) -> Iterator[dict[str, Any]]:
    """Of one representation, and of all of them."""
    every = representations_of(KINDS[kind](n_rows))
    narrowest = min(every, key=lambda name: every[name].shape[1])
    for searched in ({narrowest: every[narrowest]}, every):
        forget_peak("cpu")
        wall, cpu = time.perf_counter(), time.process_time()
        found = SEARCHES[method](searched)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        yield {
            "kind": kind,
            "n_rows": n_rows,
            "method": method,
            "representations": len(searched),
            "seconds": wall,
            "processor_seconds": cpu,
            **peaks("cpu"),
            "recall": {name: recall_of(found[name], X) for name, X in searched.items()},
        }


def recall_of(found: Neighbours, X: np.ndarray) -> float:
    """Of some rows, whose distances are measured anew: other methods have them in float32."""
    rows = np.random.default_rng(SEED).permutation(len(X))[:N_QUERIES]
    exact = nearest_rows(X, N_NEIGHBOURS + 1, queries=X[rows])
    # Rows that are their own queries come first, at distance zero, and are left out.
    others = Neighbours(exact.indices[:, 1:], exact.squared_distances[:, 1:])
    near = found.indices[rows]
    gaps = X[near].astype(np.float64) - X[rows, None].astype(np.float64)
    # Rounding apart.
    squares = np.square(gaps).sum(axis=2) * (1 - 1e-12)
    return recall(Neighbours(near, squares), others)


def measure(method: str, kind: str, args: argparse.Namespace) -> None:
    """Print a line of JSON for every search."""
    with limited_threads(args.threads):
        warm_up(method)
        for n_rows in sorted(args.rows):
            for row in measured(method, kind, n_rows):
                print(json.dumps(row), flush=True)


def in_its_process(method: str, kind: str, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    command = [sys.executable, "-m", "benchmarks.neighbours", "--measure", method, kind]
    command += ["--threads", str(args.threads), "--rows", *map(str, args.rows)]
    told = dict.fromkeys(THREADS, str(args.threads))
    with subprocess.Popen(
        command, env={**os.environ, **told}, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        yield from map(json.loads, running.stdout)
    if running.returncode:
        sys.exit(f"{method} on {kind!r} ended with code {running.returncode}")


HEAD = ("rows", "n", "method", "representations", "s", "processor s", "recall", "GB")


def cells_of(row: Mapping[str, Any]) -> Iterator[str]:
    """The row as text; of several representations the least and the largest recall."""
    least, most = (f"{each(row['recall'].values()):.3f}" for each in (min, max))
    yield row["kind"]
    yield f"{row['n_rows']:,}".replace(",", " ")
    yield row["method"]
    yield str(row["representations"])
    yield f"{row['seconds']:.1f}"
    yield f"{row['processor_seconds']:.1f}"
    yield least if least == most else f"{least} - {most}"
    yield f"{row['peak_bytes'] / 1e9:.2f}"


def page(records: Sequence[Mapping[str, Any]]) -> str:
    """The page of these records."""
    parts = [Path(__file__).with_name("neighbours_page.md").read_text().rstrip()]
    for record in records:
        known = record["machine"]
        threads = record["settings"]["threads"]
        parts.append(
            f"{threads} thread{'s' * (threads > 1)} on {known['cpu']} with {known['cores']} cores, "
            f"load before {known['load_before']:.1f}, revision {known['revision']}, "
            f"{PEER} {record['settings'][PEER]}:"
        )
        parts.append("\n".join([titles(HEAD), *(line(cells_of(row)) for row in record["rows"])]))
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = common_parser(__doc__ or "")
    parser.set_defaults(threads=1)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 200_000, 400_000])
    parser.add_argument("--page", type=Path, help="write the page of the records in --out")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        measure(*args.measure, args)
    elif args.page:
        records = [json.loads(path.read_text()) for path in sorted(args.out.glob("*.json"))]
        args.page.write_text(page(records))
    else:
        compare(args)


def compare(args: argparse.Namespace) -> None:
    """Run all searches, and save the record after each of them."""
    settings: dict[str, Any] = {"threads": args.threads, "device": "cpu", PEER: None}
    if importlib.util.find_spec(PEER):
        settings[PEER] = importlib.metadata.version(PEER)
    here = [name for name in SEARCHES if settings[PEER] or not name.startswith(PEER)]
    rows: list[dict[str, Any]] = []
    print(titles(HEAD))
    for kind in args.kinds:
        for method in here:
            for row in in_its_process(method, kind, args):
                rows.append(row)
                print(line(cells_of(row)), flush=True)
                save(Record("neighbours", machine("cpu"), settings, rows), args)


if __name__ == "__main__":
    main()
