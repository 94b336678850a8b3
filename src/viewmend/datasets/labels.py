"""Which samples keep their label.

A protocol maps ``(y, rate, observed, rng)`` to the index of the labelled rows, grouped by class
in ascending order of the class. Both protocols label ``ceil(rate * n_c)`` of the ``n_c`` samples
of a class, so every class has at least one label; they differ in which samples these are.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from viewmend.exceptions import InvalidParameterError

LabelProtocol = Callable[[np.ndarray, float, np.ndarray, np.random.Generator], np.ndarray]


def most_complete_first(
    y: np.ndarray, rate: float, observed: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Label, in every class, the samples that have the most views.

    Ties are broken at random. This is the protocol of the code released with AGF-TI. It makes the
    task easier than labels on random samples, because labelled samples then occur in more views.

    Parameters
    ----------
    y : array (n_samples,) of int
        True classes.
    rate : float in (0, 1]
        Share of every class to label, rounded up.
    observed : array (n_samples, n_views) of bool
        Which sample has which view.
    rng : numpy Generator
        Source of random numbers.

    Returns
    -------
    array (n_labelled,) of int
        Rows to label: class by class, the most complete first.
    """
    n_seen = np.asarray(observed).sum(axis=1)

    def ranked(rows: np.ndarray) -> np.ndarray:
        # A stable sort of shuffled rows keeps ties in their random order.
        shuffled = rng.permutation(rows)
        return shuffled[np.argsort(-n_seen[shuffled], kind="stable")]

    return _first_of_every_class(y, rate, ranked)


def random_stratified(
    y: np.ndarray,
    rate: float,
    observed: np.ndarray,  # noqa: ARG001 - all label protocols are called alike
    rng: np.random.Generator,
) -> np.ndarray:
    """Label random samples of every class, whatever views they have.

    Parameters
    ----------
    y, rate, observed, rng
        As in `most_complete_first`; ``observed`` is not used.

    Returns
    -------
    array (n_labelled,) of int
        Rows to label, class by class.
    """
    return _first_of_every_class(y, rate, rng.permutation)


# Which samples keep their labels, by the name that `hide` takes.
LABEL_PROTOCOLS: dict[str, LabelProtocol] = {
    "most_complete": most_complete_first,
    "random": random_stratified,
}


def _first_of_every_class(
    y: np.ndarray, rate: float, ranked: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    if not 0 < rate <= 1:
        msg = (
            f"the label rate must lie in (0, 1] but is {rate!r}; "
            "pass a share such as 0.05 to label 5 % of every class"
        )
        raise InvalidParameterError(msg)
    rows_of_classes = [np.flatnonzero(y == label) for label in np.unique(y)]
    return np.concatenate([ranked(rows)[: _quota(rate, rows.size)] for rows in rows_of_classes])


def _quota(rate: float, n_rows: int) -> int:
    # 0.07 * 100 is 7.000000000000001 in floating point: without rounding, 8 samples of 100.
    return max(1, math.ceil(round(rate * n_rows, 9)))
