"""What a report is about: a fitted model and, as far as they were given, its data and answers."""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from viewmend.core.common.accuracy import AccuracyEstimate
from viewmend.core.common.calibration import Calibration
from viewmend.data.class_names import check_of_classes
from viewmend.data.container import MultiViewData
from viewmend.data.given_labels import labels_for
from viewmend.data.indices import check_same_rows, in_another_order, index_of
from viewmend.data.labels import (
    UNLABELLED,
    Labels,
    as_label_array,
    check_labels,
    classes_and_codes,
    find_unlabelled,
    labelled_part,
)
from viewmend.data.matching import views_of_fit
from viewmend.data.opening import rows_of
from viewmend.data.validation import check_new_views
from viewmend.exceptions import DataWarning, InvalidLabelsError, InvalidParameterError
from viewmend.inspection import Inspection, inspect_data
from viewmend.parameters import short
from viewmend.plot.confusion import class_positions
from viewmend.protocols import FittedClassifier, FittedSearch

# Confidence from which predictions are given out; the default of ``decide``.
THRESHOLD = 0.8


def day_of_report() -> date:
    """Today, or the day in SOURCE_DATE_EPOCH, so that a page can be made again byte by byte."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH", "")
    return datetime.fromtimestamp(int(seconds), UTC).date() if seconds.isdigit() else date.today()


@dataclass(frozen=True)
class Provenance:
    """Where the data came from, and what was said while it was read and fitted.

    ``notes`` are the warnings of reading and fitting; None where nobody kept them.
    """

    source: str = ""
    notes: tuple[str, ...] | None = None
    made: date = field(default_factory=day_of_report)


@dataclass(frozen=True, eq=False)
class Case:
    """A fitted model with what is known about its samples.

    ``given`` are the labels that ``fit`` got, ``truth`` those that it did not get, of some samples
    or of all. ``inspection`` is of the views, if they were given; ``search`` chose the parameters;
    ``categories`` are the columns by view that became columns of 0 and 1; None if the data was not
    read from tables.
    """

    model: FittedClassifier
    ids: np.ndarray
    observed: np.ndarray | None = None
    inspection: Inspection | None = None
    given: Labels | None = None
    truth: Labels | None = None
    search: FittedSearch | None = None
    provenance: Provenance = field(default_factory=Provenance)
    categories: Mapping[str, Iterable[Hashable]] | None = None

    @property
    def n_samples(self) -> int:
        return len(self.model.transduction_)

    @cached_property
    def classes(self) -> np.ndarray:
        """Those of the model, then true ones that it knows nothing of, as objects."""
        known = self.model.classes_.tolist()
        true = [] if self.truth is None else self.truth.classes.tolist()
        names = [*known, *(name for name in true if name not in known)]
        classes = np.empty(len(names), dtype=object)
        classes[:] = names
        return classes

    @cached_property
    def told(self) -> np.ndarray:
        """Predicted classes as places in ``classes``, (n_samples,) of int."""
        return class_positions(self.model.transduction_, self.classes)

    @cached_property
    def confidence(self) -> np.ndarray:
        """Share of the predicted class of every sample, (n_samples,)."""
        shares = self.model.label_distributions_
        return np.asarray(shares[np.arange(len(shares)), self.told], dtype=float)

    @cached_property
    def unlabelled(self) -> np.ndarray:
        """Samples without a given label, (n_samples,) of bool; all if labels are not known."""
        if self.given is None:
            return np.ones(self.n_samples, dtype=bool)
        return ~self.given.labelled

    @cached_property
    def judged(self) -> np.ndarray:
        """Samples whose true class is known now and was not given to ``fit``."""
        if self.truth is None:
            return np.zeros(self.n_samples, dtype=bool)
        return self.truth.labelled & self.unlabelled

    @cached_property
    def true(self) -> np.ndarray:
        """True classes of the judged samples as places in ``classes``, (n_judged,) of int."""
        if self.truth is None:
            return np.zeros(0, dtype=np.int64)
        places = class_positions(self.truth.classes, self.classes)
        return places[self.truth.codes[self.judged]]

    @property
    def unreachable(self) -> np.ndarray:
        """Samples that the model says nothing of, (n_samples,) of bool."""
        return np.asarray(self.model.unreachable_, dtype=bool)

    @cached_property
    def calibration(self) -> Calibration | None:
        """What the model's confidence was fitted to, if it was fitted to any label."""
        fitted = getattr(self.model, "calibration_", None)
        return fitted if fitted is not None and fitted.n_samples else None

    @property
    def estimate(self) -> AccuracyEstimate | None:
        """How accurate the model is by labels that were really held out, if there were some."""
        return None if self.calibration is None else self.calibration.accuracy

    @cached_property
    def abstained(self) -> np.ndarray:
        """Samples to be withheld, (n_samples,) of bool.

        Those out of reach and, where confidence is calibrated, those below `THRESHOLD`.
        """
        if self.calibration is None:
            return self.unreachable
        return self.unreachable | (self.unlabelled & (self.confidence < THRESHOLD))


def make_case(
    model: FittedClassifier | FittedSearch,
    X: object = None,
    y: object = None,
    mask: ArrayLike | None = None,
    y_true: object = None,
    ids: ArrayLike | None = None,
    provenance: Provenance | None = None,
) -> Case:
    """Check that all that is given belongs to the samples of ``fit``.

    Parameters are those of `viewmend.report.write_report`; without a ``provenance``, the source is
    what a `MultiViewData` says of itself.
    """
    check_is_fitted(model, ("transduction_", "label_distributions_"))
    search = model if isinstance(model, FittedSearch) else None
    model = model.best_estimator_ if isinstance(model, FittedSearch) else model
    n_samples = len(model.transduction_)
    if n_samples == 0:
        msg = (
            "a report needs the samples of fit, which a copy made by for_prediction has forgotten; "
            "ask the model that the copy was made of"
        )
        raise InvalidParameterError(msg)
    y = _labels_of_fit(model, X) if y is None else y
    _check_samples_of_fit(model, X, y=y, y_true=y_true, mask=mask)
    given = None if y is None else check_labels(labels_for(X, y), n_samples)
    if given is not None and given.classes.tolist() != model.classes_.tolist():
        msg = (
            f"y must have the classes of fit, {short(model.classes_.tolist())}, got "
            f"{short(given.classes.tolist())}; pass the y of fit, and true labels as y_true"
        )
        raise InvalidLabelsError(msg)
    names = _checked_ids(getattr(model, "sample_ids_", None) if ids is None else ids, n_samples)
    truth = None if y_true is None else _truth(labels_for(X, y_true), model)
    return Case(
        model,
        names,
        _observed(model, X, mask),
        None if X is None else _inspected(model, X, y, mask, names),
        given,
        truth,
        search,
        provenance or Provenance(_source(X)),
        X.categories if isinstance(X, MultiViewData) else None,
    )


def _truth(y_true: object, model: FittedClassifier) -> Labels:
    """True labels of some of the samples, of which some at least are classes of the model."""
    n_samples = len(model.transduction_)
    values = as_label_array(y_true, n_samples)
    if find_unlabelled(values).all():
        msg = f"y_true must hold a true label, got {n_samples} samples without one; leave it out"
        raise InvalidLabelsError(msg)
    rows, known = labelled_part(values)
    classes, known_codes = classes_and_codes(known)
    check_of_classes(classes, model.classes_)
    if not set(classes.tolist()) & set(model.classes_.tolist()):
        msg = (
            f"y_true must hold classes of the model, {short(model.classes_.tolist())}, got "
            f"{short(classes.tolist())}; spell them alike"
        )
        raise InvalidLabelsError(msg)
    codes = np.full(n_samples, UNLABELLED)
    codes[rows] = known_codes
    return Labels(classes, codes)


def _check_samples_of_fit(model: FittedClassifier, X: object, **told: object) -> None:
    """Refuse views, and what else is ``told`` of samples, whose identifiers are in another order.

    Those of ``fit`` are known where it saw any.
    """
    known = getattr(model, "sample_ids_", None)
    given = None if X is None else rows_of(X)
    if known is not None and given is not None and in_another_order(given, known):
        msg = (
            f"X must have the samples in the order of fit, from {short(known[0])} to "
            f"{short(known[-1])}, got the same ones from {short(given[0])} to {short(given[-1])}; "
            f"pass what the model was fitted on"
        )
        raise InvalidParameterError(msg)
    for what, values in told.items():
        check_same_rows(index_of(values), known, what, InvalidParameterError)


def _labels_of_fit(model: FittedClassifier, X: object) -> np.ndarray | None:
    """Labels (n_samples,) that the model or else the data remembers, None where there is none."""
    state = getattr(model, "fitted_state_", None)
    if state is None:
        return labels_for(X, None)
    labels = np.full(len(state.label_codes), None, dtype=object)
    known = state.label_codes >= 0
    labels[known] = model.classes_[state.label_codes[known]]
    return labels


def _source(X: object) -> str:
    """What data says of where it comes from; empty where it says nothing."""
    if not isinstance(X, MultiViewData):
        return ""
    return ": ".join(filter(None, (X.name, X.description)))


def _checked_ids(ids: ArrayLike | None, n_samples: int) -> np.ndarray:
    names = np.arange(n_samples) if ids is None else np.asarray(ids)
    if names.shape != (n_samples,):
        msg = (
            f"ids must be one per sample of fit, got shape {names.shape} for {n_samples} samples; "
            f"pass those of the views that the model was fitted on"
        )
        raise InvalidParameterError(msg)
    return names


def _observed(model: FittedClassifier, X: object, mask: ArrayLike | None) -> np.ndarray | None:
    """Who was seen through which view, from the views, from the mask alone, or from the model."""
    if X is None and mask is None:
        return getattr(model, "observed_", None)
    observed = np.asarray(mask, dtype=bool) if X is None else _views(model, X, mask).observed
    expected = len(model.transduction_), len(model.view_names_)
    if observed.shape != expected:
        msg = (
            f"X and mask must be those of fit, {expected[0]} samples in {expected[1]} views, got "
            f"{' x '.join(map(str, observed.shape))}; pass what the model was fitted on"
        )
        raise InvalidParameterError(msg)
    return observed


def _views(model: FittedClassifier, X: object, mask: ArrayLike | None) -> MultiViewData:
    """The views as ``fit`` read them; what it had to warn of stands among the findings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return check_new_views(
            X,
            views_of_fit(model),
            mask=mask,
            view_sizes=model.view_sizes,
        )


def _inspected(
    model: FittedClassifier, X: object, y: object, mask: ArrayLike | None, ids: np.ndarray
) -> Inspection:
    if model.view_sizes is None:
        return inspect_data(X, y, mask, ids=ids.tolist())
    return inspect_data(_views(model, X, mask), y, ids=ids.tolist())
