"""What Mend computes from the views alone, before any label: neighbours and kernel features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array, issparse

from viewmend.backend.namespace import Array, to_numpy
from viewmend.core.common.content_order import bottom_rows
from viewmend.core.common.rows import Column
from viewmend.core.graphs.graph import GraphUnion, edges_of, union_of
from viewmend.core.graphs.nearest import Neighbours, neighbour_search
from viewmend.core.mend.blocks import MendBlock, ViewRows
from viewmend.core.mend.components import SparseComponents, as_dense_rows, fit_components
from viewmend.core.mend.kernel_features import KernelMap, kernel_features
from viewmend.core.mend.loo_ridge import leverages_of
from viewmend.core.mend.representations import REPRESENTATIONS, Representation, represent

# Called as ``tell(name, done, total)`` when a part of the work begins.
Tell = Callable[[str, int, int | None], None]


# Copies an array to where the work is to be done.
ToDevice = Callable[[np.ndarray], Array]


def _left_there(array: np.ndarray) -> Array:
    """For work in NumPy."""
    return array


def _tell_nobody(_name: str, _done: int, _total: int | None) -> None:
    """Of work that nobody watches."""


@dataclass(frozen=True)
class NeighbourRule:
    """How many neighbours a sample gets: a share of the mean class size, within bounds.

    With few samples per class a fixed number would join most samples to other classes.
    """

    share: float = 0.5
    fewest: int = 3
    most: int = 10

    def __call__(self, n_rows: int, n_classes: int) -> int:
        # Python's own, because NumPy's integers have an end.
        return min(max(round(self.share * n_rows / n_classes), self.fewest), self.most)


@dataclass(frozen=True)
class GeometrySettings:
    """Attributes
    ----------
    representations : tuple of str
        Rows of `REPRESENTATIONS`.
    most_neighbours : int
        Largest number of neighbours that any graph will need.
    n_landmarks : int
        Of the kernel features, per view.
    kernel_width : float
        See `kernel_features`.
    seed : int
        Of the landmarks.
    """

    representations: tuple[str, ...] = tuple(REPRESENTATIONS)
    most_neighbours: int = 10
    n_landmarks: int = 1000
    kernel_width: float = 0.2
    seed: int = 0


@dataclass(frozen=True, eq=False)
class MendView:
    """One view of the samples of the graph, as far as it is observed.

    Row ``i`` of ``X`` (n_observed, n_features) belongs to sample ``rows[i]``. Neighbours are
    searched among the rows of ``X``, in each representation. Of a sparse view, ``X`` has the
    ``components``. The features of the kernel have the Gram matrix ``spectrum`` (n_features,).
    """

    X: Array
    rows: Array
    representations: Mapping[str, Representation]
    neighbours: Mapping[str, Neighbours]
    kernel: KernelMap
    spectrum: np.ndarray
    components: SparseComponents | None = None


@dataclass(frozen=True, eq=False)
class MendGeometry:
    """The views, and which sample of the graph has which: ``observed`` (n_samples, n_views).

    ``blocks`` is a column of `MendBlock` of all samples, those outside the graph among them.
    """

    views: tuple[MendView, ...]
    observed: Array
    blocks: Column


def build_geometry(
    views: Sequence[np.ndarray | csr_array],
    observed: np.ndarray,
    settings: GeometrySettings,
    to_device: ToDevice = _left_there,
    tell: Tell = _tell_nobody,
) -> MendGeometry:
    """Representations, neighbours and kernel features of every view, with all samples in the graph.

    Parameters
    ----------
    views : sequence of array (n_samples, n_features_v)
        Components stand for those that are sparse.
    observed : array (n_samples, n_views) of bool
    settings : GeometrySettings
    to_device : callable, optional
        Copies an array to where the work is to be done.
    tell : callable, optional
        Called as ``tell(name, done, total)`` when a part of the work begins.
    """
    seen: list[MendView] = []
    features: list[ViewRows] = []
    for v, X_v in enumerate(views):
        tell(f"neighbours and features of view {v + 1} of {len(views)}", v, len(views))
        # A missing row takes part in nothing: each view is reduced to the rows it has.
        rows = np.flatnonzero(observed[:, v])
        given = X_v[rows]
        components = fit_components(given) if issparse(given) else None
        X = to_device(as_dense_rows(given, components))
        view, view_rows = _fitted_view(X, to_device(rows), settings)
        seen.append(replace(view, components=components))
        features.append(view_rows)
    observed = to_device(observed)
    return MendGeometry(tuple(seen), observed, MendBlock(observed, tuple(features)))


def _fitted_view(X: Array, rows: Array, settings: GeometrySettings) -> tuple[MendView, ViewRows]:
    """All that is made of the rows ``X`` (n_observed, n_features) that a view has."""
    fitted = represent(X, settings.representations)
    mapped = {name: representation(X) for name, representation in fitted.items()}
    near = neighbour_search(mapped, settings.most_neighbours + 1)
    landmarks = bottom_rows(to_numpy(X), settings.n_landmarks, settings.seed)
    features = kernel_features(mapped, landmarks, settings.kernel_width)
    leverages = leverages_of(features.Phi, features.spectrum, X.shape[0])
    view = MendView(X, rows, fitted, near, features.map, features.spectrum)
    return view, ViewRows(rows, features.Phi, leverages)


def view_graphs(geometry: MendGeometry, n_classes: int, rule: NeighbourRule) -> GraphUnion:
    """One graph between the samples per view and representation, in this order."""
    edges, rows = [], []
    for view in geometry.views:
        k = rule(view.rows.shape[0], n_classes)
        edges += [edges_of(near, k) for near in view.neighbours.values()]
        rows += [view.rows] * len(view.neighbours)
    return union_of(edges, rows, geometry.observed.shape[0])
