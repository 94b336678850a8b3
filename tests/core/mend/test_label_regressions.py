"""Regressions on labels alone: when the rounds begin with them, and that held-out labels are."""

from dataclasses import replace

import numpy as np
import pytest
from tests.core.small_mend import geometry_of, in_memory

from viewmend.core.graphs.spreading import spread_over
from viewmend.core.mend.evidence import mean_scores
from viewmend.core.mend.label_regressions import (
    MOST_FEATURES,
    N_FOLDS,
    begin_with_labels,
    evidence_of_labels,
    held_out_labels,
)
from viewmend.core.mend.labelling import Labelling
from viewmend.core.mend.recipe import stages
from viewmend.core.mend.stage import MendSettings

N, N_COLUMNS = 160, 60
SETTINGS = MendSettings(n_rounds=1)
PRIOR = np.array([0.5, 0.5])


def two_classes(of_class, of_batch, seed=0, n_labels=60):
    """Samples, labelling and classes of two views that classes and two batches move so far."""
    rng = np.random.default_rng(seed)
    y, batch = rng.permutation(np.arange(N) % 2), rng.integers(0, 2, N)
    views = [
        rng.normal(size=(N, N_COLUMNS))
        + np.outer(y, of_class * rng.normal(size=N_COLUMNS))
        + np.outer(batch, of_batch * rng.normal(size=N_COLUMNS))
        for _ in range(2)
    ]
    Y = (y[:, None] == np.arange(2)).astype(np.float32)
    Y[rng.permutation(N)[n_labels:]] = 0
    geometry = geometry_of(views, np.ones((N, 2), dtype=bool), n_landmarks=N)
    return in_memory(geometry, 2, SETTINGS), Labelling(Y, PRIOR), y


def after_graphs(samples, labelling):
    """The last stage before the rounds."""
    return list(stages(samples, labelling, replace(SETTINGS, n_rounds=0)))[-1]


def accuracy(stage, labelling, y):
    free = ~labelling.Y.any(axis=1)
    return np.mean(stage.classes[free] == y[free])


def test_rounds_begin_with_labels_where_graphs_follow_the_batch():
    samples, labelling, y = two_classes(of_class=0.4, of_batch=2.0)
    stage = after_graphs(samples, labelling)
    begun = begin_with_labels(samples, labelling, stage.graph, stage, SETTINGS)
    assert accuracy(begun, labelling, y) > accuracy(stage, labelling, y) + 0.15
    np.testing.assert_allclose(np.bincount(begun.classes) / N, begun.shares, atol=0.02)


def test_rounds_begin_with_graphs_that_know_the_classes():
    samples, labelling, _ = two_classes(of_class=2.0, of_batch=0.0, n_labels=12)
    stage = after_graphs(samples, labelling)
    assert begin_with_labels(samples, labelling, stage.graph, stage, SETTINGS) is stage


@pytest.mark.parametrize("n_labels", [16, 60])
def test_labels_of_noise_are_not_found(n_labels):
    """An error too small to be enlarged would find every label that was left out."""
    found = []
    for seed in range(4):
        samples, labelling, y = two_classes(0.0, 0.0, seed, n_labels)
        evidence = evidence_of_labels(samples, labelling)
        mean = mean_scores(samples.outlines, evidence.Z, evidence.view_weights)
        known = labelling.Y.any(axis=1)
        found.append(np.mean(np.argmax(mean[known], axis=1) == y[known]))
    assert np.mean(found) < 0.75


def test_samples_without_a_label_teach_nothing():
    """Regressions are those of ridge regression on the labelled rows by themselves."""
    samples, labelling, _ = two_classes(of_class=0.4, of_batch=0.0)
    evidence = evidence_of_labels(samples, labelling)
    known = labelling.Y.any(axis=1)
    Phi = samples.blocks.views[0].Phi[:, -MOST_FEATURES:].astype(float)
    fit, T = evidence.fits[0], labelling.Y[known]
    centre = Phi[known].mean(axis=0)
    gaps = Phi[known] - centre
    ridge = fit.ridge * known.sum() * np.eye(gaps.shape[1])
    slopes = np.linalg.solve(gaps.T @ gaps + ridge, gaps.T @ (T - T.mean(axis=0)))
    expected = (Phi[~known] - centre) @ slopes + T.mean(axis=0)
    np.testing.assert_allclose(evidence.Z[~known, 0], expected, atol=1e-4)


def test_a_held_out_label_is_found_by_the_others():
    samples, labelling, _ = two_classes(of_class=1.0, of_batch=0.0)
    graph, Y = after_graphs(samples, labelling).graph, labelling.Y
    found = held_out_labels(graph, Y, SETTINGS.spreading)
    assert not found[~Y.any(axis=1)].any()
    for c in range(2):
        first = np.flatnonzero(Y[:, c])[:N_FOLDS]
        for sample in first:
            # Its fold: every third label of each class, in the order of the samples.
            place = np.cumsum(Y, axis=0)[sample, c]
            fold = (np.cumsum(Y, axis=0) % N_FOLDS == place % N_FOLDS) & (Y > 0)
            F = spread_over(graph.parts, np.where(fold, 0, Y), SETTINGS.spreading)
            np.testing.assert_allclose(found[sample], F[sample] / F.sum(axis=0), rtol=1e-5)


def test_nothing_depends_on_the_order_of_the_classes():
    samples, labelling, _ = two_classes(of_class=0.4, of_batch=2.0)
    turned = Labelling(labelling.Y[:, ::-1].copy(), PRIOR)
    for one, other in zip(
        stages(samples, labelling, SETTINGS), stages(samples, turned, SETTINGS), strict=True
    ):
        np.testing.assert_array_equal(one.classes, 1 - other.classes)
