"""All rows of a fit in which only some, the graph sample, are in the graphs.

The sample has the geometry of a fit of its own, and its representations and kernels are taken for
all rows. Kernel features that are orthogonal over the sample are not over all rows; sums over all
rows say how to turn them. A row outside the sample is joined to its nearest rows there.

Kernels of the rows at the landmarks are computed twice: once for these sums, and once for the
features on the axes that follow from them. Kept meanwhile, they would need much room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg

from viewmend.backend.namespace import Array, array_namespace, is_numpy, to_numpy
from viewmend.backend.threads import for_each, row_blocks, serial_blas
from viewmend.core.common.rows import Column, Sums
from viewmend.core.common.small_sums import on_host
from viewmend.core.graphs.nearest import Neighbours, nearest_of_new
from viewmend.core.mend.blocks import MendBlock, OutsideRows, ViewRows
from viewmend.core.mend.geometry import MendGeometry, MendView, RawBlock
from viewmend.core.mend.kernel_features import kernel_sums, mean_kernel
from viewmend.core.mend.loo_ridge import RIDGES, leverages_of

# Entries of a view whose neighbours are looked for at a time; of rows at least that many, because
# the sample is represented anew for every piece.
PIECE, LEAST_ROWS = 2**20, 1024
# Entries of kernels, or of all representations, that are worked on at a time: 8 MiB of float64 in
# NumPy, where every thread has its own piece; and elsewhere.
KERNEL_PIECE, LARGE_KERNEL_PIECE = 2**20, 2**24
# Rows of a view below which its features are never rounded. They take little room, and leverages
# may be near one: then scores are quotients of small differences.
FEW_ROWS = 10_000


@dataclass(frozen=True, eq=False)
class ToJoin:
    """What rows are joined to: the views of a graph sample, with kernels on the axes of all rows.

    ``n_neighbours`` are looked for. Features of many rows are of the type ``dtype``.
    """

    views: tuple[MendView, ...]
    n_neighbours: int
    dtype: str = "float32"


def views_to_join(geometry: MendGeometry) -> tuple[MendView, ...]:
    """What other rows need of the views of a graph sample."""
    return tuple(replace(view, neighbours={}) for view in geometry.views)


# ------------------------------------------------------------------ tasks


def sums_by_view(block: RawBlock, sample: Sequence[MendView]) -> Sums:
    """Task: by view, the `kernel_sums` of rows less the centre of the graph sample."""
    sums: dict[str, Any] = {}
    for v, (X_v, view) in enumerate(zip(block.views, sample, strict=True)):
        rows_of = partial(_kernel_rows, X_v, view)
        found = kernel_sums(rows_of, view.kernel.centre, _kernel_pieces(X_v, view), X_v)
        sums |= {f"{name} {v}": numbers for name, numbers in found.items()}
    return sums


def joined_block(block: RawBlock, sample: ToJoin) -> MendBlock:
    """Task: rows with their features, the leverages of these, and neighbours in a graph sample.

    Rows of the block have a place, -1 outside the sample.
    """
    assert block.place is not None, "rows are joined to a sample by their places"
    xp = array_namespace(block.observed)
    rows, outside, near = [], [], []
    for v, (X_v, view) in enumerate(zip(block.views, sample.views, strict=True)):
        dtype = getattr(xp, "float32" if view.kernel.n_rows < FEW_ROWS else sample.dtype)
        here = xp.nonzero(block.observed[:, v])[0]
        is_outside = block.place[here] < 0
        rows.append(ViewRows(here, *_features(X_v, view, dtype)))
        outside.append(here[is_outside])
        near.extend(_nearest_in_sample(X_v, is_outside, view, sample.n_neighbours))
    hanging = OutsideRows(xp.nonzero(block.place < 0)[0], tuple(outside), tuple(near))
    return MendBlock(block.observed, tuple(rows), block.place, hanging)


def _features(X: Array, view: MendView, dtype: Any) -> tuple[Array, Array]:
    """Features (n_rows, n_features) of a ``dtype``, and their leverages (n_rows, n_ridges)."""
    xp, kernel = array_namespace(X), view.kernel
    Phi = xp.empty((X.shape[0], len(kernel.spectrum)), dtype=dtype, device=X.device)
    leverages = xp.empty((X.shape[0], len(RIDGES)), dtype=xp.float32, device=X.device)

    def work(piece: slice) -> None:
        found = kernel.features(_kernel_rows(X, view, piece))
        leverages[piece] = leverages_of(found, kernel.spectrum, kernel.n_rows)
        Phi[piece] = xp.astype(found, dtype)

    for_each(work, _kernel_pieces(X, view), xp)
    return Phi, leverages


def _kernel_rows(X: Array, view: MendView, piece: slice) -> Array:
    """Kernels (n_rows, n_landmarks) of some rows of a view."""
    mapped = {name: each(X[piece]) for name, each in view.representations.items()}
    return mean_kernel(mapped, view.kernel.landmarks, view.kernel.scales)


def _kernel_pieces(X: Array, view: MendView) -> list[slice]:
    widest = max(len(view.kernel.centre), len(view.representations) * X.shape[1])
    size = KERNEL_PIECE if is_numpy(array_namespace(X)) else LARGE_KERNEL_PIECE
    return row_blocks(X.shape[0], widest, size)


def _nearest_in_sample(X: Array, outside: Array, view: MendView, k: int) -> list[Neighbours]:
    """Neighbours in every representation of those rows that are ``outside``."""
    near = []
    for piece in row_blocks(X.shape[0], 1, max(PIECE // max(X.shape[1], 1), LEAST_ROWS)):
        rows = X[piece][outside[piece]]
        new = {name: each(rows) for name, each in view.representations.items()}
        near.append(nearest_of_new(new, k, view.pivot, view.mapped))
    return [_in_sample(near, name, view) for name in view.representations]


def _in_sample(near: Sequence[Mapping[str, Neighbours]], name: str, view: MendView) -> Neighbours:
    """Neighbours in a representation, by their numbers in the sample."""
    xp = array_namespace(view.rows)
    indices = xp.concat([found[name].indices for found in near])
    distances = xp.concat([found[name].squared_distances for found in near])
    return Neighbours(view.rows[indices], distances)


# ------------------------------------------------------------------ between the passes


def views_of_all_rows(sums: Sums, sample: Sequence[MendView]) -> tuple[MendView, ...]:
    """The views of a graph sample with kernels turned on the axes of the features of all rows.

    ``sums`` are those of `sums_by_view` over all blocks. On these axes the features of all rows
    sum to zero, and their Gram matrix is diagonal. Features are not needed for that.
    """
    sums = on_host(sums)
    turned = []
    for v, view in enumerate(sample):
        n_rows, linear = float(sums[f"n {v}"]), to_numpy(view.kernel.linear)
        mean = sums[f"total {v}"] / n_rows
        gram = sums[f"gram {v}"] - n_rows * np.outer(mean, mean)
        # On one thread, as everywhere: the digits must not depend on their number.
        with serial_blas():
            spectrum, rotation = scipy.linalg.eigh(linear.T @ gram @ linear, driver="evd")
            linear = linear @ rotation
        kernel = replace(
            view.kernel,
            centre=view.kernel.centre + mean,
            linear=linear,
            spectrum=np.maximum(spectrum, 0),
            n_rows=int(n_rows),
        )
        turned.append(replace(view, kernel=kernel))
    return tuple(turned)


@dataclass(frozen=True, eq=False)
class SampledGeometry(MendGeometry):
    """A geometry with all rows in its blocks, and that of the graph ``sample`` alone.

    ``raw_blocks`` are the rows that the blocks were made of, a column of `RawBlock`.
    """

    sample: MendGeometry
    raw_blocks: Column

    @property
    def raw(self) -> Column:
        """See `MendGeometry`."""
        return self.raw_blocks


def with_all_rows(
    sample: MendGeometry, turned: Sequence[MendView], blocks: Column, raw: Column
) -> SampledGeometry:
    """The geometry of a graph sample with the kernels and the ``blocks`` of all ``raw`` rows."""
    pairs = zip(sample.views, turned, strict=True)
    views = tuple(replace(view, kernel=of_all.kernel) for view, of_all in pairs)
    return SampledGeometry(views, sample.observed, blocks, sample, raw)


def join_rows(sample: MendGeometry, block: RawBlock, n_neighbours: int) -> SampledGeometry:
    """The same for rows in memory, where ``n_neighbours`` are looked for in the sample."""
    views = views_to_join(sample)
    turned = views_of_all_rows(sums_by_view(block, views), views)
    blocks = joined_block(block, ToJoin(turned, n_neighbours))
    return with_all_rows(sample, turned, blocks, block)


def graph_alone(geometry: MendGeometry) -> MendGeometry:
    """The geometry of the samples of the graph, without others."""
    return geometry.sample if isinstance(geometry, SampledGeometry) else geometry


def rows_in_graph(geometry: MendGeometry) -> np.ndarray:
    """Which rows in memory are the samples of the graph, (n_graph,) in their order there."""
    place = geometry.blocks.place
    if place is None:
        return np.arange(len(geometry.observed))
    place = to_numpy(place)
    rows = np.flatnonzero(place >= 0)
    return np.asarray(rows[np.argsort(place[rows])])
