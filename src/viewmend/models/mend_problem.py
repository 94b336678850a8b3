"""The recipe of `viewmend.core.mend` from words to symbols."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from scipy.sparse import issparse

from viewmend.core.mend.components import MOST
from viewmend.core.mend.geometry import GeometrySettings, NeighbourRule, ToDevice
from viewmend.core.mend.labelling import Labelling
from viewmend.core.mend.representations import REPRESENTATIONS
from viewmend.core.mend.stage import MendSettings
from viewmend.data.container import MultiViewData
from viewmend.data.input_arrays import view_title
from viewmend.data.labels import Labels, check_class_prior
from viewmend.exceptions import DataWarning, InvalidParameterError
from viewmend.memory import check_memory
from viewmend.protocols import ClassPrior, Seed


class MendParameters(Protocol):
    """Parameters of `viewmend.MendClassifier` that its stages depend on."""

    representations: str | Sequence[str]
    n_neighbors: int | Sequence[int]
    spreading: float
    homophily_power: float
    edge_power: float
    edge_floor: float
    n_rounds: int
    n_landmarks: int
    kernel_width: float
    consensus_weight: float
    evidence_power: float
    random_state: Seed


def make_settings(parameters: MendParameters) -> MendSettings:
    """How labels are spread and what is learned from them."""
    fewest, most = np.broadcast_to(parameters.n_neighbors, 2)
    if fewest > most:
        msg = (
            f"n_neighbors must be a number or (fewest, most) in this order, got "
            f"{parameters.n_neighbors!r}; swap them"
        )
        raise InvalidParameterError(msg)
    return MendSettings(
        neighbours=NeighbourRule(fewest=int(fewest), most=int(most)),
        spreading=float(parameters.spreading),
        homophily_power=float(parameters.homophily_power),
        edge_floor=float(parameters.edge_floor),
        edge_power=float(parameters.edge_power),
        n_rounds=parameters.n_rounds,
        consensus_weight=float(parameters.consensus_weight),
        evidence_power=float(parameters.evidence_power),
    )


def make_geometry_settings(parameters: MendParameters) -> GeometrySettings:
    """What is computed of the samples before any label is looked at."""
    return GeometrySettings(
        representations=representation_names(parameters.representations),
        most_neighbours=int(np.max(parameters.n_neighbors)),
        n_landmarks=parameters.n_landmarks,
        kernel_width=float(parameters.kernel_width),
        seed=int(np.random.default_rng(parameters.random_state).integers(2**32)),
    )


def check_room(
    model: MendParameters, observed: np.ndarray, in_graph: np.ndarray, settings: GeometrySettings
) -> None:
    """Refuse a geometry whose kernels and neighbours would fill the memory.

    ``observed`` (n_samples, n_views) is of all samples, ``in_graph`` of those of the graph.
    """
    n_rows, n_graph = (each.sum(axis=0).astype(float) for each in (observed, in_graph))
    landmarks = np.minimum(settings.n_landmarks, n_graph)
    near = np.minimum(settings.most_neighbours + 2, n_graph)
    # Of float32 the kernel, the features and a step between them; of float64 matrices of landmarks.
    kernels = np.sum(4 * 3 * n_graph * landmarks + 8 * 4 * landmarks**2)
    # Outside the graph, the features, which are fewer, and a copy of them.
    kernels += np.sum(4 * (n_rows - n_graph) * landmarks)
    # An index of four bytes and a distance of eight, in every representation.
    neighbours = len(settings.representations) * np.sum(12 * n_rows * near)
    what = (
        f"for kernels of {n_rows.max():.0f} samples at {landmarks.max():.0f} landmarks and "
        f"{near.max():.0f} neighbours each"
    )
    needed, who = kernels + neighbours, type(model).__name__
    check_memory(needed, who, what, "lower n_landmarks or n_neighbors, or set graph_samples")


def tell_components(data: MultiViewData) -> None:
    """Say of which views the components are compared in the place of the columns."""
    for name, view in zip(data.names, data.views, strict=True):
        if issparse(view):
            msg = (
                f"{view_title(name)} has {view.shape[1]} sparse columns; its {MOST} leading "
                f"components stand for it"
            )
            warnings.warn(msg, DataWarning, stacklevel=5)


def representation_names(representations: str | Sequence[str]) -> tuple[str, ...]:
    """The names that are given; all there are for "all"."""
    return tuple(REPRESENTATIONS if isinstance(representations, str) else representations)


def seen_rows(data: MultiViewData, order: np.ndarray) -> tuple[Any, ...]:
    """The rows that every view has, of samples taken in another ``order`` (n_samples,)."""
    pairs = zip(data.views, data.observed.T, strict=True)
    return tuple(view[order[seen[order]]] for view, seen in pairs)


def make_labelling(
    class_prior: ClassPrior, labels: Labels, order: np.ndarray, to_device: ToDevice
) -> Labelling:
    """Labels and class shares of samples that are taken in another ``order`` (n_samples,)."""
    prior = known_prior(class_prior, labels)
    Y = to_device(labels.one_hot(np.float32)[order])
    return Labelling(Y, labels.shares(), trust=None) if prior is None else Labelling(Y, prior)


def known_prior(class_prior: ClassPrior, labels: Labels) -> np.ndarray | None:
    """Class shares (n_classes,) as they are given; None where they are to be learned."""
    auto = isinstance(class_prior, str) and class_prior == "auto"
    return check_class_prior(None if auto else class_prior, labels)
