"""What a run measures, by name: from a key to a record."""

from __future__ import annotations

import contextlib
import importlib
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from viewmend.backend.threads import limited_threads
from viewmend.bench.completion import Completion, FixedCompletion, completed, timed
from viewmend.bench.environment import environment
from viewmend.bench.methods import contestant
from viewmend.bench.metrics import scores
from viewmend.bench.protocols import PROTOCOLS, altered, pose
from viewmend.bench.runs import Record, RunKey, derived_seed
from viewmend.bench.tracing import SoftLabelsWatch, rounds, watched
from viewmend.core.agfti.tensor_nuclear import prox_tnn
from viewmend.core.common.scaling import unit_rows
from viewmend.data.container import MultiViewData
from viewmend.datasets import Task, hide, make_multiview_blobs, realised_completeness
from viewmend.datasets.catalogue import load
from viewmend.exceptions import InvalidParameterError
from viewmend.parameters import choose

# What was found, the same on every run of a key, and what it cost.
Measured = tuple[dict[str, Any], dict[str, float]]
SIZES = ("n", "V", "m")


@dataclass(frozen=True)
class RunFolders:
    """Where a run finds data and keeps what others can use."""

    data_dir: Path
    cache_dir: Path


Measure = Callable[[RunKey, RunFolders], Measured]


def measure(key: RunKey, folders: RunFolders) -> Record:
    """Do a run on one thread; whatever it raises is its result, of status "error"."""
    try:
        with limited_threads(1):
            result, timings = choose(MEASURES, key.measure, "measure")(key, folders)
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        return Record(key, "error", environment=environment(), message=message)
    return Record(key, "done", result, timings, environment())


def measure_fit(key: RunKey, folders: RunFolders) -> Measured:
    """Scores on the unlabelled samples, sizes, realised completeness, seeds, warnings."""
    _, _, measured = _fitted(key, folders)
    return measured


def measure_trace(key: RunKey, folders: RunFolders) -> Measured:
    """As `measure_fit`, with what the method did in every round under ``history``."""
    watches: list[SoftLabelsWatch] = []
    model, task, (result, timings) = _fitted(
        key, folders, lambda model: watches.append(watched(model))
    )
    return {**result, "history": rounds(model, task, watches[0])}, timings


def measure_completion(key: RunKey, folders: RunFolders) -> Measured:
    """How far the completed views are from the hidden ones; fills the cache for other runs."""
    task = _task(key, folders)
    source, completion = _completion(key, folders)
    hidden = source.observed & ~task.data.observed[np.argsort(task.order)]
    error = hidden_error(source, hidden, completion.data)
    result = {"hidden_error": error, **_description(key, task), "warned": list(completion.warned)}
    return result, {"imputation": completion.seconds}


def measure_tnn_step(key: RunKey, _folders: RunFolders) -> Measured:
    """Time and peak memory of the proximal step of the tensor norm, beyond its input.

    The setting holds the sizes ``n``, ``V`` and ``m``.
    """
    sizes = dict(key.setting)
    n_samples, n_views, n_anchors = _checked_sizes(sizes)
    rng = np.random.default_rng(derived_seed(key, "method"))
    graphs = rng.random((n_views, n_samples, n_anchors))
    prox_tnn(graphs[:, :2], 1.0)  # compiles
    (_, norm), seconds, _ = timed(lambda: prox_tnn(graphs, 1.0))
    # Apart from the time, which tracing would add to.
    tracemalloc.start()
    try:
        prox_tnn(graphs, 1.0)
        peak = float(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
    result = {**sizes, "input_bytes": graphs.nbytes, "norm": norm}
    return result, {"seconds": seconds, "peak_bytes": peak}


MEASURES: dict[str, Measure] = {
    "fit": measure_fit,
    "trace": measure_trace,
    "completion": measure_completion,
    "tnn_step": measure_tnn_step,
}


def _fitted(
    key: RunKey, folders: RunFolders, prepare: Callable[[Any], None] = lambda _: None
) -> tuple[Any, Task, Measured]:
    """A fitted model, the task it was judged on, and what there is to say.

    ``prepare`` is given the model before its fit.
    """
    task = _task(key, folders)
    row, completion, imputer = contestant(key.method), None, None
    if row.needs_imputation:
        _, completion = _completion(key, folders)
        imputer = FixedCompletion(completion.data[task.order])
    # What the paper sets by data was chosen on its test labels.
    data = key.data if PROTOCOLS[key.protocol].tuned else None
    model = row.build(data, dict(key.setting), derived_seed(key, "method"), imputer)
    warm_up(key.method)
    prepare(model)
    _, seconds, warned = timed(lambda: model.fit(task.data, task.y))
    judged, n_iter = task.unlabelled, getattr(model, "n_iter_", None)
    result = {
        **scores(task.y_true[judged], model.transduction_[judged]),
        **_description(key, task),
        "n_iter": None if n_iter is None else int(n_iter),
        "warned": sorted(warned.union(completion.warned if completion else ())),
    }
    timings = {"fit": seconds, "imputation": completion.seconds if completion else 0.0}
    return model, task, (result, timings)


def hidden_error(complete: MultiViewData, hidden: np.ndarray, filled: MultiViewData) -> float:
    """Relative error ``|X_hat - X| / |X|`` over the unit rows that were hidden, NaN where none was.

    ``hidden`` is a mask (n_samples, n_views).
    """
    gaps = lengths = 0.0
    for truth, guess, rows in zip(complete.views, filled.views, hidden.T, strict=True):
        aim = unit_rows(truth[rows])
        gaps += float(np.sum((guess[rows] - aim) ** 2))
        lengths += float(np.sum(aim**2))
    return float(np.sqrt(gaps / lengths)) if lengths else float("nan")


@cache
def warm_up(method: str) -> None:
    """Once per process, what should not be timed: compiling by a toy problem, or large imports."""
    row = contestant(method)
    # Whatever is wrong, the fit that counts will tell.
    with contextlib.suppress(Exception):
        if row.extra is None:
            toy = make_multiview_blobs(40, n_views=2, random_state=0)
            task = hide(toy.views, toy.y, missing_rate=0.0, label_rate=0.2, random_state=0)
            timed(lambda: row.build(None, {}, 0).fit(task.data, task.y))
        else:
            # Networks compile nothing, and train for long on little data too.
            importlib.import_module(row.extra)


def _checked_sizes(sizes: dict[str, Any]) -> tuple[int, ...]:
    """Samples, views and anchors."""
    if sorted(sizes) != sorted(SIZES):
        msg = (
            f"the setting of a tnn_step must give n, V and m but gives {', '.join(sizes) or 'none'}"
            "; name the numbers of samples, views and anchors, and nothing else"
        )
        raise InvalidParameterError(msg)
    return tuple(int(sizes[name]) for name in SIZES)


def _task(key: RunKey, folders: RunFolders) -> Task:
    source = load(key.data, folders.data_dir)
    seed = derived_seed(key, "mask")
    return pose(source, key.protocol, key.missing_rate, key.label_rate, seed)


def _completion(key: RunKey, folders: RunFolders) -> tuple[MultiViewData, Completion]:
    """The data as the protocol alters it, and its completion; rows in the order of both."""
    seed = derived_seed(key, "mask")
    source = altered(load(key.data, folders.data_dir), key.protocol, seed)
    missing = PROTOCOLS[key.protocol].missing
    return source, completed(source, missing, key.missing_rate, seed, folders.cache_dir)


def _description(key: RunKey, task: Task) -> dict[str, Any]:
    """Sizes, what the nominal rates came to, and the seeds."""
    return {
        "n_samples": int(task.y.size),
        "n_labelled": int(task.labelled.sum()),
        **asdict(realised_completeness(task.data.observed)),
        "seeds": {concern: derived_seed(key, concern) for concern in ("mask", "method")},
    }
