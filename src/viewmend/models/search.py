"""Search for parameters, using the labelled samples only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from viewmend.backend.threads import limited_threads
from viewmend.callbacks.notify import WatchedMixin, reason_to_stop, with_callbacks
from viewmend.core.common.content_order import canonical_order
from viewmend.data.column_names import columns_of_fit
from viewmend.exceptions import InvalidParameterError
from viewmend.html_repr import HTMLReprMixin
from viewmend.models.base import TwoStepClassifier, without_weights
from viewmend.models.label_folds import label_folds
from viewmend.models.scoring import score_labelled
from viewmend.models.search_contests import (
    SURVIVORS,
    Contest,
    Point,
    Run,
    SharedGeometry,
    content,
    contest_for,
    leader,
    share,
    still_racing,
)
from viewmend.parameters import Integer, Real, Rule, check_parameters, fresh_fit, short

# Parameters that decide how the data is read, which happens once.
READING = ("dtype", "missing_cells", "view_sizes")
# What the best estimator takes over from the one that read the data.
FROM_READING = ("cell_fills_", "sample_ids_")
# What the search takes over from the best estimator.
TAKEN_OVER = (
    "classes_",
    "label_distributions_",
    "n_features_in_",
    "transduction_",
    "view_n_features_",
    "view_names_",
)


@dataclass(frozen=True)
class Comparison:
    """The score of one setting in one fold; callbacks of a search get it with the `Run`.

    Attributes
    ----------
    iteration, fold : int
        Counted from 1.
    params : dict
        The setting.
    score : float
        Share of the held-out labels of the fold that were predicted correctly.
    """

    iteration: int
    fold: int
    params: Point
    score: float

    def summary(self) -> str:
        """One line."""
        values = ", ".join(f"{name}={value!r}" for name, value in self.params.items())
        where = f"comparison {self.iteration:3d}  fold {self.fold}"
        return f"{where}  accuracy {self.score:6.1%}  {values}"


class LabelSearchCV(
    WatchedMixin, HTMLReprMixin, MetaEstimatorMixin, ClassifierMixin, BaseEstimator
):
    """Grid search by cross-validation over the labels, made for the classifiers here.

    The labelled samples are split into folds, class by class. Each fold in turn is treated as
    unlabelled in a fit, and the predictions are compared with its labels. Three things make this
    fast: all settings share the neighbours, anchors and kernels of the samples, which do not depend
    on labels; after each fold only the best third of the settings continues; and these fits have
    fewer rounds than the final one. One thing makes it safe: at the end, the best setting is
    compared with the original one in longer fits, and replaces it only if it is better by more than
    ``margin`` standard errors, because with few labels small differences are chance.

    The graphs of AGF-TI with ``imputation="graph"`` hardly depend on labels. So one graph per
    setting is learned without labels and used for all folds, and the best setting must be better by
    the margin already with these graphs. Grids over parameters that do not change such graphs, such
    as ``propagation_damping``, need a fit per setting and fold.

    Parameters
    ----------
    estimator : MendClassifier or AGFTIClassifier
        The estimator with its original settings. Its callbacks, and the log of ``verbose``, follow
        the final fit only. Callbacks of the search itself get every `Comparison`; one that stops
        ends the comparisons after the current fold.
    param_grid : dict or list of dict, optional
        Values to try for each parameter; by default the ``grid`` of the estimator. For every
        combination of parameters that change the neighbours, anchors or kernels, these are computed
        once and kept in memory.
    cv : int, default=3
        Number of folds. Classes with a single label are never held out.
    margin : float, default=1.0
        How many standard errors better than the original setting a setting must be to replace it.
        The larger, the fewer changes by chance.

    Attributes
    ----------
    best_estimator_ : MendClassifier or AGFTIClassifier
        Fitted on all labels with the best parameters.
    best_params_ : dict
        The best parameters.
    best_score_ : float
        Share of the held-out labels that the best setting predicted correctly, in the longest fits
        of each fold.
    best_index_ : int
        Index of the best setting in ``cv_results_``; 0 if the original setting was kept.
    cv_results_ : dict
        One entry per setting: first the original one, then the others by how many parameters they
        change. It has ``params`` and ``param_NAME``; ``split0_test_score`` and so on, NaN for folds
        after the setting had dropped out; ``mean_test_score``, over all labels of its folds;
        ``std_test_score``, between its folds; ``rank_test_score``, by the number of folds and then
        by the mean; ``n_folds``; and ``full_test_score``, of the settings in the last comparison.
    classes_, transduction_, label_distributions_, n_features_in_, view_n_features_, view_names_
        Attributes of ``best_estimator_``; so are ``feature_names_in_`` and ``view_feature_names_``.

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

    def __init__(
        self,
        estimator: TwoStepClassifier,
        param_grid: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        cv: int = 3,
        margin: float = 1.0,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.cv = cv
        self.margin = margin

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of all columns, (n_features_in_,), in the best estimator."""
        return self.best_estimator_.feature_names_in_

    @without_weights
    @with_callbacks
    def fit(
        self, X: Any, y: Any = None, mask: ArrayLike | None = None, groups: Any = None
    ) -> LabelSearchCV:
        """Search, then fit the best setting on all labels.

        After an error, or Ctrl-C, the search is not fitted, even if it was fitted before.

        Parameters
        ----------
        X, y, mask, groups
            As in ``fit`` of the estimator. Labels of one group are held out together, also in the
            comparisons of the search.

        Returns
        -------
        self
        """
        with fresh_fit(self):
            check_parameters(self, self._rules)
            self._search(X, y, mask, groups)
        return self

    def _search(self, X: Any, y: Any, mask: ArrayLike | None, groups: Any) -> None:
        runs = [Run(point) for point in self._points()]
        model = clone(self.estimator)
        model.check_groups(groups)
        samples = model.samples_to_fit(X, y, mask, model.dtype, groups)
        data, labels = samples.data, samples.labels
        order = canonical_order(data.views, data.observed, labels.codes)
        folds = label_folds(labels.codes, order, self.cv, labels.groups)
        shared = SharedGeometry(self.estimator, data, labels)
        contest = contest_for(shared, folds, [run.point for run in runs[1:]])
        with limited_threads(self.estimator.n_jobs):
            with self._watched(_most_comparisons(len(runs), len(folds))):
                self._race(runs, contest, len(folds))
            best = contest.last_comparison(runs[0], leader(runs), self.margin)
            self.best_estimator_ = shared.fit(best.point, labels)
        # Known since the samples were read, once for all fits.
        for name in FROM_READING:
            if hasattr(model, name):
                setattr(self.best_estimator_, name, getattr(model, name))
        samples.give_back(self.best_estimator_)
        self._store(runs, best)

    def fit_predict(
        self, X: Any, y: Any = None, mask: ArrayLike | None = None, groups: Any = None
    ) -> np.ndarray:
        """Search and return the classes of the samples of ``fit``; parameters as in ``fit``.

        Returns
        -------
        array (n_samples,)
        """
        return self.fit(X, y, mask, groups).transduction_

    def predict(self, X: Any, mask: ArrayLike | None = None) -> np.ndarray:
        """Classes (n_new,) of new samples, by the best estimator; parameters as there."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X, mask)

    def predict_proba(self, X: Any, mask: ArrayLike | None = None) -> np.ndarray:
        """Probabilities (n_new, n_classes), by the best estimator; parameters as there."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X, mask)

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        mask: ArrayLike | None = None,
    ) -> float:
        """Accuracy on the labelled samples of ``y``; parameters as in the estimator."""
        return score_labelled(self, X, y, sample_weight, mask)

    def __sklearn_tags__(self) -> Tags:
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
        points = _points_of(grid)
        names = sorted({name for point in points for name in point})
        _check_names(names, self.estimator)
        for point in [{}, *points]:
            clone(self.estimator).set_params(**point).validate_parameters()
        as_given = {name: getattr(self.estimator, name) for name in names}
        # Of points that score the same the first wins, so that nothing changes without reason.
        others = sorted(points, key=lambda point: _n_changes(point, as_given))
        return [as_given, *(point for point in others if _n_changes(point, as_given) > 0)]

    def _race(self, runs: Sequence[Run], contest: Contest, n_folds: int) -> None:
        """Compare settings in short fits, fewer in every fold, until a callback stops it."""
        watchers, n_done = self._all_callbacks(), 0
        for fold in range(n_folds):
            reasons = []
            for run in still_racing(runs):
                run.hits.append(contest.short_hits(fold, run))
                n_done += 1
                comparison = Comparison(n_done, fold + 1, run.point, share(run.hits[-1:]))
                reasons.append(reason_to_stop(watchers, comparison, run))
            if any(reasons):
                break

    def _store(self, runs: Sequence[Run], best: Run) -> None:
        self.best_index_ = next(i for i, run in enumerate(runs) if run is best)
        self.best_params_ = dict(best.point)
        self.best_score_ = share(best.best_known)
        self.cv_results_ = _results(runs)
        for name in TAKEN_OVER:
            setattr(self, name, getattr(self.best_estimator_, name))
        if columns := columns_of_fit(self.best_estimator_):
            self.view_feature_names_ = columns


def _most_comparisons(n_runs: int, n_folds: int) -> int:
    """Of a race that no callback stops."""
    total = 0
    for _ in range(n_folds):
        total += n_runs
        n_runs = 1 + math.ceil(SURVIVORS * (n_runs - 1))
    return total


def _points_of(grid: Any) -> list[Point]:
    """All points of a grid in any of the forms that scikit-learn takes."""
    try:
        return list(ParameterGrid(grid))
    except (TypeError, ValueError) as error:
        msg = (
            f"param_grid of LabelSearchCV must be a dict of lists of values, a list of such dicts "
            f"or None, got {short(grid)} ({error}); pass values to try by parameter"
        )
        raise InvalidParameterError(msg) from error


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


def _n_changes(point: Point, as_given: Point) -> int:
    return sum(content(point[name]) != content(as_given[name]) for name in point)


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
        "full_test_score": np.array([share(run.full_hits) for run in runs]),
    }


def _column(points: Sequence[Point], name: str) -> np.ma.MaskedArray:
    """Values of one parameter, masked where a point leaves it as it is."""
    column: np.ma.MaskedArray = np.ma.masked_all(len(points), dtype=object)
    for i, point in enumerate(points):
        if name in point:
            column[i] = point[name]
    return column
