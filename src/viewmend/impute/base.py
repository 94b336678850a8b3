"""What every imputer shares: input checks, the layout seen in fit, observed rows kept."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from viewmend.data.cells import DEFAULT, fill_cells, learn_fills
from viewmend.data.column_names import ColumnNamesMixin, columns_of_data
from viewmend.data.container import MultiViewData
from viewmend.data.matching import views_of_fit
from viewmend.data.validation import check_new_views, check_views
from viewmend.exceptions import DataWarning
from viewmend.html_repr import HTMLReprMixin
from viewmend.parameters import Rule, check_parameters, fresh_fit


class ViewImputer(ColumnNamesMixin, HTMLReprMixin, TransformerMixin, BaseEstimator):
    """Base of the imputers.

    Subclasses have the parameter ``view_sizes`` and define `_rules`, `_learn` and `_complete`.
    Both methods get samples with at least one view, and return one array (n_samples, n_features_v)
    per view, of which only the missing rows are used. A sample without any view stays missing, with
    a warning, because an imputer could only invent an average sample.
    """

    # Of the numbers that come out: raised with every change that gives others for the same input
    # and parameters, so that what is kept of older ones is not taken for them. A test holds it to
    # the fills of fixed data.
    version: ClassVar[int] = 1
    # One rule per parameter, see `viewmend.parameters`.
    _rules: ClassVar[dict[str, Rule]] = {}
    view_sizes: Sequence[int] | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None, mask: ArrayLike | None = None) -> Self:  # noqa: ARG002
        """Learn from samples with missing views.

        After an error, or Ctrl-C, the imputer is not fitted, even if it was fitted before.

        Parameters
        ----------
        X : list, tuple or dict of arrays (n_samples, n_features_v), MultiViewData, or 2-D array
            The views. A row of NaN means that the sample does not have this view. NaN in other rows
            are missing cells, which are filled first, view by view (`viewmend.data.cells`).
        y : ignored
        mask : array (n_samples, n_views) of bool, optional
            False where a sample does not have a view; its row is then ignored.

        Returns
        -------
        self
        """
        with fresh_fit(self):
            self._learn(_seen_part(self._check_fit(X, mask)))
        return self

    def fit_transform(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002 - scikit-learn's order
        mask: ArrayLike | None = None,
    ) -> MultiViewData:
        """Learn from samples with missing views and complete them; parameters as in ``fit``.

        Returns
        -------
        MultiViewData
            All rows of samples with at least one view. Observed rows are those of ``X``, with
            missing cells filled.
        """
        with fresh_fit(self):
            data = self._check_fit(X, mask)
            return _completed(data, self._learn(_seen_part(data)))

    def transform(self, X: Any, mask: ArrayLike | None = None) -> MultiViewData:
        """Complete new samples, which may have any subset of the views.

        Parameters
        ----------
        X : views of the new samples, in any form that ``fit`` takes
            Pass None for a view that none of them has, or leave it out of a dict.
        mask : array (n_new, n_views) of bool, optional
            False where a new sample does not have a view; replaces rows of NaN.

        Returns
        -------
        MultiViewData
            All rows of samples with at least one view. Observed rows are those of ``X``, with
            missing cells filled.
        """
        check_is_fitted(self)
        data = check_new_views(
            X,
            views_of_fit(self),
            mask=mask,
            view_sizes=self.view_sizes,
        )
        data = fill_cells(data, self.cell_fills_)
        part = _seen_part(data)
        complete = part.observed.all()
        return _completed(data, part.views if complete else self._complete(part))

    def _check_fit(self, X: Any, mask: ArrayLike | None) -> MultiViewData:
        check_parameters(self, self._rules)
        data = check_views(X, mask=mask, view_sizes=self.view_sizes)
        self.cell_fills_ = learn_fills(data, DEFAULT)
        data = fill_cells(data, self.cell_fills_)
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


def _seen_part(data: MultiViewData) -> MultiViewData:
    """The samples that have a view; the others are warned about."""
    n_unseen = int(data.unseen.sum())
    if n_unseen == 0:
        return data
    msg = (
        f"{n_unseen} of {data.n_samples} samples have no view at all and stay missing, as nothing "
        f"is known to fill them by; drop them, or pass the result to a classifier of viewmend"
    )
    warnings.warn(msg, DataWarning, stacklevel=4)
    return data[~data.unseen]


def _completed(data: MultiViewData, filled: Sequence[np.ndarray]) -> MultiViewData:
    """The data with the rows that views of seen samples miss taken from ``filled``."""
    views, seen = [], ~data.unseen
    for observed, view, fill in zip(data.observed.T, data.views, filled, strict=True):
        whole = np.where(observed[seen, None], view[seen], fill)
        if not seen.all():
            whole, fill = np.full(view.shape, np.nan), whole
            whole[seen] = fill
        views.append(whole)
    observed = np.broadcast_to(seen[:, None], data.observed.shape).copy()
    return replace(data, views=tuple(views), observed=observed)
