"""What commands that give advice share: the model asked, and the names of its samples."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console

from viewmend.cli.answers import read_for, rows_of_fit, write_sample_table
from viewmend.cli.console import check_table, check_writable, json_label, say, show_table
from viewmend.data import MultiViewData, Request
from viewmend.data.origin import fingerprints
from viewmend.exceptions import DataWarning, InvalidParameterError, InvalidViewsError
from viewmend.persistence import load

if TYPE_CHECKING:
    import pandas as pd

DataOfFit = Annotated[
    Path | None,
    typer.Argument(
        help="Data of the fit, for its identifiers. Only needed for a model that was fitted in "
        "Python to data without identifiers.",
        show_default=False,
        metavar="DATA",
    ),
]
Table = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        dir_okay=False,
        help="Write the whole table to this CSV file.",
        show_default=False,
    ),
]


@dataclass(frozen=True, eq=False)
class Names:
    """Identifiers ``ids`` (n_samples,) of samples, and what they are called."""

    ids: np.ndarray
    heading: str

    def table(self, rows: np.ndarray, columns: Mapping[str, Any]) -> pd.DataFrame:
        """A frame about the samples ``rows`` (n,), each column (n,)."""
        import pandas as pd

        return pd.DataFrame(dict(columns), index=pd.Index(self.ids[rows], name=self.heading))


def load_advisor(path: Path) -> Any:
    """Load a model that can suggest labels and views, and find suspect labels."""
    model = load(path)
    if not hasattr(model, "suggest_labels"):
        msg = (
            f"{path} must be a model of the method Mend for this command, but is a "
            f"{type(model).__name__}; fit again with --method Mend"
        )
        raise InvalidParameterError(msg)
    return model


def names_of_fit(model: Any, path: Path, data: Path | None, request: Request) -> Names:
    """Names of the samples of a fit, from its file or else from its data."""
    origin, n_samples = model.fitted_state_.origin, len(model.transduction_)
    kept = origin is not None and len(origin.ids) == n_samples
    heading = request.id_column or (origin and origin.id_column) or "row"
    if data is not None:
        aligned = read_for(model, data, request)
        if not kept:
            ids = _ids_in_order_of_fit(model, aligned)
            return Names(ids, request.id_column or "sample")
        rows_of_fit(origin, aligned)
    if kept:
        return Names(origin.ids, heading)
    if hasattr(model, "sample_ids_"):
        return Names(model.sample_ids_, request.id_column or "sample")
    msg = (
        f"{path} has no identifiers, because the model was fitted in Python to data without any; "
        "samples are numbered by row, from 0; pass the data of the fit to see identifiers"
    )
    warnings.warn(msg, DataWarning, stacklevel=2)
    return Names(np.arange(n_samples), heading)


def _ids_in_order_of_fit(model: Any, aligned: MultiViewData) -> np.ndarray:
    """Names of samples that a model does not name, of data that can be what it was fitted on."""
    if not np.array_equal(aligned.observed, model.observed_):
        msg = (
            f"the data must be what the model was fitted on, {len(model.observed_)} samples in "
            f"{len(model.view_names_)} views, but it is {len(aligned)} samples in "
            f"{aligned.n_views}, or its samples have other missing views; pass that data"
        )
        raise InvalidViewsError(msg)
    # The model knows the order of its samples by their content.
    hashes = fingerprints(aligned)[model.fitted_state_.order]
    if np.any(hashes[1:] < hashes[:-1]):
        msg = (
            "cannot check that the samples are in the order of the fit, because the data was read "
            "in another way there or has changed; the identifiers are right only if they are"
        )
        warnings.warn(msg, DataWarning, stacklevel=2)
    return aligned.sample_ids


def check_output(output: Path | None, *sources: Path | None) -> None:
    """Refuse a table that could not be written, is read, or would lie among the views."""
    if output is None:
        return
    check_writable(output, "--output")
    for source in sources:
        if source is not None:
            check_table(output, "--output", source)


def write_advice(table: pd.DataFrame, output: Path | None) -> dict[str, str]:
    """Write a table where one is asked for; what was written, by what it is."""
    if output is None:
        return {}
    write_sample_table(table, output)
    return {"table": str(output)}


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a table as JSON can hold them; identifiers are the ``sample``."""
    keys = ("sample", *table.columns)
    return [
        {key: json_label(cell) for key, cell in zip(keys, row, strict=True)}
        for row in table.itertuples(name=None)
    ]


def show_advice(
    rows: Sequence[Mapping[str, Any]], n_shown: int, lines: Sequence[str], files: Mapping[str, str]
) -> None:
    """The first rows of a table, how many more there are, and lines of words below."""
    console = Console()
    if rows:
        show_table(console, rows[:n_shown])
    rest = len(rows) - n_shown
    more = [f"... and {rest} more"] if rest > 0 else []
    told = [f"{kind}: {path}" for kind, path in files.items()]
    say(console, *more, "", *lines, *told)
