"""Choice of parameters by the labelled samples alone."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils.validation import check_is_fitted

from viewmend.backend.threads import limited_threads
from viewmend.containers import MultiViewData
from viewmend.core.canonical import canonical_order
from viewmend.exceptions import InvalidLabelsError, InvalidParameterError
from viewmend.labels import Labels
from viewmend.models.base import TwoStepClassifier
from viewmend.parameters import Integer, Real, Rule, check_parameters

__all__ = ["LabelSearchCV", "Run", "SharedGeometry", "label_folds", "still_racing", "winner"]

# Points of the grid that survive a fold: this share of them, and the estimator's own setting.
SURVIVORS = 0.5


class LabelSearchCV(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Cross-validation over the labelled samples, with what needs no label computed once.

    The labelled samples are dealt into folds, class by class. Each fold in turn is fitted as
    unlabelled and scored; no other label is ever looked at. Three things make this cheap: points
    of the grid share the neighbours, anchors and kernels of the samples; they race, half of them
    leaving after each fold; and they run with fewer rounds than the final fit. One thing makes it
    safe: a point replaces the estimator's own setting only if it is better by more than ``margin``
    standard errors, because a few labels cannot tell small differences.

    Parameters
    ----------
    estimator : MendClassifier or AGFTIClassifier
    param_grid : dict or list of dict, optional
        Values to try by parameter; the estimator's own ``grid`` by default.
    cv : int, default=3
        Folds.
    margin : float, default=1.0
        Standard errors of the paired difference by which a point must be better than the
        estimator as given.

    Attributes
    ----------
    best_estimator_ : fitted on all labels with the best parameters
    best_params_ : dict
        Empty where the estimator as given won.
    best_score_ : float
        Its accuracy over all folds.
    cv_results_ : dict
        ``params``, ``mean_test_score`` (over the folds that a point was in), ``n_folds`` and
        ``rank_test_score``, one entry per point; the first is the estimator as given.
    classes_, transduction_, label_distributions_
        Of ``best_estimator_``.
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
        check_parameters(model, model._rules)
        data, labels = model._check_fit(X, y, mask, model.dtype)
        order = canonical_order(data.views, data.observed, labels.codes)
        shared = SharedGeometry(self.estimator, data, labels)
        with limited_threads(self.estimator.n_jobs):
            for held_out in label_folds(labels.codes, order, self.cv):
                for run in still_racing(runs):
                    run.hits.append(shared.hits(run.point, held_out))
            best = winner(runs, self.margin)
            self.best_estimator_ = shared.fit(best.point, labels)
        self.best_params_ = best.point
        self.best_score_ = best.score
        self.cv_results_ = _results(runs)
        for name in ("classes_", "transduction_", "label_distributions_"):
            setattr(self, name, getattr(self.best_estimator_, name))
        return self

    def predict(self, X, mask: ArrayLike | None = None) -> np.ndarray:
        """Classes of new samples, by the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X, mask)

    def predict_proba(self, X, mask: ArrayLike | None = None) -> np.ndarray:
        """Class shares of new samples, by the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X, mask)

    def _points(self) -> list[dict[str, Any]]:
        """The estimator as given, then every point of the grid."""
        if not isinstance(self.estimator, TwoStepClassifier):
            msg = (
                f"estimator must be a MendClassifier or an AGFTIClassifier, got "
                f"{type(self.estimator).__name__}; use GridSearchCV for other classifiers"
            )
            raise InvalidParameterError(msg)
        grid = self.estimator.grid if self.param_grid is None else self.param_grid
        points = list(ParameterGrid(grid))
        for name in sorted({name for point in points for name in point}):
            if name not in self.estimator.get_params():
                msg = (
                    f"param_grid names {name!r}, which is no parameter of "
                    f"{type(self.estimator).__name__}; it has {sorted(self.estimator.get_params())}"
                )
                raise InvalidParameterError(msg)
        return [{}, *points]


@dataclass(eq=False)
class Run:
    """A point of the grid, and which held-out labels it got right, fold by fold."""

    point: Mapping[str, Any]
    hits: list[np.ndarray] = field(default_factory=list)

    @property
    def score(self) -> float:
        """Share of the held-out labels it got right so far."""
        return float(np.concatenate(self.hits).mean()) if self.hits else 0.0


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
        self._known: dict[str, Any] = {}

    def fit(self, point: Mapping[str, Any], labels: Labels, **overrides: Any) -> TwoStepClassifier:
        """The estimator with the parameters of a point, fitted to some of the labels."""
        model = clone(self.estimator).set_params(**{**overrides, **point})
        check_parameters(model, model._rules)
        model._remember_layout(self.data, labels)
        key = repr([(name, getattr(model, name)) for name in model._geometry_parameters])
        if key not in self._known:
            self._known[key] = model._geometry(self.data, self.labels)
        model._fit_labels(self._known[key], labels)
        return model

    def hits(self, point: Mapping[str, Any], held_out: np.ndarray) -> np.ndarray:
        """Which of the held-out labels a fit without them gets right."""
        codes = self.labels.codes.copy()
        codes[held_out] = -1
        rest = Labels(self.labels.classes, codes)
        with warnings.catch_warnings():
            # A short run need not converge, and the final fit warns of the data.
            warnings.simplefilter("ignore")
            model = self.fit(point, rest, **self.estimator._search_overrides)
        found = np.argmax(model.label_distributions_[held_out], axis=1)
        return np.asarray(found == self.labels.codes[held_out])


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
    folds: list[list[int]] = [[] for _ in range(n_folds)]
    # Where the last class stopped the next one goes on, so that folds are of one size.
    turn = 0
    for code in np.unique(codes[codes >= 0]):
        members = order[codes[order] == code]
        if len(members) > 1:
            for member in members:
                folds[turn % n_folds].append(int(member))
                turn += 1
    if turn == 0:
        msg = (
            "every class has a single label, so that none can be held out; label two samples of "
            "some class, or use the estimator with its own parameters"
        )
        raise InvalidLabelsError(msg)
    return [np.array(fold) for fold in folds if fold]


def still_racing(runs: Sequence[Run]) -> list[Run]:
    """The first run, and the better half of the others that were in every fold so far."""
    own, *others = runs
    others = [run for run in others if len(run.hits) == len(own.hits)]
    if own.hits:
        kept = max(round(SURVIVORS * len(others)), 1)
        others = sorted(others, key=lambda run: -run.score)[:kept]
    return [own, *others]


def winner(runs: Sequence[Run], margin: float) -> Run:
    """The best run of all folds if it beats the first by ``margin`` standard errors, else that."""
    own = runs[0]
    full = [run for run in runs if len(run.hits) == len(own.hits)]
    best = max(full, key=lambda run: run.score)
    gains = np.concatenate(best.hits).astype(float) - np.concatenate(own.hits)
    error = gains.std() / np.sqrt(len(gains))
    return best if gains.mean() > margin * error else own


def _results(runs: Sequence[Run]) -> dict[str, Any]:
    scores = np.array([run.score for run in runs])
    n_folds = np.array([len(run.hits) for run in runs])
    # Runs that stayed longer come first, then the better ones.
    rank = np.empty(len(runs), dtype=int)
    rank[np.lexsort((-scores, -n_folds))] = np.arange(1, len(runs) + 1)
    return {
        "params": [dict(run.point) for run in runs],
        "mean_test_score": scores,
        "n_folds": n_folds,
        "rank_test_score": rank,
    }
