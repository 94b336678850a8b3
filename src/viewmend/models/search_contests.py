"""How the points of a grid are compared: by short fits, or by labels spread over common graphs.

A `Run` is what a search knows about a point, which is one setting of the grid. A `Contest` finds
which held-out labels the point predicts correctly.
"""

from __future__ import annotations

import math
import pickle
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from viewmend.backend.namespace import Array, array_namespace, to_numpy
from viewmend.core.agfti.propagation import propagate_labels
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels
from viewmend.models.agfti import AGFTIClassifier
from viewmend.models.agfti_geometry import AnchorGeometry
from viewmend.models.agfti_problem import (
    final_diagonals,
    make_problem,
    prior_weights,
    solve_problem,
)
from viewmend.models.base import TwoStepClassifier, ViewLayout
from viewmend.models.cross_fit import fit_silently, silent

# Values by name of parameter.
Point = Mapping[str, Any]

# Share of the points that survive a fold.
SURVIVORS = 1 / 3

# Parameters of AGF-TI whose values look the same on a graph that no label has shaped, cut short.
HIDDEN_WITHOUT_LABELS = {"imputation", "label_strength", "max_iter", "propagation_damping", "tol"}

# Rounds after which AGF-TI's graph finds the held-out labels that it finds in the end, but for
# one in a few hundred.
CONFIRMING = {"max_iter": 3}

# Share of the margin by which a rival must be better for the last comparison to go on: the hits of
# the race, which stand for the folds to come, are almost but not quite those of fits with labels.
PROMISING = 0.5


@dataclass(eq=False)
class Run:
    """A point of the grid, and which held-out labels it predicted, (n_held_out,) of bool."""

    point: Point
    # One per fold that it was in, of short fits.
    hits: list[np.ndarray] = field(default_factory=list)
    # Of the longer fits of the last comparison, for the folds that it came to there.
    full_hits: list[np.ndarray] = field(default_factory=list)

    @property
    def score(self) -> float:
        """Share of the labels held out so far that it found."""
        return share(self.hits)

    @property
    def best_known(self) -> list[np.ndarray]:
        """Hits fold by fold, of the longer fits where there are any."""
        return self.full_hits + self.hits[len(self.full_hits) :]


def share(hits: Sequence[np.ndarray]) -> float:
    """Share of the labels that were found; NaN where none was held out."""
    return float(np.concatenate(hits).mean()) if hits else math.nan


def still_racing(runs: Sequence[Run]) -> list[Run]:
    """The first run, and of the others that were in every fold so far the best third."""
    first, *others = runs
    others = [run for run in others if len(run.hits) == len(first.hits)]
    if first.hits:
        n_survivors = math.ceil(SURVIVORS * len(others))
        others = sorted(others, key=lambda run: -run.score)[:n_survivors]
    return [first, *others]


def leader(runs: Sequence[Run]) -> Run:
    """The best of the runs that were in all folds, the first of equals."""
    return max(still_racing(runs), key=lambda run: run.score)


def surely_better(rival: Run, champion: Run, margin: float) -> bool:
    """Whether a run found more labels than another, by more than ``margin`` standard errors.

    With ``w`` labels that only the one found and ``l`` that only the other did, ``w - l`` has the
    standard error ``sqrt(w + l)`` if both are equally good (McNemar 1947).
    """
    gains = np.concatenate(rival.best_known).astype(int) - np.concatenate(champion.best_known)
    return bool(gains.sum() > margin * math.sqrt(np.abs(gains).sum()))


class SharedGeometry:
    """Fits of points of a grid that compute once what does not depend on labels."""

    def __init__(self, estimator: TwoStepClassifier, data: MultiViewData, labels: Labels) -> None:
        self.estimator, self.data, self.labels = estimator, data, labels
        self._layout = ViewLayout.of(data)
        self._known: dict[bytes, Any] = {}

    def fit(self, point: Point, labels: Labels) -> TwoStepClassifier:
        """The estimator with the parameters of a point and its callbacks, fitted to the labels."""
        model = clone(self.estimator).set_params(**point)
        model.set_callbacks(*self.estimator.callbacks)
        model.fit_prepared(self._layout, self.geometry(model), labels)
        return model

    def fit_without(
        self, held_out: np.ndarray, point: Point, limits: Mapping[str, int]
    ) -> TwoStepClassifier:
        """A silent fit to the other labels, with parameters cut down to their limits."""
        model = self.limited(point, limits)
        rest = self.labels.without(held_out)
        fit_silently(model, self._layout, self.geometry(model), rest)
        return model

    def hits(self, held_out: np.ndarray, point: Point, limits: Mapping[str, int]) -> np.ndarray:
        """Which of the held-out labels a fit without them finds, (n_held_out,) of bool."""
        model = self.fit_without(held_out, point, limits)
        codes = np.argmax(model.label_distributions_[held_out], axis=1)
        return np.asarray(codes == self.labels.codes[held_out])

    def limited(self, point: Point, limits: Mapping[str, int]) -> TwoStepClassifier:
        """The estimator with the parameters of a point, none above its limit, and silent."""
        model = silent(clone(self.estimator).set_params(**point))
        cut = {name: min(getattr(model, name), limit) for name, limit in limits.items()}
        return model.set_params(**cut)

    def geometry(self, model: TwoStepClassifier) -> Any:
        """What the model computes before it sees a label."""
        key = content([getattr(model, name) for name in model.geometry_parameters])
        if key not in self._known:
            self._known[key] = model.build_geometry(self.data, self.labels)
        return self._known[key]


class Contest(ABC):
    """How points are compared, fold by fold in a race, then the winner with the first run.

    ``limits`` are upper limits of parameters in the race, see `short_limits`.
    """

    def __init__(
        self, shared: SharedGeometry, folds: Sequence[np.ndarray], limits: Mapping[str, int]
    ) -> None:
        self.shared, self.folds, self.limits = shared, folds, limits

    @abstractmethod
    def short_hits(self, fold: int, run: Run) -> np.ndarray:
        """Which labels of a fold a point finds in the race, (n_held_out,) of bool."""

    @abstractmethod
    def last_comparison(self, champion: Run, rival: Run, margin: float) -> Run:
        """The challenger if it is surely better in longer fits, else the champion."""


class ShortFits(Contest):
    """The race by fits of few rounds, one for every point and fold; the last comparison in full."""

    def short_hits(self, fold: int, run: Run) -> np.ndarray:
        return self.shared.hits(self.folds[fold], run.point, self.limits)

    def last_comparison(self, champion: Run, rival: Run, margin: float) -> Run:
        for run in (champion, rival):
            run.full_hits = run.full_hits or self._full_hits(run)
        return rival if surely_better(rival, champion, margin) else champion

    def _full_hits(self, run: Run) -> list[np.ndarray]:
        """Hits without limits, fold by fold; those of the race if there are none."""
        if not self.limits:
            return run.hits
        return [self.shared.hits(fold, run.point, {}) for fold in self.folds]


class CommonGraphs(Contest):
    """The race of AGF-TI with one graph per point, which all folds spread their labels over.

    Labels enter the learning of a graph only through the distances ``H``, and at the default
    damping some 99 of 100 held-out labels are found alike over graphs that never saw one. So the
    race learns every graph once, of no label at all; no fold can know there what it holds out. In
    the last comparison the other labels of the fold shape its graph. It begins only if the rival
    is surely better in the race, and ends with the fold after which it is not so by half the
    margin.
    """

    def __init__(
        self, shared: SharedGeometry, folds: Sequence[np.ndarray], limits: Mapping[str, int]
    ) -> None:
        super().__init__(shared, folds, limits)
        self._rests = [shared.labels.without(fold) for fold in folds]
        self._soft: dict[Run, list[np.ndarray]] = {}

    def short_hits(self, fold: int, run: Run) -> np.ndarray:
        model, geometry = self._start(run, self.limits)
        if run not in self._soft:
            none = Labels(self.shared.labels.classes, np.full_like(self.shared.labels.codes, -1))
            P = learned_graph(model, geometry, none)
            self._soft[run] = [spread_over(P, model, geometry, rest) for rest in self._rests]
        return self._hits(fold, self._soft[run][fold], model, geometry)

    def last_comparison(self, champion: Run, rival: Run, margin: float) -> Run:
        if not surely_better(rival, champion, margin):
            return champion
        for fold in range(len(self.folds)):
            for run in (champion, rival):
                run.full_hits.append(self.longer_hits(fold, run))
            if not surely_better(rival, champion, PROMISING * margin):
                return champion
        return rival if surely_better(rival, champion, margin) else champion

    def longer_hits(self, fold: int, run: Run) -> np.ndarray:
        """Which labels of a fold are found over a graph that the other labels shaped."""
        model, geometry = self._start(run, CONFIRMING)
        rest = self._rests[fold]
        P = learned_graph(model, geometry, rest)
        return self._hits(fold, spread_over(P, model, geometry, rest), model, geometry)

    def _start(self, run: Run, limits: Mapping[str, int]) -> tuple[AGFTIClassifier, AnchorGeometry]:
        model = self.shared.limited(run.point, limits)
        return model, self.shared.geometry(model)

    def _hits(
        self, fold: int, soft: np.ndarray, model: AGFTIClassifier, geometry: AnchorGeometry
    ) -> np.ndarray:
        # Like all sums over the samples, those of the weights are taken in the geometry's order.
        codes = np.empty_like(self.shared.labels.codes)
        codes[geometry.order] = classes_found(soft, self._rests[fold], model)
        held_out = self.folds[fold]
        return np.asarray(codes[held_out] == self.shared.labels.codes[held_out])


def contest_for(
    shared: SharedGeometry, folds: Sequence[np.ndarray], points: Sequence[Point]
) -> Contest:
    """The cheapest contest in which all the points look different."""
    limits = short_limits(shared.estimator, points)
    kind = CommonGraphs if graphs_tell_apart(shared.estimator, points) else ShortFits
    return kind(shared, folds, limits)


def short_limits(estimator: TwoStepClassifier, points: Sequence[Point]) -> dict[str, int]:
    """Limits on parameters, such as rounds, that make the fits of a race short.

    A limit that would make two values of the grid the same is not set, for then it is these that
    are to be compared; nor is one that would change nothing.
    """
    limits = {}
    for name, limit in estimator.search_limits.items():
        tried = {point[name] for point in points if name in point}
        distinct = len({min(value, limit) for value in tried}) == len(tried)
        if distinct and max(tried | {getattr(estimator, name)}) > limit:
            limits[name] = limit
    return limits


def graphs_tell_apart(estimator: TwoStepClassifier, points: Sequence[Point]) -> bool:
    """Whether graphs that were learned in few rounds without labels are enough to compare points.

    They are for AGF-TI with "graph", which starts near its end; with "fourier" it starts anew.
    """
    names = {name for point in points for name in point}
    return (
        isinstance(estimator, AGFTIClassifier)
        and estimator.imputation == "graph"
        and not names & HIDDEN_WITHOUT_LABELS
    )


def learned_graph(model: AGFTIClassifier, geometry: AnchorGeometry, labels: Labels) -> np.ndarray:
    """The fused graph (n_samples, n_anchors) of ``max_iter`` rounds in single precision.

    Soft labels are spread over it in double precision, where they are as exact as in any fit.
    """
    problem = make_problem(model, geometry, labels).converted(_in_single_precision)
    # Without labels little is left to change, and the first round would seem to converge.
    learner = clone(model).set_params(tol=0.0, final_damping=None)
    return to_numpy(solve_problem(learner, problem).P).astype(np.float64)


def spread_over(
    P: np.ndarray, model: AGFTIClassifier, geometry: AnchorGeometry, labels: Labels
) -> np.ndarray:
    """Soft labels (n_samples, n_classes) that a model gives out over a graph ``P``.

    Both are in the order of the geometry, labels in that of the data.
    """
    ordered = labels.at(geometry.order)
    B = final_diagonals(model, ordered.labelled, P[None])
    return propagate_labels(P, ordered.one_hot(), *B)[0]


def classes_found(soft: np.ndarray, labels: Labels, model: AGFTIClassifier) -> np.ndarray:
    """Codes (n_samples,) of soft labels that are weighted to meet the class prior of a model.

    Samples that no label reaches have zero rows, and get the largest class of the labels.
    """
    weights = prior_weights(model.class_prior, labels, soft)
    reached = soft.any(axis=1, keepdims=True)
    return np.argmax(np.where(reached, soft * weights, labels.shares()), axis=1)


def content(value: object) -> bytes:
    """Equal for equal values, arrays and random generators among them."""
    return pickle.dumps(value)


def _in_single_precision(array: Array) -> Array:
    xp = array_namespace(array)
    return xp.astype(array, xp.float32) if xp.isdtype(array.dtype, "real floating") else array
