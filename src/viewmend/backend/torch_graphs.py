"""Kernels of graphs for PyTorch, by sorts, searches and sparse products on the device.

The same functions as in `viewmend.backend.numba_graphs`. The host waits for the device where a
pattern is found, whose size nobody knows before, and nowhere else.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

from viewmend.backend.namespace import Array
from viewmend.backend.torch_gpu import PIECE, import_torch

__all__ = [
    "add_product",
    "cg_direction",
    "cg_step",
    "column_dots",
    "degrees",
    "energies",
    "find_places",
    "group_sums",
    "homophily",
    "is_connected",
    "multiply",
    "n_distinct",
    "renumbered",
    "row_sums",
    "symmetric_pattern",
    "weighted_places",
]

# Samples of the rows of a graph (n_rows,), indices and weights of its edges (n_rows, k).
Triple = tuple[Array, Array, Array]

# Places that are worked on at once: their numbers take 8 bytes each, several times.
BLOCK = 1 << 24
# Steps of a search through the graph between two looks whether it has ended.
STEPS_UNASKED = 4


def multiply(indptr: Array, indices: Array, data: Array, B: Array) -> Array:
    """``W B`` (n_rows, n_columns) for a graph and an array of two axes."""
    torch = import_torch()
    dtype = torch.promote_types(data.dtype, B.dtype)
    out = torch.zeros((indptr.shape[0] - 1, B.shape[1]), dtype=dtype, device=B.device)
    add_product((indptr, indices, data), B.to(dtype), 1.0, out)
    return out


def add_product(graph: tuple[Array, Array, Array], B: Array, factor: float, out: Array) -> None:
    """Add ``factor W B`` to ``out`` (n_rows, n_columns), which is of the type of ``B``."""
    torch = import_torch()
    indptr, indices, data = graph
    # PyTorch's libraries refuse a matrix without entries.
    if indices.shape[0] == 0:
        return
    _accept_sparse_rows()
    size = (out.shape[0], B.shape[0])
    parts = (indptr.to(indices.dtype), indices, data.to(B.dtype))
    W = torch.sparse_csr_tensor(*parts, size=size, check_invariants=False)
    torch.addmm(out, W, B, alpha=factor, out=out)


def column_dots(A: Array, B: Array) -> Array:
    """``sum_i a_ij b_ij`` of every column, (n_columns,) of float64."""
    torch = import_torch()
    return (A * B).sum(dim=0, dtype=torch.float64)


def energies(R: Array, degrees: Array) -> Array:
    """``sum_i r_ij^2 / degrees_i`` of every column, (n_columns,) of float64."""
    torch = import_torch()
    return (R**2 / degrees[:, None]).sum(dim=0, dtype=torch.float64)


def group_sums(A: Array, groups: Array, n_groups: int) -> Array:
    """Sum of the rows of each group, (n_groups, n_columns) of float64; rows of group -1 in none."""
    torch = import_torch()
    # Products of small pieces: threads that add to the same few numbers would wait for each other.
    n_pieces = -(-A.shape[0] // PIECE)
    padding = n_pieces * PIECE - A.shape[0]
    A = torch.nn.functional.pad(A, (0, 0, 0, padding)).reshape(n_pieces, PIECE, A.shape[1])
    groups = torch.nn.functional.pad(groups, (0, padding), value=-1).reshape(n_pieces, PIECE, 1)
    members = (groups == torch.arange(n_groups, device=A.device)).to(A.dtype)
    return torch.bmm(members.mT, A).sum(dim=0, dtype=torch.float64)


def cg_step(X: Array, R: Array, P: Array, Q: Array, step: Array) -> Array:
    """``X += step P``, ``R -= step Q``; the largest change of a row relative to its size."""
    step = step.to(X.dtype)
    torch = import_torch()
    move = step * P
    X += move
    R -= step * Q
    change, size = move.abs().amax(dim=1), X.abs().amax(dim=1)
    return torch.where(change > 0, change / size, 0).amax()


def cg_direction(
    P: Array, R: Array, degrees: Array, coarse: tuple[Array, Array], beta: Array
) -> None:
    """``P = R / degrees + correction of the row's group + beta P``; none for group -1."""
    torch = import_torch()
    groups, corrections = coarse
    # The last row is of what is in no group.
    padded = torch.nn.functional.pad(corrections.to(P.dtype), (0, 0, 0, 1))
    P *= beta.to(P.dtype)
    P += R / degrees[:, None]
    P += padded[groups]


def row_sums(indptr: Array, data: Array) -> Array:
    """Sum of every row, (n_rows,) of float64."""
    torch = import_torch()
    # Row by row, and not added by whichever thread comes first: the same digits every time.
    return torch.segment_reduce(
        data.to(torch.float64), "sum", offsets=indptr.to(torch.int64), unsafe=True, initial=0
    )


def n_distinct(rows: Array, n: int) -> Array:
    """How many numbers there are among ``rows``, each below ``n``."""
    torch = import_torch()
    seen = torch.zeros(n, dtype=torch.int64, device=rows.device)
    seen[rows.to(torch.int64)] = 1
    return seen.sum()


def symmetric_pattern(triples: Sequence[Triple], n: int) -> tuple[Array, Array, Array]:
    """Places (i, j) and (j, i) of all edges of positive weight between ``n`` samples, once each.

    Returns ``indptr`` (n + 1,), ``indices`` (n_places,) ascending in every row, and for every
    place the number of its mirror image.
    """
    torch = import_torch()
    # Two sorts: most edges are in several graphs, and only one of each is mirrored.
    ahead = torch.unique(torch.cat([_keys(triple, n)[triple[2] != 0] for triple in triples]))
    keys = torch.unique(torch.cat([ahead, _mirrored(ahead, n)]))
    del ahead
    mirror = torch.empty(keys.shape, dtype=torch.int32, device=keys.device)
    for start in range(0, keys.shape[0], BLOCK):
        mirrored = _mirrored(keys[start : start + BLOCK], n)
        mirror[start : start + BLOCK] = torch.searchsorted(keys, mirrored, out_int32=True)
    first = torch.arange(n + 1, device=keys.device) * n
    indptr = torch.searchsorted(keys, first, out_int32=keys.shape[0] < 2**31)
    return indptr, (keys % max(n, 1)).to(torch.int32), mirror


def find_places(triple: Triple, indptr: Array, indices: Array) -> Array:
    """Where in the pattern the edges of a graph are, (n_rows, k) of int32; -1 of no edge."""
    torch = import_torch()
    n = indptr.shape[0] - 1
    keys = _pattern_keys(indptr, indices)
    places = torch.searchsorted(keys, _keys(triple, n), out_int32=True)
    return places.masked_fill_(triple[2] == 0, -1)


def weighted_places(pairs: Sequence[tuple[Array, Array, float]], mirror: Array) -> Array:
    """Half the sum of ``factor * weights`` at their places and at the mirror images of these.

    ``pairs`` are places, weights and factor of every graph. Returns (n_places,) of float32.
    """
    torch = import_torch()
    total = torch.zeros(mirror.shape, dtype=torch.float64, device=mirror.device)
    if mirror.shape[0] == 0:
        return total.to(torch.float32)
    for places, weights, factor in pairs:
        # No edge has weight zero, and may be added anywhere. The edges of one graph have a place
        # each, so that no order of the additions changes a digit.
        where = places.ravel().clamp(min=0)
        total.index_add_(0, where, weights.ravel().to(torch.float64), alpha=factor)
    out = torch.empty(mirror.shape, dtype=torch.float32, device=mirror.device)
    for start in range(0, mirror.shape[0], BLOCK):
        block = slice(start, start + BLOCK)
        out[block] = (total[block] + total[mirror[block]]) / 2
    return out


def homophily(triples: Sequence[Triple], classes: Array) -> Array:
    """Share of each graph's weight between samples of one class, (n_graphs,)."""
    torch = import_torch()
    shares = []
    for rows, indices, weights in triples:
        own = classes[rows]
        # Unknown classes are equal to each other, but agree on nothing.
        same = (own[indices] == own[:, None]) & (own >= 0)[:, None]
        total = weights.sum(dtype=torch.float64)
        within = (weights * same).sum(dtype=torch.float64)
        shares.append(torch.where(total > 0, within / total, torch.zeros_like(total)))
    return torch.stack(shares)


def degrees(triples: Sequence[Triple], n: int) -> Array:
    """Row sums of every symmetric graph, (n_graphs, n) of float64."""
    torch = import_torch()
    out = torch.zeros((len(triples), n), dtype=torch.float64, device=triples[0][0].device)
    for row, (rows, indices, weights) in zip(out, triples, strict=True):
        halves = weights.to(torch.float64) / 2
        row.index_add_(0, rows, halves.sum(dim=1))
        row.index_add_(0, rows[indices].ravel(), halves.ravel())
    return out


def is_connected(indptr: Array, indices: Array, data: Array) -> bool:
    """Whether paths of positive weight lead from the first sample to all others."""
    torch = import_torch()
    reached = torch.zeros((indptr.shape[0] - 1, 1), dtype=data.dtype, device=data.device)
    reached[:1] = 1
    n_before, n_reached = 0, int(reached.sum())
    while n_before < n_reached < reached.shape[0]:
        for _ in range(STEPS_UNASKED):
            reached = ((reached + multiply(indptr, indices, data, reached)) > 0).to(data.dtype)
        n_before, n_reached = n_reached, int(reached.sum(dtype=torch.int64))
    return n_reached == reached.shape[0]


def renumbered(
    parts: Sequence[tuple[float, Triple]], rows: Array, n: int
) -> tuple[Array, Array, Array]:
    """The sum of graphs ``(indptr, indices, data)``, each times a factor, of which node ``i`` is
    node ``rows[i]`` among ``n``; columns ascend in every row, data is of float64.
    """
    torch = import_torch()
    keys = torch.concat([_renumbered_keys(graph, rows, n) for _, graph in parts])
    data = torch.concat([scale * data.double() for scale, (_, _, data) in parts])
    keys, order = torch.sort(keys, stable=True)
    places, where = torch.unique_consecutive(keys, return_inverse=True)
    # A place has an entry per graph at most: of two numbers the order does not count.
    total = torch.zeros(places.shape[0], dtype=torch.float64, device=rows.device)
    total.index_add_(0, where, data[order])
    ends = torch.searchsorted(places, torch.arange(n + 1, device=rows.device) * n)
    return ends, (places % n).int(), total


def _renumbered_keys(graph: Triple, rows: Array, n: int) -> Array:
    """One number per edge, by which edges are in order of their new row and column."""
    indptr, indices, _ = graph
    of_edges = import_torch().repeat_interleave(rows.long(), indptr[1:] - indptr[:-1])
    return of_edges * n + rows[indices.long()]


@cache
def _accept_sparse_rows() -> None:
    """Let PyTorch say here, once and to nobody, that its sparse rows are young and not checked."""
    torch = import_torch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        parts = torch.tensor([0, 1]), torch.tensor([0]), torch.tensor([1.0])
        # The call that is made later: which ones warn depends on the version.
        torch.sparse_csr_tensor(*parts, size=(1, 1), check_invariants=False)


def _keys(triple: Triple, n: int) -> Array:
    """One number (n_rows, k) of int64 for the place of every edge, ascending by row and column."""
    torch = import_torch()
    rows, indices, _ = triple
    rows = rows.to(torch.int64)
    return rows[:, None] * n + rows[indices]


def _mirrored(keys: Array, n: int) -> Array:
    n = max(n, 1)
    return (keys % n) * n + keys // n


def _pattern_keys(indptr: Array, indices: Array) -> Any:
    torch = import_torch()
    n = indptr.shape[0] - 1
    rows = torch.arange(n, device=indptr.device)
    lengths = (indptr[1:] - indptr[:-1]).to(torch.int64)
    return torch.repeat_interleave(rows * n, lengths, output_size=indices.shape[0]) + indices
