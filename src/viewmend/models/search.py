"""Choice of parameters by the labelled samples alone."""

from __future__ import annotations

import math
import pickle
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ParameterGrid
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from viewmend.backend.threads import limited_threads
from viewmend.containers import MultiViewData
from viewmend.core.canonical import canonical_order
from viewmend.exceptions import DataWarning, InvalidLabelsError, InvalidParameterError
from viewmend.labels import Labels
from viewmend.models.base import TwoStepClassifier
from viewmend.parameters import Integer, Real, Rule, check_parameters

__all__ = [
    "LabelSearchCV",
    "Point",
    "Run",
    "SharedGeometry",
    "label_folds",
    "leader",
    "short_limits",
    "still_racing",
    "surely_better",
]

# Values by name of parameter.
Point = Mapping[str, Any]

# Share of the points that survive a fold.
SURVIVORS = 1 / 3
# Parameters that decide how the data is read, which happens once.
READING = ("dtype", "view_sizes")
# What the search takes over from the best estimator.
TAKEN_OVER = (
    "classes_",
    "label_distributions_",
    "n_features_in_",
    "transduction_",
    "view_n_features_",
    "view_names_",
)


class LabelSearchCV(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Cross-validation over the labelled samples, with what needs no label computed once.

    The labelled samples are dealt into folds, class by class. Each fold in turn is fitted as
    unlabelled and scored; no other label is ever looked at. Three things make this cheap: points
    of the grid share the neighbours, anchors and kernels of the samples; they race, two thirds of
    them leaving after each fold; and they race with fewer rounds than the final fit. One thing
    makes it safe: the winner meets the estimator as given once more, in full, and replaces it only
    if it is better by more than ``margin`` standard errors, because a few labels cannot tell small
    differences.

    Parameters
    ----------
    estimator : MendClassifier or AGFTIClassifier
        Its callbacks, and the log of ``verbose``, follow the final fit; those that compare points
        are silent.
    param_grid : dict or list of dict, optional
        Values to try by parameter; the estimator's own ``grid`` by default. For every combination
        of those that decide the neighbours, anchors or kernels these are computed, and held.
    cv : int, default=3
        Folds. Classes with a single label are in none.
    margin : float, default=1.0
        Standard errors, of the difference of labels found, by which a point must be better than
        the estimator as given.

    Attributes
    ----------
    best_estimator_ : fitted on all labels with the best parameters
    best_params_ : dict
        Its values of the parameters in the grid.
    best_score_ : float
        Share of the held-out labels that it found in full fits.
    best_index_ : int
        Its entry in ``cv_results_``; zero where the estimator as given was kept.
    cv_results_ : dict
        One entry per point: first the estimator as given, then points by how many parameters they
        change. ``params`` and ``param_NAME``; ``split0_test_score`` and so on, NaN for folds after
        a point had left the race; ``mean_test_score``, over all labels of its folds, and
        ``std_test_score``, between its folds; ``rank_test_score``, by the folds survived, then by
        the mean; ``n_folds``; and ``full_test_score``, of those that came to the last comparison.
    classes_, transduction_, label_distributions_, n_features_in_, view_n_features_, view_names_
        Of ``best_estimator_``.

    Examples
    --------
    >>> from viewmend import LabelSearchCV, MendClassifier
    >>> from viewmend.datasets import hide, make_multiview_blobs
    >>> blobs = make_multiview_blobs(random_state=0)
    >>> task = hide(blobs.views, blobs.y, missing_rate=0.5, label_rate=0.05, random_state=0)
    >>> poor = MendClassifier(n_rounds=0, spreading=0.0)
    >>> search = LabelSearchCV(poor, {"spreading": [0.9, 0.99]}).fit(task.data, task.y)
    >>> search.best_params_
    {'spreading': 0.9}
    """

    _rules: ClassVar[dict[str, Rule]] = {"cv": Integer(2), "margin": Real(0)}

    def __init__(self, estimator, param_grid=None, cv=3, margin=1.0):
        self.estimator = estimator
        self.param_grid = param_grid
        self.cv = cv
        self.margin = margin

    def fit(self, X, y, mask: ArrayLike | None = None) -> LabelSearchCV:
        """Search, then fit the best on all labels; input as for the estimator."""
        check_parameters(self, self._rules)
        runs = [Run(point) for point in self._points()]
        model = clone(self.estimator)
        data, labels = model._check_fit(X, y, mask, model.dtype)
        order = canonical_order(data.views, data.observed, labels.codes)
        folds = label_folds(labels.codes, order, self.cv)
        limits = short_limits(self.estimator, [run.point for run in runs[1:]])
        shared = SharedGeometry(self.estimator, data, labels)
        with limited_threads(self.estimator.n_jobs):
            for held_out in folds:
                for run in still_racing(runs):
                    run.hits.append(shared.hits(held_out, run.point, limits))
            own, rival = runs[0], leader(runs)
            for run in (own, rival):
                run.full_hits = run.full_hits or shared.full_hits(run, folds, limits)
            best = rival if surely_better(rival, own, self.margin) else own
            self.best_estimator_ = shared.fit(best.point, labels)
        self._store(runs, best)
        return self

    def predict(self, X, mask: ArrayLike | None = None) -> np.ndarray:
        """Classes of new samples, by the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X, mask)

    def predict_proba(self, X, mask: ArrayLike | None = None) -> np.ndarray:
        """Class shares of new samples, by the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X, mask)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def _points(self) -> list[Point]:
        """The estimator as given, then the points of the grid, those that change least first."""
        if not isinstance(self.estimator, TwoStepClassifier):
            msg = (
                f"estimator must be a MendClassifier or an AGFTIClassifier, got "
                f"{type(self.estimator).__name__}; use GridSearchCV for other classifiers"
            )
            raise InvalidParameterError(msg)
        grid = self.estimator.grid if self.param_grid is None else self.param_grid
        points = list(ParameterGrid(grid))
        names = sorted({name for point in points for name in point})
        _check_names(names, self.estimator)
        for point in [{}, *points]:
            model = clone(self.estimator).set_params(**point)
            check_parameters(model, model._rules)
        own = {name: getattr(self.estimator, name) for name in names}
        # Of points that score the same the first wins, so that nothing changes without reason.
        others = sorted(points, key=lambda point: _n_changes(point, own))
        return [own, *(point for point in others if _n_changes(point, own) > 0)]

    def _store(self, runs: Sequence[Run], best: Run) -> None:
        self.best_index_ = next(i for i, run in enumerate(runs) if run is best)
        self.best_params_ = dict(best.point)
        self.best_score_ = _share(best.full_hits)
        self.cv_results_ = _results(runs)
        for name in TAKEN_OVER:
            setattr(self, name, getattr(self.best_estimator_, name))


@dataclass(eq=False)
class Run:
    """A point of the grid, and which held-out labels it found.

    Attributes
    ----------
    point : dict
    hits : list of array (n_held_out,) of bool
        One per fold that it was in, of short fits.
    full_hits : list of array (n_held_out,) of bool
        One per fold, of full fits; empty for points that did not come that far.
    """

    point: Point
    hits: list[np.ndarray] = field(default_factory=list)
    full_hits: list[np.ndarray] = field(default_factory=list)

    @property
    def score(self) -> float:
        """Share of the labels held out so far that it found."""
        return _share(self.hits)


class SharedGeometry:
    """Fits of points of a grid that compute once what does not depend on labels.

    Parameters
    ----------
    estimator : TwoStepClassifier
    data : MultiViewData
    labels : Labels
    """

    def __init__(self, estimator: TwoStepClassifier, data: MultiViewData, labels: Labels) -> None:
        self.estimator, self.data, self.labels = estimator, data, labels
        self._known: dict[bytes, Any] = {}

    def fit(self, point: Point, labels: Labels) -> TwoStepClassifier:
        """The estimator with the parameters of a point and its callbacks, fitted to the labels."""
        model = clone(self.estimator).set_params(**point)
        model.set_callbacks(*getattr(self.estimator, "_callbacks", ()))
        model._remember_layout(self.data, labels)
        model._fit_labels(self._geometry(model), labels)
        return model

    def fit_without(
        self, held_out: np.ndarray, point: Point, limits: Mapping[str, int]
    ) -> TwoStepClassifier:
        """A silent fit to the other labels, with parameters cut down to their limits."""
        model = clone(self.estimator).set_params(**point).set_params(verbose=0)
        model.set_params(**{name: min(getattr(model, name), limits[name]) for name in limits})
        rest = self._labels_without(held_out)
        model._remember_layout(self.data, rest)
        geometry = self._geometry(model)
        with warnings.catch_warnings():
            # A short fit need not converge, and the final one tells what is wrong with the labels.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", DataWarning)
            model._fit_labels(geometry, rest)
        return model

    def hits(self, held_out: np.ndarray, point: Point, limits: Mapping[str, int]) -> np.ndarray:
        """Which of the held-out labels a fit without them finds, (n_held_out,) of bool."""
        model = self.fit_without(held_out, point, limits)
        found = np.argmax(model.label_distributions_[held_out], axis=1)
        return np.asarray(found == self.labels.codes[held_out])

    def full_hits(
        self, run: Run, folds: Sequence[np.ndarray], limits: Mapping[str, int]
    ) -> list[np.ndarray]:
        """What `hits` gives without limits, fold by fold; what it gave if there are none."""
        return [self.hits(fold, run.point, {}) for fold in folds] if limits else run.hits

    def _labels_without(self, held_out: np.ndarray) -> Labels:
        codes = self.labels.codes.copy()
        codes[held_out] = -1
        return Labels(self.labels.classes, codes)

    def _geometry(self, model: TwoStepClassifier) -> Any:
        key = _content([getattr(model, name) for name in model._geometry_parameters])
        if key not in self._known:
            self._known[key] = model._geometry(self.data, self.labels)
        return self._known[key]


def label_folds(codes: np.ndarray, order: np.ndarray, n_folds: int) -> list[np.ndarray]:
    """Deal the labelled samples into folds, class by class, in a given order.

    A class with a single label stays out of all folds: held out, it would be unknown.

    Parameters
    ----------
    codes : array (n_samples,) of int
        Classes, -1 for unlabelled samples.
    order : array (n_samples,) of int
        Samples in the order in which they are dealt.
    n_folds : int

    Returns
    -------
    list of array of int
        Samples held out together; folds that would be empty are left out.
    """
    several = np.flatnonzero(np.bincount(codes[codes >= 0]) > 1)
    if len(several) == 0:
        msg = (
            "every class has a single label, so that none can be held out; label two samples of "
            "some class, or use the estimator with its own parameters"
        )
        raise InvalidLabelsError(msg)
    # One row of cards: where a class ends the next one goes on, so that folds are of one size.
    cards = np.concatenate([order[codes[order] == code] for code in several])
    return [cards[turn::n_folds] for turn in range(min(n_folds, len(cards)))]


def short_limits(estimator: TwoStepClassifier, points: Sequence[Point]) -> dict[str, int]:
    """Limits on parameters, such as rounds, that make the fits of a race short.

    A limit that would make two values of the grid the same is not set, for then it is these that
    are to be compared; nor is one that would change nothing.
    """
    limits = {}
    for name, limit in estimator._search_overrides.items():
        tried = {point[name] for point in points if name in point}
        distinct = len({min(value, limit) for value in tried}) == len(tried)
        if distinct and max(tried | {getattr(estimator, name)}) > limit:
            limits[name] = limit
    return limits


def still_racing(runs: Sequence[Run]) -> list[Run]:
    """The first run, and of the others that were in every fold so far the best third."""
    own, *others = runs
    others = [run for run in others if len(run.hits) == len(own.hits)]
    if own.hits:
        kept = math.ceil(SURVIVORS * len(others))
        others = sorted(others, key=lambda run: -run.score)[:kept]
    return [own, *others]


def leader(runs: Sequence[Run]) -> Run:
    """The best of the runs that were in all folds, the first of equals."""
    return max(still_racing(runs), key=lambda run: run.score)


def surely_better(rival: Run, own: Run, margin: float) -> bool:
    """Whether a run found more labels than another, by more than ``margin`` standard errors.

    With ``w`` labels that only the one found and ``l`` that only the other did, ``w - l`` has the
    standard error ``sqrt(w + l)`` if both are equally good (McNemar 1947).
    """
    gains = np.concatenate(rival.full_hits).astype(int) - np.concatenate(own.full_hits)
    return bool(gains.sum() > margin * math.sqrt(np.abs(gains).sum()))


def _check_names(names: Sequence[str], estimator: TwoStepClassifier) -> None:
    known = sorted(set(estimator.get_params(deep=False)) - set(READING))
    for name in names:
        if name not in known:
            what = "decides how the data is read" if name in READING else "is no parameter"
            msg = (
                f"param_grid names {name!r}, which {what} of {type(estimator).__name__}; "
                f"expected one of {known}"
            )
            raise InvalidParameterError(msg)


def _n_changes(point: Point, own: Point) -> int:
    return sum(_content(point[name]) != _content(own[name]) for name in point)


def _content(value: object) -> bytes:
    """Equal for equal values, arrays and random generators among them."""
    return pickle.dumps(value)


def _share(hits: Sequence[np.ndarray]) -> float:
    return float(np.concatenate(hits).mean()) if hits else math.nan


def _results(runs: Sequence[Run]) -> dict[str, Any]:
    points = [run.point for run in runs]
    folds = [[float(hits.mean()) for hits in run.hits] for run in runs]
    standing = [(len(run.hits), run.score) for run in runs]
    splits = {
        f"split{k}_test_score": np.array(
            [scores[k] if k < len(scores) else np.nan for scores in folds]
        )
        for k in range(len(folds[0]))
    }
    return {
        **{f"param_{name}": _column(points, name) for name in points[0]},
        "params": [dict(point) for point in points],
        **splits,
        "mean_test_score": np.array([run.score for run in runs]),
        "std_test_score": np.array([np.std(scores) for scores in folds]),
        "rank_test_score": np.array([1 + sum(b > a for b in standing) for a in standing]),
        "n_folds": np.array([len(run.hits) for run in runs]),
        "full_test_score": np.array([_share(run.full_hits) for run in runs]),
    }


def _column(points: Sequence[Point], name: str) -> np.ma.MaskedArray:
    """Values of one parameter, masked where a point leaves it as it is."""
    column: np.ma.MaskedArray = np.ma.masked_all(len(points), dtype=object)
    for i, point in enumerate(points):
        if name in point:
            column[i] = point[name]
    return column
