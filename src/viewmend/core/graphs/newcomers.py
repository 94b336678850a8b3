"""Nearest rows of fit of new rows, in several representations: proposed in the pivot."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from viewmend.backend import numba_neighbours
from viewmend.backend.threads import parallel_map
from viewmend.core.graphs.exact import Neighbours
from viewmend.core.graphs.points import nearest_in_cells
from viewmend.core.graphs.proposals import PROBES, PROPOSALS, SPARE, Pivot

# Rows of fit in a representation: ``mapped(name, rows)`` is (n_rows, n_features_r).
Mapped = Callable[[str, np.ndarray], np.ndarray]

# The nearest of the proposals whose own neighbours are looked at too.
STEPS_FROM = 8
# How often; the last time, all that was found is measured once more.
STEPS = 2
# New rows that are compared at once: those of nearby cells, which share most of their proposals.
BLOCK_ROWS = 512


def search_new(
    new: Mapping[str, np.ndarray],
    k: int,
    pivot: Pivot,
    mapped: Mapped,
    known: Mapping[str, np.ndarray],
) -> dict[str, Neighbours]:
    """The ``k`` nearest rows of fit of the new rows in each representation, nearly all of them.

    ``known`` are the neighbours (n_fit, n_known) of the rows of fit by representation, as far as
    they are known: neighbours of the nearest proposals are measured too.
    """
    Q = pivot.projection(new[pivot.name])
    found = nearest_in_cells(Q, pivot.rows, pivot.cells, PROBES, max(PROPOSALS, k))
    proposals = pivot.cells.order[found]
    # New rows whose nearest row is in the same cell mostly share their other proposals too.
    order = np.argsort(found[:, 0], kind="stable")
    blocks = [order[i : i + BLOCK_ROWS] for i in range(0, len(order), BLOCK_ROWS)]
    results = {name: _nothing(len(Q), k) for name in new}

    def work(job: tuple[str, np.ndarray]) -> None:
        name, rows = job
        Q, candidates = new[name][rows], proposals[rows]
        for _ in range(STEPS if name in known else 0):
            near = _measure(Q, name, candidates, k + SPARE, mapped).indices
            further = known[name][near[:, :STEPS_FROM]].reshape(len(rows), -1)
            candidates = np.hstack([near, further])
        nearest = _measure(Q, name, candidates, k, mapped)
        results[name].indices[rows] = nearest.indices
        results[name].squared_distances[rows] = nearest.squared_distances

    parallel_map(work, [(name, rows) for name in new for rows in blocks])
    return results


def _measure(
    Q: np.ndarray, name: str, candidates: np.ndarray, k: int, mapped: Mapped
) -> Neighbours:
    """The ``k`` nearest of the candidates, rows of fit that are mapped for this alone.

    Candidates (n_queries, n_candidates) may repeat.
    """
    rows, places = np.unique(candidates, return_inverse=True)
    places = np.sort(places.reshape(candidates.shape).astype(np.int32), axis=1)
    places[:, 1:][places[:, 1:] == places[:, :-1]] = -1
    near = _nothing(len(Q), k)
    numba_neighbours.measure_candidates(
        Q, mapped(name, rows), places, near.squared_distances, near.indices
    )
    return Neighbours(rows[near.indices].astype(np.int32), near.squared_distances)


def _nothing(n_rows: int, k: int) -> Neighbours:
    return Neighbours(np.empty((n_rows, k), dtype=np.int32), np.empty((n_rows, k)))
