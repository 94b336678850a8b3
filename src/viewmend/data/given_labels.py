"""Labels as they were given with views: in the views' own container, or beside it."""

from __future__ import annotations

from typing import Any

from viewmend.data.container import MultiViewData
from viewmend.data.indices import check_same_rows, index_of
from viewmend.data.opening import is_annotated, rows_of
from viewmend.data.scverse import labels_in_obs
from viewmend.exceptions import InvalidLabelsError


def labels_for(X: Any, y: Any) -> Any:
    """Labels (n_samples,) of the samples of ``X``, not yet checked.

    Parameters
    ----------
    X : views, in any form that ``fit`` takes
        The views.
    y : array (n_samples,), str or None
        None stands for the labels of a MultiViewData, a name for that column of the ``obs`` of an
        AnnData or MuData. Labels under an index must be in the order of the views, if these have
        an index too.
    """
    if y is None:
        return X.y if isinstance(X, MultiViewData) else None
    return values_for(X, y, "y")


def values_for(X: Any, values: Any, what: str) -> Any:
    """What is told of every sample of ``X``, by values or the name of a column of ``obs``.

    ``what`` names the argument in errors; others as in `labels_for`.
    """
    if isinstance(values, str) and is_annotated(X):
        return labels_in_obs(X, values, "group" if what == "groups" else "label")
    index = index_of(values)
    if index is not None:
        check_same_rows(index, rows_of(X), what, InvalidLabelsError)
    return values
