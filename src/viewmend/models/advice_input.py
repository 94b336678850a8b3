"""Counts, costs and exclusions as people pass them to suggestions, as checked arrays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from viewmend.exceptions import InvalidParameterError
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


def label_costs(costs: ArrayLike | None, n_samples: int) -> np.ndarray:
    """Costs (n_samples,) of labels, ones where none are given."""
    if costs is None:
        return np.ones(n_samples)
    array = np.asarray(costs, dtype=np.float64)
    if array.shape != (n_samples,):
        msg = (
            f"costs must be one per sample, ({n_samples},), got shape {array.shape}; pass those of "
            f"all samples of fit, labelled ones too"
        )
        raise InvalidParameterError(msg)
    return _positive(array)


def view_costs(
    costs: Mapping[str, float] | ArrayLike | None, names: tuple[str, ...], n_samples: int
) -> np.ndarray:
    """Costs (n_samples, n_views) of measurements, ones where none are given."""
    if isinstance(costs, Mapping):
        unknown = [name for name in costs if name not in names]
        if unknown:
            msg = (
                f"costs names {short(unknown)}, which is no view of fit; the views are "
                f"{short(list(names))}, name these"
            )
            raise InvalidParameterError(msg)
        costs = [costs.get(name, 1.0) for name in names]
    array = np.asarray(1.0 if costs is None else costs, dtype=np.float64)
    shape = (n_samples, len(names))
    if array.shape not in {(), (len(names),), shape}:
        msg = (
            f"costs must be one per view, ({len(names)},), or per pair, {shape}, got shape "
            f"{array.shape}; or pass a dict of view to cost"
        )
        raise InvalidParameterError(msg)
    return np.broadcast_to(_positive(array), shape)


def _positive(costs: np.ndarray) -> np.ndarray:
    wrong = ~(np.isfinite(costs) & (costs > 0))
    if wrong.any():
        msg = (
            f"costs must be positive numbers, got {costs[wrong][0]!r} among them; use exclude "
            f"for samples or views that are not available"
        )
        raise InvalidParameterError(msg)
    return costs


def excluded_samples(exclude: ArrayLike | None, n_samples: int) -> np.ndarray:
    """A mask (n_samples,) of samples that cannot be labelled, from a mask or from rows."""
    if exclude is None:
        return np.zeros(n_samples, dtype=bool)
    array, every = np.asarray(exclude), np.zeros(n_samples, dtype=bool)
    if array.size == 0 and array.dtype != bool:
        return every
    try:
        if array.dtype == bool or np.issubdtype(array.dtype, np.integer):
            every[array] = True
            return every
    except IndexError:
        pass
    msg = (
        f"exclude must be a mask ({n_samples},) of bool or rows below {n_samples}, got "
        f"{array.dtype} of shape {array.shape}; pass True where a sample cannot be labelled"
    )
    raise InvalidParameterError(msg)


def excluded_pairs(exclude: ArrayLike | None, shape: tuple[int, int]) -> np.ndarray:
    """A mask (n_samples, n_views) of pairs that cannot be measured."""
    if exclude is None:
        return np.zeros(shape, dtype=bool)
    array = np.asarray(exclude)
    if array.dtype != bool or array.shape not in {shape[:1], shape}:
        msg = (
            f"exclude must be bool of shape {shape[:1]} or {shape}, got {array.dtype} of shape "
            f"{array.shape}; pass True where nothing can be measured"
        )
        raise InvalidParameterError(msg)
    return np.broadcast_to(array if array.ndim == 2 else array[:, None], shape)
