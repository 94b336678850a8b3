"""Predictions over Dask collections: chunk by chunk, and only when they are computed."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Protocol, Self, TypeVar

import dask.array as da
import numpy as np
from dask.delayed import delayed
from sklearn.utils.validation import check_is_fitted

from viewmend.distributed.inputs import lazy_views
from viewmend.exceptions import InvalidViewsError
from viewmend.protocols import StateOfFit

__all__ = ["predict_chunks", "predict_proba_chunks", "without_samples"]

# Fitted attributes with an entry per sample, and the axis of the samples.
OF_SAMPLES = {
    "transduction_": 0,
    "label_distributions_": 0,
    "confidence_": 0,
    "unreachable_": 0,
    "fused_graph_": 0,
    "view_graphs_": 1,
    "observed_": 0,
}


class ChunkModel(Protocol):
    """A fitted model that can do without the samples it was fitted on."""

    classes_: np.ndarray
    view_names_: tuple[str, ...]
    view_n_features_: tuple[int, ...]
    fitted_state_: StateOfFit

    def set_callbacks(self, *callbacks: Any) -> Self:
        """Attach these in place of others."""


Model = TypeVar("Model", bound=ChunkModel)


def predict_proba_chunks(model: ChunkModel, X: Any, mask: Any) -> da.Array:
    """Class shares (n_new, n_classes) as a Dask array, with the chunks of rows of ``X``."""
    return _over_chunks(model, "predict_proba", X, mask, (len(model.classes_),), np.float64)


def predict_chunks(model: ChunkModel, X: Any, mask: Any) -> da.Array:
    """Classes (n_new,) as a Dask array, with the chunks of rows of ``X``."""
    return _over_chunks(model, "predict", X, mask, (), model.classes_.dtype)


def without_samples(model: Model) -> Model:
    """A copy of a fitted model that knows nothing of the samples it was fitted on."""
    check_is_fitted(model)
    light = copy.copy(model)
    for name, axis in OF_SAMPLES.items():
        if hasattr(model, name):
            array = getattr(model, name)
            shape = tuple(0 if i == axis else size for i, size in enumerate(array.shape))
            setattr(light, name, np.empty(shape, dtype=array.dtype))
    light.fitted_state_ = model.fitted_state_.without_samples()
    return light.set_callbacks()


def _over_chunks(
    model: ChunkModel, method: str, X: Any, mask: Any, columns: tuple[int, ...], dtype: Any
) -> da.Array:
    """One call of a method per chunk of rows."""
    views, mask = lazy_views(X, mask, model.view_n_features_)
    rows = next(iter(view for view in views.values() if view is not None)).chunks[0]
    light = delayed(without_samples(model), traverse=False)
    # By name where the model can tell the views by their names, else by position.
    named = isinstance(X, Mapping) or set(views) == set(model.view_names_)
    parts = {
        name: [None] * len(rows) if view is None else view.to_delayed().ravel()
        for name, view in views.items()
    }
    masks = [None] * len(rows) if mask is None else mask.to_delayed().ravel()
    answers = []
    for i, size in enumerate(rows):
        chunk: Any = {name: part[i] for name, part in parts.items() if part[i] is not None}
        if not named:
            chunk = [part[i] for part in parts.values()]
        answer = delayed(_answered)(light, method, chunk, masks[i], (i, columns, dtype))
        answers.append(da.from_delayed(answer, (size, *columns), dtype=dtype))
    return da.concatenate(answers, allow_unknown_chunksizes=True)


def _answered(
    light: ChunkModel, method: str, chunk: Any, mask: Any, place: tuple[int, tuple[int, ...], Any]
) -> np.ndarray:
    index, columns, dtype = place
    arrays = chunk.values() if isinstance(chunk, dict) else chunk
    n_rows = len(next(array for array in arrays if array is not None))
    if n_rows == 0:
        return np.empty((0, *columns), dtype=dtype)
    try:
        return getattr(light, method)(chunk, mask)
    except InvalidViewsError as error:
        msg = f"chunk {index}, of {n_rows} rows: {error}"
        raise type(error)(msg) from error
