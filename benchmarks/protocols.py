"""The learning problems of the honest comparison, by name.

Every protocol hides views and labels of complete data in shuffled rows. For one seed the protocols
that leave the samples and views as they are share the row order, and those that also drop pairs
alike share the missing pairs; they differ in what their row of `PROTOCOLS` says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from viewmend.data import MultiViewData
from viewmend.datasets import Task, hide, most_complete_first
from viewmend.datasets.task import UNLABELLED

MAIN = {
    "label_rate": 0.05,
    "labels": "most_complete",
    "missing": "independent",
    "order": "shuffled",
}
# The largest class of imbalanced data over the smallest.
IMBALANCE = 10.0

Views = tuple[np.ndarray, ...]
Change = Callable[[Views, np.ndarray, np.random.Generator], tuple[Views, np.ndarray]]
Relabel = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]


def as_given(views: Views, y: np.ndarray, _rng: np.random.Generator) -> tuple[Views, np.ndarray]:
    return views, y


def first_two_views(
    views: Views, y: np.ndarray, _rng: np.random.Generator
) -> tuple[Views, np.ndarray]:
    return views[:2], y


def with_useless_view(
    views: Views, y: np.ndarray, rng: np.random.Generator
) -> tuple[Views, np.ndarray]:
    """One view, drawn at random, becomes standard normal noise of the same shape."""
    useless = rng.integers(len(views))
    noise = rng.standard_normal(views[useless].shape)
    return (*views[:useless], noise, *views[useless + 1 :]), y


def imbalanced(views: Views, y: np.ndarray, rng: np.random.Generator) -> tuple[Views, np.ndarray]:
    """Random samples of every class, so that class sizes fall geometrically by `IMBALANCE` in all.

    Large classes stay large, equal ones are ranked at random, and the sizes are the largest that
    the data has room for.
    """
    classes, counts = np.unique(y, return_counts=True)
    ranked = rng.permutation(classes.size)
    ranked = ranked[np.argsort(-counts[ranked], kind="stable")]
    shares = IMBALANCE ** -np.linspace(0, 1, classes.size)
    sizes = np.rint(np.min(counts[ranked] / shares) * shares).astype(int)
    kept = [
        rng.choice(np.flatnonzero(y == classes[c]), size=size, replace=False)
        for c, size in zip(ranked, sizes, strict=True)
    ]
    rows = np.sort(np.concatenate(kept))
    return tuple(view[rows] for view in views), y[rows]


def uniform_rows(y: np.ndarray, _observed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Label 5 % of all samples whatever their class, then one sample of every class left out.

    The class shares of these labels are random: they need not be near those of the data.
    """
    drawn = rng.choice(y.size, size=round(MAIN["label_rate"] * y.size), replace=False)
    left_out = np.setdiff1d(y, y[drawn])
    extra = [rng.choice(np.flatnonzero(y == label)) for label in left_out]
    return np.concatenate([drawn, np.array(extra, dtype=drawn.dtype)])


def few_per_class(
    y: np.ndarray, observed: np.ndarray, rng: np.random.Generator, n_labels: int
) -> np.ndarray:
    """Label the ``n_labels`` most complete samples of every class, ties broken at random."""
    rows = most_complete_first(y, 1.0, observed, rng)
    return np.concatenate([rows[y[rows] == label][:n_labels] for label in np.unique(y)])


@dataclass(frozen=True)
class Protocol:
    """How complete data becomes a learning problem.

    Attributes
    ----------
    hidden : dict
        Arguments of `viewmend.datasets.hide` that differ from `MAIN`.
    change : callable (views, y, rng) -> (views, y)
        What is done to the complete data first.
    relabel : callable (y, observed, rng) -> rows, or None
        Which rows keep their label instead of those of `hide`.
    min_views : int
        Data with fewer views is left out.
    """

    hidden: Mapping[str, Any] = field(default_factory=dict)
    change: Change = as_given
    relabel: Relabel | None = None
    min_views: int = 2


PROTOCOLS: dict[str, Protocol] = {
    "main": Protocol(),
    "random_labels": Protocol({"labels": "random"}),
    "paper_text_masks": Protocol({"missing": "samples"}),
    "non_stratified": Protocol(relabel=uniform_rows),
    "few_labels_1": Protocol(relabel=partial(few_per_class, n_labels=1)),
    "few_labels_2": Protocol(relabel=partial(few_per_class, n_labels=2)),
    # With two views in all it would be the main protocol over again.
    "two_views": Protocol(change=first_two_views, min_views=3),
    "useless_view": Protocol(change=with_useless_view),
    "imbalanced": Protocol(change=imbalanced),
}


def pose(dataset: MultiViewData, name: str, rate: float, seed: int) -> Task:
    """The learning problem of one protocol, missing rate and seed.

    Parameters
    ----------
    dataset : MultiViewData
    name : str
        Row of `PROTOCOLS`.
    rate : float in [0, 1)
        Missing rate.
    seed : int

    Returns
    -------
    Task
    """
    protocol = PROTOCOLS[name]
    # One stream per choice: what is hidden by `hide` does not depend on what is done around it.
    change_rng, label_rng = np.random.default_rng([seed, 1]).spawn(2)
    views, y = protocol.change(dataset.views, dataset.y, change_rng)
    task = hide(views, y, missing_rate=rate, random_state=seed, **(MAIN | protocol.hidden))
    if protocol.relabel is None:
        return task
    rows = protocol.relabel(task.y_true, task.data.observed, label_rng)
    shown = np.full_like(task.y_true, UNLABELLED)
    shown[rows] = task.y_true[rows]
    return replace(task, y=shown)
