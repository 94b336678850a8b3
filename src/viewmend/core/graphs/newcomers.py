"""Nearest rows of fit of new rows, in several representations: proposed in the pivot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from viewmend.backend import numba_neighbours
from viewmend.backend.threads import parallel_map
from viewmend.core.graphs.exact import Neighbours
from viewmend.core.graphs.points import nearest_in_cells
from viewmend.core.graphs.projections import blocks as row_blocks
from viewmend.core.graphs.proposals import SPARE, Pivot

# Rows of fit in a representation: ``mapped(name, rows)`` is (n_rows, n_features_r).
Mapped = Callable[[str, np.ndarray], np.ndarray]

RowsOf = Callable[[np.ndarray], np.ndarray]

# Cells whose rows are compared, and how many of these are proposed: fewer than for the rows of fit.
# Of 5000 new samples of MNIST, three got another class than with exact neighbours, and as with
# four times as many.
PROBES = 8
PROPOSALS = 24
# The nearest of the proposals whose own neighbours are looked at too.
STEPS_FROM = 11
# How often; the last time, all that was found is measured once more.
STEPS = 3
# New rows that are compared at once: those of nearby cells, which share most of their proposals.
BLOCK_ROWS = 512
# Entries of the rows of fit in a representation that are held at once (256 MiB of float32).
MOST_ENTRIES = 2**26


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

    for name, Q in new.items():
        rows_of = _rows_of(name, mapped, pivot, Q)

        def work(
            rows: np.ndarray, name: str = name, Q: np.ndarray = Q, rows_of: RowsOf = rows_of
        ) -> None:
            candidates = proposals[rows]
            for _ in range(STEPS if name in known else 0):
                near = _measure(Q[rows], candidates, k + SPARE, rows_of).indices
                further = known[name][near[:, :STEPS_FROM]].reshape(len(rows), -1)
                candidates = np.hstack([near, further])
            nearest = _measure(Q[rows], candidates, k, rows_of)
            results[name].indices[rows] = nearest.indices
            results[name].squared_distances[rows] = nearest.squared_distances

        parallel_map(work, blocks)
    return results


def _rows_of(name: str, mapped: Mapped, pivot: Pivot, Q: np.ndarray) -> RowsOf:
    """What gives rows of fit in a representation: on demand, or from all of them, made once.

    All of them where new rows are so many that most would be made more than once, and there is
    room. The pivot has those of its own representation, unless it is a projection.
    """
    n_fit = len(pivot.rows)
    if name == pivot.name and pivot.projection.linear is None:
        return pivot.given_rows().__getitem__
    if len(Q) * PROPOSALS < n_fit or n_fit * Q.shape[1] > MOST_ENTRIES:
        return partial(mapped, name)
    parts = [np.arange(part.start, part.stop) for part in row_blocks(n_fit)]
    everything = np.concatenate(parallel_map(partial(mapped, name), parts))
    return everything.__getitem__


def _measure(Q: np.ndarray, candidates: np.ndarray, k: int, rows_of: RowsOf) -> Neighbours:
    """The ``k`` nearest of the candidates, rows of fit that are mapped for this alone.

    Candidates (n_queries, n_candidates) may repeat.
    """
    rows, places = np.unique(candidates, return_inverse=True)
    places = np.sort(places.reshape(candidates.shape).astype(np.int32), axis=1)
    places[:, 1:][places[:, 1:] == places[:, :-1]] = -1
    near = _nothing(len(Q), k)
    numba_neighbours.measure_candidates(
        Q, rows_of(rows), places, near.squared_distances, near.indices
    )
    return Neighbours(rows[near.indices].astype(np.int32), near.squared_distances)


def _nothing(n_rows: int, k: int) -> Neighbours:
    return Neighbours(np.empty((n_rows, k), dtype=np.int32), np.empty((n_rows, k)))
