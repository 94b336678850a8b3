"""What the samples of a fit are called, and which rows names stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from viewmend.data.given_views import in_order_of_views, index_of
from viewmend.exceptions import InvalidParameterError
from viewmend.parameters import short


def names_of_fit(model: Any) -> np.ndarray:
    """Identifiers (n_samples,) of the samples of fit, or their rows where it saw none."""
    n_samples = len(model.transduction_)
    ids = ids_of_fit(model)
    return np.arange(n_samples) if ids is None else ids


def ids_of_fit(model: object) -> np.ndarray | None:
    """Identifiers (n_samples,) of the samples of fit, as text; None where it saw none."""
    return getattr(model, "sample_ids_", None)


def check_samples_kept(model: Any, asked: str) -> None:
    """Refuse what is ``asked`` of the samples of fit where a copy has forgotten them."""
    if len(model.fitted_state_.label_codes) == 0:
        msg = (
            f"{asked} needs the samples of fit, which a copy made by for_prediction has "
            f"forgotten; ask the model that the copy was made of"
        )
        raise InvalidParameterError(msg)


def told_of_samples(values: Any, names: np.ndarray, what: str, views: Sequence[str] = ()) -> Any:
    """Values about samples called ``names`` (n_samples,), or about these in some ``views``.

    They are told by position. An index with the names in another order is refused, and columns of a
    frame are put in the order of the views.
    """
    index = index_of(values)
    if index is None or np.array_equal(names, np.arange(len(names))):
        return values
    named = values.set_axis(index.map(str), axis=0)
    return in_order_of_views(named, views, names.astype(str), what, InvalidParameterError)


def explained_rows(samples: ArrayLike, n_samples: int, ids: np.ndarray | None) -> np.ndarray:
    """Rows (n,) of fit that ``samples`` stand for: rows, a mask, or identifiers as text."""
    every, given = np.arange(n_samples), _as_list(samples)
    if given.size and all(isinstance(each, str) for each in given.tolist()):
        return _rows_of_ids(ids, given)
    if given.dtype == bool and ids is not None:
        told_of_samples(samples, ids, "samples")
    try:
        return np.asarray(every[given])
    except IndexError as error:
        msg = (
            f"samples must be rows of fit, of which there are {len(every)}, or a mask of them, "
            f"or identifiers as text, got {short(samples)}; pass integers below {len(every)}"
        )
        raise InvalidParameterError(msg) from error


def _as_list(samples: Any) -> np.ndarray:
    """What was asked for, (n,); of no dtype that could index where it is no such list."""
    try:
        given = np.asarray(samples)
    except ValueError:
        # Of sequences of several lengths.
        return np.array([None])
    # A single truth value would stand for all samples, or for none.
    if given.ndim > 1 or (given.ndim == 0 and given.dtype == bool):
        return np.array([None])
    return np.atleast_1d(given) if given.size else np.empty(0, dtype=np.int64)


def _rows_of_ids(known: np.ndarray | None, asked: np.ndarray) -> np.ndarray:
    if known is None:
        msg = (
            f"samples names {short(asked.tolist())}, but fit saw no identifiers; pass rows, or fit "
            f"on frames with an index, or on a MultiViewData with ids"
        )
        raise InvalidParameterError(msg)
    places = {name: row for row, name in enumerate(known.tolist())}
    unknown = [name for name in asked.tolist() if name not in places]
    if unknown:
        msg = (
            f"samples names {short(unknown)}, which fit did not see; its identifiers are like "
            f"{short(known[:3].tolist())}; for new samples there is explain_new"
        )
        raise InvalidParameterError(msg)
    return np.array([places[name] for name in asked.tolist()])
