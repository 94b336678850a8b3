"""All rows of a fit whose graphs are between some of them, the graph sample.

The sample has the geometry of a fit of its own, and its representations and kernels are taken for
all rows. Kernel features that are orthogonal over the sample are not over all rows; sums over all
rows say how to turn them. A row outside the sample is joined to its nearest rows there.

The kernels of the rows at the landmarks are not kept, so that many rows need little room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from viewmend.backend.namespace import Array, array_namespace, to_numpy
from viewmend.backend.threads import for_each, row_blocks, serial_blas
from viewmend.core.common.rows import Column, Sums
from viewmend.core.common.small_sums import beside, on_host, total
from viewmend.core.graphs.nearest import Neighbours, nearest_of_new
from viewmend.core.mend.blocks import MendBlock, OutsideRows, ViewRows
from viewmend.core.mend.geometry import MendGeometry, MendView, RawBlock
from viewmend.core.mend.kernel_features import KernelMap, mean_kernel
from viewmend.core.mend.loo_ridge import RIDGES, leverages_of

# Entries of a view that are represented and compared at a time; of rows at least that many.
PIECE, LEAST_ROWS = 2**20, 4096
# Rows whose products are summed in float32, and partial sums of these in float64.
GRAM_ROWS, N_HANDS = 1024, 8


@dataclass(frozen=True, eq=False)
class TurnedFeatures:
    """Features ``(phi - centre) rotation`` of a view, whose Gram matrix over all rows is diagonal.

    ``phi`` are those of the map of the sample, ``centre`` is (n_features,) and ``rotation``
    (n_features, n_features). ``kernel`` maps to the turned features directly.
    """

    centre: np.ndarray
    rotation: np.ndarray
    kernel: KernelMap


def views_to_join(geometry: MendGeometry) -> tuple[MendView, ...]:
    """What other rows need of the views of a graph sample."""
    return tuple(replace(view, neighbours={}) for view in geometry.views)


def mapped_block(block: RawBlock, shared: tuple[Sequence[MendView], int]) -> tuple[MendBlock, Sums]:
    """Task: rows with features by the sample's maps, neighbours in it, and sums over the rows.

    Parameters
    ----------
    block : RawBlock
        Its rows have a place, -1 outside the sample.
    shared : (sequence of MendView, int)
        Those of `views_to_join`, and how many neighbours are looked for.

    Returns
    -------
    MendBlock
        Its features are still to be turned, and have no leverages.
    dict
        By view: number of rows, sums of their kernels and features, products of the features.
    """
    assert block.place is not None, "rows are joined to a sample by their places"
    xp = array_namespace(block.observed)
    sample, k = shared
    rows, outside, near = [], [], []
    sums: dict[str, Array] = {}
    for v, (X_v, view) in enumerate(zip(block.views, sample, strict=True)):
        here = xp.nonzero(block.observed[:, v])[0]
        is_outside = block.place[here] < 0
        found = _mapped_rows(X_v, is_outside, view, k)
        rows.append(ViewRows(here, found.Phi, found.Phi[:, :0]))
        outside.append(here[is_outside])
        near.extend(found.near)
        sums |= {f"{name} {v}": numbers for name, numbers in found.sums.items()}
    hanging = OutsideRows(xp.nonzero(block.place < 0)[0], tuple(outside), tuple(near))
    return MendBlock(block.observed, tuple(rows), block.place, hanging), sums


@dataclass(frozen=True, eq=False)
class _Mapped:
    Phi: Array
    near: list[Neighbours]
    sums: dict[str, Any]


def _mapped_rows(X: Array, outside: Array, view: MendView, k: int) -> _Mapped:
    """Rows of a view (n_rows, n_features): features, and neighbours of those ``outside``."""
    xp = array_namespace(X)
    features, kernels, near = [], [], []
    for piece in _pieces(X):
        mapped = {name: each(X[piece]) for name, each in view.representations.items()}
        K = mean_kernel(mapped, view.kernel.landmarks, view.kernel.scales)
        kernels.append(total(K))
        features.append(view.kernel.features(K))
        new = {name: points[outside[piece]] for name, points in mapped.items()}
        near.append(nearest_of_new(new, k, view.pivot, view.mapped))
    Phi = xp.concat(features)
    sums = {
        "n_rows": Phi.shape[0],
        "kernel": sum(kernels),
        "features": total(Phi),
        "gram": _products(Phi),
    }
    return _Mapped(Phi, [_in_sample(near, name, view) for name in view.representations], sums)


def _products(Phi: Array) -> Array:
    """``Phi^T Phi`` of float64, from products of some rows of float32."""
    xp, n_features = array_namespace(Phi), Phi.shape[1]
    parts = row_blocks(Phi.shape[0], 1, GRAM_ROWS)

    def work(hand: list[slice]) -> Array:
        gram = xp.zeros((n_features, n_features), dtype=xp.float64, device=Phi.device)
        for part in hand:
            gram += Phi[part].T @ Phi[part]
        return gram

    # Few partial sums, in a fixed order, whatever the number of threads.
    return sum(for_each(work, [parts[i::N_HANDS] for i in range(min(N_HANDS, len(parts)))], xp))


def _in_sample(near: Sequence[Mapping[str, Neighbours]], name: str, view: MendView) -> Neighbours:
    """Neighbours in a representation, by their numbers in the sample."""
    xp = array_namespace(view.rows)
    indices = xp.concat([found[name].indices for found in near])
    distances = xp.concat([found[name].squared_distances for found in near])
    return Neighbours(view.rows[indices], distances)


def _pieces(X: Array) -> list[slice]:
    return row_blocks(X.shape[0], 1, max(PIECE // max(X.shape[1], 1), LEAST_ROWS))


def turn_features(sums: Sums, sample: Sequence[MendView]) -> tuple[TurnedFeatures, ...]:
    """The axes of the features of all rows, from the sums of `mapped_block` over all blocks."""
    sums = on_host(sums)
    turned = []
    for v, view in enumerate(sample):
        n_rows = float(sums[f"n_rows {v}"])
        centre = sums[f"features {v}"] / n_rows
        gram = sums[f"gram {v}"] - n_rows * np.outer(centre, centre)
        # On one thread, as everywhere: the digits must not depend on their number.
        with serial_blas():
            spectrum, rotation = scipy.linalg.eigh(gram, driver="evd")
        kernel = replace(
            view.kernel,
            centre=sums[f"kernel {v}"] / n_rows,
            linear=to_numpy(view.kernel.linear) @ rotation,
            spectrum=np.maximum(spectrum, 0),
            n_rows=int(n_rows),
        )
        turned.append(TurnedFeatures(centre, rotation, kernel))
    return tuple(turned)


def turned_block(
    block: MendBlock, turned: Sequence[TurnedFeatures], Phi: Sequence[Array]
) -> MendBlock:
    """The block with features on the axes of all rows, and their leverages.

    The features of every view are written to its ``Phi`` (n_seen_v, n_features_v), which may be
    those of the block.
    """
    parts = zip(block.views, turned, Phi, strict=True)
    return replace(block, views=tuple(_turned_rows(*each) for each in parts))


def _turned_rows(rows: ViewRows, axes: TurnedFeatures, out: Array) -> ViewRows:
    xp = array_namespace(rows.Phi)
    shape = (rows.Phi.shape[0], len(RIDGES))
    leverages = xp.empty(shape, dtype=xp.float32, device=rows.Phi.device)
    # Piece by piece, so that there is no third array of all rows.
    for piece in _pieces(rows.Phi):
        Phi = xp.astype(rows.Phi[piece], xp.float32)
        Phi = (Phi - beside(axes.centre, Phi)) @ beside(axes.rotation, Phi)
        leverages[piece] = leverages_of(Phi, axes.kernel.spectrum, axes.kernel.n_rows)
        out[piece] = xp.astype(Phi, out.dtype)
    return ViewRows(rows.rows, out, leverages)


@dataclass(frozen=True, eq=False)
class SampledGeometry(MendGeometry):
    """A geometry with all rows in its blocks, and that of the graph ``sample`` alone."""

    sample: MendGeometry


def with_all_rows(
    sample: MendGeometry, turned: Sequence[TurnedFeatures], blocks: Column
) -> SampledGeometry:
    """The geometry of a graph sample with all rows in its ``blocks``, and their features."""
    pairs = zip(sample.views, turned, strict=True)
    views = tuple(replace(view, kernel=axes.kernel) for view, axes in pairs)
    return SampledGeometry(views, sample.observed, blocks, sample)


def join_rows(sample: MendGeometry, block: RawBlock, n_neighbours: int) -> SampledGeometry:
    """The same for rows in memory, where ``n_neighbours`` are looked for in the sample."""
    views = views_to_join(sample)
    mapped, sums = mapped_block(block, (views, n_neighbours))
    turned = turn_features(sums, views)
    in_place = [rows.Phi for rows in mapped.views]
    return with_all_rows(sample, turned, turned_block(mapped, turned, in_place))


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
