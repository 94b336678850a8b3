"""New samples in the layout of a fit: views and columns matched by name if they have names."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from viewmend.data.column_names import columns_of_fit
from viewmend.data.given_views import GivenViews
from viewmend.data.input_arrays import as_table, common_rows, some_of, view_title
from viewmend.data.opening import TABLE, default_name, split
from viewmend.exceptions import DataWarning, InvalidViewsError
from viewmend.text import counted


class FittedOnViews(Protocol):
    """An estimator that was fitted on views."""

    view_names_: tuple[str, ...]
    view_n_features_: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ViewsOfFit:
    """Names and widths of the views that a fit saw, and the names of columns as far as it saw any.

    ``columns`` has arrays (n_features_v,) of str by view.
    """

    names: tuple[str, ...]
    n_features: tuple[int, ...]
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def stacked_columns(self) -> np.ndarray | None:
        """Names of the columns of all views side by side; None unless all have names."""
        if set(self.columns) != set(self.names):
            return None
        return np.concatenate([self.columns[name] for name in self.names])

    @property
    def has_names(self) -> bool:
        """Whether the views were identified by name rather than by position."""
        return self.names != tuple(map(default_name, range(len(self.names))))


def views_of_fit(model: FittedOnViews) -> ViewsOfFit:
    """What an estimator remembers of the views that it was fitted on."""
    return ViewsOfFit(model.view_names_, model.view_n_features_, columns_of_fit(model))


def _or_numbers(wanted: np.ndarray | None, given: np.ndarray) -> np.ndarray | None:
    """Names in fit or, without any, numbers: those of a frame may come in another order."""
    numbers = np.array([str(j) for j in range(len(given))], dtype=object)
    return numbers if wanted is None and set(given) == set(numbers) else wanted


def in_layout_of_fit(given: GivenViews, fit: ViewsOfFit) -> GivenViews:
    """The views of fit in its order, None where one is missing, with columns in its order."""
    given = _split_as_in_fit(given, fit) if given.one_table else _views_of_fit(given, fit)
    _warn_of_names_on_one_side(given, fit)
    arrays = dict(given.arrays)
    for name in fit.names:
        if arrays[name] is not None and name in given.columns:
            arrays[name] = _columns_of_fit(arrays[name], given.columns[name], name, fit)
    return replace(given, arrays=arrays, columns=fit.columns)


def all_views(there: Mapping[str, Any], fit: ViewsOfFit) -> dict[str, Any]:
    """All views of fit, of the widths of fit; one that is missing from all samples is NaN."""
    n_samples = common_rows(dict(there))
    views = {}
    for name, columns in zip(fit.names, fit.n_features, strict=True):
        views[name] = there[name] if name in there else np.full((n_samples, columns), np.nan)
    check_widths({name: view.shape[1] for name, view in views.items()}, fit)
    return views


def table_in_order_of_fit(given: GivenViews, fit: ViewsOfFit) -> GivenViews:
    """One table with its columns in the order of fit, if both have names for them."""
    names = given.columns.get(TABLE)
    wanted = None if names is None else _or_numbers(fit.stacked_columns, names)
    if names is None or wanted is None:
        return given
    table = _reordered(given.arrays[TABLE], _order(names, wanted, TABLE), TABLE)
    # Numbers have done their work, and fit knows no others.
    columns = {} if fit.stacked_columns is None else {TABLE: wanted}
    return replace(given, arrays={TABLE: table}, columns=columns)


def check_width_of_table(n_columns: int, fit: ViewsOfFit) -> None:
    """Refuse one table of another number of columns than the views of fit have together."""
    if n_columns != sum(fit.n_features):
        msg = (
            f"X has {n_columns} features, but predict is expecting {sum(fit.n_features)} "
            f"features as input, views of {fit.n_features} columns; pass the columns of fit"
        )
        raise InvalidViewsError(msg)


def check_widths(n_columns: Mapping[str, int], fit: ViewsOfFit) -> None:
    """Refuse views, by name, of other numbers of columns than in fit."""
    for name, columns in zip(fit.names, fit.n_features, strict=True):
        if n_columns.get(name, columns) != columns:
            msg = (
                f"{view_title(name)} has {n_columns[name]} columns but had {columns} in fit; "
                f"pass the columns of fit in the same order"
            )
            raise InvalidViewsError(msg)


def _split_as_in_fit(given: GivenViews, fit: ViewsOfFit) -> GivenViews:
    given = table_in_order_of_fit(given, fit)
    matrix = as_table(given.arrays[TABLE], TABLE)
    check_width_of_table(matrix.shape[1], fit)
    blocks = split(replace(given, arrays={TABLE: matrix}), fit.n_features)
    return _at_places(blocks, fit)


def _views_of_fit(given: GivenViews, fit: ViewsOfFit) -> GivenViews:
    """Views by name if both sides have names, else by position."""
    same_names = set(given.arrays) == set(fit.names)
    if given.has_names and (given.source is None or fit.has_names or same_names):
        unknown = [name for name in given.arrays if name not in fit.names]
        if unknown:
            msg = (
                f"unknown view {some_of([repr(name) for name in unknown])}: fit saw the views "
                f"{list(fit.names)}; use these names, and leave out views that are missing"
            )
            raise InvalidViewsError(msg)
        return _at_places(given, fit, [*given.arrays])
    if len(given.arrays) != len(fit.names):
        msg = (
            f"X has {counted(len(given.arrays), 'view')}, but fit saw {len(fit.names)} "
            f"({some_of(fit.names)}); pass them all in the same order, with None for a view that "
            f"is missing"
        )
        raise InvalidViewsError(msg)
    return _at_places(given, fit)


def _at_places(
    given: GivenViews, fit: ViewsOfFit, meant: Sequence[str] | None = None
) -> GivenViews:
    """The given views, which are those that are ``meant`` of fit, by default all in its order."""
    called = dict(zip(meant or fit.names, given.arrays, strict=True))
    observed = given.observed
    if observed is not None:
        places = {name: observed[:, v] for v, name in enumerate(given.arrays)}
        everyone = np.ones(len(observed), dtype=bool)
        observed = np.column_stack([places.get(called.get(n, ""), everyone) for n in fit.names])
    return replace(
        given,
        arrays={name: given.arrays[called[name]] if name in called else None for name in fit.names},
        columns={n: given.columns[own] for n, own in called.items() if own in given.columns},
        observed=observed,
    )


def _columns_of_fit(array: Any, names: np.ndarray, view: str, fit: ViewsOfFit) -> Any:
    wanted = _or_numbers(fit.columns.get(view), names)
    if wanted is None or np.array_equal(names, wanted):
        return array
    others = [other for other in fit.columns if set(fit.columns[other]) == set(names)]
    if others and view not in others:
        msg = (
            f"{view_title(view)} has the columns that {view_title(others[0])} had in fit; pass the "
            f"views in the order of fit, {some_of(fit.names)}, or as a dict under these names"
        )
        raise InvalidViewsError(msg)
    return _reordered(array, _order(names, wanted, view_title(view)), view_title(view))


def _order(given: np.ndarray, wanted: np.ndarray, title: str) -> np.ndarray | None:
    """Places of the columns of fit among those given, (n_features,); None where all are in place.

    Missing and unknown columns are an error, in the words of scikit-learn.
    """
    if np.array_equal(given, wanted):
        return None
    unseen, missing = (sorted(set(a) - set(b)) for a, b in ((given, wanted), (wanted, given)))
    if unseen or missing:
        lists = {
            "feature names unseen at fit time": unseen,
            "feature names seen at fit time, yet now missing": missing,
        }
        told = "; ".join(f"{what}: {some_of(names)}" for what, names in lists.items() if names)
        msg = (
            f"{title} must have the {len(wanted)} columns of fit; {told}; rename, add or drop them"
        )
        raise InvalidViewsError(msg)
    if len(set(wanted)) < len(wanted) or len(given) != len(wanted):
        twice = next(name for name in given if np.sum(given == name) > 1)
        msg = (
            f"{title} must have columns of different names to be put in the order of fit, but has "
            f"{twice!r} more than once; name its columns apart, before fit"
        )
        raise InvalidViewsError(msg)
    places = {name: j for j, name in enumerate(given)}
    return np.array([places[name] for name in wanted])


def _reordered(array: Any, order: np.ndarray | None, title: str) -> Any:
    if order is None:
        return array
    # Frames first, as those of Dask are not in memory.
    return array.iloc[:, order] if hasattr(array, "iloc") else as_table(array, title)[:, order]


def _warn_of_names_on_one_side(given: GivenViews, fit: ViewsOfFit) -> None:
    """As scikit-learn does: such columns are taken in the order of fit."""
    there = [name for name, array in given.arrays.items() if array is not None]
    unnamed = [name for name in there if name in fit.columns and name not in given.columns]
    named = [name for name in there if name in given.columns and name not in fit.columns]
    named = [name for name in named if _or_numbers(None, given.columns[name]) is None]
    told = {
        "X does not have valid feature names, but fit saw some": unnamed,
        "X has feature names, but fit saw none": named,
    }
    for what, views in told.items():
        if views:
            msg = (
                f"{what} ({some_of([view_title(view) for view in views])}); columns are taken in "
                f"the order of fit: pass frames with the same columns to both"
            )
            warnings.warn(msg, DataWarning, stacklevel=5)
