"""One table per file, its rows under their identifiers, however the file was written."""

from __future__ import annotations

import codecs
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from viewmend.exceptions import DataWarning, InvalidViewsError
from viewmend.parameters import short

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FORMATS", "header_of", "is_table", "read_table", "read_tables", "shared_id_column"]

# Characters that spreadsheets put between cells; the most frequent one of the header counts.
SEPARATORS = (",", ";", "\t", "|")
# Bytes looked at to tell how a text file was written.
HEAD = 2**16
# What pandas calls a column without a name.
NAMELESS = re.compile(r"Unnamed: \d+")


def read_tables(
    files: Sequence[Path], id_column: str | None = None, not_id: str | None = None
) -> dict[str, pd.DataFrame]:
    """Tables by the names of their files, joined by one column of identifiers.

    Parameters
    ----------
    files : sequence of Path
        CSV (UTF-8 or Windows; comma, semicolon, tab or bar; decimal point or comma) or Parquet.
    id_column : str, optional
        Column that tells which sample a row is; `shared_id_column` finds it if left out.
    not_id : str, optional
        Column that is something else, such as the labels.

    Returns
    -------
    dict of DataFrame
        The index is named after the column and holds identifiers as text, each once.
    """
    if id_column is None:
        id_column = shared_id_column({file.name: header_of(file) for file in files}, not_id)
    return {file.stem: read_table(file, id_column) for file in files}


def header_of(file: Path) -> list[str]:
    """Names of the columns of a table."""
    return _readable(file, _format(file).header)


def shared_id_column(headers: Mapping[str, Sequence[str]], not_id: str | None = None) -> str:
    """Name of the column that tables can be joined by.

    That is a column called id, else the only one that all tables share, else the one that all
    of them begin with.

    Parameters
    ----------
    headers : dict of sequence of str
        Columns of every table.
    not_id : str, optional
        Column that is something else.
    """
    first, *others = headers.values()
    shared = [name for name in first if name != not_id and all(name in other for other in others)]
    called_id = [name for name in shared if name.lower() == "id"]
    if called_id:
        return called_id[0]
    leads = shared and all(names[0] == shared[0] for names in headers.values())
    if leads or (len(shared) == 1 and others):
        return shared[0]
    msg = (
        f"no column tells which sample a row is: the tables {short(list(headers))} share the "
        f"columns {short(shared)}; give all of them a column id, or say which one it is"
    )
    raise InvalidViewsError(msg)


def read_table(file: Path, id_column: str) -> pd.DataFrame:
    """One table with its identifiers, as text, for index.

    Parameters
    ----------
    file : Path
        Its ending is one of `FORMATS`.
    id_column : str
    """
    frame = _readable(file, _format(file).frame, id_column)
    if id_column not in frame.columns:
        msg = (
            f"{file} has no column {id_column!r} to join its rows by, but {short(list(frame))}; "
            "add one, or name it in id_column"
        )
        raise InvalidViewsError(msg)
    frame = _without_nameless(frame, id_column, file)
    ids = frame.pop(id_column)
    empty = ids.isna()
    if empty.any():
        msg = (
            f"{file} must have {id_column} in every row, but {empty.sum()} are empty (the first is "
            f"row {int(empty.to_numpy().argmax()) + 1} below the header); fill them in or delete "
            "these rows"
        )
        raise InvalidViewsError(msg)
    frame = frame.set_index(ids.astype(str).str.strip())
    twice = frame.index[frame.index.duplicated()]
    if twice.size:
        msg = (
            f"{file} holds {id_column} {twice[0]!r} more than once; a view has one row per sample, "
            "so keep one of them or give them identifiers of their own"
        )
        raise InvalidViewsError(msg)
    return frame


def is_table(file: Path) -> bool:
    """Whether the ending is one of `FORMATS`; what programs hide beside their files is none."""
    return file.suffix.lower() in FORMATS and not file.name.startswith((".", "~"))


def _format(file: Path) -> Format:
    return FORMATS[file.suffix.lower()]


def _readable(file: Path, read: Callable[..., Any], *arguments: Any) -> Any:
    """What ``read`` makes of the file; a file that it cannot read is named."""
    try:
        return read(file, *arguments)
    except ImportError as error:
        msg = f"reading {file} needs a package that is not installed ({error}); install it"
        raise ImportError(msg) from error
    # Errors of the parsers and of the encoding are both of this kind.
    except ValueError as error:
        msg = f"{file} cannot be read as a table ({error}); save it as CSV in UTF-8, or as Parquet"
        raise InvalidViewsError(msg) from error


def _without_nameless(frame: pd.DataFrame, id_column: str, file: Path) -> pd.DataFrame:
    """Row numbers that a program wrote beside the data would be taken for a feature."""
    nameless = [name for name in frame if NAMELESS.fullmatch(str(name)) and name != id_column]
    if nameless:
        msg = (
            f"{len(nameless)} columns of {file.name} have no name, as row numbers that a program "
            "wrote beside the data, and were left out; name them in the header to keep them"
        )
        warnings.warn(msg, DataWarning, stacklevel=4)
    return frame.drop(columns=nameless)


@dataclass(frozen=True)
class Dialect:
    """How a text file was written."""

    encoding: str
    separator: str
    decimal: str


def _dialect(file: Path) -> Dialect:
    """Told by the first lines."""
    with file.open("rb") as stream:
        head = stream.read(HEAD)
    encoding = _encoding(head)
    lines = [line for line in head.decode(encoding, errors="ignore").splitlines() if line.strip()]
    header = re.sub(r'"[^"]*"', "", lines[0]) if lines else ""
    separator = max(SEPARATORS, key=header.count)
    # The last line may have been cut in two.
    return Dialect(encoding, separator, _decimal(lines[1:-1] or lines[1:], separator))


def _encoding(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        # Incremental, because the last character may have been cut in two.
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8-sig"


def _decimal(lines: Sequence[str], separator: str) -> str:
    if separator == ",":
        return "."
    edge = re.escape(separator)
    comma = re.compile(rf"(?:^|{edge})\s*-?\d+,\d+\s*(?:{edge}|$)")
    return "," if any(comma.search(line) for line in lines) else "."


def _csv(file: Path, **options: Any) -> pd.DataFrame:
    import pandas as pd

    dialect = _dialect(file)
    with warnings.catch_warnings():
        # Cells beyond the header would be cut off, and without index_col shift all the others.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return pd.read_csv(
                file,
                sep=dialect.separator,
                decimal=dialect.decimal,
                encoding=dialect.encoding,
                skipinitialspace=True,
                index_col=False,
                **_exactly(pd.__version__),
                **options,
            )
        except pd.errors.ParserWarning as error:
            msg = "its rows have more cells than its header"
            raise ValueError(msg) from error


def _exactly(version: str) -> dict[str, str]:
    """What makes pandas read numbers as they stand; from 3.1 on it does so unasked."""
    release = tuple(int(part) for part in version.split(".")[:2])
    return {} if release >= (3, 1) else {"float_precision": "round_trip"}


def _csv_names(file: Path) -> dict[str, str]:
    """Names in the header, as they stand there, by the names without blanks around them."""
    return {str(name).strip(): name for name in _csv(file, nrows=0).columns}


def _csv_header(file: Path) -> list[str]:
    return list(_csv_names(file))


def _csv_frame(file: Path, id_column: str) -> pd.DataFrame:
    names = _csv_names(file)
    # Identifiers are names: 007 is not 7.
    frame = _csv(file, dtype={names.get(id_column, id_column): str})
    return frame.rename(columns=str.strip)


def _parquet_header(file: Path) -> list[str]:
    return list(_parquet_frame(file, "").columns)


def _parquet_frame(file: Path, _id_column: str) -> pd.DataFrame:
    import pandas as pd

    frame = pd.read_parquet(file)
    # Identifiers may have been saved as the index.
    return frame if frame.index.name is None else frame.reset_index()


@dataclass(frozen=True)
class Format:
    """How the columns of a file are listed, and how all of it is read."""

    header: Callable[[Path], list[str]]
    frame: Callable[[Path, str], Any]


_TEXT = Format(_csv_header, _csv_frame)
FORMATS: Mapping[str, Format] = {
    ".csv": _TEXT,
    ".tsv": _TEXT,
    ".parquet": Format(_parquet_header, _parquet_frame),
}
