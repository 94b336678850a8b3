"""Complete multi-view data with true labels, and the checks every way of making it shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from viewmend.exceptions import InvalidLabelsError, InvalidParameterError, InvalidViewsError

__all__ = ["MultiViewDataset"]

Row = TypeVar("Row")


@dataclass(frozen=True, eq=False)
class MultiViewDataset:
    """Samples seen through every view, with the true label of each.

    The step from here to a learning problem is `viewmend.datasets.hide`, which takes views
    and labels away.

    Attributes
    ----------
    name : str
        Short name of the data.
    views : tuple of array (n_samples, n_features_v)
        Finite float64 values; row ``i`` is the same sample in every view.
    y : array (n_samples,) of int
        True class of every sample, non-negative.
    view_names : tuple of str
        One name per view.
    description : str
        What the data is and where it comes from.
    """

    name: str
    views: tuple[np.ndarray, ...]
    y: np.ndarray
    view_names: tuple[str, ...]
    description: str

    def __repr__(self) -> str:
        columns = ", ".join(
            f"{name}: {view.shape[1]} columns"
            for name, view in zip(self.view_names, self.views, strict=True)
        )
        n_classes = np.unique(self.y).size
        return (
            f"MultiViewDataset({self.name}: {self.y.size} samples, {n_classes} classes; {columns})"
        )


def check_complete_views(views: Sequence[ArrayLike]) -> tuple[np.ndarray, ...]:
    """Turn the views into float64 arrays of equal row count without NaN or infinity.

    Parameters
    ----------
    views : sequence of array-like (n_samples, n_features_v)

    Returns
    -------
    tuple of array (n_samples, n_features_v) of float64
        May share memory with the input.
    """
    checked = tuple(_check_complete_view(view, v) for v, view in enumerate(views))
    if not checked:
        msg = "no view was given; pass a sequence with at least one array (n_samples, n_features)"
        raise InvalidViewsError(msg)
    for v, view in enumerate(checked):
        if len(view) != len(checked[0]):
            msg = (
                f"view {v} has {len(view)} rows but view 0 has {len(checked[0])}; every view must "
                "hold the same samples, one per row (transpose a view stored as features x samples)"
            )
            raise InvalidViewsError(msg)
    return checked


def _check_complete_view(view: ArrayLike, v: int) -> np.ndarray:
    try:
        array = np.asarray(view, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = (
            f"view {v} must be a dense numeric array (n_samples, n_features) but it is a "
            f"{type(view).__name__} that NumPy cannot turn into one; convert it first, a sparse "
            "matrix through .toarray()"
        )
        raise InvalidViewsError(msg) from error
    if array.ndim != 2 or 0 in array.shape:
        msg = (
            f"view {v} must have shape (n_samples, n_features), both at least 1, but has shape "
            f"{array.shape}; pass a sequence of 2-D arrays, one per view"
        )
        raise InvalidViewsError(msg)
    n_bad = np.count_nonzero(~np.isfinite(array))
    if n_bad:
        msg = (
            f"view {v} must be complete but {n_bad} of its values are NaN or infinite; "
            "fill or remove these first: only whole rows are hidden, and only from complete data"
        )
        raise InvalidViewsError(msg)
    return array


def check_integer_labels(y: ArrayLike, n_samples: int) -> np.ndarray:
    """Check that ``y`` holds one non-negative integer per sample; return it as int64.

    Parameters
    ----------
    y : array-like (n_samples,) of int
    n_samples : int
        Number of rows of the views.

    Returns
    -------
    array (n_samples,) of int64
    """
    labels = np.asarray(y)
    if labels.dtype.kind not in "iu":
        msg = (
            f"y must hold integers but has dtype {labels.dtype}; "
            "number the classes with np.unique(y, return_inverse=True)[1]"
        )
        raise InvalidLabelsError(msg)
    if labels.shape != (n_samples,):
        msg = (
            f"y must have one label per row, shape ({n_samples},), but has shape {labels.shape}; "
            "pass the true labels of all samples as a 1-D array"
        )
        raise InvalidLabelsError(msg)
    if labels.min() < 0:
        msg = (
            f"y must be non-negative but holds {labels.min()}; a negative number marks a sample "
            "without label, so give every sample its true class, numbered from 0"
        )
        raise InvalidLabelsError(msg)
    return labels.astype(np.int64)


def check_view_names(view_names: Sequence[str] | None, n_views: int) -> tuple[str, ...]:
    """One name per view; ``view 0``, ``view 1``, ... where none are given."""
    if view_names is None:
        return tuple(f"view {v}" for v in range(n_views))
    if isinstance(view_names, str) or len(view_names) != n_views:
        msg = (
            f"view_names must be a sequence of {n_views} names, one per view, but is "
            f"{view_names!r}; pass that many names or None"
        )
        raise InvalidParameterError(msg)
    return tuple(view_names)


def choose(table: Mapping[str, Row], name: str, parameter: str) -> Row:
    """Row ``name`` of a table of choices; an unknown name is an error about ``parameter``."""
    if name not in table:
        known = ", ".join(repr(key) for key in table)
        msg = f"{parameter}={name!r} is not known; choose one of {known}"
        raise InvalidParameterError(msg)
    return table[name]
