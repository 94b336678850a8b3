"""Predictions of a model for samples of its fit and for new samples."""

from __future__ import annotations

import csv
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from viewmend.data import MultiViewData, Request, read_view_tables, result_frame
from viewmend.data.class_names import class_texts
from viewmend.data.column_names import columns_of_fit
from viewmend.data.indices import text_of
from viewmend.data.origin import Origin, fingerprints
from viewmend.exceptions import DataWarning, InvalidViewsError
from viewmend.storage.atomic import replacing
from viewmend.storage.errors import ModelFileError
from viewmend.text import without_formulas

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Answers:
    """Classes of samples: those of the fit keep what it found, new ones are predicted.

    ``frame`` is that of `result_frame`. ``fit_rows`` (n_samples,) tells which sample of the fit
    each is, -1 for new ones, and ``given`` (n_samples,) whose labels the model was given.
    """

    frame: pd.DataFrame
    fit_rows: np.ndarray
    given: np.ndarray


def origin_for(model: Any, path: Path) -> Origin:
    """The origin of a model, which is needed to recognise the samples of its fit."""
    origin: Origin | None = model.fitted_state_.origin
    if origin is None or len(origin.ids) == 0:
        msg = (
            f"{path} does not name the samples that the model was fitted on, because it was saved "
            "in Python; fit again with viewmend fit"
        )
        raise ModelFileError(msg)
    return origin


def read_for(model: Any, data: Path, request: Request) -> MultiViewData:
    """Data in the layout of a model."""
    origin: Origin | None = model.fitted_state_.origin
    if origin is None:
        named = set(columns_of_fit(model)) == set(model.view_names_)
        matched = "by name" if named else "by position, in the order of the files"
        msg = (
            "the model was saved in Python and does not know how columns of categories were "
            f"converted; only columns of numbers are used, and matched {matched}"
        )
        warnings.warn(msg, DataWarning, stacklevel=2)
        aligned = read_view_tables(data, request).numbers_only().aligned()
        return _with_classes_of_fit(aligned, model.classes_)
    id_column = request.id_column or origin.id_column
    asked = replace(
        request,
        id_column=id_column,
        columns=origin.column_names,
        categories=origin.categories,
    )
    return _with_classes_of_fit(read_view_tables(data, asked).aligned(), model.classes_)


def _with_classes_of_fit(aligned: MultiViewData, classes: np.ndarray) -> MultiViewData:
    """The data with its labels as the model has them.

    Whether a file has the class 1 as a number or as text depends on its other labels.
    """
    if aligned.y is None:
        return aligned
    names = {text_of(label): label for label in classes.tolist()}
    y = np.empty(len(aligned), dtype=object)
    y[:] = [names.get(text_of(label), label) for label in aligned.y.tolist()]
    return replace(aligned, y=y)


def rows_of_fit(origin: Origin, aligned: MultiViewData) -> np.ndarray:
    """Rows of the data that hold the samples of the fit, in its order."""
    place = {name: row for row, name in enumerate(aligned.sample_ids.astype(str))}
    rows = np.array([place.get(name, -1) for name in origin.ids.tolist()])
    changed = (rows < 0) | (fingerprints(aligned)[rows] != origin.samples)
    if changed.any():
        msg = (
            f"the data must be what the model was fitted on, but {changed.sum()} of its "
            f"{len(rows)} samples, such as {str(origin.ids[changed.argmax()])!r}, are not there or "
            "have changed; pass that data, or fit again"
        )
        raise InvalidViewsError(msg)
    return rows


def answer(model: Any, aligned: MultiViewData) -> Answers:
    """Predictions for every sample."""
    import pandas as pd

    state = model.fitted_state_
    labelled = state.label_codes >= 0
    rows = _fit_rows(state.origin, labelled, aligned)
    new, parts = rows < 0, []
    if new.any():
        parts.append(result_frame(model, new=aligned[new]))
    if not new.all():
        parts.append(result_frame(model).iloc[rows[~new]].set_axis(aligned.sample_ids[~new]))
    given = _given(state.origin, labelled, aligned, rows)
    return Answers(pd.concat(parts).loc[aligned.sample_ids], rows, given)


def _fit_rows(origin: Origin | None, labelled: np.ndarray, aligned: MultiViewData) -> np.ndarray:
    """Rows of the fit that hold the same samples, -1 for new ones, (n_samples,) of int."""
    if origin is None:
        return np.full(len(aligned), -1)
    # Of samples that are equal in every view, a labelled one counts.
    by_label = np.argsort(labelled, kind="stable")
    place = dict(zip(origin.samples[by_label].tolist(), by_label.tolist(), strict=True))
    rows = np.array([place.get(mark, -1) for mark in fingerprints(aligned).tolist()])
    # Samples without any view are not told apart by what they hold.
    return np.where(aligned.unseen, -1, rows)


def _given(
    origin: Origin | None, labelled: np.ndarray, aligned: MultiViewData, rows: np.ndarray
) -> np.ndarray:
    """Samples that the model knows the labels of, by what they hold or by what they are called."""
    by_content = np.zeros(len(rows), dtype=bool)
    by_content[rows >= 0] = labelled[rows[rows >= 0]]
    if origin is None or origin.id_column is None:
        return by_content
    return by_content | np.isin(aligned.sample_ids.astype(np.str_), origin.ids[labelled])


def prediction_table(
    frame: pd.DataFrame, id_column: str | None, withheld: np.ndarray | None = None
) -> pd.DataFrame:
    """The columns of a file of predictions: identifier, class, confidence, probabilities.

    Identifiers are headed ``id_column``, or "row" where rows are just counted. Samples that are
    ``withheld`` (n_samples,) have an empty class.
    """
    told = frame["class"].astype(object)
    told = told if withheld is None else told.mask(withheld)
    return frame.assign(**{"class": told}).rename_axis(index=id_column or "row")


def set_texts(sets: np.ndarray, frame: pd.DataFrame, classes: np.ndarray) -> list[str]:
    """The classes in every set, (n_samples, n_classes) of bool, most probable first, as text."""
    shares = frame.iloc[:, -len(classes) :].to_numpy()
    order = np.argsort(-shares, axis=1, kind="stable")
    names = class_texts(classes)
    return [
        " | ".join(names[c] for c in ranked if chosen[c])
        for ranked, chosen in zip(order, sets, strict=True)
    ]


def write_sample_table(table: pd.DataFrame, path: Path) -> None:
    """Write a file about samples, with six digits of every number and no formulas."""
    safe = without_formulas(table)
    texts = table.select_dtypes(object)
    cells = (*table.index, *table, *(cell for name in texts for cell in texts[name].unique()))
    # Python's writer does not quote a carriage return, which readers take for the end of a row.
    returns = any("\r" in str(cell) for cell in cells)
    quoting = csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL
    with replacing(path) as stream:
        safe.to_csv(stream, float_format="%.6g", errors="backslashreplace", quoting=quoting)
