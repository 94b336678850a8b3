"""Read files: with common problems repaired, or strictly as they are."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from viewmend.data.categories import (
    Categories,
    Fault,
    NumericTable,
    read_columns,
    read_columns_as,
    refuse,
    settle,
    source_columns,
)
from viewmend.data.container import MultiViewData
from viewmend.data.frames import from_frames
from viewmend.data.io.border import reading
from viewmend.data.io.cleaning import (
    check_columns_exist,
    check_text,
    drop_empty_columns,
    drop_empty_views,
    match_layout,
    select_views,
)
from viewmend.data.io.contents import (
    ARRAY_LABELS,
    Request,
    find_groups,
    find_labels,
    read_contents,
)
from viewmend.data.io.mat import read_mat
from viewmend.data.io.npz import read_npz
from viewmend.data.joining import all_ids, column_labels, without_columns
from viewmend.data.validation import check_complete_data
from viewmend.exceptions import InvalidLabelsError, InvalidViewsError
from viewmend.parameters import short

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class ViewTables:
    """Views as numeric tables that are not joined yet, and the labels found.

    Attributes
    ----------
    tables : dict of DataFrame
        Views under the identifiers of their rows; cells may be empty.
    labels : Series or None
        Labels by identifier.
    id_column : str or None
        What the identifiers are called; None where rows are just counted.
    categories : dict of dict
        How columns of categories were converted, by view and column.
    faults : tuple of viewmend.data.categories.Fault
        Columns that a fit refuses; their cells are empty here, or the columns left out.
    groups : Series or None
        Groups by identifier, if they were asked for.
    """

    tables: Mapping[str, pd.DataFrame]
    labels: pd.Series | None
    id_column: str | None
    categories: Mapping[str, Mapping[Hashable, Categories]] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    groups: pd.Series | None = None

    def columns(self) -> dict[str, list[str]]:
        """Names of the columns by view."""
        return {name: [str(column) for column in table] for name, table in self.tables.items()}

    def numbers_only(self) -> ViewTables:
        """The same without what became of columns of categories."""
        encoded = {
            name: [made for column, found in learnt.items() for made in found.names(column)]
            for name, learnt in self.categories.items()
        }
        kept = {name: t.drop(columns=encoded.get(name, [])) for name, t in self.tables.items()}
        return replace(self, tables=kept, categories={})

    def aligned(self) -> MultiViewData:
        """The views joined by their identifiers; empty cells stay, for a fit to fill.

        Rows without any value are missing samples. Faults are an error that lists all of them.
        """
        refuse(self.faults)
        joined = from_frames(self.tables, self.labels)
        return replace(joined, categories=self.categories)

    def groups_of(self, ids: np.ndarray) -> np.ndarray | None:
        """Groups (n_samples,) of samples by their identifiers, None where there is none."""
        if self.groups is None:
            return None
        found = self.groups.astype(object).reindex(ids)
        if len(self.groups) and not found.notna().any():
            msg = (
                f"groups must be of samples of the views, but none of their {len(self.groups)} "
                f"identifiers, such as {short(self.groups.index[0])}, is among those of the views, "
                f"such as {short(ids[0])}; spell them alike"
            )
            raise InvalidLabelsError(msg)
        return found.where(found.notna(), None).to_numpy()

    def unmended(self) -> tuple[dict[str, pd.DataFrame], np.ndarray | None, np.ndarray]:
        """Views with all their flaws, labels and identifiers in one order, for an inspection."""
        ids = all_ids({name: table.index for name, table in self.tables.items()})
        views = {name: table.reindex(ids) for name, table in self.tables.items()}
        y = None if self.labels is None else self.labels.astype(object).reindex(ids).to_numpy()
        return views, y, ids.to_numpy()


def read_views(path: str | Path, request: Request | None = None) -> MultiViewData:
    """Read views, and labels if there are any, and repair common problems.

    Columns of categories become columns of 0 and 1, useless columns are left out, and the views are
    joined by the identifiers of their rows; warnings report this. `viewmend.data.categories` has
    the rules for columns. Missing cells stay NaN: ``fit`` and ``predict`` fill them.

    Parameters
    ----------
    path : str or Path
        Folder of CSV and Parquet files, one per view, or one such file; .npz with one 2-D array
        per view and, if there are some, ``y`` and ``ids``; .mat as `load_mat` reads it; .h5mu,
        with one view per modality; .h5ad, with one view per entry of ``obsm``, or ``X`` if it has
        none.
    request : Request, optional
        How to read the data: columns of identifiers and labels, views and columns to leave out.

    Returns
    -------
    MultiViewData
        Samples in the order in which their identifiers appear, view by view.

    Raises
    ------
    InvalidViewsError, InvalidLabelsError, OSError
    """
    tables = read_view_tables(path, request)
    return _described(tables.aligned(), Path(path))


def read_view_tables(path: str | Path, request: Request | None = None) -> ViewTables:
    """Read views without joining them, to inspect them.

    Parameters
    ----------
    path, request
        As in `read_views`.

    Returns
    -------
    ViewTables
    """
    request = request or Request()
    with reading(Path(path)):
        contents = read_contents(Path(path), request)
        labels, label_column = find_labels(contents, request)
        views = select_views(contents.tables, request.views)
        check_columns_exist(views, request.leave_out)
        groups, group_column = find_groups(contents, request)
        left_out = [contents.usual_labels, label_column, *request.leave_out]
        left_out += [] if group_column is None else [group_column]
        views = without_columns(views, *left_out)
        found = _numeric(views, request)
        read = drop_empty_views(found)
        tables = {name: part.table for name, part in read.items()}
        check_text(tables, labels)
    # Also those of views that nothing is left of, or they would be lost without a word.
    faults = settle(
        [f for part in found.values() for f in part.faults], request.unreadable_as_missing
    )
    categories = {name: part.categories for name, part in read.items()}
    return ViewTables(tables, labels, contents.id_column, categories, faults, groups)


def _numeric(views: Mapping[str, pd.DataFrame], request: Request) -> dict[str, NumericTable]:
    """Tables of numbers, their columns found out, or read as those of a fit."""
    if request.columns is None:
        filled = drop_empty_columns(views)
        return {name: read_columns(table, name) for name, table in filled.items()}
    learnt = request.categories
    sources = {
        name: source_columns(columns, learnt.get(name, {}))
        for name, columns in request.columns.items()
    }
    return {
        name: read_columns_as(table, name, learnt.get(name, {}))
        for name, table in match_layout(views, sources).items()
    }


def load_folder(
    path: str | Path, *, id_column: str = "id", label_column: str = "label"
) -> MultiViewData:
    """Read a folder with one CSV or Parquet file per view, and change nothing.

    The views are joined by the identifiers of their rows: every identifier that occurs in some view
    is a sample, and it does not have the views in which it does not occur. Labels are a file of
    their own, ``labels.csv`` or ``labels.parquet``, or a column of one or more views. Needs pandas,
    and for Parquet what pandas needs.

    Parameters
    ----------
    path : str or Path
        Folder. Views are named after their files and ordered by name.
    id_column : str
        Column of identifiers, each once per file.
    label_column : str
        Column of labels; samples with an empty cell are unlabelled.

    Returns
    -------
    MultiViewData
        Samples in the order in which their identifiers appear, view by view.
    """
    with reading(Path(path)):
        contents = read_contents(Path(path), Request(id_column, label_column))
        labels = column_labels(contents.label_tables, label_column, str(path))
        data = from_frames(without_columns(contents.tables, label_column), labels)
    return _described(data, path)


def load_npz(path: str | Path) -> MultiViewData:
    """Read a NumPy archive with the arrays ``view_0`` ... ``view_{V-1}`` and ``y``.

    Parameters
    ----------
    path : str or Path
        Archive whose views are (n_samples, n_features_v) of any real dtype, complete, and whose
        ``y`` (n_samples,) holds non-negative integers.

    Returns
    -------
    MultiViewData
        Float64 views; named after the file.
    """
    arrays = read_npz(path)
    numbers = sorted(int(key[5:]) for key in arrays if re.fullmatch(r"view_(0|[1-9]\d*)", key))
    if ARRAY_LABELS not in arrays or not numbers or numbers != list(range(len(numbers))):
        msg = (
            f"{path} must hold y and view_0, view_1, ... without a break but holds "
            f"{', '.join(sorted(arrays)) or 'nothing'}; save it with "
            "np.savez_compressed(path, y=y, view_0=..., ...)"
        )
        raise InvalidViewsError(msg)
    views = {f"view_{v}": arrays[f"view_{v}"] for v in numbers}
    return _described(check_complete_data(views, arrays[ARRAY_LABELS]), path)


def load_mat(path: str | Path) -> MultiViewData:
    """Read a MATLAB file in the form multi-view benchmarks are published in.

    Parameters
    ----------
    path : str or Path
        MATLAB file with a cell array ``X`` (1 x V or V x 1) of matrices (n_samples, n_features_v),
        dense or sparse, and a vector ``gnd`` or ``Y`` with one whole number per sample. Version
        7.3 needs h5py.

    Returns
    -------
    MultiViewData
        Dense float64 views; labels renumbered 0 ... n_classes - 1 in ascending order.
    """
    return _described(check_complete_data(*read_mat(Path(path))), path)


def _described(data: MultiViewData, path: str | Path) -> MultiViewData:
    path = Path(path)
    name = path.name if path.is_dir() else path.stem
    return replace(data, name=name, description=f"{data.n_views} views read from {path.name}")
