"""Lists of the nearest rows found so far: merged with proposals, checked, and improved.

Rows and lists are in an order in which rows near one another are mostly near in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from viewmend.backend import numba_neighbours
from viewmend.backend.threads import parallel_map
from viewmend.core.graphs.projections import blocks

# Neighbours beyond k that are kept until distances are exact.
SPARE = 3
# Neighbours of a row that one looks over from it, and rows that it is a neighbour of.
STEPS, STEPS_BACK = 8, 8
# Rows whose true neighbours are found to measure how many are missed, by comparing them with all
# rows.
CHECKED = 128
CHECKED_AT_ONCE = 32
# Distances that differ by less, relatively, are the same in float32.
ROUNDING = 1e-5


@dataclass(frozen=True, eq=False)
class Lists:
    """Nearest rows found so far: squared ``distances`` of float32, ``indices``, what is fresh."""

    distances: np.ndarray
    indices: np.ndarray
    fresh: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.distances, self.indices, self.fresh

    @classmethod
    def empty(cls, n_rows: int, k: int) -> Lists:
        shape = (n_rows, k)
        return cls(
            np.full(shape, np.inf, dtype=np.float32),
            np.full(shape, -1, dtype=np.int32),
            np.zeros(shape, dtype=np.uint8),
        )


@dataclass(frozen=True, eq=False)
class Check:
    """Some ``rows``, and the squared distances (n_checked, 1) of their true ``k``-th neighbours."""

    rows: np.ndarray
    borders: np.ndarray
    k: int

    def recall(self, lists: Lists) -> float:
        """Share of the ``k`` neighbours of the checked rows that are as near as the true ones."""
        limits = self.borders * (1 + ROUNDING)
        return float(np.mean(lists.distances[self.rows, : self.k] <= limits))


def measure(rows: np.ndarray, proposals: np.ndarray, lists: Lists) -> None:
    """Merge proposals (n_rows, n_proposals) into the lists."""

    def work(part: slice) -> None:
        ends = (part.start, part.stop)
        numba_neighbours.measure_proposals(ends, rows, proposals, lists.arrays)

    parallel_map(work, blocks(len(rows)))


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Neighbours of every row in either direction, (n_rows, n_near), and which are fresh."""

    near: np.ndarray
    fresh: np.ndarray

    @classmethod
    def of(cls, lists: Lists) -> Surroundings:
        own, own_fresh = lists.indices[:, :STEPS], lists.fresh[:, :STEPS]
        back, back_fresh = numba_neighbours.fill_reverse(own, own_fresh, STEPS_BACK)
        return cls(np.hstack([own, back]), np.hstack([own_fresh, back_fresh]))


def look_around(
    rows: np.ndarray,
    known: np.ndarray,
    lists: Lists,
    around: Surroundings,
    parts: Sequence[slice] | None = None,
) -> Lists:
    """The lists after a look at the neighbours of neighbours, of all rows or of some parts.

    Every row reads the lists as they were, so that the order of rows does not matter.
    """
    better = Lists(*(array.copy() for array in lists.arrays))

    def work(part: slice) -> None:
        ends = (part.start, part.stop)
        numba_neighbours.look_around(ends, rows, known, around.near, around.fresh, better.arrays)

    parallel_map(work, blocks(len(rows)) if parts is None else parts)
    return better


def check_of(rows: np.ndarray, k: int) -> Check:
    """Of evenly spaced rows, compared with all."""
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
    return Check(checked, np.concatenate(parallel_map(border, parts)), k)
