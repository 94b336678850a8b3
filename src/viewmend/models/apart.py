"""Samples and rows that no method can compare: set aside before a fit, restored after it.

These are samples without any view, and rows of zeros, see `viewmend.core.common.zero_rows`. A
method gets the other samples, with rows of zeros marked as missing. So its results for these are
the same, bit for bit, as if the samples set aside did not exist.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from viewmend.core.common.zero_rows import find_zero_rows, with_evidence, zero_row_evidence
from viewmend.core.graphs.neighbours import scatter_graph
from viewmend.data.container import MultiViewData
from viewmend.data.input_arrays import some_of, view_title, with_blank_rows
from viewmend.data.labels import Labels
from viewmend.exceptions import DataWarning, InvalidLabelsError, InvalidViewsError
from viewmend.models.decisions import decide

# Fitted attributes with an entry per sample that hold no classes, and the axes of the samples.
OF_SAMPLES: Mapping[str, tuple[int, ...]] = {
    "embedding_": (0,),
    "fused_graph_": (0,),
    "graph_": (0, 1),
    "similarity_": (0, 1),
    "view_graphs_": (1,),
}
# What predictions are of new samples without any view.
NEW_SHARES = "the class shares of the labelled samples of fit"


@dataclass(frozen=True, eq=False)
class Comparable:
    """The samples that a method gets.

    Attributes
    ----------
    data : MultiViewData
        The samples that can be compared.
    rows : array (n_comparable,) of int
        Which of the samples they are.
    zero : array (n_samples, n_views) of bool
        Rows of zeros that were set apart, among all samples.
    unseen : array (n_samples,) of bool
        Samples without any view.
    """

    data: MultiViewData
    rows: np.ndarray
    zero: np.ndarray
    unseen: np.ndarray

    @property
    def whole(self) -> bool:
        """Whether these are all samples, as they were."""
        return len(self.rows) == len(self.unseen) and not self.zero.any()


@dataclass(frozen=True, eq=False)
class FitSamples:
    """The samples of a fit that its method gets, with their labels, and the labels of all."""

    part: Comparable
    labels: Labels
    all_labels: Labels
    # All samples, (n_samples, n_views) of bool.
    observed: np.ndarray
    # Whether zero rows were set apart; otherwise they are compared like others.
    zero_apart: bool

    @property
    def data(self) -> MultiViewData:
        return self.part.data

    def give_back(self, model: Any) -> None:
        """Extend a model that was fitted to the comparable samples to all samples."""
        part, labels = self.part, self.all_labels
        evidence = np.zeros((part.zero.shape[1], labels.n_classes)) if self.zero_apart else None
        if not part.whole:
            shares = np.tile(labels.shares(), (len(part.unseen), 1))
            shares[part.rows] = model.label_distributions_
            if part.zero.any():
                evidence = zero_row_evidence(part.zero, self.observed, labels.one_hot())
                shares = with_evidence(shares, part.zero, evidence)
            self._place_answers(model, shares, evidence)
            _place_graphs(model, part.rows, len(part.unseen))
        model.zero_row_evidence_ = evidence
        model.observed_ = self.observed
        warn_of_unreachable(model, part.unseen)

    def _place_answers(self, model: Any, shares: np.ndarray, evidence: np.ndarray | None) -> None:
        """Classes of all samples; those of samples that have no zero row stay as they are."""
        part, labels = self.part, self.all_labels
        told = np.zeros_like(part.unseen)
        told[part.rows] = ~model.unreachable_
        settled = np.zeros_like(part.unseen)
        settled[part.rows] = ~part.zero[part.rows].any(axis=1)
        weights = getattr(model, "decision_weights_", np.ones(labels.n_classes))
        # Nothing can contradict the label of a sample without any view.
        kept = labels.labelled & (model.keeps_labels() | part.unseen)
        codes = np.where(kept, labels.codes, decide(shares, weights))
        classes, of_part = model.classes_[codes], settled[part.rows]
        classes[settled] = model.transduction_[of_part]
        if hasattr(model, "confidence_"):
            confidence = shares[np.arange(len(codes)), codes]
            confidence[settled] = model.confidence_[of_part]
            model.confidence_ = confidence
        if evidence is not None:
            told |= (part.zero @ np.abs(evidence)).any(axis=1)
        model.transduction_, model.label_distributions_ = classes, shares
        model.unreachable_ = ~told
        if hasattr(model, "fitted_state_"):
            state = model.fitted_state_.among_all(part.rows, labels.codes, labels.shares())
            zero_rows = part.zero if part.zero.any() else None
            model.fitted_state_ = replace(state, zero_rows=zero_rows)
        else:
            model.labelled_shares_ = labels.shares()


def comparable_samples(data: MultiViewData, labels: Labels) -> FitSamples:
    """The samples that a method can learn from; an error where these lack a view or a class.

    If all labelled samples of some class have rows of zeros only, the class can be recognised by
    nothing else. Rows of zeros are then compared like all others.
    """
    zero = find_zero_rows(data.views, data.observed)
    content = data.observed & ~zero
    _check_views(data, content)
    zero_apart = len(_classes_without(content, labels)) == 0
    part = _part(data, zero if zero_apart else np.zeros_like(zero))
    absent = _classes_without(data.observed, labels)
    if len(absent):
        msg = (
            f"class {some_of([repr(label) for label in absent.tolist()])} has labels, but only of "
            f"samples without any view, from which nothing can be learned; expected at least one "
            f"labelled sample with a view in every class: label another one, or take the class out "
            f"of y"
        )
        raise InvalidLabelsError(msg)
    return FitSamples(part, labels.at(part.rows), labels, data.observed, zero_apart)


def comparable_new(
    data: MultiViewData, zero_apart: bool, unseen_get: str | None = NEW_SHARES
) -> Comparable:
    """The new samples that a fitted method can score.

    Warns about samples without any view, and what these ``unseen_get``, unless that is None.
    """
    zero = find_zero_rows(data.views, data.observed)
    part = _part(data, zero if zero_apart else np.zeros_like(zero))
    if part.unseen.any() and unseen_get is not None:
        msg = (
            f"{part.unseen.sum()} of {data.n_samples} samples have no view at all and get "
            f"{unseen_get}; fill in what is known of them"
        )
        warnings.warn(msg, DataWarning, stacklevel=4)
    return part


def warn_of_unreachable(model: Any, unseen: np.ndarray) -> None:
    """Warn once with the number of samples of fit that no label reaches."""
    lost = model.unreachable_
    if not lost.any():
        return
    found = f"are joined to no label by the graph of {type(model).__name__}"
    remedy = "label some of them, or raise n_neighbors"
    if unseen[lost].all():
        # Neither labels nor neighbours would help these.
        found, remedy = "have no view at all", "add what is known about them"
    elif unseen.any():
        found += f", {unseen.sum()} of them because they have no view at all,"
    msg = (
        f"{lost.sum()} of {len(lost)} samples {found} (see unreachable_) and get the class shares "
        f"of the labelled samples; {remedy}"
    )
    warnings.warn(msg, DataWarning, stacklevel=5)


def _part(data: MultiViewData, zero: np.ndarray) -> Comparable:
    content, unseen = data.observed & ~zero, data.unseen
    rows = np.flatnonzero(content.any(axis=1))
    if zero.any():
        pairs = zip(data.views, content.T, strict=True)
        views = tuple(with_blank_rows(view, ~kept) for view, kept in pairs)
        data = replace(data, views=views, observed=content)
    return Comparable(data if len(rows) == len(unseen) else data[rows], rows, zero, unseen)


def _check_views(data: MultiViewData, content: np.ndarray) -> None:
    for name, kept, seen in zip(data.names, content.T, data.observed.T, strict=True):
        if not kept.any():
            msg = (
                f"{view_title(name)} has nothing but zeros in all of its {seen.sum()} rows, "
                f"expected at least one other value; leave the view out"
            )
            raise InvalidViewsError(msg)
    if len(content) > 1 and all(map(_is_constant, data.views, content.T)):
        msg = (
            f"no view distinguishes any two samples: all rows of {some_of(data.names)} are equal; "
            f"expected values that differ between samples"
        )
        raise InvalidViewsError(msg)


def _is_constant(view: Any, kept: np.ndarray) -> bool:
    """Whether all rows of a view are the same; those that are wide and sparse are not asked."""
    rows = np.flatnonzero(kept)
    # Most views show it in two rows.
    return not issparse(view) and not any(
        np.any(view[some] != view[rows[0]]) for some in (rows[:2], rows)
    )


def _classes_without(content: np.ndarray, labels: Labels) -> np.ndarray:
    """Classes none of whose labelled samples has anything in a view."""
    codes = labels.codes[labels.labelled & content.any(axis=1)]
    return labels.classes[np.bincount(codes, minlength=labels.n_classes) == 0]


def _place_graphs(model: Any, rows: np.ndarray, n_samples: int) -> None:
    """Attributes of samples among all samples; those set apart have no edge and no entry."""
    for name, axes in OF_SAMPLES.items():
        if hasattr(model, name):
            setattr(model, name, _among_all(getattr(model, name), axes, rows, n_samples))
    if hasattr(model, "off_graph_"):
        off_graph = np.ones(n_samples, dtype=bool)
        off_graph[rows] = model.off_graph_
        model.off_graph_ = off_graph


def _among_all(array: Any, axes: tuple[int, ...], rows: np.ndarray, n_samples: int) -> Any:
    if issparse(array):
        return scatter_graph(array, rows, n_samples)
    shape = tuple(n_samples if i in axes else size for i, size in enumerate(array.shape))
    placed = np.zeros(shape, dtype=array.dtype)
    every = [rows if i in axes else np.arange(size) for i, size in enumerate(array.shape)]
    placed[np.ix_(*every)] = array
    return placed
