"""Nearest rows in PyTorch: fast on a GPU, right on any device.

Products of low precision propose a few more rows than wanted; differences in float32 decide among
these. Rows with few columns, of which there may be a million, are cut into small leaves of equal
size, so that each leaf and the leaves around it are one product of a batch. No step waits for a
number from the device, and nothing is added in an order that may change: results are the same bits
from run to run.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from viewmend.backend.namespace import Array
from viewmend.backend.torch_gpu import import_torch

__all__ = ["nearest_of_new", "nearest_points", "neighbour_search"]

# Indices (n_queries, k) of int32 and squared distances (n_queries, k) of float32, nearest first;
# rows at equal distance by their number.
Nearest = tuple[Array, Array]

# Proposals beyond k: of those that products of ten bits rank near the k-th, none is missed.
SPARE = 16
# Rows above which products and the search within their tiles are one kernel, where there is Triton:
# with fewer, two neighbours share a tile too often.
FUSED_FROM = 100_000
# Queries of one launch of that kernel: their rows stay in the cache of the GPU.
FUSED_QUERIES = 16_384
# Rows of which the best is found first: `topk` is slow, a maximum costs one reading.
TILE = 64
# Rows, about, that the middle of all is read off.
MIDDLE_ROWS = 1024
# Columns up to which rows are searched as points: there, neighbours are so close together, compared
# with the whole, that products of ten bits cannot tell them apart.
POINT_COLUMNS = 16
# Entries that are held at once: products (1 GiB), and rows side by side (256 MiB).
BLOCK_PRODUCTS = 2**28
BLOCK_ENTRIES = 2**26
# A key behind all others: of no row.
LAST = 2**63 - 1
# A score below all others: padding.
LOWEST = -1e38

# Points up to which all pairs are measured.
FEW_POINTS = 2048
# Points per leaf, at most, and points of near leaves, about, that a point is compared with.
LEAF = 32
COMPARED = 1536
# Proposals among them beyond k: their scores are of float32.
SPARE_POINTS = 5
# Rounds of power iteration for the direction that a part is cut along; it need not be exact.
DIRECTION_ROUNDS = 4

# The precision of products is a setting of the process.
_SETTING = threading.RLock()


def neighbour_search(representations: Mapping[str, Array], k: int) -> dict[str, Nearest]:
    """The ``k`` nearest other rows in each representation (n_rows, n_features_r) of the same rows.

    ``k`` is lowered to the rows there are. Distances are exact; below `FUSED_FROM` rows a neighbour
    is missed where rounding of ten bits hides it behind `SPARE` others, above it also where it
    shares a tile with a nearer one: about one neighbour in a thousand.
    """
    return {name: _nearest_rows(X, k, None) for name, X in representations.items()}


def nearest_of_new(
    new: Mapping[str, Array], k: int, pivot: Array, mapped: Callable[[str, Array], Array]
) -> dict[str, Nearest]:
    """The ``k`` nearest rows of fit in each representation (n_new, n_features_r) of new rows.

    ``mapped(name, rows)`` gives rows of fit in a representation. Of ``pivot`` (n_fit, n_components)
    only the length counts: a GPU searches each representation by itself in less time than it takes
    to measure enough proposals of another one.
    """
    torch = import_torch()
    everything = torch.arange(pivot.shape[0], device=pivot.device)
    return {name: _nearest_rows(mapped(name, everything), k, Q) for name, Q in new.items()}


def nearest_points(points: Array, k: int, queries: Array | None = None) -> Nearest:
    """The ``k`` nearest of ``points`` (n_points, n_columns) for each query, with few columns.

    Without ``queries`` (n_queries, n_columns) these are the points themselves, none of which is its
    own neighbour. Of many points, about `COMPARED` in the nearest leaves are measured, which finds
    about 99 of 100 neighbours; however unevenly points lie, leaves have the same number of them.
    """
    n_points = points.shape[0]
    Q = points if queries is None else queries
    k = min(k, n_points - (queries is None))
    if k < 1 or Q.shape[0] == 0:
        return _nothing(Q, k)
    n_wanted = min(k + SPARE_POINTS, n_points - (queries is None))
    with _products_in("ieee"):
        if n_points <= FEW_POINTS or n_wanted > COMPARED // 4:
            return _measured(Q, points, _all_measured(points, queries, n_wanted), k)
        leaves = _cut_into_leaves(points)
        if queries is not None:
            return _measured(Q, points, _around_queries(leaves, queries, n_wanted), k)
        near = _measured(Q, points, _among_leaves(leaves, n_points, n_wanted), k)
    return _with_their_neighbours(points, near)


@contextmanager
def _products_in(precision: str) -> Iterator[None]:
    """Products of float32 in "ieee" or in "tf32", which keeps ten bits, whatever was set before."""
    matmul = import_torch().backends.cuda.matmul
    # The older name is an error in newer versions once the other has been used.
    name = "fp32_precision" if hasattr(matmul, "fp32_precision") else "allow_tf32"
    with _SETTING:
        before = getattr(matmul, name)
        setattr(matmul, name, precision if name == "fp32_precision" else precision == "tf32")
        try:
            yield
        finally:
            setattr(matmul, name, before)


def _nothing(Q: Array, k: int) -> Nearest:
    torch, shape = import_torch(), (Q.shape[0], max(k, 0))
    indices = torch.empty(shape, dtype=torch.int32, device=Q.device)
    return indices, torch.empty(shape, dtype=torch.float32, device=Q.device)


def _measured(Q: Array, X: Array, candidates: Array, k: int) -> Nearest:
    """The ``k`` nearest of the ``candidates`` (n_queries, n_candidates), which are rows of ``X``.

    Differences are of float32, their squares are added in float64.
    """
    indices, distances = _nothing(Q, k)
    n_entries = candidates.shape[1] * X.shape[1]
    for part in _blocks(Q.shape[0], BLOCK_ENTRIES // n_entries):
        keys = _keys(Q[part], X, candidates[part])
        indices[part], distances[part] = _from_keys(import_torch().sort(keys, 1).values[:, :k])
    return indices, distances


def _keys(Q: Array, X: Array, candidates: Array) -> Array:
    """Squared distance and row of each candidate as one number, (n_queries, n_candidates).

    Floats that are not negative sort as their bits do.
    """
    torch = import_torch()
    gaps = X[candidates] - Q[:, None]
    squared = torch.sum(gaps.square_(), 2, dtype=torch.float64).float()
    return (squared.view(torch.int32).long() << 32) | candidates


def _from_keys(keys: Array) -> Nearest:
    torch = import_torch()
    return (keys & 0xFFFFFFFF).int(), (keys >> 32).int().view(torch.float32)


def _blocks(n_rows: int, size: int) -> Iterator[slice]:
    """Slices of at most ``size`` rows, and of at least one."""
    size = max(size, 1)
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


# --- All rows against all queries, for many columns ---


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
        return _nothing(Q, k)
    indices, distances = _nothing(Q, k)
    proposer = _proposer(X, queries)
    with _products_in("tf32"):
        for part in _blocks(Q.shape[0], proposer.n_at_once):
            candidates = proposer.propose(part, min(k + SPARE, available))
            indices[part], distances[part] = _measured(Q[part], X, candidates, k)
    return indices, distances


def _proposer(X: Array, queries: Array | None) -> _Proposer:
    return _Products.of(X, queries)


@dataclass(frozen=True)
class _Products:
    """Scores ``q^T x - |x|^2 / 2`` as one product: the last columns of the rows hold the norms.

    ``rows`` (n_tiles * TILE, n_columns) are those of ``X`` less their mean, and padding, of which
    columns from ``n_features`` on are three parts of ``-|x|^2 / 2``, each with no more bits than
    products keep. ``queries`` are None where they are the rows.
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
        shape = (_rounded_up(n_rows, TILE), _rounded_up(n_features + 3, 8))
        rows = torch.zeros(shape, dtype=torch.float32, device=X.device)
        centre = _middle(X)
        torch.sub(X, centre, out=rows[:n_rows, :n_features])
        left = torch.full((shape[0],), LOWEST, dtype=torch.float32, device=X.device)
        left[:n_rows] = -0.5 * rows[:n_rows].square().sum(1)
        for column in range(n_features, n_features + 3):
            rows[:, column] = (left.view(torch.int32) & ~0x1FFF).view(torch.float32)
            left = left - rows[:, column]
        return cls(rows, centre, n_features, queries)

    @property
    def n_at_once(self) -> int:
        return max(BLOCK_PRODUCTS // self.rows.shape[0], 1)

    def propose(self, part: slice, n_wanted: int) -> Array:
        scores = self._scores(part)
        n_tiles = scores.shape[1] // TILE
        if n_tiles < 4 * n_wanted:
            return import_torch().topk(scores, n_wanted, 1).indices
        # Rows n_tiles apart make a tile: its maximum is then read as fast as memory allows. The
        # best rows are in as many tiles at most, which are those of largest maximum.
        torch, tiled = import_torch(), scores.view(-1, TILE, n_tiles)
        tiles = torch.topk(torch.amax(tiled, 1), n_wanted, 1).indices
        inside = torch.take_along_dim(tiled, tiles[:, None, :], 2)
        best = torch.topk(inside.flatten(1), n_wanted, 1).indices
        return best // n_wanted * n_tiles + torch.take_along_dim(tiles, best % n_wanted, 1)

    def _scores(self, part: slice) -> Array:
        given = self.queries
        Q = self.rows[part].clone() if given is None else self._centred(given[part])
        Q[:, self.n_features : self.n_features + 3] = 1
        scores = Q @ self.rows.mT
        if given is None:
            scores[:, part].diagonal().fill_(-math.inf)
        return scores

    def _centred(self, Q: Array) -> Array:
        rows = self.rows.new_zeros((Q.shape[0], self.rows.shape[1]))
        rows[:, : self.n_features] = Q - self.centre
        return rows


def _middle(X: Array) -> Array:
    """Medians of the columns on evenly spaced rows: a mean would follow a row that is far away."""
    step = max(X.shape[0] // MIDDLE_ROWS, 1)
    return import_torch().median(X[::step], 0).values


def _rounded_up(n: int, step: int) -> int:
    return -(-n // step) * step


# --- Leaves, for few columns and many points ---


@dataclass(frozen=True)
class _Leaves:
    """Points in leaves of equal size, near ones together; some are repeated to fill the last place.

    ``numbers`` (n_leaves, size) are rows of the points, or beyond these for padding, whose
    ``excess`` (n_leaves, size) is infinite and that of others zero. ``points`` is (n_leaves, size,
    n_columns); ``centres`` (n_leaves, n_columns) and ``radii`` (n_leaves,) are means and
    deviations of these.
    """

    numbers: Array
    excess: Array
    points: Array
    centres: Array
    radii: Array

    @property
    def n_probes(self) -> int:
        n_leaves, size = self.numbers.shape
        return min(-(-COMPARED // size), n_leaves)


def _cut_into_leaves(points: Array) -> _Leaves:
    """Halve the points along their widest direction, the halves likewise, down to leaves."""
    torch = import_torch()
    n_points, n_columns = points.shape
    depth = max(math.ceil(math.log2(n_points / LEAF)), 0)
    numbers = torch.arange(_rounded_up(n_points, 2**depth), device=points.device)
    for level in range(depth):
        parts = points[numbers % n_points].view(2**level, -1, n_columns)
        numbers = numbers[_order_within(_along_widest(parts))]
    numbers = numbers.view(2**depth, -1)
    in_leaves = points[numbers % n_points]
    centres = in_leaves.mean(1)
    radii = (in_leaves - centres[:, None]).square().sum(2).mean(1).sqrt()
    excess = torch.where(numbers < n_points, 0.0, math.inf).to(points.dtype)
    return _Leaves(numbers, excess, in_leaves, centres, radii)


def _along_widest(parts: Array) -> Array:
    """Coordinates (n_parts, size) of the points of each part along its first principal axis."""
    torch = import_torch()
    centred = parts - parts.mean(1, keepdim=True)
    covariances = torch.bmm(centred.mT, centred)
    # The largest column starts the iteration: it is no direction that the points lack.
    widest = torch.argmax(covariances.diagonal(dim1=1, dim2=2), 1)
    axis = torch.take_along_dim(covariances, widest[:, None, None], 2)
    tiny = torch.finfo(parts.dtype).tiny
    for _ in range(DIRECTION_ROUNDS):
        axis = axis / (torch.amax(axis.abs(), 1, keepdim=True) + tiny)
        axis = torch.bmm(covariances, axis)
    return torch.bmm(centred, axis)[:, :, 0]


def _order_within(keys: Array) -> Array:
    """Places that sort each row of ``keys`` (n_parts, size), one after the other: by one sort."""
    torch = import_torch()
    bits = keys.float().view(torch.int32)
    # Bits of floats below zero sort the wrong way round.
    bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    parts = torch.arange(keys.shape[0], device=keys.device)[:, None] << 32
    return torch.sort((parts + bits).flatten(), stable=True).indices


def _near_leaves(leaves: _Leaves, Q: Array) -> Array:
    """The leaves (n_queries, n_probes) of least ``|q - centre| - radius``."""
    torch = import_torch()
    # In float64, because leaves where most points are lie closer than float32 could tell.
    Q, C = Q.double(), leaves.centres.double()
    squared = torch.addmm(C.square().sum(1), Q, C.mT, alpha=-2) + Q.square().sum(1, keepdim=True)
    gaps = squared.clamp_(min=0).sqrt_().sub_(leaves.radii.double()).float()
    return torch.topk(gaps, leaves.n_probes, 1, largest=False).indices


def _among_leaves(leaves: _Leaves, n_points: int, n_wanted: int) -> Array:
    """Likely neighbours (n_points, n_wanted) of all points, a leaf's among those of near leaves."""
    torch = import_torch()
    n_leaves, size, n_columns = leaves.points.shape
    found = torch.empty((n_leaves * size, n_wanted), dtype=torch.int64, device=leaves.points.device)
    per_leaf = leaves.n_probes * size * max(size, n_columns)
    for part in _blocks(n_leaves, BLOCK_ENTRIES // per_leaf):
        near = _near_leaves(leaves, leaves.centres[part])
        # Relative to the centre, where products lose few digits.
        centres = leaves.centres[part, None]
        A, B = leaves.points[part] - centres, leaves.points[near].flatten(1, 2) - centres
        levels = B.square().sum(2) + leaves.excess[near].flatten(1)
        scores = torch.baddbmm(levels[:, None], A, B.mT, alpha=-2)
        numbers = leaves.numbers[near].flatten(1)[:, None]
        itself = numbers == leaves.numbers[part, :, None]
        best = torch.topk(scores.masked_fill_(itself, math.inf), n_wanted, 2, largest=False).indices
        found[leaves.numbers[part]] = torch.take_along_dim(numbers, best, 2)
    return found[:n_points]


def _with_their_neighbours(points: Array, near: Nearest) -> Nearest:
    """The nearest of all that are neighbours of a point, or of one of its neighbours."""
    torch = import_torch()
    (n_points, k), before = near[0].shape, near[0].long()
    indices, distances = torch.empty_like(near[0]), torch.empty_like(near[1])
    n_entries = k * (k + 1) * points.shape[1]
    for part in _blocks(n_points, BLOCK_ENTRIES // n_entries):
        own = before[part]
        candidates = torch.cat([own, before[own].flatten(1)], 1)
        keys = _keys(points[part], points, candidates)
        itself = torch.arange(part.start, part.stop, device=points.device)[:, None]
        keys = torch.sort(keys.masked_fill_(candidates == itself, LAST), 1).values
        # What came by several ways is side by side now.
        again = keys[:, 1:] == keys[:, :-1]
        keys[:, 1:].masked_fill_(again, LAST)
        indices[part], distances[part] = _from_keys(torch.topk(keys, k, 1, largest=False).values)
    return indices, distances


def _around_queries(leaves: _Leaves, queries: Array, n_wanted: int) -> Array:
    """Likely nearest points (n_queries, n_wanted) of queries, among those of near leaves."""
    torch = import_torch()
    n_leaves, size, n_columns = leaves.points.shape
    shape = (queries.shape[0], n_wanted)
    found = torch.empty(shape, dtype=torch.int64, device=queries.device)
    per_query = max(leaves.n_probes * size * n_columns, 2 * n_leaves)
    for part in _blocks(queries.shape[0], BLOCK_ENTRIES // per_query):
        near = _near_leaves(leaves, queries[part])
        gaps = leaves.points[near].flatten(1, 2) - queries[part, None]
        squared = gaps.square_().sum(2) + leaves.excess[near].flatten(1)
        best = torch.topk(squared, n_wanted, 1, largest=False).indices
        found[part] = torch.take_along_dim(leaves.numbers[near].flatten(1), best, 1)
    return found


def _all_measured(points: Array, queries: Array | None, n_wanted: int) -> Array:
    """The nearest points (n_queries, n_wanted) of all, by differences."""
    torch = import_torch()
    Q = points if queries is None else queries
    found = torch.empty((Q.shape[0], n_wanted), dtype=torch.int64, device=Q.device)
    for part in _blocks(Q.shape[0], BLOCK_ENTRIES // (points.shape[0])):
        gaps = torch.cdist(Q[part], points, compute_mode="donot_use_mm_for_euclid_dist")
        if queries is None:
            gaps[:, part].diagonal().fill_(math.inf)
        found[part] = torch.topk(gaps, n_wanted, 1, largest=False).indices
    return found
