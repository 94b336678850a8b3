"""Nearest points in PyTorch, with few columns: fast on a GPU for a million of them.

Points are cut into small leaves of equal size, however unevenly they lie, so that each leaf and the
leaves around it are one product of a batch. No step waits for a number from the device.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from viewmend.backend.namespace import Array
from viewmend.backend.torch_candidates import (
    BLOCK_ENTRIES,
    Nearest,
    blocks,
    from_keys,
    keys_of,
    measured,
    no_neighbours,
    products_in,
    rounded_up,
)
from viewmend.backend.torch_gpu import import_torch

__all__ = ["nearest_points"]

# Points up to which all pairs are measured.
FEW_POINTS = 2048
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
    own neighbour. Of many points, about `COMPARED` in the nearest leaves are measured, which finds
    about 99 of 100 neighbours; however unevenly points lie, leaves have the same number of them.
    """
    n_points = points.shape[0]
    Q = points if queries is None else queries
    k = min(k, n_points - (queries is None))
    if k < 1 or Q.shape[0] == 0:
        return no_neighbours(Q, k)
    n_wanted = min(k + SPARE_POINTS, n_points - (queries is None))
    with products_in("ieee"):
        if n_points <= FEW_POINTS or n_wanted > COMPARED // 4:
            return measured(Q, points, _all_measured(points, queries, n_wanted), k)
        leaves = _cut_into_leaves(points)
        if queries is not None:
            return measured(Q, points, _around_queries(leaves, queries, n_wanted), k)
        near = measured(Q, points, _among_leaves(leaves, n_points, n_wanted), k)
    return _with_their_neighbours(points, near)


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


def _near_leaves(leaves: _Leaves, Q: Array) -> Array:
    """The leaves (n_queries, n_probes) of least ``|q - centre| - radius``."""
    torch = import_torch()
    # In float64, because leaves where most points are lie closer than float32 could tell.
    Q, C = Q.double(), leaves.centres.double()
    squared = torch.addmm(C.square().sum(1), Q, C.mT, alpha=-2) + Q.square().sum(1, keepdim=True)
    gaps = squared.clamp_(min=0).sqrt_().sub_(leaves.radii.double()).float()
    return torch.topk(gaps, leaves.n_probes, 1, largest=False, sorted=False).indices


def _among_leaves(leaves: _Leaves, n_points: int, n_wanted: int) -> Array:
    """Likely neighbours (n_points, n_wanted) of all points, a leaf's among those of near leaves."""
    torch = import_torch()
    n_leaves, size, n_columns = leaves.points.shape
    found = torch.empty((n_leaves * size, n_wanted), dtype=torch.int64, device=leaves.points.device)
    per_leaf = leaves.n_probes * size * max(size, n_columns)
    for part in blocks(n_leaves, BLOCK_ENTRIES // per_leaf):
        near = _near_leaves(leaves, leaves.centres[part])
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
    return found[:n_points]


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
        near = _near_leaves(leaves, queries[part])
        gaps = leaves.points[near].flatten(1, 2) - queries[part, None]
        squared = gaps.square_().sum(2) + leaves.excess[near].flatten(1)
        best = torch.topk(squared, n_wanted, 1, largest=False, sorted=False).indices
        found[part] = torch.take_along_dim(leaves.numbers[near].flatten(1), best, 1)
    return found


def _all_measured(points: Array, queries: Array | None, n_wanted: int) -> Array:
    """The nearest points (n_queries, n_wanted) of all, by differences."""
    torch = import_torch()
    Q = points if queries is None else queries
    found = torch.empty((Q.shape[0], n_wanted), dtype=torch.int64, device=Q.device)
    for part in blocks(Q.shape[0], BLOCK_ENTRIES // (points.shape[0])):
        gaps = torch.cdist(Q[part], points, compute_mode="donot_use_mm_for_euclid_dist")
        if queries is None:
            gaps[:, part].diagonal().fill_(math.inf)
        found[part] = torch.topk(gaps, n_wanted, 1, largest=False, sorted=False).indices
    return found
