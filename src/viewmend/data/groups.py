"""Samples that belong together, such as rows of one patient: their labels tell of each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from viewmend.data.given_labels import values_for
from viewmend.data.labels import Labels, find_unlabelled
from viewmend.exceptions import InvalidLabelsError


def with_groups(labels: Labels, X: Any, groups: Any) -> Labels:
    """The labels of the samples of ``X``, in groups as `check_groups` takes them.

    Or in those of a column of the ``obs`` of an AnnData or MuData, by its name.
    """
    told = values_for(X, groups, "groups")
    return replace(labels, groups=check_groups(told, len(labels.codes)))


def check_groups(groups: Any, n_samples: int) -> np.ndarray | None:
    """Numbers (n_samples,) of int64 of the groups of samples, which have any hashable names.

    A sample whose group is -1, None, NaN or empty text is a group by itself. None stays None.
    """
    if groups is None:
        return None
    values = _as_array(groups)
    if values.shape != (n_samples,):
        msg = (
            f"groups must be one value per sample, ({n_samples},), got shape {values.shape}; pass "
            f"None for samples that belong to no other"
        )
        raise InvalidLabelsError(msg)
    alone = find_unlabelled(values)
    numbers = np.empty(n_samples, dtype=np.int64)
    numbers[~alone] = _numbered(values[~alone])
    numbers[alone] = numbers[~alone].max(initial=-1) + 1 + np.arange(alone.sum())
    return numbers


def _as_array(groups: Any) -> np.ndarray:
    """As objects, unless NumPy has a type for them: it would make two strings of ["a", 1]."""
    array = np.asarray(groups, dtype=object if isinstance(groups, (list, tuple)) else None)
    return array if array.dtype.kind in "biufUSMm" else array.astype(object)


def _numbered(names: np.ndarray) -> np.ndarray:
    """Equal numbers for equal names, in the order in which these come first if they are objects."""
    if names.dtype.kind != "O":
        return np.unique(names, return_inverse=True)[1]
    numbers: dict[Any, int] = {}
    try:
        found = [numbers.setdefault(name, len(numbers)) for name in names]
    except TypeError as error:
        msg = f"groups must be hashable, got {error}; use numbers or strings"
        raise InvalidLabelsError(msg) from error
    return np.array(found, dtype=np.int64)
