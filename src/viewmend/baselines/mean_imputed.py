"""A common first attempt: fill missing views with means, join the columns, spread labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.semi_supervised import LabelSpreading

from viewmend.baselines.base import BaselineClassifier, Solution
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels
from viewmend.impute import ColumnMeanImputer
from viewmend.parameters import Integer, Real, Rule


@dataclass(eq=False, repr=False)
class MeanImputedLabelSpreading(BaselineClassifier):
    """scikit-learn's label spreading on mean-imputed, concatenated views.

    Samples with the same missing views look alike after imputation, so that its graph splits into
    parts by missing views. ``unreachable_`` shows which samples no label reaches.

    Parameters
    ----------
    spreading : float in (0, 1), default=0.2
        ``alpha`` of `sklearn.semi_supervised.LabelSpreading`.
    n_neighbors, view_sizes
        As in `BaselineClassifier`.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, unreachable_
        As in `viewmend.AGFTIClassifier`.
    n_iter_ : int
        Number of iterations of label spreading.
    """

    n_neighbors: int = 7
    spreading: float = 0.2
    view_sizes: Sequence[int] | None = None

    _rules: ClassVar[dict[str, Rule]] = {
        "n_neighbors": Integer(1),
        "spreading": Real(0, 1, low_open=True, high_open=True),
    }

    def _solve(self, data: MultiViewData, labels: Labels, _rng: np.random.Generator) -> Solution:
        X = np.hstack(ColumnMeanImputer().fit_transform(data).views)
        k = min(self.n_neighbors, data.n_samples)
        spreader = LabelSpreading(
            kernel="knn", n_neighbors=k, alpha=self.spreading, max_iter=1000
        ).fit(X, labels.codes)
        F = spreader.label_distributions_
        return Solution(F, F.sum(axis=1) > 0, extras={"n_iter_": spreader.n_iter_})
