"""What a reader would use instead of Mend: each tool predicts the class of every sample.

All of them have their usual defaults, as Mend has; none is tuned. Classifiers that need complete
tables get all views side by side, missing views filled in and columns standardised.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC

from viewmend import MendClassifier
from viewmend.baselines import LateFusionClassifier, SimilarityFusionClassifier
from viewmend.baselines.supervised import class_shares, fitted_on_view
from viewmend.data import MultiViewData
from viewmend.impute import ColumnMeanImputer, NeighbourImputer

# Called with the views and the labels, -1 where there is none; gives classes (n_samples,).
Tool = Callable[[MultiViewData, np.ndarray], np.ndarray]

N_FACTORS = 15
MOFA_ROUNDS = 100


def estimator(make: Callable[[], Any]) -> Tool:
    """A classifier of this library."""
    return lambda data, y: make().fit(data, y).transduction_


def on_filled(imputer: Callable[[], Any], make: Callable[[], Any]) -> Tool:
    """A learner on all columns side by side, after missing views were filled in."""

    def predict(data: MultiViewData, y: np.ndarray) -> np.ndarray:
        return from_labelled(make(), np.hstack(imputer().fit_transform(data).views), y)

    return predict


def from_labelled(learner: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Classes of all rows by a learner that sees the labelled ones, its columns standardised."""
    rows = y >= 0
    return make_pipeline(StandardScaler(), learner).fit(X[rows], y[rows]).predict(X)


def spread_labels(data: MultiViewData, y: np.ndarray) -> np.ndarray:
    """scikit-learn's label spreading over nearest neighbours, on mean-imputed columns."""
    X = StandardScaler().fit_transform(np.hstack(ColumnMeanImputer().fit_transform(data).views))
    spreading = LabelSpreading(kernel="knn", n_neighbors=7, max_iter=1000).fit(X, y)
    return spreading.transduction_


def boost(data: MultiViewData, y: np.ndarray) -> np.ndarray:
    """Gradient boosting, which takes missing values as they are.

    Small trees and few bins: with so few labels they are as accurate as the defaults, and several
    times faster.
    """
    rows, X = y >= 0, data.stacked()
    # Columns that no labelled sample has cannot be binned.
    X = X[:, ~np.isnan(X[rows]).all(axis=0)]
    booster = HistGradientBoostingClassifier(
        max_iter=50,
        max_leaf_nodes=8,
        max_bins=32,
        min_samples_leaf=2,
        early_stopping=False,
        random_state=0,
    )
    return booster.fit(X[rows], y[rows]).predict(X)


def late_svms(data: MultiViewData, y: np.ndarray) -> np.ndarray:
    """A support vector machine per view, and the mean of what those of a sample's views say."""
    n_classes = y.max() + 1
    total = np.zeros((data.n_samples, n_classes))
    for view, seen in zip(data.views, data.observed.T, strict=True):
        machine = make_pipeline(StandardScaler(), SVC())
        fitted = fitted_on_view(machine, view, (y >= 0) & seen, y)
        if fitted is not None and seen.any():
            total[seen] += np.log(class_shares(fitted, view[seen], n_classes))
    return total.argmax(axis=1)


class MofaFactors:
    """Factors of MOFA, which are learnt without labels, then a logistic regression on them.

    The factors of the last data are kept: one task with more labels has the same.
    """

    def __init__(self) -> None:
        self._last: tuple[MultiViewData, np.ndarray] | None = None

    def __call__(self, data: MultiViewData, y: np.ndarray) -> np.ndarray:
        if self._last is None or not same_views(self._last[0], data):
            self._last = data, mofa_factors(data)
        return from_labelled(LogisticRegression(max_iter=1000), self._last[1], y)


def same_views(one: MultiViewData, other: MultiViewData) -> bool:
    return one.n_views == other.n_views and all(
        np.array_equal(*pair, equal_nan=True) for pair in zip(one.views, other.views, strict=True)
    )


def mofa_factors(data: MultiViewData) -> np.ndarray:
    """Factors (n_samples, n_factors) of the reference implementation, mofapy2."""
    from mofapy2.run.entry_point import entry_point

    n_factors = min(N_FACTORS, sum(data.n_features))
    # It prints its name and its progress whatever it is told.
    with contextlib.redirect_stdout(io.StringIO()):
        mofa = entry_point()
        mofa.set_data_options(scale_views=True)
        mofa.set_data_matrix(
            [[view] for view in data.views],
            likelihoods=["gaussian"] * data.n_views,
            views_names=[f"view {v}" for v in range(data.n_views)],
            groups_names=["all"],
            samples_names=[[str(i) for i in range(data.n_samples)]],
        )
        mofa.set_model_options(factors=n_factors, spikeslab_weights=False, ard_weights=True)
        mofa.set_train_options(iter=MOFA_ROUNDS, convergence_mode="fast", seed=0, quiet=True)
        mofa.build()
        mofa.run()
    return np.asarray(mofa.model.nodes["Z"].getExpectation())


OURS = "Mend"
TOOLS: Mapping[str, Tool] = {
    OURS: estimator(lambda: MendClassifier(n_jobs=1)),
    "label spreading": spread_labels,
    "logistic regression": on_filled(ColumnMeanImputer, lambda: LogisticRegression(max_iter=1000)),
    "logistic regression, kNN-imputed": on_filled(
        NeighbourImputer, lambda: LogisticRegression(max_iter=1000)
    ),
    "random forest, kNN-imputed": on_filled(
        NeighbourImputer, lambda: RandomForestClassifier(300, random_state=0)
    ),
    "gradient boosting": boost,
    "late fusion, logistic": estimator(LateFusionClassifier),
    "late fusion, SVM": late_svms,
    "SNF + spreading": estimator(SimilarityFusionClassifier),
    "MOFA + logistic": MofaFactors(),
}
# What a tool needs beyond the library and its tests.
NEEDS = {"MOFA + logistic": "mofapy2"}


def at_hand() -> dict[str, Tool]:
    """The tools whose packages are installed."""
    return {
        name: tool
        for name, tool in TOOLS.items()
        if name not in NEEDS or importlib.util.find_spec(NEEDS[name])
    }
