"""The recipe of `MendClassifier`, stage by stage, from neighbour graphs to classes.

Every view has several representations, each of which gives a neighbour graph among the samples that
the view has. Labels spread over the sum of the graphs; the classes that result decide how far each
graph, and each edge, is trusted. Then the classes are regressed on each view, and every sample is
predicted without itself. These predictions, from the views that a sample has, are the evidence for
its class. The evidence also joins samples that share no view: Mend uses it where AGF-TI imputes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from viewmend.callbacks.notify import reason_to_stop
from viewmend.core.common.class_shares import class_weights, normalise_columns
from viewmend.core.graphs.spreading import spread_labels, weighted_sum
from viewmend.core.mend.evidence import Evidence, combine, consensus_graph, gather_evidence
from viewmend.core.mend.geometry import MendGeometry, NeighbourRule
from viewmend.core.mend.homophily import class_affinities, guide_edges, homophily_weights
from viewmend.core.mend.labelling import Labelling

# Passes of label-guided spreading before there is evidence.
GUIDED_PASSES = 2
FIRST_STAGE = "neighbours"


@dataclass(frozen=True)
class MendSettings:
    """Constants of the recipe; the same for all data.

    Attributes
    ----------
    neighbours : NeighbourRule
        How many neighbours a sample has in a graph.
    spreading : float
        How far labels travel.
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
    weigh: Callable[[Sequence[csr_array], np.ndarray, float], np.ndarray] = homophily_weights
    homophily_power: float = 2.0
    edge_floor: float = 0.05
    edge_power: float = 0.0
    n_rounds: int = 8
    consensus_weight: float = 0.5
    evidence_power: float = 0.5


@dataclass(frozen=True, eq=False)
class Stage:
    """The state after one stage of the recipe.

    Attributes
    ----------
    name : str
        "neighbours", "homophily", "guided" or "evidence".
    P : array (n_samples, n_classes)
        Scores; zero rows for samples that no label reaches.
    classes : array (n_samples,) of int
        Classes in the shares of the prior; -1 where there is no score.
    W : sparse array (n_samples, n_samples)
        The graph that the labels spread over.
    F : array (n_samples, n_classes)
        Soft labels on it, before columns were scaled.
    A : array (n_samples, n_classes) or None
        Class affinities that guided its edges, if any did.
    graph_weights : array (n_graphs,)
    shares : array (n_classes,)
        Class shares aimed at.
    trust : float
        In the prior, as the first stage settled it.
    evidence : Evidence or None
    consensus_scale : float
        Factor of the consensus graph of the evidence within ``W``.
    """

    name: str
    P: np.ndarray
    classes: np.ndarray
    W: csr_array
    F: np.ndarray
    A: np.ndarray | None
    graph_weights: np.ndarray
    shares: np.ndarray
    trust: float
    evidence: Evidence | None = None
    consensus_scale: float = 0.0


@dataclass(frozen=True, eq=False)
class SummedGraph:
    """A symmetric graph ``W`` between all samples, and what it is the sum of.

    The graphs of views and representations, times their ``weights`` (n_graphs,), and the consensus
    graph of the evidence, times its scale, if there is any.
    """

    W: csr_array
    weights: np.ndarray
    evidence: Evidence | None = None
    consensus_scale: float = 0.0


@dataclass(frozen=True, eq=False)
class Spread:
    """Soft labels ``F`` (n_samples, n_classes), spread over the graph ``W``.

    ``W`` is ``graph.W``, with edges guided by the class affinities ``A`` (n_samples, n_classes) if
    there are any.
    """

    graph: SummedGraph
    A: np.ndarray | None
    W: csr_array
    F: np.ndarray

    @property
    def scores(self) -> np.ndarray:
        """``F`` with columns scaled to sum one, (n_samples, n_classes).

        The mass of a class grows with its number of labels, which need not match its size.
        """
        return normalise_columns(self.F)


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
    """How far the recipe has come: the last stage, which is all it needs to go on, and the record.

    There is at least one stage.
    """

    state: Stage
    history: tuple[StageRecord, ...]

    def converted(self, _convert: Callable[[Any], Any]) -> MendProgress:
        """The same: the recipe knows arrays of one library."""
        return self


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


# Called after each stage with what it did and its state; True, or a word for the status, stops.
Callback = Callable[[StageRecord, Stage], bool | str | None]


def mend(
    graphs: Sequence[csr_array],
    geometry: MendGeometry,
    labelling: Labelling,
    settings: MendSettings,
    callbacks: Iterable[Callback] = (),
    start: MendProgress | None = None,
) -> Mended:
    """Go through the stages of the recipe, or through those that are left.

    Parameters
    ----------
    graphs : sequence of sparse array (n_samples, n_samples)
        From `view_graphs`, and any others.
    geometry : MendGeometry
        What else is known without labels.
    labelling : Labelling
    settings : MendSettings
    callbacks : iterable of callable
        Each is called as ``callback(record, stage)`` after a stage; a true answer stops.
    start : MendProgress, optional
        Stages of an earlier run on the same input, after which to go on.

    Returns
    -------
    Mended
    """
    watchers = tuple(callbacks)
    progress, stop = start, None
    for stage in stages(graphs, geometry, labelling, settings, start):
        progress = _with_stage(progress, stage)
        stop = reason_to_stop(watchers, progress.history[-1], stage)
        if stop:
            break
    assert progress is not None, "the recipe has at least two stages"
    return Mended(progress.state, progress.history, stop or "done")


def stages(
    graphs: Sequence[csr_array],
    geometry: MendGeometry,
    labelling: Labelling,
    settings: MendSettings,
    start: MendProgress | None = None,
) -> Iterator[Stage]:
    """The stages of the recipe that are left, one by one; the caller decides how far to go.

    Parameters and shapes as in `mend`.
    """
    done = () if start is None else start.history
    left = _stage_names(settings)[len(done) :]
    stage = first_stage(graphs, labelling, settings) if start is None else start.state
    if start is None:
        yield stage

    labelling = replace(labelling, trust=stage.trust)
    trusted = sum_graphs(graphs, _judged_weights(graphs, stage, settings))
    for _ in range(left.count("homophily")):
        yield (stage := classify("homophily", spread(trusted, labelling.Y, settings), labelling))

    for _ in range(left.count("guided")):
        # Every pass starts from the same graph: guiding guided edges would square their weights.
        guided = spread(trusted, labelling.Y, settings, guide=stage.classes)
        yield (stage := classify("guided", guided, labelling))

    for _ in range(left.count("evidence")):
        # Scores -> targets -> regressions -> evidence -> graph and scores of the next round.
        targets = labelling.targets(stage.P)
        evidence = gather_evidence(geometry, targets, stage.classes, stage.shares)
        joined = join_consensus(trusted, evidence, settings)
        guided = spread(joined, labelling.Y, settings, guide=stage.classes)
        yield (stage := classify("evidence", guided, labelling, settings.evidence_power))


def first_stage(graphs: Sequence[csr_array], labelling: Labelling, settings: MendSettings) -> Stage:
    """Spread labels over all graphs alike, and settle the trust in the prior.

    That is done here, once, because only these scores are not yet shaped by the prior that they
    judge.
    """
    equal = spread(sum_graphs(graphs, np.ones(len(graphs))), labelling.Y, settings)
    return classify(FIRST_STAGE, equal, labelling.settled(equal.scores))


def _judged_weights(
    graphs: Sequence[csr_array], stage: Stage, settings: MendSettings
) -> np.ndarray:
    """Weights (n_graphs,) by the classes of the first stage, which stay to the end."""
    if stage.name != FIRST_STAGE:
        return stage.graph_weights
    return settings.weigh(graphs, stage.classes, settings.homophily_power)


def sum_graphs(graphs: Sequence[csr_array], weights: np.ndarray) -> SummedGraph:
    """``sum_g weights_g graphs_g``, with its weights (n_graphs,)."""
    return SummedGraph(weighted_sum(weights, graphs), weights)


def join_consensus(graph: SummedGraph, evidence: Evidence, settings: MendSettings) -> SummedGraph:
    """Add the consensus graph of the evidence, scaled to its share of the mass."""
    consensus = consensus_graph(evidence.P, settings.neighbours(*evidence.P.shape))
    scale = settings.consensus_weight * float(graph.W.sum() / consensus.sum())
    W = csr_array(graph.W + scale * consensus)
    return SummedGraph(W, graph.weights, evidence, scale)


def spread(
    graph: SummedGraph, Y: np.ndarray, settings: MendSettings, guide: np.ndarray | None = None
) -> Spread:
    """Spread the labels ``Y``, over edges that agree with the classes ``guide`` if these are given.

    They are the classes (n_samples,) of the stage before, -1 where unknown; not read if the edge
    power is zero.
    """
    A, W = None, graph.W
    if guide is not None and settings.edge_power != 0:
        A = class_affinities(W, guide, Y)
        W = guide_edges(W, A, A, settings.edge_floor, settings.edge_power)
    return Spread(graph, A, W, spread_labels(W, Y, settings.spreading))


def classify(name: str, labels: Spread, labelling: Labelling, evidence_power: float = 0.0) -> Stage:
    """The stage that spread labels, and the evidence of their graph if it has any, lead to."""
    graph, P = labels.graph, labels.scores
    if graph.evidence is not None:
        P = combine(P, graph.evidence.P, labelling.prior, evidence_power)
    return Stage(
        name=name,
        P=P,
        classes=labelling.classes(P),
        W=labels.W,
        F=labels.F,
        A=labels.A,
        graph_weights=graph.weights,
        shares=labelling.shares(P),
        trust=labelling.settled_trust,
        evidence=graph.evidence,
        consensus_scale=graph.consensus_scale,
    )


def final_weights(stage: Stage) -> np.ndarray:
    """Of the classes in the scores, (n_classes,): ones with evidence, which balances them well."""
    if stage.evidence is None:
        return class_weights(stage.P, stage.shares)
    return np.ones(len(stage.shares))


def n_stages(settings: MendSettings) -> int:
    """How many stages the recipe has."""
    return len(_stage_names(settings))


def _stage_names(settings: MendSettings) -> list[str]:
    """Two without labels' guidance, those with it, the rounds."""
    n_guided = GUIDED_PASSES if settings.edge_power > 0 else 0
    return [FIRST_STAGE, "homophily", *["guided"] * n_guided, *["evidence"] * settings.n_rounds]


def _with_stage(before: MendProgress | None, stage: Stage) -> MendProgress:
    """One stage further."""
    history = () if before is None else before.history
    # Before the first stage no class is known, so that all of them count as changed.
    classes_before = -1 if before is None else before.state.classes
    record = StageRecord(
        iteration=len(history) + 1,
        name=stage.name,
        change=float(np.mean(stage.classes != classes_before)),
        graph_weights=tuple(float(weight) for weight in stage.graph_weights),
        view_r2=() if stage.evidence is None else tuple(fit.r2 for fit in stage.evidence.fits),
    )
    return MendProgress(stage, (*history, record))
