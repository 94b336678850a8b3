"""Nearest rows of fit of new rows, in several representations: proposed in the pivot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from viewmend.backend import numba_neighbours
from viewmend.backend.threads import parallel_map
from viewmend.core.graphs.cells import fineness
from viewmend.core.graphs.exact import Neighbours
from viewmend.core.graphs.points import nearest_in_cells
from viewmend.core.graphs.proposals import Pivot

# Rows of fit in a representation: ``mapped(name, rows)`` is (n_rows, n_features_r).
Mapped = Callable[[str, np.ndarray | slice], np.ndarray]

# Cells whose rows are compared, and how many of these are proposed: fewer than for the rows of fit.
# Of 5000 new samples of MNIST, three got another class than with exact neighbours, and as with
# four times as many.
PROBES = 8
PROPOSALS = 24
# New rows that are compared at once: those of nearby cells, which share most of their proposals.
BLOCK_ROWS = 512
# Entries of the rows of fit in a representation that are held at once (256 MiB of float32).
MOST_ENTRIES = 2**26


def search_new(
    new: Mapping[str, np.ndarray], k: int, pivot: Pivot, mapped: Mapped
) -> dict[str, Neighbours]:
    """The ``k`` nearest rows of fit of the new rows in each representation, nearly all of them."""
    Q = pivot.projection(new[pivot.name])
    found = nearest_in_cells(
        Q, pivot.rows, pivot.cells, PROBES * fineness(len(pivot.rows)), max(PROPOSALS, k)
    )
    proposals = pivot.cells.order[found]
    # New rows whose nearest row is in the same cell mostly share their other proposals too.
    order = np.argsort(found[:, 0], kind="stable")
    blocks = [order[i : i + BLOCK_ROWS] for i in range(0, len(order), BLOCK_ROWS)]
    results = {name: _nothing(len(Q), k) for name in new}

    for name, Q in new.items():
        measure = _measuring(name, mapped, pivot, Q)

        def work(
            rows: np.ndarray, name: str = name, Q: np.ndarray = Q, measure: Measure = measure
        ) -> None:
            nearest = measure(Q[rows], proposals[rows], k)
            results[name].indices[rows] = nearest.indices
            results[name].squared_distances[rows] = nearest.squared_distances

        parallel_map(work, blocks)
    return results


# The ``k`` nearest of candidates (n_queries, n_candidates), rows of fit, for each query.
Measure = Callable[[np.ndarray, np.ndarray, int], Neighbours]


def _measuring(name: str, mapped: Mapped, pivot: Pivot, Q: np.ndarray) -> Measure:
    """What measures rows of fit in a representation: some at a time, or all of them, made once.

    All of them where new rows are so many that most would be made more than once, and there is
    room. The pivot has those of its own representation, unless it is a projection.
    """
    n_fit = len(pivot.rows)
    if name == pivot.name and pivot.projection.linear is None:
        return partial(_measure, pivot.given_rows())
    if len(Q) * PROPOSALS < n_fit or n_fit * Q.shape[1] > MOST_ENTRIES:
        return partial(_measure_some, partial(mapped, name))
    return partial(_measure, mapped(name, slice(None)))


def _measure(X: np.ndarray, Q: np.ndarray, candidates: np.ndarray, k: int) -> Neighbours:
    near = _nothing(len(Q), k)
    numba_neighbours.measure_candidates(Q, X, candidates, near.squared_distances, near.indices)
    return near


def _measure_some(
    rows_of: Callable[[np.ndarray], np.ndarray], Q: np.ndarray, candidates: np.ndarray, k: int
) -> Neighbours:
    """The same, with rows that are mapped for this alone."""
    rows, places = np.unique(candidates, return_inverse=True)
    near = _measure(rows_of(rows), Q, places.reshape(candidates.shape).astype(np.int32), k)
    return Neighbours(rows[near.indices].astype(np.int32), near.squared_distances)


def _nothing(n_rows: int, k: int) -> Neighbours:
    return Neighbours(np.empty((n_rows, k), dtype=np.int32), np.empty((n_rows, k)))
