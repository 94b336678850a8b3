"""Views as they were given: arrays by name, with the columns and rows of their container."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from viewmend.data.container import MultiViewData
from viewmend.data.indices import check_same_rows, identifying, index_of, objects, text_of
from viewmend.data.input_arrays import as_mask, collected
from viewmend.exceptions import InvalidViewsError
from viewmend.parameters import short


@dataclass(frozen=True, eq=False)
class GivenViews:
    """What a container holds, not yet checked; `viewmend.data.opening.views_in` makes it.

    Attributes
    ----------
    arrays : dict of view name to array-like (n_samples, n_features_v)
        None stands for a view that is missing.
    columns : dict of view name to array (n_features_v,) of str
        Names of the columns of the views that have any.
    rows : pandas Index or array (n_samples,), or None
        What tells the samples apart, in containers that have such a thing.
    observed : array (n_samples, n_views) of bool, or None
        False where a container lacks a sample in a view, whose row may then be anything.
    has_names : bool
        Whether views are identified by name rather than by position.
    one_table : bool
        Whether all views lie side by side in a single array.
    source : MultiViewData or None
        The given MultiViewData, if it was one.
    """

    arrays: dict[str, Any]
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)
    rows: Any = None
    observed: np.ndarray | None = None
    has_names: bool = False
    one_table: bool = False
    source: MultiViewData | None = None

    def mask(self, mask: Any) -> Any:
        """A mask over the samples and views, with what the container itself knows to be missing.

        Columns of a frame are matched by the names of the views.
        """
        mask = in_order_of_views(mask, list(self.arrays), self.rows, "mask")
        if self.observed is None or mask is None:
            return self.observed if mask is None else mask
        return self.observed & as_mask(mask, self.observed.shape)

    def described(self, checked: MultiViewData) -> MultiViewData:
        """Checked views with all that is known of their rows and columns."""
        if self.source is not None:
            return replace(self.source, views=checked.views, observed=checked.observed)
        return replace(checked, ids=identifying(self.rows), columns=self.all_columns(checked))

    def all_columns(self, checked: MultiViewData) -> tuple[tuple[Hashable, ...], ...] | None:
        """Names of the columns of all views, numbers where there are none; None without any."""
        if not self.columns:
            return None
        return tuple(
            tuple(self.columns.get(name, range(width)))
            for name, width in zip(checked.names, checked.n_features, strict=True)
        )


def column_names(columns: Iterable[Hashable] | None) -> np.ndarray | None:
    """Names of columns as text, (n_features,); None where columns are just numbered from 0."""
    given = [] if columns is None else list(columns)
    if not given or given == list(range(len(given))):
        return None
    return objects(map(text_of, given))


def names_in(array: Any) -> np.ndarray | None:
    """Names of the columns of a frame; other arrays have none."""
    columns = getattr(array, "columns", None)
    return None if columns is None or callable(columns) else column_names(columns)


def named_columns(arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Names of the columns of those views that are frames with names."""
    found = {name: names_in(array) for name, array in arrays.items()}
    return {name: names for name, names in found.items() if names is not None}


def in_order_of_views(
    values: Any,
    names: Sequence[str],
    rows: Any,
    what: str,
    error: type[ValueError] = InvalidViewsError,
) -> Any:
    """Values about samples and views, whose columns are those of the views.

    Only frames can have them in another order. ``what`` names the values in errors; ``rows`` tell
    the samples apart, as in `check_same_rows`.
    """
    if values is None or isinstance(values, np.ndarray):
        return values
    values = collected(values)
    check_same_rows(index_of(values), rows, what, error)
    given = names_in(values)
    if given is None:
        return values
    return np.asarray(values)[:, places_of_views(given, names, what, error)]


def places_of_views(
    given: np.ndarray, names: Sequence[str], what: str, error: type[ValueError]
) -> list[int]:
    """Where the views are among the columns (n_columns,) that were given, which must be theirs."""
    if sorted(given) != sorted(names):
        msg = (
            f"{what} must have a column for each of the views {short(list(names))}, but has "
            f"{short(given.tolist())}; rename its columns, or pass {what}.to_numpy() to match by "
            f"position"
        )
        raise error(msg)
    return [given.tolist().index(name) for name in names]
