"""What `viewmend.MendClassifier` is timed on: MNIST in three views, generated views, a million."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from viewmend.datasets import Task, hide, load_npz

__all__ = ["FAMILIES", "Case", "cases_of", "columns_text", "drawn", "hidden", "warm_up_cases"]

MISSING_RATE = 0.5
LABEL_RATE = 0.01

# What grows in each family; the last two are run on request.
FAMILIES = ("samples", "views", "columns", "classes", "million", "million-mnist")
MNIST_COLUMNS = (784, 144, 64)
GENERATED = 10_000
MILLION = 1_000_000
CENTRE_SPREAD, NOISE = 3.0, 6.0
# Standard deviation of what tells a repeated row from the first, as a share of that of its view.
REPEAT_NOISE = 0.3
# Samples of the problems that warm up: the second has over 10 000 rows in each view, for which
# there are other kernels.
WARM_UP = (2_000, 24_000)


@dataclass(frozen=True)
class Case:
    """A problem to time.

    Attributes
    ----------
    family : str
        Of `FAMILIES`.
    source : {"mnist", "generated"}
    n_samples : int
    columns : tuple of int
        Of every view.
    n_classes : int
    dtype : {"float64", "float32"}
        Of the views.
    """

    family: str
    source: str
    n_samples: int
    columns: tuple[int, ...]
    n_classes: int = 10
    dtype: str = "float64"

    @classmethod
    def of(cls, facts: dict[str, Any]) -> Case:
        """The case that these facts, read from JSON, tell of."""
        return cls(**{**facts, "columns": tuple(facts["columns"])})


def cases_of(families: Sequence[str], sizes: Sequence[int], scale: float = 1.0) -> list[Case]:
    """Cases of some families, smaller ones first, none twice.

    Parameters
    ----------
    families : sequence of str
        Of `FAMILIES`.
    sizes : sequence of int
        Samples of MNIST in the family "samples".
    scale : float
        Multiplies all numbers of samples, for trying out.
    """
    found: dict[Any, Case] = {}
    for case in _all_cases(sorted(sizes)):
        if case.family in families:
            scaled = replace(case, n_samples=max(int(scale * case.n_samples), 1))
            found.setdefault(replace(scaled, family=""), scaled)
    return list(found.values())


def _all_cases(sizes: Sequence[int]) -> Iterator[Case]:
    for n_samples in sizes:
        yield Case("samples", "mnist", n_samples, MNIST_COLUMNS)
    for n_columns in (64, 256, 1024):
        yield Case("columns", "generated", GENERATED, (n_columns,) * 3)
    for n_views in (2, 4, 8):
        yield Case("views", "generated", GENERATED, (64,) * n_views)
    for n_classes in (2, 10, 50):
        yield Case("classes", "generated", GENERATED, (64,) * 3, n_classes)
    yield Case("million", "generated", MILLION, (64,) * 3, dtype="float32")
    yield Case("million-mnist", "mnist", MILLION, MNIST_COLUMNS, dtype="float32")


def columns_text(columns: Sequence[int]) -> str:
    """Columns of the views, told as a product where all are alike."""
    alike = len(set(columns)) == 1
    return f"{len(columns)} x {columns[0]}" if alike else " + ".join(map(str, columns))


def warm_up_cases(case: Case, scale: float = 1.0) -> list[Case]:
    """The case with fewer samples: a few, and enough for the kernels for many rows."""
    sizes = {min(max(int(scale * size), 200), case.n_samples) for size in WARM_UP}
    return [replace(case, n_samples=size) for size in sorted(sizes)]


def drawn(case: Case, n_new: int, path: Path | None) -> tuple[list[np.ndarray], np.ndarray]:
    """Complete views in float32 of the samples of a case and ``n_new`` more, and all classes."""
    n_rows = case.n_samples + n_new
    if case.source == "generated":
        return generated_rows(n_rows, case.columns, case.n_classes)
    if path is None or not path.is_file():
        msg = f"--data must name an archive with view_0, view_1, ... and y, got {path}"
        raise FileNotFoundError(msg)
    complete = load_npz(path)
    return repeated_rows(complete.views, complete.y, n_rows)


def generated_rows(
    n_rows: int, columns: Sequence[int], n_classes: int, seed: int = 0
) -> tuple[list[np.ndarray], np.ndarray]:
    """Rows around a centre of every class, in every view, and the classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_rows)
    views = []
    for n_columns in columns:
        view = rng.standard_normal((n_rows, n_columns), dtype=np.float32)
        view *= NOISE
        view += rng.normal(scale=CENTRE_SPREAD, size=(n_classes, n_columns)).astype(np.float32)[y]
        views.append(view)
    return views, y


def repeated_rows(
    views: Sequence[np.ndarray], y: np.ndarray, n_rows: int, seed: int = 0
) -> tuple[list[np.ndarray], np.ndarray]:
    """Rows in random order, each once, then again and again with noise."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    rows = order[np.arange(n_rows) % len(y)]
    longer = []
    for view in views:
        numbers = np.asarray(view, dtype=np.float32)
        scale = np.float32(REPEAT_NOISE * numbers.std())
        numbers = numbers[rows]
        again = numbers[len(y) :]
        again += scale * rng.standard_normal(again.shape, dtype=np.float32)
        longer.append(numbers)
    return longer, y[rows]


def hidden(views: Sequence[np.ndarray], y: np.ndarray) -> Task:
    """Half of the views missing, one label in a hundred."""
    return hide(views, y, missing_rate=MISSING_RATE, label_rate=LABEL_RATE, random_state=0)
