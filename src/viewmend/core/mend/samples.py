"""The samples of a fit: those in the graph, and those outside that are joined to it.

Neighbour graphs are between the samples of the *graph sample*: all samples, or some where they are
too many. A sample outside is joined to its nearest samples of the graph and receives soft labels
from them; regressions and class shares treat it like any other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from viewmend.backend.namespace import Array, array_namespace
from viewmend.core.common.rows import Column, Rows, Task
from viewmend.core.common.small_sums import beside
from viewmend.core.graphs.graph import Edges, GraphUnion, edges_of, symmetric_graph
from viewmend.core.graphs.nearest import PointIndex, nearest_points
from viewmend.core.graphs.spreading import reached_by_labels
from viewmend.core.mend.blocks import MendBlock
from viewmend.core.mend.evidence import hellinger_points
from viewmend.core.mend.geometry import MendGeometry, MendView, NeighbourRule, view_graphs
from viewmend.core.mend.homophily import Guide, row_sums
from viewmend.core.mend.joining import JoinedRows, guided, spread_to, stacked
from viewmend.core.mend.labelling import Labelling
from viewmend.core.mend.stage import Consensus, Stage, SummedGraph


@dataclass(frozen=True, eq=False)
class MendSamples:
    """All that the recipe knows without labels, wherever it is.

    ``blocks`` is a column of `MendBlock`, and ``outlines`` the same without features, for all that
    needs none: blocks may wait on a disk. ``graphs`` are between the samples of the graph sample.
    ``spectra`` (n_features_v,) are those of the kernel features of the views. ``edges`` is a column
    with the edges that join other samples to those of the graph, one `Edges` per graph. ``raw`` is
    a column of `RawBlock`, of which little needs the rows, and ``views`` are those of the graph.
    """

    rows: Rows
    blocks: Column
    outlines: Column
    graphs: GraphUnion
    spectra: tuple[np.ndarray, ...]
    edges: Column
    raw: Column
    views: tuple[MendView, ...]

    def map(self, task: Task, *columns: Column, shared: Any) -> Column:
        """``task(outline, edges, ..., shared)`` of all rows."""
        return self.rows.map(task, self.outlines, self.edges, *columns, shared=shared)

    def in_graph(self, column: Column) -> Array:
        """Rows of a column that belong to samples of the graph, in their order there."""
        parts = self.rows.gather(_in_graph, self.outlines, column, shared=None)
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
        rows.map(without_neighbours, geometry.blocks, shared=None),
        rows.map(outlined, geometry.blocks, shared=None),
        view_graphs(geometry, ks),
        tuple(view.kernel.spectrum for view in geometry.views),
        rows.map(outside_edges, geometry.blocks, shared=ks),
        geometry.raw,
        geometry.views,
    )


def without_neighbours(block: MendBlock, _shared: None) -> MendBlock:
    """Task: a block that has the features and no neighbours, of which edges are made."""
    return replace(block, outside=None)


def outlined(block: MendBlock, _shared: None) -> MendBlock:
    """Task: a block that has neither features nor neighbours."""
    outside = None if block.outside is None else replace(block.outside, near=())
    return replace(block, views=(), outside=outside)


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

    ``F`` (n_samples, n_classes) and ``degrees`` (n_samples,) are those of the graph, whose edges a
    guide may have changed; ``weights`` (n_graphs,) are those of the graphs in it. ``index`` finds
    samples of similar evidence, as its consensus graph of that ``scale`` has them; None without.
    """

    F: Array
    degrees: Array
    weights: np.ndarray
    guide: Guide | None
    spreading: float
    index: PointIndex | None
    scale: float

    @classmethod
    def of(cls, F: Array, graph: SummedGraph, guide: Guide | None, spreading: float) -> Source:
        """Of soft labels on a graph; the graph itself would be much to send to every block."""
        consensus = graph.consensus
        # One more than k: the weights are relative to the distance of the next neighbour.
        index = None if consensus is None else PointIndex(consensus.points, consensus.k + 1)
        degrees, scale = row_sums(graph.parts), graph.consensus_scale
        return cls(F, degrees, graph.weights, guide, spreading, index, scale)


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
    rows_by_view = block.outside.views
    n_graphs_per_view = len(edges) // len(rows_by_view)
    rows = [rows_v for rows_v in rows_by_view for _ in range(n_graphs_per_view)]
    joined = stacked(edges, rows, source.weights, block.observed.shape[0])
    if source.index is None:
        return joined
    near = source.index.nearest(hellinger_points(evidence[0][block.outside.rows]))
    edges_by_evidence = edges_of(near, source.index.k - 1)
    return joined.with_edges(edges_by_evidence, block.outside.rows, source.scale)


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
    xp, mass = array_namespace(soft), beside(mass, soft)
    some = mass > 0
    return xp.where(some, soft / xp.where(some, mass, 1.0), 0.0)


def change(samples: MendSamples, before: Column | None, classes: Column) -> float:
    """Share of the samples whose class changed; before the first stage no class is known."""
    columns = (classes,) if before is None else (classes, before)
    sums = samples.rows.sums(_changed, *columns, shared=None)
    return float(sums["changed"]) / float(sums["rows"])


def _changed(classes: Array, *before_and_shared: Any) -> dict[str, Any]:
    before = before_and_shared[0] if len(before_and_shared) == 2 else -1
    xp = array_namespace(classes)
    return {"changed": xp.sum(classes != before), "rows": classes.shape[0]}


def reached_samples(samples: MendSamples, stage: Stage, labelling: Labelling) -> Column:
    """Which samples a path of the graph of a stage joins to a label, (n_samples,) of bool."""
    reached = reached_by_labels(stage.graph.parts, samples.in_graph(labelling.Y))
    xp = array_namespace(reached)
    # Soft labels that are positive where a label arrives.
    F = xp.astype(reached, xp.float32)[:, None]
    source = replace(Source.of(F, stage.graph, None, 1.0), degrees=xp.ones_like(F[:, 0]))
    columns = () if stage.evidence is None else (stage.evidence.P,)
    soft = samples.map(soft_labels, *columns, shared=source)
    return samples.rows.map(_positive, soft, shared=None)


def _positive(soft: Array, _shared: None) -> Array:
    return soft[:, 0] > 0
