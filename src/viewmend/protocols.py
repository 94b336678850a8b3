"""What rooms below the estimators may know of an estimator: these attributes, and no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from viewmend.core.common.calibration import Calibration
from viewmend.parameters import HasParameters

ClassPrior = str | Mapping[Any, float] | ArrayLike | None
# Of samples and anchors alike, or of each.
Damping = float | Sequence[float]
Seed = int | np.random.Generator | None


class FittedClassifier(HasParameters, Protocol):
    """A classifier that has labelled the samples of its ``fit``; see `viewmend.MendClassifier`."""

    classes_: np.ndarray
    transduction_: np.ndarray
    label_distributions_: np.ndarray
    unreachable_: np.ndarray
    view_names_: tuple[str, ...]
    view_n_features_: tuple[int, ...]
    view_sizes: Sequence[int] | None


class CalibratedClassifier(FittedClassifier, Protocol):
    """One whose class shares were calibrated on labels held out."""

    calibration_: Calibration
    confidence_: np.ndarray
    observed_: np.ndarray
    zero_row_evidence_: np.ndarray | None
    decision_weights_: np.ndarray

    def keeps_labels(self) -> bool:
        """Whether samples keep the labels they were given."""


@runtime_checkable
class PredictsNewSamples(Protocol):
    """One that can score samples that its ``fit`` did not see."""

    def predict_proba(self, X: Any, mask: ArrayLike | None = None) -> np.ndarray:
        """Class shares (n_new, n_classes)."""


@runtime_checkable
class HasImputedGraphs(Protocol):
    """One with a graph of samples and anchors per view, whose missing rows it imputed."""

    transduction_: np.ndarray
    observed_: np.ndarray
    view_names_: tuple[str, ...]
    view_graphs_: np.ndarray


@runtime_checkable
class HasSampleGraph(Protocol):
    """One with a graph (n_samples, n_samples) that labels spread over."""

    transduction_: np.ndarray
    graph_: csr_array


@runtime_checkable
class GivesAdvice(Protocol):
    """One that tells what to label, what to measure, and which labels and answers to doubt."""

    def suggest_labels(self, n: int) -> Any:
        """Samples to label; see `viewmend.models.suggestions.LabelSuggestions`."""

    def suggest_views(self) -> Any:
        """Views to measure; see `viewmend.models.suggestions.ViewSuggestions`."""

    def suspect_labels(self) -> Any:
        """Labels by how suspect they are; see `viewmend.models.suspects.SuspectLabels`."""

    def predict_set(self, *, alpha: float) -> np.ndarray:
        """Classes that each sample of ``fit`` may have, (n_samples, n_classes) of bool."""


@runtime_checkable
class FindsUnknown(Protocol):
    """One that tells samples of ``fit`` that fit none of the known classes."""

    def unknown_score(self) -> np.ndarray:
        """Share (n_samples,) of the labelled samples that fit their class better."""

    def decide(self, *, unknown_rate: float) -> Any:
        """Classes, withheld where samples fit none; see `viewmend.models.calibrated.Decision`."""


@runtime_checkable
class FittedSearch(Protocol):
    """A search over parameters that is over."""

    best_estimator_: FittedClassifier
    best_params_: Mapping[str, Any]
    cv_results_: dict[str, Any]


class StateOfFit(Protocol):
    """What a fit keeps beside its documented attributes."""

    def without_samples(self) -> Any:
        """The same for predictions alone, with nothing about the samples of the fit."""


class AGFTIParameters(HasParameters, Protocol):
    """Parameters of `viewmend.AGFTIClassifier` that its rounds and its labels depend on."""

    n_anchors: int | Literal["auto"]
    n_neighbors: int
    anchor_method: str
    fusion_weight: float | Literal["auto"]
    graph_smoothing: float | Literal["auto"]
    low_rank_weight: float
    label_strength: float
    propagation_damping: Damping
    final_damping: Damping | None
    class_prior: ClassPrior
    normalize: str | None
    view_sizes: Sequence[int] | None
    max_iter: int
    tol: float
    ablation: str | Sequence[str] | None
    compat: str | None
    dtype: str
    random_state: Seed
