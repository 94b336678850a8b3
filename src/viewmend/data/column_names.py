"""What an estimator remembers of the names of columns that its fit saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from viewmend.data.container import MultiViewData
from viewmend.data.given_views import column_names


class ColumnNamesMixin:
    """``view_feature_names_`` and ``feature_names_in_``, both absent where fit saw no names."""

    # Of the estimator that it is mixed into.
    view_names_: tuple[str, ...]
    view_sizes: Sequence[int] | None
    view_feature_names_: dict[str, np.ndarray]

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of all columns, (n_features_in_,), if ``X`` was one table and all have names."""
        names = columns_of_fit(self)
        views = self.view_names_ if names else ()
        stacked = len(views) == 1 or self.view_sizes is not None
        if not names or not stacked or set(names) != set(views):
            msg = (
                f"this {type(self).__name__} has no feature_names_in_: its fit saw no table with "
                f"names for all columns; see view_feature_names_ for those of single views"
            )
            raise AttributeError(msg)
        return np.concatenate([names[view] for view in views])

    def _remember_columns(self, columns: Mapping[str, np.ndarray]) -> None:
        if columns:
            self.view_feature_names_ = dict(columns)


def columns_of_data(data: MultiViewData) -> dict[str, np.ndarray]:
    """Names of the columns (n_features_v,) of those views that have any."""
    found = zip(data.names, map(column_names, data.columns or ()), strict=False)
    return {name: names for name, names in found if names is not None}


def columns_of_fit(model: object) -> dict[str, np.ndarray]:
    """The same of the views that an estimator was fitted on."""
    return getattr(model, "view_feature_names_", {})
