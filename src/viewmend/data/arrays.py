"""Views from arrays: NumPy, SciPy sparse, torch, and whatever NumPy can read."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from viewmend.data.container import MultiViewData
from viewmend.data.input_arrays import as_dense, view_title, width
from viewmend.data.joining import all_ids, check_room, identifiers, join, labels_by_id
from viewmend.data.per_sample import one_each
from viewmend.exceptions import InvalidLabelsError, InvalidViewsError

if TYPE_CHECKING:
    import pandas as pd


def from_arrays(
    arrays: Mapping[str, Any],
    labels: pd.Series | Mapping[Any, Any] | Sequence[Any] | None = None,
    ids: Mapping[str, Sequence[Any]] | None = None,
    *,
    like: MultiViewData | None = None,
) -> MultiViewData:
    """Join one array per view, of any array library, by the identifiers of their rows.

    Sparse matrices become dense; a `TooLargeError` is raised if they would fill the memory. Tensors
    may be on a GPU or require a gradient.

    Parameters
    ----------
    arrays : dict of arrays (n_observed_v, n_features_v)
        NumPy arrays, SciPy sparse matrices, torch tensors.
    labels : Series or dict by identifier, or sequence (n_samples,), optional
        The labels; a sequence only if all views have the same rows. None, NaN and -1 mean
        unlabelled.
    ids : dict of sequences (n_observed_v,), optional
        Identifiers of the rows of every view. Without them, all views must have the same rows, with
        rows of NaN for missing views.
    like : MultiViewData, optional
        Data that a model was fitted on; the views must have the same columns.

    Returns
    -------
    MultiViewData
        Without ``ids``, row numbers are the identifiers.
    """
    if not isinstance(arrays, Mapping) or not arrays:
        msg = (
            f"arrays must be a dict of at least one view, got {type(arrays).__name__}; name every "
            f"view, as in {{'photo': array}}"
        )
        raise InvalidViewsError(msg)
    indices = {name: _rows(array, name, ids) for name, array in arrays.items()}
    samples = _same_rows(indices) if ids is None else all_ids(indices)
    known = None if labels is None else _labels(labels, samples, ids is None)
    check_room(len(samples), {name: np.shape(array)[1] for name, array in arrays.items()})
    tables = {name: as_table(array, indices[name], name) for name, array in arrays.items()}
    return join(tables, samples, known, like)


def as_table(
    array: Any, index: pd.Index, name: str, columns: Sequence[Hashable] | None = None
) -> pd.DataFrame:
    """A view as a frame under its identifiers; columns are numbered where they have no names."""
    import pandas as pd

    width(array, view_title(name))
    if isinstance(array, pd.DataFrame):
        return array.set_axis(index, axis=0)
    return pd.DataFrame(as_dense(array, view_title(name)), index=index, columns=columns)


def _rows(array: Any, name: str, ids: Mapping[str, Sequence[Any]] | None) -> pd.Index:
    """Identifiers of the rows of one view."""
    import pandas as pd

    width(array, view_title(name))
    n_rows = np.shape(array)[0]
    if ids is None:
        return pd.RangeIndex(n_rows)
    if name not in ids:
        msg = f"ids must have an entry for view {name!r}, got {list(ids)}; add its identifiers"
        raise InvalidViewsError(msg)
    index = identifiers(ids[name], f"ids of view {name!r}")
    if len(index) != n_rows:
        msg = (
            f"ids of view {name!r} must be one per row, got {len(index)} for {n_rows} rows; pass "
            f"the identifiers in the order of the rows"
        )
        raise InvalidViewsError(msg)
    return index


def _same_rows(indices: Mapping[str, pd.Index]) -> pd.Index:
    lengths = {name: len(index) for name, index in indices.items()}
    if len(set(lengths.values())) > 1:
        msg = (
            f"views without ids must have the same rows, but have {lengths} of them; pass ids, or "
            f"fill the rows of missing samples with NaN"
        )
        raise InvalidViewsError(msg)
    return next(iter(indices.values()))


def _labels(labels: Any, samples: pd.Index, in_row_order: bool) -> pd.Series:
    """Labels by identifier, or by row where all views have the same rows."""
    import pandas as pd

    by_identifier = isinstance(labels, (Mapping, pd.Series))
    if by_identifier or not in_row_order:
        return labels_by_id(labels)
    values = one_each(labels).astype(object)
    if values.shape != (len(samples),):
        msg = (
            f"labels must be one per sample, got shape {values.shape} for {len(samples)} samples; "
            f"pass None for those without label"
        )
        raise InvalidLabelsError(msg)
    return pd.Series(values, index=samples, dtype=object)
