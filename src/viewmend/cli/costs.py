"""Costs of labels and of measurements, as they are named on the command line."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from viewmend.data import Request
from viewmend.data.io.border import reading
from viewmend.data.io.contents import Contents, find_labels, read_contents
from viewmend.exceptions import DataWarning, InvalidLabelsError, InvalidParameterError
from viewmend.parameters import short
from viewmend.text import counted

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class LabelCosts:
    """``costs`` (n_samples,) of labels, and samples (n_samples,) of bool ``without`` one."""

    costs: np.ndarray | None
    without: np.ndarray | None


def label_costs(
    place: str, ids: np.ndarray, data: Path | None, id_column: str | None
) -> LabelCosts:
    """Costs of labels of the samples ``ids`` (n_samples,), from a column or a file."""
    written = _column(place, data, id_column)
    by_name = dict(zip(map(str, written.index), written.tolist(), strict=True))
    cells = [by_name.get(str(name)) for name in ids]
    costs = np.array([_number(cell, place) for cell in cells])
    without = np.isnan(costs)
    if without.all():
        msg = (
            f"--costs {place} must hold costs of the samples, but of all {len(ids)}, such as "
            f"{str(ids[0])!r}, it holds none; check the identifiers"
        )
        raise InvalidParameterError(msg)
    if without.any():
        samples = counted(int(without.sum()), "sample")
        msg = f"{samples} cannot be suggested, without a cost in {place}"
        warnings.warn(msg, DataWarning, stacklevel=2)
    return LabelCosts(np.where(without, 1.0, costs), without)


def _column(place: str, data: Path | None, id_column: str | None) -> pd.Series:
    """A column by identifier, found as one of labels would be."""
    request = Request(id_column, place)
    file = request.labels_place()[0]
    source = file or data
    if source is None:
        msg = (
            f"--costs {place} is no file, and there is no data that could have a column of that "
            "name; name a table with identifiers, as in costs.csv:minutes, or pass the data of "
            "the fit as well"
        )
        raise InvalidParameterError(msg)
    contents = Contents({}, {}, id_column=id_column)
    if file is None:
        with reading(source):
            contents = read_contents(source, request)
        _check_column(place, contents)
    try:
        with reading(source):
            written, _ = find_labels(contents, request)
    except InvalidLabelsError as error:
        msg = f"--costs is read as --labels are: {error}"
        raise InvalidParameterError(msg) from error
    # A column that is named is found, or refused.
    return cast("pd.Series", written)


def _check_column(name: str, contents: Contents) -> None:
    if not any(name in table for table in contents.label_tables.values()):
        columns = {key: list(table.columns) for key, table in contents.label_tables.items()}
        msg = (
            f"--costs {name} must be a column of the data, but is none of {short(columns)}; name "
            "one of these, or a table with identifiers, as in costs.csv:minutes"
        )
        raise InvalidParameterError(msg)


def _number(cell: object, place: str) -> float:
    """A cost, NaN where there is none."""
    if cell is None:
        return np.nan
    try:
        return float(str(cell))
    except ValueError as error:
        msg = f"--costs {place} must hold numbers, got {cell!r}; leave cells without one empty"
        raise InvalidParameterError(msg) from error


def costs_by_view(settings: Sequence[str]) -> dict[str, float] | None:
    """Costs of measurements by view, from words such as ``scan=3``."""
    costs: dict[str, float] = {}
    for view, cost in map(_view_cost, settings):
        if view in costs:
            msg = f"--cost names {view!r} twice; give one cost for it"
            raise InvalidParameterError(msg)
        costs[view] = cost
    return costs or None


def _view_cost(text: str) -> tuple[str, float]:
    # Names of views may hold the sign too.
    view, equals, cost = text.rpartition("=")
    try:
        if equals:
            return view, float(cost)
    except ValueError:
        pass
    msg = f"--cost must be VIEW=COST with a number, as in scan=3, got {text!r}; write it like that"
    raise InvalidParameterError(msg)
