"""Tables joined by the identifiers of their rows: numbers, and labels."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from viewmend.exceptions import DataWarning, InvalidLabelsError, InvalidViewsError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["aligned_matrix", "joined_labels", "warn_of_strangers"]


def aligned_matrix(view: pd.DataFrame, ids: pd.Index, name: str) -> np.ndarray:
    """Values (n_samples, n_features); NaN rows for identifiers that the view does not hold."""
    text = [column for column in view.columns if view[column].dtype.kind not in "biuf"]
    if text:
        msg = (
            f"column {text[0]!r} of view {name} must hold numbers but has dtype "
            f"{view[text[0]].dtype}; encode it as numbers or leave it out"
        )
        raise InvalidViewsError(msg)
    return view.reindex(ids).to_numpy(dtype=np.float64, na_value=np.nan)


def joined_labels(frames: Mapping[str, pd.DataFrame], column: str, place: str) -> pd.Series:
    """Label of every identifier that has one."""
    import pandas as pd

    found = [frame[column].dropna() for frame in frames.values() if column in frame]
    if not found:
        msg = (
            f"no table of {place} has a column {column!r}; add a file labels.csv with the columns "
            "id and label, or name the column in label_column"
        )
        raise InvalidLabelsError(msg)
    joined = pd.concat(found)
    first = joined[~joined.index.duplicated()]
    differs = joined.ne(first.reindex(joined.index))
    if differs.any():
        name = joined.index[differs][0]
        msg = (
            f"{name!r} has the labels {sorted(map(str, joined[name].unique()))} in {place}; a "
            "sample has one label in all tables, so correct the wrong one"
        )
        raise InvalidLabelsError(msg)
    return first


def warn_of_strangers(ids: pd.Index, place: str) -> None:
    """Tell of labelled samples that no view holds."""
    if ids.size:
        msg = (
            f"{ids.size} labelled samples of {place}, such as {ids[0]!r}, are in no view and were "
            "left out; check that all tables spell the identifiers alike"
        )
        warnings.warn(msg, DataWarning, stacklevel=3)
