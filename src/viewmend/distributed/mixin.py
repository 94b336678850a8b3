"""Support of Dask collections in estimators; imports Dask only when it is needed.

Predictions are lazy, and computed chunk by chunk.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse
from sklearn.utils.validation import check_is_fitted

from viewmend.callbacks.protocol import Callback
from viewmend.data.cells import CellFill
from viewmend.data.given_views import GivenViews
from viewmend.data.matching import check_widths, views_of_fit
from viewmend.distributed.callbacks import BlockCheckpoint
from viewmend.distributed.inputs import lazy_like_fit
from viewmend.distributed.lazy import is_lazy, is_table, lazy_views
from viewmend.exceptions import InvalidParameterError, InvalidViewsError
from viewmend.protocols import StateOfFit

# Fitted attributes of any classifier with an entry per sample, and the axes of the samples.
OF_SAMPLES: Mapping[str, tuple[int, ...]] = {
    "transduction_": (0,),
    "label_distributions_": (0,),
    "confidence_": (0,),
    "unreachable_": (0,),
    "observed_": (0,),
    "sample_ids_": (0,),
}


class DaskMixin:
    """``predict`` and ``predict_proba`` over Dask arrays and Dask data frames.

    Views are Dask collections with the same rows, or a `MultiViewData` of them
    (`viewmend.distributed.open_views`). Their blocks of rows stay with the workers of the active
    `distributed.Client`; without one, Dask's threads do the work.
    """

    # Further attributes with an entry per sample.
    _of_samples: ClassVar[Mapping[str, tuple[int, ...]]] = {}

    # Of the classifier that it is mixed into.
    classes_: np.ndarray
    view_names_: tuple[str, ...]
    view_n_features_: tuple[int, ...]
    missing_cells: str
    view_sizes: Sequence[int] | None
    cell_fills_: tuple[CellFill, ...]
    fitted_state_: StateOfFit
    fit: Callable[..., Self]
    callbacks: tuple[Callback, ...]
    set_callbacks: Callable[..., Any]

    def check_callbacks_in_memory(self) -> None:
        """Raise an `InvalidParameterError` if a callback keeps blocks, which are not in memory."""
        if any(isinstance(callback, BlockCheckpoint) for callback in self.callbacks):
            msg = (
                "BlockCheckpoint keeps rounds of fits on Dask collections, but the views are in "
                "memory; use viewmend.callbacks.Checkpoint"
            )
            raise InvalidParameterError(msg)

    def predict(self, X: Any, mask: ArrayLike | None = None) -> Any:
        """Classes of new samples, which may have any of the views.

        Parameters
        ----------
        X, mask
            As in ``predict_proba``.

        Returns
        -------
        array (n_new,), of Dask where ``X`` is
        """
        if not is_lazy(X):
            return super().predict(X, mask)  # type: ignore[misc]
        return _over_chunks(self, "predict", X, mask, (), self.classes_.dtype)

    def predict_proba(self, X: Any, mask: ArrayLike | None = None) -> Any:
        """Class probabilities of new samples, which may have any of the views.

        The probabilities of the samples of ``fit`` are in ``label_distributions_``.

        Parameters
        ----------
        X : views of the new samples, in any form that ``fit`` takes
            Pass None for a view that none of them has, or leave it out of a dict. Dask collections
            are read only when the result is computed, chunk by chunk.
        mask : array (n_new, n_views) of bool, optional
            False where a sample does not have a view; replaces rows of NaN.

        Returns
        -------
        array (n_new, n_classes), of Dask where ``X`` is
            Rows sum to one.
        """
        if not is_lazy(X):
            return super().predict_proba(X, mask)  # type: ignore[misc]
        return _over_chunks(self, "predict_proba", X, mask, (len(self.classes_),), np.float64)

    def for_prediction(self) -> Self:
        """A copy without the samples of ``fit``, small enough to send and to save.

        It predicts like the model itself, and `viewmend.save` can save it even if graphs of the
        samples are Dask arrays. It keeps only the samples that predictions compare new ones with.
        """
        check_is_fitted(self)
        light = copy.copy(self)
        for name, axes in (*OF_SAMPLES.items(), *self._of_samples.items()):
            if hasattr(self, name):
                setattr(light, name, _of_no_sample(getattr(self, name), axes))
        light.fitted_state_ = self.fitted_state_.without_samples()
        light.set_callbacks()
        return light


class LazyGraphsMixin(DaskMixin):
    """The same for `viewmend.AGFTIClassifier`, whose graphs stay with the workers.

    Anchors are drawn from 30 000 samples, or as many as Dask's configuration
    ``viewmend.sample-rows`` has, and refined on all. After such a fit ``fused_graph_`` and
    ``view_graphs_`` are Dask arrays.
    """

    _of_samples: ClassVar = {"fused_graph_": (0,), "view_graphs_": (1,)}

    def explain(self, samples: ArrayLike) -> Any:
        """Which labels and views led to the classes of some samples of ``fit``.

        It needs the graphs of all samples in memory, see `load_graphs`.

        Parameters
        ----------
        samples
            As in `MendClassifier.explain`.

        Returns
        -------
        Explanation
        """
        if is_lazy([getattr(self, name, None) for name in self._of_samples]):
            msg = (
                "explain needs the graphs of the samples in memory, but this fit left them with "
                "the workers of Dask; call load_graphs() first, where they fit"
            )
            raise InvalidParameterError(msg)
        return super().explain(samples)  # type: ignore[misc]

    def load_graphs(self) -> Self:
        """Load the graphs of the samples from the workers into memory.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        for name in self._of_samples:
            setattr(self, name, np.asarray(getattr(self, name)))
        return self


def _of_no_sample(array: Any, axes: tuple[int, ...]) -> Any:
    """An array, dense or sparse, without the entries of any sample."""
    shape = tuple(0 if i in axes else size for i, size in enumerate(array.shape))
    return csr_array(shape, dtype=array.dtype) if issparse(array) else np.empty(shape, array.dtype)


def _over_chunks(
    model: DaskMixin, method: str, X: Any, mask: Any, columns: tuple[int, ...], dtype: Any
) -> Any:
    """A Dask array with the chunks of rows of ``X``: one call of a method per chunk."""
    import dask.array as da
    from dask.delayed import delayed

    fit = views_of_fit(model)
    X, names = lazy_like_fit(X, fit, model.view_sizes)
    lazy = lazy_views(X, mask, model.view_n_features_ if is_table(X) else None)
    views, mask, rows = lazy.arrays, lazy.mask, lazy.row_chunks
    check_widths({n: view.shape[1] for n, view in views.items() if view is not None}, fit)
    light = _light_of_chunks(model)
    # By name where the model can tell the views by their names, else by position.
    named = isinstance(X, Mapping) or set(views) == set(model.view_names_)
    parts = {
        name: [None] * len(rows) if view is None else view.to_delayed().ravel()
        for name, view in views.items()
    }
    masks = [None] * len(rows) if mask is None else mask.to_delayed().ravel()
    answers = []
    for i, size in enumerate(rows):
        chunk = {name: part[i] for name, part in parts.items()}
        layout = (names, named)
        answer = delayed(_answered)(light, method, chunk, masks[i], layout, (i, columns, dtype))
        answers.append(da.from_delayed(answer, (size, *columns), dtype=dtype))
    return da.concatenate(answers, allow_unknown_chunksizes=True)


def _light_of_chunks(model: DaskMixin) -> Any:
    """What predicts a chunk, sent once to every worker."""
    from dask.delayed import delayed

    light = model.for_prediction()
    # A table is split before it comes in chunks.
    light.view_sizes = None
    return delayed(light, traverse=False)


def _answered(
    light: DaskMixin,
    method: str,
    chunk: dict[str, Any],
    mask: Any,
    layout: tuple[dict[str, np.ndarray], bool],
    place: tuple[int, tuple[int, ...], Any],
) -> np.ndarray:
    index, columns, dtype = place
    n_rows = next(array for array in chunk.values() if array is not None).shape[0]
    if n_rows == 0:
        return np.empty((0, *columns), dtype=dtype)
    try:
        return getattr(light, method)(GivenViews(chunk, layout[0], has_names=layout[1]), mask)
    except InvalidViewsError as error:
        msg = f"chunk {index}, of {n_rows} rows: {error}"
        raise type(error)(msg) from error
