"""Nearest rows in several representations at once: proposed in one, measured in all.

Rows that are alike in one representation are mostly alike in the others. So nearby rows are found
once, in a *pivot* of few columns, and only these are measured in a representation. How many of the
true neighbours this finds is measured on a few rows. Where it is too few, rows are proposed in the
representation itself, and neighbours of neighbours are looked at, until it is enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from viewmend.backend import numba_neighbours
from viewmend.backend.threads import parallel_map
from viewmend.core.graphs.cells import Cells, cells_around_centres, propose
from viewmend.core.graphs.exact import Neighbours
from viewmend.core.graphs.projections import Projection, blocks

# Columns of a pivot at most.
PIVOT_COLUMNS = 64
# Cells whose rows are compared, and how many of these are proposed.
PROBES = 32
PROPOSALS = 40
# Of a representation's own proposals, which add to those of the pivot.
OWN_PROBES = 32
OWN_PROPOSALS = 30
# Neighbours beyond k that are kept until distances are exact.
SPARE = 3
# Shares of the true neighbours: enough, and so few that a representation proposes itself.
ENOUGH, POOR = 0.975, 0.9
# Neighbours of a row that one looks over from it, and rows that it is a neighbour of.
STEPS, STEPS_BACK = 8, 8
# Passes at most, each of own proposals or of neighbours of neighbours; those of the second kind,
# after which the first is tried, whatever the share.
PASSES, PATIENCE = 5, 2
# Rows whose true neighbours are found to measure that share, by comparing them with all rows.
CHECKED = 128
CHECKED_AT_ONCE = 32
# Distances that differ by less, relatively, are the same in float32.
ROUNDING = 1e-5


@dataclass(frozen=True, eq=False)
class Pivot:
    """Rows in few columns, in cells: where the search for neighbours begins.

    Attributes
    ----------
    name : str
        The representation that it is made of.
    projection : Projection
        From this representation to few columns.
    rows : array (n_rows, n_columns) of float32
        In the order of the cells.
    cells : Cells
    """

    name: str
    projection: Projection
    rows: np.ndarray
    cells: Cells


@dataclass(frozen=True, eq=False)
class _Lists:
    """Nearest rows found so far: squared ``distances`` of float32, ``indices``, what is fresh."""

    distances: np.ndarray
    indices: np.ndarray
    fresh: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.distances, self.indices, self.fresh

    @classmethod
    def empty(cls, n_rows: int, k: int) -> _Lists:
        shape = (n_rows, k)
        return cls(
            np.full(shape, np.inf, dtype=np.float32),
            np.full(shape, -1, dtype=np.int32),
            np.zeros(shape, dtype=np.uint8),
        )


def prepare_pivot(representations: Mapping[str, np.ndarray]) -> Pivot:
    """The narrowest representation (n_rows, n_features_r), projected where it is wide."""
    name = min(representations, key=lambda each: representations[each].shape[1])
    projection = Projection.of(representations[name], PIVOT_COLUMNS)
    rows = projection(representations[name])
    cells = cells_around_centres(rows)
    return Pivot(name, projection, rows[cells.order], cells)


def search_from(
    pivot: Pivot, representations: Mapping[str, np.ndarray], k: int
) -> dict[str, Neighbours]:
    """The ``k`` nearest other rows in each representation, nearly all of them.

    What is found in one representation is proposed in the next ones.
    """
    order = pivot.cells.order
    proposals = propose(pivot.rows, pivot.cells, PROBES, max(PROPOSALS, k + SPARE))
    found = {}
    # The pivot's own representation needs the least work, and goes first.
    for name in sorted(representations, key=lambda each: each != pivot.name):
        X = representations[name]
        rows = Projection.of(X, X.shape[1])(X, order)
        near = _nearest_lists(rows, proposals, k).indices
        found[name] = _in_order(X, order, near, k)
        proposals = np.hstack([proposals, near[:, :k]])
    return {name: found[name] for name in representations}


def _nearest_lists(rows: np.ndarray, proposals: np.ndarray, k: int) -> _Lists:
    """Of the rows (n_rows, n_features) of float32, the nearest that proposals lead to."""
    lists = _Lists.empty(len(rows), min(k + SPARE, len(rows) - 1))
    _measure(rows, proposals, lists)
    checked, borders = _true_borders(rows, k)
    own = None
    for n_passes in range(PASSES):
        share = _recall(lists, checked, borders, k)
        if share >= ENOUGH:
            break
        if own is None and (share < POOR or n_passes == PATIENCE):
            own = _own_proposals(rows)
            _measure(rows, own, lists)
            proposals = np.hstack([proposals, own])
        else:
            lists = _look_around(rows, proposals, lists)
    return lists


def _measure(rows: np.ndarray, proposals: np.ndarray, lists: _Lists) -> None:
    """Merge proposals (n_rows, n_proposals) into the lists."""

    def work(part: slice) -> None:
        ends = (part.start, part.stop)
        numba_neighbours.measure_proposals(ends, rows, proposals, lists.arrays)

    parallel_map(work, blocks(len(rows)))


def _look_around(rows: np.ndarray, known: np.ndarray, lists: _Lists) -> _Lists:
    """The lists after a look at the neighbours of neighbours, in either direction.

    Every row reads the lists as they were, so that the order of rows does not matter.
    """
    own, own_fresh = lists.indices[:, :STEPS], lists.fresh[:, :STEPS]
    back, back_fresh = numba_neighbours.fill_reverse(own, own_fresh, STEPS_BACK)
    near, near_fresh = np.hstack([own, back]), np.hstack([own_fresh, back_fresh])
    better = _Lists(*(array.copy() for array in lists.arrays))

    def work(part: slice) -> None:
        ends = (part.start, part.stop)
        numba_neighbours.look_around(ends, rows, known, near, near_fresh, better.arrays)

    parallel_map(work, blocks(len(rows)))
    return better


def _own_proposals(rows: np.ndarray) -> np.ndarray:
    """Proposals (n_rows, n_proposals) of a representation by itself, projected where it is wide."""
    points = Projection.of(rows, PIVOT_COLUMNS)(rows)
    cells = cells_around_centres(points)
    found = propose(points[cells.order], cells, OWN_PROBES, OWN_PROPOSALS)
    proposals = np.empty_like(found)
    proposals[cells.order] = np.where(found < 0, -1, cells.order[found])
    return proposals


def _true_borders(rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Evenly spaced rows, and the squared distance (n_checked, 1) of their ``k``-th neighbours."""
    checked = np.arange(0, len(rows), max(len(rows) // CHECKED, 1), dtype=np.int32)[:CHECKED]
    norms = np.einsum("ij,ij->i", rows, rows)
    numbers = np.arange(len(rows), dtype=np.int32)

    def border(queries: np.ndarray) -> np.ndarray:
        scores = np.full((len(queries), k + SPARE), np.inf, dtype=np.float32)
        near = np.full(scores.shape, -1, dtype=np.int32)
        for part in blocks(len(rows)):
            products = rows[queries] @ rows[part].T
            numba_neighbours.keep_nearest(
                products, norms[part], numbers[part], queries, scores, near
            )
        gaps = ((rows[queries][:, None] - rows[near]) ** 2).sum(axis=2)
        return np.sort(gaps, axis=1)[:, k - 1 : k]

    parts = np.split(checked, range(CHECKED_AT_ONCE, len(checked), CHECKED_AT_ONCE))
    return checked, np.concatenate(parallel_map(border, parts))


def _recall(lists: _Lists, checked: np.ndarray, borders: np.ndarray, k: int) -> float:
    """Share of the ``k`` neighbours of the checked rows that are as near as the true ones."""
    return float(np.mean(lists.distances[checked, :k] <= borders * (1 + ROUNDING)))


def _in_order(X: np.ndarray, order: np.ndarray, near: np.ndarray, k: int) -> Neighbours:
    """The ``k`` nearest of each list with float64 distances, for the rows in their own order."""
    distances = np.empty((len(X), k))
    indices = np.empty(distances.shape, dtype=np.int32)
    X = np.ascontiguousarray(X)

    def work(part: slice) -> None:
        ends = (part.start, part.stop)
        numba_neighbours.order_exactly(ends, X, order, near, distances, indices)

    parallel_map(work, blocks(len(X)))
    return Neighbours(indices, distances)
