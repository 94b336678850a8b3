"""Classes of new samples, which were not in the fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from sklearn.utils.validation import check_is_fitted

from viewmend.core.common.zero_rows import with_evidence
from viewmend.data.cells import CellFill, fill_cells
from viewmend.data.container import MultiViewData
from viewmend.data.matching import views_of_fit
from viewmend.data.validation import check_new_views
from viewmend.models.apart import comparable_new


class InductiveMixin:
    """``predict`` and ``predict_proba`` for classifiers that can score new samples.

    Subclasses define ``_score_new(data, X)``, which returns scores (n_new, n_classes) of any scale;
    negative ones count as zero. It gets the samples that can be compared, and ``X`` as it came.
    """

    # Of MultiViewClassifier and of the subclass.
    classes_: np.ndarray
    view_names_: tuple[str, ...]
    view_n_features_: tuple[int, ...]
    view_sizes: Sequence[int] | None
    zero_row_evidence_: np.ndarray | None
    cell_fills_: tuple[CellFill, ...]
    _distributions: Callable[[np.ndarray], np.ndarray]
    _score_new: Callable[..., np.ndarray]
    _dense_columns: ClassVar[int | None]

    def predict(self, X: Any, mask: ArrayLike | None = None) -> np.ndarray:
        """Classes of new samples, which may have any of the views.

        Parameters
        ----------
        X, mask
            As in ``predict_proba``.

        Returns
        -------
        array (n_new,)
        """
        shares = self.predict_proba(X, mask)
        return self.classes_[self._decided(shares)]

    def predict_proba(self, X: Any, mask: ArrayLike | None = None) -> np.ndarray:
        """Class probabilities of new samples, which may have any of the views.

        The probabilities of the samples of ``fit`` are in ``label_distributions_``. Samples without
        any view get the class shares of the labelled samples, with a warning.

        Parameters
        ----------
        X : views of the new samples, in any form that ``fit`` takes
            Pass None for a view that none of them has, or leave it out of a dict.
        mask : array (n_new, n_views) of bool, optional
            False where a sample does not have a view; replaces rows of NaN.

        Returns
        -------
        array (n_new, n_classes)
            Rows sum to one.
        """
        data = self._check_predict(X, mask)
        evidence = self.zero_row_evidence_
        part = comparable_new(data, zero_apart=evidence is not None)
        if part.whole:
            return self._distributions(self._score_new(data, X))
        scores = np.zeros((data.n_samples, len(self.classes_)))
        if len(part.rows):
            scores[part.rows] = self._score_new(part.data, X)
        shares = self._distributions(scores)
        return shares if evidence is None else with_evidence(shares, part.zero, evidence)

    def _decided(self, shares: np.ndarray) -> np.ndarray:
        """Codes of the classes that the shares (n_new, n_classes) decide for: the largest."""
        return np.asarray(np.argmax(shares, axis=1))

    def _view_dtypes(self) -> Sequence[DTypeLike] | None:
        """Number types that the fit kept the views in; None if all are float64."""
        return None

    def _check_predict(self, X: Any, mask: Any) -> MultiViewData:
        check_is_fitted(self)
        data = check_new_views(
            X,
            views_of_fit(self),
            mask=mask,
            view_sizes=self.view_sizes,
            dtypes=self._view_dtypes(),
            dense_columns=self._dense_columns,
        )
        return fill_cells(data, self.cell_fills_)
