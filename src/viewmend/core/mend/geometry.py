"""What Mend computes from the views alone, before any label: neighbours and kernel features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.sparse import csr_array, issparse

from viewmend.backend.namespace import Array, array_namespace, is_numpy
from viewmend.core.common.content_order import bottom_rows
from viewmend.core.common.rows import Column, RowsInMemory
from viewmend.core.graphs.graph import GraphUnion, edges_of, union_of
from viewmend.core.graphs.nearest import (
    Neighbours,
    Pivot,
    neighbour_search,
    prepare_pivot,
)
from viewmend.core.mend.blocks import MendBlock, ViewRows
from viewmend.core.mend.components import SparseComponents, as_dense_rows, fit_components
from viewmend.core.mend.kernel_features import (
    KernelMap,
    KernelProducts,
    kernel_features,
    kernel_products,
)
from viewmend.core.mend.representations import (
    REPRESENTATIONS,
    Representation,
    component_rows,
    represent,
    rules_for,
)

# Called as ``tell(name, done, total)`` when a part of the work begins.
Tell = Callable[[str, int, int | None], None]


# Parts of the work on a view that are told of.
N_PARTS = 3

# Copies an array to where the work is to be done.
ToDevice = Callable[[np.ndarray], Array]


def left_there(array: np.ndarray) -> Array:
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
    adapted : bool
        Whether narrow views have rules of their own for these, as `rules_for` says.
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
    adapted: bool = True
    most_neighbours: int = 10
    n_landmarks: int = 1000
    kernel_width: float = 0.2
    seed: int = 0


class ComparedRows:
    """Rows ``X`` (n_rows, n_features) that others are compared with, in some representations."""

    X: Array
    representations: Mapping[str, Representation]

    @cached_property
    def pivot(self) -> Pivot | None:
        """What finds the rows that may be near, made when it is first asked for; None on a GPU."""
        if not is_numpy(array_namespace(self.X)):
            return None
        narrowest = min(self.representations, key=lambda name: self._width(name))
        return prepare_pivot({narrowest: self.representations[narrowest](self.X)})

    def _width(self, name: str) -> int:
        """Columns of a representation."""
        linear = self.representations[name].linear
        return int(linear.shape[1] if linear.ndim == 2 else self.X.shape[1])

    def mapped(self, name: str, rows: Array | slice) -> Array:
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

    ``blocks`` is a column of `MendBlock` of all samples, those outside the graph among them.
    """

    views: tuple[MendView, ...]
    observed: Array
    blocks: MendBlock | Column

    @property
    def raw(self) -> Column:
        """A column of `RawBlock` of all samples."""
        return RawBlock(tuple(view.X for view in self.views), self.observed)


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
    views : sequence of array (n_seen_v, n_features_v)
        The rows that every view has: a missing row takes part in nothing. Components stand for
        views that are sparse.
    observed : array (n_samples, n_views) of bool
    settings : GeometrySettings
    to_device : callable, optional
        Copies an array to where the work is to be done.
    tell : callable, optional
        Called as ``tell(name, done, total)`` when a part of the work begins.
    """
    made: list[Callable[[KernelMap], MendView]] = []
    products: list[KernelProducts] = []
    for v, X_v in enumerate(views):
        components = fit_components(X_v) if issparse(X_v) else None
        given, rows = as_dense_rows(X_v, components), to_device(np.flatnonzero(observed[:, v]))
        watch = partial(_tell_of_view, tell, v, len(views))
        view, of_rows = _compared_view(given, to_device(given), rows, settings, watch)
        made.append(partial(view, components=components))
        products.append(of_rows)
    of_views = kernel_features(RowsInMemory(), products)
    fitted, blocks = [], []
    for make, (kernel, features) in zip(made, of_views, strict=True):
        fitted.append(make(kernel))
        blocks.append(ViewRows(fitted[-1].rows, features.Phi, features.leverages))
    there = to_device(observed)
    return MendGeometry(tuple(fitted), there, MendBlock(there, tuple(blocks)))


def _tell_of_view(tell: Tell, v: int, n_views: int, part: int, name: str) -> None:
    tell(f"{name} of view {v + 1} of {n_views}", N_PARTS * v + part, N_PARTS * n_views)


def _compared_view(
    given: np.ndarray,
    X: Array,
    rows: Array,
    settings: GeometrySettings,
    tell: Callable[[int, str], None],
) -> tuple[Callable[..., MendView], KernelProducts]:
    """A view, whose rows are ``given`` on the host, for want of the map of its kernel alone."""
    memory, xp = RowsInMemory(), array_namespace(X)
    tell(0, "representations")
    sample = component_rows(given)
    rules = rules_for(memory, X, sample) if settings.adapted else REPRESENTATIONS
    fitted = represent(memory, X, settings.representations, sample, rules)
    # Of some that are the same, one is computed.
    same = {name: next(n for n, each in fitted.items() if each is r) for name, r in fitted.items()}
    distinct = {name: fitted[name](X) for name in dict.fromkeys(same.values())}
    mapped = {name: distinct[first] for name, first in same.items()}
    tell(1, "neighbours")
    found = neighbour_search(distinct, settings.most_neighbours + 1)
    near = {name: found[first] for name, first in same.items()}
    tell(2, "kernel features")
    chosen = bottom_rows(given, settings.n_landmarks, settings.seed)
    landmarks = xp.asarray(chosen, device=X.device)
    points = {name: mapped_r[landmarks] for name, mapped_r in mapped.items()}
    products = kernel_products(memory, mapped, points, settings.kernel_width)
    return partial(MendView, X, rows, fitted, near, landmarks), products


def view_graphs(geometry: MendGeometry, ks: Sequence[int]) -> GraphUnion:
    """One graph per view and representation, in this order, with ``ks`` neighbours per view."""
    edges, rows = [], []
    for view, k in zip(geometry.views, ks, strict=True):
        edges += [edges_of(near, k) for near in view.neighbours.values()]
        rows += [view.rows] * len(view.neighbours)
    return union_of(edges, rows, geometry.observed.shape[0])
