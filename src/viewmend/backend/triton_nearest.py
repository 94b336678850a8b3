"""Nearest rows on NVIDIA GPUs: the best row of every tile of products, and exact distances.

The products of half a million rows with each other would fill a terabyte. One kernel computes a
tile of them and writes only its maximum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
import triton
import triton.language as tl

from viewmend.backend.namespace import Array

__all__ = ["TileMaxima", "squared_distances"]

# Rows per tile, of which the best one is kept; its number within the tile takes seven bits.
TILE = 128
# Queries per program, with many columns and with few, for which more programs share a processor.
WIDE_QUERIES, NARROW_QUERIES, WIDE = 256, 128, 256
# Columns that are multiplied at once.
COLUMNS = 64
# Queries of one launch: their rows stay in the cache of the GPU.
AT_ONCE = 16_384
# Rows that are converted at once.
CONVERTED = 65_536
# Half a squared norm beyond all others: of padding. Scores stay above the least float.
FARTHEST = 1e38
LOWEST = tl.constexpr(-2e38)


@dataclass(frozen=True)
class _Halves:
    """Rows ``scales * rows`` with ``rows`` (n, n_columns) of float16 below one, and half of their
    squared norms: of the rounded rows, so that scores are distances between these.
    """

    rows: Array
    scales: Array
    norms: Array

    @classmethod
    def empty(cls, n_rows: int, n_features: int, device: torch.device) -> _Halves:
        n_columns = triton.cdiv(n_features, COLUMNS) * COLUMNS
        rows = torch.zeros((n_rows, n_columns), dtype=torch.float16, device=device)
        scales = torch.zeros(n_rows, dtype=torch.float32, device=device)
        return cls(rows, scales, torch.full_like(scales, FARTHEST))

    def fill(self, part: slice, X: Array) -> None:
        """Convert rows ``X`` (n_part, n_features), of any range, to those of the slice."""
        _, exponents = torch.frexp(torch.amax(X.abs(), 1))
        scales = torch.ldexp(torch.ones_like(X[:, 0]), exponents)
        rows = (X / scales[:, None]).half()
        self.rows[part, : X.shape[1]] = rows
        self.scales[part] = scales
        self.norms[part] = 0.5 * scales**2 * rows.float().square().sum(1)


@dataclass(frozen=True)
class TileMaxima:
    """The likely nearest rows: of every tile of rows in a shuffled order, only the best one.

    ``data`` are the rows in that order, ``order`` (n_rows,) their numbers. ``given`` are the
    queries, less ``centre`` as the rows are, and ``places`` those that they exclude, or None.
    """

    data: _Halves
    order: Array
    centre: Array
    given: Array
    places: Array | None

    @classmethod
    def of(cls, X: Array, centre: Array, queries: Array | None) -> TileMaxima:
        n_rows, n_features = X.shape
        order, places = _shuffled(n_rows, X.device)
        data = _Halves.empty(triton.cdiv(n_rows, TILE) * TILE, n_features, X.device)
        for start in range(0, n_rows, CONVERTED):
            part = slice(start, min(start + CONVERTED, n_rows))
            data.fill(part, X[order[part]] - centre)
        if queries is None:
            return cls(data, order, centre, X, places)
        return cls(data, order, centre, queries, None)

    @property
    def n_at_once(self) -> int:
        return AT_ONCE

    def propose(self, part: slice, n_wanted: int) -> Array:
        """Rows (n_part, n_wanted) of ``X``, for the queries of a slice."""
        best = self._maxima(part)[: part.stop - part.start]
        scores, tiles = torch.topk(best, n_wanted, 1, sorted=False)
        return self.order[tiles * TILE + (scores.view(torch.int32) & (TILE - 1))]

    def _maxima(self, part: slice) -> Array:
        """Largest score of each tile (n_queries, n_tiles), its last bits the row within the tile.

        Scores are halves of squared distances, negative.
        """
        (n_rows, n_columns), device = self.data.rows.shape, self.data.rows.device
        block = WIDE_QUERIES if n_columns > WIDE else NARROW_QUERIES
        Q = self.given[part]
        n_blocks, n_tiles = triton.cdiv(Q.shape[0], block), n_rows // TILE
        queries = _Halves.empty(n_blocks * block, Q.shape[1], device)
        queries.fill(slice(0, Q.shape[0]), Q - self.centre)
        places = torch.full((n_blocks * block,), -1, dtype=torch.int32, device=device)
        if self.places is not None:
            places[: Q.shape[0]] = self.places[part]
        # Queries side by side, as a program writes them.
        best = torch.empty((n_tiles, n_blocks * block), dtype=torch.float32, device=device)
        _best_of_tiles[(n_blocks * n_tiles,)](
            queries.rows, queries.scales, queries.norms, places,
            self.data.rows, self.data.scales, self.data.norms, best, n_blocks,
            K=n_columns, BLOCK=block, TILE=TILE, COLUMNS=COLUMNS,
            num_warps=8 if n_columns > WIDE else 4, num_stages=4 if n_columns > WIDE else 3,
        )  # fmt: skip
        return best.mT.contiguous()


@lru_cache(maxsize=3)
def _shuffled(n_rows: int, device: torch.device) -> tuple[Array, Array]:
    """Rows in an order drawn once and for all, and the place of each row in it.

    Neighbours that stand side by side, or at equal steps, would share a tile.
    """
    order = torch.randperm(n_rows, generator=torch.Generator().manual_seed(0))
    return order.to(device), torch.argsort(order).int().to(device)


def squared_distances(Q: Array, X: Array, candidates: Array) -> Array:
    """``|q_i - x_j|^2`` (n_queries, n_candidates) of float32, ``j`` the candidates of ``i``."""
    n_queries, n_candidates = candidates.shape
    squared = torch.empty((n_queries, n_candidates), dtype=torch.float32, device=X.device)
    some = min(triton.next_power_of_2(n_candidates), 32)
    columns = min(max(triton.next_power_of_2(X.shape[1]), 16), 128)
    _measure[(n_queries, triton.cdiv(n_candidates, some))](
        Q, X, candidates, squared, n_candidates,
        K=X.shape[1], SOME=some, COLUMNS=columns, num_warps=4,
    )  # fmt: skip
    return squared


@triton.jit
def _best_of_tiles(  # type: ignore[no-untyped-def]
    Q, q_scales, q_norms, places, X, x_scales, x_norms, best, n_blocks,
    K: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    # Programs that run together share a tile of rows; the queries of the launch are in the cache.
    tile = tl.program_id(0) // n_blocks
    i = (tl.program_id(0) % n_blocks) * BLOCK + tl.arange(0, BLOCK)
    within = tl.arange(0, TILE)
    j = tile * TILE + within
    column = tl.arange(0, COLUMNS)
    queries = Q + i[:, None].to(tl.int64) * K + column[None, :]
    rows = X + j[None, :].to(tl.int64) * K + column[:, None]
    products = tl.zeros((BLOCK, TILE), dtype=tl.float32)
    for start in range(0, K, COLUMNS):
        products = tl.dot(tl.load(queries + start), tl.load(rows + start), products)
    scores = products * tl.load(q_scales + i)[:, None] * tl.load(x_scales + j)[None, :]
    scores = scores - tl.load(q_norms + i)[:, None] - tl.load(x_norms + j)[None, :]
    scores = tl.where(tl.load(places + i)[:, None] == j[None, :], LOWEST, scores)
    # The last bits of a score say which row it is of; a maximum then finds both.
    bits = (scores.to(tl.int32, bitcast=True) & -TILE) | within[None, :]
    largest = tl.max(bits.to(tl.float32, bitcast=True), axis=1)
    tl.store(best + tile.to(tl.int64) * n_blocks * BLOCK + i, largest)


@triton.jit
def _measure(  # type: ignore[no-untyped-def]
    Q, X, candidates, squared, n_candidates,
    K: tl.constexpr, SOME: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * SOME + tl.arange(0, SOME)
    j = tl.load(candidates + i * n_candidates + c, mask=c < n_candidates, other=0)
    # Each column of the sums adds few terms, and these are then added in pairs.
    sums = tl.zeros((SOME, COLUMNS), dtype=tl.float32)
    for start in range(0, K, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        inside = column < K
        q = tl.load(Q + i * K + column, mask=inside, other=0.0)
        x = tl.load(X + j[:, None] * K + column[None, :], mask=inside[None, :], other=0.0)
        sums += (x - q[None, :]) * (x - q[None, :])
    tl.store(squared + i * n_candidates + c, tl.sum(sums, axis=1), mask=c < n_candidates)
