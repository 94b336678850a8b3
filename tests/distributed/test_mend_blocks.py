"""Mend over blocks: equal to a fit in memory, however rows are cut, on graphs of all or some."""

import dask
import dask.array as da
import numpy as np
import pytest

from viewmend import MendClassifier, MultiViewData, load, save
from viewmend.core.common.content_order import canonical_order, sample_hashes
from viewmend.core.mend import outside
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.distributed import BlockCheckpoint
from viewmend.exceptions import DataWarning, InvalidParameterError, InvalidViewsError

BLOBS = make_multiview_blobs(400, n_views=3, noise=3.0, n_features=(6, 8, 5), random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.1, random_state=0)
SETTINGS = {"n_rounds": 3, "n_landmarks": 60}
SOME = SETTINGS | {"graph_samples": 150}


@pytest.fixture(autouse=True)
def one_process():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def in_memory():
    return MendClassifier(**SETTINGS).fit(TASK.data, TASK.y)


@pytest.fixture(scope="module")
def on_some():
    return MendClassifier(**SOME).fit(TASK.data, TASK.y)


def lazy(views, rows):
    return [da.from_array(view, chunks=(rows, -1)) for view in views]


# Scores are of float32, and sums are taken in another order; over blocks, features of samples
# beside the graph are of float16.
SINGLE, HALF = 2e-5, 2e-3


@pytest.fixture(autouse=True)
def _few_rows_are_many(monkeypatch):
    """Features are then rounded, as those of larger fits."""
    monkeypatch.setattr(outside, "FEW_ROWS", 0)


def assert_same_model(found, expected, atol=SINGLE):
    names = ["label_distributions_", "confidence_", "class_prior_"]
    for name in names + ["view_weights_"] * hasattr(expected, "view_weights_"):
        gap = np.abs(getattr(found, name) - getattr(expected, name)).max()
        assert gap < atol, (name, gap)
    assert np.mean(found.transduction_ != expected.transduction_) < 0.003
    for name in ("unreachable_", "off_graph_", "observed_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert found.status_ == expected.status_
    assert found.n_iter_ == expected.n_iter_
    assert found.calibration_.temperature == pytest.approx(expected.calibration_.temperature)
    # Edges of similar evidence follow small differences of it.
    assert abs(found.graph_ - expected.graph_).max() < 50 * atol


def accuracy(model):
    return np.mean((model.transduction_ == TASK.y_true)[TASK.unlabelled])


@pytest.mark.parametrize("rows", [400, 130, (13, 1, 300, 86)], ids=str)
def test_blocks_give_the_model_of_a_fit_in_memory(in_memory, rows):
    model = MendClassifier(**SETTINGS).fit(lazy(TASK.data.views, rows), TASK.y)
    assert_same_model(model, in_memory)


@pytest.mark.parametrize(
    "changes",
    [{"edge_power": 1.0, "n_rounds": 1}, {"n_rounds": 0}, {"class_prior": "uniform"}],
    ids=lambda changes: "-".join(changes),
)
def test_parameters_mean_the_same_over_blocks(changes):
    for settings, atol in ((SETTINGS | changes, SINGLE), (SOME | changes, HALF)):
        expected = MendClassifier(**settings).fit(TASK.data, TASK.y)
        model = MendClassifier(**settings).fit(lazy(TASK.data.views, 130), TASK.y)
        assert_same_model(model, expected, atol)


@pytest.mark.parametrize("rows", [400, 130, (13, 1, 300, 86)], ids=str)
def test_a_graph_of_some_samples_does_not_depend_on_the_cut(on_some, rows):
    model = MendClassifier(**SOME).fit(lazy(TASK.data.views, rows), TASK.y)
    assert_same_model(model, on_some, HALF)
    again = MendClassifier(**SOME).fit(lazy(TASK.data.views, 70), TASK.y)
    assert_same_model(again, model, HALF / 10)


def test_a_graph_of_some_samples_does_not_depend_on_the_order(on_some):
    turn = np.random.default_rng(1).permutation(400)
    views = lazy([view[turn] for view in TASK.data.views], 130)
    model = MendClassifier(**SOME).fit(views, TASK.y[turn])
    gap = np.abs(model.label_distributions_ - on_some.label_distributions_[turn]).max()
    assert gap < HALF


def test_the_graph_has_the_labelled_samples_and_those_of_the_smallest_hashes(on_some):
    rows = on_some.fitted_state_.order
    assert set(np.flatnonzero(TASK.labelled)) < set(rows)
    hashes = sample_hashes(TASK.data.views, TASK.data.observed)
    others = np.flatnonzero(~TASK.labelled)
    n_others = 150 - TASK.labelled.sum()
    assert set(rows) - set(np.flatnonzero(TASK.labelled)) == set(
        others[np.argsort(hashes[others])][:n_others]
    )
    degrees = on_some.graph_.sum(axis=1)
    np.testing.assert_array_equal(np.flatnonzero(degrees > 0), np.sort(rows))


def test_a_sample_of_all_samples_is_a_fit_of_all(in_memory):
    model = MendClassifier(**SETTINGS, graph_samples=400).fit(TASK.data, TASK.y)
    np.testing.assert_array_equal(model.label_distributions_, in_memory.label_distributions_)
    order = canonical_order(TASK.data.views, TASK.data.observed, TASK.y)
    np.testing.assert_array_equal(model.fitted_state_.order, order)


def test_a_graph_of_some_samples_is_nearly_as_good(in_memory, on_some):
    assert accuracy(on_some) > accuracy(in_memory) - 0.02
    # All samples are told of, those outside the graph by their neighbours in it.
    assert not on_some.off_graph_.any()


@pytest.mark.parametrize("rows", [None, 100])
def test_a_rare_class_is_found_with_more_labels_than_the_graph_has_room_for(rows):
    """Its labels are those of the largest hashes, which come last."""
    hashes = sample_hashes(BLOBS.views, np.ones((400, 3), dtype=bool))
    of_class, others = np.flatnonzero(BLOBS.y == 0), np.flatnonzero(BLOBS.y > 0)
    kept = np.r_[of_class[np.argsort(hashes[of_class])][-12:], others]
    views, classes = [view[kept] for view in BLOBS.views], BLOBS.y[kept]
    hidden = np.arange(len(kept)) % 4 == 0
    y = np.where(hidden, -1, classes)
    views = views if rows is None else lazy(views, rows)
    model = MendClassifier(**SETTINGS, graph_samples=30).fit(views, y)
    in_graph = np.bincount(y[model.fitted_state_.order])
    assert in_graph.sum() == 30
    assert in_graph[0] == 3
    assert np.mean(model.transduction_[hidden & (classes == 0)] == 0) > 0.5
    with pytest.raises(InvalidParameterError, match=r"graph_samples must be .* classes, 3,"):
        MendClassifier(**SETTINGS, graph_samples=2).fit(views, y)


@pytest.mark.parametrize("rows", [None, 100])
def test_a_view_that_no_sample_of_the_graph_has_is_named(rows):
    """Labelled samples come first; here a view is there for two others alone."""
    first, second, _ = (np.nan_to_num(view, nan=1.0) for view in TASK.data.views)
    others = np.flatnonzero(~TASK.labelled)[:2]
    rare = np.full_like(second, np.nan)
    rare[others] = second[others]
    views = [first, rare]
    if rows is not None:
        views = [da.from_array(view, chunks=(rows, -1)) for view in views]
    few = MendClassifier(**SETTINGS, graph_samples=int(TASK.labelled.sum()))
    with pytest.raises(InvalidViewsError, match=r"view 1 is missing from all .* graph_samples"):
        few.fit(views, TASK.y)


def test_identifiers_beside_lazy_views_are_kept(tmp_path):
    names = np.array([f"patient {i}" for i in range(400)])
    views = tuple(lazy(TASK.data.views, 100))
    data = MultiViewData(views, TASK.data.observed, ("a", "b", "c"), ids=names)
    model = MendClassifier(n_rounds=1, calibration=None).fit(data, TASK.y)
    np.testing.assert_array_equal(model.sample_ids_, names)
    save(model, tmp_path / "model.vm")
    np.testing.assert_array_equal(load(tmp_path / "model.vm").sample_ids_, names)
    assert len(model.for_prediction().sample_ids_) == 0


def test_samples_outside_the_graph_are_regressed_on():
    """Regressions learn from all rows: with few of them in the graph they know as much."""
    few, all_ = (
        MendClassifier(**SETTINGS, graph_samples=size).fit(TASK.data, TASK.y) for size in (60, None)
    )
    gap = np.subtract(few.history_[-1].view_r2, all_.history_[-1].view_r2)
    assert np.abs(gap).max() < 0.1


def test_samples_outside_the_graph_are_told_as_new_ones():
    """Without rounds, nothing but the graph tells of either, whatever its share of each class."""
    y = np.where((TASK.y == 0) & (np.arange(400) % 4 > 0), -1, TASK.y)
    settings = SOME | {"n_rounds": 0, "calibration": None}
    model = MendClassifier(**settings).fit(TASK.data, y)
    outside = np.setdiff1d(np.arange(400), model.fitted_state_.order)
    found = model.predict_proba([view[outside] for view in TASK.data.views])
    np.testing.assert_allclose(found, model.label_distributions_[outside], atol=1e-5)


def test_forms_of_the_views_give_the_same_model(in_memory):
    arrays = lazy(TASK.data.views, 150)
    observed = da.from_array(TASK.data.observed, chunks=(150, -1))
    stacked = da.from_array(TASK.data.stacked(), chunks=(150, 4))
    forms = [
        (MultiViewData(tuple(arrays), observed, ("a", "b", "c")), {}),
        (stacked, {"view_sizes": (6, 8, 5)}),
    ]
    for X, more in forms:
        model = MendClassifier(**SETTINGS, **more).fit(X, da.from_array(TASK.y, chunks=50))
        assert_same_model(model, in_memory)


def test_zarr_files_are_fitted(in_memory, tmp_path):
    pytest.importorskip("zarr")
    from viewmend.distributed import open_views

    for name, view in zip("abc", lazy(TASK.data.views, 150), strict=True):
        view.to_zarr(str(tmp_path / f"{name}.zarr"))
    data = open_views({name: tmp_path / f"{name}.zarr" for name in "abc"})
    assert_same_model(MendClassifier(**SETTINGS).fit(data, TASK.y), in_memory)


def test_predictions_block_by_block_are_those_in_memory(on_some):
    model = MendClassifier(**SOME).fit(lazy(TASK.data.views, 130), TASK.y)
    new = make_multiview_blobs(90, n_views=3, noise=3.0, n_features=(6, 8, 5), random_state=7)
    shares = model.predict_proba(lazy(new.views, 40))
    assert isinstance(shares, da.Array)
    np.testing.assert_allclose(shares, model.predict_proba(new.views), atol=SINGLE)
    np.testing.assert_allclose(shares, on_some.predict_proba(new.views), atol=HALF)
    np.testing.assert_array_equal(model.predict(lazy(new.views, 40)), model.predict(new.views))


def test_a_model_for_prediction_is_saved_and_predicts_alike(tmp_path):
    model = MendClassifier(**SOME).fit(lazy(TASK.data.views, 130), TASK.y)
    expected = model.predict_proba(TASK.data)
    save(model, tmp_path / "whole.vm")
    save(model.for_prediction(), tmp_path / "light.vm")
    for name in ("whole", "light"):
        again = load(tmp_path / f"{name}.vm").predict_proba(TASK.data)
        np.testing.assert_array_equal(again, expected)
    assert (tmp_path / "light.vm").stat().st_size < (tmp_path / "whole.vm").stat().st_size


def test_samples_of_the_graph_are_explained_and_others_are_named():
    model = MendClassifier(**SOME).fit(lazy(TASK.data.views, 130), TASK.y)
    inside = model.fitted_state_.order[:2]
    outside = np.setdiff1d(np.arange(400), model.fitted_state_.order)[:2]
    told = model.explain(inside)
    np.testing.assert_allclose(told.support.sum(axis=1), 1, atol=1e-6)
    with pytest.raises(InvalidParameterError, match=r"but 2 are not in the graph .*graph_samples"):
        model.explain(outside)


@pytest.mark.parametrize("noise", [0.1, "auto"])
def test_labels_are_doubted_over_blocks_as_in_memory(tmp_path, noise):
    """Also by a fit that goes on from a stage that was kept."""
    blobs = make_multiview_blobs(300, n_views=2, noise=1.5, n_features=(6, 8), random_state=0)
    y = np.where(np.arange(300) % 5 == 0, blobs.y, -1)
    y[::40] = (y[::40] + 1) % 3
    settings = SETTINGS | {"label_noise": noise}
    expected = MendClassifier(**settings).fit(blobs.views, y)
    assert expected.label_noise_ > 0.05
    begun, again = MendClassifier(**settings), MendClassifier(**settings)
    begun.set_callbacks(BlockCheckpoint(tmp_path, every=1), lambda record, _: record.iteration == 4)
    again.set_callbacks(BlockCheckpoint(tmp_path, every=1))
    for model in (begun, again):
        model.fit(lazy(blobs.views, 130), y)
    assert (begun.n_iter_, again.n_iter_) == (4, 5)
    assert_same_model(again, expected)
    assert again.label_noise_ == pytest.approx(expected.label_noise_)


def test_labels_sets_and_unknown_samples_are_told_after_a_fit_over_blocks(in_memory):
    """From the samples of the graph, which are here; what is lazy is answered block by block."""
    views, new = lazy(TASK.data.views, 130), [view[:20] for view in TASK.data.views]
    model = MendClassifier(**SETTINGS).fit(views, TASK.y)
    expected = in_memory.suspect_labels()
    np.testing.assert_array_equal(model.suspect_labels().samples, expected.samples)
    np.testing.assert_allclose(model.suspect_labels().scores, expected.scores, atol=1e-3)
    np.testing.assert_allclose(model.unknown_score(new), in_memory.unknown_score(new), atol=1e-3)
    lazily = model.predict_set(views, alpha=0.2)
    assert isinstance(lazily, da.Array)
    np.testing.assert_array_equal(lazily.compute(), model.predict_set(TASK.data.views, alpha=0.2))
    with pytest.raises(InvalidParameterError, match="unknown_score takes views in memory"):
        model.unknown_score(views)


def test_what_blocks_cannot_follow_is_refused():
    with pytest.raises(InvalidParameterError, match="device must be None where the views are Dask"):
        MendClassifier(device="cpu").fit(lazy(TASK.data.views, 130), TASK.y)


def broken(kind):
    views = [view.copy() for view in TASK.data.views]
    rows = np.flatnonzero(TASK.data.observed[:, 0])
    row = rows[rows > 260][0]
    if kind == "cell":
        views[0][row, 1] = np.nan
    elif kind == "infinite":
        views[0][row, 1] = np.inf
    else:
        for view in views:
            view[row] = np.nan
    return views


@pytest.mark.parametrize("kind", ["cell", "infinite", "unseen"])
def test_a_bad_chunk_is_named(kind):
    with pytest.raises(InvalidViewsError, match=r"chunk 2 \(rows 260 to 389 of the data\)"):
        MendClassifier(**SETTINGS).fit(lazy(broken(kind), 130), TASK.y)


def test_a_chunk_that_cannot_be_read_is_named():
    def read(block, block_id=None):
        if block_id[0] == 1:
            msg = "no such disk"
            raise OSError(msg)
        return block

    views = [
        view.map_blocks(read, dtype=float, meta=np.empty((0, 0)))
        for view in lazy(TASK.data.views, 130)
    ]
    with pytest.raises(InvalidViewsError, match=r"chunk 1 \(rows 130 to 259 .*no such disk"):
        MendClassifier(**SETTINGS).fit(views, TASK.y)


def test_rows_of_zeros_count_as_missing():
    views = [view.copy() for view in TASK.data.views]
    seen_twice = np.flatnonzero(TASK.data.observed[:, :2].all(axis=1))[:3]
    views[0][seen_twice] = 0.0
    missing = [view.copy() for view in views]
    missing[0][seen_twice] = np.nan
    with pytest.warns(DataWarning, match="chunk 0 .*zero"):
        model = MendClassifier(**SETTINGS).fit(lazy(views, 130), TASK.y)
    expected = MendClassifier(**SETTINGS).fit(lazy(missing, 130), TASK.y)
    np.testing.assert_array_equal(model.label_distributions_, expected.label_distributions_)


def test_threads_give_the_model_of_one():
    expected = MendClassifier(**SOME).fit(lazy(TASK.data.views, 60), TASK.y)
    with dask.config.set(scheduler="threads", num_workers=4):
        model = MendClassifier(**SOME).fit(lazy(TASK.data.views, 60), TASK.y)
    np.testing.assert_array_equal(model.label_distributions_, expected.label_distributions_)


def test_groups_are_held_out_over_blocks_as_in_memory():
    groups = np.arange(400) // 4
    expected = MendClassifier(**SETTINGS).fit(TASK.data, TASK.y, groups=groups)
    lazily = lazy(TASK.data.views, 130), TASK.y, None, da.from_array(groups, chunks=90)
    found = MendClassifier(**SETTINGS).fit(*lazily)
    assert found.estimated_accuracy_ == expected.estimated_accuracy_
    assert found.estimated_accuracy_.n_groups < found.estimated_accuracy_.n_held_out
