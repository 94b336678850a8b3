"""Gradient boosting in which missing views are missing values.

G. Ke et al., "LightGBM: a highly efficient gradient boosting decision tree", NeurIPS 2017, as
implemented by scikit-learn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from viewmend.baselines.base import BaselineClassifier, Grid, Solution, with_unit_rows
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels
from viewmend.models.inductive import InductiveMixin
from viewmend.parameters import Integer, Real, Rule


@dataclass(eq=False, repr=False)
class NaNBoostingClassifier(InductiveMixin, BaselineClassifier):
    """Histogram gradient boosting on the stacked views, with NaN where a view is missing.

    Every split sends missing values to the side that fits the labels better. It learns from
    labelled samples only. With scikit-learn's default of 20 samples in a leaf, fewer than 40
    labelled samples could not be split at all, and one class would be predicted for all. So
    ``min_samples_leaf`` is smaller here.

    Parameters
    ----------
    max_iter : int, default=100
        Number of rounds; each adds a tree per class.
    learning_rate : float, default=0.1
        Weight of every new tree.
    min_samples_leaf : int, default=2
        Least number of labelled samples in a leaf.
    random_state, view_sizes
        As in `BaselineClassifier`.

    Attributes
    ----------
    classes_, transduction_, label_distributions_
        As in `viewmend.AGFTIClassifier`.
    estimator_ : HistGradientBoostingClassifier
        The fitted model of scikit-learn.
    """

    max_iter: int = 100
    learning_rate: float = 0.1
    min_samples_leaf: int = 2
    random_state: int | np.random.Generator | None = None
    view_sizes: Sequence[int] | None = None

    _rules: ClassVar[dict[str, Rule]] = {
        "max_iter": Integer(1),
        "learning_rate": Real(0, low_open=True),
        "min_samples_leaf": Integer(1),
    }
    grid: ClassVar[Grid] = {"min_samples_leaf": (1, 2, 5), "learning_rate": (0.05, 0.1)}

    def _solve(self, data: MultiViewData, labels: Labels, rng: np.random.Generator) -> Solution:
        rows = np.flatnonzero(labels.labelled)
        # Nothing can be learnt from a view that no labelled sample has, nor can it be binned.
        self._columns = np.repeat(data.observed[rows].any(axis=0), data.n_features)
        X = data.stacked()[:, self._columns]
        booster = HistGradientBoostingClassifier(
            max_iter=self.max_iter,
            learning_rate=self.learning_rate,
            min_samples_leaf=self.min_samples_leaf,
            # Few labels have few distinct values: more bins are never used, but cost time.
            max_bins=int(np.clip(len(rows), 2, 255)),
            # A held-out part would take the only label of some class.
            early_stopping=False,
            random_state=int(rng.integers(2**31)),
        ).fit(X[rows], labels.codes[rows])
        return Solution(booster.predict_proba(X), extras={"estimator_": booster})

    def _score_new(self, data: MultiViewData, _X: Any) -> np.ndarray:
        """Class probabilities of the boosted trees."""
        data = with_unit_rows(data)
        return self.estimator_.predict_proba(data.stacked()[:, self._columns])
