"""What every imputer shares: input checks, the layout seen in fit, observed rows kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from viewmend.data.column_names import ColumnNamesMixin, columns_of_data
from viewmend.data.container import MultiViewData
from viewmend.data.matching import views_of_fit
from viewmend.data.validation import check_new_views, check_views
from viewmend.html_repr import HTMLReprMixin
from viewmend.parameters import Rule, check_parameters, fresh_fit


class ViewImputer(ColumnNamesMixin, HTMLReprMixin, TransformerMixin, BaseEstimator):
    """Base of the imputers.

    Subclasses have the parameter ``view_sizes`` and define `_rules`, `_learn` and `_complete`.
    Both methods return one array (n_samples, n_features_v) per view, of which only the rows that
    the view misses are used.
    """

    # One rule per parameter, see `viewmend.parameters`.
    _rules: ClassVar[dict[str, Rule]] = {}
    view_sizes: Sequence[int] | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None, mask: ArrayLike | None = None) -> Self:  # noqa: ARG002
        """Learn from incomplete samples.

        After an error, or Ctrl-C, the imputer is not fitted, also if it was before.

        Parameters
        ----------
        X : list, tuple or dict of arrays (n_samples, n_features_v), MultiViewData, or 2-D array
            A sample missing from a view is a row of NaN there.
        y : ignored
        mask : array (n_samples, n_views) of bool, optional
            False marks a missing sample, whose row is then ignored.

        Returns
        -------
        self
        """
        with fresh_fit(self):
            self._learn(self._check_fit(X, mask))
        return self

    def fit_transform(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002 - scikit-learn's order
        mask: ArrayLike | None = None,
    ) -> MultiViewData:
        """Learn from incomplete samples and complete these; parameters as in ``fit``.

        Returns
        -------
        MultiViewData
            All rows observed; those of ``X`` unchanged.
        """
        with fresh_fit(self):
            data = self._check_fit(X, mask)
            return _completed(data, self._learn(data))

    def transform(self, X: Any, mask: ArrayLike | None = None) -> MultiViewData:
        """Complete new samples, seen through any subset of the views.

        Parameters
        ----------
        X : views of the new samples, in any form that ``fit`` takes
            A view that all of them miss is None, or left out of a dict.
        mask : array (n_new, n_views) of bool, optional

        Returns
        -------
        MultiViewData
            All rows observed; those of ``X`` unchanged.
        """
        check_is_fitted(self)
        data = check_new_views(X, views_of_fit(self), mask=mask, view_sizes=self.view_sizes)
        complete = data.observed.all()
        return _completed(data, data.views if complete else self._complete(data))

    def _check_fit(self, X: Any, mask: ArrayLike | None) -> MultiViewData:
        check_parameters(self, self._rules)
        data = check_views(X, mask=mask, view_sizes=self.view_sizes)
        self.view_names_ = data.names
        self.view_n_features_ = data.n_features
        self.n_features_in_ = sum(data.n_features)
        self._remember_columns(columns_of_data(data))
        self._coverage = data.observed.mean(axis=0)
        return data

    def _learn(self, data: MultiViewData) -> Sequence[np.ndarray]:
        """Store what was learnt, and complete the samples of fit."""
        raise NotImplementedError

    def _complete(self, data: MultiViewData) -> Sequence[np.ndarray]:
        """Complete new samples."""
        raise NotImplementedError


def _completed(data: MultiViewData, filled: Sequence[np.ndarray]) -> MultiViewData:
    views = tuple(
        np.where(seen[:, None], view, fill)
        for seen, view, fill in zip(data.observed.T, data.views, filled, strict=True)
    )
    return replace(data, views=views, observed=np.ones_like(data.observed))
