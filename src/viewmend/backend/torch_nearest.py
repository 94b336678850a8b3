"""Nearest rows in PyTorch: fast on a GPU, right on any device.

Products of low precision propose a few more rows than wanted; differences in float32 decide among
these. No step waits for a number from the device, and nothing is added in an order that may change:
results are the same bits from run to run. Rows with few columns are searched in leaves, see
`viewmend.backend.torch_points`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from viewmend.backend.namespace import Array
from viewmend.backend.torch_candidates import (
    BLOCK_ENTRIES,
    TILE,
    Nearest,
    blocks,
    largest,
    measured,
    middle,
    no_neighbours,
    products_in,
    rounded_up,
    triton_nearest,
)
from viewmend.backend.torch_gpu import import_torch
from viewmend.backend.torch_points import nearest_points

__all__ = ["Nearest", "nearest_of_new", "nearest_points", "neighbour_search"]

# Proposals beyond k: four lose no neighbour in any view and representation of MNIST.
SPARE = 8
# Rows per neighbour wanted from which on products and the maxima of their tiles are one kernel,
# where there is Triton: with fewer, two neighbours share a tile too often.
FUSED_ROWS = 8000
# Columns up to which rows are searched as points: there, neighbours are so close together, compared
# with the whole, that products of ten bits cannot tell them apart.
POINT_COLUMNS = 16
# Products that are held at once (1 GiB of them).
BLOCK_PRODUCTS = 2**28
# A score below all others: padding.
LOWEST = -1e38


def neighbour_search(representations: Mapping[str, Array], k: int) -> dict[str, Nearest]:
    """The ``k`` nearest other rows in each representation (n_rows, n_features_r) of the same rows.

    ``k`` is lowered to the rows there are. Distances are exact. A neighbour is missed where
    rounding to ten bits hides it behind `SPARE` others; on a GPU, with `FUSED_ROWS` rows and more
    per neighbour, also where it shares a tile with a nearer one: one in a hundred at that size, one
    in a thousand with half a million rows.
    """
    return {name: _nearest_rows(X, k, None) for name, X in representations.items()}


def nearest_of_new(
    new: Mapping[str, Array], k: int, mapped: Callable[[str, slice], Array]
) -> dict[str, Nearest]:
    """The ``k`` nearest rows of fit in each representation (n_new, n_features_r) of new rows.

    ``mapped(name, rows)`` gives rows of fit in a representation: a GPU searches all of them in less
    time than it takes to measure enough proposals of another one.
    """
    return {name: _nearest_rows(mapped(name, slice(None)), k, Q) for name, Q in new.items()}


class _Proposer(Protocol):
    """What names the likely nearest rows of the queries of a slice, at most so many at once."""

    @property
    def n_at_once(self) -> int: ...

    def propose(self, part: slice, n_wanted: int) -> Array: ...


def _nearest_rows(X: Array, k: int, queries: Array | None) -> Nearest:
    """The ``k`` nearest rows of ``X`` for each query, or for each row of ``X`` without itself."""
    Q = X if queries is None else queries
    if X.shape[1] <= POINT_COLUMNS:
        return nearest_points(X, k, queries)
    available = X.shape[0] - (queries is None)
    k = min(k, available)
    if k < 1 or Q.shape[0] == 0:
        return no_neighbours(Q, k)
    indices, distances = no_neighbours(Q, k)
    proposer = _proposer(X, k, queries)
    with products_in("tf32"):
        for part in blocks(Q.shape[0], proposer.n_at_once):
            candidates = proposer.propose(part, min(k + SPARE, available))
            indices[part], distances[part] = measured(Q[part], X, candidates, k)
    return indices, distances


def _proposer(X: Array, k: int, queries: Array | None) -> _Proposer:
    fused = triton_nearest() if X.is_cuda and X.shape[0] >= FUSED_ROWS * k else None
    return fused.TileMaxima.of(X, middle(X), queries) if fused else _Products.of(X, queries)


@dataclass(frozen=True)
class _Products:
    """Scores ``q^T x - |x|^2 / 2`` as one product: the last columns of the rows hold the norms.

    ``rows`` (n_tiles * TILE, n_columns) are those of ``X`` less ``centre``, and padding, all with
    as many bits as products keep, so that scores are distances between rounded rows. Their columns
    from ``n_features`` on are three parts of ``-|x|^2 / 2``. ``queries`` are None where they are
    the rows.
    """

    rows: Array
    centre: Array
    n_features: int
    queries: Array | None

    @classmethod
    def of(cls, X: Array, queries: Array | None) -> _Products:
        torch = import_torch()
        n_rows, n_features = X.shape
        # Rows of 32 bytes, because products are slow otherwise.
        shape = (rounded_up(n_rows, TILE), rounded_up(n_features + 3, 8))
        rows = torch.zeros(shape, dtype=torch.float32, device=X.device)
        centre = middle(X)
        left = torch.full((shape[0],), LOWEST, dtype=torch.float32, device=X.device)
        for part in blocks(n_rows, BLOCK_ENTRIES // n_features):
            rows[part, :n_features] = _in_ten_bits((X[part] - centre).float())
            left[part] = -0.5 * rows[part].square().sum(1)
        for column in range(n_features, n_features + 3):
            rows[:, column] = _in_ten_bits(left)
            left = left - rows[:, column]
        return cls(rows, centre, n_features, queries)

    @property
    def n_at_once(self) -> int:
        return max(BLOCK_PRODUCTS // self.rows.shape[0], 1)

    def propose(self, part: slice, n_wanted: int) -> Array:
        """Rows (n_part, n_wanted) of ``X``, for the queries of a slice."""
        return largest(self._scores(part), n_wanted)

    def _scores(self, part: slice) -> Array:
        given, n_features = self.queries, self.n_features
        if given is None:
            Q = self.rows[part].clone()
        else:
            Q = self.rows.new_zeros((part.stop - part.start, self.rows.shape[1]))
            Q[:, :n_features] = _in_ten_bits((given[part] - self.centre).float())
        Q[:, n_features : n_features + 3] = 1
        scores = Q @ self.rows.mT
        if given is None:
            scores[:, part].diagonal().fill_(-math.inf)
        return scores


def _in_ten_bits(A: Array) -> Array:
    """The nearest numbers of float32 that products in "tf32" do not round."""
    int32 = import_torch().int32
    return ((A.view(int32) + 0x1000) & ~0x1FFF).view(A.dtype)
