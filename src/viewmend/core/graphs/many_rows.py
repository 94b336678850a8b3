"""The nearest of very many rows, as in `proposals`, with passes that are tried on a few rows first.

Most passes cost seconds. Rows that fill all their dimensions have neighbours that no search finds
without comparing most rows, and there a pass that finds little would be made again and again.
"""

from __future__ import annotations

import numpy as np

from viewmend.core.graphs.cells import Cells, cells_around_centres
from viewmend.core.graphs.lists import (
    SPARE,
    Lists,
    Surroundings,
    check_of,
    look_around,
    measure,
)
from viewmend.core.graphs.probes import propose_each
from viewmend.core.graphs.projections import Projection

# Cells that each row looks into, and how many of their rows are proposed.
PROBES = 24
PROPOSALS = 32
# Of a representation's own proposals, which must be nearer than what is known.
OWN_PROBES = 32
OWN_PROPOSALS = 24
OWN_COLUMNS = 64
# Shares of the true neighbours: enough, so few that a representation proposes itself, and by how
# much a look at the neighbours of neighbours must raise it.
ENOUGH, POOR, WORTH = 0.975, 0.9, 0.02
# Passes at most.
PASSES = 6


def propose_to_many(rows: np.ndarray, cells: Cells, k: int) -> np.ndarray:
    """Proposals (n_rows, n_proposals) of a pivot, whose rows are in the order of the cells."""
    return propose_each(rows, cells, PROBES, max(PROPOSALS, k + SPARE))


def nearest_lists_of_many(rows: np.ndarray, proposals: np.ndarray, k: int) -> Lists:
    """Of the rows (n_rows, n_features) of float32, the nearest that proposals lead to."""
    lists = Lists.empty(len(rows), k + SPARE)
    measure(rows, proposals, lists)
    check = check_of(rows, k)
    one_by_one = [slice(i, i + 1) for i in check.rows.tolist()]
    own = None
    for _ in range(PASSES):
        share = check.recall(lists)
        if share >= ENOUGH:
            break
        around = Surroundings.of(lists)
        after = check.recall(look_around(rows, proposals, lists, around, one_by_one))
        worth = after >= min(share + WORTH, ENOUGH)
        if worth and (own is not None or after >= POOR):
            lists = look_around(rows, proposals, lists, around)
        elif own is None:
            own = _own_proposals(rows, lists)
            measure(rows, own, lists)
            proposals = np.hstack([proposals, own])
        else:
            break
    return lists


def _own_proposals(rows: np.ndarray, lists: Lists) -> np.ndarray:
    """Proposals of a representation by itself, -1 for none: what may be nearer than its lists."""
    projection = Projection.of(rows, OWN_COLUMNS)
    points = projection(rows)
    cells = cells_around_centres(points)
    # No distance grows in a projection.
    limits = lists.distances[cells.order, -1] / np.float32(projection.scale**2)
    found = propose_each(points[cells.order], cells, OWN_PROBES, OWN_PROPOSALS, limits)
    proposals = np.empty_like(found)
    proposals[cells.order] = np.where(found < 0, -1, cells.order[found])
    return proposals
