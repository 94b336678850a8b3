"""Classes of new samples: the step that training samples took, taken by others."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from tests.core.small_mend import dense, geometry_of, in_memory

from viewmend.core.common.class_shares import normalise_rows
from viewmend.core.graphs.graph import Edges
from viewmend.core.mend import induction
from viewmend.core.mend.evidence import combine, evidence_shares
from viewmend.core.mend.geometry import NeighbourRule
from viewmend.core.mend.induction import (
    induce_classes,
    join_by_evidence,
    make_induction,
    new_evidence,
    represent_new,
    spread_to_new,
    view_edges,
)
from viewmend.core.mend.joining import received, stacked
from viewmend.core.mend.labelling import Labelling
from viewmend.core.mend.recipe import mend
from viewmend.core.mend.stage import MendSettings
from viewmend.datasets import hide, make_multiview_blobs

N_FIT, N_CLASSES = 150, 3
BLOBS = make_multiview_blobs(220, n_views=3, noise=1.5, random_state=0)
TASK = hide(
    [view[:N_FIT] for view in BLOBS.views],
    BLOBS.y[:N_FIT],
    missing_rate=0.4,
    label_rate=0.1,
    random_state=0,
)
NEW, NEW_CLASSES = [view[N_FIT:] for view in BLOBS.views], BLOBS.y[N_FIT:]
OBSERVED = TASK.data.observed
Y = (TASK.y[:, None] == np.arange(N_CLASSES)).astype(np.float32)
PRIOR = np.full(N_CLASSES, 1 / 3)
GEOMETRY = geometry_of(TASK.data.views, OBSERVED, n_landmarks=60)
SAMPLES = in_memory(GEOMETRY, N_CLASSES)


def fit(**changes):
    settings = replace(MendSettings(), **changes)
    mended = mend(SAMPLES, Labelling(Y, PRIOR), settings)
    return make_induction(SAMPLES, GEOMETRY, mended.stage, PRIOR, settings), mended.stage


FULL, FULL_STAGE = fit(edge_power=2.0)
WITHOUT_EVIDENCE, STAGE_WITHOUT_EVIDENCE = fit(n_rounds=0, edge_power=2.0)
ONLY_GRAPHS, STAGE_OF_GRAPHS = fit(n_rounds=0)


def induced(fitted, stage, views, observed):
    """Classes, weighted as those of fit."""
    scores = induce_classes(fitted, views, observed)
    return np.argmax(scores * stage.class_weights, axis=1)


def weights_of(joined):
    """Weights (n_new, n_samples) of the edges of new samples."""
    return received(joined, np.eye(N_FIT))


def joined_by(W):
    """Rows with the edges of an array (n_new, n_samples)."""
    indices = np.tile(np.arange(N_FIT, dtype=np.int32), (len(W), 1))
    return stacked([Edges(indices, W.astype(np.float32))], [np.arange(len(W))], [1.0], len(W))


# ------------------------------------------------------------------ the step itself


def test_unlabelled_samples_of_fit_are_where_their_edges_put_them():
    """``f = a D^{-1/2} W D^{-1/2} f`` holds for them, so one more step along W changes nothing."""
    stage = STAGE_OF_GRAPHS
    rows = np.flatnonzero(TASK.unlabelled)
    scores = spread_to_new(ONLY_GRAPHS, joined_by(dense(stage.graph.parts)[rows]))
    np.testing.assert_allclose(normalise_rows(scores), normalise_rows(stage.P[rows]), atol=1e-3)
    np.testing.assert_allclose(scores, stage.P[rows] / 0.99, rtol=5e-3, atol=1e-8)


def test_guided_steps_equal_a_loop_over_edges():
    stage, settings = STAGE_WITHOUT_EVIDENCE, WITHOUT_EVIDENCE.settings
    new = represent_new(FULL.views, NEW, np.ones((70, 3), dtype=bool))
    joined = view_edges(WITHOUT_EVIDENCE, new)
    found = spread_to_new(WITHOUT_EVIDENCE, joined)
    W, degrees = weights_of(joined), dense(stage.graph.parts).sum(axis=1)
    votes = W @ (stage.classes[:, None] == np.arange(N_CLASSES))
    shares = votes / W.sum(axis=1, keepdims=True)
    for i in (0, 13, 69):
        expected, own = np.zeros(N_CLASSES), 0.0
        for j in np.flatnonzero(W[i]):
            agreement = (settings.edge_floor + shares[i] @ stage.guide.A[j]) ** settings.edge_power
            expected += W[i, j] * agreement * stage.F[j] / np.sqrt(degrees[j])
            own += W[i, j] * agreement
        expected /= np.sqrt(own) * stage.F.sum(axis=0)
        np.testing.assert_allclose(found[i], expected, rtol=1e-4, atol=1e-7 * expected.max())


def test_new_samples_have_as_many_neighbours_as_those_that_a_view_has():
    rule = NeighbourRule(share=0.1, fewest=1)
    fitted = replace(ONLY_GRAPHS, settings=replace(ONLY_GRAPHS.settings, neighbours=rule))
    joined = view_edges(fitted, represent_new(FULL.views, NEW, np.ones((70, 3), dtype=bool)))
    n_maps = len(joined.edges) // 3
    for v, view in enumerate(fitted.views):
        k = round(0.1 * len(view.rows) / N_CLASSES)
        assert 1 < k < rule(N_FIT, N_CLASSES)
        for edges in joined.edges[v * n_maps : (v + 1) * n_maps]:
            np.testing.assert_array_equal((edges.weights > 0).sum(axis=1), k)


def test_edges_are_those_of_the_graphs_of_fit():
    """A new sample joins the rows of fit as it would in a graph of them and itself."""
    fitted = ONLY_GRAPHS
    seen = np.tile([True, False, False], (70, 1))
    seen[1] = True
    edges = weights_of(view_edges(fitted, represent_new(FULL.views, NEW, seen)))
    view = GEOMETRY.views[0]
    k = fitted.settings.neighbours(len(view.rows), N_CLASSES)
    expected = np.zeros(len(view.rows))
    for weight, representation in zip(
        fitted.graph_weights, view.representations.values(), strict=False
    ):
        known, new = representation(view.X), representation(NEW[0][:1])
        e = np.sort(((known - new) ** 2).sum(axis=1))[k]
        gaps = np.maximum(e - ((known - new) ** 2).sum(axis=1), 0)
        expected += weight * gaps / gaps.sum()
    np.testing.assert_allclose(edges[0, view.rows], expected, atol=1e-4)
    unseen = np.setdiff1d(np.arange(N_FIT), view.rows)
    np.testing.assert_array_equal(edges[0, unseen], 0)
    assert edges[1, unseen].any()


def test_consensus_edges_are_those_of_similar_evidence():
    P = FULL.evidence.P.astype(float)
    new = np.random.default_rng(1).dirichlet(np.ones(N_CLASSES), 6)
    k = FULL.settings.neighbours(N_FIT, N_CLASSES)
    none = stacked([], [], [], 6)
    edges = weights_of(join_by_evidence(FULL, none, new.astype(np.float32)))
    for i in range(6):
        squared = ((np.sqrt(P) - np.sqrt(new[i])) ** 2).sum(axis=1)
        gaps = np.maximum(np.sort(squared)[k] - squared, 0)
        expected = FULL_STAGE.graph.consensus_scale * gaps / gaps.sum()
        np.testing.assert_allclose(edges[i], expected, atol=1e-3)


def test_evidence_is_that_of_the_regressions_of_fit():
    observed = np.array([[True, True, False], [False, True, True], [True, True, True]])
    new = represent_new(FULL.views, [view[:3] for view in NEW], observed)
    evidence = FULL_STAGE.evidence
    Z = np.full((3, 3, N_CLASSES), np.nan, dtype=np.float32)
    for v, (view, regression) in enumerate(zip(GEOMETRY.views, evidence.fits, strict=True)):
        mapped = {name: r(NEW[v][:3]) for name, r in view.representations.items()}
        Z[:, v] = regression.predict(view.kernel(mapped))
    expected = evidence_shares(
        np.where(observed[:, :, None], Z, 0), observed, evidence.view_weights, evidence.gaussian
    )
    found = new_evidence(FULL.views, FULL.evidence, new)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_scores_are_combined_as_in_fit():
    everything = np.ones((70, 3), dtype=bool)
    new = represent_new(FULL.views, NEW, everything)
    evidence = new_evidence(FULL.views, FULL.evidence, new)
    joined = join_by_evidence(FULL, view_edges(FULL, new), evidence)
    expected = combine(spread_to_new(FULL, joined), evidence, PRIOR, 0.5)
    np.testing.assert_array_equal(induce_classes(FULL, NEW, everything), expected)


def test_the_views_share_the_degrees_of_a_guided_graph():
    """What explanations divide by: with the consensus graph, views and it are all of a degree."""
    for fitted, stage in ((FULL, FULL_STAGE), (ONLY_GRAPHS, STAGE_OF_GRAPHS)):
        trusted = dense(stage.graph.parts[:1])
        np.testing.assert_allclose(fitted.view_degrees.sum(axis=1), trusted.sum(axis=1), rtol=1e-5)
        np.testing.assert_array_equal(fitted.view_degrees[~OBSERVED], 0)
        whole = dense(stage.graph.parts).sum(axis=1)
        np.testing.assert_allclose(fitted.degrees, whole, rtol=1e-5)


# ------------------------------------------------------------------ classes


@pytest.mark.parametrize(
    ("fitted", "stage"),
    [
        (FULL, FULL_STAGE),
        (WITHOUT_EVIDENCE, STAGE_WITHOUT_EVIDENCE),
        (ONLY_GRAPHS, STAGE_OF_GRAPHS),
    ],
    ids=["full", "no evidence", "graphs"],
)
def test_copies_of_unlabelled_samples_get_their_classes(fitted, stage):
    classes = induced(fitted, stage, TASK.data.views, OBSERVED)
    free = TASK.unlabelled
    assert np.mean(classes[free] == stage.classes[free]) > 0.97


def test_new_samples_are_classified_by_any_views():
    """Every subset in turn for every sample."""
    subsets = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1]], dtype=bool)
    for shift in range(5):
        observed = subsets[(np.arange(70) + shift) % 5]
        assert np.mean(induced(FULL, FULL_STAGE, NEW, observed) == NEW_CLASSES) > 0.9


@pytest.mark.parametrize("views", [(0,), (1,), (2,), (0, 2)], ids=str)
def test_a_view_may_be_missing_from_all_new_samples(views):
    observed = np.tile(np.isin(np.arange(3), views), (70, 1))
    assert np.mean(induced(FULL, FULL_STAGE, NEW, observed) == NEW_CLASSES) > 0.9


def test_views_that_are_missing_are_not_read():
    observed = np.random.default_rng(0).random((70, 3)) < 0.5
    observed[~observed.any(axis=1), 0] = True
    blank = [np.where(observed[:, [v]], view, np.nan) for v, view in enumerate(NEW)]
    np.testing.assert_array_equal(
        induce_classes(FULL, blank, observed), induce_classes(FULL, NEW, observed)
    )


def test_new_samples_do_not_meet_each_other():
    """Each alone, or all at once and in another order: the same scores."""
    observed = np.random.default_rng(1).random((70, 3)) < 0.6
    observed[~observed.any(axis=1), 1] = True
    together = induce_classes(FULL, NEW, observed)
    order = np.random.default_rng(2).permutation(70)
    mixed = induce_classes(FULL, [view[order] for view in NEW], observed[order])
    np.testing.assert_allclose(mixed, together[order], atol=1e-4)
    for i in np.flatnonzero(observed.all(axis=1))[:3]:
        alone = induce_classes(FULL, [view[[i]] for view in NEW], observed[[i]])
        np.testing.assert_allclose(alone[0], together[i], atol=1e-4)


def test_memory_for_new_samples_does_not_grow_with_them(monkeypatch):
    many = [np.tile(view, (60, 1)) for view in NEW]
    observed = np.ones((len(many[0]), 3), dtype=bool)

    def scores_and_peak():
        tracemalloc.start()
        scores = induce_classes(FULL, many, observed)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return scores, peak

    whole, most = scores_and_peak()
    monkeypatch.setattr(induction, "PIECE", 2**15)
    in_pieces, least = scores_and_peak()
    np.testing.assert_allclose(in_pieces, whole, atol=1e-4)
    assert least < most / 4


def test_scores_are_on_the_scale_of_fit():
    """So that the class weights of fit are right for them: shares of the classes agree."""
    scores = induce_classes(FULL, TASK.data.views, OBSERVED)
    np.testing.assert_allclose(scores.sum(axis=1), 1, rtol=1e-5)
    free = TASK.unlabelled
    assert np.abs(scores[free] - FULL_STAGE.P[free]).mean() < 0.05
