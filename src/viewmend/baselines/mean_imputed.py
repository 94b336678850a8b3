"""What most people try first: fill missing views with means, join the columns, spread labels."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.semi_supervised import LabelSpreading

from viewmend.core.common.scaling import unit_rows
from viewmend.models.base import MultiViewClassifier
from viewmend.parameters import Integer, Real, Rule, check_parameters

__all__ = ["MeanImputedLabelSpreading"]


class MeanImputedLabelSpreading(MultiViewClassifier):
    """scikit-learn's label spreading on mean-imputed, concatenated views.

    Samples with the same missing views look alike after imputation, so its graph falls apart by
    missing pattern: ``unreachable_`` shows how many samples no label reaches.

    Parameters
    ----------
    n_neighbors : int, default=7
    spreading : float in (0, 1), default=0.2
        ``alpha`` of `sklearn.semi_supervised.LabelSpreading`.
    view_sizes : sequence of int, optional
        Columns of every view where ``X`` is one stacked array.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, unreachable_
        As in `viewmend.AGFTIClassifier`.
    n_iter_ : int
    """

    _rules: ClassVar[dict[str, Rule]] = {
        "n_neighbors": Integer(1),
        "spreading": Real(0, 1, low_open=True, high_open=True),
    }

    def __init__(self, n_neighbors=7, spreading=0.2, view_sizes=None):
        self.n_neighbors = n_neighbors
        self.spreading = spreading
        self.view_sizes = view_sizes

    def fit(self, X, y=None, mask: ArrayLike | None = None) -> MeanImputedLabelSpreading:
        """Fit on labelled and unlabelled samples together; input as in `AGFTIClassifier`."""
        check_parameters(self, self._rules)
        data, labels = self._check_fit(X, y, mask)
        filled = np.hstack([_mean_filled(unit_rows(view)) for view in data.views])
        spreader = LabelSpreading(
            kernel="knn", n_neighbors=self.n_neighbors, alpha=self.spreading, max_iter=1000
        ).fit(filled, labels.codes)
        self.n_iter_ = spreader.n_iter_
        soft = spreader.label_distributions_
        self._store_transduction(soft, labels, soft.sum(axis=1) > 0)
        return self


def _mean_filled(view: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(view), np.nanmean(view, axis=0), view)
