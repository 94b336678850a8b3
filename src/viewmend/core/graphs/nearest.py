"""Nearest rows: in all representations of a view, of points, of new rows.

Few rows are searched exactly. Of many, a few neighbours in a hundred are missed, in time that grows
hardly faster than their number; more where rows fill many dimensions. Distances are exact for what
is found, and the result is the same whatever the number of threads.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from viewmend.backend.namespace import Array, array_namespace, is_torch
from viewmend.core.graphs.cells import Cells
from viewmend.core.graphs.exact import Neighbours as Neighbours
from viewmend.core.graphs.exact import nearest_rows as nearest_rows
from viewmend.core.graphs.newcomers import search_new
from viewmend.core.graphs.points import point_cells, search_among_points, search_points
from viewmend.core.graphs.proposals import Pivot as Pivot
from viewmend.core.graphs.proposals import prepare_pivot as prepare_pivot
from viewmend.core.graphs.proposals import search_from

# Rows up to which all are compared with all.
EXACT_UP_TO = 5_000
# Neighbours of which there must be this many times as many rows, for cells to be of use.
ROWS_PER_NEIGHBOUR = 50


def neighbour_search(
    representations: Mapping[str, Array], k: int, pivot: Pivot | None = None
) -> dict[str, Neighbours]:
    """The ``k`` nearest other rows in each representation (n_rows, n_features_r) of the same rows.

    Exact with few rows. Otherwise nearby rows are proposed in ``pivot``, which is prepared if it is
    not given, and measured in every representation; about two neighbours in a hundred are missed,
    more where rows fill many dimensions.
    ``k`` is lowered to the rows there are.
    """
    X = next(iter(representations.values()))
    if is_torch(array_namespace(X)):
        found = _torch_kernels().neighbour_search(representations, k)
        return {name: Neighbours(*near) for name, near in found.items()}
    if _are_few(len(X), k):
        return {name: nearest_rows(X, k) for name, X in representations.items()}
    return search_from(pivot or prepare_pivot(representations), representations, k)


def nearest_points(points: Array, k: int, queries: Array | None = None) -> Neighbours:
    """The ``k`` nearest of ``points`` (n_points, n_columns) for each query, with few columns.

    Without ``queries`` (n_queries, n_columns) these are the points themselves, none of which is its
    own neighbour. Exact with few points; otherwise two or three neighbours in a hundred are missed,
    and on a GPU one in ten thousand, about.
    """
    if is_torch(array_namespace(points)):
        return Neighbours(*_torch_kernels().nearest_points(points, k, queries))
    if _are_few(len(points), k):
        return nearest_rows(points, k, queries=queries)
    if queries is None:
        return search_points(points, k)
    return search_among_points(points, k, queries, point_cells(points, k))


@dataclass(frozen=True, eq=False)
class PointIndex:
    """Points (n_points, n_columns) that queries are looked up among again and again."""

    points: Array
    k: int

    @cached_property
    def _cells(self) -> Cells:
        return point_cells(self.points, self.k)

    def nearest(self, queries: Array) -> Neighbours:
        """As `nearest_points`, with the ``k`` of this index."""
        points, k = self.points, self.k
        if is_torch(array_namespace(points)) or _are_few(len(points), k):
            return nearest_points(points, k, queries)
        return search_among_points(points, k, queries, self._cells)


def nearest_of_new(
    new: Mapping[str, Array],
    k: int,
    pivot: Pivot | None,
    mapped: Callable[[str, Array | slice], Array],
) -> dict[str, Neighbours]:
    """The ``k`` nearest rows of fit in each representation (n_new, n_features_r) of new rows.

    Parameters
    ----------
    new : dict of str to array
    k : int
        Lowered to the rows there are.
    pivot : Pivot or None
        Of the rows of fit, as `prepare_pivot` makes it. None on a GPU, which searches all rows of
        each representation in less time than it takes to measure enough proposals of another.
    mapped : callable
        ``mapped(name, rows)`` gives rows of fit in a representation, (n_rows, n_features_r). It is
        called for some rows at a time, on several threads, or for all of them, which are a slice.

    Exact with few rows of fit. Of many, those are measured that are near in the pivot: what is near
    in another representation alone is missed. A new row has the same neighbours whatever the other
    new rows are.
    """
    if pivot is None:
        found = _torch_kernels().nearest_of_new(new, k, mapped)
        return {name: Neighbours(*near) for name, near in found.items()}
    n_fit = len(pivot.rows)
    if _are_few(n_fit, k):
        return {
            name: nearest_rows(mapped(name, slice(None)), k, queries=Q) for name, Q in new.items()
        }
    return search_new(new, k, pivot, mapped)


def recall(approximate: Neighbours, exact: Neighbours) -> float:
    """Share of the approximate neighbours that are no farther than the true ``k``-th one.

    Both are of the same queries and the same ``k``. Rows at equal distance count as equally good.
    """
    return float(np.mean(approximate.squared_distances <= exact.squared_distances[:, -1:]))


def _are_few(n_rows: int, k: int) -> bool:
    return n_rows <= max(EXACT_UP_TO, ROWS_PER_NEIGHBOUR * k)


def _torch_kernels() -> Any:
    """Kernels of the same names, which return pairs of indices and squared distances."""
    return importlib.import_module("viewmend.backend.torch_nearest")
