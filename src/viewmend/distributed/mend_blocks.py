"""The geometry of Mend over blocks: that of a graph sample, and every row joined to it.

The sample is in memory, with all its neighbours and kernels. Where it is all samples, its geometry
is cut into blocks. Otherwise one pass maps every chunk by it, and sums of all chunks say how their
features are turned; see `viewmend.core.mend.outside`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed

from viewmend.core.common.rows import Sums
from viewmend.core.graphs.nearest import Neighbours
from viewmend.core.mend.blocks import MendBlock, OutsideRows, ViewRows
from viewmend.core.mend.geometry import MendGeometry, MendView, RawBlock
from viewmend.core.mend.outside import (
    SampledGeometry,
    TurnedFeatures,
    mapped_block,
    turn_features,
    turned_block,
    views_to_join,
    with_all_rows,
)
from viewmend.distributed.given import BlockInput
from viewmend.distributed.inputs import ChunkLayout, Chunks, Number, read_chunk

# Rows of a chunk that are in the sample, and their numbers there.
Placed = tuple[np.ndarray, np.ndarray]


def geometry_of_blocks(
    given: BlockInput, rows: np.ndarray, geometry: MendGeometry, n_neighbours: int
) -> SampledGeometry:
    """The geometry of the sample with all samples in its blocks.

    ``rows`` (n_drawn,) are the numbers of the samples of the geometry among all samples, and
    ``n_neighbours`` how many neighbours are looked for.
    """
    if given.sample.complete:
        blocks = _cut(given.chunks, np.argsort(rows), geometry, n_neighbours)
        return SampledGeometry(geometry.views, geometry.observed, blocks, geometry)
    chunks, sample = given.chunks, views_to_join(geometry)
    columns = chunks.parts, chunks.numbers, placed_rows(chunks, rows)
    shared = chunks.layout, (sample, n_neighbours)
    mapped, sums = given.runner.both(mapped_chunk, *columns, shared=shared)
    turned = turn_features(sums, sample)
    blocks = given.runner.map(turned_halves, mapped, shared=turned)
    return with_all_rows(geometry, turned, blocks)


def placed_rows(chunks: Chunks, rows: np.ndarray) -> list[Placed]:
    """Of every chunk, which of its rows are among ``rows`` (n_drawn,), and where."""
    order = np.argsort(rows)
    parts = chunks.parted(rows[order])
    ends = np.cumsum([len(part) for part in parts])[:-1]
    return list(zip(parts, np.split(order, ends), strict=True))


def mapped_chunk(
    parts: Any,
    number: Number,
    placed: Placed,
    shared: tuple[ChunkLayout, tuple[Sequence[MendView], int]],
) -> tuple[MendBlock, Sums]:
    """`mapped_block` of a chunk, with features in half precision.

    They are most of what a block holds and writes to disk, and a regression does not miss the
    other digits: a ridge adds much more to their products than rounding does.
    """
    layout, sample = shared
    data, _ = read_chunk(parts, number, layout)
    place = np.full(len(data.observed), -1, dtype=np.int32)
    place[placed[0]] = placed[1]
    pairs = zip(data.views, data.observed.T, strict=True)
    views = tuple(view[seen] for view, seen in pairs)
    block, sums = mapped_block(RawBlock(views, data.observed, place), sample)
    halves = tuple(replace(rows, Phi=rows.Phi.astype(np.float16)) for rows in block.views)
    return replace(block, views=halves), sums


def turned_halves(block: MendBlock, turned: Sequence[TurnedFeatures]) -> MendBlock:
    """`turned_block`, with features in half precision."""
    return turned_block(block, turned, [np.empty_like(rows.Phi) for rows in block.views])


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
