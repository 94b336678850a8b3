"""Do the engines agree? The same fit of `viewmend.MendClassifier` by NumPy and by PyTorch.

python -m benchmarks.perf.mend_agreement --data mnist70k_3view.npz [--device cuda]
    [--sizes 5000 20000 70000] [--out DIR] [--name NAME]

Compares the classes of all samples, their soft labels, and ``predict`` of new ones. NumPy misses a
few neighbours of many rows, which PyTorch finds. So NumPy fits twice: as always, and comparing all
rows with all. What then differs is arithmetic: kernels are float32, and differ in their last digit.
How much of that the recipe itself makes of such a digit is measured without PyTorch: by NumPy
against NumPy, with a last digit of every kernel changed at random.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from viewmend import MendClassifier
from viewmend.core.graphs import nearest
from viewmend.core.mend import kernel_features
from viewmend.datasets import Task

from .mend import SIZES
from .mend_cases import cases_of
from .mend_timing import fit_and_new
from .records import Record, common_parser, line, machine, save, titles

__all__ = ["HEAD", "NAME", "Answers", "agreement", "cells", "main", "parser"]

# Of the records.
NAME = "mend_agreement"
CLOSE = 1e-4
# How NumPy searches neighbours: an exact search of more samples takes hours.
AS_ALWAYS, EXACT, MOST_EXACT = "as always", "exact", 70_000
DIGIT = "NumPy twice, a digit changed"
HEAD = ("samples", "search on the CPU", "same classes, %", "soft labels within 1e-4, %")
HEAD += ("mean difference", "largest difference", "accuracy of both, %")
HEAD += ("same classes of new samples, %",)


def parser() -> argparse.ArgumentParser:
    """The options of this script."""
    found = common_parser(__doc__ or "")
    found.set_defaults(device="cuda")
    found.add_argument("--data", type=Path, required=True, help="archive of MNIST in three views")
    found.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), help="of MNIST")
    found.add_argument("--scale", type=float, default=1.0, help="multiplies numbers of samples")
    found.add_argument("--new", type=int, default=5000, help="samples to predict")
    return found


def main(argv: Sequence[str] | None = None) -> None:
    args = parser().parse_args(argv)
    place = {"torch": "cpu"}.get(args.device, args.device)
    rows: list[dict[str, Any]] = []
    print(titles(HEAD))
    for case in cases_of(["samples"], args.sizes, args.scale):
        task, new = fit_and_new(case, args)
        theirs = Answers.of(MendClassifier(device=place), task, new)
        for search, one, other in pairs(task, new, theirs):
            found = {"search": search, **agreement(one, other)}
            rows.append({"n_samples": case.n_samples, **found})
            print(line(cells(rows[-1])), flush=True)
            options = {"device": args.device, "scale": args.scale, "close": CLOSE}
            save(Record(NAME, machine(args.device), options, rows), args)


def pairs(task: Task, new: Any, theirs: Answers) -> Iterator[tuple[str, Answers, Answers]]:
    """What is compared: NumPy with PyTorch, and NumPy with itself."""
    ours = Answers.of(MendClassifier(), task, new)
    yield AS_ALWAYS, ours, theirs
    if len(task.y) <= MOST_EXACT:
        with patch.object(nearest, "EXACT_UP_TO", sys.maxsize):
            exact = Answers.of(MendClassifier(), task, new)
        yield EXACT, exact, theirs
    with digit_changed():
        changed = Answers.of(MendClassifier(), task, new)
    yield DIGIT, ours, changed


def digit_changed() -> AbstractContextManager[object]:
    """Kernels of which a third is rounded one digit up, and a third one digit down."""
    kernel_of = kernel_features._mean_kernel

    def rounded_otherwise(*args: Any) -> np.ndarray:
        kernel = kernel_of(*args)
        digits = np.random.default_rng(len(kernel)).integers(-1, 2, kernel.shape)
        return kernel * (1 + np.finfo(kernel.dtype).eps * digits).astype(kernel.dtype)

    return patch.object(kernel_features, "_mean_kernel", rounded_otherwise)


@dataclass(frozen=True)
class Answers:
    """Classes and soft labels of the samples of a fit, its accuracy, and classes of new samples."""

    classes: np.ndarray
    soft_labels: np.ndarray
    accuracy: float
    new_classes: np.ndarray

    @classmethod
    def of(cls, model: MendClassifier, task: Task, new: Any) -> Answers:
        """Those of a model that is fitted here."""
        found = model.fit(task.data, task.y).transduction_
        right = (found == task.y_true)[task.unlabelled]
        return cls(found, model.label_distributions_, float(right.mean()), model.predict(new))


def agreement(one: Answers, other: Answers) -> dict[str, Any]:
    """Share of samples of the same class, and of soft labels that are close; the furthest two."""
    apart = np.abs(one.soft_labels - other.soft_labels)
    return {
        "same_classes": float(np.mean(one.classes == other.classes)),
        "close_soft_labels": float(np.mean(apart <= CLOSE)),
        "mean_difference": float(apart.mean()),
        "largest_difference": float(apart.max()),
        "accuracies": [one.accuracy, other.accuracy],
        "same_new": float(np.mean(one.new_classes == other.new_classes)),
    }


def cells(row: Mapping[str, Any]) -> Iterator[str]:
    """The row as text."""
    yield str(row["n_samples"])
    yield row["search"]
    yield f"{100 * row['same_classes']:.3f}"
    yield f"{100 * row['close_soft_labels']:.2f}"
    yield f"{row['mean_difference']:.1e}"
    yield f"{row['largest_difference']:.1e}"
    yield ", ".join(f"{100 * accuracy:.2f}" for accuracy in row["accuracies"])
    yield f"{100 * row['same_new']:.2f}"


if __name__ == "__main__":
    main(sys.argv[1:])
