"""Counts, costs and exclusions as people pass them to suggestions, as checked arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from viewmend.data.indices import index_of
from viewmend.exceptions import InvalidParameterError
from viewmend.models.naming import as_array, sample_rows, told_of_samples
from viewmend.parameters import Integer, Real, short

_COUNT, _BUDGET = Integer(1), Real(0, low_open=True)


def check_count(n: object) -> None:
    """Refuse what is no number of suggestions."""
    if not _COUNT.accepts(n):
        msg = f"n must be {_COUNT.expected}, got {short(n)}; pass how many to suggest"
        raise InvalidParameterError(msg)


def check_budget(budget: object) -> None:
    """Refuse what is neither None nor a positive number."""
    if budget is not None and not _BUDGET.accepts(budget):
        msg = f"budget must be {_BUDGET.expected}, got {short(budget)}; leave it out for none"
        raise InvalidParameterError(msg)


def label_costs(costs: ArrayLike | None, names: np.ndarray) -> np.ndarray:
    """Costs of labels of the samples called ``names`` (n_samples,), ones where none are given."""
    if costs is None:
        return np.ones(len(names))
    array = _numbers(told_of_samples(costs, names, "costs"), "one per sample")
    if array.shape != names.shape:
        msg = (
            f"costs must be one per sample, {names.shape}, got shape {array.shape}; pass those of "
            f"all samples of fit, labelled ones too"
        )
        raise InvalidParameterError(msg)
    return _positive(array, lambda row: f"sample {short(names[row])}")


def view_costs(
    costs: Mapping[str, float] | ArrayLike | None, views: tuple[str, ...], names: np.ndarray
) -> np.ndarray:
    """Costs (n_samples, n_views) of measurements, ones where none are given.

    Of samples called ``names`` (n_samples,), in the ``views`` (n_views,) of these names.
    """
    index, shape = index_of(costs), (len(names), len(views))
    if index is not None and not set(index).isdisjoint(views):
        # A pandas Series under names of views, which need not be in their order.
        costs = costs.to_dict()  # type: ignore[union-attr]
    if isinstance(costs, Mapping):
        costs = _in_order_of_views(costs, views)
    array = _numbers(
        1.0 if costs is None else told_of_samples(costs, names, "costs", views), "one per view"
    )
    if array.shape not in {(), shape[1:], shape}:
        msg = (
            f"costs must be one per view, ({len(views)},), or per pair, {shape}, got shape "
            f"{array.shape}; or pass a dict of view to cost"
        )
        raise InvalidParameterError(msg)
    titles: Mapping[int, Callable[..., str]] = {
        0: lambda: "every view",
        1: lambda v: f"view {views[v]!r}",
        2: lambda row, v: f"sample {short(names[row])} in view {views[v]!r}",
    }
    return np.broadcast_to(_positive(array, titles[array.ndim]), shape)


def _in_order_of_views(costs: Mapping[str, Any], views: tuple[str, ...]) -> list[Any]:
    unknown = [name for name in costs if name not in views]
    if unknown:
        msg = (
            f"costs names {short(unknown)}, which is no view of fit; the views are "
            f"{short(list(views))}, name these"
        )
        raise InvalidParameterError(msg)
    return [costs.get(name, 1.0) for name in views]


def _numbers(costs: Any, expected: str) -> np.ndarray:
    try:
        if isinstance(costs, np.ma.MaskedArray):
            # What is masked is no cost, whatever is stored below the mask.
            return np.ma.filled(costs.astype(np.float64), np.nan)
        return np.asarray(costs, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = f"costs must be numbers, {expected}, got {short(costs)} ({error}); pass an array"
        raise InvalidParameterError(msg) from error


def _positive(costs: np.ndarray, title: Callable[..., str]) -> np.ndarray:
    """The costs, all of them positive; ``title`` says of what the one at a place is."""
    wrong = np.argwhere(~(np.isfinite(costs) & (costs > 0)))
    if len(wrong):
        place = tuple(wrong[0].tolist())
        msg = (
            f"costs must be positive numbers, but that of {title(*place)} is "
            f"{short(costs[place])}; use exclude for samples or views that are not available"
        )
        raise InvalidParameterError(msg)
    return costs


def excluded_samples(exclude: ArrayLike | None, names: np.ndarray) -> np.ndarray:
    """A mask (n_samples,) of samples to leave out, from what `sample_rows` takes.

    The samples are called ``names`` (n_samples,).
    """
    mask = np.zeros(len(names), dtype=bool)
    if exclude is not None:
        mask[sample_rows(exclude, names, "exclude")] = True
    return mask


def excluded_pairs(
    exclude: ArrayLike | None, views: tuple[str, ...], names: np.ndarray
) -> np.ndarray:
    """A mask (n_samples, n_views) of pairs that cannot be measured, as in `view_costs`.

    What is no table is about samples, which are then left out in all views.
    """
    shape, array = (len(names), len(views)), as_array(exclude)
    # A list of identifiers of several parts is a table of text.
    if array.ndim != 2 or array.dtype.kind in "OUS":
        return np.broadcast_to(excluded_samples(exclude, names)[:, None], shape)
    array = np.asarray(told_of_samples(exclude, names, "exclude", views))
    if array.dtype != bool or array.shape != shape:
        msg = (
            f"exclude must be bool of shape {shape} where it is about pairs, got {array.dtype} of "
            f"shape {array.shape}; pass True where nothing can be measured"
        )
        raise InvalidParameterError(msg)
    return array
