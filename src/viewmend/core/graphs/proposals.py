"""Nearest rows in several representations at once: proposed in one, measured in all.

Rows that are alike in one representation are mostly alike in the others. So nearby rows are found
once, in a *pivot* of few columns, and only these are measured in a representation. How many of the
true neighbours this finds is measured on a few rows. Where it is too few, rows are proposed in the
representation itself, and neighbours of neighbours are looked at, until it is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from viewmend.backend import numba_neighbours
from viewmend.backend.threads import parallel_map
from viewmend.core.graphs.cells import Cells, are_many, cells_around_centres, propose
from viewmend.core.graphs.exact import Neighbours
from viewmend.core.graphs.lists import (
    SPARE,
    Lists,
    Surroundings,
    check_of,
    look_around,
    measure,
)
from viewmend.core.graphs.many_rows import nearest_lists_of_many, propose_to_many
from viewmend.core.graphs.projections import Projection, blocks

# Columns of a pivot at most.
PIVOT_COLUMNS = 64
# Cells whose rows are compared, and how many of these are proposed.
PROBES = 32
PROPOSALS = 40
# Of a representation's own proposals, which add to those of the pivot.
OWN_PROBES = 32
OWN_PROPOSALS = 30
# Shares of the true neighbours: enough, and so few that a representation proposes itself.
ENOUGH, POOR = 0.975, 0.9
# Passes at most, each of own proposals or of neighbours of neighbours; those of the second kind,
# after which the first is tried, whatever the share.
PASSES, PATIENCE = 5, 2


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

    def given_rows(self) -> np.ndarray:
        """Rows of the representation up to rounding, in their own order, if not projected.

        Their bits are always the same, which those of products of some of the rows need not be.
        """
        given = np.empty_like(self.rows)
        given[self.cells.order] = self.rows * np.float32(self.projection.scale)
        given += self.projection.centre.astype(np.float32)
        return given


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
    way = FOR_MANY if are_many(len(order)) else FOR_OTHERS
    proposals = way.propose(pivot.rows, pivot.cells, k)
    found = {}
    # The pivot's own representation needs the least work, and goes first.
    for name in sorted(representations, key=lambda each: each != pivot.name):
        X = representations[name]
        rows = Projection.of(X, X.shape[1])(X, order)
        near = way.nearest_lists(rows, proposals, k).indices
        found[name] = _in_order(X, order, near, k)
        proposals = np.hstack([proposals, near[:, :k]])
    return {name: found[name] for name in representations}


def _nearest_lists(rows: np.ndarray, proposals: np.ndarray, k: int) -> Lists:
    """Of the rows (n_rows, n_features) of float32, the nearest that proposals lead to."""
    lists = Lists.empty(len(rows), min(k + SPARE, len(rows) - 1))
    measure(rows, proposals, lists)
    check = check_of(rows, k)
    own = None
    for n_passes in range(PASSES):
        share = check.recall(lists)
        if share >= ENOUGH:
            break
        if own is None and (share < POOR or n_passes == PATIENCE):
            own = _own_proposals(rows)
            measure(rows, own, lists)
            proposals = np.hstack([proposals, own])
        else:
            lists = look_around(rows, proposals, lists, Surroundings.of(lists))
    return lists


def _propose(rows: np.ndarray, cells: Cells, k: int) -> np.ndarray:
    """Proposals (n_rows, n_proposals) of a pivot, whose rows are in the order of the cells."""
    return propose(rows, cells, PROBES, max(PROPOSALS, k + SPARE))


@dataclass(frozen=True)
class _Way:
    """How rows are proposed in a pivot, and how lists of the nearest follow from proposals."""

    propose: Callable[[np.ndarray, Cells, int], np.ndarray]
    nearest_lists: Callable[[np.ndarray, np.ndarray, int], Lists]


FOR_OTHERS = _Way(_propose, _nearest_lists)
FOR_MANY = _Way(propose_to_many, nearest_lists_of_many)


def _own_proposals(rows: np.ndarray) -> np.ndarray:
    """Proposals (n_rows, n_proposals) of a representation by itself, projected where it is wide."""
    points = Projection.of(rows, PIVOT_COLUMNS)(rows)
    cells = cells_around_centres(points)
    found = propose(points[cells.order], cells, OWN_PROBES, OWN_PROPOSALS)
    proposals = np.empty_like(found)
    proposals[cells.order] = np.where(found < 0, -1, cells.order[found])
    return proposals


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
