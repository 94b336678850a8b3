"""Results of a fitted model for every sample, by identifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from viewmend.data.class_names import class_texts
from viewmend.data.container import MultiViewData
from viewmend.data.indices import identifying, in_another_order
from viewmend.data.joining import identifiers
from viewmend.data.opening import rows_of
from viewmend.exceptions import InvalidParameterError, InvalidViewsError
from viewmend.parameters import short
from viewmend.protocols import FittedClassifier, PredictsNewSamples

if TYPE_CHECKING:
    import pandas as pd


def ids_of_fit(model: FittedClassifier) -> np.ndarray | None:
    """Identifiers (n_samples,) of the samples of fit, if it saw any."""
    ids: np.ndarray | None = getattr(getattr(model, "best_estimator_", model), "sample_ids_", None)
    return ids


def result_frame(
    model: FittedClassifier,
    ids: Sequence[Any] | np.ndarray | None = None,
    *,
    new: Any = None,
) -> pd.DataFrame:
    """Classes and class probabilities of every sample as a pandas frame.

    For polars, ``polars.from_pandas(frame.reset_index())``.

    Parameters
    ----------
    model : fitted classifier of this library
        The model whose results are wanted.
    ids : sequence (n_samples,), optional
        Identifiers of the samples of ``fit``, in its order, as in ``data.ids``; row numbers if left
        out.
    new : MultiViewData, or views in any form that ``predict`` takes, optional
        New samples to predict, in place of the samples of ``fit``; they may lack views of ``fit``.
        Without identifiers they are numbered.

    Returns
    -------
    DataFrame (n_samples, 2 + n_classes)
        ``class``, the predicted one, a categorical over all classes of ``fit``; ``confidence``, its
        probability; and ``p_<class>``, the probability of every class. The command line writes the
        same columns. Classes of the same text, such as 1 and "1", are called as Python writes them.
    """
    import pandas as pd

    check_is_fitted(model)
    if new is None:
        shares, classes, rows = model.label_distributions_, model.transduction_, ids
    elif not isinstance(model, PredictsNewSamples):
        msg = (
            f"new must be None for a {type(model).__name__}, which labels the samples of its fit "
            f"only, got {new!r}; use MendClassifier or AGFTIClassifier for samples to come"
        )
        raise InvalidParameterError(msg)
    else:
        shares = np.asarray(model.predict_proba(new))
        weights = getattr(model, "decision_weights_", 1.0)
        classes = model.classes_[(shares * weights).argmax(axis=1)]
        rows = new.sample_ids if isinstance(new, MultiViewData) else identifying(rows_of(new))
    index = pd.RangeIndex(len(shares)) if rows is None else identifiers(rows, "ids")
    if len(index) != len(shares):
        msg = (
            f"ids must be one per sample of fit, got {len(index)} for {len(shares)} samples; pass "
            f"the ids of the views that the model was fitted on"
        )
        raise InvalidViewsError(msg)
    known = ids_of_fit(model) if new is None else None
    if known is not None and in_another_order(index, known):
        msg = (
            f"ids must be in the order of the samples of fit, from {short(known[0])} to "
            f"{short(known[-1])}, got the same ones from {short(index[0])} to {short(index[-1])}; "
            f"pass model.sample_ids_, and put the rows of the result in another order with .loc"
        )
        raise InvalidViewsError(msg)
    predicted = pd.Categorical(classes, categories=model.classes_)
    columns = {
        "class": predicted,
        "confidence": shares[np.arange(len(shares)), predicted.codes],
    }
    names = class_texts(model.classes_)
    columns |= {f"p_{name}": shares[:, c] for c, name in enumerate(names)}
    return pd.DataFrame(columns, index=index)
