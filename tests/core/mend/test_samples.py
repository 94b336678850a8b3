"""A graph between some of the samples: what the others receive, and rows cut into blocks."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tests.core.cut_rows import CutRows
from tests.core.small_mend import MEMORY, dense, geometry_of, in_memory, seen_rows

from viewmend.core.mend import outside
from viewmend.core.mend.geometry import RawBlock
from viewmend.core.mend.labelling import Labelling
from viewmend.core.mend.loo_ridge import RIDGES, regress_views
from viewmend.core.mend.outside import (
    ToJoin,
    join_rows,
    joined_block,
    rows_in_graph,
    sums_by_view,
    views_of_all_rows,
    views_to_join,
    with_all_rows,
)
from viewmend.core.mend.recipe import mend, stages
from viewmend.core.mend.samples import (
    column_mass,
    reached_samples,
    samples_of,
    scaled_columns,
)
from viewmend.core.mend.stage import MendSettings
from viewmend.datasets import hide, make_multiview_blobs

N, N_GRAPH, N_CLASSES = 200, 90, 3
BLOBS = make_multiview_blobs(N, n_views=3, noise=2.5, random_state=1)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.15, random_state=1)
VIEWS, OBSERVED = TASK.data.views, TASK.data.observed
Y = (TASK.y[:, None] == np.arange(N_CLASSES)).astype(np.float32)
PRIOR = np.array([0.45, 0.35, 0.2])
SETTINGS = MendSettings(edge_power=1.0, n_rounds=2)
# Labelled samples and some others, in an order of their own.
RNG = np.random.default_rng(0)
FREE = RNG.permutation(np.flatnonzero(TASK.unlabelled))
GRAPH = RNG.permutation(np.r_[np.flatnonzero(TASK.labelled), FREE][:N_GRAPH])
PLACE = np.full(N, -1)
PLACE[GRAPH] = np.arange(N_GRAPH)
OUTSIDE = np.flatnonzero(PLACE < 0)


def sample_geometry(rows=GRAPH):
    views = [view[rows] for view in VIEWS]
    return geometry_of(views, OBSERVED[rows], n_landmarks=40)


SAMPLE = sample_geometry()


def raw(part=slice(None), place=PLACE):
    """Some of the samples, with the rows that their views have."""
    views = seen_rows([view[part] for view in VIEWS], OBSERVED[part])
    return RawBlock(tuple(views), OBSERVED[part], place[part])


@pytest.fixture(scope="module")
def joined():
    """All samples in one block, of which some are in the graph."""
    return in_memory(join_rows(SAMPLE, raw(), 11), N_CLASSES, SETTINGS)


@pytest.fixture(scope="module")
def every_stage(joined):
    return list(stages(joined, Labelling(Y, PRIOR), SETTINGS))


def edges_by_hand(weights):
    """Weights (n_samples, n_graph) of edges to the graph, in every view and representation."""
    W, weights = np.zeros((N, N_GRAPH)), iter(weights)
    for v, view in enumerate(SAMPLE.views):
        here = np.flatnonzero(OBSERVED[:, v])
        k = SETTINGS.neighbours(len(view.rows), N_CLASSES)
        for representation in view.representations.values():
            known, mapped = representation(view.X), representation(VIEWS[v][here])
            squared = ((mapped[:, None].astype(float) - known) ** 2).sum(axis=2)
            gaps = np.maximum(np.sort(squared, axis=1)[:, [k]] - squared, 0)
            weight = next(weights)
            W[np.ix_(here, view.rows)] += weight * gaps / gaps.sum(axis=1, keepdims=True)
    return W


# ------------------------------------------------------------------ samples outside the graph


def test_columns_are_gathered_in_the_order_of_the_graph(joined):
    np.testing.assert_array_equal(joined.in_graph(np.arange(N)), GRAPH)
    np.testing.assert_array_equal(joined.in_graph(Y), Y[GRAPH])
    geometry = join_rows(SAMPLE, raw(), 11)
    np.testing.assert_array_equal(rows_in_graph(geometry), GRAPH)
    np.testing.assert_array_equal(rows_in_graph(SAMPLE), np.arange(N_GRAPH))


@pytest.mark.parametrize("stage", [0, 1])
def test_others_receive_what_spreading_gives_an_unlabelled_sample(every_stage, stage):
    """``f_i = a sum_j w_ij F_j / (d_i d_j)^{1/2}`` over edges to samples of the graph."""
    stage = every_stage[stage]
    W, F = edges_by_hand(stage.graph_weights), stage.F
    degrees = dense(stage.graph.parts).sum(axis=1)
    soft = 0.99 * (W @ (F / np.sqrt(degrees)[:, None])) / np.sqrt(W.sum(axis=1))[:, None]
    soft[GRAPH] = F
    np.testing.assert_allclose(stage.mass, soft.sum(axis=0), rtol=1e-4)
    expected = soft / soft.sum(axis=0)
    np.testing.assert_allclose(stage.P, expected, atol=1e-4 * expected.max())


def test_columns_are_scaled_to_sum_one_and_those_of_zeros_left():
    F = np.array([[1.0, 0.0, 2.0], [3.0, 0.0, 2.0]])
    mass = column_mass(F, None)["mass"]
    np.testing.assert_array_equal(scaled_columns(F, mass), [[0.25, 0, 0.5], [0.75, 0, 0.5]])


def test_the_graph_does_not_notice_the_others(every_stage):
    """Before the regressions, samples of the graph have the soft labels of a fit of them alone."""
    alone = in_memory(SAMPLE, N_CLASSES, SETTINGS)
    first = next(iter(stages(alone, Labelling(Y[GRAPH], PRIOR), SETTINGS)))
    np.testing.assert_array_equal(every_stage[0].F, first.F)
    np.testing.assert_array_equal(dense(every_stage[0].graph.parts), dense(first.graph.parts))


def test_features_are_orthogonal_over_all_rows(joined):
    """So the regressions are on all rows, with the spectrum of all of them."""
    for view, spectrum in zip(joined.blocks.views, joined.spectra, strict=True):
        Phi = view.Phi.astype(float)
        np.testing.assert_allclose(Phi.sum(axis=0), 0, atol=1e-3)
        np.testing.assert_allclose(Phi.T @ Phi, np.diag(spectrum), atol=1e-4 * spectrum.max())


def test_where_leverages_are_near_one_features_are_not_rounded(monkeypatch):
    """A view of few rows and many features, whose targets are noise."""
    few, targets = RNG.normal(size=(8, 8)), RNG.dirichlet(np.ones(3), size=8).astype(np.float32)
    seen, place = np.ones((8, 1), dtype=bool), np.arange(8)
    block = RawBlock((few,), seen, place)
    views = views_to_join(geometry_of([few], seen, n_landmarks=8))
    turned = views_of_all_rows(sums_by_view(block, views), views)

    def scores(dtype):
        found = joined_block(block, ToJoin(turned, 3, dtype))
        (view,) = found.views
        # Of the least ridge alone.
        found = replace(found, views=(replace(view, leverages=view.leverages[:, :1]),))
        known = found, [turned[0].kernel.spectrum], targets, np.zeros(8, dtype=int)
        return view.Phi.dtype, regress_views(MEMORY, *known, RIDGES[:1])[1]

    (_, exact), (kind, found) = scores("float32"), scores("float16")
    np.testing.assert_array_equal(found, exact)
    assert kind == np.float32
    monkeypatch.setattr(outside, "FEW_ROWS", 8)
    kind, rounded = scores("float16")
    assert kind == np.float16
    assert np.abs(rounded - exact).max() > 0.05


def test_every_sample_gets_a_class_and_most_the_right_one(every_stage):
    last = every_stage[-1]
    np.testing.assert_array_equal(last.classes[TASK.labelled], TASK.y[TASK.labelled])
    assert np.all(last.classes >= 0)
    for rows in (OUTSIDE, GRAPH):
        assert np.mean(last.classes[rows] == TASK.y_true[rows]) > 0.8
    sizes = np.bincount(np.argmax(last.P * last.class_weights, axis=1), minlength=N_CLASSES)
    np.testing.assert_allclose(sizes, PRIOR * N, atol=3)


def test_a_sample_is_reached_where_its_neighbours_are(joined, every_stage):
    reached = reached_samples(joined, every_stage[0], Labelling(Y, PRIOR))
    assert reached.all()
    none = np.zeros_like(Y)
    assert not reached_samples(joined, every_stage[0], Labelling(none, PRIOR)).any()


def test_a_graph_of_all_samples_is_that_of_a_plain_fit():
    """With every sample in the graph, the two ways to a geometry lead to the same scores."""
    sample = sample_geometry(np.arange(N))
    joined = in_memory(join_rows(sample, raw(place=np.arange(N)), 11), N_CLASSES, SETTINGS)
    plain = in_memory(sample, N_CLASSES, SETTINGS)
    labelling = Labelling(Y, PRIOR)
    for found, expected in zip(
        stages(joined, labelling, SETTINGS), stages(plain, labelling, SETTINGS), strict=True
    ):
        np.testing.assert_allclose(found.P, expected.P, atol=1e-5)
        np.testing.assert_array_equal(found.classes, expected.classes)


# ------------------------------------------------------------------ rows in blocks


CUTS = [(0, 77, 78, N), (0, 20, 90, 150, N)]


@pytest.mark.parametrize("ends", CUTS, ids=str)
@pytest.mark.parametrize("edge_power", [0.0, 1.0])
def test_a_cut_of_the_rows_does_not_show(ends, edge_power):
    settings = replace(SETTINGS, edge_power=edge_power)
    whole = mend(
        in_memory(join_rows(SAMPLE, raw(), 11), N_CLASSES, settings), Labelling(Y, PRIOR), settings
    )
    parts = [slice(*pair) for pair in pairwise(ends)]
    rows, views = CutRows(), views_to_join(SAMPLE)
    raws = [raw(part) for part in parts]
    turned = views_of_all_rows(rows.sums(sums_by_view, raws, shared=views), views)
    blocks = rows.map(joined_block, raws, shared=ToJoin(turned, 11))
    samples = samples_of(
        rows, with_all_rows(SAMPLE, turned, blocks, raws), N_CLASSES, settings.neighbours
    )
    cut = mend(samples, Labelling([Y[part] for part in parts], PRIOR), settings)
    np.testing.assert_allclose(np.concatenate(cut.stage.P), whole.stage.P, atol=5e-5)
    np.testing.assert_array_equal(np.concatenate(cut.stage.classes), whole.stage.classes)
    np.testing.assert_allclose(cut.stage.F, whole.stage.F, atol=1e-4 * whole.stage.F.max())
    for found, expected in zip(cut.history, whole.history, strict=True):
        assert (found.name, found.change) == (expected.name, expected.change)
    reached = reached_samples(samples, cut.stage, Labelling([Y[part] for part in parts], PRIOR))
    assert np.concatenate(reached).all()


def test_all_samples_in_the_graph_need_no_places():
    samples = samples_of(MEMORY, SAMPLE, N_CLASSES, SETTINGS.neighbours)
    column = np.arange(N_GRAPH)
    assert samples.in_graph(column) is column
    assert samples.edges == ()
