"""Incomplete multi-view data from a folder: one table per view, joined by an identifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from viewmend.data.container import MultiViewData
from viewmend.data.io.tables import is_table, read_tables
from viewmend.data.joining import aligned_matrix, joined_labels, warn_of_strangers
from viewmend.data.labels import UNLABELLED
from viewmend.data.validation import check_views
from viewmend.exceptions import InvalidViewsError

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "LABELS_FILE",
    "IncompleteDataset",
    "load_folder",
    "table_files",
]

# File of labels, whatever its ending.
LABELS_FILE = "labels"


@dataclass(frozen=True, eq=False)
class IncompleteDataset:
    """Samples of which some views and labels may be unknown.

    Attributes
    ----------
    name : str
        Short name of the data.
    data : MultiViewData
        Rows of samples that a view misses are NaN.
    y : array (n_samples,) of int
        Class as an index into ``classes``; -1 where it is unknown.
    classes : tuple
        The labels as they were given, in ascending order.
    ids : array (n_samples,) of str
        Identifier of every row.
    description : str
    """

    name: str
    data: MultiViewData
    y: np.ndarray
    classes: tuple[Any, ...]
    ids: np.ndarray
    description: str

    def __repr__(self) -> str:
        return f"IncompleteDataset({self.name}: {len(self.classes)} classes; {self.data!r})"


def load_folder(
    path: str | Path, *, id_column: str = "id", label_column: str = "label"
) -> IncompleteDataset:
    """Read a folder with one CSV or Parquet file per view.

    The views are joined by the identifiers of their rows: a sample is any identifier that some
    view holds, and it misses the views that do not hold it. Labels are a file of their own,
    ``labels.csv`` or ``labels.parquet``, or a column of one or more views. Needs pandas, and for
    Parquet what pandas needs.

    Parameters
    ----------
    path : str or Path
        Folder. Views are named after their files and ordered by name.
    id_column : str
        Column that tells which sample a row is, once per file.
    label_column : str
        Column of labels; empty cells are samples without label.

    Returns
    -------
    IncompleteDataset
        Samples in the order in which their identifiers appear, view by view.
    """
    path = Path(path)
    frames = read_tables(table_files(path), id_column)
    labels = joined_labels(frames, label_column, str(path))
    views = {
        name: frame.drop(columns=label_column, errors="ignore")
        for name, frame in frames.items()
        if name != LABELS_FILE
    }
    ids = _all_ids(views)
    warn_of_strangers(labels.index.difference(ids), str(path))
    y, classes = _codes(labels.reindex(ids))
    return IncompleteDataset(
        name=path.name,
        data=check_views({name: aligned_matrix(view, ids, name) for name, view in views.items()}),
        y=y,
        classes=classes,
        ids=ids.to_numpy(),
        description=f"{len(views)} views joined by {id_column} from {path.name}",
    )


def table_files(path: Path) -> list[Path]:
    """Files that hold tables, by name; there is at least one view and no two share a name."""
    files = sorted(file for file in path.iterdir() if is_table(file))
    names = [file.stem for file in files]
    if set(names) <= {LABELS_FILE}:
        msg = (
            f"{path} must hold one .csv or .parquet file per view but holds "
            f"{', '.join(sorted(file.name for file in path.iterdir())) or 'nothing'}; "
            "save every view as a table of its own"
        )
        raise InvalidViewsError(msg)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        msg = (
            f"{path} holds several tables named {twice[0]}; a view is named after its file, so "
            "rename or remove one of them"
        )
        raise InvalidViewsError(msg)
    return files


def _all_ids(views: Mapping[str, pd.DataFrame]) -> pd.Index:
    """Identifiers of all views, each once, in the order in which they appear."""
    import pandas as pd

    rows = np.concatenate([view.index.to_numpy(str) for view in views.values()])
    return pd.Index(pd.unique(rows))


def _codes(labels: pd.Series) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Classes counted from 0, -1 where there is no label, and the labels they stand for."""
    codes, classes = labels.factorize(sort=True)
    return np.where(codes < 0, UNLABELLED, codes).astype(np.int64), tuple(classes.tolist())
