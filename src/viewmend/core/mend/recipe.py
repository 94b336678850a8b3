"""Mending: the recipe of `MendClassifier`, from neighbour graphs to classes.

Every view is looked at through several representations, each of which gives a neighbour graph
among the samples that the view has. Labels spread over the sum of the graphs, and the classes found
say which graphs, and which edges, to trust. Regressions of the classes on each view, every
sample predicted without itself, then give evidence for every sample from whatever views it has;
the evidence joins samples that share no view, and so stands where AGF-TI imputes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.sparse import csr_array

from viewmend.callbacks.notify import reason_to_stop
from viewmend.core.common.priors import (
    balance_classes,
    class_weights,
    normalise_columns,
    normalise_rows,
)
from viewmend.core.graphs.nearest import neighbour_search
from viewmend.core.graphs.neighbours import graph_from_neighbours
from viewmend.core.graphs.spreading import spread_labels, weighted_sum
from viewmend.core.mend.evidence import Evidence, gather_evidence
from viewmend.core.mend.geometry import Geometry, NeighbourRule
from viewmend.core.mend.homophily import class_affinities, guide_edges, homophily_weights

__all__ = [
    "Callback",
    "Labelling",
    "Mended",
    "Settings",
    "Stage",
    "StageRecord",
    "combine",
    "consensus_graph",
    "hellinger_points",
    "mend",
    "n_stages",
    "stages",
]

# Passes of label-guided spreading before there is evidence.
GUIDED_PASSES = 2


@dataclass(frozen=True)
class Settings:
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
        Power of the evidence in its product with what the graphs say.
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
    evidence: Evidence | None = None
    consensus_scale: float = 0.0


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


@dataclass(frozen=True, eq=False)
class Labelling:
    """What is known of the classes.

    Attributes
    ----------
    Y : array (n_samples, n_classes)
        One-hot rows of labelled samples, zero rows of the others.
    prior : array (n_classes,)
        Class shares, as far as they are known.
    trust : float in [0, 1] or None
        In the prior; the rest is in the shares that the scores have by themselves. None leaves it
        to `settled`.
    """

    Y: np.ndarray
    prior: np.ndarray
    trust: float | None = 1.0

    def settled(self, P: np.ndarray) -> Labelling:
        """With the trust that the prior, as the class shares of the labels, deserves.

        Pearson's ``X^2`` compares the label counts with those expected from the scores. Its mean is
        ``c - 1`` for labels drawn at random, more where they are no fair sample, and less where
        every class was given its share of labels; the trust is ``1 / (1 + X^2 / (c - 1))``.
        """
        if self.trust is not None:
            return self
        found = replace(self, trust=0.0).shares(P)
        chi_squared = self.Y.sum() * float(np.sum((self.prior - found) ** 2 / found))
        return replace(self, trust=1 / (1 + chi_squared / (len(found) - 1)))

    def shares(self, P: np.ndarray) -> np.ndarray:
        """Class shares to aim at, from the prior and from the classes of largest score."""
        scored = P[P.any(axis=1)]
        found = np.bincount(np.argmax(scored, axis=1), minlength=len(self.prior))
        # A class that no score favours is rare, not absent: it has labels.
        found = np.maximum(found, 1)
        if self.trust is None:
            msg = "trust must be a number here, got None; call settled first"
            raise ValueError(msg)
        return self.trust * self.prior + (1 - self.trust) * found / found.sum()

    def classes(self, P: np.ndarray) -> np.ndarray:
        """Classes in the shares to aim at; given labels are kept, -1 where a row is zero."""
        weighted = P * class_weights(P, self.shares(P))
        found = np.where(P.any(axis=1), np.argmax(weighted, axis=1), -1)
        return np.where(self.Y.any(axis=1), np.argmax(self.Y, axis=1), found)

    def targets(self, P: np.ndarray) -> np.ndarray:
        """Soft classes in the shares to aim at, sharpened; labels where they are given."""
        soft = balance_classes(normalise_rows(P) ** 2, self.shares(P))
        return np.where(self.Y.any(axis=1, keepdims=True), self.Y, soft)


# Called after each stage with what it did and its state; True, or a word for the status, stops.
Callback = Callable[[StageRecord, Stage], bool | str | None]


def mend(
    graphs: Sequence[csr_array],
    geometry: Geometry,
    labelling: Labelling,
    settings: Settings,
    callbacks: Iterable[Callback] = (),
) -> Mended:
    """Go through the stages of the recipe.

    Parameters
    ----------
    graphs : sequence of sparse array (n_samples, n_samples)
        From `view_graphs`, and any others.
    geometry : Geometry
        What else is known without labels.
    labelling : Labelling
    settings : Settings
    callbacks : iterable of callable
        Each is called as ``callback(record, stage)`` after a stage; a true answer stops.

    Returns
    -------
    Mended
    """
    watchers = tuple(callbacks)
    history: list[StageRecord] = []
    stop = None
    classes = np.full(len(labelling.Y), -1)
    for stage in stages(graphs, geometry, labelling, settings):
        history.append(_record(len(history) + 1, stage, classes))
        classes = stage.classes
        stop = reason_to_stop(watchers, history[-1], stage)
        if stop:
            break
    return Mended(stage, tuple(history), stop or "done")


def stages(
    graphs: Sequence[csr_array], geometry: Geometry, labelling: Labelling, settings: Settings
) -> Iterator[Stage]:
    """The recipe.

    Parameters and shapes as in `mend`.
    """
    s, Y = settings, labelling.Y

    def spread(
        name: str,
        W: csr_array,
        guide: np.ndarray | None = None,
        evidence: Evidence | None = None,
        scale: float = 0.0,
    ) -> Stage:
        nonlocal labelling
        A = None if guide is None or s.edge_power == 0 else class_affinities(W, guide, Y)
        W = W if A is None else guide_edges(W, A, A, s.edge_floor, s.edge_power)
        F = spread_labels(W, Y, s.spreading)
        P = normalise_columns(F)
        # Once, by scores that the prior has not shaped yet.
        labelling = labelling.settled(P)
        if evidence is not None:
            P = combine(P, evidence.P, labelling.prior, s.evidence_power)
        classes, shares = labelling.classes(P), labelling.shares(P)
        return Stage(name, P, classes, W, F, A, weights, shares, evidence, scale)

    weights = np.ones(len(graphs))
    yield (stage := spread("neighbours", weighted_sum(weights, graphs)))

    weights = s.weigh(graphs, stage.classes, s.homophily_power)
    W = weighted_sum(weights, graphs)
    yield (stage := spread("homophily", W))

    for _ in range(_guided_passes(s)):
        yield (stage := spread("guided", W, stage.classes))

    for _ in range(s.n_rounds):
        targets = labelling.targets(stage.P)
        evidence = gather_evidence(geometry, targets, stage.classes, stage.shares)
        consensus = consensus_graph(evidence.P, s.neighbours(*Y.shape))
        scale = s.consensus_weight * float(W.sum() / consensus.sum())
        joined = csr_array(W + scale * consensus)
        yield (stage := spread("evidence", joined, stage.classes, evidence, scale))


def n_stages(settings: Settings) -> int:
    """How many stages the recipe has: two without labels' guidance, those with it, the rounds."""
    return 2 + _guided_passes(settings) + settings.n_rounds


def _guided_passes(settings: Settings) -> int:
    return GUIDED_PASSES if settings.edge_power > 0 else 0


def consensus_graph(P: np.ndarray, k: int) -> csr_array:
    """Neighbour graph of the evidence, which has all samples, whatever views they miss.

    Parameters
    ----------
    P : array (n_samples, n_classes)
        Class shares, compared by Hellinger's distance.
    k : int
        Neighbours.
    """
    near = neighbour_search({"evidence": hellinger_points(P)}, k + 1)["evidence"]
    return graph_from_neighbours(near, k)


def hellinger_points(P: np.ndarray) -> np.ndarray:
    """Points whose Euclidean distances are Hellinger's between class shares, of float32."""
    return np.asarray(np.sqrt(P), dtype=np.float32)


def combine(P: np.ndarray, evidence: np.ndarray, prior: np.ndarray, power: float) -> np.ndarray:
    """``p_i e_i^power`` with rows scaled to sum one; without ``p_i`` the prior takes its place."""
    shares = normalise_rows(P)
    shares = np.where(shares.any(axis=1, keepdims=True), shares, prior)
    return normalise_rows(shares * evidence**power)


def _record(iteration: int, stage: Stage, classes_before: np.ndarray) -> StageRecord:
    change = float(np.mean(stage.classes != classes_before))
    r2 = () if stage.evidence is None else tuple(fit.r2 for fit in stage.evidence.fits)
    weights = tuple(float(weight) for weight in stage.graph_weights)
    return StageRecord(iteration, stage.name, change, weights, r2)
