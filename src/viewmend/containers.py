"""The container of incomplete multi-view data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["MultiViewData"]


@dataclass(frozen=True, eq=False)
class MultiViewData:
    """Samples seen through several views, some of them missing.

    Indexing takes rows, so that ``train_test_split``, ``cross_validate`` and plain slicing work::

        data[:100]            # the first 100 samples, all views
        data[[3, 1, 4]]       # these samples, in this order

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

    def rows_seen(self, v: int) -> np.ndarray:
        """Rows of view ``v`` that are present, (n_observed_v, n_features_v)."""
        return self.views[v][self.observed[:, v]]

    def stacked(self) -> np.ndarray:
        """All views side by side, (n_samples, sum of n_features); missing blocks are NaN."""
        return np.hstack(self.views)
