"""Nearest points in PyTorch, with few columns: fast on a GPU for a million of them.

Of few points all pairs are compared. Many are cut into small leaves of equal size, however unevenly
they lie, so that each leaf and the leaves around it are one product of a batch; the points that may
have neighbours further away are then compared with all. No step waits for a number from the device.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from viewmend.backend.namespace import Array
from viewmend.backend.torch_candidates import (
    BLOCK_ENTRIES,
    TILE,
    Nearest,
    blocks,
    from_keys,
    keys_of,
    largest,
    measured,
    middle,
    no_neighbours,
    products_in,
    rounded_up,
)
from viewmend.backend.torch_gpu import import_torch

__all__ = ["nearest_points"]

# Pairs that are compared whatever the number of points: all pairs of 23 170 points.
PAIRS = 2**29
# Points per leaf, at most, and points of near leaves, about, that a point is compared with: twice
# as many where there are more columns than these, which leave neighbours more room elsewhere.
LEAF = 32
COMPARED = 1536
FEW_COLUMNS = 16
# Proposals among them beyond k: their scores are of float32.
SPARE_POINTS = 5
# Rounds of power iteration for the direction that a part is cut along; it need not be exact.
DIRECTION_ROUNDS = 4
# Points of a part, about, that it is found from.
DIRECTION_POINTS = 1024
# A key behind all others: of no row.
LAST = 2**63 - 1


def nearest_points(points: Array, k: int, queries: Array | None = None) -> Nearest:
    """The ``k`` nearest of ``points`` (n_points, n_columns) for each query, with few columns.

    Without ``queries`` (n_queries, n_columns) these are the points themselves, none of which is its
    own neighbour. Exact where `PAIRS` are all pairs of points. Otherwise about `COMPARED` points in
    the nearest leaves are measured, which finds about 99 of 100 neighbours; of the points
    themselves, those that likely miss one are compared with all, as many as `PAIRS` allow.
    """
    n_points = points.shape[0]
    Q = points if queries is None else queries
    k = min(k, n_points - (queries is None))
    if k < 1 or Q.shape[0] == 0:
        return no_neighbours(Q, k)
    torch, n_wanted = import_torch(), min(k + SPARE_POINTS, n_points - (queries is None))
    if n_points**2 <= PAIRS or n_wanted > COMPARED // 4:
        itself = torch.arange(n_points, device=Q.device) if queries is None else None
        return measured(Q, points, _among_all(points, Q, n_wanted, itself), k)
    with products_in("ieee"):
        leaves = _cut_into_leaves(points)
        if queries is not None:
            return measured(Q, points, _around_queries(leaves, queries, n_wanted), k)
        found, reaches = _among_leaves(leaves, n_points, n_wanted)
    near = _with_their_neighbours(points, measured(Q, points, found, k))
    return _with_doubtful_ones(points, near, _doubts(leaves, reaches, near[1][:, -1]), n_wanted)


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
        """Leaves that a point is compared with."""
        n_leaves, size, n_columns = self.points.shape
        compared = COMPARED if n_columns <= FEW_COLUMNS else 2 * COMPARED
        return min(-(-compared // size), n_leaves)


def _cut_into_leaves(points: Array) -> _Leaves:
    """Halve the points along their widest direction, the halves likewise, down to leaves."""
    torch = import_torch()
    n_points, n_columns = points.shape
    depth = max(math.ceil(math.log2(n_points / LEAF)), 0)
    numbers = torch.arange(rounded_up(n_points, 2**depth), device=points.device)
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
    # Evenly spaced ones: few large products would leave most of a GPU idle.
    some = parts[:, :: max(parts.shape[1] // DIRECTION_POINTS, 1)]
    middles = some.mean(1, keepdim=True)
    some = some - middles
    covariances = torch.bmm(some.mT, some)
    # The largest column starts the iteration: it is no direction that the points lack.
    widest = torch.argmax(covariances.diagonal(dim1=1, dim2=2), 1)
    axis = torch.take_along_dim(covariances, widest[:, None, None], 2)
    tiny = torch.finfo(parts.dtype).tiny
    for _ in range(DIRECTION_ROUNDS):
        axis = torch.bmm(covariances, axis)
        axis = axis / (torch.amax(axis.abs(), 1, keepdim=True) + tiny)
    return torch.bmm(parts - middles, axis)[:, :, 0]


def _order_within(keys: Array) -> Array:
    """Places that sort each row of ``keys`` (n_parts, size), one after the other: by one sort."""
    torch = import_torch()
    bits = keys.float().view(torch.int32)
    # Bits of floats below zero sort the wrong way round.
    bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    parts = torch.arange(keys.shape[0], device=keys.device)[:, None] << 32
    return torch.sort((parts + bits).flatten(), stable=True).indices


def _near_leaves(leaves: _Leaves, Q: Array) -> Nearest:
    """The leaves (n_queries, n_probes) of least ``|q - centre| - radius``, and these gaps."""
    torch = import_torch()
    # In float64, because leaves where most points are lie closer than float32 could tell.
    Q, C = Q.double(), leaves.centres.double()
    squared = torch.addmm(C.square().sum(1), Q, C.mT, alpha=-2) + Q.square().sum(1, keepdim=True)
    gaps = squared.clamp_(min=0).sqrt_().sub_(leaves.radii.double()).float()
    near = torch.topk(gaps, leaves.n_probes, 1, largest=False, sorted=False)
    return near.indices, near.values


def _among_leaves(leaves: _Leaves, n_points: int, n_wanted: int) -> tuple[Array, Array]:
    """Likely neighbours (n_points, n_wanted) of all points, a leaf's among those of near leaves.

    With the largest gap (n_leaves,) between a leaf and one of these.
    """
    torch = import_torch()
    n_leaves, size, n_columns = leaves.points.shape
    found = torch.empty((n_leaves * size, n_wanted), dtype=torch.int64, device=leaves.points.device)
    reaches = torch.empty_like(leaves.radii)
    per_leaf = leaves.n_probes * size * max(size, n_columns)
    for part in blocks(n_leaves, BLOCK_ENTRIES // per_leaf):
        near, gaps = _near_leaves(leaves, leaves.centres[part])
        reaches[part] = torch.amax(gaps, 1)
        # Relative to the centre, where products lose few digits.
        centres = leaves.centres[part, None]
        A, B = leaves.points[part] - centres, leaves.points[near].flatten(1, 2) - centres
        levels = B.square().sum(2) + leaves.excess[near].flatten(1)
        scores = torch.baddbmm(levels[:, None], A, B.mT, alpha=-2)
        numbers = leaves.numbers[near].flatten(1)[:, None]
        itself = numbers == leaves.numbers[part, :, None]
        scores.masked_fill_(itself, math.inf)
        best = torch.topk(scores, n_wanted, 2, largest=False, sorted=False).indices
        found[leaves.numbers[part]] = torch.take_along_dim(numbers, best, 2)
    return found[:n_points], reaches


def _with_their_neighbours(points: Array, near: Nearest) -> Nearest:
    """The nearest of all that are neighbours of a point, or of one of its neighbours."""
    torch = import_torch()
    (n_points, k), before = near[0].shape, near[0].long()
    indices, distances = torch.empty_like(near[0]), torch.empty_like(near[1])
    n_entries = k * (k + 1) * points.shape[1]
    for part in blocks(n_points, BLOCK_ENTRIES // n_entries):
        own = before[part]
        candidates = torch.cat([own, before[own].flatten(1)], 1)
        keys = keys_of(points[part], points, candidates)
        itself = torch.arange(part.start, part.stop, device=points.device)[:, None]
        keys = torch.sort(keys.masked_fill_(candidates == itself, LAST), 1).values
        # What came by several ways is side by side now.
        again = keys[:, 1:] == keys[:, :-1]
        keys[:, 1:].masked_fill_(again, LAST)
        indices[part], distances[part] = from_keys(torch.topk(keys, k, 1, largest=False).values)
    return indices, distances


def _around_queries(leaves: _Leaves, queries: Array, n_wanted: int) -> Array:
    """Likely nearest points (n_queries, n_wanted) of queries, among those of near leaves."""
    torch = import_torch()
    n_leaves, size, n_columns = leaves.points.shape
    shape = (queries.shape[0], n_wanted)
    found = torch.empty(shape, dtype=torch.int64, device=queries.device)
    per_query = max(leaves.n_probes * size * n_columns, 2 * n_leaves)
    for part in blocks(queries.shape[0], BLOCK_ENTRIES // per_query):
        near, _ = _near_leaves(leaves, queries[part])
        gaps = leaves.points[near].flatten(1, 2) - queries[part, None]
        squared = gaps.square_().sum(2) + leaves.excess[near].flatten(1)
        best = torch.topk(squared, n_wanted, 1, largest=False, sorted=False).indices
        found[part] = torch.take_along_dim(leaves.numbers[near].flatten(1), best, 1)
    return found


def _doubts(leaves: _Leaves, reaches: Array, squared_distances: Array) -> Array:
    """By how much the farthest neighbour of a point may lie beyond the leaves looked into.

    ``reaches`` (n_leaves,) are those of the leaves, ``squared_distances`` (n_points,) those of the
    neighbours.
    """
    off_centre = (leaves.points - leaves.centres[:, None]).square().sum(2).sqrt()
    doubts = (off_centre - reaches[:, None]).flatten()
    # One for every number, those of padding last.
    doubts = import_torch().empty_like(doubts).scatter_(0, leaves.numbers.flatten(), doubts)
    return doubts[: squared_distances.shape[0]] + squared_distances.sqrt()


def _with_doubtful_ones(points: Array, near: Nearest, doubts: Array, n_wanted: int) -> Nearest:
    """The same, for the points in most doubt compared with all; ``doubts`` are (n_points,)."""
    n_points, k = near[0].shape
    rows = import_torch().topk(doubts, max(PAIRS // n_points, 1), sorted=False).indices
    Q = points[rows]
    exact = measured(Q, points, _among_all(points, Q, n_wanted, rows), k)
    for known, found in zip(near, exact, strict=True):
        known[rows] = found
    return near


def _among_all(points: Array, Q: Array, n_wanted: int, itself: Array | None) -> Array:
    """The nearest points (n_queries, n_wanted) of all, but for each query ``itself`` (n_queries,).

    Scores ``-|q - x|^2`` are products of ``(q, 1, |q|^2)`` and ``(2 x, -|x|^2, -1)``, in float64:
    points in a crowd are so close together that those of float32 could not tell them apart.
    """
    torch, (n_points, n_columns) = import_torch(), points.shape
    X, Q = (A.double() - middle(points).double() for A in (points, Q))
    right = torch.zeros((rounded_up(n_points, TILE), n_columns + 2), dtype=X.dtype, device=X.device)
    right[:, -2] = -math.inf
    right[:n_points] = torch.cat([2 * X, -X.square().sum(1, True), -torch.ones_like(X[:, :1])], 1)
    left = torch.cat([Q, torch.ones_like(Q[:, :1]), Q.square().sum(1, True)], 1)
    found = torch.empty((Q.shape[0], n_wanted), dtype=torch.int64, device=Q.device)
    for part in blocks(Q.shape[0], BLOCK_ENTRIES // right.shape[0]):
        scores = left[part] @ right.mT
        if itself is not None:
            scores.scatter_(1, itself[part, None], -math.inf)
        found[part] = largest(scores, n_wanted)
    return found
