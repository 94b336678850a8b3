"""The container of multi-view data: views, identifiers, column names and labels."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from viewmend.data.categories import Categories
from viewmend.data.indices import check_same_rows, index_of
from viewmend.data.labels import as_label_array, find_unlabelled
from viewmend.data.per_sample import one_each
from viewmend.exceptions import InvalidLabelsError, InvalidViewsError
from viewmend.html_repr import card
from viewmend.parameters import short
from viewmend.text import counted


@dataclass(frozen=True, eq=False)
class MultiViewData:
    """Samples with several views, some of them missing, with identifiers and labels.

    Made from arrays by `viewmend.check_views`, from frames and other containers by the functions of
    `viewmend.data`, from files by `viewmend.data.read_views`. ``model.fit(data)`` uses its labels.
    Indexing takes rows, so that ``train_test_split``, ``cross_validate`` and plain slicing work::

        data[:100]            # the first 100 samples, all views
        data[[3, 1, 4]]       # these samples, in this order

    Where one 2-D array is expected, such as in a classifier of scikit-learn behind an imputer, it
    becomes the stacked array; its ``n_features`` are then the ``view_sizes`` of the estimators
    here.

    Attributes
    ----------
    views : tuple of array (n_samples, n_features_v)
        The rows of every view; missing rows are NaN.
    observed : array (n_samples, n_views) of bool
        ``observed[i, v]`` is true if sample ``i`` has view ``v``.
    names : tuple of str
        One name per view.
    ids : array (n_samples,) or None
        Identifier of every row.
    columns : tuple of tuple, or None
        Names of the columns of every view; ``like=`` checks new data against them.
    categories : dict of dict, or None
        How columns of categories were converted, by view and column of the original tables, as in
        ``colour=red``; ``like=`` converts new data in the same way.
    y : array (n_samples,) or None
        The given labels; -1, None or NaN for unlabelled samples.
    name, description : str
        Name of the data, and where it comes from.
    """

    views: tuple[np.ndarray, ...]
    observed: np.ndarray
    names: tuple[str, ...]
    ids: np.ndarray | None = None
    columns: tuple[tuple[Hashable, ...], ...] | None = None
    y: np.ndarray | None = None
    name: str = ""
    description: str = ""
    categories: Mapping[str, Mapping[Hashable, Categories]] | None = None

    def __post_init__(self) -> None:
        for name, part in _plain_parts(self).items():
            object.__setattr__(self, name, part)
        n_samples, n_views = self.observed.shape
        by_view = {"views": self.views, "names": self.names, "columns": self.columns}
        by_row = {f"views[{v}]": view for v, view in enumerate(self.views)}
        _check_lengths(by_view, n_views, "entry per view")
        _check_lengths(by_row | {"ids": self.ids, "y": self.y}, n_samples, "row per sample")
        for v, names in enumerate(self.columns or ()):
            _check_lengths(
                {f"columns[{v}]": names}, self.n_features[v], f"name per column of view {v}"
            )

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.observed.shape[0]

    @property
    def n_views(self) -> int:
        """Number of views."""
        return self.observed.shape[1]

    @property
    def n_features(self) -> tuple[int, ...]:
        """Number of columns of every view."""
        return tuple(view.shape[1] for view in self.views)

    @property
    def n_labelled(self) -> int:
        """Number of samples with a label."""
        if self.y is None:
            return 0
        return int(np.sum(~find_unlabelled(as_label_array(self.y, self.n_samples))))

    @property
    def sample_ids(self) -> np.ndarray:
        """Identifier of every row, its number where there are no identifiers, (n_samples,)."""
        return np.arange(self.n_samples) if self.ids is None else self.ids

    @property
    def unseen(self) -> np.ndarray:
        """Samples without any view, (n_samples,) of bool."""
        return np.asarray(~self.observed.any(axis=1))

    def required_labels(self) -> np.ndarray:
        """The labels, (n_samples,); an error if there are none."""
        if self.y is None:
            title = f"the data {self.name!r}" if self.name else "the data"
            msg = f"{title} must have labels but has none (y is None); name them when it is read"
            raise InvalidLabelsError(msg)
        return self.y

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the stacked form: rows, columns of all views together."""
        return self.n_samples, sum(self.n_features)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the stacked form."""
        return np.result_type(*self.views)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            msg = (
                "views lie in arrays of their own, so stacking them needs a copy, but copy=False "
                "forbids it; leave copy out"
            )
            raise ValueError(msg)
        return self.stacked().astype(self.dtype if dtype is None else dtype, copy=False)

    def __len__(self) -> int:
        return self.n_samples

    def __getitem__(self, rows: Any) -> MultiViewData:
        rows = _row_numbers(rows, self.n_samples, self.ids)
        return replace(
            self,
            views=tuple(view[rows] for view in self.views),
            observed=self.observed[rows],
            ids=None if self.ids is None else self.ids[rows],
            y=None if self.y is None else self.y[rows],
        )

    def __repr__(self) -> str:
        shares = [f", {share:.0%} observed" for share in self._shares_observed()]
        shares = shares or [""] * self.n_views
        seen = ", ".join(
            f"{name}: {counted(columns, 'column')}{share}"
            for name, columns, share in zip(self.names, self.n_features, shares, strict=True)
        )
        title = f"{self.name}: " if self.name else ""
        labelled = "" if self.y is None else f", {self.n_labelled} labelled"
        return f"MultiViewData({title}{self.n_samples} samples{labelled}; {seen})"

    def _repr_html_(self) -> str:
        facts = {
            "samples": self.n_samples,
            "complete": None,
            "labelled": None if self.y is None else f"{self.n_labelled} samples",
        }
        columns: dict[str, Any] = {"view": self.names, "columns": self.n_features}
        shares = self._shares_observed()
        if len(shares):
            n_complete = self.observed.all(axis=1).sum()
            facts["complete"] = f"{n_complete} samples have all {self.n_views} views"
            columns["observed"] = shares
        return card("MultiViewData", facts, columns)

    def _shares_observed(self) -> np.ndarray:
        """Share of the samples that every view observed, (n_views,).

        Empty where all views would have to be read first, as those of Dask.
        """
        in_memory = isinstance(self.observed, np.ndarray)
        return self.observed.mean(axis=0) if in_memory else np.empty(0)

    def rows_seen(self, v: int) -> np.ndarray:
        """Observed rows of view ``v``, (n_observed_v, n_features_v)."""
        return self.views[v][self.observed[:, v]]

    def stacked(self) -> np.ndarray:
        """All views side by side, (n_samples, sum of n_features); missing blocks are NaN."""
        return np.hstack(self.views)

    @property
    def data(self) -> MultiViewData:
        """The object itself; in version 0.1, views were separate from identifiers and labels."""
        return self

    @property
    def view_names(self) -> tuple[str, ...]:
        """The same as ``names``, which complete data of version 0.1 had under this name."""
        return self.names


def _row_numbers(rows: Any, n_samples: int, ids: np.ndarray | None) -> np.ndarray:
    """Numbers (n_rows,) of what is asked for: one row, several, a slice or a mask.

    Anything else is an IndexError, as of an array, which is how loops over the rows end.
    """
    if index_of(rows) is not None and np.asarray(rows).dtype.kind == "b":
        check_same_rows(rows.index, ids, "mask")
    try:
        found = np.atleast_1d(np.arange(n_samples)[rows])
    except IndexError:
        found = np.empty((0, 0))
    if found.ndim > 1:
        msg = (
            f"rows must be numbers below {n_samples}, a slice, or a mask of {n_samples} values, "
            f"got {short(rows)}; np.flatnonzero(np.isin(data.ids, wanted)) finds rows by identifier"
        )
        raise IndexError(msg)
    return found


def _plain_parts(data: MultiViewData) -> dict[str, Any]:
    """What data is made of, as tuples and arrays, whose rows can be taken by position."""
    for name, part in (("observed", data.observed), *zip(data.names, data.views, strict=False)):
        if index_of(part) is not None:
            msg = (
                f"{name!r} must be an array where MultiViewData is made by hand, got a "
                f"{type(part).__name__}, whose names would be lost; pass frames and their mask to "
                f"check_views, or to viewmend.data.from_frames"
            )
            raise InvalidViewsError(msg)
    ids, y, observed = _plain(data.ids), _plain(data.y), data.observed
    observed = observed if hasattr(observed, "compute") else np.asarray(observed)
    if observed.dtype != bool or observed.ndim != 2 or len(set(data.names)) < len(data.names):
        msg = (
            f"observed must be bool of shape (n_samples, n_views), and names different, got "
            f"{observed.dtype} of shape {observed.shape} and {short(data.names)}; check_views "
            f"makes them from views"
        )
        raise InvalidViewsError(msg)
    check_same_rows(index_of(data.y), ids, "y", InvalidLabelsError)
    views, names = tuple(data.views), tuple(data.names)
    return {"views": views, "names": names, "observed": observed, "ids": ids, "y": y}


def _plain(values: Any) -> Any:
    """One value per sample as an array, unless it is of Dask; a series would go by its index."""
    return values if values is None or hasattr(values, "compute") else one_each(values)


def _check_lengths(parts: Mapping[str, Any], expected: int, each: str) -> None:
    for name, part in parts.items():
        if part is not None and _length(part) != expected:
            msg = (
                f"{name} must have one {each}, {expected} of them, but has {_length(part)}; "
                f"change all parts of the data together, rows as with data[rows]"
            )
            raise InvalidViewsError(msg)


def _length(part: Any) -> int:
    # Sparse arrays have no length.
    return int(part.shape[0]) if hasattr(part, "shape") else len(part)
