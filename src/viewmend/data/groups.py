"""Samples that belong together, such as rows of one patient: their labels tell of each other."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from viewmend.data.class_names import MISSING_MARKS, written_like
from viewmend.data.given_labels import values_for
from viewmend.data.labels import Labels, find_unlabelled
from viewmend.data.per_sample import one_each
from viewmend.exceptions import DataWarning, InvalidLabelsError


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
    values = one_each(groups)
    values = values[:, 0] if values.shape == (n_samples, 1) else values
    if values.shape != (n_samples,):
        told = f", {groups!r}, which can name a column of obs alone" if _is_name(groups) else ""
        msg = (
            f"groups must be one value per sample, ({n_samples},), got shape {values.shape}{told}; "
            f"pass one column of values, with None for samples that belong to no other"
        )
        raise InvalidLabelsError(msg)
    alone = find_unlabelled(values)
    numbers = np.empty(n_samples, dtype=np.int64)
    numbers[~alone] = _numbered(values[~alone])
    numbers[alone] = numbers[~alone].max(initial=-1) + 1 + np.arange(alone.sum())
    _warn_of_marks(values[~alone])
    return numbers


def _is_name(groups: Any) -> bool:
    """Whether groups are those of a column, which a container would have to hold."""
    return isinstance(groups, str)


def _warn_of_marks(names: np.ndarray) -> None:
    """Warn of text that stands for no group, such as the "nan" that pandas makes of empty cells."""
    counts = Counter(names.tolist()) if names.dtype.kind in "OUS" else Counter()
    for mark in written_like(counts, MISSING_MARKS):
        if counts[mark] > 1:
            msg = (
                f"{counts[mark]} samples of groups {mark!r} are treated as one group; if it means "
                f"that they belong to no other, replace it by None, or leave the cells empty"
            )
            warnings.warn(msg, DataWarning, stacklevel=3)


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
