"""Settings of the recipe of `MendClassifier`, and its state after a stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from viewmend.backend.namespace import Array
from viewmend.core.common.records import converted
from viewmend.core.common.rows import Column
from viewmend.core.graphs.graph import Graph, GraphUnion
from viewmend.core.mend.evidence import Evidence
from viewmend.core.mend.geometry import NeighbourRule, ToDevice
from viewmend.core.mend.homophily import Guide, guide_edges, homophily_weights
from viewmend.core.mend.share_trust import Trust


@dataclass(frozen=True, eq=False)
class Consensus:
    """The graph between samples of similar evidence, even if they have no view in common.

    ``points`` (n_samples, n_classes) are what samples were compared by, ``k`` is how many
    neighbours each has.
    """

    graph: Graph
    points: Array
    k: int


@dataclass(frozen=True)
class MendSettings:
    """Constants of the recipe; the same for all data.

    Attributes
    ----------
    neighbours : NeighbourRule
        How many neighbours a sample has in a graph.
    spreading : float
        How far labels spread.
    weigh : callable
        ``(graphs, classes, homophily_power) -> weights`` (n_graphs,) of the graphs.
    homophily_power : float
    edge_floor, edge_power : float
        Of the label-guided edges; with power zero, no edge is guided.
    n_rounds : int
        Rounds with the evidence of the views.
    consensus_weight : float
        Mass of the consensus graph relative to that of all view graphs.
    evidence_power : float
        Power of the evidence in its product with the scores of the graphs.
    """

    neighbours: NeighbourRule = field(default_factory=NeighbourRule)
    spreading: float = 0.99
    weigh: Callable[[GraphUnion, Array, float], np.ndarray] = homophily_weights
    homophily_power: float = 2.0
    edge_floor: float = 0.05
    edge_power: float = 0.0
    n_rounds: int = 8
    consensus_weight: float = 0.5
    evidence_power: float = 0.5


@dataclass(frozen=True, eq=False)
class SummedGraph:
    """A symmetric graph between the samples, and what it is the sum of.

    ``trusted`` is the sum of the graphs of views and representations, times their ``weights``
    (n_graphs,). The consensus graph of the evidence, if there is any, comes with its scale.
    """

    trusted: Graph
    weights: np.ndarray
    evidence: Evidence | None = None
    consensus: Consensus | None = None
    consensus_scale: float = 0.0

    @property
    def parts(self) -> tuple[tuple[float, Graph], ...]:
        """What is added up, each with its factor."""
        trusted = (1.0, self.trusted)
        if self.consensus is None:
            return (trusted,)
        return trusted, (self.consensus_scale, self.consensus.graph)

    def guided(self, guide: Guide) -> SummedGraph:
        """The same, of which edges between samples of unlike affinities have faded."""
        trusted = guide_edges(self.trusted, guide)
        if self.consensus is None:
            return replace(self, trusted=trusted)
        consensus = replace(self.consensus, graph=guide_edges(self.consensus.graph, guide))
        return replace(self, trusted=trusted, consensus=consensus)


@dataclass(frozen=True, eq=False)
class Stage:
    """The state after one stage of the recipe.

    Columns have a row per sample, arrays one per sample of the graph; where all samples are in the
    graph, both are the same.

    Attributes
    ----------
    name : str
        "neighbours", "homophily", "guided" or "evidence".
    P : column (n_samples, n_classes)
        Scores; zero rows for samples that no label reaches.
    classes : column (n_samples,) of int
        Classes in the shares of the prior; -1 where there is no score.
    graph : SummedGraph
        The graph that the labels spread over, its edges guided if any are; it has the evidence.
    F : array (n_samples, n_classes)
        Soft labels on it, before columns were scaled.
    mass : array (n_classes,)
        Sums of the columns of the soft labels of all samples, by which they were scaled.
    guide : Guide or None
        What guided its edges, if anything did.
    shares : array (n_classes,)
        Class shares aimed at.
    class_weights : array (n_classes,)
        Factors of the scores that give the classes these shares.
    trust : tuple of three float
        In equal shares, in the prior and in those of the scores, as the first stage settled it.
    noise : float
        Share of the labels that were taken for wrong.
    doubted : column (n_samples, n_classes) or None
        Labels as far as they counted; None where they are not in doubt.
    """

    name: str
    P: Column
    classes: Column
    graph: SummedGraph
    F: Array
    mass: Array
    guide: Guide | None
    shares: np.ndarray
    class_weights: np.ndarray
    trust: Trust
    noise: float = 0.0
    doubted: Column | None = None

    @property
    def evidence(self) -> Evidence | None:
        """Of the views, if there is any yet."""
        return self.graph.evidence

    @property
    def graph_weights(self) -> np.ndarray:
        """Of views and representations, (n_graphs,)."""
        return self.graph.weights


@dataclass(frozen=True)
class StageRecord:
    """What one stage did.

    Attributes
    ----------
    iteration : int
        Counted from 1.
    name : str
    change : float
        Share of the samples whose class it changed.
    graph_weights : tuple of float
        One per view and representation.
    view_r2 : tuple of float
        Share of the targets' variance that each view explains; empty before there is evidence.
    """

    iteration: int
    name: str
    change: float
    graph_weights: tuple[float, ...]
    view_r2: tuple[float, ...] = ()

    def summary(self) -> str:
        """One line."""
        explained = " ".join(f"{r2:.3f}" for r2 in self.view_r2)
        line = f"stage {self.iteration}  {self.name:<10s}  changed {self.change:6.1%}"
        return f"{line}  explained {explained}" if explained else line


@dataclass(frozen=True, eq=False)
class MendProgress:
    """The progress of the recipe: the last stage, from which it can resume, and the record.

    There is at least one stage.
    """

    state: Stage
    history: tuple[StageRecord, ...]

    def converted(self, convert: Callable[[Any], Any]) -> MendProgress:
        """The same with arrays of another library, by a function of one array."""
        return replace(self, state=converted(self.state, convert))

    def on_device(self, to_device: ToDevice) -> MendProgress:
        """The same with all that has a row per sample copied to a device."""
        state, graph = self.state, self.state.graph
        moved = {name: to_device(getattr(state, name)) for name in ("P", "classes", "F")}
        moved["doubted"] = converted(state.doubted, to_device)
        return replace(
            self,
            state=replace(
                state,
                **moved,
                graph=replace(
                    graph,
                    trusted=converted(graph.trusted, to_device),
                    consensus=converted(graph.consensus, to_device),
                    evidence=_evidence_on_device(graph.evidence, to_device),
                ),
                guide=converted(state.guide, to_device),
            ),
        )


def _evidence_on_device(evidence: Evidence | None, to_device: ToDevice) -> Evidence | None:
    """Scores and shares are moved; regressions and Gaussians are small and stay on the host."""
    if evidence is None:
        return None
    return replace(evidence, P=to_device(evidence.P), Z=to_device(evidence.Z))


@dataclass(frozen=True, eq=False)
class Mended:
    """The end of the recipe.

    Attributes
    ----------
    stage : Stage
        The last one.
    history : tuple of StageRecord
    status : str
        "done", or "stopped" or another word of the callback that stopped it.
    """

    stage: Stage
    history: tuple[StageRecord, ...]
    status: str
