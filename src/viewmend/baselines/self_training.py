"""Self-training on mean-imputed, concatenated views.

D. Yarowsky, "Unsupervised word sense disambiguation rivaling supervised methods", ACL 1995, as
implemented by scikit-learn.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import SelfTrainingClassifier

from viewmend.baselines.base import BaselineClassifier, Grid, Solution, with_unit_rows
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels
from viewmend.impute import ColumnMeanImputer
from viewmend.models.inductive import InductiveMixin
from viewmend.parameters import Integer, Real, Rule


@dataclass(eq=False, repr=False)
class SelfTrainingLogistic(InductiveMixin, BaselineClassifier):
    """Logistic regression that labels confident samples and learns from them again.

    Rows of every view are scaled to unit length, missing rows are filled with the mean of the
    observed ones, and the views are joined. With few labels per class, logistic regression is
    seldom confident, so that often no sample is added at the usual ``threshold``; see
    ``n_pseudo_labels_``.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the ridge penalty.
    threshold : float in [0, 1), default=0.75
        Least probability for a prediction to become a label.
    max_iter : int, default=10
        Largest number of rounds of self-training.
    view_sizes
        As in `BaselineClassifier`.

    Attributes
    ----------
    classes_, transduction_, label_distributions_
        As in `viewmend.AGFTIClassifier`.
    estimator_ : LogisticRegression
        The model of the last round.
    n_pseudo_labels_ : int
        Number of samples that self-training labelled.
    """

    C: float = 1.0
    threshold: float = 0.75
    max_iter: int = 10
    view_sizes: Sequence[int] | None = None

    _rules: ClassVar[dict[str, Rule]] = {
        "C": Real(0, low_open=True),
        "threshold": Real(0, 1, high_open=True),
        "max_iter": Integer(1),
    }
    grid: ClassVar[Grid] = {"C": (1.0, 10.0, 100.0), "threshold": (0.5, 0.75, 0.9)}

    def _solve(self, data: MultiViewData, labels: Labels, _rng: np.random.Generator) -> Solution:
        self._imputer = ColumnMeanImputer()
        X = np.hstack(self._imputer.fit_transform(data).views)
        trainer = SelfTrainingClassifier(
            LogisticRegression(C=self.C, max_iter=1000),
            threshold=self.threshold,
            max_iter=self.max_iter,
        )
        with warnings.catch_warnings():
            # Nothing is wrong with samples that all have labels.
            warnings.filterwarnings("ignore", "y contains no unlabeled samples", UserWarning)
            trainer.fit(X, labels.codes)
        extras = {
            "estimator_": trainer.estimator_,
            "n_pseudo_labels_": int(np.sum(trainer.labeled_iter_ > 0)),
        }
        return Solution(trainer.predict_proba(X), extras=extras)

    def _score_new(self, data: MultiViewData, _X: Any) -> np.ndarray:
        """Class probabilities of the logistic regression."""
        data = with_unit_rows(data)
        return self.estimator_.predict_proba(np.hstack(self._imputer.transform(data).views))
