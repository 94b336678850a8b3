"""Transformers of scikit-learn, applied to each view of incomplete multi-view data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from viewmend.data.container import MultiViewData
from viewmend.data.given_views import GivenViews
from viewmend.data.indices import identifying
from viewmend.data.input_arrays import as_mask, as_matrix, common_rows, some_of, view_title, width
from viewmend.data.matching import ViewsOfFit, all_views, in_layout_of_fit
from viewmend.data.opening import TABLE, default_name, opened, rows_of, split
from viewmend.data.sparse import check_sparse
from viewmend.exceptions import InvalidParameterError, InvalidViewsError
from viewmend.html_repr import HTMLReprMixin
from viewmend.parameters import fresh_fit, short

__all__ = ["PerView"]

PASSTHROUGH = "passthrough"


# What comes out is no frame, whatever scikit-learn is configured to wrap.
class PerView(  # type: ignore[call-arg]
    HTMLReprMixin, TransformerMixin, BaseEstimator, auto_wrap_output_keys=None
):
    """Apply a transformer of scikit-learn to the observed rows of every view.

    The transformer learns from observed rows only, and missing rows stay missing. So a
    `SimpleImputer` fills missing cells but never a whole row, and a `StandardScaler` uses the mean
    of the observed rows.

    Parameters
    ----------
    transformer : transformer, "passthrough", or dict or list of them
        One transformer, which is cloned for every view; or one per view, as a dict by name or a
        list in the order of the views. Views that a dict leaves out pass through unchanged. Labels
        are not passed to the transformers, because most samples have none. Transformers that need
        labels are refused.
    view_sizes : sequence of int, optional
        Number of columns of every view, if ``X`` is one stacked array.

    Attributes
    ----------
    transformers_ : dict of str to transformer or "passthrough"
        As fitted, by view.
    view_names_, view_n_features_, n_features_in_
        The layout of ``fit``.

    Notes
    -----
    Inner parameters are called ``transformer__n_components`` or, for one view,
    ``transformer__image__n_components``. Sparse matrices and frames reach the transformer
    unchanged, so that you can use `TruncatedSVD` on wide sparse views and `ColumnTransformer` on
    frames.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> from viewmend import PerView
    >>> image = np.array([[1.0, 10.0], [np.nan, np.nan], [3.0, 30.0]])
    >>> sound = np.array([[5.0], [6.0], [np.nan]])
    >>> data = PerView({"image": StandardScaler()}).fit_transform({"image": image, "sound": sound})
    >>> data.views[0].tolist()
    [[-1.0, -1.0], [nan, nan], [1.0, 1.0]]
    >>> data.observed.astype(int).tolist()
    [[1, 1], [0, 1], [1, 0]]
    """

    def __init__(self, transformer: Any, view_sizes: Sequence[int] | None = None) -> None:
        self.transformer = transformer
        self.view_sizes = view_sizes

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with ``deep`` also those of the transformers of the views."""
        params = super().get_params(deep)
        if deep:
            for name, inner in self._by_view().items():
                params[f"transformer__{name}"] = inner
                if hasattr(inner, "get_params"):
                    own = inner.get_params(deep)
                    params |= {f"transformer__{name}__{key}": own[key] for key in own}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of the transformers of the views."""
        params = dict(params)
        if "transformer" in params:
            self.transformer = params.pop("transformer")
        for name in self._by_view():
            prefix = f"transformer__{name}"
            if prefix in params:
                self._replace(name, params.pop(prefix))
            own = [key for key in params if key.startswith(f"{prefix}__")]
            values = {key.removeprefix(f"{prefix}__"): params.pop(key) for key in own}
            if values:
                self._by_view()[name].set_params(**values)
        self._check_known(params)
        super().set_params(**params)
        return self

    def _check_known(self, params: Mapping[str, Any]) -> None:
        """Refuse parameters of views that have no transformer of their own."""
        views = self._by_view()
        strange = [name for name in params if name.startswith("transformer__")]
        if views and strange:
            msg = (
                f"{strange[0]!r} is no parameter of PerView, whose views with a transformer are "
                f"{short(list(views))}; write transformer__{next(iter(views))}__..."
            )
            raise InvalidParameterError(msg)

    def fit(self, X: Any, y: Any = None, mask: ArrayLike | None = None) -> Self:
        """Fit every transformer on the observed rows of its view.

        Parameters
        ----------
        X : list, tuple or dict of arrays (n_samples, n_features_v), MultiViewData, or 2-D array
            The views. A row of NaN means that the sample does not have this view.
        y : ignored
            Nothing is done with it; pipelines pass it.
        mask : array (n_samples, n_views) of bool, optional
            False where a sample does not have a view; replaces rows of NaN.

        Returns
        -------
        self
        """
        self.fit_transform(X, y, mask)
        return self

    def fit_transform(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002 - scikit-learn's order
        mask: ArrayLike | None = None,
    ) -> MultiViewData:
        """Fit and transform the same samples; parameters as in ``fit``.

        Returns
        -------
        MultiViewData
            The transformed observed rows of ``X``, and NaN for missing ones.
        """
        with fresh_fit(self):
            given = _given(X, self.view_sizes)
            views = _read(given)
            self.transformers_ = self._chosen(list(views))
            observed = _observed(views, given.mask(mask))
            self._columns_in = dict(given.columns)
            self.view_names_ = tuple(views)
            self.view_n_features_ = tuple(view.shape[1] for view in views.values())
            self.n_features_in_ = sum(self.view_n_features_)
            self._coverage = observed.mean(axis=0)
            made = {
                name: self._made(name, views[name], observed[:, v], fit=True)
                for v, name in enumerate(views)
            }
            self._columns = self._columns_out(made)
            return self._assembled(X, made, observed)

    def transform(self, X: Any, mask: ArrayLike | None = None) -> MultiViewData:
        """Transform new samples, which may have any subset of the views.

        Parameters
        ----------
        X : views of the new samples, in any form that ``fit`` takes
            Pass None for a view that none of them has, or leave it out of a dict.
        mask : array (n_new, n_views) of bool, optional
            False where a new sample does not have a view; replaces rows of NaN.

        Returns
        -------
        MultiViewData
            The transformed observed rows of ``X``, and NaN for missing ones.
        """
        check_is_fitted(self)
        fit = ViewsOfFit(self.view_names_, self.view_n_features_, self._columns_in)
        given = _given_as_in_fit(X, self.view_sizes, fit)
        views = all_views(_read(given), fit)
        observed = _observed(views, given.mask(mask))
        made = {
            name: self._made(name, views[name], observed[:, v], fit=False)
            for v, name in enumerate(views)
            if observed[:, v].any()
        }
        return self._assembled(X, made, observed)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:  # noqa: ARG002
        """Names of the columns of all views side by side, as ``view__column``."""
        check_is_fitted(self)
        names = zip(self.view_names_, self._columns, strict=True)
        return np.array([f"{view}__{c}" for view, columns in names for c in columns], dtype=object)

    def _by_view(self) -> dict[str, Any]:
        """The transformers of the views; none if one is for all."""
        if isinstance(self.transformer, (list, tuple)):
            return {str(v): inner for v, inner in enumerate(self.transformer)}
        given = self.transformer if isinstance(self.transformer, Mapping) else {}
        return {str(name): inner for name, inner in given.items()}

    def _replace(self, name: str, inner: Any) -> None:
        changed = self._by_view() | {name: inner}
        self.transformer = changed if isinstance(self.transformer, Mapping) else [*changed.values()]

    def _chosen(self, names: list[str]) -> dict[str, Any]:
        """A transformer of its own for every view, or "passthrough"."""
        chosen = dict.fromkeys(names, self.transformer)
        if isinstance(self.transformer, (list, tuple)):
            if len(self.transformer) != len(names):
                msg = (
                    f"transformer must have one entry per view, {len(names)} for {short(names)}, "
                    f"but has {len(self.transformer)}; {PASSTHROUGH!r} leaves a view alone"
                )
                raise InvalidParameterError(msg)
            chosen = dict(zip(names, self.transformer, strict=True))
        elif isinstance(self.transformer, Mapping):
            unknown = [name for name in self._by_view() if name not in names]
            if unknown:
                msg = (
                    f"transformer names the unknown view {some_of(list(map(repr, unknown)))}: the "
                    f"views are {short(names)}; use these names"
                )
                raise InvalidParameterError(msg)
            chosen = dict.fromkeys(names, PASSTHROUGH) | self._by_view()
        return {name: _usable(inner, name) for name, inner in chosen.items()}

    def _made(self, name: str, view: Any, seen: np.ndarray, *, fit: bool) -> np.ndarray:
        """The observed rows of a view, transformed."""
        inner, title = self.transformers_[name], view_title(name)
        if not seen.any():
            msg = (
                f"{title} has no observed sample: expected at least one row that is neither NaN "
                f"nor masked; leave the view out"
            )
            raise InvalidViewsError(msg)
        rows = view.iloc[np.flatnonzero(seen)] if hasattr(view, "iloc") else view[seen]
        try:
            if inner is PASSTHROUGH:
                made = rows
            elif not fit:
                made = inner.transform(rows)
            elif hasattr(inner, "fit_transform"):
                made = inner.fit_transform(rows)
            else:
                made = inner.fit(rows).transform(rows)
        except (TypeError, ValueError) as error:
            msg = f"{title}: {type(inner).__name__} cannot be applied to its observed rows: {error}"
            raise InvalidViewsError(msg) from error
        made = as_matrix(made, title)
        if len(made) != seen.sum():
            msg = (
                f"{title}: {type(inner).__name__} made {len(made)} rows of {seen.sum()}, expected "
                f"as many as before; use a transformer that changes columns alone"
            )
            raise InvalidViewsError(msg)
        return made

    def _columns_out(self, made: Mapping[str, np.ndarray]) -> tuple[tuple[Any, ...], ...]:
        """Names of the columns that come out of every view, numbers where they have none."""
        columns = []
        for name, rows in made.items():
            after = _names_out(self.transformers_[name], self._columns_in.get(name))
            columns.append(tuple(range(rows.shape[1]) if after is None else after))
        return tuple(columns)

    def _assembled(
        self, X: Any, made: Mapping[str, np.ndarray], observed: np.ndarray
    ) -> MultiViewData:
        views = []
        for v, (name, columns) in enumerate(zip(self.view_names_, self._columns, strict=True)):
            view = np.full((len(observed), len(columns)), np.nan)
            if name in made:
                view[observed[:, v]] = made[name]
            views.append(view)
        ids = identifying(rows_of(X))
        result = MultiViewData(tuple(views), observed, self.view_names_, ids, self._columns)
        if not isinstance(X, MultiViewData):
            return result
        return replace(result, ids=X.ids, y=X.y, name=X.name, description=X.description)


def _usable(inner: Any, name: str) -> Any:
    """A clone of a transformer that needs no labels."""
    if isinstance(inner, str) and inner == PASSTHROUGH:
        return PASSTHROUGH
    if isinstance(inner, type) or not (hasattr(inner, "fit") and hasattr(inner, "transform")):
        msg = (
            f"transformer of {view_title(name)} must be one of scikit-learn's, with fit and "
            f"transform, or {PASSTHROUGH!r}, got {short(inner)}"
        )
        raise InvalidParameterError(msg)
    if hasattr(inner, "__sklearn_tags__") and get_tags(inner).target_tags.required:
        msg = (
            f"transformer of {view_title(name)} is a {type(inner).__name__}, which learns from "
            f"labels, but most samples have none; use one that learns from features alone"
        )
        raise InvalidParameterError(msg)
    return clone(inner)


def _names_out(inner: Any, before: np.ndarray | None) -> np.ndarray | None:
    """Names of the columns that a transformer makes; None where it knows none."""
    if inner is PASSTHROUGH:
        return before
    try:
        return np.asarray(inner.get_feature_names_out(before))
    except AttributeError:
        return None


def _given(X: Any, view_sizes: Sequence[int] | None) -> GivenViews:
    """Views by name, not yet read; a table that is not split keeps its form."""
    given = opened(X, view_sizes)
    if not given.one_table:
        return given
    if view_sizes is not None:
        return split(given, view_sizes)
    arrays, columns = (
        {default_name(0): part[TABLE]} if TABLE in part else {}
        for part in (given.arrays, given.columns)
    )
    return replace(given, arrays=arrays, columns=columns, one_table=False)


def _given_as_in_fit(X: Any, view_sizes: Sequence[int] | None, fit: ViewsOfFit) -> GivenViews:
    """The views of fit in its order, None where one is missing."""
    stacked = opened(X, view_sizes)
    whole = stacked.one_table and len(fit.names) > 1
    return in_layout_of_fit(stacked if whole else _given(X, view_sizes), fit)


def _read(given: GivenViews) -> dict[str, Any]:
    """Frames and sparse matrices as they are, all others as arrays."""
    there = {name: array for name, array in given.arrays.items() if array is not None}
    return {name: _readable(array, view_title(name)) for name, array in there.items()}


def _readable(view: Any, title: str) -> Any:
    width(view, title)
    if scipy.sparse.issparse(view):
        check_sparse(view, title)
        return scipy.sparse.csr_array(view)
    return view if hasattr(view, "iloc") else as_matrix(view, title)


def _observed(views: Mapping[str, Any], mask: ArrayLike | None) -> np.ndarray:
    """Rows that are there, (n_samples, n_views) of bool."""
    observed = as_mask(mask, (common_rows(dict(views)), len(views)))
    for v, view in enumerate(views.values()):
        observed[:, v] &= ~_empty_rows(view)
    return observed


def _empty_rows(view: Any) -> np.ndarray:
    """Rows without any value, (n_rows,) of bool."""
    if hasattr(view, "iloc"):
        return np.asarray(view.isna().all(axis=1))
    if scipy.sparse.issparse(view):
        n_missing = np.add.reduceat(np.append(np.isnan(view.data), False), view.indptr[:-1])
        return np.where(np.diff(view.indptr) > 0, n_missing, 0) == view.shape[1]
    return np.isnan(view).all(axis=1)
