"""The tensor step alone, over the sizes of the paper's footprint table.

python -m benchmarks.perf.tnn [--dtype float32] [--device cuda] [--budget-gb 16] [--out DIR]

Beside the seconds of `viewmend.core.agfti.tensor_nuclear.prox_tnn` stand its peak memory, input and
answer counted in, and the bandwidth it gets: the bytes of six passes over the input (transform,
shrink, transform back, each reading and writing once), against the fastest copy on the same
machine. Sizes that may not fit the budget are named and skipped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from viewmend.core.agfti.tensor_nuclear import prox_tnn

from .cases import PAPER, paper_footprint
from .hardware import TENSOR_PASSES, copy_rates
from .measuring import best_seconds, limited, peak_bytes, random_array
from .records import common_parser, line, titles, write
from .transcription import shrink

__all__ = ["main", "needed_bytes", "step_row", "threshold"]

VIEWS = (2, 3, 4)
ANCHORS = (128, 256, 512, 1024)
# The data set has 126 054 samples, of which the table rounds the number; 126 054 has the large
# prime factor 149, and 126 000 has none beyond 7.
SAMPLES = {"cpu": (10_000, 70_000, 126_000), "cuda": (10_000, 70_000, 126_054)}

# Arrays of the size of the input that must fit: the input, the answer, and room to work.
NEEDED = {"cpu": 4, "torch": 8, "cuda": 8}

# Input up to which the transcription, one decomposition per frequency, is timed as well.
PLAIN_BYTES = 1 << 26


def needed_bytes(size: tuple[int, int, int], dtype: str, device: str) -> int:
    """Memory to be there before a size (n_samples, n_views, n_anchors) is tried."""
    return NEEDED[device] * int(np.prod(size)) * np.dtype(dtype).itemsize


def threshold(n_samples: int, n_anchors: int) -> float:
    """About the singular values of a Fourier slice of uniform noise: some fall to zero."""
    return float((n_samples * n_anchors / 12) ** 0.5)


def step_row(
    size: tuple[int, int, int], bandwidth: float, args: argparse.Namespace
) -> dict[str, Any]:
    """Seconds, memory and bandwidth of one step.

    Parameters
    ----------
    size : (n_samples, n_views, n_anchors)
    bandwidth : float
        Bytes per second of a copy.
    args : Namespace
        With ``dtype``, ``device``, ``repeats`` and ``plain``.
    """
    n_samples, n_views, n_anchors = size
    Y = random_array((n_views, n_samples, n_anchors), args.dtype, args.device)
    n_bytes = int(np.prod(size)) * np.dtype(args.dtype).itemsize
    tau = threshold(n_samples, n_anchors)
    step = partial(prox_tnn, Y, tau)
    step()
    seconds = best_seconds(step, args.repeats, args.device)
    peak = peak_bytes(step, args.device)
    rate = TENSOR_PASSES * n_bytes / seconds
    plain = args.plain and args.device == "cpu" and n_bytes <= PLAIN_BYTES
    return {
        "seconds": seconds,
        "input_bytes": n_bytes,
        "peak_bytes": peak,
        "peak_multiple": peak / n_bytes,
        "total_gib": (peak + n_bytes) / 2**30,
        "rate": rate,
        "share": rate / bandwidth,
        "plain_seconds": best_seconds(partial(shrink, Y, tau), 1) if plain else None,
    }


def grid_row(
    size: tuple[int, int, int], bandwidth: float, args: argparse.Namespace
) -> dict[str, Any]:
    """One cell of the table, or what it would need where that is too much."""
    n_samples, n_views, n_anchors = size
    paper = paper_footprint(args.paper).get((n_samples // 1000, n_views, n_anchors))
    row: dict[str, Any] = {
        "n_samples": n_samples,
        "n_views": n_views,
        "n_anchors": n_anchors,
        "paper_seconds": paper and paper.seconds,
        "paper_gib": paper and paper.gib,
        "needed_gb": needed_bytes(size, args.dtype, args.device) / 1e9,
    }
    row["skipped"] = row["needed_gb"] > args.budget_gb
    return row if row["skipped"] else row | step_row(size, bandwidth, args)


def parser() -> argparse.ArgumentParser:
    """The options of this script."""
    found = common_parser(__doc__ or "")
    found.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    found.add_argument("--budget-gb", type=float, default=16.0, help="memory that may be used")
    found.add_argument("--samples", nargs="*", type=int, help="default: those of the paper")
    found.add_argument("--views", nargs="*", type=int, default=list(VIEWS))
    found.add_argument("--anchors", nargs="*", type=int, default=list(ANCHORS))
    found.add_argument("--plain", action="store_true", help="time the transcription as well")
    found.add_argument("--copied", type=int, help="bytes of the copy that bandwidth is told by")
    found.add_argument("--paper", type=type(PAPER), default=PAPER, help="folder with its tables")
    return found


def main(argv: Sequence[str] | None = None) -> None:
    args = parser().parse_args(argv)
    samples = args.samples or SAMPLES.get(args.device, SAMPLES["cpu"])
    rows: list[dict[str, Any]] = []
    with limited(args.threads, args.device):
        copies = copy_rates(args)
        print(", ".join(f"copy, {name}: {rate / 1e9:.1f} GB/s" for name, rate in copies.items()))
        print(titles(HEAD))
        for size in product(samples, args.views, args.anchors):
            rows.append(grid_row(size, max(copies.values()), args))
            print(line(cells(rows[-1])), flush=True)
        write("tnn", args, [{"copies": copies}, *rows])


HEAD = ("n", "V", "m", "seconds", "paper s", "GiB", "paper GiB", "GB/s", "share of copy", "plain s")


def cells(row: Mapping[str, Any]) -> Iterator[str]:
    """The row as text."""
    for key in ("n_samples", "n_views", "n_anchors"):
        yield str(row[key])
    if row["skipped"]:
        yield f"skipped, needs {row['needed_gb']:.1f} GB"
    else:
        yield f"{row['seconds']:.3g}"
    yield _number(row["paper_seconds"])
    yield _number(row.get("total_gib"))
    yield _number(row["paper_gib"])
    yield "" if row["skipped"] else f"{row['rate'] / 1e9:.1f}"
    yield "" if row["skipped"] else f"{100 * row['share']:.0f} %"
    yield _number(row.get("plain_seconds"))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


if __name__ == "__main__":
    main(sys.argv[1:])
