"""Anchors, graphs and waves over blocks: from a bounded sample, refined on all rows.

The samples of the smallest content hashes, whatever the chunks and the order of the rows, are
gathered and get the geometry of a fit in memory. Where these are all samples, that is it. Where
they are some, one more round is run on all rows by sums over the blocks: of the correspondence of
anchors (`corresponding_anchors`), or, where every view has anchors of its
own, of Lloyd's algorithm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from dask.delayed import Delayed, delayed

from viewmend.backend import dispatch
from viewmend.core.agfti.anchors import ANCHOR_METHODS, N_WAVES, group_weights
from viewmend.core.agfti.bipartite import anchor_graph, anchor_graphs
from viewmend.core.agfti.graph_fourier import summed_graph
from viewmend.core.common.scaling import NORMALIZERS, far_centre
from viewmend.distributed.blocks import Packed, RowBlock, pack, unpack
from viewmend.distributed.inputs import ChunkLayout, Chunks, Number, read_chunk
from viewmend.distributed.rows import DaskRows
from viewmend.distributed.sampling import Sample
from viewmend.distributed.waves import found_waves, known_waves, places

LLOYD_ROUNDS = 3


@dataclass(frozen=True)
class Reading:
    """How the rows of a chunk become what distances are taken of."""

    layout: ChunkLayout
    normalize: str | None

    def rows(self, parts: Any, number: Number) -> tuple[list[np.ndarray], np.ndarray]:
        """Scaled views of the rows of a chunk, and ``observed``."""
        data, _ = read_chunk(parts, number, self.layout)
        return [NORMALIZERS[self.normalize](view) for view in data.views], data.observed


class SampleGeometry(Protocol):
    """The geometry of a fit in memory; see `viewmend.models.agfti_geometry.AnchorGeometry`."""

    @property
    def order(self) -> np.ndarray: ...

    @property
    def observed(self) -> np.ndarray: ...

    @property
    def anchors(self) -> tuple[np.ndarray, ...]: ...

    @property
    def graphs(self) -> np.ndarray: ...

    @property
    def waves(self) -> np.ndarray | None: ...

    @property
    def n_neighbors(self) -> int: ...


@dataclass(frozen=True, eq=False)
class BlockGeometry:
    """As `viewmend.models.agfti_geometry.AnchorGeometry`, with the graphs in blocks."""

    blocks: list[Delayed]  # of `RowBlock`, with ``Z`` alone
    anchors: tuple[np.ndarray, ...]  # (n_anchors, n_features_v)
    waves: np.ndarray | None  # basis of the waves (n_anchors, n_frequencies)


def geometry_of_blocks(
    chunks: Chunks,
    codes: np.ndarray,
    sample: Sample,
    geometry: SampleGeometry,
    choices: tuple[Reading, str, np.random.Generator],
    runner: DaskRows,
) -> BlockGeometry:
    """The geometry of all samples from that of a sample.

    ``codes`` are (n_samples,); ``choices`` are how chunks are read, the anchor method and the
    generator that anchors are drawn with.
    """
    if sample.complete:
        return _given(chunks, codes, geometry)
    refine = _corresponding if geometry.waves is not None else _own
    return refine(chunks, codes, sample, geometry, choices, runner)


def _given(chunks: Chunks, codes: np.ndarray, geometry: SampleGeometry) -> BlockGeometry:
    """The graphs of a geometry of all samples, cut in blocks."""
    inverse_order = np.argsort(geometry.order)
    observed, graphs = geometry.observed[inverse_order], geometry.graphs[:, inverse_order]
    blocks = [
        RowBlock(observed[rows], codes[rows], pack(graphs[:, rows]))
        for rows in chunks.split(np.arange(chunks.n_samples))
    ]
    lazy = [delayed(block, traverse=False) for block in blocks]
    waves = None
    if geometry.waves is not None:
        N = summed_graph(geometry.graphs, geometry.observed)
        waves = known_waves(N, geometry.waves)
    return BlockGeometry(lazy, geometry.anchors, waves)


def _corresponding(
    chunks: Chunks,
    codes: np.ndarray,
    sample: Sample,
    geometry: SampleGeometry,
    choices: Any,
    runner: DaskRows,
) -> BlockGeometry:
    """One more round of `corresponding_anchors`, with sums over all rows.

    Centres are drawn among the sample, whose places all rows decide; anchors are means of all.
    """
    reading, method, rng = choices
    anchors, k, columns = geometry.anchors, geometry.n_neighbors, (chunks.parts, chunks.numbers)
    graphs = runner.map(summed_rows, *columns, shared=(reading, anchors, k))
    waves, mu = found_waves(_sums_over(graphs, runner), N_WAVES)
    views = [NORMALIZERS[reading.normalize](view) for view in sample.data.views]
    N = summed_graph(anchor_graphs(views, sample.data.observed, anchors, k), sample.data.observed)
    centres = ANCHOR_METHODS[method](places(N, waves, mu), len(anchors[0]), rng)
    # The common space of all views: waves, their eigenvalues, and the centres in it.
    space = waves, mu, centres
    commons, sums = runner.both(grouped, *columns, graphs, shared=(reading, space, k))
    anchors = _means(sums, anchors)
    of_rows = *columns, chunks.split(codes), commons
    blocks = runner.map(first_block, *of_rows, shared=(reading, anchors, k))
    waves, _ = found_waves(_sums_over(blocks, runner), len(anchors[0]))
    return BlockGeometry(blocks, anchors, waves)


def _own(
    chunks: Chunks,
    codes: np.ndarray,
    _sample: Sample,
    geometry: SampleGeometry,
    choices: Any,
    runner: DaskRows,
) -> BlockGeometry:
    """A few rounds of Lloyd's algorithm in every view; rows that were drawn stay as they are."""
    reading, method, _ = choices
    anchors, k, columns = geometry.anchors, geometry.n_neighbors, (chunks.parts, chunks.numbers)
    for _ in range(0 if method == "random" else LLOYD_ROUNDS):
        sums = runner.sums(nearest_sums, *columns, shared=(reading, anchors))
        anchors = _means(sums, anchors)
    of_rows = *columns, chunks.split(codes), [None] * len(chunks.parts)
    blocks = runner.map(first_block, *of_rows, shared=(reading, anchors, k))
    return BlockGeometry(blocks, anchors, None)


def summed_rows(parts: Any, number: Number, shared: Any) -> Packed:
    """Rows of ``N`` on given anchors."""
    reading, anchors, k = shared
    views, observed = reading.rows(parts, number)
    return pack(summed_graph(anchor_graphs(views, observed, anchors, k), observed))


def grouped(
    parts: Any, number: Number, graph: Packed, shared: Any
) -> tuple[Packed, dict[str, np.ndarray]]:
    """Rows in the common space, and sums of those of every group of it, view by view."""
    reading, (waves, mu, centres), k = shared
    views, observed = reading.rows(parts, number)
    common = anchor_graph(places(unpack(graph), waves, mu), centres, k)
    sums = _weighted_sums(views, observed, [group_weights(common)] * len(views))
    return pack(common.astype(views[0].dtype, copy=False)), sums


def nearest_sums(parts: Any, number: Number, shared: Any) -> dict[str, np.ndarray]:
    """Sums of the rows nearest to every anchor, view by view."""
    reading, anchors = shared
    views, observed = reading.rows(parts, number)
    weights = []
    for X_v, anchors_v, seen in zip(views, anchors, observed.T, strict=True):
        nearest = np.full(len(X_v), -1)
        centre = far_centre(anchors_v)
        nearest[seen] = dispatch.squared_distances(X_v[seen], anchors_v, centre).argmin(axis=1)
        weights.append((nearest[:, None] == np.arange(len(anchors_v))).astype(np.float64))
    return _weighted_sums(views, observed, weights)


def first_block(
    parts: Any, number: Number, codes: np.ndarray, common: Packed | None, shared: Any
) -> RowBlock:
    """Graphs of some rows, missing ones as in the common space, or uniform where there is none."""
    reading, anchors, k = shared
    views, observed = reading.rows(parts, number)
    Z = anchor_graphs(views, observed, anchors, k)
    if common is not None:
        Z = np.where(observed.T[:, :, None], Z, unpack(common))
    return RowBlock(observed, codes, pack(Z))


def sum_of_graph(block: RowBlock | Packed, shared: Any) -> dict[str, np.ndarray]:
    """What a task makes of the rows of ``N`` of a block, for a sum."""
    task, told = shared
    if isinstance(block, RowBlock):
        return {"sum": task(summed_graph(unpack(block.Z), block.observed), told)}
    return {"sum": task(unpack(block), told)}


def _sums_over(blocks: list[Delayed], runner: DaskRows) -> Callable[..., np.ndarray]:
    """What `found_waves` asks for sums with."""
    return lambda task, told: runner.sums(sum_of_graph, blocks, shared=(task, told))["sum"]


def _weighted_sums(
    views: list[np.ndarray], observed: np.ndarray, weights: list[np.ndarray]
) -> dict[str, np.ndarray]:
    sums = {}
    for v, (X_v, seen) in enumerate(zip(views, observed.T, strict=True)):
        sums[f"rows {v}"] = dispatch.sparse_cross_products(
            weights[v][seen], X_v[seen].astype(np.float64)
        )
        sums[f"weights {v}"] = weights[v][seen].sum(axis=0)
    return sums


def _means(sums: dict[str, np.ndarray], anchors: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Means of the groups; a group without a row keeps its anchor."""
    moved = []
    for v, anchors_v in enumerate(anchors):
        weights = sums[f"weights {v}"][:, None]
        means = sums[f"rows {v}"] / np.where(weights > 0, weights, 1)
        moved.append(np.where(weights > 0, means, anchors_v).astype(anchors_v.dtype))
    return tuple(moved)
