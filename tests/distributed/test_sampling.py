"""More rows than the sample holds: anchors of a sample, refined by sums over all rows."""

import dask
import dask.array as da
import numpy as np
import pytest

from viewmend import AGFTIClassifier
from viewmend.core.agfti.anchors import corresponding_anchors
from viewmend.core.agfti.bipartite import anchor_graphs
from viewmend.core.agfti.graph_fourier import diffusion_coordinates, graph_spectrum, summed_graph
from viewmend.core.common.content_order import drawn_rows, sample_hashes
from viewmend.data.labels import Labels
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.distributed.blocks import unpack
from viewmend.distributed.geometry import Reading, geometry_of_blocks
from viewmend.distributed.inputs import as_chunks
from viewmend.distributed.rows import DaskRows
from viewmend.distributed.sampling import Draw, Sample, gather_sample, survey_chunks
from viewmend.distributed.waves import found_waves, known_waves, places, wave_rows

pytestmark = pytest.mark.filterwarnings(
    "ignore:AGFTIClassifier stopped at max_iter:sklearn.exceptions.ConvergenceWarning"
)

BLOBS = make_multiview_blobs(400, n_views=2, noise=3.0, n_features=(5, 4), random_state=3)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.3, label_rate=0.1, random_state=3)


@pytest.fixture(autouse=True)
def one_process():
    with dask.config.set(scheduler="synchronous"):
        yield


def chunks_of(views, rows):
    arrays = [da.from_array(view, chunks=(rows, -1)) for view in views]
    return as_chunks(arrays, None, None, np.float64)


def sample_of(views, codes, rows, size, **how):
    chunks, runner, draw = chunks_of(views, rows), DaskRows(), Draw(size, **how)
    survey = survey_chunks(chunks, codes, draw, runner)
    return gather_sample(chunks, codes, survey, draw, runner)


def test_the_sample_depends_on_neither_chunks_nor_order():
    turn = np.random.default_rng(0).permutation(400)
    first = sample_of(TASK.data.views, TASK.y, 90, 100)
    second = sample_of([view[turn] for view in TASK.data.views], TASK.y[turn], 57, 100)
    assert len(first.codes) == 100
    assert not first.complete
    for one, other in zip(first.data.views, second.data.views, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(first.codes, second.codes)


def test_equal_samples_count_once():
    views = [np.repeat(view[:60], 5, axis=0) for view in TASK.data.views]
    sample = sample_of(views, np.full(300, -1), 70, 80)
    assert len(sample.codes) == 60
    assert len(np.unique(np.nan_to_num(sample.data.views[0]), axis=0)) == len(
        np.unique(np.nan_to_num(views[0]), axis=0)
    )


@pytest.mark.parametrize("size", [20, 100])
def test_labelled_samples_come_first(size):
    """All of them, or those of the smallest hashes; then the others, whatever the chunks."""
    n_labelled = int(TASK.labelled.sum())
    assert 20 < n_labelled < 100
    hashes = sample_hashes(TASK.data.views, TASK.data.observed)
    of_labelled, of_others = (np.flatnonzero(which) for which in (TASK.labelled, ~TASK.labelled))
    expected = of_labelled[np.argsort(hashes[of_labelled])][:size]
    left = size - len(expected)
    expected = np.r_[expected, of_others[np.argsort(hashes[of_others])][:left]]
    expected = expected[np.argsort(hashes[expected])]
    for rows in (400, 57):
        sample = sample_of(TASK.data.views, TASK.y, rows, size, labelled_first=True)
        np.testing.assert_array_equal(sample.rows, expected)
        np.testing.assert_array_equal(sample.codes, TASK.y[expected])
        np.testing.assert_array_equal(sample.data.views[1], TASK.data.views[1][expected])


def test_equal_samples_count_once_unless_they_have_labels():
    views = [np.repeat(view[:60], 5, axis=0) for view in TASK.data.views]
    codes = np.full(300, -1)
    codes[[0, 1, 3]] = [1, 1, 0]
    sample = sample_of(views, codes, 70, 200, labelled_first=True)
    assert sorted(sample.rows) == [0, 1, 2, 3, *range(5, 300, 5)]


def test_the_sample_of_samples_is_that_of_all_rows():
    rng = np.random.default_rng(0)
    # Many rows of equal content.
    hashes = rng.integers(50, size=300).astype(np.uint64)
    codes = rng.integers(-1, 2, size=300)
    for first in (codes >= 0, codes > 0, np.zeros(300, dtype=bool)):
        expected = drawn_rows(hashes, codes, first, 40)
        parts = np.split(np.arange(300), [30, 31, 200])
        each = [part[drawn_rows(hashes[part], codes[part], first[part], 40)] for part in parts]
        rows = np.concatenate(each)
        found = rows[drawn_rows(hashes[rows], codes[rows], first[rows], 40)]
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("size", [8, 30])
def test_labels_of_every_class_come_first_however_rare(size):
    """One of each in turn, up to three; then those of the smallest hashes."""
    rng = np.random.default_rng(size)
    hashes = rng.permutation(400).astype(np.uint64)
    codes = rng.choice(6, size=400, p=[0.5, 0.3, 0.16, 0.02, 0.01, 0.01])
    # The rare ones have the largest hashes of all.
    hashes[codes > 2] += np.uint64(400)
    everyone = np.ones(400, dtype=bool)
    expected, order = [], np.argsort(hashes)
    for place in range(3):
        rows = [order[codes[order] == c][place : place + 1] for c in range(6)]
        expected += sorted(np.concatenate(rows), key=lambda row: hashes[row])
    expected += [row for row in order if row not in expected]
    drawn = drawn_rows(hashes, codes, everyone, size)
    assert set(drawn) == set(expected[:size])
    assert (np.diff(hashes[drawn].astype(int)) > 0).all()
    assert set(codes[drawn]) == set(range(6))
    for cut in ([30, 31, 200], range(20, 400, 20)):
        parts = np.split(rng.permutation(400), cut)
        each = [part[drawn_rows(hashes[part], codes[part], everyone[part], size)] for part in parts]
        rows = np.concatenate(each)
        found = rows[drawn_rows(hashes[rows], codes[rows], everyone[rows], size)]
        np.testing.assert_array_equal(found, drawn)


def test_labelled_samples_are_told_by_content_in_their_order():
    few, whole = (sample_of(TASK.data.views, TASK.y, 90, size) for size in (100, 400))
    assert whole.complete
    np.testing.assert_array_equal(few.labelled_hashes, whole.labelled_hashes)
    assert len(whole.labelled_hashes) == TASK.labelled.sum()


def graph(seed=0, n_samples=80, n_anchors=12):
    rng = np.random.default_rng(seed)
    return rng.random((n_samples, n_anchors)) * (rng.random((n_samples, n_anchors)) < 0.4) + 1e-3


def test_waves_of_blocks_are_those_of_the_whole():
    N = graph()

    def sum_of(task, told):
        return sum(task(part, told) for part in np.split(N, [10, 41]))

    basis, mu = found_waves(sum_of, 5)
    expected = graph_spectrum(N, 5)
    U = wave_rows(N, basis)
    np.testing.assert_allclose(mu, expected.mu, rtol=1e-12)
    np.testing.assert_allclose(np.abs(U.T @ expected.U), np.eye(5), atol=1e-9)
    np.testing.assert_allclose(
        np.abs(places(N, basis, mu)), np.abs(diffusion_coordinates(expected)), atol=1e-12
    )


def test_known_waves_are_kept_where_eigenvalues_are_equal():
    # Two parts that nothing joins: the eigenvalue 1 belongs to any mixture of two waves.
    N = np.kron(np.eye(2), graph(n_samples=30, n_anchors=4))
    U = graph_spectrum(N, 8).U
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(2, 2)))[0]
    U[:, :2] = U[:, :2] @ turn
    np.testing.assert_allclose(wave_rows(N, known_waves(N, U)), U, atol=1e-10)


def test_refined_anchors_are_one_more_round_of_the_correspondence():
    """With centres drawn from all places, the round over blocks is that of the core."""
    model = AGFTIClassifier(n_anchors=8, anchor_method="kmeans", random_state=0)
    labels = Labels(np.arange(3), TASK.y.astype(np.int64))
    geometry = model.build_geometry(TASK.data, labels)
    chunks = chunks_of(TASK.data.views, 130)
    everyone = Sample(TASK.data, TASK.y, np.arange(400), False, np.empty(0))
    choices = Reading(chunks.layout, "l2"), "kmeans", np.random.default_rng(5)
    rows = geometry_of_blocks(chunks, TASK.y, everyone, geometry, choices, DaskRows())

    views = [view / np.linalg.norm(view, axis=1, keepdims=True) for view in TASK.data.views]
    N = summed_graph(
        anchor_graphs(views, TASK.data.observed, geometry.anchors, 7), TASK.data.observed
    )
    expected = _one_round(views, TASK.data.observed, N, np.random.default_rng(5))
    for found, wanted in zip(rows.anchors, expected, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-8)
    Z = np.concatenate([unpack(block.compute().Z) for block in rows.blocks], axis=1)
    observed = TASK.data.observed
    again = anchor_graphs(views, observed, expected, 7)
    np.testing.assert_allclose(Z[observed.T], again[observed.T], atol=1e-7)
    np.testing.assert_allclose(Z.sum(axis=2), 1, atol=1e-9)


def _one_round(views, observed, N, rng):
    """The second round of `corresponding_anchors`, which starts from the graph ``N``."""
    from unittest import mock

    from viewmend.core.agfti import anchors

    with (
        mock.patch.object(anchors, "CORRESPONDENCE_ROUNDS", 1),
        mock.patch.object(anchors, "stacked_graph", return_value=N),
    ):
        own = [np.zeros((8, view.shape[1])) for view in views]
        select = anchors.ANCHOR_METHODS["kmeans"]
        return corresponding_anchors(views, observed, own, 7, select, rng)[0]


@pytest.mark.parametrize("imputation", ["graph", "fourier"])
def test_sampled_fits_do_not_depend_on_chunks_and_are_nearly_as_good(imputation):
    settings = {"imputation": imputation, "n_anchors": 16, "max_iter": 3, "random_state": 0}
    whole = AGFTIClassifier(**settings).fit(TASK.data, TASK.y)
    models = []
    with dask.config.set({"viewmend.sample-rows": 150}):
        for rows in (400, 77):
            views = [da.from_array(view, chunks=(rows, -1)) for view in TASK.data.views]
            models.append(AGFTIClassifier(**settings).fit(views, TASK.y))
    one, other = models
    np.testing.assert_allclose(one.label_distributions_, other.label_distributions_, atol=1e-7)
    found, best = ((model.transduction_ == TASK.y_true).mean() for model in (one, whole))
    assert found > best - 0.1


def test_refinement_lowers_the_distances_to_own_anchors():
    """Lloyd's rounds on all rows: no view is farther from its anchors than before."""
    model = AGFTIClassifier(imputation="fourier", n_anchors=16, normalize=None, random_state=0)
    chunks, runner = chunks_of(TASK.data.views, 90), DaskRows()
    sample = sample_of(TASK.data.views, TASK.y, 90, 100)
    geometry = model.build_geometry(
        sample.data, Labels(np.arange(3), sample.codes.astype(np.int64))
    )
    choices = Reading(chunks.layout, None), "bkhk", np.random.default_rng(0)
    refined = geometry_of_blocks(chunks, TASK.y, sample, geometry, choices, runner)
    for v in range(2):
        X = TASK.data.rows_seen(v)
        before, after = (_distances(X, a[v]) for a in (geometry.anchors, refined.anchors))
        assert after < before


def _distances(X, anchors):
    return np.min(((X[:, None] - anchors[None]) ** 2).sum(axis=2), axis=1).sum()
