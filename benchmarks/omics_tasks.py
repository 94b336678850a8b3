"""Tasks of few samples, many columns and two classes, as omics have them, from data at hand.

Two classes of image and text data with all their columns, tables of scikit-learn with columns of
noise beside theirs, and drawn counts with a sparse signal. Nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

from viewmend.datasets.catalogue import load

# Views (n_samples, n_features_v) of a task, and classes (n_samples,).
Views = list[np.ndarray]
Drawn = tuple[Views, np.ndarray]
# Called with the folder of the data and a source of random numbers.
Draw = Callable[[Path | None, np.random.Generator], Drawn]

N_SAMPLES = 300
N_GENES = 1000


def two_classes(
    name: str, first: Sequence[int], second: Sequence[int], views: Sequence[int]
) -> Draw:
    """Some classes of a data set against others, in some of its views; at most `N_SAMPLES` rows."""

    def draw(folder: Path | None, rng: np.random.Generator) -> Drawn:
        data = load(name, folder)
        codes = np.unique(data.y, return_inverse=True)[1]
        rows = drawn_rows(np.isin(codes, first), np.isin(codes, second), rng)
        return [np.asarray(data.views[v])[rows] for v in views], np.isin(codes[rows], second) * 1

    return draw


def with_noise(draw: Draw, n_columns: int) -> Draw:
    """The same with columns of noise beside those of every view, of the spread of its median."""

    def noisy(folder: Path | None, rng: np.random.Generator) -> Drawn:
        views, y = draw(folder, rng)
        scales = [np.median(X.std(axis=0)) for X in views]
        noise = [rng.normal(0, scale, (len(y), n_columns)) for scale in scales]
        return [np.hstack(pair) for pair in zip(views, noise, strict=True)], y

    return noisy


def breast_cancer(_folder: Path | None, rng: np.random.Generator) -> Drawn:
    """Means, errors and worst values of ten measures of cell nuclei, a view each."""
    X, y = load_breast_cancer(return_X_y=True)
    rows = drawn_rows(y == 0, y == 1, rng)
    return [X[rows][:, 10 * v : 10 * v + 10] for v in range(3)], y[rows]


def digit_halves(_folder: Path | None, rng: np.random.Generator) -> Drawn:
    """Upper and lower halves of small images of eights and nines."""
    X, y = load_digits(return_X_y=True)
    rows = drawn_rows(y == 8, y == 9, rng)
    return [X[rows, :32], X[rows, 32:]], (y[rows] == 9) * 1


def drawn_rows(first: np.ndarray, second: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """At most `N_SAMPLES` rows of two classes, in the shares that these have."""
    rows = rng.permutation(np.flatnonzero(first | second))
    return np.sort(rows[:N_SAMPLES])


def counts(signal: float, effect: float, batch: float = 0.0) -> Draw:
    """Three views of log-normal expression, read as counts and as their logarithms.

    Columns come in blocks of ten that one hidden factor moves. In the share ``signal`` of the
    columns the classes differ, by ``effect`` deviations on the log scale. Samples were read in two
    batches, which shift every column by noise of deviation ``batch``.
    """

    def draw(_folder: Path | None, rng: np.random.Generator) -> Drawn:
        y = rng.permutation(np.arange(N_SAMPLES) % 2)
        in_second = rng.integers(0, 2, N_SAMPLES)
        views = [_log_levels(y, in_second, (signal, effect, batch), rng) for _ in range(3)]
        return [rng.poisson(np.exp(views[0])).astype(float), *views[1:]], y

    return draw


def _log_levels(
    y: np.ndarray,
    in_second: np.ndarray,
    strength: tuple[float, float, float],
    rng: np.random.Generator,
) -> np.ndarray:
    """Logarithms of expression, (n_samples, `N_GENES`)."""
    signal, effect, batch = strength
    level = rng.normal(2, 1, N_GENES)
    factors = np.repeat(rng.normal(size=(len(y), N_GENES // 10)), 10, axis=1)
    noise = 0.5 * factors + 0.8 * rng.normal(size=(len(y), N_GENES))
    shift = np.where(rng.random(N_GENES) < signal, rng.normal(0, effect, N_GENES), 0)
    of_batch = rng.normal(0, batch, N_GENES) if batch else np.zeros(N_GENES)
    # The depth at which a sample was read moves all its columns alike.
    depth = rng.normal(0, 0.3, (len(y), 1))
    return level + depth + noise + np.outer(y - 0.5, shift) + np.outer(in_second, of_batch)


# Places of the classes in the sorted classes of each data set.
TASKS: Mapping[str, Draw] = {
    "birds, 3 kinds against 3": two_classes("CUB", (0, 1, 2), (3, 4, 5), (0, 1)),
    "birds, 2 kinds, noise": with_noise(two_classes("CUB", (6, 7), (8, 9), (0, 1)), 1000),
    "objects, 4 kinds against 4": two_classes(
        "Caltech101-20 (surrogate)", (4, 6, 8, 10), (5, 7, 12, 15), (3, 4, 5)
    ),
    "scenes, coast against country": two_classes("OutScene (surrogate)", (0,), (5,), (0, 1, 2)),
    "digits 3 and 8": two_classes("UCI-Digit", (3,), (8,), (0, 1, 2)),
    "digits 4 and 9, noise": with_noise(two_classes("MNIST-USPS", (4,), (9,), (0, 1)), 500),
    "halves of digits, noise": with_noise(digit_halves, 100),
    "cell nuclei": breast_cancer,
    "cell nuclei, noise": with_noise(breast_cancer, 100),
    "counts, strong and sparse": counts(0.01, 1.2),
    "counts, weak and wide": counts(0.05, 0.5),
    "counts, two batches": counts(0.03, 0.8, 0.5),
}
