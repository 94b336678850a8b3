"""Read one table per file, with its identifiers as index, in whatever dialect it was written."""

from __future__ import annotations

import codecs
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from viewmend.data.indices import as_text, objects
from viewmend.data.io.border import check_size, reading
from viewmend.data.joining import check_one_length, identifiers
from viewmend.exceptions import DataWarning, InvalidViewsError
from viewmend.extras import how_to_install
from viewmend.parameters import short
from viewmend.text import counted, from_csv_cell

if TYPE_CHECKING:
    import pandas as pd


# Characters that spreadsheets put between cells; the most frequent one of the header counts.
SEPARATORS = (",", ";", "\t", "|")
# Bytes looked at to tell how a text file was written.
HEAD = 2**16
# What pandas calls a column without a name, the first one of a table above all.
NAMELESS = re.compile(r"Unnamed: \d+")
FIRST_NAMELESS = "Unnamed: 0"
# Numbers with a decimal comma, and with points between thousands.
THOUSANDS = re.compile(r"[-+]?(?:0|[1-9]\d*|[1-9]\d{0,2}(?:\.\d{3})+)(?:,\d+)?")
# What no identifier looks like.
FRACTION = re.compile(r"[-+]?\d*\.\d+(?:e[-+]?\d+)?", re.IGNORECASE)


def read_tables(
    files: Sequence[Path], id_column: str | None = None, not_ids: Collection[str | None] = ()
) -> dict[str, pd.DataFrame]:
    """Tables by the names of their files, joined by one column of identifiers.

    Files are CSV (UTF-8 or Windows; comma, semicolon, tab or bar; decimal point or comma) or
    Parquet. Without ``id_column``, `shared_id_column` finds it, and `_named_instead` where that has
    no name; ``not_ids`` are something else, such as labels. The index is named after the column and
    holds identifiers as text, each once.
    """
    if id_column is not None:
        return {file.stem: _read_table(file, id_column) for file in files}
    headers = {file.name: header_of(file) for file in files}
    found = shared_id_column(headers, not_ids)
    if NAMELESS.fullmatch(found):
        found = _named_instead(found, files, not_ids)
    tables = {file.stem: _read_table(file, found) for file in files}
    if found.lower() != "id":
        for file, table in zip(files, tables.values(), strict=True):
            _check_no_measurements(table.index, file)
    return tables


def header_of(file: Path) -> list[str]:
    """Names of the columns of a table."""
    return list(_frame(file, n_rows=0))


def shared_id_column(
    headers: Mapping[str, Sequence[str]], not_ids: Collection[str | None] = ()
) -> str:
    """Name of the column that tables with these headers can be joined by.

    That is a column called id, else the only one that all tables share, else the one that all
    of them begin with. The columns ``not_ids`` are something else.
    """
    first, *others = headers.values()
    possible = [name for name in first if name not in not_ids]
    shared = [name for name in possible if all(name in other for other in others)]
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


def _named_instead(nameless: str, files: Sequence[Path], not_ids: Collection[str | None]) -> str:
    """The column to join by in place of one without a name, if that holds row numbers.

    pandas writes row numbers to CSV unless it is told not to. They do not say which rows of two
    tables belong together, as a named column that tells apart the rows of all tables does.
    """
    frames = {file.name: _frame(file, nameless) for file in files}
    numbers = [frame[nameless].astype(str).tolist() for frame in frames.values()]
    if not all(name.isdecimal() for names in numbers for name in names):
        return nameless
    just_count = all(names == [str(i) for i in range(len(names))] for names in numbers)
    named = _named_ids(list(frames.values()), not_ids)
    if just_count and len(named) == 1:
        return named[0]
    if just_count and not named:
        check_one_length({name: len(frame) for name, frame in frames.items()})
    if not named or len(files) == 1:
        return nameless
    msg = (
        f"the tables {short(list(frames))} have numbers in a column without a name, and "
        f"{short(named)} can be identifiers too; say which column it is"
    )
    raise InvalidViewsError(msg)


def _named_ids(frames: Sequence[pd.DataFrame], not_ids: Collection[str | None]) -> list[str]:
    """Columns with a name that tell the rows of all these tables apart.

    They hold text or, where they join several tables, whole numbers, which could else be a feature;
    so could any text of a single table but the first. The column that all tables begin with counts
    before others.
    """
    named = [[name for name in frame if not NAMELESS.fullmatch(str(name))] for frame in frames]
    shared = [name for name in named[0] if all(name in names for names in named)]
    shared = [name for name in shared if name not in not_ids]
    if len(frames) == 1:
        shared = shared[:1]
    kinds = "Oiu" if len(frames) > 1 else "O"
    usable = [
        name
        for name in shared
        if all(
            frame[name].dtype.kind in kinds and frame[name].notna().all() and frame[name].is_unique
            for frame in frames
        )
    ]
    leads = [name for name in usable if all(names[0] == name for names in named)]
    return leads or usable


def _check_no_measurements(ids: pd.Index, file: Path) -> None:
    """Refuse fractions that were taken for identifiers because of the place of their column."""
    fractions = [name for name in ids if FRACTION.fullmatch(name)]
    if 2 * len(fractions) > len(ids):
        msg = (
            f"column {ids.name!r} of {file} would have to tell which sample a row is, as no column "
            f"is called id, but holds numbers such as {fractions[0]}; give all tables a column id, "
            f"or say which one it is"
        )
        raise InvalidViewsError(msg)


def _read_table(file: Path, id_column: str) -> pd.DataFrame:
    """One table with its identifiers, as text, for index."""
    frame = _frame(file, id_column)
    if id_column not in frame.columns:
        msg = (
            f"{file} has no column {id_column!r} to join its rows by, but {short(list(frame))}; "
            "add one, or name it in id_column"
        )
        raise InvalidViewsError(msg)
    frame = _without_nameless(frame, id_column, file)
    ids = frame.pop(id_column)
    # Numbers beside an empty cell have become floats: 7.0 is 7.
    text = [name.strip() for name in as_text(ids)]
    index = identifiers(objects(text), f"column {id_column!r} of {file}", ids.isna().to_numpy())
    return frame.set_axis(index.rename(id_column), axis=0)


def is_table(file: Path) -> bool:
    """Whether the ending is one of `FORMATS`; what programs hide beside their files is none."""
    return file.suffix.lower() in FORMATS and not file.name.startswith((".", "~"))


def _frame(file: Path, id_column: str | None = None, n_rows: int | None = None) -> pd.DataFrame:
    """The table as it stands, or its first rows; a file that cannot be read is named."""
    try:
        with reading(file):
            return FORMATS[file.suffix.lower()](file, id_column, n_rows)
    except ImportError as error:
        msg = f"reading {file} needs pyarrow, which is not installed; {how_to_install('bench')}"
        raise ImportError(msg) from error


def _without_nameless(frame: pd.DataFrame, id_column: str, file: Path) -> pd.DataFrame:
    """Row numbers that a program wrote beside the data would be taken for a feature."""
    nameless = [name for name in frame if NAMELESS.fullmatch(str(name)) and name != id_column]
    if nameless:
        msg = (
            f"left out {counted(len(nameless), 'column')} of {file.name} without a name, as row "
            "numbers have that a program wrote beside the data; name it in the header to keep it"
        )
        warnings.warn(msg, DataWarning, stacklevel=4)
    return frame.drop(columns=nameless)


def _dialect(file: Path) -> dict[str, str]:
    """The dialect of a text file, detected from its first lines, as arguments of pandas."""
    with file.open("rb") as stream:
        head = stream.read(HEAD)
    encoding = _encoding(head)
    lines = [line for line in head.decode(encoding, errors="ignore").splitlines() if line.strip()]
    header = re.sub(r'"[^"]*"', "", lines[0]) if lines else ""
    separator = max(SEPARATORS, key=header.count)
    # The last line may have been cut in two.
    decimal = _decimal(lines[1:-1] or lines[1:], separator)
    return {"encoding": encoding, "sep": separator, "decimal": decimal}


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
    comma = re.compile(rf'(?:^|{edge})\s*"?\s*-?\d+,\d+\s*"?\s*(?:{edge}|$)')
    return "," if any(comma.search(line) for line in lines) else "."


def _parsed(file: Path, **options: Any) -> pd.DataFrame:
    import pandas as pd

    with warnings.catch_warnings():
        # Cells beyond the header would be cut off, and without index_col shift all the others.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return pd.read_csv(
                file,
                skipinitialspace=True,
                index_col=False,
                **_dialect(file),
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


def _csv_frame(file: Path, id_column: str | None, n_rows: int | None) -> pd.DataFrame:
    check_size(file, 8 * _count_cells(file))
    header = _parsed(file, nrows=0)
    if n_rows == 0:
        return header.rename(columns=_name)
    # Names may stand between blanks. Identifiers are names: 007 is not 7.
    columns = [name for name in header if _name(name) == id_column]
    frame = _parsed(file, nrows=n_rows, dtype=dict.fromkeys(columns, str))
    if _dialect(file)["decimal"] == ",":
        _check_no_thousands(frame.drop(columns=columns))
    # Text that begins like a formula is written with an apostrophe before it.
    for place in [place for place, dtype in enumerate(frame.dtypes) if dtype.kind == "O"]:
        frame.isetitem(place, frame.iloc[:, place].map(from_csv_cell))
    return frame.rename(columns=_name)


def _check_no_thousands(frame: pd.DataFrame) -> None:
    """Refuse points between thousands, which would be read as decimal points.

    They are so in a table with decimal commas, if no other number of their column has a point.
    """
    for name in [name for name, dtype in frame.dtypes.items() if dtype.kind == "O"]:
        cells = frame[name].dropna().astype(str).str.strip()
        grouped = cells[cells.str.contains(".", regex=False)]
        if len(grouped) and cells.map(THOUSANDS.fullmatch).notna().all():
            msg = (
                f"column {name!r} has {grouped.iloc[0]!r} in a table with decimal commas, where it "
                f"can be {grouped.iloc[0].replace('.', '')!r}; save numbers without points between "
                f"thousands"
            )
            raise InvalidViewsError(msg)


def _name(written: str) -> str:
    return str(from_csv_cell(written.strip()))


def _count_cells(file: Path) -> int:
    """Cells of a text file or more: short rows are filled up to the width of the header."""
    n_lines = width = 1
    with file.open("rb") as stream:
        # Of the first lines with something in them, one is the header.
        for line in islice(stream, 10):
            width = max(width, *(line.count(separator.encode()) + 1 for separator in SEPARATORS))
        stream.seek(0)
        for block in iter(lambda: stream.read(HEAD), b""):
            n_lines += max(block.count(b"\n"), block.count(b"\r"))
    return width * n_lines


def _parquet_frame(file: Path, _id_column: str | None, _n_rows: int | None) -> pd.DataFrame:
    import pandas as pd

    _check_parquet(file)
    frame = pd.read_parquet(file)
    # Identifiers may have been saved as the index, and need no name there. Plain row numbers are
    # not saved.
    if isinstance(frame.index, pd.RangeIndex) and frame.index.name is None:
        return frame
    unnamed = frame.index.nlevels == 1 and frame.index.name is None
    return frame.reset_index(names=FIRST_NAMELESS if unnamed else None)


def _check_parquet(file: Path) -> None:
    """Refuse a table that is larger than it can be."""
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(file) as content:
        found, types = content.metadata, content.schema_arrow
        texts = [name for name in types.names if pyarrow.types.is_string(types.field(name).type)]
    check_size(file, 8 * found.num_rows * found.num_columns)
    check_size(file, sum(found.row_group(i).total_byte_size for i in range(found.num_row_groups)))
    if texts:
        check_size(file, _text_bytes(file, texts))


def _text_bytes(file: Path, columns: list[str]) -> int:
    """Bytes of the texts of a Parquet file: one that is stored once may stand in every row."""
    import pyarrow.compute
    import pyarrow.parquet

    n_bytes = 0
    with pyarrow.parquet.ParquetFile(file, read_dictionary=columns) as content:
        for batch in content.iter_batches(columns=columns):
            for column in batch.columns:
                sizes = pyarrow.compute.binary_length(column.dictionary)
                n_bytes += pyarrow.compute.sum(sizes.take(column.indices)).as_py() or 0
    return n_bytes


# How a file is read by its ending, given the column of identifiers and the most rows to read.
FORMATS: Mapping[str, Callable[[Path, str | None, int | None], pd.DataFrame]] = {
    ".csv": _csv_frame,
    ".tsv": _csv_frame,
    ".parquet": _parquet_frame,
}
