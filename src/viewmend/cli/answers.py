"""What a model says of samples, whether it was fitted on them or not."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from viewmend.cli.origin import Origin, fingerprints, read_origin
from viewmend.data import MultiViewData, Request, read_view_tables, result_frame
from viewmend.exceptions import DataWarning
from viewmend.persistence import load
from viewmend.storage.atomic import replacing
from viewmend.storage.errors import ModelFileError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class KnownModel:
    """A model, and the data it was fitted on if that is known."""

    model: Any
    origin: Origin | None


@dataclass(frozen=True, eq=False)
class Answers:
    """Classes of samples: those of the fit keep what it found, new ones are predicted.

    ``frame`` is that of `result_frame`. ``fit_rows`` (n_samples,) tells which sample of the fit
    each is, -1 for new ones, and ``given`` (n_samples,) whose labels the model was given.
    """

    frame: pd.DataFrame
    fit_rows: np.ndarray
    given: np.ndarray


def load_model(path: Path) -> KnownModel:
    """A model and its origin from their files."""
    return KnownModel(load(path), read_origin(path))


def origin_for(known: KnownModel, path: Path) -> Origin:
    """The origin of a model, without which nothing tells the samples of its fit from others."""
    if known.origin is None:
        msg = (
            f"{path} has no {path.name}.json beside it, which tells the samples and labels that it "
            "was fitted on; copy that file along with the model, or fit again"
        )
        raise ModelFileError(msg)
    return known.origin


def read_for(known: KnownModel, data: Path, request: Request) -> MultiViewData:
    """Data in the layout of a model."""
    origin = known.origin
    if origin is None:
        msg = (
            "nothing tells which columns the model was fitted on, because the JSON file beside it "
            "is missing; they are taken in the order of the files"
        )
        warnings.warn(msg, DataWarning, stacklevel=2)
        tables = read_view_tables(data, request)
        return tables.aligned(tables.medians())
    id_column = request.id_column or origin.id_column
    asked = replace(request, id_column=id_column, columns=origin.columns)
    return read_view_tables(data, asked).aligned(origin.fills)


def answer(known: KnownModel, aligned: MultiViewData) -> Answers:
    """What the model says of every sample."""
    import pandas as pd

    rows = _fit_rows(known.origin, aligned)
    new, parts = rows < 0, []
    if new.any():
        parts.append(result_frame(known.model, new=aligned[new]))
    if not new.all():
        parts.append(result_frame(known.model).iloc[rows[~new]].set_axis(aligned.sample_ids[~new]))
    return Answers(
        pd.concat(parts).loc[aligned.sample_ids], rows, _given(known.origin, aligned, rows)
    )


def _fit_rows(origin: Origin | None, aligned: MultiViewData) -> np.ndarray:
    """Rows of the fit that hold the same samples, -1 for new ones, (n_samples,) of int."""
    if origin is None:
        return np.full(len(aligned), -1)
    # Of samples that are equal in every view, a labelled one counts.
    by_label = np.argsort(origin.labelled, kind="stable")
    place = {origin.samples[row]: int(row) for row in by_label}
    return np.array([place.get(mark, -1) for mark in fingerprints(aligned)])


def _given(origin: Origin | None, aligned: MultiViewData, rows: np.ndarray) -> np.ndarray:
    """Samples that the model knows the labels of, by what they hold or by what they are called."""
    if origin is None:
        return np.zeros(len(rows), dtype=bool)
    by_content = np.array(origin.labelled)[rows] & (rows >= 0)
    return by_content | np.isin(aligned.sample_ids.astype(str), list(origin.labelled_ids))


def prediction_table(
    frame: pd.DataFrame, id_column: str | None, withheld: np.ndarray | None = None
) -> pd.DataFrame:
    """The columns of a file of predictions: identifier, class, confidence, probabilities.

    Identifiers are headed ``id_column``, or "row" where rows are just counted. Samples that are
    ``withheld`` (n_samples,) have an empty class.
    """
    table = frame.rename(columns=lambda name: name.replace("share_", "p_", 1))
    told = table.pop("prediction").astype(object)
    table.insert(0, "class", told if withheld is None else told.mask(withheld))
    return table.rename_axis(index=id_column or "row")


def write_predictions(table: pd.DataFrame, path: Path) -> None:
    """Write a file of predictions, with six digits of every share."""
    with replacing(path) as stream:
        table.to_csv(stream, float_format="%.6g")
