"""Several fits at once in one process: the bits of fits one by one, and settings that come back."""

from __future__ import annotations

import json
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from attacks.fitting import MODELS, blas_threads, digest, make_model, make_task
from attacks.outcomes import Outcome, Verdict, judged
from viewmend.datasets.task import Task

# Wide enough for linear algebra to use several threads where it may.
N_FEATURES = (15, 150)
N_TASKS = 4
N_JOBS = (None, 1, 2)


@dataclass(frozen=True)
class Fit:
    """A method, its task, and the threads it asks for."""

    method: str
    task: int
    n_jobs: int | None

    def digest(self, n_samples: int) -> str:
        task = _task(n_samples, self.task)
        model = make_model(self.method, n_jobs=self.n_jobs).fit(task.data, task.y)
        return digest(model)


@cache
def _task(n_samples: int, seed: int) -> Task:
    """Drawn on one thread, because the data itself comes from a product."""
    with threadpool_limits(1, user_api="blas"):
        return make_task(n_samples, seed, N_FEATURES)


@dataclass(frozen=True)
class Threads:
    """Two to four fits of different methods, data and ``n_jobs`` in as many threads."""

    name: str = "threads"
    n_cases: int = 200
    time_limit: float = 120.0
    n_samples: int = 400

    def prepare(self, folder: Path) -> None:
        expected = {
            f"{method} {task}": Fit(method, task, 1).digest(self.n_samples)
            for method in MODELS
            for task in range(N_TASKS)
        }
        (folder / "expected.json").write_text(json.dumps(expected))

    def attempt(self, folder: Path, rng: np.random.Generator) -> Outcome:
        expected = json.loads((folder / "expected.json").read_text())
        fits = [
            Fit(str(rng.choice(list(MODELS))), int(rng.integers(N_TASKS)), N_JOBS[rng.integers(3)])
            for _ in range(rng.integers(2, 5))
        ]
        return judged(lambda: self._together(fits, expected))

    def _together(self, fits: list[Fit], expected: dict[str, str]) -> Outcome:
        for fit in fits:
            _task(self.n_samples, fit.task)
        with threadpool_limits(2, user_api="blas"), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            before = blas_threads()
            with ThreadPoolExecutor(len(fits)) as pool:
                digests = list(pool.map(lambda fit: fit.digest(self.n_samples), fits))
            after = blas_threads()
        other = [
            fit
            for fit, found in zip(fits, digests, strict=True)
            if found != expected[f"{fit.method} {fit.task}"]
        ]
        if other or before != after:
            told = f"other bits: {other} among {fits}; threads of BLAS {before}, then {after}"
            return Outcome(Verdict.SILENT, told)
        return Outcome(Verdict.RIGHT)
