"""Why a new sample gets its class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from viewmend.backend.threads import limited_threads, serial_blas
from viewmend.core.common.class_shares import normalise_rows
from viewmend.core.mend.explanation import influence_on_new, new_view_shares
from viewmend.core.mend.induction import (
    MendInduction,
    guided_edges,
    join_by_evidence,
    label_parts_of_new,
    new_evidence,
    represent_new,
    scores_of_new,
    view_edges,
)
from viewmend.core.mend.joining import JoinedRows
from viewmend.data.container import MultiViewData
from viewmend.distributed.lazy import is_lazy
from viewmend.exceptions import InvalidParameterError
from viewmend.models.apart import Comparable, comparable_new
from viewmend.models.decisions import decide
from viewmend.models.explanation import (
    Answered,
    Explanation,
    Graphed,
    explanation_of,
    scaled_votes,
    scored_parts,
)
from viewmend.models.fitted_state import FittedMend, MendState
from viewmend.models.naming import check_samples_kept

__all__ = ["NewExplanationMixin"]


class NewExplanationMixin:
    """``explain_new`` of a `viewmend.MendClassifier`."""

    # Of MendClassifier.
    fitted_state_: MendState
    n_jobs: int | None
    predict_proba: Callable[..., np.ndarray]
    _check_predict: Callable[[Any, Any], MultiViewData]

    def explain_new(self, X: Any, mask: ArrayLike | None = None) -> Explanation:
        """Labels and views that the predicted classes of new samples come from.

        Exact for ``predict``: reasons add up to the logarithm of the odds in ``predict_proba``.

        Parameters
        ----------
        X : views of new samples, in any form that ``fit`` takes but Dask collections
            Each sample costs about as much as the labels of one class in ``fit``.
        mask : array (n_new, n_views) of bool, optional
            False where a new sample does not have a view; replaces rows of NaN.

        Returns
        -------
        Explanation
            Its ``samples`` are rows of ``X``, its ``supporters`` rows of ``fit``.
        """
        check_is_fitted(self)
        if is_lazy(X):
            msg = (
                "explain_new takes views in memory, got Dask collections; pass some of the samples "
                "as arrays"
            )
            raise InvalidParameterError(msg)
        check_samples_kept(self, "explain_new")
        shares, data = self.predict_proba(X, mask), self._check_predict(X, mask)
        with limited_threads(self.n_jobs), serial_blas():
            return explain_predicted(cast(FittedMend, self), data, shares)


def explain_predicted(model: FittedMend, data: MultiViewData, shares: np.ndarray) -> Explanation:
    """Explain class ``shares`` (n_new, n_classes) that a model predicted of new samples."""
    fit, evidence = model.fitted_state_.induction, model.zero_row_evidence_
    # Samples without any view were warned of when the shares were predicted.
    part = comparable_new(data, zero_apart=evidence is not None, unseen_get=None)
    joined, parts = _joined(fit, part.data)
    apart = np.ones(data.n_samples, dtype=bool)
    apart[part.rows] = False
    labelled = np.flatnonzero(model.fitted_state_.label_codes >= 0)
    influence = _among_all(_influence(model, joined, labelled), part)
    graph = Graphed(
        influence,
        scaled_votes(model, labelled),
        _among_all(new_view_shares(joined, data.n_views), part),
        normalise_rows(np.atleast_2d(fit.prior * model.fitted_state_.class_weights))[0],
    )
    reasons = (*model.view_names_, "prior")[: parts.shape[1]]
    zero_logs = np.zeros((data.n_samples, 0, len(fit.prior)))
    if evidence is not None and part.zero.any():
        zero_logs = np.asarray(part.zero @ evidence)[:, None]
    answered = Answered(
        rows=np.arange(data.n_samples),
        names=data.sample_ids,
        shares=shares,
        codes=decide(shares, model.decision_weights_),
        apart=apart,
        untempered=apart,
        zero_logs=zero_logs,
    )
    return explanation_of(model, answered, graph, _among_all(parts, part), reasons)


def _joined(fit: MendInduction, data: MultiViewData) -> tuple[JoinedRows, np.ndarray]:
    """Edges of new samples to those of fit, and what else adds to the logarithms.

    The latter are (n_new, n_views + 1, n_classes), or 0 for the second without evidence.
    """
    new, n_classes = represent_new(fit.views, data.views, data.observed), len(fit.prior)
    joined = view_edges(fit, new)
    if fit.evidence is None:
        return guided_edges(fit, joined), np.zeros((data.n_samples, 0, n_classes))
    shares = new_evidence(fit.views, fit.evidence, new)
    joined = guided_edges(fit, join_by_evidence(fit, joined, shares))
    Z = scores_of_new(fit.views, new, n_classes).astype(np.float64)
    by_labels = label_parts_of_new(fit.views, fit.evidence, new)
    return joined, scored_parts(fit, Z, data.observed, by_labels)


def _influence(model: FittedMend, joined: JoinedRows, labelled: np.ndarray) -> np.ndarray:
    """Weights (n_joined, n_labelled) of labels of fit, zero for those outside the graph."""
    state, fit = model.fitted_state_, model.fitted_state_.induction
    graph = model.graph_[state.order][:, state.order]
    places = state.places(labelled)
    found = np.zeros((joined.n_rows, len(labelled)))
    inside = np.flatnonzero(places >= 0)
    found[:, inside] = influence_on_new(
        joined, graph, fit.degrees, fit.settings.spreading, places[inside]
    )
    return found


def _among_all(array: np.ndarray, part: Comparable) -> np.ndarray:
    """Rows of the samples that were compared, among all; zeros for the others."""
    placed = np.zeros((len(part.unseen), *array.shape[1:]))
    placed[part.rows] = array
    return placed
