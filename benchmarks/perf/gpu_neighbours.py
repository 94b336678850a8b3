"""Nearest rows on a GPU: seconds, memory and recall of each kind of search.

python -m benchmarks.perf.gpu_neighbours [--only NAME ...] [--plain] [--profile] [--out DIR]

Rows are drawn around ten curved sheets, so that neighbours are as close as those of images; points
are square roots of class shares, most of them near the corners of the simplex. Recall is that of
some queries against products of float64 with all rows. ``--plain`` leaves out the fused kernel,
``--profile`` tells which kernels take the time, and ``--device torch --scale 0.01`` tries the
script out without a GPU. The script fails where recall is below 97 %.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from viewmend.backend import torch_nearest
from viewmend.backend.torch_gpu import import_torch

from .measuring import best_seconds, limited, peak_bytes
from .records import common_parser, line, titles, write

__all__ = ["CASES", "main"]

K = 11
ENOUGH = 0.97
# Queries that are compared with an exact search.
CHECKED = 1000
# Coordinates on a sheet, and how rough it is.
LATENT, NOISE = 12, 0.05
# Coordinates in which classes are more or less alike.
ALIKE = 8


@dataclass(frozen=True)
class Search:
    """A search of ``kind`` among rows; ``n_new`` of other rows, or 0 of the rows themselves."""

    kind: str
    n_rows: int
    n_columns: int
    n_new: int = 0


CASES = {
    "rows 35k x 784": Search("rows", 35_000, 784),
    "rows 35k x 144": Search("rows", 35_000, 144),
    "rows 35k x 64": Search("rows", 35_000, 64),
    "rows 500k x 784": Search("rows", 500_000, 784),
    "rows 500k x 144": Search("rows", 500_000, 144),
    "rows 500k x 64": Search("rows", 500_000, 64),
    "points 70k": Search("points", 70_000, 10),
    "points 1M": Search("points", 1_000_000, 10),
    "points 1M x 100": Search("points", 1_000_000, 100),
    "new points 100k in 1M": Search("points", 1_000_000, 10, 100_000),
    "new 100k in 35k x 784": Search("rows", 35_000, 784, 100_000),
    "new 100k in 500k x 784": Search("rows", 500_000, 784, 100_000),
    "new 100k in 500k x 64": Search("rows", 500_000, 64, 100_000),
}


def sheets(n_rows: int, n_columns: int, device: str, seed: int) -> Any:
    """Unit rows (n_rows, n_columns) around ten curved sheets of `LATENT` coordinates."""
    torch = import_torch()
    fixed, drawn = (torch.Generator(device=device).manual_seed(s) for s in (0, 1 + seed))
    like = {"device": device, "dtype": torch.float32}
    centres = torch.randn((10, LATENT), generator=fixed, **like)
    spread = torch.randn((LATENT, n_columns), generator=fixed, **like)
    sheet = torch.randint(0, 10, (n_rows,), generator=drawn, device=device)
    rows = torch.tanh(
        (centres[sheet] + 0.5 * torch.randn((n_rows, LATENT), generator=drawn, **like)) @ spread / 3
    )
    rows += NOISE * torch.randn(rows.shape, generator=drawn, **like)
    return rows / torch.linalg.vector_norm(rows, dim=1, keepdim=True)


def class_shares(n_rows: int, n_columns: int, device: str, seed: int) -> Any:
    """Square roots of class shares: of classes around which samples scatter more or less widely."""
    torch = import_torch()
    fixed, drawn = (torch.Generator(device=device).manual_seed(s) for s in (0, 1 + seed))
    like = {"device": device, "dtype": torch.float32}
    classes = torch.randn((n_columns, ALIKE), generator=fixed, **like)
    sample = classes[torch.randint(0, n_columns, (n_rows,), generator=drawn, device=device)]
    widths = torch.rand((n_rows, 1), generator=drawn, **like)
    sample = sample + widths * torch.randn((n_rows, ALIKE), generator=drawn, **like)
    return torch.softmax(2 * sample @ classes.T, 1).sqrt()


DATA: dict[str, Callable[[int, int, str, int], Any]] = {"rows": sheets, "points": class_shares}


def run_of(case: Search, X: Any, Q: Any) -> Callable[[], torch_nearest.Nearest]:
    """The search as a call without arguments."""
    if case.kind == "points":
        return lambda: torch_nearest.nearest_points(X, K, Q)
    if Q is None:
        return lambda: torch_nearest.neighbour_search({"unit": X}, K)["unit"]
    return lambda: torch_nearest.nearest_of_new({"unit": Q}, K, lambda _, rows: X[rows])["unit"]


def recall(X: Any, Q: Any, distances: Any) -> float:
    """Share of the neighbours of some queries that are no farther than the true last one."""
    torch = import_torch()
    among = X if Q is None else Q
    some = torch.arange(0, among.shape[0], max(1, among.shape[0] // CHECKED), device=X.device)
    columns = X.double()
    squared = (columns**2).sum(1)
    found = []
    for part in some.split(100):
        rows = among[part].double()
        exact = squared - 2 * rows @ columns.T + (rows**2).sum(1, keepdim=True)
        if Q is None:
            exact[torch.arange(part.shape[0]), part] = torch.inf
        last = exact.topk(distances.shape[1], 1, largest=False).values[:, -1:]
        found.append(distances[part] <= last * (1 + 1e-5) + 1e-12)
    return float(torch.cat(found).double().mean())


def case_row(name: str, args: argparse.Namespace) -> dict[str, Any]:
    """Seconds, peak memory and recall of one case."""
    torch = import_torch()
    case, device = CASES[name], "cpu" if args.device == "torch" else args.device
    X = DATA[case.kind](int(case.n_rows * args.scale), case.n_columns, device, 0)
    n_new = int(case.n_new * args.scale)
    Q = DATA[case.kind](n_new, case.n_columns, device, 1) if n_new else None
    search = run_of(case, X, Q)
    indices, distances = search()
    row = {
        "case": name,
        "n_rows": X.shape[0],
        "n_columns": case.n_columns,
        "n_new": n_new,
        "recall": recall(X, Q, distances),
        "peak_gb": peak_bytes(search, args.device) / 1e9,
        "seconds": best_seconds(search, args.repeats, args.device),
    }
    again = search()
    row["same_bits"] = bool(torch.equal(indices, again[0]) and torch.equal(distances, again[1]))
    if args.profile:
        print_profile(search)
    return row


def print_profile(search: Callable[[], object]) -> None:
    """Which kernels take the time of a search."""
    profiler = import_torch().profiler
    with profiler.profile() as profile:
        search()
    print(profile.key_averages().table(sort_by="self_cuda_time_total", row_limit=15))


HEAD = ("search", "rows", "columns", "new", "seconds", "peak GB", "recall", "same bits")


def cells(row: Mapping[str, Any]) -> Iterator[object]:
    """The row as text."""
    yield from (row[key] for key in ("case", "n_rows", "n_columns", "n_new"))
    yield f"{row['seconds']:.4f}"
    yield f"{row['peak_gb']:.2f}"
    yield f"{row['recall']:.4f}"
    yield row["same_bits"]


def parser() -> argparse.ArgumentParser:
    """The options of this script."""
    found = common_parser(__doc__ or "")
    found.set_defaults(device="cuda")
    found.add_argument("--only", nargs="*", choices=list(CASES), help="these searches alone")
    found.add_argument("--scale", type=float, default=1.0, help="times the rows of each case")
    found.add_argument("--plain", action="store_true", help="without the fused kernel")
    found.add_argument("--profile", action="store_true", help="which kernels take the time")
    return found


def main(argv: Sequence[str] | None = None) -> None:
    args = parser().parse_args(argv)
    if args.plain:
        torch_nearest.FUSED_ROWS = sys.maxsize
    rows: list[dict[str, Any]] = []
    print(titles(HEAD))
    with limited(args.threads, args.device):
        for name in args.only or CASES:
            rows.append(case_row(name, args))
            print(line(cells(rows[-1])), flush=True)
        write("gpu_neighbours", args, rows)
    wrong = [row["case"] for row in rows if row["recall"] < ENOUGH or not row["same_bits"]]
    if wrong:
        sys.exit(f"recall below {ENOUGH} or other bits in a second run: {', '.join(wrong)}")


if __name__ == "__main__":
    main(sys.argv[1:])
