"""Cross-validation of several methods over the same folds of the labelled samples."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from viewmend.baselines.registry import SIMPLER_FIRST, get_method
from viewmend.comparison.result import MethodComparison
from viewmend.comparison.scores import ComparedMethod
from viewmend.core.common.content_order import canonical_order
from viewmend.data.container import MultiViewData
from viewmend.data.given_labels import labels_for
from viewmend.data.groups import with_groups
from viewmend.data.labels import Labels, check_labels
from viewmend.data.validation import check_views
from viewmend.exceptions import DataWarning, InvalidParameterError
from viewmend.model_selection import LabelledStratifiedKFold, cross_val_transduce
from viewmend.models.apart import comparable_samples
from viewmend.parameters import HasParameters, short
from viewmend.text import counted

__all__ = ["DEFAULT_METHODS", "compare_methods"]

# This library's own, and what people would try first.
DEFAULT_METHODS = (
    "mean + logistic",
    "late fusion",
    "union graph",
    "mean + spreading",
    "boosting",
    "Mend",
)

# Told the name of a method, the number of its fits that are done, and of all its fits.
Step = Callable[[str, int, int], None]


def compare_methods(
    X: Any,
    y: Any = None,
    mask: ArrayLike | None = None,
    methods: Sequence[str] | Mapping[str, HasParameters] | None = None,
    *,
    groups: Any = None,
    n_splits: int = 5,
    random_state: int = 0,
    on_step: Step | None = None,
) -> MethodComparison:
    """Compare methods on your own data, by cross-validation over the labelled samples.

    One part of the labels is held out at a time. Their samples stay in the fit as unlabelled ones,
    and so do all samples without a label. Every method predicts the same held-out labels. Each
    class keeps a label in every fit, so that a class with a single label is never held out. Labels
    of samples without any view do not count. Folds depend on the values of the samples and on the
    seed, not on the order of the rows.

    Parameters
    ----------
    X : views, in any form that ``fit`` takes
        Of a stacked array make a `MultiViewData` with `viewmend.check_views`.
    y : array-like (n_samples,), optional
        -1, None or NaN for unlabelled samples; the labels of a MultiViewData by default.
    mask : array (n_samples, n_views) of bool, optional
        False where a sample does not have a view; replaces rows of NaN.
    methods : sequence of str, or dict of estimators, optional
        Names of `viewmend.baselines.registry.METHODS`, which knows the simpler ones; or estimators
        with ``transduction_`` by names of your own, simplest first. By default `DEFAULT_METHODS`.
    groups : array (n_samples,) or str, optional
        Which samples belong together, such as rows of one patient; their labels are held out
        together, and intervals count groups. As in ``fit``.
    n_splits : int, default=5
        Parts of the labels, and so fits of every method.
    random_state : int, default=0
        Seed of the folds, and of methods that use random numbers.
    on_step : callable, optional
        Called as ``on_step(name, n_done, n_splits)`` before every fit.

    Returns
    -------
    MethodComparison
        If a method fails, its row has the reason.

    Examples
    --------
    >>> from viewmend import compare_methods
    >>> from viewmend.datasets import hide, make_multiview_blobs
    >>> blobs = make_multiview_blobs(150, random_state=0)
    >>> task = hide(blobs.views, blobs.y, missing_rate=0.3, label_rate=0.5, random_state=0)
    >>> found = compare_methods(task.data, task.y, methods=["late fusion", "union graph"])
    >>> found.recommended.name
    'late fusion'
    """
    estimators = _estimators(DEFAULT_METHODS if methods is None else methods, random_state)
    data = check_views(X, mask=mask)
    labels = with_groups(check_labels(labels_for(X, y), data.n_samples), X, groups)
    labels = _without_unseen(data, labels)
    # Fits must not find hidden labels beside the views.
    data = replace(data, y=None)
    folds = _folds(data, labels, n_splits, random_state)
    tell = on_step or (lambda *_: None)
    rows = [_judged(name, each, data, labels, folds, tell) for name, each in estimators.items()]
    # The sort is stable: of equal methods the simplest stays first.
    rows.sort(key=lambda row: (row.failure is not None, -row.is_right.sum()))
    held_out = np.unique(labels.codes[np.concatenate(folds)])
    never = np.delete(labels.classes, held_out).tolist()
    return MethodComparison(tuple(rows), tuple(estimators), n_splits, tuple(never))


def _estimators(
    methods: Sequence[str] | Mapping[str, HasParameters], seed: int
) -> dict[str, HasParameters]:
    """Estimators by name, simplest first."""
    if isinstance(methods, str) or not methods:
        msg = (
            f"methods must be a list of names or a dict of estimators, got {methods!r}; leave it "
            f"out for {', '.join(DEFAULT_METHODS)}"
        )
        raise InvalidParameterError(msg)
    nameless = [name for name in methods if not isinstance(name, str)]
    if isinstance(methods, Mapping):
        if nameless:
            msg = f"methods must have text for names, got {short(nameless[0])}; name it in words"
            raise InvalidParameterError(msg)
        return dict(methods)
    if nameless:
        msg = (
            f"methods must be names in a list, got {short(nameless[0])}; pass estimators as a dict "
            f"with names of your own"
        )
        raise InvalidParameterError(msg)
    asked = {name: get_method(name).estimator() for name in methods}
    for model in asked.values():
        if "random_state" in model.get_params(deep=False):
            model.set_params(random_state=seed)
    # What was added to the registry alone comes last.
    known = [name for name in SIMPLER_FIRST if name in asked]
    return {name: asked[name] for name in dict.fromkeys([*known, *asked])}


def _without_unseen(data: MultiViewData, labels: Labels) -> Labels:
    """Labels of samples that have a view: of the others nothing is learned or told.

    An error where these are all the labels of a class, as in a fit.
    """
    unseen = np.flatnonzero(data.unseen & labels.labelled)
    if len(unseen) == 0:
        return labels
    comparable_samples(data, labels)
    msg = (
        f"labels of {counted(len(unseen), 'sample')} without any view are not held out, because "
        f"nothing could tell their classes; add what is known about them"
    )
    warnings.warn(msg, DataWarning, stacklevel=3)
    return labels.without(unseen)


def _folds(data: MultiViewData, labels: Labels, n_splits: int, seed: int) -> list[np.ndarray]:
    """Rows to hold out together, dealt by content and seed."""
    order = canonical_order(data.views, data.observed, labels.codes)
    dealt = labels.at(order)
    cv = LabelledStratifiedKFold(n_splits, shuffle=True, random_state=seed)
    return [order[test] for _, test in cv.split(dealt.codes, dealt.codes, dealt.groups)]


def _judged(
    name: str,
    estimator: HasParameters,
    data: MultiViewData,
    labels: Labels,
    folds: Sequence[np.ndarray],
    tell: Step,
) -> ComparedMethod:
    """The row of one method; whatever its fits raise is its failure."""
    known = labels.classes.astype(object)[labels.codes]
    known[~labels.labelled] = None
    found, seconds = [], []
    for turn, fold in enumerate(folds):
        tell(name, turn, len(folds))
        begun = time.perf_counter()
        try:
            found.append(_found_without(estimator, data, known, fold))
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            return ComparedMethod(name, np.empty(0, bool), np.empty(0, int), None, reason)
        seconds.append(time.perf_counter() - begun)
    rows = np.concatenate(folds)
    is_right = np.array([a == b for a, b in zip(np.concatenate(found), known[rows], strict=True)])
    n_groups = None if labels.groups is None else len(np.unique(labels.groups[rows]))
    return ComparedMethod(
        name,
        is_right,
        labels.codes[rows],
        # The first fit of a process may have to compile.
        float(np.median(seconds)),
        n_groups=n_groups,
        class_groups=labels.group_counts(rows),
    )


def _found_without(
    estimator: HasParameters, data: MultiViewData, known: np.ndarray, fold: np.ndarray
) -> np.ndarray:
    """Classes of a fold in a fit without its labels; the data was warned of before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DataWarning)
        return cross_val_transduce(estimator, data, known, cv=[(None, fold)])[1]
