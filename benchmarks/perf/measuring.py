"""Seconds and peak memory of a call, with NumPy or on a device of PyTorch."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from viewmend.backend.threads import limited_threads
from viewmend.backend.torch_gpu import import_torch

__all__ = [
    "DEVICES",
    "best_seconds",
    "limited",
    "peak_bytes",
    "placement",
    "random_array",
    "resident_growth",
    "synchronize",
]

# "cpu" is NumPy, "torch" is PyTorch without a GPU, for trying the scripts out.
DEVICES = ("cpu", "torch", "cuda")

Call = Callable[[], object]


@contextmanager
def limited(threads: int, device: str = "cpu") -> Iterator[None]:
    """Run with ``threads`` threads of BLAS, of the kernels, and of PyTorch where it is used."""
    torch = None if device == "cpu" else import_torch()
    before = torch and torch.get_num_threads()
    if torch:
        torch.set_num_threads(threads)
    try:
        with limited_threads(threads):
            yield
    finally:
        if torch:
            torch.set_num_threads(before)


def placement(device: str) -> Callable[[np.ndarray], Any]:
    """What brings an array to a device of `DEVICES`."""
    if device == "cpu":
        return lambda array: array
    torch = import_torch()
    return lambda array: torch.asarray(array, device=_torch_name(device))


def random_array(shape: tuple[int, ...], dtype: str, device: str = "cpu", seed: int = 0) -> Any:
    """Uniform numbers in [0, 1), drawn where they are used."""
    if device == "cpu":
        return np.random.default_rng(seed).random(shape, dtype=np.dtype(dtype).type)
    torch, name = import_torch(), _torch_name(device)
    generator = torch.Generator(device=name).manual_seed(seed)
    return torch.rand(shape, dtype=getattr(torch, dtype), device=name, generator=generator)


def synchronize(device: str) -> None:
    """Wait until a GPU has done what it was told."""
    if device == "cuda":
        import_torch().cuda.synchronize()


def best_seconds(call: Call, repeats: int, device: str = "cpu", enough: float = 30.0) -> float:
    """Shortest of several runs on the clock of the device.

    Whoever calls warms up first: it may have a shorter run for that.

    Parameters
    ----------
    call : callable
    repeats : int
    device : str
        Of `DEVICES`.
    enough : float
        No further run is started after so many seconds.
    """
    clock = _event_seconds if device == "cuda" else _wall_seconds
    times = [clock(call)]
    while len(times) < repeats and sum(times) < enough:
        times.append(clock(call))
    return min(times)


def peak_bytes(call: Call, device: str = "cpu") -> int:
    """Most that arrays made during a call take at once; what was there before does not count.

    PyTorch keeps no account of its arrays on the host: there it is `resident_growth`.
    """
    return PEAKS[device](call)


def resident_growth(call: Call) -> int | None:
    """How far the memory of the process grows during a call; None where Linux does not tell.

    Beside `peak_bytes` it counts what compiled code allocates for itself, and what the operating
    system has not taken back.
    """
    gc.collect()
    try:
        # Documented in proc(5): makes the present size the highest seen.
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    before = _resident("VmRSS")
    call()
    return max(_resident("VmHWM") - before, 0)


def _wall_seconds(call: Call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _event_seconds(call: Call) -> float:
    cuda = import_torch().cuda
    begin, end = (cuda.Event(enable_timing=True) for _ in range(2))
    cuda.synchronize()
    begin.record()
    call()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / 1e3


def _traced_peak(call: Call) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _cuda_peak(call: Call) -> int:
    cuda = import_torch().cuda
    cuda.synchronize()
    cuda.reset_peak_memory_stats()
    before = cuda.memory_allocated()
    call()
    cuda.synchronize()
    return int(cuda.max_memory_allocated() - before)


PEAKS: dict[str, Callable[[Call], int]] = {
    "cpu": _traced_peak,
    "torch": lambda call: resident_growth(call) or 0,
    "cuda": _cuda_peak,
}


def _resident(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field + ":"))


def _torch_name(device: str) -> str:
    return "cpu" if device == "torch" else device
