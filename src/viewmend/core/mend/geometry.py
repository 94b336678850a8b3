"""What Mend computes from the views alone, before any label: neighbours and kernel features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, issparse

from viewmend.backend.threads import parallel_map
from viewmend.core.common.content_order import bottom_rows
from viewmend.core.graphs.nearest import Neighbours, neighbour_search
from viewmend.core.graphs.neighbours import graph_from_neighbours, scatter_graph
from viewmend.core.mend.components import SparseComponents, as_dense_rows, fit_components
from viewmend.core.mend.kernel_features import KernelFeatures, kernel_features
from viewmend.core.mend.representations import REPRESENTATIONS, Representation, represent

# Called as ``tell(name, done, total)`` when a part of the work begins.
Tell = Callable[[str, int, int | None], None]


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
    """One view, as far as it is observed.

    Row ``i`` of ``X`` (n_observed, n_features) belongs to sample ``rows[i]``. Neighbours are
    searched among the rows of ``X``, in each representation. Of a sparse view, ``X`` has the
    ``components``.
    """

    X: np.ndarray
    rows: np.ndarray
    representations: Mapping[str, Representation]
    neighbours: Mapping[str, Neighbours]
    features: KernelFeatures
    components: SparseComponents | None = None


@dataclass(frozen=True, eq=False)
class MendGeometry:
    """The views, and which sample has which: ``observed`` (n_samples, n_views) of bool."""

    views: tuple[MendView, ...]
    observed: np.ndarray


def build_geometry(
    views: Sequence[np.ndarray | csr_array],
    observed: np.ndarray,
    settings: GeometrySettings,
    tell: Tell = _tell_nobody,
) -> MendGeometry:
    """Representations, neighbours and kernel features of every view.

    Parameters
    ----------
    views : sequence of array (n_samples, n_features_v)
        Components stand for those that are sparse.
    observed : array (n_samples, n_views) of bool
    settings : GeometrySettings
    tell : callable, optional
        Called as ``tell(name, done, total)`` when a part of the work begins.
    """
    rows = [np.flatnonzero(column) for column in observed.T]
    # A missing row takes part in nothing: each view is reduced to the rows it has.
    given = [X_v[rows_v] for X_v, rows_v in zip(views, rows, strict=True)]
    components = parallel_map(lambda X: fit_components(X) if issparse(X) else None, given)
    seen = parallel_map(lambda pair: as_dense_rows(*pair), zip(given, components, strict=True))

    def fit(X: np.ndarray) -> dict[str, Representation]:
        return represent(X, settings.representations)

    def expand(v: int) -> KernelFeatures:
        landmarks = bottom_rows(seen[v], settings.n_landmarks, settings.seed)
        return kernel_features(mapped[v], landmarks, settings.kernel_width)

    tell("representations", 0, None)
    fitted = parallel_map(fit, seen)
    mapped = parallel_map(_apply, zip(fitted, seen, strict=True))
    near = _neighbours(mapped, settings.most_neighbours + 1, tell)
    tell("kernel features", 0, None)
    features = parallel_map(expand, range(len(seen)))
    parts = (seen, rows, fitted, near, features, components)
    return MendGeometry(tuple(map(MendView, *parts)), observed)


def _neighbours(
    mapped: Sequence[Mapping[str, np.ndarray]], k: int, tell: Tell
) -> list[dict[str, Neighbours]]:
    """The search in every representation of every view, one by one: it runs on all threads."""
    near: list[dict[str, Neighbours]] = [{} for _ in mapped]
    jobs = [(v, name) for v, mapped_v in enumerate(mapped) for name in mapped_v]
    for done, (v, name) in enumerate(jobs):
        tell(f"neighbours of view {v + 1} of {len(mapped)}", done, len(jobs))
        near[v] |= neighbour_search({name: mapped[v][name]}, k)
    return near


def _apply(
    fitted_and_rows: tuple[Mapping[str, Representation], np.ndarray],
) -> dict[str, np.ndarray]:
    fitted, X = fitted_and_rows
    return {name: representation(X) for name, representation in fitted.items()}


def view_graphs(geometry: MendGeometry, n_classes: int, rule: NeighbourRule) -> list[csr_array]:
    """One graph between all samples per view and representation, in this order."""
    n_samples = len(geometry.observed)
    return [
        scatter_graph(
            graph_from_neighbours(near, rule(len(view.rows), n_classes)), view.rows, n_samples
        )
        for view in geometry.views
        for near in view.neighbours.values()
    ]
