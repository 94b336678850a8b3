"""Regressions on the labelled samples alone: where they know more than the graphs, they come first.

The rounds of the recipe learn from what the graphs say of samples without a label. Where most
columns are noise, or differences between laboratories move all of them, neighbours share a class
hardly more often than any two samples do, and the rounds would only confirm such graphs. Labels
that neither side has seen tell which of the two to begin with.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from viewmend.backend.namespace import Array, array_namespace
from viewmend.core.common.rows import Column
from viewmend.core.graphs.spreading import spread_over
from viewmend.core.mend.blocks import MendBlock
from viewmend.core.mend.evidence import Evidence, combined_rows, fuse_scores, mean_scores
from viewmend.core.mend.labelling import Labelling
from viewmend.core.mend.loo_ridge import regress_views
from viewmend.core.mend.samples import MendSamples
from viewmend.core.mend.stage import MendSettings, Stage, SummedGraph

# Ridges tried, per label. With smaller ones a few labels are fitted exactly, and no error is left
# that leave-one-out could enlarge.
LABEL_RIDGES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
# Features of a view that are regressed on, those of most variance: few labels tell of no more.
MOST_FEATURES = 256
# Parts that the labels are dealt into; each is found by spreading the others.
N_FOLDS = 3


def begin_with_labels(
    samples: MendSamples,
    labelling: Labelling,
    graph: SummedGraph,
    stage: Stage,
    settings: MendSettings,
) -> Stage:
    """The stage that the rounds start from: as it is, or with evidence of labels alone in it.

    The latter if regressions on the labelled samples find more held-out labels than the graph.
    """
    evidence = evidence_of_labels(samples, labelling)
    if not finds_more(samples, labelling, graph, evidence, settings.spreading):
        return stage
    shared = (labelling.prior, settings.evidence_power)
    P = samples.rows.map(combined_rows, stage.P, evidence.P, shared=shared)
    found = labelling.assign(samples.rows, P, stage.class_weights)
    return replace(
        stage, P=P, classes=found.classes, shares=found.shares, class_weights=found.weights
    )


def evidence_of_labels(samples: MendSamples, labelling: Labelling) -> Evidence:
    """Evidence of the views by regressions that no sample without a label takes part in."""
    rows, Y = samples.rows, labelling.Y
    blocks = rows.map(strongest_features, samples.blocks, shared=MOST_FEATURES)
    spectra = [spectrum[-MOST_FEATURES:] for spectrum in samples.spectra]
    codes = rows.map(label_codes, Y, shared=None)
    fits, Z = regress_views(rows, blocks, spectra, Y, codes, LABEL_RIDGES)
    return fuse_scores(rows, samples.outlines, (fits, Z), codes, labelling.prior)


def finds_more(
    samples: MendSamples,
    labelling: Labelling,
    graph: SummedGraph,
    evidence: Evidence,
    spreading: float,
) -> bool:
    """Whether regressions on labels find more of them than the graph, each left out.

    They must lead by more than one standard deviation of a fair coin's, tossed for every label that
    only one side finds.
    """
    Y = samples.in_graph(labelling.Y)
    xp = array_namespace(Y)
    # The Gaussian model of the evidence has seen all labels; the mean of the scores has not.
    mean = samples.rows.map(mean_scores, samples.outlines, evidence.Z, shared=evidence.view_weights)
    by_regression = _found(samples.in_graph(mean), Y)
    by_graph = _found(held_out_labels(graph, Y, spreading), Y)
    ahead = int(xp.sum(by_regression & ~by_graph))
    behind = int(xp.sum(by_graph & ~by_regression))
    return bool(ahead - behind > np.sqrt(ahead + behind))


def held_out_labels(graph: SummedGraph, Y: Array, spreading: float) -> Array:
    """Soft labels (n_samples, n_classes) of labelled samples, each by the labels of other folds.

    ``Y`` (n_samples, n_classes) has one-hot rows of labelled samples, zero rows of the others,
    which stay zero. Columns are scaled to sum one.
    """
    xp = array_namespace(Y)
    # Those of a class in turn, in the order of the samples.
    folds = xp.sum(Y * xp.cumulative_sum(Y, axis=0), axis=1, keepdims=True) % N_FOLDS
    held_out = xp.zeros_like(Y)
    for fold in range(N_FOLDS):
        left = xp.astype(folds != fold, Y.dtype)
        F = xp.astype(spread_over(graph.parts, Y * left, spreading), Y.dtype)
        mass = xp.sum(F, axis=0)
        F = F / xp.where(mass > 0, mass, xp.ones_like(mass))
        held_out = held_out + F * (1 - left) * xp.sum(Y, axis=1, keepdims=True)
    return held_out


def _found(scores: Array, Y: Array) -> Array:
    """Which labelled samples have their largest score in their own class, (n_samples,) of bool."""
    xp = array_namespace(Y)
    labelled, scored = xp.any(Y > 0, axis=1), xp.any(scores != 0, axis=1)
    return labelled & scored & (xp.argmax(scores, axis=1) == xp.argmax(Y, axis=1))


# ------------------------------------------------------------------ tasks


def strongest_features(block: MendBlock, most: int) -> MendBlock:
    """A block with the last ``most`` features of every view; their variances ascend."""
    views = tuple(replace(view, Phi=view.Phi[:, -most:]) for view in block.views)
    return replace(block, views=views)


def label_codes(Y: Array, _shared: None) -> Column:
    """Classes (n_rows,) of int of one-hot rows; -1 of rows of zeros."""
    xp = array_namespace(Y)
    codes = xp.argmax(Y, axis=1)
    return xp.where(xp.any(Y > 0, axis=1), codes, xp.full_like(codes, -1))
