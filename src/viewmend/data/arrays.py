"""Views from arrays: NumPy, SciPy sparse, torch, and whatever NumPy can read."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from viewmend.data.container import MultiViewData
from viewmend.data.indices import identifying, in_another_order, index_of
from viewmend.data.input_arrays import as_dense, as_matrix, view_title, width
from viewmend.data.joining import all_ids, check_room, identifiers, join, labels_by_id
from viewmend.data.opening import common_index
from viewmend.data.per_sample import one_each
from viewmend.exceptions import InvalidLabelsError, InvalidViewsError
from viewmend.parameters import short

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
        rows of NaN for missing views, and frames the same index.
    like : MultiViewData, optional
        Data that a model was fitted on; the views must have the same columns.

    Returns
    -------
    MultiViewData
        Without ``ids``, the identifiers are the index of frames, or else row numbers.
    """
    if not isinstance(arrays, Mapping) or not arrays:
        msg = (
            f"arrays must be a dict of at least one view, got {type(arrays).__name__}; name every "
            f"view, as in {{'photo': array}}"
        )
        raise InvalidViewsError(msg)
    widths = {name: width(array, view_title(name)) for name, array in arrays.items()}
    indices = _same_rows(arrays) if ids is None else _rows_by_id(arrays, ids)
    samples = all_ids(indices)
    known = None if labels is None else _labels(labels, samples, ids is None)
    check_room(len(samples), widths)
    tables = {
        name: as_table(_numbers(array, name), indices[name], name) for name, array in arrays.items()
    }
    return join(tables, samples, known, like)


def _numbers(array: Any, name: str) -> Any:
    """An array of numbers, also of objects or text; frames have columns of their own types."""
    return array if index_of(array) is not None else as_matrix(array, view_title(name))


def as_table(
    array: Any, index: pd.Index, name: str, columns: Sequence[Hashable] | None = None
) -> pd.DataFrame:
    """A view as a frame under its identifiers; columns are numbered where they have no names."""
    import pandas as pd

    width(array, view_title(name))
    if isinstance(array, pd.DataFrame):
        return array.set_axis(index, axis=0)
    dense = as_dense(array, view_title(name))
    # pandas knows the byte order of the machine only.
    native = dense.astype(dense.dtype.newbyteorder("="), copy=False)
    return pd.DataFrame(native, index=index, columns=columns)


def _rows_by_id(arrays: Mapping[str, Any], ids: Mapping[str, Sequence[Any]]) -> dict[str, pd.Index]:
    """Identifiers of the rows of every view, which its own index must not contradict."""
    indices = {}
    for name, array in arrays.items():
        if name not in ids:
            msg = f"ids must have an entry for view {name!r}, got {list(ids)}; add its identifiers"
            raise InvalidViewsError(msg)
        index = identifiers(ids[name], f"ids of view {name!r}")
        n_rows = np.shape(array)[0]
        if len(index) != n_rows:
            msg = (
                f"ids of view {name!r} must be one per row, got {len(index)} for {n_rows} rows; "
                f"pass the identifiers in the order of the rows"
            )
            raise InvalidViewsError(msg)
        own = index_of(array)
        if own is not None and in_another_order(own, index):
            msg = (
                f"ids of view {name!r} must be in the order of its rows, but has the index of the "
                f"frame in another order, from {short(index[0])}; pass frame.index"
            )
            raise InvalidViewsError(msg)
        indices[name] = index
    return indices


def _same_rows(arrays: Mapping[str, Any]) -> dict[str, pd.Index]:
    """The same identifiers for every view: those of the frames or, without any, row numbers."""
    import pandas as pd

    lengths = {name: np.shape(array)[0] for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        msg = (
            f"views without ids must have the same rows, but have {lengths} of them; pass ids, or "
            f"fill the rows of missing samples with NaN"
        )
        raise InvalidViewsError(msg)
    rows = identifying(common_index(arrays))
    n_samples = next(iter(lengths.values()))
    index = pd.RangeIndex(n_samples) if rows is None else identifiers(rows, "the index")
    return dict.fromkeys(arrays, index)


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
