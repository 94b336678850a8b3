"""The container of incomplete multi-view data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from viewmend.html_repr import card

__all__ = ["MultiViewData"]


@dataclass(frozen=True, eq=False)
class MultiViewData:
    """Samples seen through several views, some of them missing.

    Made from arrays in any form by `viewmend.check_views`. Indexing takes rows, so that
    ``train_test_split``, ``cross_validate`` and plain slicing work::

        data[:100]            # the first 100 samples, all views
        data[[3, 1, 4]]       # these samples, in this order

    To whatever expects one 2-D array, such as a classifier of scikit-learn behind an imputer, it
    is the stacked array; ``n_features`` is then what the estimators here call ``view_sizes``.

    Attributes
    ----------
    views : tuple of array (n_samples, n_features_v)
        Rows of samples that a view misses are NaN.
    observed : array (n_samples, n_views) of bool
        ``observed[i, v]`` tells whether sample ``i`` was seen through view ``v``.
    names : tuple of str
        One name per view.
    """

    views: tuple[np.ndarray, ...]
    observed: np.ndarray
    names: tuple[str, ...]

    @property
    def n_samples(self) -> int:
        return self.observed.shape[0]

    @property
    def n_views(self) -> int:
        return self.observed.shape[1]

    @property
    def n_features(self) -> tuple[int, ...]:
        """Number of columns of every view."""
        return tuple(view.shape[1] for view in self.views)

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
        rows = np.atleast_1d(np.arange(self.n_samples)[rows])
        views = tuple(view[rows] for view in self.views)
        return MultiViewData(views, self.observed[rows], self.names)

    def __repr__(self) -> str:
        seen = ", ".join(
            f"{name}: {columns} columns, {share:.0%} seen"
            for name, columns, share in zip(
                self.names, self.n_features, self.observed.mean(axis=0), strict=True
            )
        )
        return f"MultiViewData({self.n_samples} samples; {seen})"

    def _repr_html_(self) -> str:
        complete = self.observed.all(axis=1)
        facts = {
            "samples": self.n_samples,
            "complete": f"{complete.sum()} samples have all {self.n_views} views",
        }
        columns = {
            "view": self.names,
            "columns": self.n_features,
            "seen": self.observed.mean(axis=0),
        }
        return card("MultiViewData", facts, columns)

    def rows_seen(self, v: int) -> np.ndarray:
        """Rows of view ``v`` that are present, (n_observed_v, n_features_v)."""
        return self.views[v][self.observed[:, v]]

    def stacked(self) -> np.ndarray:
        """All views side by side, (n_samples, sum of n_features); missing blocks are NaN."""
        return np.hstack(self.views)
