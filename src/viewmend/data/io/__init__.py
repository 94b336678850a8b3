"""Views and labels from the files people keep them in.

Every format is read into tables (`viewmend.data.io.contents`). What follows is the same for all:
labels are looked up, columns that hold no number left out, empty cells filled, and the views
joined by `viewmend.data`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from viewmend.data.aligned import AlignedViews, all_ids
from viewmend.data.frames import from_frames
from viewmend.data.io.contents import Request, read_contents
from viewmend.data.io.label_columns import find_labels
from viewmend.data.io.numbers import (
    check_columns,
    chosen,
    filled,
    held_to,
    numeric,
    with_numbers,
    with_some_view,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Request", "ViewTables", "read_views"]


@dataclass(frozen=True, eq=False)
class ViewTables:
    """Views as numeric tables, and the labels found.

    Attributes
    ----------
    tables : dict of DataFrame
        Views under the identifiers of their rows; cells may be empty.
    labels : Series or None
        Labels by identifier.
    id_column : str or None
        What the identifiers are called; None where rows are just counted.
    """

    tables: Mapping[str, pd.DataFrame]
    labels: pd.Series | None
    id_column: str | None

    def medians(self) -> dict[str, dict[str, float]]:
        """The medians of all columns by view, with which empty cells can be filled."""
        return {name: table.median().to_dict() for name, table in self.tables.items()}

    def columns(self) -> dict[str, list[str]]:
        """Names of the columns by view."""
        return {name: [str(column) for column in table] for name, table in self.tables.items()}

    def aligned(self, fills: Mapping[str, Mapping[str, float]]) -> AlignedViews:
        """The views joined by their identifiers, empty cells filled.

        Rows without any value are missing samples; those that miss all views are left out.
        """
        whole = {name: filled(table, fills[name], name) for name, table in self.tables.items()}
        return from_frames(with_some_view(whole), self.labels)

    def unmended(self) -> tuple[dict[str, pd.DataFrame], np.ndarray | None, np.ndarray]:
        """Views with all their flaws, labels and identifiers in one order, for an inspection."""
        ids = all_ids({name: table.index for name, table in self.tables.items()})
        views = {name: table.reindex(ids) for name, table in self.tables.items()}
        y = None if self.labels is None else self.labels.astype(object).reindex(ids).to_numpy()
        return views, y, ids.to_numpy()


def read_views(path: str | Path, request: Request | None = None) -> ViewTables:
    """Read views, and labels where there are some.

    Parameters
    ----------
    path : str or Path
        Folder of CSV and Parquet files, one per view, or one such file; .npz with one 2-D array
        per view and, if there are some, ``y`` and ``ids``; .mat as `load_mat` reads it; .h5mu,
        with one view per modality; .h5ad, with one view per entry of ``obsm``, or ``X`` if it has
        none.
    request : Request, optional

    Returns
    -------
    ViewTables

    Raises
    ------
    InvalidViewsError, InvalidLabelsError, OSError
    """
    request = request or Request()
    contents = read_contents(Path(path), request)
    labels, used = find_labels(contents, request)
    views = chosen(contents.tables, request.views)
    check_columns(views, request.leave_out)
    no_features = [contents.usual_labels, used, *request.leave_out]
    features = {
        name: table.drop(columns=no_features, errors="ignore") for name, table in views.items()
    }
    layout = request.columns
    kept = with_numbers(features) if layout is None else held_to(features, layout)
    tables = {name: numeric(table, name) for name, table in kept.items()}
    return ViewTables(tables, labels, contents.id_column)
