"""What suggestions are worth: simulated labelling loops, and views measured by suggestion.

    python benchmarks/next_steps.py --data DIR --out docs/results [--seeds 0 1 2] [--jobs 2]
    python benchmarks/next_steps.py --out docs/results --page

Labels: half of the views are missing; a loop begins with one random label and asks for ten more at
a time, until a tenth of the samples has one. Every strategy is judged by the same classifier, on
the samples without a label. Views: with 5 % labels, a tenth of the missing pairs of a sample and a
view is measured at once, and the classifier is fitted again. Time: suggestions for 20 000 samples.

Finished loops are kept in ``next_steps.csv`` and not run again, unless the revision is another one.
``--page`` makes ``next_steps.md`` and ``next_steps.png`` of that file. Where scikit-activeml is not
installed, its strategy is left out, and the page says so.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import joblib
import numpy as np
from next_steps_page import (
    DATA,
    DEFAULT,
    LABELS,
    RANDOM,
    REFERENCE,
    RIVAL,
    SHOWN,
    TIME,
    TIMED_SAMPLES,
    VIEWS,
    append,
    make_page,
    read,
    write,
)

from viewmend import MendClassifier
from viewmend.bench.environment import check_publishable, environment
from viewmend.data.labels import Labels
from viewmend.datasets import Task, hide, make_multiview_blobs
from viewmend.datasets.catalogue import DATA_VARIABLE, load
from viewmend.exceptions import DataWarning
from viewmend.models.search_contests import SharedGeometry

MISSING, BATCH, MOST_LABELS, PAIRS = 0.5, 10, 0.1, 0.1
# Random choices of pairs per seed; their gains differ much.
N_DRAWS = 2
# Loops are long: no temperature is needed to rank samples.
MODEL = MendClassifier(calibration=None, n_jobs=1)


@dataclass(frozen=True, eq=False)
class Loop:
    """What a strategy may look at: the views, the labels so far, the model fitted to them."""

    task: Task
    y: np.ndarray
    model: MendClassifier | None
    rng: np.random.Generator

    @property
    def free(self) -> np.ndarray:
        return np.flatnonzero(self.y < 0)


def by_chance(loop: Loop) -> np.ndarray:
    return loop.rng.choice(loop.free, BATCH, replace=False)


def by_model(strategy: str) -> Callable[[Loop], np.ndarray]:
    """`suggest_labels`; by chance, like others do it, while there is one class."""

    def chosen(loop: Loop) -> np.ndarray:
        if loop.model is None:
            return by_chance(loop)
        return loop.model.suggest_labels(BATCH, strategy).samples

    return chosen


def by_default(loop: Loop) -> np.ndarray:
    if loop.model is None:
        return MODEL.suggest_first_labels(loop.task.data, BATCH, loop.y).samples
    return loop.model.suggest_labels(BATCH).samples


def by_rival(loop: Loop) -> np.ndarray:
    """TypiClust on the concatenation of the views, standardised, missing entries at the mean."""
    from skactiveml.pool import TypiClust

    columns = [np.asarray(view, dtype=float) for view in loop.task.data.views]
    X = np.concatenate([scaled(view) for view in columns], axis=1)
    given = np.where(loop.y < 0, np.nan, loop.y)
    seed = int(loop.rng.integers(2**31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TypiClust(random_state=seed).query(X, given, batch_size=BATCH)


def scaled(view: np.ndarray) -> np.ndarray:
    centred = view - np.nanmean(view, axis=0)
    deviations = np.nanstd(view, axis=0)
    return np.nan_to_num(centred / np.where(deviations > 0, deviations, 1) / np.sqrt(view.shape[1]))


STRATEGIES: dict[str, Callable[[Loop], np.ndarray]] = {
    RANDOM: by_chance,
    "margin": by_model("margin"),
    "entropy": by_model("entropy"),
    "coverage": by_model("coverage"),
    "change": by_model("change"),
    DEFAULT: by_default,
    RIVAL: by_rival,
}


def pose(data: str, seed: int, folder: Path | None) -> tuple[Task, list[np.ndarray]]:
    """A task with 5 % labels, and its views as they are where nothing is missing."""
    given = load(data, folder)
    task = hide(given.views, given.y, missing_rate=MISSING, label_rate=REFERENCE, random_state=seed)
    return task, [np.asarray(view)[task.order] for view in given.views]


def label_loop(data: str, strategy: str, seed: int, folder: Path | None) -> Iterator[dict]:
    """Accuracy on the samples without a label, batch by batch."""
    task, _ = pose(data, seed, folder)
    shared = SharedGeometry(MODEL, *MendClassifier().prepare(task.data, task.y))
    rng = np.random.default_rng([seed, 1])
    first = int(rng.integers(len(task.y)))
    y, most = np.full(len(task.y), -1), int(MOST_LABELS * len(task.y))
    y[first], n_labels = task.y_true[first], 1
    while True:
        classes, codes = np.unique(y[y >= 0], return_inverse=True)
        model, fit_seconds = None, 0.0
        answers = np.full(len(y), classes[0])
        if len(classes) > 1:
            labels = Labels(classes, np.full(len(y), -1))
            labels.codes[y >= 0] = codes
            begin = time.perf_counter()
            model = shared.fit({}, labels)
            fit_seconds, answers = time.perf_counter() - begin, model.transduction_
        figures = {"n_samples": len(y), "n": n_labels, "n_classes": len(classes)}
        figures["fit_seconds"] = fit_seconds
        right = (answers == task.y_true)[y < 0].mean()
        if n_labels >= most:
            yield figures | {"accuracy": right, "suggest_seconds": 0.0}
            return
        begin = time.perf_counter()
        rows = STRATEGIES[strategy](Loop(task, y, model, rng))
        yield figures | {"accuracy": right, "suggest_seconds": time.perf_counter() - begin}
        y[rows] = task.y_true[rows]
        n_labels += len(rows)


def view_choices(
    model: MendClassifier, missing: np.ndarray, n: int, rng: np.random.Generator
) -> list[tuple[str, np.ndarray]]:
    """Pairs (n, 2) of a sample and a view among the ``missing`` ones, by every strategy."""
    found = model.suggest_views(n)
    views = [model.view_names_.index(view) for view in found.views]
    unsure = np.argsort(model.confidence_[missing[:, 0]], kind="stable")[:n]
    draws = [missing[rng.choice(len(missing), n, replace=False)] for _ in range(N_DRAWS)]
    return [
        *((RANDOM, draw) for draw in draws),
        ("least sure", missing[unsure]),
        (DEFAULT, np.column_stack([found.samples, views])),
    ]


def view_round(data: str, _strategy: str, seed: int, folder: Path | None) -> Iterator[dict]:
    """Accuracy on the unlabelled samples before anything is measured, and after each choice."""
    task, views = pose(data, seed, folder)
    observed, free = task.data.observed, task.unlabelled
    begin = time.perf_counter()
    model = MendClassifier(n_jobs=1).fit(views, task.y, observed)
    seconds, begin = time.perf_counter() - begin, time.perf_counter()
    missing = np.argwhere(~observed & free[:, None])
    n, rng = int(PAIRS * len(missing)), np.random.default_rng([seed, 2])
    choices = view_choices(model, missing, n, rng)
    figures = {"fit_seconds": seconds, "suggest_seconds": time.perf_counter() - begin}
    figures["n_samples"] = len(task.y)
    right = (model.transduction_ == task.y_true)[free].mean()
    yield figures | {"strategy": "nothing", "n": 0, "accuracy": right}
    for name, pairs in choices:
        seen = observed.copy()
        seen[tuple(pairs.T)] = True
        answers = MendClassifier(calibration=None, n_jobs=1).fit(views, task.y, seen).transduction_
        right = (answers == task.y_true)[free].mean()
        yield figures | {"strategy": name, "n": len(pairs), "accuracy": right}


def timing(data: str, _strategy: str, seed: int, folder: Path | None) -> Iterator[dict]:  # noqa: ARG001
    """Seconds of a fit of many samples, and of the suggestions."""
    blobs = make_multiview_blobs(TIMED_SAMPLES, 3, 10, 20, noise=6.0, random_state=seed)
    task = hide(blobs.views, blobs.y, missing_rate=MISSING, label_rate=0.01, random_state=seed)
    begin = time.perf_counter()
    model = MendClassifier(n_jobs=1).fit(task.data, task.y)
    fit_seconds = time.perf_counter() - begin
    calls = {name: lambda name=name: model.suggest_labels(100, name) for name in ("auto", "change")}
    for name, call in (calls | {"views": lambda: model.suggest_views(100)}).items():
        begin = time.perf_counter()
        call()
        seconds = {"fit_seconds": fit_seconds, "suggest_seconds": time.perf_counter() - begin}
        yield seconds | {"strategy": name, "n_samples": TIMED_SAMPLES, "n": 100}


RUNS = {LABELS: label_loop, VIEWS: view_round, TIME: timing}


def run(key: tuple[str, str, str, int], folder: Path | None) -> list[dict]:
    """Rows of one loop."""
    warnings.simplefilter("ignore", DataWarning)
    what, data, strategy, seed = key
    here = {"revision": environment()["revision"], "what": what, "data": data, "seed": seed}
    rows = RUNS[what](data, strategy, seed, folder)
    return [here | {"strategy": strategy} | row for row in rows]


def keys_of(args: argparse.Namespace) -> list[tuple[str, str, str, int]]:
    wanted = [name for name in args.strategies if name != RIVAL or find_spec("skactiveml")]
    labels = [(LABELS, d, s, seed) for seed in args.seeds for d in args.sets for s in wanted]
    views = [(VIEWS, d, "", seed) for seed in args.seeds for d in args.sets]
    # Long ones first, so that no process is left alone with one of them.
    labels.sort(key=lambda key: -DATA.index(key[1]) if key[1] != "MNIST-USPS" else -len(DATA))
    return [*labels, *views]


def done(rows: list[dict]) -> set[tuple[str, str, str, int]]:
    """Loops that are in the record."""
    return {
        (row["what"], row["data"], row["strategy"] if row["what"] == LABELS else "", row["seed"])
        for row in rows
    }


def run_all(args: argparse.Namespace) -> None:
    check_publishable([environment()], args.out)
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / "next_steps.csv"
    rows = [row for row in read(path) if row["revision"] == environment()["revision"]]
    write(path, rows)
    left = [key for key in keys_of(args) if key not in done(rows)]
    parallel = joblib.Parallel(n_jobs=args.jobs, verbose=5, return_as="generator_unordered")
    for found in parallel(joblib.delayed(run)(key, args.data) for key in left):
        append(path, found)
    # Alone on the machine, or it tells nothing.
    if (TIME, "blobs", "", 0) not in done(rows):
        append(path, run((TIME, "blobs", "", 0), args.data))
    make_page(args.out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get(DATA_VARIABLE))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(10)))
    parser.add_argument("--sets", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=list(SHOWN))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--page", action="store_true", help="make the page of --out again")
    args = parser.parse_args()
    if args.page:
        make_page(args.out)
    else:
        run_all(args)


if __name__ == "__main__":
    main()
