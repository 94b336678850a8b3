"""The measures of ``mend``, each to be taken in a process of its own."""

from __future__ import annotations

import argparse
import ctypes
import gc
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors
from sklearn.semi_supervised import LabelSpreading

from viewmend import MendClassifier
from viewmend.backend.torch_gpu import import_torch
from viewmend.datasets import Task

from .measuring import synchronize
from .mend_cases import Case, drawn, hidden, warm_up_cases
from .records import machine

__all__ = ["MEASURES", "StageClock"]

Figures = dict[str, Any]

# Nearest rows, the row itself included, as the graphs have at most ten neighbours.
N_NEAREST = 11
# Further fits are not begun after so many seconds.
ENOUGH = 20.0
# Queries of a search on a GPU at once: their distances to a million rows take 8 GB.
QUERIES = 2048
# What tells one part of a stage from the next: "neighbours of view 2 of 3", "calibration 1 of 3".
PART = re.compile(r"( of view)? \d+ of \d+")


class StageClock:
    """A callback that measures the seconds of every stage of a fit.

    Attributes
    ----------
    seconds : Counter of float by stage
        "input" is what comes before the first stage. Rounds go by the name of their record.
    """

    def __init__(self, device: str) -> None:
        self.seconds: Counter[str] = Counter()
        self._device, self._stage, self._since = device, "input", 0.0

    def on_fit_begin(self, _fit: Any) -> None:
        self._since = time.perf_counter()

    def on_stage(self, name: str, _done: int, _total: int | None) -> None:
        self._count(self._stage)
        self._stage = PART.sub("", name)

    def on_rounds_begin(self) -> None:
        self._count(self._stage)

    def __call__(self, record: Any, _stage: Any) -> None:
        self._count(f"rounds: {record.name}")
        self._stage = "result"

    def on_fit_end(self, _fit: Any, _error: Any) -> None:
        self._count(self._stage)

    def _count(self, stage: str) -> None:
        synchronize(self._device)
        now = time.perf_counter()
        self.seconds[stage] += now - self._since
        self._since = now


def fit_figures(case: Case, args: argparse.Namespace) -> Figures:
    """Seconds, memory and accuracy of a fit after a warm-up; of several the fastest."""
    for smaller in warm_up_cases(case, args.scale):
        for _ in range(2 if args.device == "cuda" else 1):
            fitted_and_used(smaller, args)
    task, new = fit_and_new(case, args)
    X, y, y_true, unlabelled = views_in(task, case.dtype), task.y, task.y_true, task.unlabelled
    del task
    before = forget_peak(args.device)
    first, model = timed_fit(X, y, case, args)
    memory = {"before_bytes": before, **peaks(args.device)}
    fits = [first]
    while len(fits) < args.repeats and sum(fit["seconds"] for fit in fits) < ENOUGH:
        del model
        again, model = timed_fit(X, y, case, args)
        fits.append(again)
    right = (model.transduction_ == y_true)[unlabelled]
    uses = [seconds_of(lambda: model.predict(new), args.device) for _ in range(2)]
    return {
        **min(fits, key=lambda fit: fit["seconds"]),
        "all_seconds": [fit["seconds"] for fit in fits],
        **memory,
        "accuracy": float(right.mean()),
        "n_new": args.new,
        "predict_seconds": uses[0],
        "predict_again_seconds": uses[1],
    }


def fit_and_new(case: Case, args: argparse.Namespace) -> tuple[Task, Any]:
    """The samples of a case to fit, and views of new ones to predict."""
    n_samples = case.n_samples
    views, y = drawn(case, args.new, args.data)
    task = hidden([view[:n_samples] for view in views], y[:n_samples])
    return task, hidden([view[n_samples:] for view in views], y[n_samples:]).data


def fitted_and_used(case: Case, args: argparse.Namespace) -> None:
    """Fit and predict once, for the kernels that this compiles."""
    views, y = drawn(case, 0, args.data)
    task = hidden(views, y)
    _, model = timed_fit(views_in(task, case.dtype), task.y, case, args)
    model.predict(task.data)


def views_in(task: Task, dtype: str) -> Any:
    """Views as the fit is to have them: missing rows are NaN in float32."""
    if dtype == "float64":
        return task.data
    return [np.asarray(view, dtype=dtype) for view in task.data.views]


def timed_fit(
    X: Any, y: np.ndarray, case: Case, args: argparse.Namespace
) -> tuple[Figures, MendClassifier]:
    """Seconds of a fit and of its stages, and the model."""
    place = {"cpu": None, "torch": "cpu"}.get(args.device, args.device)
    given = {"device": place, "graph_samples": args.graph_samples}
    # Earlier revisions have neither parameter.
    parameters = {name: value for name, value in given.items() if value is not None}
    clock = StageClock(args.device)
    model = MendClassifier(dtype=case.dtype, **parameters).set_callbacks(clock)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds = seconds_of(lambda: model.fit(X, y), args.device)
    return {"seconds": seconds, "stages": dict(clock.seconds)}, model


def spreading_figures(case: Case, args: argparse.Namespace) -> Figures:
    """Label spreading of scikit-learn on the views side by side, column means for missing rows."""
    task = hidden(*drawn(case, 0, args.data))
    X = np.concatenate([mean_imputed(view) for view in task.data.views], axis=1)
    model = LabelSpreading(kernel="knn", n_jobs=args.threads)
    with warnings.catch_warnings():
        # That it stops after its 30 rounds is how it is meant by default.
        warnings.simplefilter("ignore")
        seconds = seconds_of(lambda: model.fit(X, task.y), "cpu")
    right = (model.transduction_ == task.y_true)[task.unlabelled]
    return {"seconds": seconds, "accuracy": float(right.mean()), **peaks("cpu")}


def mean_imputed(view: np.ndarray) -> np.ndarray:
    """The view in float32, missing rows being the mean of the others."""
    missing = np.isnan(view).all(axis=1)
    filled = np.asarray(view, dtype=np.float32)
    filled[missing] = filled[~missing].mean(axis=0)
    return filled


def brute_figures(case: Case, args: argparse.Namespace) -> Figures:
    """Searches of the observed rows of every view that compare all pairs."""
    task = hidden(*drawn(case, 0, args.data))
    views = [np.asarray(view[~np.isnan(view).all(axis=1)], np.float32) for view in task.data.views]
    search = searched_by_torch if args.device == "cuda" else searched_by_sklearn
    search(views[-1][:QUERIES], args)
    seconds = seconds_of(lambda: [search(view, args) for view in views], args.device)
    return {"seconds": seconds}


def searched_by_sklearn(view: np.ndarray, args: argparse.Namespace) -> None:
    k = min(N_NEAREST, len(view))
    search = NearestNeighbors(n_neighbors=k, algorithm="brute", n_jobs=args.threads)
    search.fit(view).kneighbors(view)


def searched_by_torch(view: np.ndarray, args: argparse.Namespace) -> None:
    torch = import_torch()
    rows = torch.asarray(view, device=args.device)
    squares, k = (rows * rows).sum(dim=1), min(N_NEAREST, len(rows))
    for start in range(0, len(rows), QUERIES):
        products = rows[start : start + QUERIES] @ rows.T
        torch.topk(squares - 2 * products, k, dim=1, largest=False)


def machine_figures(_case: Case | None, args: argparse.Namespace) -> Figures:
    """Where this runs, and with which threads."""
    return machine(args.device)


MEASURES: dict[str, Callable[[Any, argparse.Namespace], Figures]] = {
    "machine": machine_figures,
    "fit": fit_figures,
    "spreading": spreading_figures,
    "brute": brute_figures,
}


def seconds_of(call: Callable[[], object], device: str) -> float:
    """Seconds until the device is done with a call."""
    synchronize(device)
    start = time.perf_counter()
    call()
    synchronize(device)
    return time.perf_counter() - start


def forget_peak(device: str) -> int | None:
    """Let the highest memory seen be that of now, in bytes; None where Linux does not let us."""
    gc.collect()
    _trim()
    if device == "cuda":
        cuda = import_torch().cuda
        cuda.empty_cache()
        cuda.reset_peak_memory_stats()
    try:
        # Documented in proc(5).
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    return peaks("cpu")["peak_bytes"]


def peaks(device: str) -> dict[str, int]:
    """Most memory that the process had since `forget_peak`, and on a GPU."""
    found = {"peak_bytes": next(_highest())}
    if device == "cuda":
        cuda = import_torch().cuda
        found["device_bytes"] = int(cuda.max_memory_allocated())
    return found


def _highest() -> Iterator[int]:
    status = Path("/proc/self/status")
    for told in status.read_text().splitlines() if status.exists() else ():
        if told.startswith("VmHWM:"):
            yield 1024 * int(told.split()[1])
    # Not on Windows.
    import resource

    yield 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _trim() -> None:
    """Give what the warm-up freed back to the system, where the C library can."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):
        return
