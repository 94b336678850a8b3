"""What a fitted classifier keeps for ``predict`` beside its documented attributes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from scipy.sparse import csr_array

from viewmend.core.advice.set_levels import SetLevels
from viewmend.core.advice.unknown import TypicalSamples, typical_samples
from viewmend.core.agfti.induction import Induction
from viewmend.core.mend.induction import MendInduction
from viewmend.data.origin import Origin
from viewmend.protocols import AGFTIParameters, CalibratedClassifier, ClassPrior


@dataclass(frozen=True, eq=False)
class FittedState:
    """What became of the labels of a fit."""

    # Place (n_samples,) of the given label in ``classes_``, -1 without one.
    label_codes: np.ndarray
    # Class shares (n_classes,) of the labelled samples.
    labelled_shares: np.ndarray
    # What soft labels are multiplied by: (n_classes,), or 1.
    class_weights: np.ndarray | float
    # Rows of zeros that were set apart, (n_samples, n_views) of bool; None where there are none.
    zero_rows: np.ndarray | None = field(default=None, kw_only=True)
    # Of the files that the samples came from, where they came from files; another fit forgets it.
    origin: Origin | None = field(default=None, kw_only=True)

    @property
    def view_dtypes(self) -> list[np.dtype[Any]]:
        """Number types that the fit kept the views in."""
        raise NotImplementedError

    def among_all(self, rows: np.ndarray, codes: np.ndarray, shares: np.ndarray) -> Self:  # noqa: ARG002
        """The same with labels of all samples, of which those at ``rows`` were fitted."""
        return replace(self, label_codes=codes, labelled_shares=shares)


@dataclass(frozen=True, eq=False)
class AGFTIState(FittedState):
    """Of an `AGFTIClassifier`; only label codes and origin grow with the number of samples."""

    induction: Induction

    @property
    def view_dtypes(self) -> list[np.dtype[Any]]:
        """Those of the anchors."""
        return [anchors_v.dtype for anchors_v in self.induction.anchors]

    def without_samples(self) -> AGFTIState:
        """The same for predictions alone."""
        origin = None if self.origin is None else self.origin.without_samples()
        return replace(self, label_codes=self.label_codes[:0], zero_rows=None, origin=origin)


@dataclass(frozen=True, eq=False)
class MendState(FittedState):
    """Of a `MendClassifier`; its induction has the samples in an order of their content."""

    induction: MendInduction
    # (n_comparable,): row i there is row order[i] of ``fit``, whose other rows are not there.
    order: np.ndarray
    # Samples of the induction with a label, (n_labelled,); None without calibration.
    labelled: np.ndarray | None = field(default=None, kw_only=True)
    # Groups (n_labelled,) of these, whose samples tell of each other; None where there are none.
    label_groups: np.ndarray | None = field(default=None, kw_only=True)
    # What prediction sets compare shares by; None where no label was held out.
    levels: SetLevels | None = field(default=None, kw_only=True)

    def among_all(self, rows: np.ndarray, codes: np.ndarray, shares: np.ndarray) -> Self:
        """The same with labels of all samples, of which those at ``rows`` were fitted."""
        return replace(super().among_all(rows, codes, shares), order=rows[self.order])

    def without_samples(self) -> MendState:
        """The same for predictions alone: without samples but those of the graph."""
        origin = None if self.origin is None else self.origin.without_samples()
        codes, order = self.label_codes[:0], self.order[:0]
        return replace(self, label_codes=codes, order=order, zero_rows=None, origin=origin)

    @cached_property
    def typical(self) -> TypicalSamples | None:
        """Labelled samples held against each other, when first asked for; None without any."""
        if self.labelled is None:
            return None
        return typical_samples(self.induction, self.labelled, self.groups_of_labels())

    def groups_of_labels(self) -> np.ndarray:
        """Groups (n_labelled,) of the labelled samples; each is one by itself without any."""
        n_labelled = 0 if self.labelled is None else len(self.labelled)
        return np.arange(n_labelled) if self.label_groups is None else self.label_groups

    @property
    def set_temperatures(self) -> tuple[float, float]:
        """Of shares in prediction sets: of the samples of fit, and of new ones."""
        levels = self.levels
        return (1.0, 1.0) if levels is None else (levels.temperature, levels.new_temperature)

    def places(self, rows: np.ndarray) -> np.ndarray:
        """Where rows of ``fit`` are in the induction, -1 where they are not; shape of ``rows``."""
        place = np.full(len(self.label_codes), -1)
        place[self.order] = np.arange(len(self.order))
        return place[rows]

    @property
    def view_dtypes(self) -> list[np.dtype[Any]]:
        """Those of the rows that are kept."""
        return [view.X.dtype for view in self.induction.views]


class FittedAGFTI(CalibratedClassifier, AGFTIParameters, Protocol):
    """A fitted `AGFTIClassifier`, as far as it is explained."""

    fused_graph_: np.ndarray
    view_graphs_: np.ndarray
    view_weights_: np.ndarray
    anchor_alignments_: np.ndarray
    observed_: np.ndarray
    fitted_state_: AGFTIState


class FittedMend(CalibratedClassifier, Protocol):
    """A fitted `MendClassifier`, as far as it is explained."""

    graph_: csr_array
    class_prior: ClassPrior
    label_noise_: float
    fitted_state_: MendState
