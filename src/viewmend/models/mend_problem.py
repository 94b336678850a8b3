"""Translates the parameters of `MendClassifier` to the symbols of `viewmend.core.mend`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from scipy.sparse import issparse

from viewmend.backend.threads import taken_rows
from viewmend.backend.torch_nearest import BLOCK_PRODUCTS
from viewmend.core.mend.components import MOST
from viewmend.core.mend.geometry import GeometrySettings, NeighbourRule, ToDevice
from viewmend.core.mend.kernel_features import LARGE_PIECE, N_PARTS
from viewmend.core.mend.labelling import Labelling
from viewmend.core.mend.loo_ridge import RIDGES
from viewmend.core.mend.representations import REPRESENTATIONS
from viewmend.core.mend.stage import MendSettings
from viewmend.data.container import MultiViewData
from viewmend.data.input_arrays import some_of, view_title
from viewmend.data.labels import Labels, check_class_prior
from viewmend.exceptions import DataWarning, InvalidParameterError, InvalidViewsError
from viewmend.memory import check_memory
from viewmend.protocols import ClassPrior, Seed

# Parameters are taken as these where they are beyond: float32 tells no difference. Other graphs, or
# what guides edges, no longer count; the evidence decides alone; factors of edges overflow; labels
# travel as far as there are paths; a kernel takes all rows for equal, or all for unlike.
MOST_WEIGHT, MOST_POWER, MOST_LOG = 1e6, 1e4, 80.0
FARTHEST_SPREADING = 1 - 1e-5
KERNEL_WIDTHS = (1e-5, 1e4)

# Arrays with a number per sample and class that are there at once at the peak: of scores and labels
# in stages, of conjugate gradients, and of the evidence of every view. And how many matrices there
# are of the size of the covariance between all scores.
OF_CLASSES, OF_CLASSES_AND_VIEW, OF_COVARIANCES = 14, 2, 6

# What to do where the memory does not suffice.
SMALLER = "lower n_landmarks or n_neighbors, or set graph_samples"


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
    class_prior: ClassPrior
    label_noise: float | str
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
    edge_floor = min(float(parameters.edge_floor), MOST_WEIGHT)
    return MendSettings(
        neighbours=NeighbourRule(fewest=int(fewest), most=int(most)),
        spreading=min(float(parameters.spreading), FARTHEST_SPREADING),
        homophily_power=float(parameters.homophily_power),
        edge_floor=edge_floor,
        edge_power=min(float(parameters.edge_power), MOST_LOG / np.log1p(edge_floor)),
        n_rounds=parameters.n_rounds,
        consensus_weight=min(float(parameters.consensus_weight), MOST_WEIGHT),
        evidence_power=min(float(parameters.evidence_power), MOST_POWER),
    )


def make_geometry_settings(parameters: MendParameters) -> GeometrySettings:
    """What is computed of the samples before any label is looked at."""
    return GeometrySettings(
        representations=representation_names(parameters.representations),
        adapted=isinstance(parameters.representations, str),
        most_neighbours=int(np.max(parameters.n_neighbors)),
        n_landmarks=parameters.n_landmarks,
        kernel_width=float(np.clip(parameters.kernel_width, *KERNEL_WIDTHS)),
        seed=int(np.random.default_rng(parameters.random_state).integers(2**32)),
    )


def check_room(
    model: MendParameters,
    data: MultiViewData,
    graph: np.ndarray,
    settings: GeometrySettings,
    n_classes: int,
    device: str | None,
) -> None:
    """Refuse a fit that would fill the memory of the machine, or of the GPU that it is to run on.

    ``graph`` (n_graph,) are the samples of the graph.
    """
    need = memory_needed(data, graph, settings, n_classes)
    if device is not None:
        need += _block_buffers(data, settings)
    what = (
        f"for kernels of {data.observed.sum(axis=0).max()} samples at "
        f"{min(settings.n_landmarks, len(graph))} landmarks and "
        f"{min(settings.most_neighbours + 1, len(graph))} neighbours each, and {n_classes} classes"
    )
    check_memory(need, type(model).__name__, what, SMALLER, device)


def check_views_in_graph(data: MultiViewData, graph: np.ndarray) -> None:
    """Refuse samples of the graph, ``graph`` (n_graph,), of which none has some view.

    Then there is nothing that the rows of this view could be compared with.
    """
    for name, seen in zip(data.names, data.observed[graph].T, strict=True):
        if not seen.any():
            msg = (
                f"{view_title(name)} is missing from all {len(graph)} samples of the graph, of "
                f"which at least one must have it; raise graph_samples, which takes labelled "
                f"samples first, or leave the view out"
            )
            raise InvalidViewsError(msg)


def check_graph_samples(graph_samples: int | None, n_classes: int) -> None:
    """Refuse a graph of so few samples that some class would have no label in it."""
    if graph_samples is not None and graph_samples < n_classes:
        msg = (
            f"graph_samples must be at least the number of classes, {n_classes}, because each "
            f"needs a label in the graph, got {graph_samples}; raise graph_samples"
        )
        raise InvalidParameterError(msg)


def memory_needed(
    data: MultiViewData, graph: np.ndarray, settings: GeometrySettings, n_classes: int
) -> float:
    """Bytes that a fit takes at its peak, besides the views as they are given."""
    n_rows, n_graph = data.observed.sum(axis=0), data.observed[graph].sum(axis=0)
    width = np.array([MOST if issparse(X) else X.shape[1] for X in data.views], dtype=float)
    m = np.minimum(settings.n_landmarks, n_graph).astype(float)
    n_maps = len(settings.representations)
    n_edges = n_maps * np.minimum(settings.most_neighbours + 1, n_graph)
    # Kept of a row: itself, its features and leverages of float32; neighbours with their distances,
    # and as edges with weights and places.
    kept = 8 * width + 4 * (m + len(RIDGES)) + 24 * n_edges
    # While a view is worked on: rows in all representations, in one of them for the search; the
    # kernel of the rows; Gram matrices of float64 in as many parts as threads may fill.
    work = 4 * n_graph * ((n_maps + 1) * width + m) + 8 * (N_PARTS + 5) * m**2
    # Graphs, on a pattern with a place for every other edge: copies of it when it is found, and
    # when it is put into the order of the samples.
    graphs = 30 * np.sum(n_graph * n_edges)
    again = 0 if len(graph) == len(data.observed) else np.sum(8 * width * n_graph)
    # After the geometry: numbers of float32 by class, and covariances of float64 of all scores.
    n_views = len(data.views)
    by_class = 4 * (OF_CLASSES + OF_CLASSES_AND_VIEW * n_views) * n_classes * len(data.observed)
    stages = graphs + by_class + 8 * OF_COVARIANCES * (n_views * n_classes) ** 2
    return float(np.sum(n_rows * kept) + again + max(work.max(), stages))


def _block_buffers(data: MultiViewData, settings: GeometrySettings) -> float:
    """Bytes that PyTorch works on at a time; with NumPy they fit into the caches.

    Products of the search, and rows or their kernels in float64 with two steps between them.
    """
    n_rows = float(data.observed.sum(axis=0).max())
    width = max(settings.n_landmarks, *(X.shape[1] for X in data.views))
    return 4 * min(BLOCK_PRODUCTS, n_rows**2) + 3 * 8 * min(LARGE_PIECE, n_rows * width)


def tell_components(data: MultiViewData) -> None:
    """Warn about views whose components are used in place of their columns."""
    for name, view in zip(data.names, data.views, strict=True):
        if issparse(view):
            msg = (
                f"{view_title(name)} has {view.shape[1]} sparse columns; it is replaced by its "
                f"{MOST} leading components"
            )
            warnings.warn(msg, DataWarning, stacklevel=5)


def warn_of_untold(model: Any) -> None:
    """Warn about samples of a fit that no chain of samples and views joins to a label.

    Views that they have were compared with each other alone: what a fit says of them is a guess.
    """
    state, observed = model.fitted_state_, model.observed_
    if state.zero_rows is not None:
        observed = observed & ~state.zero_rows
    told = views_told_of(observed, state.label_codes >= 0)
    # Unreachable ones get no more than the class shares of the labels, with a warning of their own.
    untold = observed.any(axis=1) & ~observed[:, told].any(axis=1) & ~model.unreachable_
    if untold.any():
        names = some_of([view_title(name) for name in np.array(model.view_names_)[~told]])
        msg = (
            f"{untold.sum()} of {len(untold)} samples ({names}) share no view with a labelled "
            f"sample, directly or over other samples, so their classes are guesses, whatever their "
            f"probabilities; label some of them, or check that the views name their samples alike"
        )
        warnings.warn(msg, DataWarning, stacklevel=6)


def views_told_of(observed: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    """Views (n_views,) of bool of labelled samples, and of those with such a view, and so on.

    ``observed`` is (n_samples, n_views), ``labelled`` (n_samples,) of bool.
    """
    told = observed[labelled].any(axis=0)
    while not told.all():
        reached = observed[observed[:, told].any(axis=1)].any(axis=0)
        if (reached == told).all():
            break
        told = reached
    return np.asarray(told)


def representation_names(representations: str | Sequence[str]) -> tuple[str, ...]:
    """The names that are given; all there are for "all"."""
    return tuple(REPRESENTATIONS if isinstance(representations, str) else representations)


def seen_rows(data: MultiViewData, order: np.ndarray) -> tuple[Any, ...]:
    """The rows that every view has, of samples taken in another ``order`` (n_samples,)."""
    pairs = zip(data.views, data.observed.T, strict=True)
    return tuple(
        view[order[seen[order]]] if issparse(view) else taken_rows(view, order[seen[order]])
        for view, seen in pairs
    )


def make_labelling(
    parameters: MendParameters, labels: Labels, order: np.ndarray, to_device: ToDevice
) -> Labelling:
    """Labels and class shares of samples that are taken in another ``order`` (n_samples,)."""
    prior, doubt = known_prior(parameters.class_prior, labels), None
    if not isinstance(parameters.label_noise, str):
        doubt = possible_noise(parameters.label_noise, labels.n_classes)
    Y = to_device(labels.one_hot(np.float32)[order])
    if prior is None:
        return Labelling(Y, labels.shares(), trust=None, noise=doubt)
    return Labelling(Y, prior, noise=doubt)


def possible_noise(noise: float, n_classes: int) -> float:
    """The share of wrong labels, at most that of guesses: more would speak against their class."""
    guessed = 1 - 1 / n_classes
    if noise > guessed:
        msg = (
            f"label_noise must be at most {guessed:.3g}, the share of guesses that are wrong with "
            f"{n_classes} classes, got {noise}; pass a smaller share, or 'auto'"
        )
        raise InvalidParameterError(msg)
    return float(noise)


def known_prior(class_prior: ClassPrior, labels: Labels) -> np.ndarray | None:
    """Class shares (n_classes,) as they are given; None where they are to be learned."""
    auto = isinstance(class_prior, str) and class_prior == "auto"
    return check_class_prior(None if auto else class_prior, labels)
