"""The samples of a fit as the recipe meets them: those of the graph, and those that hang on it.

Neighbour graphs are between the samples of the *graph sample*: all samples, or some where they are
too many. A sample outside is joined to its nearest samples of the graph and receives soft labels
from them; regressions and class shares treat it like any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from viewmend.backend.namespace import Array, array_namespace
from viewmend.core.common.rows import Column, Rows, Task
from viewmend.core.graphs.graph import Edges, GraphUnion, edges_of, symmetric_graph
from viewmend.core.graphs.nearest import nearest_points
from viewmend.core.mend.blocks import MendBlock
from viewmend.core.mend.evidence import hellinger_points
from viewmend.core.mend.geometry import MendGeometry, NeighbourRule, view_graphs
from viewmend.core.mend.homophily import Guide
from viewmend.core.mend.joining import JoinedRows, guided, spread_to, stacked
from viewmend.core.mend.stage import Consensus, SummedGraph


@dataclass(frozen=True, eq=False)
class MendSamples:
    """All that the recipe knows without labels, wherever it is.

    ``blocks`` is a column of `MendBlock`. ``graphs`` are between the samples of the graph sample.
    ``spectra`` (n_features_v,) are those of the kernel features of the views. ``edges`` is a column
    with the edges that join other samples to those of the graph, one `Edges` per graph.
    """

    rows: Rows
    blocks: Column
    graphs: GraphUnion
    spectra: tuple[np.ndarray, ...]
    edges: Column

    def map(self, task: Task, *columns: Column, shared: Any) -> Column:
        """``task(block, edges, ..., shared)`` of all rows."""
        return self.rows.map(task, self.blocks, self.edges, *columns, shared=shared)

    def in_graph(self, column: Column) -> Array:
        """Rows of a column that belong to samples of the graph, in their order there."""
        parts = self.rows.gather(_in_graph, self.blocks, column, shared=None)
        if len(parts) == 1 and parts[0][0] is None:
            return parts[0][1]
        places, values = zip(*parts, strict=True)
        xp = array_namespace(*values)
        order = xp.argsort(xp.concat(places))
        return xp.concat(values)[order]


def samples_of(
    rows: Rows, geometry: MendGeometry, n_classes: int, rule: NeighbourRule
) -> MendSamples:
    """The samples of a geometry, with as many neighbours as their number of classes asks for."""
    ks = tuple(rule(view.rows.shape[0], n_classes) for view in geometry.views)
    return MendSamples(
        rows,
        geometry.blocks,
        view_graphs(geometry, ks),
        tuple(view.kernel.spectrum for view in geometry.views),
        rows.map(outside_edges, geometry.blocks, shared=ks),
    )


def outside_edges(block: MendBlock, ks: tuple[int, ...]) -> tuple[Edges, ...]:
    """Task: edges of the rows outside the graph, ``ks`` per view, one entry per graph."""
    if block.outside is None:
        return ()
    near, per_view = block.outside.near, len(block.outside.near) // len(ks)
    return tuple(edges_of(each, ks[g // per_view]) for g, each in enumerate(near))


def _in_graph(block: MendBlock, values: Array, _shared: None) -> tuple[Array | None, Array]:
    """Places in the graph of the rows of a block that are in it, and their values."""
    if block.place is None:
        return None, values
    xp = array_namespace(block.place)
    inside = xp.nonzero(block.place >= 0)[0]
    return block.place[inside], values[inside]


@dataclass(frozen=True, eq=False)
class Source:
    """What samples outside the graph receive soft labels from.

    ``F`` (n_samples, n_classes) and ``degrees`` (n_samples,) are those of the ``graph``, whose
    edges a guide may have changed.
    """

    F: Array
    degrees: Array
    graph: SummedGraph
    guide: Guide | None
    spreading: float


def soft_labels(block: MendBlock, edges: tuple[Edges, ...], *evidence_and_source: Any) -> Array:
    """Task: soft labels (n_rows, n_classes) of all rows, the evidence of which may be given."""
    *evidence, source = evidence_and_source
    if block.place is None:
        return source.F
    joined = _joined(block, edges, evidence, source)
    if source.guide is not None:
        joined = guided(joined, source.guide)
    xp = array_namespace(source.F)
    outside = source.spreading * spread_to(joined, source.F, source.degrees)
    inside = (block.place >= 0)[:, None]
    return xp.where(inside, source.F[xp.where(block.place >= 0, block.place, 0)], outside)


def _joined(
    block: MendBlock, edges: tuple[Edges, ...], evidence: list[Array], source: Source
) -> JoinedRows:
    """Edges of the rows outside the graph: in every view they have, and by their evidence."""
    assert block.outside is not None, "a block with places has rows outside the graph"
    n_graphs_per_view = len(edges) // len(block.views)
    rows = [rows_v for rows_v in block.outside.views for _ in range(n_graphs_per_view)]
    n_rows = block.observed.shape[0]
    joined = stacked(edges, rows, source.graph.weights, n_rows)
    consensus = source.graph.consensus
    if consensus is None:
        return joined
    queries = hellinger_points(evidence[0][block.outside.rows])
    near = nearest_points(consensus.points, consensus.k + 1, queries=queries)
    scale = source.graph.consensus_scale
    return joined.with_edges(edges_of(near, consensus.k), block.outside.rows, scale)


def find_consensus(samples: MendSamples, P: Column, rule: NeighbourRule) -> Consensus:
    """Neighbour graph of the evidence, class shares ``P`` (n_samples, n_classes).

    They are compared by Hellinger's distance.
    """
    points = hellinger_points(samples.in_graph(P))
    k = rule(*points.shape)
    # One more than k: the weights are relative to the distance of the next neighbour.
    edges = edges_of(nearest_points(points, k + 1), k)
    return Consensus(symmetric_graph(edges, points.shape[0]), points, k)


def column_mass(soft: Array, _shared: None) -> dict[str, Array]:
    """Task: sums of the columns of soft labels."""
    xp = array_namespace(soft)
    return {"mass": xp.sum(soft, axis=0, dtype=xp.float64)}


def scaled_columns(soft: Array, mass: Array) -> Array:
    """Task: soft labels over the sums of their columns; columns of zeros stay zero."""
    xp = array_namespace(soft)
    some = mass > 0
    return xp.where(some, soft / xp.astype(xp.where(some, mass, 1.0), soft.dtype), 0.0)


def change(samples: MendSamples, before: Column | None, classes: Column) -> float:
    """Share of the samples whose class changed; before the first stage no class is known."""
    columns = (classes,) if before is None else (classes, before)
    sums = samples.rows.sums(_changed, *columns, shared=None)
    return float(sums["changed"]) / float(sums["rows"])


def _changed(classes: Array, *before_and_shared: Any) -> dict[str, Any]:
    before = before_and_shared[0] if len(before_and_shared) == 2 else -1
    xp = array_namespace(classes)
    return {"changed": xp.sum(classes != before), "rows": classes.shape[0]}
