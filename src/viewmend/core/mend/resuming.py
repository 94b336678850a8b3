"""What the geometry and the stages of Mend follow from, so that a checkpoint can keep them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array

from viewmend.core.graphs.graph import Graph
from viewmend.core.graphs.nearest import Neighbours
from viewmend.core.mend.blocks import MendBlock, ViewRows
from viewmend.core.mend.components import SparseComponents
from viewmend.core.mend.consistency import check_geometry, check_stage
from viewmend.core.mend.evidence import Evidence
from viewmend.core.mend.geometry import GeometrySettings, MendGeometry, MendView
from viewmend.core.mend.homophily import Guide
from viewmend.core.mend.kernel_features import KernelMap
from viewmend.core.mend.label_reading import LabelReading
from viewmend.core.mend.loo_ridge import RidgeFit
from viewmend.core.mend.representations import Representation
from viewmend.core.mend.share_trust import Trust
from viewmend.core.mend.stage import Consensus, MendProgress, Stage, StageRecord, SummedGraph
from viewmend.core.mend.view_gaussian import ViewGaussian


@dataclass(frozen=True, eq=False)
class GeometryProblem:
    """All that `build_geometry` is given."""

    views: tuple[np.ndarray | csr_array, ...]
    observed: np.ndarray
    settings: GeometrySettings

    saved_type: ClassVar = MendGeometry
    saved_records: ClassVar = (
        KernelMap,
        MendBlock,
        MendGeometry,
        MendView,
        Neighbours,
        Representation,
        SparseComponents,
        ViewRows,
    )
    given_by_user: ClassVar[Mapping[str, str]] = {
        "views": "the views",
        "observed": "which samples are missing from which views",
        "settings": "representations, n_neighbors, n_landmarks, kernel_width or random_state",
    }

    def check_saved(self, geometry: MendGeometry) -> None:
        """Raise a ModelFileError unless the parts of a geometry fit this problem."""
        check_geometry(geometry, len(self.observed), [X_v.shape[1] for X_v in self.views])


@dataclass(frozen=True, eq=False)
class MendProblem:
    """All that the stages of the recipe follow from, beside its settings.

    ``Y``, ``prior`` and ``trust`` are those of a `Labelling`.
    """

    geometry: MendGeometry
    Y: np.ndarray
    prior: np.ndarray
    trust: Trust | None

    saved_type: ClassVar = MendProgress
    saved_records: ClassVar = (
        Consensus,
        Evidence,
        Graph,
        Guide,
        LabelReading,
        MendProgress,
        Representation,
        RidgeFit,
        Stage,
        StageRecord,
        SummedGraph,
        ViewGaussian,
    )
    given_by_user: ClassVar[Mapping[str, str]] = {
        "geometry": "the views, which samples miss them, random_state or device",
        "Y": "the labels",
        "prior": "the class prior",
        "trust": "the class prior",
    }

    def check_saved(self, progress: MendProgress) -> None:
        """Raise a ModelFileError unless the last stage fits this problem."""
        check_stage(progress.state, self.geometry, *self.Y.shape)
