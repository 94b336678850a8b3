"""The stages of the recipe: limits in which they are known methods, and what they keep."""

from dataclasses import replace

import numpy as np
import pytest
from tests.core.small_mend import MEMORY, dense, dense_graphs, geometry_of, in_memory

from viewmend.core.common import class_shares
from viewmend.core.common.class_shares import normalise_rows
from viewmend.core.common.scaling import unit_rows
from viewmend.core.graphs.neighbours import neighbour_graph, union_graph
from viewmend.core.graphs.spreading import spread_labels
from viewmend.core.mend.evidence import combine
from viewmend.core.mend.geometry import NeighbourRule
from viewmend.core.mend.labelling import Labelling
from viewmend.core.mend.recipe import mend, n_stages, stages
from viewmend.core.mend.samples import find_consensus
from viewmend.core.mend.stage import MendProgress, MendSettings
from viewmend.datasets import hide, make_multiview_blobs

N_SAMPLES, N_CLASSES = 160, 3
BLOBS = make_multiview_blobs(N_SAMPLES, n_views=3, noise=2.5, random_state=1)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.1, random_state=1)
OBSERVED = TASK.data.observed
Y = (TASK.y[:, None] == np.arange(N_CLASSES)).astype(np.float32)
PRIOR = np.array([0.45, 0.35, 0.2])
LABELLING = Labelling(Y, PRIOR)
GEOMETRY = geometry_of(TASK.data.views, OBSERVED, n_landmarks=60)
# With guided edges, so that every kind of stage is there.
SETTINGS = MendSettings(edge_power=2.0, n_rounds=3)
SAMPLES = in_memory(GEOMETRY, N_CLASSES, SETTINGS)
# Labels spread until a step changes no soft label of a sample by much.
SPREAD_ERROR = 1e-3


@pytest.fixture(scope="module")
def every_stage():
    return list(stages(SAMPLES, LABELLING, SETTINGS))


def run(labelling=LABELLING, **changes):
    """All stages with other settings."""
    return list(stages(SAMPLES, labelling, replace(SETTINGS, **changes)))


def class_weights(P, prior):
    return class_shares.class_weights(MEMORY, P, prior)


def shares_of(P):
    """Rows of sum one, in which scores of samples are compared."""
    return normalise_rows(np.asarray(P, dtype=np.float64))


def columns_scaled(F):
    """Every class with the same mass; each has some."""
    return F / F.sum(axis=0)


# ------------------------------------------------------------------ limits


def test_first_stage_is_label_spreading_on_the_union_graph():
    """One representation, equal weights, no guide, no evidence: nothing new is left."""
    k = 7
    geometry = geometry_of(TASK.data.views, OBSERVED, representations=("unit",))
    plain = MendSettings(
        neighbours=NeighbourRule(fewest=k, most=k), homophily_power=0.0, n_rounds=0
    )
    first, second = stages(in_memory(geometry, N_CLASSES, plain), LABELLING, plain)
    W = union_graph([unit_rows(view) for view in TASK.data.views], OBSERVED, k)
    P = columns_scaled(spread_labels(W, Y.astype(float), plain.spreading))
    for stage in (first, second):
        np.testing.assert_allclose(dense(stage.graph.parts), W.toarray(), atol=1e-4)
        np.testing.assert_allclose(shares_of(stage.P), shares_of(P), atol=SPREAD_ERROR)
    classes = np.argmax(P * class_weights(P, PRIOR), axis=1)
    classes[TASK.labelled] = TASK.y[TASK.labelled]
    assert np.mean(second.classes == classes) > 0.98


def test_neighbours_grow_with_the_class_size_within_their_bounds():
    rule = NeighbourRule(share=0.5, fewest=3, most=10)
    found = [rule(n_rows, n_classes) for n_rows, n_classes in [(60, 5), (20, 10), (1000, 5)]]
    assert found == [6, 3, 10]


def test_graphs_are_weighted_by_homophily_of_the_classes_before(every_stage):
    first, second = every_stage[:2]
    agree = first.classes[:, None] == first.classes
    graphs = dense_graphs(SAMPLES.graphs)
    q = np.array([W[agree].sum() / W.sum() for W in graphs])
    np.testing.assert_allclose(second.graph_weights, (q / q.max()) ** 2, rtol=1e-6)
    expected = sum(w * W for w, W in zip(second.graph_weights, graphs, strict=True))
    np.testing.assert_allclose(dense(second.graph.parts), expected, atol=1e-6)
    np.testing.assert_array_equal(first.graph_weights, 1)


def test_guided_stages_equal_the_dense_formula(every_stage):
    base, guided = every_stage[1], every_stage[2]
    W = dense(base.graph.parts)
    A = W @ (base.classes[:, None] == np.arange(N_CLASSES)) / W.sum(axis=1, keepdims=True)
    A[TASK.labelled] = Y[TASK.labelled]
    np.testing.assert_allclose(guided.guide.A, A, atol=1e-6)
    np.testing.assert_array_equal(guided.guide.classes, base.classes)
    expected = W * (0.05 + A @ A.T) ** 2
    np.testing.assert_allclose(dense(guided.graph.parts), expected, atol=1e-6)
    scale = 1 / np.sqrt(expected.sum(axis=1))
    system = np.eye(N_SAMPLES) - 0.99 * scale[:, None] * expected * scale
    F = np.linalg.solve(system, Y.astype(float))
    np.testing.assert_allclose(guided.F, F, atol=SPREAD_ERROR * F.max())
    np.testing.assert_allclose(shares_of(guided.P), shares_of(F / F.sum(axis=0)), atol=SPREAD_ERROR)


def test_each_guided_stage_starts_from_the_same_graph(every_stage):
    """The guide changes, the graph does not: guiding twice must not multiply."""
    base, _, second = every_stage[1:4]
    A = second.guide.A
    expected = dense(base.graph.parts) * (0.05 + A @ A.T) ** 2
    np.testing.assert_allclose(dense(second.graph.parts), expected, atol=1e-6)


def test_rounds_without_weight_and_power_repeat_the_graphs():
    plain, *_, last = run(consensus_weight=0.0, evidence_power=0.0, edge_power=0.0)[1:]
    assert last.name == "evidence"
    np.testing.assert_allclose(last.P, shares_of(plain.P), atol=SPREAD_ERROR)
    assert np.mean(last.classes != plain.classes) <= 1 / N_SAMPLES


def test_consensus_has_its_share_of_the_mass():
    before, *_, last = run(n_rounds=1, edge_power=0.0)[1:]
    W, V = dense(last.graph.parts), dense(before.graph.parts)
    np.testing.assert_allclose(W.sum(), 1.5 * V.sum(), rtol=1e-6)
    consensus = find_consensus(SAMPLES, last.evidence.P, SETTINGS.neighbours).graph
    rest = W - last.graph.consensus_scale * dense([(1.0, consensus)])
    np.testing.assert_allclose(rest, V, atol=1e-5)


def test_consensus_graph_joins_samples_of_similar_shares():
    P = np.random.default_rng(0).dirichlet(np.ones(4), N_SAMPLES)
    found = find_consensus(SAMPLES, P, NeighbourRule(fewest=5, most=5))
    expected = neighbour_graph(np.sqrt(P), 5).toarray()
    np.testing.assert_allclose(dense([(1.0, found.graph)]), expected, atol=1e-3)
    assert found.k == 5


def test_scores_are_those_of_graph_and_evidence_multiplied(every_stage):
    last = every_stage[-1]
    product = shares_of(columns_scaled(last.F)) * np.sqrt(last.evidence.P)
    np.testing.assert_allclose(last.P, product / product.sum(axis=1, keepdims=True), atol=1e-6)


def test_combination_by_hand():
    P, evidence = np.array([[2.0, 2.0], [0.0, 0.0]]), np.array([[0.8, 0.2], [0.8, 0.2]])
    prior = np.array([0.25, 0.75])
    np.testing.assert_allclose(
        combine(P, evidence, prior, 1.0), [[0.8, 0.2], [0.2 / 0.35, 0.15 / 0.35]]
    )
    np.testing.assert_allclose(combine(P, evidence, prior, 0.0), [[0.5, 0.5], prior])
    np.testing.assert_allclose(combine(P, evidence, prior, 0.5)[0], [2 / 3, 1 / 3])


# ------------------------------------------------------------------ classes


@pytest.mark.parametrize("prior", [PRIOR, np.array([0.1, 0.3, 0.6])], ids=["near", "far"])
def test_class_sizes_follow_the_prior(prior):
    for stage in run(Labelling(Y, prior)):
        # As scored; the labels put in afterwards are not for the prior to move.
        found = np.argmax(stage.P * stage.class_weights, axis=1)
        sizes = np.bincount(found, minlength=N_CLASSES)
        np.testing.assert_allclose(sizes, prior * N_SAMPLES, atol=2)
        free = ~TASK.labelled
        np.testing.assert_array_equal(stage.classes[free], found[free])


def test_labels_are_kept_even_where_all_speaks_against_them():
    told = TASK.y.copy()
    wrong = np.flatnonzero(TASK.labelled)[::4]
    told[wrong] = (told[wrong] + 1) % N_CLASSES
    labelling = Labelling((told[:, None] == np.arange(N_CLASSES)).astype(np.float32), PRIOR)
    for stage in run(labelling):
        np.testing.assert_array_equal(stage.classes[TASK.labelled], told[TASK.labelled])
        if stage.guide is not None:
            A = stage.guide.A
            np.testing.assert_array_equal(A[TASK.labelled], labelling.Y[TASK.labelled])


def test_stages_improve_on_the_first(every_stage):
    def accuracy(stage):
        return np.mean((stage.classes == TASK.y_true)[TASK.unlabelled])

    uniform = run(Labelling(Y, np.full(3, 1 / 3)))
    assert accuracy(uniform[-1]) > accuracy(uniform[0]) + 0.02


# ------------------------------------------------------------------ samples off the graph


@pytest.fixture(scope="module")
def island():
    """Two groups of samples that no edge joins; the second has no label."""
    rng = np.random.default_rng(0)
    signs = np.tile([1.0, -1.0], 40)
    X = np.column_stack([signs, np.ones(80)]) + 0.1 * rng.normal(size=(80, 2))
    X[40:, 1] += 50
    labelled = np.zeros((80, 2))
    labelled[:8] = np.eye(2)[[0, 1] * 4]
    geometry = geometry_of([X], np.ones((80, 1), dtype=bool), representations=("standard",))
    settings = MendSettings(neighbours=NeighbourRule(fewest=4, most=4))
    samples = in_memory(geometry, 2, settings)
    return samples, Labelling(labelled, np.array([0.5, 0.5])), settings


def test_samples_that_no_label_reaches_wait_for_evidence(island):
    samples, labelling, settings = island
    assert not dense_graphs(samples.graphs)[0][:40, 40:].any()
    *before, last = stages(samples, labelling, replace(settings, n_rounds=1))
    for stage in before:
        np.testing.assert_array_equal(stage.classes[40:], -1)
        assert not stage.P[40:].any()
        assert np.all(stage.classes[:40] >= 0)
    assert np.all(last.classes >= 0)
    np.testing.assert_array_equal(last.classes[:40], before[-1].classes[:40])


def test_regressions_reach_beyond_the_graph(island):
    """What one group teaches holds on the other: both differ between classes in one column."""
    last = mend(*island).stage
    assert np.mean(last.classes[40:] == np.tile([0, 1], 20)) > 0.9


# ------------------------------------------------------------------ history and callbacks


def test_history_tells_what_every_stage_did(every_stage):
    mended = mend(SAMPLES, LABELLING, SETTINGS)
    names = ["neighbours", "homophily", "guided", "guided", "evidence", "evidence", "evidence"]
    assert [record.name for record in mended.history] == names
    assert [record.iteration for record in mended.history] == list(range(1, 8))
    assert mended.status == "done"
    classes = np.full(N_SAMPLES, -1)
    for record, stage in zip(mended.history, every_stage, strict=True):
        assert record.change == np.mean(stage.classes != classes)
        np.testing.assert_array_equal(record.graph_weights, stage.graph_weights)
        classes = stage.classes
    assert [fit.r2 for fit in every_stage[-1].evidence.fits] == list(mended.history[-1].view_r2)
    assert mended.history[3].view_r2 == ()
    np.testing.assert_array_equal(mended.stage.P, every_stage[-1].P)
    assert "guided" in mended.history[2].summary()
    assert f"{mended.history[4].view_r2[0]:.3f}" in mended.history[4].summary()


@pytest.mark.parametrize("n_stages", [1, 3, 5])
def test_callbacks_see_every_stage_and_stop(every_stage, n_stages):
    seen, watched = [], []

    def stop(record, stage):
        seen.append((record.iteration, stage.name))
        return len(seen) == n_stages

    # All of them are called, even where the first already wants to stop.
    mended = mend(SAMPLES, LABELLING, SETTINGS, [stop, lambda r, _: watched.append(r)])
    assert seen == [(i + 1, stage.name) for i, stage in enumerate(every_stage[:n_stages])]
    assert tuple(watched) == mended.history
    assert mended.status == "stopped"
    np.testing.assert_array_equal(mended.stage.P, every_stage[n_stages - 1].P)


@pytest.mark.parametrize("n_done", [1, 2, 3, 4, 6])
def test_stages_go_on_after_those_of_an_earlier_run(every_stage, n_done):
    """To the last bit: a stage, its graph among the rest, is all that the next ones need."""
    stopped = mend(SAMPLES, LABELLING, SETTINGS, [lambda record, _: record.iteration == n_done])
    start = MendProgress(stopped.stage, stopped.history)
    assert len(list(stages(SAMPLES, LABELLING, SETTINGS, start))) == n_stages(SETTINGS) - n_done
    rest = mend(SAMPLES, LABELLING, SETTINGS, (), start)
    assert rest.history == mend(SAMPLES, LABELLING, SETTINGS).history
    np.testing.assert_array_equal(rest.stage.P, every_stage[-1].P)
    np.testing.assert_array_equal(rest.stage.classes, every_stage[-1].classes)


def test_shares_are_a_mean_of_equal_ones_the_prior_and_those_of_the_scores():
    P = np.array([[0.9, 0.1, 0.0], [0.6, 0.4, 0.0], [0.2, 0.8, 0.0], [0.7, 0.3, 0.0], [0, 0, 0]])
    # Three rows, one, and for a class without any the count of one.
    guesses = np.array([np.full(3, 1 / 3), PRIOR, np.array([3, 1, 1]) / 5])
    for trust in (*np.eye(3), np.array([0.2, 0.3, 0.5])):
        labelling = Labelling(np.zeros((5, 3)), PRIOR, tuple(trust))
        np.testing.assert_allclose(labelling.shares(MEMORY, P), trust @ guesses)


def test_trust_is_settled_once_by_the_scores_of_the_first_stage():
    """The shares follow from it, up to the first round with evidence, and stay from there on."""
    unsettled = Labelling(Y, PRIOR, trust=None)
    every = run(unsettled)
    settled = unsettled.settled(MEMORY, columns_scaled(every[0].F))
    assert min(settled.trust) > 0
    assert settled.settled(MEMORY, every[0].P[::-1]) is settled
    for stage, expected in zip(every, run(settled), strict=True):
        np.testing.assert_array_equal(stage.P, expected.P)
    first = [stage.name for stage in every].index("evidence")
    for stage in every[: first + 1]:
        np.testing.assert_array_equal(stage.shares, settled.shares(MEMORY, stage.P))
    assert len(every) > first + 1
    for stage in every[first + 1 :]:
        np.testing.assert_array_equal(stage.shares, every[first].shares)
