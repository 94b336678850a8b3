"""What makes an estimator take Dask collections; imports Dask only when it meets one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from viewmend.distributed.inputs import is_lazy
from viewmend.exceptions import InvalidParameterError
from viewmend.protocols import StateOfFit

__all__ = ["DaskMixin"]


class DaskMixin:
    """``predict`` and ``predict_proba`` over Dask arrays and Dask data frames.

    For `viewmend.AGFTIClassifier`. Views are Dask collections with the same rows, or a
    `MultiViewData` of them (`viewmend.distributed.open_views`). Their blocks of rows stay with the
    workers of the active `distributed.Client`; without one, Dask's threads do the work. Anchors
    are drawn from 30 000 samples, or as many as Dask's configuration ``viewmend.sample-rows`` has,
    and refined on all. After such a fit ``fused_graph_`` and ``view_graphs_`` are Dask arrays.
    """

    # Of the classifier that it is mixed into.
    classes_: np.ndarray
    view_names_: tuple[str, ...]
    view_n_features_: tuple[int, ...]
    fitted_state_: StateOfFit
    set_callbacks: Callable[..., Any]

    def predict(self, X: Any, mask: ArrayLike | None = None) -> Any:
        """Classes of new samples; parameters as in ``predict_proba``.

        Returns
        -------
        array (n_new,), of Dask where ``X`` is
        """
        if not is_lazy(X):
            return super().predict(X, mask)  # type: ignore[misc]
        from viewmend.distributed.prediction import predict_chunks

        return predict_chunks(self, X, mask)

    def predict_proba(self, X: Any, mask: ArrayLike | None = None) -> Any:
        """Class shares of new samples, seen through any subset of the views.

        This is induction: for the samples of ``fit`` see ``label_distributions_``.

        Parameters
        ----------
        X : views of the new samples, in any form that ``fit`` takes
            Of Dask collections nothing is read before the answer is computed, and then chunk by
            chunk.
        mask : array (n_new, n_views) of bool, optional
            False where a sample is missing from a view, in place of NaN rows.

        Returns
        -------
        array (n_new, n_classes), of Dask where ``X`` is
            Rows sum to one.
        """
        if not is_lazy(X):
            return super().predict_proba(X, mask)  # type: ignore[misc]
        from viewmend.distributed.prediction import predict_proba_chunks

        return predict_proba_chunks(self, X, mask)

    def explain(self, samples: ArrayLike) -> Any:
        """Labels and views that classes come from; see `CalibratedMixin` of the models.

        It needs the graphs of all samples in memory, see `load_graphs`.
        """
        if is_lazy(getattr(self, "fused_graph_", None)):
            msg = (
                "explain needs the graphs of the samples in memory, but this fit left them with "
                "the workers of Dask; call load_graphs() first, where they fit"
            )
            raise InvalidParameterError(msg)
        return super().explain(samples)  # type: ignore[misc]

    def load_graphs(self) -> Self:
        """Take ``fused_graph_`` and ``view_graphs_`` from the workers into memory.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        for name in ("fused_graph_", "view_graphs_"):
            setattr(self, name, np.asarray(getattr(self, name)))
        return self

    def for_prediction(self) -> Any:
        """A copy that has forgotten the samples of ``fit``: small enough to send and to save.

        It predicts as the model itself, and `viewmend.save` takes it also where the graphs of
        the samples are Dask arrays. What it knows of samples is that there are none.
        """
        from viewmend.distributed.prediction import without_samples

        return without_samples(self)
