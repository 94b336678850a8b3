"""What a model file can hold: the classes of models, their data classes, functions and fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from viewmend.core.advice.set_levels import SetLevels
from viewmend.core.agfti.induction import Induction
from viewmend.core.agfti.state import InnerStep, Round
from viewmend.core.common.calibration import Calibration
from viewmend.core.mend.components import SparseComponents
from viewmend.core.mend.geometry import NeighbourRule
from viewmend.core.mend.homophily import homophily_weights
from viewmend.core.mend.induction import (
    FittedEvidence,
    FittedView,
    MendInduction,
    ViewRegression,
)
from viewmend.core.mend.label_reading import ViewReading
from viewmend.core.mend.representations import Representation
from viewmend.core.mend.stage import MendSettings, StageRecord
from viewmend.core.mend.view_gaussian import ViewGaussian
from viewmend.data.categories import Categories
from viewmend.data.cells import CellFill
from viewmend.data.origin import Origin
from viewmend.models.agfti import AGFTIClassifier
from viewmend.models.base import TwoStepClassifier
from viewmend.models.fitted_state import AGFTIState, MendState
from viewmend.models.mend import MendClassifier
from viewmend.storage.tree import Vocabulary

VOCABULARY = Vocabulary(
    records=(
        AGFTIState,
        Calibration,
        Categories,
        CellFill,
        FittedEvidence,
        FittedView,
        Induction,
        InnerStep,
        MendInduction,
        MendSettings,
        MendState,
        NeighbourRule,
        Origin,
        Representation,
        Round,
        SetLevels,
        SparseComponents,
        StageRecord,
        ViewGaussian,
        ViewReading,
        ViewRegression,
    ),
    functions=(homophily_weights,),
)


@dataclass(frozen=True)
class FileLayout:
    """A class of models, and the types of its fitted attributes, some of which may be absent."""

    model: type[TwoStepClassifier]
    fitted: Mapping[str, Any]
    optional: frozenset[str] = frozenset({"sample_ids_", "view_feature_names_"})


_COMMON: dict[str, Any] = {
    "classes_": np.ndarray,
    "view_names_": tuple[str, ...],
    "view_n_features_": tuple[int, ...],
    "view_feature_names_": dict[str, np.ndarray],
    "n_features_in_": int,
    "label_distributions_": np.ndarray,
    "confidence_": np.ndarray,
    "calibration_": Calibration,
    "decision_weights_": np.ndarray,
    "transduction_": np.ndarray,
    "sample_ids_": np.ndarray,
    "unreachable_": np.ndarray,
    "observed_": np.ndarray,
    "zero_row_evidence_": np.ndarray | None,
    "cell_fills_": tuple[CellFill, ...],
    "view_weights_": np.ndarray,
    "n_iter_": int,
    "status_": str,
}

LAYOUTS = {
    "AGFTIClassifier": FileLayout(
        AGFTIClassifier,
        {
            **_COMMON,
            "history_": tuple[Round, ...],
            "fused_graph_": np.ndarray,
            "view_graphs_": np.ndarray,
            "anchors_": tuple[np.ndarray, ...],
            "anchor_alignments_": np.ndarray,
            "fitted_state_": AGFTIState,
        },
    ),
    "MendClassifier": FileLayout(
        MendClassifier,
        {
            **_COMMON,
            "history_": tuple[StageRecord, ...],
            "class_prior_": np.ndarray,
            "label_noise_": float,
            "graph_": csr_array,
            "graph_weights_": dict[str, dict[str, float]],
            "off_graph_": np.ndarray,
            "fitted_state_": MendState,
        },
        optional=frozenset({"sample_ids_", "view_feature_names_", "view_weights_"}),
    ),
}
