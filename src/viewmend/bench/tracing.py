"""What a method did round by round, and how accurate it was on the way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from viewmend.backend.namespace import to_numpy
from viewmend.bench.completion import timed
from viewmend.bench.metrics import scores
from viewmend.bench.runs import plain
from viewmend.datasets import Task


class SoftLabelsWatch:
    """A callback that keeps the leading class of every row after each round of AGF-TI."""

    def __init__(self) -> None:
        # One array (n_samples,) of positions in the classes per round.
        self.leading: list[np.ndarray] = []

    def __call__(self, _round: Any, state: Any) -> None:
        """Keep the largest soft label of every row, where the method has soft labels."""
        soft = getattr(state, "F", None)
        if soft is not None:
            self.leading.append(to_numpy(soft).argmax(axis=1))


def watched(model: Any) -> SoftLabelsWatch:
    """A watch on the rounds of a model's next fit; it sees nothing where there are no callbacks."""
    watch = SoftLabelsWatch()
    if hasattr(model, "set_callbacks"):
        model.set_callbacks(watch)
    return watch


def rounds(model: Any, task: Task, watch: SoftLabelsWatch) -> list[dict[str, Any]]:
    """What a fitted model did in each round, as dicts of plain values.

    AGF-TI and Mend keep records of their rounds; the other methods keep their objective.
    ``iteration`` counts from 1. ``accuracy``, on the unlabelled samples, and ``alpha``, of methods
    with view weights, are those of a fit that stops after the round. Mend, whose stages cannot be
    left out from the end, has no accuracies.
    """
    history = getattr(model, "history_", ())
    if all(map(is_dataclass, history)):
        # As they come back from the file of the record.
        told = [json.loads(json.dumps(asdict(one), default=plain)) for one in history]
        seen = _accuracies_seen(model, task, watch.leading)
        if seen is None and "max_iter" in model.get_params(deep=False):
            seen = [_accuracy(one, task) for one in _shorter_fits(model, task, len(told))]
        return told if seen is None else _with(told, "accuracy", seen)
    told = [
        {"iteration": t, "objective": {"total": float(value)}}
        for t, value in enumerate(history, start=1)
    ]
    fits = _shorter_fits(model, task, len(told))
    told = _with(told, "accuracy", [_accuracy(one, task) for one in fits])
    if not hasattr(model, "view_weights_"):
        return told
    return _with(told, "alpha", [[float(w) for w in one.view_weights_] for one in fits])


def _accuracies_seen(model: Any, task: Task, leading: Sequence[np.ndarray]) -> list[float] | None:
    """Accuracies of the classes that a watch saw, if these are what the model gives out.

    They are not where soft labels are spread once more or weighted at the end, or where the solver
    has the rows in another order.
    """
    judged = task.unlabelled
    if not leading or not np.array_equal(
        model.classes_[leading[-1]][judged], model.transduction_[judged]
    ):
        return None
    return [_share_right(model.classes_[codes], task) for codes in leading]


def _shorter_fits(model: Any, task: Task, n_rounds: int) -> list[Any]:
    """The model after 1, 2, ... rounds; the last is the model itself."""
    fits = []
    for t in range(1, n_rounds):
        shorter = clone(model).set_params(max_iter=t)
        timed(partial(shorter.fit, task.data, task.y))
        fits.append(shorter)
    return [*fits, model] if n_rounds else []


def _accuracy(model: Any, task: Task) -> float:
    return _share_right(model.transduction_, task)


def _share_right(classes: np.ndarray, task: Task) -> float:
    judged = task.unlabelled
    return float(scores(task.y_true[judged], classes[judged])["accuracy"])


def _with(told: Sequence[dict[str, Any]], name: str, values: Sequence[Any]) -> list[dict[str, Any]]:
    return [{**one, name: value} for one, value in zip(told, values, strict=True)]
