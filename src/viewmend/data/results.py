"""Results of a fitted model for every sample, by identifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from viewmend.data.container import MultiViewData
from viewmend.data.joining import identifiers
from viewmend.exceptions import InvalidParameterError, InvalidViewsError
from viewmend.protocols import FittedClassifier, PredictsNewSamples

if TYPE_CHECKING:
    import pandas as pd


def result_frame(
    model: FittedClassifier,
    ids: Sequence[Any] | np.ndarray | None = None,
    *,
    new: MultiViewData | None = None,
) -> pd.DataFrame:
    """Classes and class probabilities of every sample as a pandas frame.

    For polars, ``polars.from_pandas(frame.reset_index())``.

    Parameters
    ----------
    model : fitted classifier of this library
        The model whose results are wanted.
    ids : sequence (n_samples,), optional
        Identifiers of the samples of ``fit``, as in ``data.ids``; row numbers if left out.
    new : MultiViewData, optional
        New samples to predict, in place of the samples of ``fit``; they may lack views of ``fit``.

    Returns
    -------
    DataFrame (n_samples, 2 + n_classes)
        ``class``, the predicted one, a categorical over all classes of ``fit``; ``confidence``, its
        probability; and ``p_<class>``, the probability of every class. The command line writes the
        same columns.
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
        classes, rows = model.classes_[(shares * weights).argmax(axis=1)], new.sample_ids
    index = pd.RangeIndex(len(shares)) if rows is None else identifiers(rows, "ids")
    if len(index) != len(shares):
        msg = (
            f"ids must be one per sample of fit, got {len(index)} for {len(shares)} samples; pass "
            f"the ids of the views that the model was fitted on"
        )
        raise InvalidViewsError(msg)
    predicted = pd.Categorical(classes, categories=model.classes_)
    columns = {
        "class": predicted,
        "confidence": shares[np.arange(len(shares)), predicted.codes],
    }
    columns |= {f"p_{label}": shares[:, c] for c, label in enumerate(model.classes_)}
    return pd.DataFrame(columns, index=index)
