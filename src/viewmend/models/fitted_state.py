"""What a fitted classifier keeps beside its documented attributes, for predictions to come."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from viewmend.core.agfti.induction import Induction
from viewmend.core.mend.induction import MendInduction
from viewmend.protocols import AGFTIParameters, CalibratedClassifier, ClassPrior

__all__ = ["AGFTIState", "FittedAGFTI", "FittedMend", "FittedState", "MendState"]


@dataclass(frozen=True, eq=False)
class FittedState:
    """What became of the labels of a fit.

    Attributes
    ----------
    label_codes : array (n_samples,) of int
        Place of the given label in ``classes_``, -1 without one.
    labelled_shares : array (n_classes,)
        Class shares of the labelled samples.
    class_weights : array (n_classes,), or 1
        What soft labels are multiplied by.
    """

    label_codes: np.ndarray
    labelled_shares: np.ndarray
    class_weights: np.ndarray | float


@dataclass(frozen=True, eq=False)
class AGFTIState(FittedState):
    """Of an `AGFTIClassifier`; nothing but the label codes grows with the number of samples."""

    induction: Induction

    def without_samples(self) -> AGFTIState:
        """The same for predictions alone."""
        return replace(self, label_codes=self.label_codes[:0])


@dataclass(frozen=True, eq=False)
class MendState(FittedState):
    """Of a `MendClassifier`.

    Attributes
    ----------
    induction : MendInduction
        Its samples are in an order of their content.
    order : array (n_samples,) of int
        Row ``i`` there is row ``order[i]`` of ``fit``.
    """

    induction: MendInduction
    order: np.ndarray


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
    fitted_state_: MendState
