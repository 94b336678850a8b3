"""The recipe of `MendClassifier`, stage by stage, from neighbour graphs to classes.

Every view has several representations, each of which gives a neighbour graph among the samples that
the view has. Labels spread over the sum of the graphs; the classes that result decide how far each
graph, and each edge, is trusted. Then the classes are regressed on each view, and every sample is
predicted without itself. These predictions, from the views that a sample has, are the evidence for
its class. The evidence also joins samples that share no view: Mend uses it where AGF-TI imputes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from viewmend.backend.namespace import Array
from viewmend.callbacks.notify import reason_to_stop
from viewmend.core.common.rows import Column
from viewmend.core.graphs.spreading import spread_over
from viewmend.core.mend.evidence import Evidence, combined_rows, gather_evidence, with_labels
from viewmend.core.mend.groups import agreement_of_views
from viewmend.core.mend.homophily import (
    Guide,
    class_affinities,
    homophily_above_chance,
    total_weight,
)
from viewmend.core.mend.label_reading import (
    LabelReading,
    rare_class_in,
    reading_of_labels,
    share_read,
)
from viewmend.core.mend.labelling import Labelling
from viewmend.core.mend.samples import (
    MendSamples,
    Source,
    change,
    column_mass,
    find_consensus,
    scaled_columns,
    soft_labels,
)
from viewmend.core.mend.stage import (
    Mended,
    MendProgress,
    MendSettings,
    Stage,
    StageRecord,
    SummedGraph,
)

# Passes of label-guided spreading before there is evidence.
GUIDED_PASSES = 2
FIRST_STAGE, EVIDENCE_STAGE = "neighbours", "evidence"


@dataclass(frozen=True, eq=False)
class Spread:
    """Labels spread over a graph, whose edges something may have guided.

    ``F`` (n_samples, n_classes) are the soft labels of the samples of the graph, ``soft`` those of
    all samples, as a column, and ``mass`` (n_classes,) the sums of these.
    """

    graph: SummedGraph
    guide: Guide | None
    F: Array
    soft: Column
    mass: Array


# Called after each stage with what it did and its state; True, or a word for the status, stops.
Callback = Callable[[StageRecord, Stage], bool | str | None]


def mend(
    samples: MendSamples,
    labelling: Labelling,
    settings: MendSettings,
    callbacks: Iterable[Callback] = (),
    start: MendProgress | None = None,
) -> Mended:
    """Go through the stages of the recipe, or through those that are left.

    Parameters
    ----------
    samples : MendSamples
        What is known without labels, wherever it is.
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
    for stage in stages(samples, labelling, settings, start):
        progress = _with_stage(samples, progress, stage)
        stop = reason_to_stop(watchers, progress.history[-1], stage)
        if stop:
            break
    assert progress is not None, "the recipe has at least two stages"
    return Mended(progress.state, progress.history, stop or "done")


def stages(
    samples: MendSamples,
    labelling: Labelling,
    settings: MendSettings,
    start: MendProgress | None = None,
) -> Iterator[Stage]:
    """The stages of the recipe that are left, one by one; the caller decides how far to go.

    Parameters and shapes as in `mend`.
    """
    left = _stage_names(settings)[0 if start is None else len(start.history) :]
    stage = first_stage(samples, labelling, settings) if start is None else start.state
    if start is None:
        yield stage

    rows, power = samples.rows, settings.evidence_power
    reading = read_labels(samples, labelling, settings, stage) if EVIDENCE_STAGE in left else None
    labelling = given = replace(labelling, trust=stage.trust)
    if stage.name == EVIDENCE_STAGE:
        # A run that goes on: the noise is settled.
        labelling = given = replace(given, noise=stage.noise)
    if stage.doubted is not None:
        labelling = replace(given, Y=stage.doubted, in_doubt=True)
    trusted = sum_graphs(samples, _judged_weights(samples, stage, settings))
    for _ in range(left.count("homophily")):
        plain = spread(samples, trusted, labelling, settings, stage)
        yield (stage := classify("homophily", samples, plain, labelling, stage))

    for _ in range(left.count("guided")):
        # Every pass starts from the same graph: guiding guided edges would square their weights.
        guided = spread(samples, trusted, labelling, settings, stage)
        yield (stage := classify("guided", samples, guided, labelling, stage))

    for _ in range(left.count(EVIDENCE_STAGE)):
        # Scores -> targets -> regressions -> evidence -> graph and scores of the next round.
        targets = labelling.targets(rows, stage.P, stage.shares)
        evidence = with_labels(rows, regressed(samples, targets, stage), reading)
        labelling = given.doubted(rows, evidence.P)
        # The noise is settled once: evidence of doubted labels would confirm the doubt.
        given = replace(given, noise=labelling.noise)
        joined = join_consensus(samples, trusted, evidence, settings)
        guided = spread(samples, joined, labelling, settings, stage)
        yield (stage := classify(EVIDENCE_STAGE, samples, guided, labelling, stage, power))


def first_stage(samples: MendSamples, labelling: Labelling, settings: MendSettings) -> Stage:
    """Spread labels over all graphs with equal weights, and set how far to trust the prior.

    That is done here, once, because only these scores do not depend on the prior yet.
    """
    alike = sum_graphs(samples, np.ones(len(samples.graphs.edges)))
    equal = spread(samples, alike, labelling, settings)
    scores = column_scores(samples, equal)
    return classify(FIRST_STAGE, samples, equal, labelling.settled(samples.rows, scores))


def read_labels(
    samples: MendSamples, labelling: Labelling, settings: MendSettings, stage: Stage
) -> LabelReading | None:
    """What given labels alone say, where a class is rare and no groups of samples are found.

    A run that goes on after a later ``stage`` repeats the first one to know that.
    """
    if not rare_class_in(samples.rows, labelling.Y):
        return None
    first = stage if stage.name == FIRST_STAGE else first_stage(samples, labelling, settings)
    in_graph = replace(labelling, Y=samples.in_graph(labelling.Y))
    known = samples.graphs, len(samples.views), in_graph, first.shares
    agreement = agreement_of_views(*known, settings.spreading)
    within = homophily_above_chance(samples.graphs, samples.in_graph(first.classes))
    share = share_read(agreement, within)
    if share <= 0:
        return None
    return reading_of_labels(samples.rows, samples.raw, samples.views, labelling.Y, share)


def _judged_weights(samples: MendSamples, stage: Stage, settings: MendSettings) -> np.ndarray:
    """Weights (n_graphs,) by the classes of the first stage, which stay to the end."""
    if stage.name != FIRST_STAGE:
        return stage.graph_weights
    classes = samples.in_graph(stage.classes)
    return settings.weigh(samples.graphs, classes, settings.homophily_power)


def sum_graphs(samples: MendSamples, weights: np.ndarray) -> SummedGraph:
    """``sum_g weights_g graphs_g``, with its weights (n_graphs,)."""
    return SummedGraph(samples.graphs.weighted(weights), weights)


def regressed(samples: MendSamples, targets: Column, stage: Stage) -> Evidence:
    """Evidence of the views, by regression of soft targets (n_samples, n_classes) on each."""
    known = samples.blocks, samples.spectra, targets, stage.classes, stage.shares
    return gather_evidence(samples.rows, *known, samples.outlines)


def join_consensus(
    samples: MendSamples, graph: SummedGraph, evidence: Evidence, settings: MendSettings
) -> SummedGraph:
    """Add the consensus graph of the evidence, scaled to its share of the mass."""
    consensus = find_consensus(samples, evidence.P, settings.neighbours)
    mass = total_weight([(1.0, consensus.graph)])
    # Of two samples there is no graph.
    scale = settings.consensus_weight * total_weight(graph.parts) / mass if mass > 0 else 0.0
    return replace(graph, evidence=evidence, consensus=consensus, consensus_scale=scale)


def spread(
    samples: MendSamples,
    graph: SummedGraph,
    labelling: Labelling,
    settings: MendSettings,
    before: Stage | None = None,
) -> Spread:
    """Spread the labels over a graph, and from there to samples outside it.

    Edges are guided by the classes of the stage before, unless that is the first or the edge power
    is zero; its soft labels are what the solver starts from.
    """
    Y, guide = samples.in_graph(labelling.Y), None
    if before is not None and before.name != FIRST_STAGE and settings.edge_power != 0:
        classes = samples.in_graph(before.classes)
        A = class_affinities(graph.parts, classes, Y)
        guide = Guide(classes, A, settings.edge_floor, settings.edge_power)
        graph = graph.guided(guide)
    start = None if before is None else before.F
    F = spread_over(graph.parts, Y, settings.spreading, start)
    source = Source.of(F, graph, guide, settings.spreading)
    soft = samples.map(soft_labels, *_columns(graph.evidence), shared=source)
    mass = samples.rows.sums(column_mass, soft, shared=None)["mass"]
    return Spread(graph, guide, F, soft, mass)


def _columns(evidence: Evidence | None) -> tuple[Column, ...]:
    return () if evidence is None else (evidence.P,)


def column_scores(samples: MendSamples, labels: Spread) -> Column:
    """Soft labels with columns scaled to sum one, (n_samples, n_classes).

    The mass of a class grows with its number of labels, which need not match its size.
    """
    return samples.rows.map(scaled_columns, labels.soft, shared=labels.mass)


def classify(
    name: str,
    samples: MendSamples,
    labels: Spread,
    labelling: Labelling,
    before: Stage | None = None,
    evidence_power: float = 0.0,
) -> Stage:
    """The stage that spread labels, and the evidence of their graph if it has any, lead to.

    The class weights of the stage before are where those of this one are looked for.
    """
    rows, graph, P = samples.rows, labels.graph, column_scores(samples, labels)
    if graph.evidence is not None:
        P = rows.map(combined_rows, P, graph.evidence.P, shared=(labelling.prior, evidence_power))
    shares = _shares_to_aim_at(samples, P, labelling, before)
    found = labelling.assign(rows, P, shares, None if before is None else before.class_weights)
    return Stage(
        name=name,
        P=P,
        classes=found.classes,
        graph=graph,
        F=labels.F,
        mass=labels.mass,
        guide=labels.guide,
        shares=found.shares,
        class_weights=found.weights,
        trust=labelling.settled_trust,
        noise=labelling.noise or 0.0,
        doubted=labelling.Y if labelling.in_doubt else None,
    )


def _shares_to_aim_at(
    samples: MendSamples, P: Column, labelling: Labelling, before: Stage | None
) -> np.ndarray:
    """Class shares (n_classes,) for scores ``P``; those of the first round with evidence stay.

    The scores of a round repeat the shares that its targets had. If every round moved them a little
    towards the labels again, they would be there in the end, however little these are trusted.
    """
    if before is not None and before.name == EVIDENCE_STAGE:
        return before.shares
    return labelling.shares(samples.rows, P)


def final_weights(stage: Stage) -> np.ndarray:
    """Of the classes in the scores, (n_classes,): ones with evidence, which balances them well."""
    return stage.class_weights if stage.evidence is None else np.ones(len(stage.shares))


def n_stages(settings: MendSettings) -> int:
    """How many stages the recipe has."""
    return len(_stage_names(settings))


def _stage_names(settings: MendSettings) -> list[str]:
    """Two without labels' guidance, those with it, the rounds."""
    n_guided = GUIDED_PASSES if settings.edge_power > 0 else 0
    return [FIRST_STAGE, "homophily", *["guided"] * n_guided, *[EVIDENCE_STAGE] * settings.n_rounds]


def _with_stage(samples: MendSamples, before: MendProgress | None, stage: Stage) -> MendProgress:
    """One stage further."""
    history = () if before is None else before.history
    record = StageRecord(
        iteration=len(history) + 1,
        name=stage.name,
        change=change(samples, None if before is None else before.state.classes, stage.classes),
        graph_weights=tuple(float(weight) for weight in stage.graph_weights),
        view_r2=() if stage.evidence is None else stage.evidence.explained,
    )
    return MendProgress(stage, (*history, record))
