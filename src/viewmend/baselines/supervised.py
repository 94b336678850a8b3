"""Common classifiers that use labelled samples only: one per view, or one for all views.

Late fusion fits a classifier to each view and averages their predictions over the views that a
sample has. The other kind fills missing rows with means, joins the views and fits one classifier.
Both kinds share a class here, on top of the classifiers of scikit-learn.

J. Kittler et al., "On combining classifiers", IEEE TPAMI 1998: the product rule, which on the log
scale is a mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from viewmend.baselines.base import BaselineClassifier, Grid, Solution
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels
from viewmend.impute import ColumnMeanImputer
from viewmend.models.inductive import InductiveMixin
from viewmend.parameters import Integer, OneOf, Real, Rule

_C_RULES: dict[str, Rule] = {"C": Real(0, low_open=True), "class_weight": OneOf(None, "balanced")}
_C_GRID: Grid = {"C": (0.01, 0.1, 1.0, 10.0, 100.0)}


class _SupervisedClassifier(InductiveMixin, BaselineClassifier):
    """Base: subclasses say what learns on a view (`_learner`); the views are not scaled here."""

    def _learner(self, rng: np.random.Generator) -> Any:
        raise NotImplementedError

    def _least_share(self) -> float:
        """No share is below: a learner that gives zero would overrule all other views."""
        return float(np.finfo(float).tiny)

    def _scaled(self, data: MultiViewData) -> MultiViewData:
        return data

    def _prepare_new(self, data: MultiViewData) -> MultiViewData:
        return data

    def _solve(self, data: MultiViewData, labels: Labels, rng: np.random.Generator) -> Solution:
        self.estimators_ = tuple(
            fitted_on_view(self._learner(rng), view, labels.labelled & seen, labels.codes)
            for view, seen in zip(data.views, data.observed.T, strict=True)
        )
        F = self._fused(data)
        return Solution(F, F.sum(axis=1) > 0)

    def _score_new(self, data: MultiViewData, _X: Any) -> np.ndarray:
        """Class shares, fused over the views that a sample has."""
        return self._fused(self._prepare_new(data))

    def _fused(self, data: MultiViewData) -> np.ndarray:
        """Class shares (n_samples, n_classes): mean of their logarithms over a sample's views.

        They are zero where no view of a sample can judge.
        """
        total = np.zeros((data.n_samples, len(self.classes_)))
        for estimator, view, seen in zip(
            self.estimators_, data.views, data.observed.T, strict=True
        ):
            if estimator is not None and seen.any():
                shares = class_shares(estimator, view[seen], len(self.classes_))
                total[seen] += np.log(np.maximum(shares, self._least_share()))
        shares = softmax(total / data.observed.sum(axis=1, keepdims=True), axis=1)
        return np.where(total.any(axis=1, keepdims=True), shares, 0)


@dataclass(eq=False, repr=False)
class LateFusionClassifier(_SupervisedClassifier):
    """A logistic regression per view; the log probabilities are averaged. Nothing is imputed.

    Columns are standardised. It learns from labelled samples only. A view in which no sample of a
    class is labelled does not change the probability of that class.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the ridge penalty.
    class_weight : {None, "balanced"}, default=None
        As in scikit-learn: "balanced" gives all classes the same total weight, however few labels
        they have.
    view_sizes
        As in `BaselineClassifier`.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, unreachable_
        As in `viewmend.AGFTIClassifier`; a sample is unreachable if none of its views has labels of
        two classes.
    estimators_ : tuple of Pipeline or None
        One per view; None for views without labelled samples of two classes.
    """

    C: float = 1.0
    class_weight: str | None = None
    view_sizes: Sequence[int] | None = None

    _rules: ClassVar[dict[str, Rule]] = _C_RULES
    grid: ClassVar[Grid] = _C_GRID

    def _learner(self, _rng: np.random.Generator) -> Any:
        regression = LogisticRegression(C=self.C, class_weight=self.class_weight, max_iter=1000)
        return make_pipeline(StandardScaler(), regression)


@dataclass(eq=False, repr=False)
class LateTreesClassifier(_SupervisedClassifier):
    """Extremely randomised trees per view, fused as in `LateFusionClassifier`.

    A class without any vote gets the share of half a tree, so that one view cannot overrule all
    others. P. Geurts et al., "Extremely randomized trees", Machine Learning 2006.

    Parameters
    ----------
    n_estimators : int, default=300
        Number of trees per view.
    class_weight
        As in `LateFusionClassifier`.
    random_state, view_sizes
        As in `BaselineClassifier`.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, unreachable_, estimators_
        As in `LateFusionClassifier`.
    """

    n_estimators: int = 300
    class_weight: str | None = None
    random_state: int | np.random.Generator | None = None
    view_sizes: Sequence[int] | None = None

    _rules: ClassVar[dict[str, Rule]] = {
        "n_estimators": Integer(1),
        "class_weight": OneOf(None, "balanced"),
    }

    def _least_share(self) -> float:
        return 0.5 / self.n_estimators

    def _learner(self, rng: np.random.Generator) -> Any:
        return ExtraTreesClassifier(
            self.n_estimators,
            class_weight=self.class_weight,
            random_state=int(rng.integers(2**31)),
        )


class _JoinedViewsMixin:
    """Missing rows become the mean of those seen, and all views one."""

    def _prepare(self, data: MultiViewData, _labels: Labels) -> MultiViewData:
        self._imputer = ColumnMeanImputer()
        return joined_views(self._imputer.fit_transform(data))

    def _prepare_new(self, data: MultiViewData) -> MultiViewData:
        return joined_views(self._imputer.transform(data))


@dataclass(eq=False, repr=False)
class MeanImputedLogistic(_JoinedViewsMixin, LateFusionClassifier):
    """Logistic regression on mean-imputed, concatenated and standardised views.

    Parameters
    ----------
    C, class_weight, view_sizes
        As in `LateFusionClassifier`.

    Attributes
    ----------
    classes_, transduction_, label_distributions_
        As in `viewmend.AGFTIClassifier`.
    estimators_ : tuple of one Pipeline
        The fitted model of scikit-learn.
    """


@dataclass(eq=False, repr=False)
class MeanImputedSVM(_JoinedViewsMixin, _SupervisedClassifier):
    """Support vector machine with a Gaussian kernel, on the columns of `MeanImputedLogistic`.

    Its ``label_distributions_`` rank the classes, but are not probabilities.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty.
    class_weight, view_sizes
        As in `LateFusionClassifier`.

    Attributes
    ----------
    classes_, transduction_, label_distributions_
        As in `viewmend.AGFTIClassifier`.
    estimators_ : tuple of one Pipeline
        The fitted model of scikit-learn.
    """

    C: float = 1.0
    class_weight: str | None = None
    view_sizes: Sequence[int] | None = None

    _rules: ClassVar[dict[str, Rule]] = _C_RULES
    grid: ClassVar[Grid] = _C_GRID

    def _learner(self, _rng: np.random.Generator) -> Any:
        return make_pipeline(StandardScaler(), SVC(C=self.C, class_weight=self.class_weight))


def fitted_on_view(
    learner: BaseEstimator, view: np.ndarray, rows: np.ndarray, codes: np.ndarray
) -> Any | None:
    """The learner fitted on some rows of a view, None where they are not of two classes.

    ``rows`` (n_samples,) is a mask of the labelled samples that the view has, ``codes``
    (n_samples,) are the classes as 0, 1, ...
    """
    if np.unique(codes[rows]).size < 2:
        return None
    return learner.fit(view[rows], codes[rows])


def class_shares(estimator: Any, X: np.ndarray, n_classes: int) -> np.ndarray:
    """Shares (n_samples, n_classes) by a learner that may know some of the classes only.

    A class it does not know has the neutral share ``1 / n_classes``; the known ones divide the
    rest.
    """
    known = estimator.classes_
    if hasattr(estimator, "predict_proba"):
        shares = estimator.predict_proba(X)
    else:
        margins = estimator.decision_function(X)
        shares = softmax(np.c_[-margins, margins] if margins.ndim == 1 else margins, axis=1)
    everything = np.full((len(X), n_classes), 1 / n_classes)
    everything[:, known] = shares * (len(known) / n_classes)
    return everything


def joined_views(data: MultiViewData) -> MultiViewData:
    """Complete views as one."""
    everyone = np.ones((data.n_samples, 1), dtype=bool)
    return MultiViewData((np.hstack(data.views),), everyone, ("all views",))
