"""What files hold: one table per view, and labels in these or in a file of their own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from viewmend.data.annotated import MAIN_MATRIX, is_written_back
from viewmend.data.arrays import as_table
from viewmend.data.categories import Categories
from viewmend.data.class_names import MISSING_MARKS
from viewmend.data.indices import as_text, objects
from viewmend.data.io.hdf5 import check_hdf5_file
from viewmend.data.io.mat import read_mat
from viewmend.data.io.npz import read_npz
from viewmend.data.io.tables import FORMATS, header_of, is_table, read_tables
from viewmend.data.joining import column_labels, identifiers
from viewmend.data.scverse import annotated_tables
from viewmend.data.validation import check_complete_data, without_zero_rows
from viewmend.exceptions import DataWarning, InvalidLabelsError, InvalidViewsError
from viewmend.parameters import short
from viewmend.text import counted

if TYPE_CHECKING:
    import pandas as pd


# Column of labels where none is named, by kind of file, and the array of identifiers.
TABLE_LABELS, ARRAY_LABELS = "label", "y"
ARRAY_IDS = "ids"
# What an array of bools is called that says which sample has which view.
MASKS = ("mask", "observed")
# File of labels in a folder, whatever its ending.
LABELS_FILE = "labels"

# Endings of tables that are not read: of spreadsheets, text files and packed files.
UNREAD = (".xlsx", ".xls", ".xlsm", ".ods", ".txt", ".csv.gz", ".tsv.gz", ".csv.zip")

# A file and a column of it, or of the data where it is in no file of its own.
Place = tuple[Path | None, str | None]


@dataclass(frozen=True)
class Request:
    """How to read data; everything left out is detected.

    Attributes
    ----------
    id_column : str or None
        Column of identifiers.
    labels : str or None
        Column of labels, or a file of labels, or both as in ``truth.csv:stage``.
    groups : str or None
        Column that says which samples belong together, such as the patient of each row, or a
        file of them, or both as in ``visits.csv:patient``.
    unlabelled : tuple of str
        Values of the column of labels that mean no label; empty cells always do.
    views : tuple of str
        Views to read; all if empty.
    leave_out : tuple of str
        Columns that are no features, in whichever views have them.
    columns : dict of str to sequence of str, optional
        Columns of every view of the data that a model was fitted on; this data must have them.
    categories : dict of dict
        How columns of categories of that data were converted, by view and column.
    unreadable_as_missing : bool
        Whether cells such as ``<0.05`` in a column of numbers count as missing; otherwise a fit
        refuses them.
    not_views : tuple of Path
        Files that are no views, where they lie in the folder that is read. Files of labels and
        groups are none in any case.
    """

    id_column: str | None = None
    labels: str | None = None
    unlabelled: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()
    columns: Mapping[str, Sequence[str]] | None = None
    categories: Mapping[str, Mapping[Any, Categories]] = field(default_factory=dict)
    unreadable_as_missing: bool = False
    groups: str | None = None
    not_views: tuple[Path, ...] = ()

    def labels_place(self) -> Place:
        """File and column that ``labels`` names, either of which may be left to be found."""
        return place_of(self.labels)

    def groups_place(self) -> Place:
        """The same of ``groups``."""
        return place_of(self.groups)

    def is_view(self, file: Path) -> bool:
        """Whether a table of a folder is a view, however the paths to others are written."""
        named = (self.labels_place()[0], self.groups_place()[0], *self.not_views)
        return not any(other is not None and file.samefile(other) for other in named)


def place_of(words: str | None) -> Place:
    """File and column that words such as ``truth.csv:stage`` name."""
    if words is None:
        return None, None
    for name, column in ((words, None), words.rpartition(":")[::2]):
        if is_table(Path(name)) and Path(name).is_file():
            return Path(name), column
    return None, words


@dataclass(frozen=True, eq=False)
class Contents:
    """What a file holds, as it is: views, and tables in which labels may be found, by identifier.

    ``usual_labels`` is the column of labels where none is named; ``id_column`` is what the
    identifiers are called, None where rows are just counted.
    """

    tables: Mapping[str, pd.DataFrame]
    label_tables: Mapping[str, pd.DataFrame]
    usual_labels: str = TABLE_LABELS
    id_column: str | None = None


def read_contents(path: Path, request: Request) -> Contents:
    """What a file or folder holds, read by the row of `READERS` that its ending names."""
    if not path.exists():
        msg = f"there is no file or folder {str(path)!r}; check the path"
        raise FileNotFoundError(msg)
    kind = FOLDER if path.is_dir() else path.suffix.lower()
    if kind not in READERS:
        known = ", ".join(suffix for suffix in READERS if suffix != FOLDER)
        msg = f"{path} must be a folder or end in {known}; convert it to one of these"
        raise InvalidViewsError(msg)
    return READERS[kind](path, request)


def _from_folder(path: Path, request: Request) -> Contents:
    views = [file for file in _table_files(path) if request.is_view(file)]
    if not views:
        msg = (
            f"{path} must hold one .csv or .parquet file per view but holds only files of labels, "
            "groups or costs; save every view as a table of its own"
        )
        raise InvalidViewsError(msg)
    return _from_tables(views, request)


def _table_files(path: Path) -> list[Path]:
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
    _tell_unread(path)
    return files


def _tell_unread(path: Path) -> None:
    """Warn of files that look like tables, of a kind that is not read."""
    names = sorted(file.name for file in path.iterdir() if not file.name.startswith(("~", ".")))
    unread = [name for name in names if name.lower().endswith(UNREAD)]
    if unread:
        msg = (
            f"left out {short(unread)}, which cannot be read as tables; save them as CSV if they "
            "are views"
        )
        warnings.warn(msg, DataWarning, stacklevel=5)


def _from_tables(files: Sequence[Path], request: Request) -> Contents:
    columns = (request.labels_place()[1] or TABLE_LABELS, request.groups_place()[1])
    tables = read_tables(files, request.id_column, not_ids=columns)
    views = {name: table for name, table in tables.items() if name != LABELS_FILE}
    id_column = next(iter(tables.values())).index.name
    return Contents(views, tables, id_column=id_column)


def _from_npz(path: Path, _request: Request) -> Contents:
    arrays = read_npz(path)
    y, ids = (
        _one_per_row(arrays.pop(name, None), name, path) for name in (ARRAY_LABELS, ARRAY_IDS)
    )
    views = {name: array for name, array in arrays.items() if array.ndim == 2}
    masks = [name for name, view in views.items() if name in MASKS and view.dtype == bool]
    if masks:
        msg = (
            f"{path} holds {masks[0]!r}, which would be read as a view; fill the rows of missing "
            f"samples with NaN and leave it out, or rename it if it is a view"
        )
        raise InvalidViewsError(msg)
    if strange := {name: array.shape for name, array in arrays.items() if array.ndim != 2}:
        msg = (
            f"left out {counted(len(strange), 'array')} of {path.name} ({short(strange)}), which "
            f"are neither 2-D views nor called {ARRAY_LABELS} or {ARRAY_IDS}"
        )
        warnings.warn(msg, DataWarning, stacklevel=4)
    return _from_arrays(views, y, ids, path)


def _one_per_row(array: np.ndarray | None, name: str, path: Path) -> np.ndarray | None:
    """Labels or identifiers (n_samples,), which may stand in a column or a row."""
    if array is not None and (array.ndim == 0 or max(array.shape) != array.size):
        msg = (
            f"{name!r} of {path} must be one value per sample, (n_samples,), got shape "
            f"{array.shape}; of indicator columns of classes, save Y.argmax(axis=1)"
        )
        raise InvalidLabelsError(msg)
    return None if array is None else array.ravel()


def _from_mat(path: Path, _request: Request) -> Contents:
    # In files of this form, which have no other mark, a row of zeros is a missing one.
    data = without_zero_rows(check_complete_data(*read_mat(path)), "in files of MATLAB")
    return _from_arrays(dict(zip(data.names, data.views, strict=True)), data.y, None, path)


def _from_arrays(
    views: Mapping[str, np.ndarray], y: np.ndarray | None, ids: np.ndarray | None, path: Path
) -> Contents:
    import pandas as pd

    lengths = {name: len(array) for name, array in views.items()}
    answers = {ARRAY_LABELS: y, ARRAY_IDS: ids}
    lengths |= {name: len(array) for name, array in answers.items() if array is not None}
    if not views or len(set(lengths.values())) > 1:
        msg = (
            f"{path} must hold one 2-D array per view, all with the same rows, but holds arrays "
            f"of lengths {short(lengths)}; fill the rows of missing samples with NaN"
        )
        raise InvalidViewsError(msg)
    n_samples = next(iter(lengths.values()))
    # As text, like the identifiers of tables, in which labels and groups may be.
    rows = np.arange(n_samples) if ids is None else ids
    text = objects(name.strip() for name in as_text(rows))
    index = identifiers(text, ARRAY_IDS, pd.isna(rows) | (text == ""))
    tables = {
        name: as_table(array, index, name, [str(column) for column in range(array.shape[1])])
        for name, array in views.items()
    }
    labels = {} if y is None else {path.name: pd.DataFrame({ARRAY_LABELS: y}, index=index)}
    return Contents(tables, labels, ARRAY_LABELS, None if ids is None else ARRAY_IDS)


def _from_h5mu(path: Path, _request: Request) -> Contents:
    import mudata

    check_hdf5_file(path)
    mdata = mudata.read_h5mu(path)
    obs = {"obs": mdata.obs, **{name: adata.obs for name, adata in mdata.mod.items()}}
    return _from_annotated({name: (adata, MAIN_MATRIX) for name, adata in mdata.mod.items()}, obs)


def _from_h5ad(path: Path, request: Request) -> Contents:
    import anndata

    check_hdf5_file(path)
    adata = anndata.read_h5ad(path)
    # What a model wrote comes from labels, so that a fit on it would know those it holds out.
    names = [key for key in adata.obsm if key in request.views or not is_written_back(adata, key)]
    if adata.X is not None and (not names or MAIN_MATRIX in request.views):
        names.append(MAIN_MATRIX)
    if not names:
        msg = f"{path} must hold a view, but has neither X nor an entry of obsm; add one of them"
        raise InvalidViewsError(msg)
    return _from_annotated({name: (adata, name) for name in names}, {"obs": adata.obs})


def _from_annotated(
    sources: Mapping[str, tuple[Any, str]], obs: Mapping[str, pd.DataFrame]
) -> Contents:
    tables = {name: table.rename(columns=str) for name, table in annotated_tables(sources).items()}
    labels = {name: table.set_axis(identifiers(table.index, name)) for name, table in obs.items()}
    return Contents(tables, labels, id_column="obs_names")


def find_labels(contents: Contents, request: Request) -> tuple[pd.Series | None, str]:
    """Labels by identifier, if there are any, and the name of their column."""
    file, column = request.labels_place()
    tables, place = contents.label_tables, "the data"
    if file is not None:
        tables, column = _answers(file, column, contents, "labels")
        place = str(file)
    if column is None:
        column = contents.usual_labels
        if not any(column in table for table in tables.values()):
            return None, column
    labels = column_labels(tables, column, place)
    return _without_unlabelled(labels, request.unlabelled, column), column


def find_groups(contents: Contents, request: Request) -> tuple[pd.Series | None, str | None]:
    """Groups by identifier, if they are asked for, and the name of their column."""
    file, column = request.groups_place()
    tables, place = contents.label_tables, "the data"
    if file is not None:
        tables, column = _answers(file, column, contents, "groups")
        place = str(file)
    return None if column is None else column_labels(tables, column, place, "group"), column


def _answers(
    file: Path, column: str | None, contents: Contents, kind: str
) -> tuple[dict[str, pd.DataFrame], str]:
    """The table of a file of labels, or of another ``kind``, and the column that has them."""
    # Its identifiers may be called otherwise than those of the data.
    shared = contents.id_column in header_of(file)
    tables = read_tables([file], contents.id_column if shared else None, not_ids=(column,))
    return tables, column or _only_column(tables[file.stem], file, kind)


def _only_column(table: pd.DataFrame, file: Path, kind: str) -> str:
    if kind == "labels" and TABLE_LABELS in table:
        return TABLE_LABELS
    if table.shape[1] != 1:
        called = f", or one called {TABLE_LABELS}" if kind == "labels" else ""
        msg = (
            f"{file} must have one column beside the identifiers{called}, but has "
            f"{short(list(table))}; say which one holds the {kind}, as in "
            f"{file.name}:{table.columns[0] if len(table.columns) else 'stage'}"
        )
        raise InvalidLabelsError(msg)
    return str(table.columns[0])


def _without_unlabelled(labels: pd.Series, unlabelled: Sequence[str], column: str) -> pd.Series:
    """Labels without those that stand for none."""
    values = labels.map(_as_written)
    # Marks such as NA and -1 may have been left out already, as empty cells are.
    named = [value for value in unlabelled if value not in MISSING_MARKS]
    absent = [value for value in named if not (values == value).any()]
    if absent:
        msg = (
            f"{absent[0]!r} must be a value of the column {column!r} to mean no label, but it "
            f"holds {short(sorted(values.unique()))}; leave it out if empty cells mean that"
        )
        raise InvalidLabelsError(msg)
    return labels[~values.isin(unlabelled)]


def _as_written(label: Any) -> str:
    """A label as it stands in the file, where numbers beside empty cells have become floats."""
    whole = isinstance(label, float) and label.is_integer()
    return str(int(label)) if whole else str(label)


FOLDER = "folder"
READERS: Mapping[str, Callable[[Path, Request], Contents]] = {
    FOLDER: _from_folder,
    **dict.fromkeys(FORMATS, lambda path, request: _from_tables([path], request)),
    ".npz": _from_npz,
    ".mat": _from_mat,
    ".h5mu": _from_h5mu,
    ".h5ad": _from_h5ad,
}
