"""What Mend computes from the views alone, before any label: neighbours and kernel features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from viewmend.backend.namespace import Array, array_namespace, to_numpy
from viewmend.core.common.content_order import bottom_rows
from viewmend.core.common.rows import Column, Rows, RowsInMemory
from viewmend.core.graphs.graph import GraphUnion, edges_of, union_of
from viewmend.core.graphs.nearest import (
    Neighbours,
    Pivot,
    make_pivot,
    nearest_of_new,
    neighbour_search,
)
from viewmend.core.mend.blocks import MendBlock, OutsideRows, ViewRows
from viewmend.core.mend.components import SparseComponents, as_dense_rows, fit_components
from viewmend.core.mend.kernel_features import KernelMap, kernel_features
from viewmend.core.mend.representations import (
    REPRESENTATIONS,
    Representation,
    component_rows,
    represent,
)

# Called as ``tell(name, done, total)`` when a part of the work begins.
Tell = Callable[[str, int, int | None], None]


# Copies an array to where the work is to be done.
ToDevice = Callable[[np.ndarray], Array]


def left_there(array: np.ndarray) -> Array:
    """For work in NumPy."""
    return array


# What is done for every view, in this order.
PARTS = ("representations", "neighbours", "kernel features")


def _tell_part(tell: Tell, v: int, n_views: int, part: str) -> None:
    """That a part of the work on view ``v`` begins, and how many are done of those of all."""
    done = len(PARTS) * v + PARTS.index(part)
    tell(f"{part} of view {v + 1} of {n_views}", done, len(PARTS) * n_views)


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


class ComparedRows:
    """Rows ``X`` (n_rows, n_features) that others are compared with, in some representations."""

    X: Array
    representations: Mapping[str, Representation]

    @cached_property
    def pivot(self) -> Pivot:
        """What finds the rows that may be near, made when it is first asked for."""
        return make_pivot(self.representations, self.X)

    def mapped(self, name: str, rows: Array) -> Array:
        """Some rows in a representation, made when they are asked for: all would fill memory."""
        return self.representations[name](self.X[rows])


@dataclass(frozen=True, eq=False)
class MendView(ComparedRows):
    """One view of the samples of the graph, as far as it is observed.

    Row ``i`` of ``X`` (n_observed, n_features) belongs to sample ``rows[i]``. Neighbours are
    searched among the rows of ``X``, in each representation. Of a sparse view, ``X`` has the
    ``components``. The ``landmarks`` (n_landmarks,) of the kernel are rows of ``X``.
    """

    X: Array
    rows: Array
    representations: Mapping[str, Representation]
    neighbours: Mapping[str, Neighbours]
    landmarks: Array
    kernel: KernelMap
    components: SparseComponents | None = None


@dataclass(frozen=True, eq=False)
class MendGeometry:
    """The views, and which sample of the graph has which: ``observed`` (n_samples, n_views).

    ``blocks`` is a column of `MendBlock` of all samples, those outside the graph among them; in
    memory it is one, which checkpoints keep.
    """

    views: tuple[MendView, ...]
    observed: Array
    blocks: MendBlock | Column


@dataclass(frozen=True, eq=False)
class RawBlock:
    """Some samples: the rows that every view has, (n_seen_v, n_features_v) each.

    ``observed`` (n_rows, n_views) tells of which samples these are, ``place`` is that of a
    `MendBlock`.
    """

    views: tuple[Array, ...]
    observed: Array
    place: Array | None = None


def build_geometry(
    views: Sequence[np.ndarray | csr_array],
    observed: np.ndarray,
    settings: GeometrySettings,
    to_device: ToDevice = left_there,
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
    # A missing row takes part in nothing: each view is reduced to the rows it has.
    given = [X_v[np.flatnonzero(seen)] for X_v, seen in zip(views, observed.T, strict=True)]
    components = [fit_components(X) if issparse(X) else None for X in given]
    seen = tuple(map(as_dense_rows, given, components))
    sample = RawBlock(seen, observed)
    on_device = RawBlock(tuple(map(to_device, seen)), to_device(observed))
    geometry = geometry_over(RowsInMemory(), on_device, (sample, on_device), settings, tell)
    pairs = zip(geometry.views, components, strict=True)
    return replace(geometry, views=tuple(replace(view, components=c) for view, c in pairs))


def geometry_over(
    rows: Rows,
    raw: Column,
    sample: tuple[RawBlock, RawBlock],
    settings: GeometrySettings,
    tell: Tell = _tell_nobody,
) -> MendGeometry:
    """The geometry of rows wherever they are, with the samples of ``sample`` in the graph.

    ``raw`` is a column of `RawBlock`. ``sample`` is one block twice: on the host, and where the
    graph is to be; where it is all samples, ``raw`` is its second.
    """
    _, there = sample
    views: list[MendView] = []
    features: list[Column] = []
    for v in range(len(there.views)):
        begin = partial(_tell_part, tell, v, len(there.views))
        view, column = _fitted_view(rows, raw, v, sample, settings, begin)
        views.append(view)
        features.append(column)
    shared = (tuple(views), settings.most_neighbours + 1)
    blocks = rows.map(made_block, raw, *features, shared=shared)
    return MendGeometry(tuple(views), there.observed, blocks)


def _fitted_view(
    rows: Rows,
    raw: Column,
    v: int,
    sample: tuple[RawBlock, RawBlock],
    settings: GeometrySettings,
    begin: Callable[[str], None],
) -> tuple[MendView, Column]:
    """What is made of view ``v``, and the column of the features of its rows."""
    given, X = (block.views[v] for block in sample)
    begin("representations")
    column = rows.map(rows_of_view, raw, shared=v)
    fitted = represent(rows, column, settings.representations, component_rows(given))
    mapped = _represented(fitted, X)
    begin("neighbours")
    near = neighbour_search(mapped, settings.most_neighbours + 1)
    begin("kernel features")
    chosen = bottom_rows(given, settings.n_landmarks, settings.seed)
    xp = array_namespace(X)
    landmarks = xp.asarray(chosen, device=X.device)
    points = {name: rows_r[landmarks] for name, rows_r in mapped.items()}
    if raw is sample[1]:
        # All rows are here, and so are their representations.
        kernel, features = kernel_features(rows, mapped, points, settings.kernel_width)
    else:
        make = partial(_represented, fitted)
        kernel, features = kernel_features(rows, column, points, settings.kernel_width, make)
    (among,) = np.nonzero(to_numpy(sample[0].observed)[:, v])
    samples = xp.asarray(among, device=X.device)
    return MendView(X, samples, fitted, near, landmarks, kernel), features


def _represented(fitted: Mapping[str, Representation], X: Array) -> dict[str, Array]:
    return {name: representation(X) for name, representation in fitted.items()}


# ------------------------------------------------------------------ tasks


def rows_of_view(block: RawBlock, v: int) -> Array:
    """The rows of view ``v``."""
    return block.views[v]


def made_block(block: RawBlock, *features_and_shared: Any) -> MendBlock:
    """What the recipe knows of the rows, from their features and neighbours."""
    *features, (views, k) = features_and_shared
    xp = array_namespace(block.observed)
    seen = [xp.nonzero(block.observed[:, v])[0] for v in range(len(views))]
    of_views = tuple(
        ViewRows(rows, each.Phi, each.leverages) for rows, each in zip(seen, features, strict=True)
    )
    if block.place is None:
        return MendBlock(block.observed, of_views)
    return MendBlock(block.observed, of_views, block.place, _outside(block, seen, views, k))


def _outside(
    block: RawBlock, seen: Sequence[Array], views: Sequence[MendView], k: int
) -> OutsideRows:
    """Neighbours in the graph of the rows that are not in it."""
    xp = array_namespace(block.observed)
    assert block.place is not None, "asked for where rows have a place or none"
    positions, near = [], []
    for X_v, rows, view in zip(block.views, seen, views, strict=True):
        outside = block.place[rows] < 0
        new = _represented(view.representations, X_v[outside])
        found = nearest_of_new(new, k, view.pivot, view.mapped)
        positions.append(rows[outside])
        near += [
            Neighbours(view.rows[found[name].indices], found[name].squared_distances)
            for name in view.representations
        ]
    return OutsideRows(xp.nonzero(block.place < 0)[0], tuple(positions), tuple(near))


def view_graphs(geometry: MendGeometry, ks: Sequence[int]) -> GraphUnion:
    """One graph per view and representation, in this order, with ``ks`` neighbours per view."""
    edges, rows = [], []
    for view, k in zip(geometry.views, ks, strict=True):
        edges += [edges_of(near, k) for near in view.neighbours.values()]
        rows += [view.rows] * len(view.neighbours)
    return union_of(edges, rows, geometry.observed.shape[0])
