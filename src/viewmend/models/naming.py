"""What the samples of a fit are called, and which rows names stand for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from viewmend.data.given_views import in_order_of_views
from viewmend.data.indices import check_same_rows, index_of, text_of
from viewmend.exceptions import InvalidParameterError
from viewmend.parameters import short


def names_of_fit(model: Any) -> np.ndarray:
    """Identifiers (n_samples,) of the samples of fit, as text, or their rows where it saw none."""
    ids = getattr(model, "sample_ids_", None)
    return np.arange(len(model.transduction_)) if ids is None else np.asarray(ids)


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
    if views:
        return in_order_of_views(values, views, names, what, InvalidParameterError)
    check_same_rows(index_of(values), names, what, InvalidParameterError)
    return values


def sample_rows(
    samples: ArrayLike, names: np.ndarray, what: str = "samples", elsewhere: str = ""
) -> np.ndarray:
    """Rows (n,) that ``samples`` stand for: rows, a mask, or identifiers as text or tuples.

    The samples are called ``names`` (n_samples,). ``what`` names the argument in errors, and
    ``elsewhere`` says there what to do with samples of other names.
    """
    given = _as_list(samples, names)
    if given.size and all(isinstance(each, str) for each in given.tolist()):
        return _rows_of_names(names, given, what, elsewhere)
    if given.dtype == bool:
        told_of_samples(samples, names, what)
    elif given.shape == names.shape and len(given) > 2 and set(given.tolist()) <= {0, 1}:
        msg = (
            f"{what} has 0 or 1 for each of the {len(names)} samples, which would be rows 0 and 1; "
            f"pass bool for a mask, as in np.asarray({what}, dtype=bool)"
        )
        raise InvalidParameterError(msg)
    try:
        return np.asarray(np.arange(len(names))[given])
    except IndexError as error:
        known = set(names.astype(str).tolist())
        called = next(filter(known.__contains__, map(text_of, given.tolist())), None)
        hint = f"pass integers below {len(names)}"
        if called is not None and not _are_rows(names):
            hint = f"pass identifiers as text, such as {called!r}"
        msg = (
            f"{what} must be rows below {len(names)}, a mask of {len(names)} samples, or "
            f"identifiers as text, got {short(samples)}; {hint}"
        )
        raise InvalidParameterError(msg) from error


def as_array(values: Any) -> np.ndarray:
    """An array of these values; of no dtype that could index where they are of several lengths."""
    try:
        return np.asarray(values)
    except ValueError:
        return np.array([None])


def _are_rows(names: np.ndarray) -> bool:
    """Whether samples are called by their rows, as those that have no identifiers are."""
    return np.array_equal(names, np.arange(len(names)))


def _as_list(samples: Any, names: np.ndarray) -> np.ndarray:
    """What was asked for, (n,); of no dtype that could index where it is no such list.

    Identifiers of several parts, which are tuples, become the text that they are called by.
    """
    if isinstance(samples, tuple) and text_of(samples) in set(names.astype(str).tolist()):
        return np.array([text_of(samples)])
    given = as_array(samples)
    parts = list(samples) if isinstance(samples, (list, tuple)) else given.tolist()
    if isinstance(parts, list) and parts:
        if all(isinstance(each, tuple) for each in parts):
            return np.array([text_of(each) for each in parts])
        if all(isinstance(each, (bool, np.bool_)) for each in parts):
            return np.array(parts, dtype=bool)
    # A single truth value would stand for all samples, or for none.
    if given.ndim > 1 or (given.ndim == 0 and given.dtype == bool):
        return np.array([None])
    return np.atleast_1d(given) if given.size else np.empty(0, dtype=np.int64)


def _rows_of_names(known: np.ndarray, asked: np.ndarray, what: str, elsewhere: str) -> np.ndarray:
    if _are_rows(known):
        msg = (
            f"{what} names {short(asked.tolist())}, but fit saw no identifiers; pass rows, or fit "
            f"on frames with an index, or on a MultiViewData with ids"
        )
        raise InvalidParameterError(msg)
    places = {str(name): row for row, name in enumerate(known.tolist())}
    unknown = [name for name in asked.tolist() if name not in places]
    if unknown:
        msg = (
            f"{what} names {short(unknown)}, which fit did not see; its identifiers are like "
            f"{short(list(places)[:3])}; {elsewhere or 'check the spelling'}"
        )
        raise InvalidParameterError(msg)
    if len(places) < len(known):
        _refuse_shared(known, asked, what)
    return np.array([places[name] for name in asked.tolist()])


def _refuse_shared(known: np.ndarray, asked: np.ndarray, what: str) -> None:
    """Refuse to choose among the samples that are called the same."""
    called = Counter(known.astype(str).tolist())
    shared = [name for name in asked.tolist() if called[name] > 1]
    if shared:
        msg = (
            f"{what} must name single samples, but {called[shared[0]]} samples are called "
            f"{short(shared[0])}; pass their rows"
        )
        raise InvalidParameterError(msg)
