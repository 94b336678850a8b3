"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from viewmend.data import Request

Data = Annotated[
    Path,
    typer.Argument(
        help="Folder with one CSV or Parquet file per view, joined by a column of identifiers; or "
        "a .npz, .mat, .h5mu or .h5ad file.",
        show_default=False,
        metavar="DATA",
    ),
]
ModelFile = Annotated[
    Path,
    typer.Argument(
        help="Model file, from `viewmend fit -o` or `viewmend.save`.",
        show_default=False,
        metavar="MODEL",
    ),
]
FitFile = Annotated[
    Path,
    typer.Argument(help="Model file, from `viewmend fit -o`.", show_default=False, metavar="MODEL"),
]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        "-l",
        metavar="COLUMN",
        help="Column of labels in one or more of the tables; or a file of labels, as in truth.csv "
        "or truth.csv:stage. Samples with an empty cell are unlabelled.",
        show_default="label; y in .npz and .mat",
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="COLUMN",
        help="Column that says which samples belong together, such as the patient of each row; or "
        "a file, as in visits.csv:patient. Labels of one group are held out together.",
        show_default=False,
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help="Column of identifiers of the samples.",
        show_default="id, or the column that the tables share",
    ),
]


def _repeated(flag: str, metavar: str, text: str, default: str | bool = False) -> Any:
    """An option that may be given several times."""
    help_text = f"{text}; may be repeated."
    return typer.Option(flag, metavar=metavar, help=help_text, show_default=default)


Unlabelled = Annotated[
    list[str] | None,
    _repeated("--unlabelled", "VALUE", "Label that means unlabelled, such as unknown"),
]
Views = Annotated[
    list[str] | None,
    _repeated(
        "--view",
        "NAME",
        "View to use: a file of the folder, a modality, or an entry of obsm",
        "all",
    ),
]
LeaveOut = Annotated[
    list[str] | None,
    _repeated(
        "--leave-out", "COLUMN", "Column not to use as a feature, such as a remark or an outcome"
    ),
]
UnreadableAsMissing = Annotated[
    bool,
    typer.Option(
        "--unreadable-as-missing",
        help="Treat cells such as <0.05 or n.d. in columns of numbers as missing.",
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object instead; notes go to standard error.")
]


def files_of(request: Request) -> list[Path]:
    """Files that are read beside the data: of labels, and of groups."""
    places = (request.labels_place(), request.groups_place())
    return [file for file, _ in places if file is not None]


def request_for(
    id_column: str | None = None,
    labels: str | None = None,
    unlabelled: list[str] | None = None,
    views: list[str] | None = None,
    leave_out: list[str] | None = None,
    unreadable_as_missing: bool = False,
    groups: str | None = None,
) -> Request:
    """What the options above ask for."""
    return Request(
        id_column,
        labels,
        tuple(unlabelled or ()),
        tuple(views or ()),
        tuple(leave_out or ()),
        unreadable_as_missing=unreadable_as_missing,
        groups=groups,
    )
