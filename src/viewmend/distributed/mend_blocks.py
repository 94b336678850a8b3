"""The samples of Mend over blocks: those of a graph sample, and every row joined to it.

The sample is in memory, with all its neighbours and kernels. Where it is all samples, its geometry
is cut into blocks. Otherwise one pass sums up the features that it gives every chunk, and a second
one makes those that are orthogonal over all rows; see `viewmend.core.mend.outside`. They are kept
in files of the workers, and so are edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed

from viewmend.core.common.rows import Sums
from viewmend.core.graphs.nearest import Neighbours
from viewmend.core.mend.blocks import MendBlock, OutsideRows, ViewRows
from viewmend.core.mend.geometry import (
    MendGeometry,
    MendView,
    NeighbourRule,
    RawBlock,
    view_graphs,
)
from viewmend.core.mend.outside import (
    SampledGeometry,
    ToJoin,
    joined_block,
    sums_by_view,
    views_of_all_rows,
    views_to_join,
    with_all_rows,
)
from viewmend.core.mend.samples import (
    MendSamples,
    outlined,
    outside_edges,
    samples_of,
    without_neighbours,
)
from viewmend.distributed.given import BlockInput
from viewmend.distributed.inputs import ChunkLayout, Chunks, Number, read_chunk
from viewmend.distributed.kept_blocks import keep

# Rows of a chunk that are in the sample, and their numbers there.
Placed = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class SampleGeometry:
    """The geometry of a graph sample, and the ``rows`` (n_drawn,) of all samples that it is of.

    ``n_neighbours`` are looked for. Workers keep blocks in a ``folder`` of that name.
    """

    geometry: MendGeometry
    rows: np.ndarray
    n_neighbours: int
    folder: str


@dataclass(frozen=True, eq=False)
class ToMake:
    """What a chunk is made a block by: edges per view, and the folder that it is kept in."""

    layout: ChunkLayout
    sample: ToJoin
    ks: tuple[int, ...]
    folder: str


def samples_in_blocks(
    given: BlockInput, sample: SampleGeometry, rule: NeighbourRule
) -> tuple[MendSamples, SampledGeometry]:
    """All samples, in blocks, and their geometry without the blocks."""
    geometry, n_classes = sample.geometry, given.labels.n_classes
    chunks, runner = given.chunks, given.runner
    columns = chunks.parts, chunks.numbers
    # Read again where rows are asked for, because few fits do.
    raw = runner.lazy(raw_chunk, *columns, shared=chunks.layout)
    if given.sample.complete:
        blocks = _cut(chunks, np.argsort(sample.rows), geometry, sample.n_neighbours)
        whole = SampledGeometry(geometry.views, geometry.observed, blocks, geometry, raw)
        samples = samples_of(runner, whole, n_classes, rule)
        # Samples have the columns that are needed of it: the rest may go.
        return samples, replace(whole, blocks=None, raw_blocks=None)
    views = views_to_join(geometry)
    sums = runner.sums(chunk_sums, *columns, shared=(chunks.layout, views))
    turned = views_of_all_rows(sums, views)
    ks = tuple(rule(len(view.rows), n_classes) for view in views)
    # In half precision features need half the disk, and a regression on many rows does not miss
    # the other digits: a ridge adds much more to their products than rounding does.
    to_join = ToJoin(turned, sample.n_neighbours, "float16")
    shared = ToMake(chunks.layout, to_join, ks, sample.folder)
    placed = placed_rows(chunks, sample.rows)
    pending = runner.start(joined_chunk, *columns, placed, shared=shared, n_results=3)
    pending.sums()
    blocks, outlines, edges = pending.results
    whole = with_all_rows(geometry, turned, None, None)
    spectra = tuple(view.kernel.spectrum for view in turned)
    graphs = view_graphs(geometry, ks)
    known = blocks, outlines, graphs, spectra, edges, raw, geometry.views
    return MendSamples(runner, *known), whole


def placed_rows(chunks: Chunks, rows: np.ndarray) -> list[Placed]:
    """Of every chunk, which of its rows are among ``rows`` (n_drawn,), and where."""
    order = np.argsort(rows)
    parts = chunks.parted(rows[order])
    ends = np.cumsum([len(part) for part in parts])[:-1]
    return list(zip(parts, np.split(order, ends), strict=True))


def chunk_sums(parts: Any, number: Number, shared: tuple[ChunkLayout, Sequence[MendView]]) -> Sums:
    """`sums_by_view` of a chunk."""
    layout, sample = shared
    return sums_by_view(raw_chunk(parts, number, layout), sample)


def joined_chunk(
    parts: Any, number: Number, placed: Placed, shared: ToMake
) -> tuple[Any, MendBlock, Any, Sums]:
    """`joined_block` of a chunk: its features, its outline, its edges; and no sums."""
    raw = raw_chunk(parts, number, shared.layout)
    place = np.full(len(raw.observed), -1, dtype=np.int32)
    place[placed[0]] = placed[1]
    block = joined_block(replace(raw, place=place), shared.sample)
    features = keep(without_neighbours(block, None), shared.folder)
    edges = keep(outside_edges(block, shared.ks), shared.folder)
    return features, outlined(block, None), edges, {}


def raw_chunk(parts: Any, number: Number, layout: ChunkLayout) -> RawBlock:
    """The rows of a chunk that every view has."""
    data, _ = read_chunk(parts, number, layout)
    pairs = zip(data.views, data.observed.T, strict=True)
    return RawBlock(tuple(view[seen] for view, seen in pairs), data.observed)


def _cut(
    chunks: Chunks, places: np.ndarray, geometry: MendGeometry, n_neighbours: int
) -> list[Delayed]:
    """The block of all samples, cut into blocks; ``places`` (n_samples,) are theirs in it."""
    n_graphs = sum(len(view.neighbours) for view in geometry.views)
    none = Neighbours(np.empty((0, n_neighbours), np.int32), np.empty((0, n_neighbours)))
    whole, blocks = geometry.blocks, []
    for place in chunks.split(places):
        views = [_some_rows(view, place) for view in whole.views]
        nobody = np.empty(0, dtype=np.intp)
        outside = OutsideRows(nobody, (nobody,) * len(views), (none,) * n_graphs)
        blocks.append(MendBlock(whole.observed[place], tuple(views), place, outside))
    return [delayed(block, traverse=False) for block in blocks]


def _some_rows(view: ViewRows, place: np.ndarray) -> ViewRows:
    """Those rows of a view that are at ``place`` (n_rows,), in this order."""
    where = np.searchsorted(view.rows, place)
    where = np.minimum(where, len(view.rows) - 1)
    rows = np.flatnonzero(view.rows[where] == place)
    return ViewRows(rows, view.Phi[where[rows]], view.leverages[where[rows]])
