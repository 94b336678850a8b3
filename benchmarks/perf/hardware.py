"""What the machine can do, and how much of it the kernels of a round get.

python -m benchmarks.perf.hardware [--samples 20000] [--device cuda] [--out DIR]

Rates are the best of several runs: copying (bytes read and bytes written), products of large
matrices, and Fourier transforms (5 n log2 n operations each). A kernel is given the bytes of a
single pass over its arrays, or the operations of the textbook's way, and its share is what that
makes of the rate of the machine; no kernel that leaves the cache can do better than one pass. Each
kernel is also timed beside its readable version in plain array API.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.fft

from viewmend.backend import agnostic, dispatch
from viewmend.backend.namespace import array_namespace
from viewmend.backend.threads import available_threads
from viewmend.backend.torch_gpu import import_torch

from .measuring import best_seconds, limited, random_array
from .records import common_parser, line, titles, write

__all__ = [
    "Kernel",
    "copy_bandwidth",
    "copy_rates",
    "host_copy",
    "kernels",
    "main",
    "rates",
    "share",
]

# Passes of the tensor step over its array: transform, shrink, transform back, each reading and
# writing once.
TENSOR_PASSES = 6

# Operations of U V^T from the singular value decomposition of Golub and Reinsch, by m^3.
POLAR_FLOPS = 24

# Bytes that are copied: far beyond any cache.
COPIED = {"cpu": 1 << 28, "torch": 1 << 28, "cuda": 1 << 32}
# Rows of the square matrices; transforms of how many rows of which length.
PRODUCT_SIZE = {"cpu": 1536, "torch": 1536, "cuda": 8192}
TRANSFORMS = {"cpu": (512, 4096), "torch": (512, 4096), "cuda": (16384, 4096)}

DTYPES = ("float64", "float32")
Call = Callable[[], object]


def copy_bandwidth(device: str = "cpu", threads: int = 1, size: int | None = None) -> float:
    """Bytes per second of a copy, each byte counted once as read and once as written.

    Parameters
    ----------
    device : str
        "cpu" copies with NumPy, in as many parts at once as there are threads.
    threads : int
    size : int, optional
        Bytes to copy.
    """
    size = size or COPIED[device]
    source = random_array((size // 8,), "float64", device)
    copy = (
        _device_copy(source)
        if device != "cpu"
        else host_copy(np.empty_like(source), source, threads)
    )
    copy()
    return 2 * size / best_seconds(copy, 10, device)


def copy_rates(args: argparse.Namespace) -> dict[str, float]:
    """`copy_bandwidth` on the device, or on one thread and on all that may be used.

    Parameters
    ----------
    args : Namespace
        With ``device``, ``threads`` and ``copied``.
    """
    if args.device != "cpu":
        return {args.device: copy_bandwidth(args.device, size=args.copied)}
    numbers = sorted({1, args.threads})
    return {_threads(n): copy_bandwidth("cpu", n, args.copied) for n in numbers}


def _threads(number: int) -> str:
    return "1 thread" if number == 1 else f"{number} threads"


def _device_copy(source: Any) -> Call:
    target = import_torch().empty_like(source)
    return lambda: target.copy_(source)


def host_copy(target: np.ndarray, source: np.ndarray, threads: int) -> Call:
    """What copies ``source`` to ``target`` in as many parts at once as there are threads."""
    parts = list(zip(*(np.array_split(a, threads) for a in (target, source)), strict=True))
    if threads == 1:
        return lambda: np.copyto(target, source)
    # NumPy lets go of the interpreter while it copies.
    pool = ThreadPoolExecutor(threads)
    return lambda: list(pool.map(lambda part: np.copyto(*part), parts))


def product_rate(dtype: str, device: str, size: int | None = None) -> float:
    """Operations per second of a product of square matrices."""
    size = size or PRODUCT_SIZE[device]
    A = random_array((size, size), dtype, device)

    def product() -> Any:
        return A @ A

    product()
    return 2 * size**3 / best_seconds(product, 5, device)


def transform_rate(dtype: str, device: str, shape: tuple[int, int] | None = None) -> float:
    """Operations per second of complex Fourier transforms along contiguous rows."""
    rows, length = shape or TRANSFORMS[device]
    Y = random_array((rows, length), dtype, device) + 0j
    workers = {"workers": available_threads()} if device == "cpu" else {}
    fft = partial((scipy.fft if device == "cpu" else import_torch().fft).fft, Y, **workers)
    fft()
    return 5 * rows * length * np.log2(length) / best_seconds(fft, 5, device)


def rates(args: argparse.Namespace) -> dict[str, float]:
    """Copying in bytes, all else in operations per second."""
    found = {f"copy, {name}": rate for name, rate in copy_rates(args).items()}
    for dtype in DTYPES:
        found[f"product, {dtype}"] = product_rate(dtype, args.device, args.product_size)
        found[f"transform, {dtype}"] = transform_rate(dtype, args.device)
    return found


@dataclass(frozen=True)
class Kernel:
    """A kernel of `viewmend.backend.dispatch` at work.

    Attributes
    ----------
    name : str
    arguments : tuple
    amount : float
        Bytes or operations.
    limit : {"copy", "product"}
        What the machine is asked for.
    out : array or None
        What takes the answer, as in a solve; the readable version makes an array of its own.
    """

    name: str
    arguments: tuple[Any, ...]
    amount: float
    limit: str
    out: Any = None

    def ours(self) -> Any:
        keywords = {} if self.out is None else {"out": self.out}
        return getattr(dispatch, self.name)(*self.arguments, **keywords)

    def readable(self) -> Any:
        xp = array_namespace(self.arguments[0])
        return getattr(agnostic, self.name)(*self.arguments, xp=xp)


def kernels(size: tuple[int, int, int], dtype: str, device: str) -> list[Kernel]:
    """The kernels of a round on random arrays.

    Parameters
    ----------
    size : (n_samples, n_views, n_anchors)
    dtype, device : str
    """
    n, V, m = size
    draw = partial(random_array, dtype=dtype, device=device)
    Z, G, W, out = (draw((V, n, m), seed=seed) for seed in range(4))
    C, weights = draw((V, m, m)), draw((n,))
    H, block = Z[0, ...], n * m * np.dtype(dtype).itemsize
    product = 2 * V * n * m**2
    return [
        Kernel("best_response_rows", (Z, H, np.full(V, 1 / V), 0.5), (V + 2) * block, "copy"),
        Kernel("shrink_fourier", (Z, (n * m / 12) ** 0.5), TENSOR_PASSES * V * block, "copy", out),
        Kernel("ascend", (W, Z, G, 0.5), 4 * V * block, "copy", out),
        Kernel("shifted", (Z, W, 0.5), 3 * V * block, "copy", out),
        Kernel("squared_gap", (H, G[0, ...]), 2 * block, "copy"),
        Kernel("project_simplex_rows", (H,), 2 * block, "copy"),
        Kernel("nearest_anchor_weights", (H, 7), 2 * block, "copy"),
        Kernel("multiply", (Z, C), product, "product", out),
        Kernel("cross_products", (Z, H), product, "product"),
        # Half of a symmetric matrix is enough.
        Kernel("gram", (H, weights), product / (2 * V), "product"),
        Kernel("polar_factors", (C,), POLAR_FLOPS * V * m**3, "product"),
    ]


def kernel_row(
    kernel: Kernel, dtype: str, limits: Mapping[str, float], args: argparse.Namespace
) -> dict[str, Any]:
    """Seconds, rate and share of one kernel, and the seconds of its readable version."""
    seconds = {}
    for version in (kernel.ours, kernel.readable):
        version()
        seconds[version.__name__] = best_seconds(version, args.repeats, args.device)
    rate = kernel.amount / seconds["ours"]
    return {
        "kernel": kernel.name,
        "dtype": dtype,
        "seconds": seconds["ours"],
        "readable_seconds": seconds["readable"],
        "limit": kernel.limit,
        "rate": rate,
        "share": share(rate, kernel.limit, dtype, limits),
    }


def share(rate: float, limit: str, dtype: str, limits: Mapping[str, float]) -> float:
    """Part of what the machine can do: the fastest copy, or products in that precision."""
    same = [
        value
        for name, value in limits.items()
        if name.startswith(limit) and (limit == "copy" or name.endswith(dtype))
    ]
    return rate / max(same)


def parser() -> argparse.ArgumentParser:
    """The options of this script."""
    found = common_parser(__doc__ or "")
    found.add_argument("--samples", type=int, default=20000)
    found.add_argument("--views", type=int, default=4)
    found.add_argument("--anchors", type=int, default=256)
    found.add_argument("--copied", type=int, help="bytes of the copy")
    found.add_argument("--product-size", type=int, help="rows of the square matrices")
    return found


def main(argv: Sequence[str] | None = None) -> None:
    args = parser().parse_args(argv)
    rows = []
    with limited(args.threads, args.device):
        limits = rates(args)
        print("\n".join(f"{name}: {rate / 1e9:.1f} G/s" for name, rate in limits.items()))
        print(titles(HEAD))
        for dtype in DTYPES:
            size = (args.samples, args.views, args.anchors)
            for kernel in kernels(size, dtype, args.device):
                rows.append(kernel_row(kernel, dtype, limits, args))
                print(line(cells(rows[-1])), flush=True)
        write("hardware", args, [{"rates": limits}, *rows])


HEAD = ("kernel", "dtype", "ms", "readable ms", "ratio", "G/s", "share")


def cells(row: Mapping[str, Any]) -> Iterator[str]:
    """The row as text."""
    yield row["kernel"]
    yield row["dtype"]
    yield f"{1e3 * row['seconds']:.2f}"
    yield f"{1e3 * row['readable_seconds']:.2f}"
    yield f"{row['readable_seconds'] / row['seconds']:.1f}"
    yield f"{row['rate'] / 1e9:.1f}"
    yield f"{100 * row['share']:.0f} %"


if __name__ == "__main__":
    main(sys.argv[1:])
