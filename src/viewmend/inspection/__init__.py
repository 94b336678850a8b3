"""Measure multi-view data, and find problems that may harm a fit.

`inspect_data` measures first (`viewmend.inspection.measures`) and judges afterwards
(`viewmend.inspection.rules`). Nothing is changed and nothing is printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from viewmend.data.container import MultiViewData
from viewmend.data.given_labels import labels_for
from viewmend.data.given_views import GivenViews
from viewmend.data.input_arrays import as_mask, as_matrices, common_rows
from viewmend.data.labels import (
    UNLABELLED,
    Labels,
    classes_and_codes,
    labelled_part,
    read_labels,
    without_marks,
)
from viewmend.data.opening import views_in
from viewmend.exceptions import InvalidLabelsError, InvalidViewsError
from viewmend.inspection.frames import numeric_frames
from viewmend.inspection.measures import (
    Finding,
    Inspection,
    Order,
    Pattern,
    ViewSummary,
    measure,
)
from viewmend.inspection.rules import judge
from viewmend.parameters import short

__all__ = ["Finding", "Inspection", "Order", "Pattern", "ViewSummary", "inspect_data"]


def inspect_data(
    X: object,
    y: object = None,
    mask: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    *,
    ids: ArrayLike | None = None,
) -> Inspection:
    """Measure multi-view data and list problems that may harm a fit.

    It also accepts data that ``fit`` would refuse: with missing cells, samples without any view,
    columns of text in frames or unusable labels. Every view must have some numbers, and as many
    rows as the others.

    Parameters
    ----------
    X : list, tuple or dict of arrays (n_samples, n_features_v), MultiViewData, or 2-D array
        The views. A row of NaN means that the sample does not have this view. One 2-D array is a
        single view. Arrays may be frames; findings then name their columns. Labels, identifiers and
        column names of a MultiViewData are used unless you pass others.
    y : array (n_samples,), optional
        The labels; -1, None or NaN for unlabelled samples.
    mask : array (n_samples, n_views) of bool, optional
        False where a sample does not have a view.
    names : sequence of str (n_views,), optional
        Names of the views.
    ids : array-like (n_samples,), optional
        Identifiers of the samples in the findings; by default row numbers from 0.

    Returns
    -------
    Inspection

    Examples
    --------
    >>> found = inspect_data([[[1.0, 2.0], [0.0, 0.0], [3.0, 1.0]]], y=["a", "b", None])
    >>> [(finding.severity, finding.subject) for finding in found.findings]
    [('warning', 'labels'), ('info', 'view 0')]
    >>> found.findings[1].message
    '1 row(s) are all zero, which a fit treats as data (1)'
    """
    X, text = numeric_frames(X)  # noqa: N806 - as users call it
    given = views_in(X)
    data = _read(given, mask, names)
    labels, refused = _read_labels(X, y, data.n_samples)
    called = data.sample_ids if ids is None else np.asarray(ids)
    columns = data.columns or [range(width) for width in data.n_features]
    measured = measure(data, labels, called, [list(names) for names in columns])
    return replace(measured, findings=judge(measured, [*text, *refused]))


def _read(given: GivenViews, mask: ArrayLike | None, names: Sequence[str] | None) -> MultiViewData:
    """The views as they are: what is in the rows is looked at later."""
    views = as_matrices(given.arrays, np.float64)
    observed = as_mask(given.mask(mask), (common_rows(views), len(views)))
    for v, view in enumerate(views.values()):
        observed[:, v] &= ~np.isnan(view).all(axis=1)
    if names is not None and len(names) != len(views):
        msg = f"names must be one per view, got {short(names)} for {len(views)} views; name all"
        raise InvalidViewsError(msg)
    data = given.described(MultiViewData(tuple(views.values()), observed, tuple(views)))
    return data if names is None else replace(data, names=tuple(names))


def _read_labels(X: object, y: object, n_samples: int) -> tuple[Labels | None, list[Finding]]:
    """Labels as far as there are any to use, and why a fit refuses them, if it does."""
    try:
        y = labels_for(X, y)
        return None if y is None else read_labels(y, n_samples), []
    except InvalidLabelsError as error:
        message, _, remedy = str(error).partition("; ")
    refused = [Finding("error", "labels", message, remedy)]
    try:
        return _usable_labels(y, n_samples), refused
    except InvalidLabelsError:
        return None, refused


def _usable_labels(y: object, n_samples: int) -> Labels:
    """Labels without marks of missing ones, of however few classes."""
    rows, known = labelled_part(without_marks(y, n_samples))
    classes, known_codes = classes_and_codes(known)
    codes = np.full(n_samples, UNLABELLED)
    codes[rows] = known_codes
    return Labels(classes, codes)
