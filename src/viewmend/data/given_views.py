"""Views as they were given: arrays by name, with the columns and rows of their container."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from viewmend.data.container import MultiViewData
from viewmend.data.input_arrays import as_mask
from viewmend.exceptions import DataWarning, InvalidViewsError
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
    return np.array([str(name) for name in given], dtype=object)


def names_in(array: Any) -> np.ndarray | None:
    """Names of the columns of a frame; other arrays have none."""
    columns = getattr(array, "columns", None)
    return None if columns is None or callable(columns) else column_names(columns)


def named_columns(arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Names of the columns of those views that are frames with names."""
    found = {name: names_in(array) for name, array in arrays.items()}
    return {name: names for name, names in found.items() if names is not None}


def index_of(array: Any) -> Any:
    """The index of a series or frame of pandas; None of others.

    Lists have a method of that name, and an index of pandas has none itself.
    """
    return array.index if hasattr(array, "reindex") and hasattr(array, "iloc") else None


def identifying(rows: Any) -> np.ndarray | None:
    """Identifiers (n_samples,), unless rows are just numbered or not told apart."""
    if rows is None or _just_numbered(rows) or len(set(rows)) < len(rows):
        return None
    return np.asarray(rows)


def check_same_rows(
    index: Any, rows: Any, what: str, error: type[ValueError] = InvalidViewsError
) -> None:
    """Refuse an index that holds the identifiers of the views' rows in another order.

    It is not clear which of the two orders was meant. An index that just counts rows is ignored,
    unless the index of the views does the same. An index of other samples gives a warning.
    """
    if index is None or rows is None or len(index) != len(rows):
        return
    if index.equals(rows) or list(index) == list(rows):
        return
    same = set(index) & set(rows)
    remedy = f"pass {what}.loc[index of the views], or {what}.to_numpy() to match by position"
    if len(same) == len(set(index)) == len(set(rows)):
        msg = (
            f"{what} must have its rows in the order of the views, but has the same identifiers in "
            f"another order ({_first_difference(index, rows)}); {remedy}"
        )
        raise error(msg)
    if same and not _just_numbered(index) and not _just_numbered(rows):
        msg = (
            f"{what} and the views have different row indices ({_first_difference(index, rows)}), "
            f"so rows are matched by position; {remedy}"
        )
        warnings.warn(msg, DataWarning, stacklevel=4)


def _first_difference(index: Any, rows: Any) -> str:
    i = next(i for i, (a, b) in enumerate(zip(index, rows, strict=True)) if a != b)
    return f"row {i} is {short(index[i])} there and {short(rows[i])} here"


def _just_numbered(index: Any) -> bool:
    if hasattr(index, "step"):
        return bool(index.start == 0 and index.step == 1)
    # Most that are not show it in the first row.
    return len(index) == 0 or (index[0] == 0 and list(index) == list(range(len(index))))


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
