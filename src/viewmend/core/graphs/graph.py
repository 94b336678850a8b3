"""Graphs between samples as arrays of NumPy or PyTorch, and sums of many of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from viewmend.backend import dispatch
from viewmend.backend.graphs import kernels_for
from viewmend.backend.namespace import Array, array_namespace, fetched, to_numpy
from viewmend.exceptions import TooLargeError

# Places that the numbers of a pattern can count.
MOST_PLACES = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Graph:
    """Weighted edges from ``n_rows`` rows to ``n_columns`` samples, row by row.

    Attributes
    ----------
    indptr : array (n_rows + 1,) of int
        The edges of row ``i`` are those from ``indptr[i]`` to ``indptr[i + 1]``.
    indices : array (n_edges,) of int32
        Samples that the edges lead to. They are not looked at here: `of_arrays` and `from_scipy`
        check those of others.
    data : array (n_edges,) of float32 or float64
        Weights, none of them negative.
    n_columns : int
    """

    indptr: Array
    indices: Array
    data: Array
    n_columns: int

    @classmethod
    def of_arrays(cls, indptr: Array, indices: Array, data: Array, n_columns: int) -> Graph:
        """A graph of arrays that come from elsewhere, which are checked."""
        _check_rows_of_edges(indptr, indices, data)
        _check_indices([indices], [n_columns], "columns of the edges")
        xp = array_namespace(indices)
        return cls(indptr, xp.astype(indices, xp.int32, copy=False), data, n_columns)

    @classmethod
    def from_scipy(cls, W: csr_array) -> Graph:
        """The same graph of a sparse matrix; entries of one place are summed."""
        W = W.copy() if isinstance(W, csr_array) else csr_array(W)
        W.sum_duplicates()
        data = W.data if W.dtype == np.float32 else W.data.astype(np.float64)
        return cls.of_arrays(W.indptr, W.indices, data, W.shape[1])

    def to_scipy(self) -> csr_array:
        """The same graph on the host, in float64."""
        parts = (self.data, self.indices, self.indptr)
        data, indices, indptr = map(to_numpy, parts)
        return csr_array((data.astype(np.float64), indices, indptr), shape=self.shape)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""
        return self.indptr.shape[0] - 1, self.n_columns

    def multiply(self, B: Array) -> Array:
        """``W B`` for ``B`` (n_columns, ...), whatever the number of threads with the same digits.

        The product is of the wider of the two types.
        """
        if B.ndim not in (1, 2) or B.shape[0] != self.n_columns:
            msg = (
                f"a graph of shape {self.shape} multiplies arrays with {self.n_columns} rows, got "
                f"shape {tuple(B.shape)}"
            )
            raise ValueError(msg)
        product = kernels_for(self.data, B).multiply(
            self.indptr, self.indices, self.data, B if B.ndim == 2 else B[:, None]
        )
        return product if B.ndim == 2 else product[:, 0]

    def add_product(self, B: Array, factor: float, out: Array) -> None:
        """Add ``factor W B`` to ``out`` (n_rows, c), of the float type of ``B`` (n_columns, c)."""
        expected = (self.n_columns, *B.shape[1:]), (self.shape[0], *B.shape[1:])
        if (tuple(B.shape), tuple(out.shape)) != expected or B.ndim != 2:
            msg = (
                f"a graph of shape {self.shape} multiplies ({self.n_columns}, c) to "
                f"({self.shape[0]}, c), got {tuple(B.shape)} and {tuple(out.shape)}"
            )
            raise ValueError(msg)
        graph = (self.indptr, self.indices, self.data)
        kernels_for(self.data, B, out).add_product(graph, B, factor, out)

    def row_sums(self) -> Array:
        """Sum of the weights of every row, (n_rows,) of float64."""
        return kernels_for(self.data).row_sums(self.indptr, self.data)

    def reweighted(self, data: Array) -> Graph:
        """The same edges with the weights ``data`` (n_edges,)."""
        if tuple(data.shape) != tuple(self.data.shape):
            msg = f"weights must be one per edge, {self.data.shape[0]}, got shape {data.shape}"
            raise ValueError(msg)
        return Graph(self.indptr, self.indices, data, self.n_columns)

    @cached_property
    def is_connected(self) -> bool:
        """Whether paths of positive weight join all samples; the graph is symmetric."""
        return bool(kernels_for(self.data).is_connected(self.indptr, self.indices, self.data))


@dataclass(frozen=True, eq=False)
class Edges:
    """At most ``k`` directed edges from every row: to rows ``indices`` (n_rows, k) of int32.

    ``weights`` (n_rows, k) are of float32; an edge of weight zero is none.
    """

    indices: Array
    weights: Array


@dataclass(frozen=True, eq=False)
class GraphUnion:
    """Symmetric graphs ``(E_g + E_g^T) / 2`` between the same samples, on one pattern.

    Graph ``g`` is among the samples ``rows[g]`` alone. The pattern has the places of all edges of
    all graphs, and of their mirror images: `union_of` finds them once, so that a further sum of
    the graphs is one pass.

    Attributes
    ----------
    indptr, indices : array (n_samples + 1,) and (n_places,)
        The pattern, symmetric, its columns ascending in every row.
    mirror : array (n_places,) of int32
        Where the pattern has the place ``(j, i)`` of each place ``(i, j)``.
    edges : tuple of Edges
    rows : tuple of array (n_rows_g,) of int32
    places : tuple of array (n_rows_g, k_g) of int32
        Of every edge in the pattern; -1 where there is no edge.
    """

    indptr: Array
    indices: Array
    mirror: Array
    edges: tuple[Edges, ...]
    rows: tuple[Array, ...]
    places: tuple[Array, ...]

    @property
    def n_samples(self) -> int:
        """Of every graph."""
        return int(self.indptr.shape[0] - 1)

    def weighted(self, weights: Sequence[float] | np.ndarray) -> Graph:
        """``sum_g weights_g (E_g + E_g^T) / 2``."""
        edge_weights = [edges.weights for edges in self.edges]
        pairs = list(zip(self.places, edge_weights, map(float, weights), strict=True))
        data = kernels_for(self.mirror).weighted_places(pairs, self.mirror)
        return Graph(self.indptr, self.indices, data, self.n_samples)

    def homophily(self, classes: Array) -> Array:
        """Share (n_graphs,) of the weight of each graph that joins samples of one class.

        ``classes`` (n_samples,) are numbers, -1 if there is none. Graphs without edges have zero.
        """
        if tuple(classes.shape) != (self.n_samples,):
            msg = f"classes must be one per sample, ({self.n_samples},), got {classes.shape}"
            raise ValueError(msg)
        kernels = kernels_for(self.mirror)
        return kernels.homophily(self._triples(), classes)

    def degrees(self) -> Array:
        """Sums of the weights of every sample in every graph, (n_graphs, n_samples) of float64."""
        return kernels_for(self.mirror).degrees(self._triples(), self.n_samples)

    def _triples(self) -> list[tuple[Array, Array, Array]]:
        """Samples, indices and weights of every graph, as the kernels take them."""
        pairs = zip(self.rows, self.edges, strict=True)
        return [(rows, edges.indices, edges.weights) for rows, edges in pairs]


def edges_of(neighbours: Any, k: int) -> Edges:
    """Edges from every query to its ``k`` nearest, with closed-form weights.

    The `Neighbours` are ``k + 1`` or more of each query; where they are fewer, ``k`` is lowered.
    Rows sum to one. Where the ``k + 1`` nearest tie, they share the weight, and there is one edge
    more.
    """
    k = min(k, neighbours.indices.shape[1] - 1)
    if k < 1:
        none = neighbours.indices[:, :0]
        return _as_edges(none, neighbours.squared_distances[:, :0])
    weights = dispatch.nearest_anchor_weights(neighbours.squared_distances[:, : k + 1], k)
    (ties,) = fetched([(weights[:, k] > 0).any()])
    n_edges = k + bool(ties)
    return _as_edges(neighbours.indices[:, :n_edges], weights[:, :n_edges])


def _as_edges(indices: Array, weights: Array) -> Edges:
    xp = array_namespace(indices, weights)
    return Edges(xp.astype(indices, xp.int32), xp.astype(weights, xp.float32))


def union_of(edges: Sequence[Edges], rows: Sequence[Array], n_samples: int) -> GraphUnion:
    """The graphs of some directed edges on one pattern.

    Parameters
    ----------
    edges : sequence of Edges, (n_rows_g, k_g) each
        Between the rows of a graph, by their numbers in it.
    rows : sequence of array (n_rows_g,) of int
        Which samples these rows are; no sample twice in a graph.
    n_samples : int
    """
    _check_union(edges, rows, n_samples)
    _check_places(edges)
    xp = array_namespace(edges[0].indices)
    rows = tuple(xp.astype(rows_g, xp.int32, copy=False) for rows_g in rows)
    kernels = kernels_for(edges[0].indices)
    triples = [(rows_g, e.indices, e.weights) for rows_g, e in zip(rows, edges, strict=True)]
    indptr, indices, mirror = kernels.symmetric_pattern(triples, n_samples)
    places = [kernels.find_places(triple, indptr, indices) for triple in triples]
    return GraphUnion(indptr, indices, mirror, tuple(edges), rows, tuple(places))


def symmetric_graph(edges: Edges, n: int) -> Graph:
    """``(E + E^T) / 2`` of the edges (n, k) between ``n`` samples."""
    xp = array_namespace(edges.indices)
    rows = xp.arange(n, dtype=xp.int32, device=edges.indices.device)
    return union_of([edges], [rows], n).weighted([1.0])


def in_order_of_fit(
    parts: Sequence[tuple[float, Graph]], rows: np.ndarray, n_samples: int
) -> csr_array:
    """The sum of some graphs on the host, whose sample ``i`` is sample ``rows[i]`` of all."""
    data = parts[0][1].data
    arrays = [(scale, (graph.indptr, graph.indices, graph.data)) for scale, graph in parts]
    there = array_namespace(data).asarray(rows, device=data.device)
    found = kernels_for(data).renumbered(arrays, there, n_samples)
    indptr, indices, weights = map(to_numpy, found)
    return csr_array((weights, indices, indptr), shape=(n_samples, n_samples))


def _check_places(edges: Sequence[Edges]) -> None:
    """Places are counted with four bytes, and compiled code would write over their end."""
    most = 2 * sum(math.prod(edges_g.indices.shape) for edges_g in edges)
    if most > MOST_PLACES:
        msg = (
            f"graphs between the same samples may have {MOST_PLACES} edges, both directions "
            f"counted, got up to {most}; lower n_neighbors, or set graph_samples"
        )
        raise TooLargeError(msg)


def _check_union(edges: Sequence[Edges], rows: Sequence[Array], n_samples: int) -> None:
    if not edges or len(edges) != len(rows):
        msg = f"a union needs one array of rows per graph, got {len(rows)} for {len(edges)} graphs"
        raise ValueError(msg)
    for g, (edges_g, rows_g) in enumerate(zip(edges, rows, strict=True)):
        shapes = edges_g.indices.shape, edges_g.weights.shape
        if shapes[0] != shapes[1] or len(shapes[0]) != 2 or shapes[0][0] != rows_g.shape[0]:
            msg = (
                f"graph {g} must have indices and weights ({rows_g.shape[0]}, k) for its rows, got "
                f"{tuple(shapes[0])} and {tuple(shapes[1])}"
            )
            raise ValueError(msg)
    indices = [edges_g.indices for edges_g in edges]
    _check_indices(indices, [rows_g.shape[0] for rows_g in rows], "neighbours")
    _check_indices(rows, [n_samples] * len(rows), "rows of a graph")
    distinct = fetched([kernels_for(rows_g).n_distinct(rows_g, n_samples) for rows_g in rows])
    for g, (rows_g, n_distinct) in enumerate(zip(rows, distinct, strict=True)):
        if int(n_distinct) != rows_g.shape[0]:
            msg = f"graph {g} must have every sample once, got {int(n_distinct)} samples in "
            raise ValueError(msg + f"{rows_g.shape[0]} rows")


def _check_indices(indices: Sequence[Array], limits: Sequence[int], what: str) -> None:
    """Compiled code does not look, and would read and write elsewhere in the memory."""
    filled = [(i, limit) for i, limit in zip(indices, limits, strict=True) if min(i.shape) > 0]
    ends = fetched([end for i, _ in filled for end in (i.min(), i.max())])
    for (_, limit), low, high in zip(filled, ends[::2], ends[1::2], strict=True):
        if not 0 <= low <= high < limit:
            msg = (
                f"{what} must be numbers 0 to {limit - 1}, got {int(low)} to {int(high)}; "
                f"the search or the file that they come from is damaged"
            )
            raise IndexError(msg)


def _check_rows_of_edges(indptr: Array, indices: Array, data: Array) -> None:
    ends = fetched([indptr[0], indptr[-1], (indptr[1:] >= indptr[:-1]).all()])
    n_edges = indices.shape[0]
    if data.shape[0] != n_edges or ends[0] != 0 or ends[1] != n_edges or not ends[2]:
        msg = (
            f"indptr must rise from 0 to the number of edges, got {int(ends[0])} to "
            f"{int(ends[1])} for {n_edges} indices and {data.shape[0]} weights; the graph is "
            f"damaged"
        )
        raise IndexError(msg)
