"""Single runs of the honest comparison: fit, score, and one line per run in a file.

A run is one method on one problem. Its line is written in one go when it ends, so a file that was
cut short holds whole runs and at most one broken last line, which reading skips.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import time
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from contestants import ABLATIONS, CONTESTANTS, Contestant
from methods import FixedCompletion
from protocols import pose
from sklearn.metrics import precision_recall_fscore_support

import viewmend
from viewmend import MultiViewData
from viewmend.backend.threads import limited_threads
from viewmend.core.common.scaling import unit_rows
from viewmend.datasets import Task, load_npz, realised_completeness
from viewmend.impute import DeepMatrixFactorization

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "torch")
ALL_METHODS: dict[str, Contestant] = CONTESTANTS | ABLATIONS


@dataclass(frozen=True)
class Problem:
    """What is learnt from: names and numbers that `protocols.pose` turns into a task."""

    protocol: str
    data: str
    rate: float
    seed: int


@dataclass(frozen=True)
class Completion:
    """Views filled by deep matrix factorisation, and how long that took."""

    data: MultiViewData
    seconds: float


def key_of(problem: Problem, method: str) -> str:
    """What a run is known by; a method whose setting changed is run again."""
    return json.dumps([*asdict(problem).values(), method, dict(ALL_METHODS[method].settings)])


def attempt(folder: Path, problem: Problem, method: str) -> dict[str, Any]:
    """Run one method on one problem; an error is a result too."""
    start = {"key": key_of(problem, method), **asdict(problem), "method": method}
    try:
        found = {"status": "done", **measure(folder, problem, ALL_METHODS[method])}
    except Exception as error:
        found = {"status": f"error: {type(error).__name__}: {error}"}
    return {**start, **found, **environment()}


def measure(folder: Path, problem: Problem, contestant: Contestant) -> dict[str, Any]:
    """Fit on what the task shows, then score."""
    task = task_of(folder, problem)
    fixed, completion_seconds = {}, None
    if contestant.completion:
        completion = completion_of(folder, problem)
        fixed["imputer"] = FixedCompletion(completion.data)
        completion_seconds = completion.seconds
    model = contestant.build(problem.seed, **fixed)
    start = time.perf_counter()
    with limited_threads(1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(task.data, task.y)
    return {
        **score(task, model.transduction_),
        "seconds": time.perf_counter() - start,
        "completion_seconds": completion_seconds,
        "warned": sorted({warning.category.__name__ for warning in caught}),
        **description(task),
    }


def score(task: Task, predicted: np.ndarray) -> dict[str, float]:
    """Accuracy and macro averages over all true classes, on the unlabelled rows."""
    judged = task.unlabelled
    truth, guess = task.y_true[judged], predicted[judged]
    precision, recall, f1, _ = precision_recall_fscore_support(
        truth, guess, labels=np.unique(truth), average="macro", zero_division=0
    )
    return {
        "accuracy": float(np.mean(truth == guess)),
        "macro_precision": float(precision),
        "macro_recall": float(recall),
        "macro_f1": float(f1),
    }


def description(task: Task) -> dict[str, float]:
    """Sizes, and the completeness that the nominal rate came to."""
    return {
        "n_samples": int(task.y.size),
        "n_labelled": int(task.labelled.sum()),
        **asdict(realised_completeness(task.data.observed)),
    }


@lru_cache(maxsize=1)
def task_of(folder: Path, problem: Problem) -> Task:
    """The task; kept until another is asked for, because methods share it."""
    dataset = _load(folder / f"{problem.data}.npz")
    return pose(dataset, problem.protocol, problem.rate, problem.seed)


@lru_cache(maxsize=1)
def completion_of(folder: Path, problem: Problem) -> Completion:
    """Deep matrix factorisation with the paper's sizes, on unit rows; kept like the task."""
    task = task_of(folder, problem)
    views = tuple(unit_rows(view) for view in task.data.views)
    n_classes = np.unique(task.y[task.labelled]).size
    imputer = DeepMatrixFactorization(
        n_components=n_classes, n_hidden=10 * n_classes, random_state=problem.seed
    )
    start = time.perf_counter()
    with limited_threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        filled = imputer.fit_transform(MultiViewData(views, task.data.observed, task.data.names))
    return Completion(filled, time.perf_counter() - start)


_load = lru_cache(maxsize=1)(load_npz)


@cache
def environment() -> dict[str, Any]:
    """Versions of what computes, and the revision of this code where git knows it."""
    versions = {"viewmend": viewmend.__version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
        revision = asked.stdout.strip() or "unknown"
    except OSError:
        revision = "unknown"
    return {"versions": versions, "revision": revision}


def append(out: Path, row: dict[str, Any]) -> None:
    """Add one line; a single write to the end keeps lines of several processes apart."""
    line = (json.dumps(row) + "\n").encode()
    descriptor = os.open(out, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def end_broken_line(out: Path) -> None:
    """Let the next line start on its own after a write that was cut short."""
    if out.exists() and (text := out.read_bytes()) and not text.endswith(b"\n"):
        with out.open("ab") as file:
            file.write(b"\n")


def read(out: Path, offset: int = 0) -> dict[str, dict[str, Any]]:
    """Rows by key, from byte ``offset`` on; a finished run stands over a failed one."""
    found: dict[str, dict[str, Any]] = {}
    for row in _parsed(out.read_bytes()[offset:].splitlines() if out.exists() else ()):
        if found.get(row["key"], {}).get("status") != "done":
            found[row["key"]] = row
    return found


def _parsed(lines: Iterable[bytes]) -> Iterable[dict[str, Any]]:
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            continue
