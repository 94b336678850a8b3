"""Predictions over Dask collections."""

import dask
import dask.array as da
import numpy as np
import pytest

import viewmend
from viewmend import AGFTIClassifier, MendClassifier
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.distributed import open_views
from viewmend.exceptions import DataWarning, InvalidParameterError, InvalidViewsError

BLOBS = make_multiview_blobs(150, n_views=2, n_features=(4, 3), noise=2.0, random_state=2)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.3, label_rate=0.2, random_state=2)
WORDS = np.array(["one", "two", "three"])
LABELS = np.where(TASK.y < 0, None, WORDS.astype(object)[TASK.y])


@pytest.fixture(scope="module")
def model():
    settings = {"n_anchors": 16, "random_state": 0, "tol": 1e-3}
    return AGFTIClassifier(**settings).fit(dict(zip("ab", TASK.data.views, strict=True)), LABELS)


@pytest.fixture(autouse=True)
def one_process():
    with dask.config.set(scheduler="synchronous"):
        yield


def lazy(views, rows=40):
    return [da.from_array(view, chunks=(rows, -1)) for view in views]


def test_chunks_get_the_answers_of_the_whole(model):
    first, second = lazy(TASK.data.views)
    shares, classes = model.predict_proba([first, second]), model.predict([first, second])
    assert shares.chunks == ((40, 40, 40, 30), (3,))
    np.testing.assert_allclose(shares, model.predict_proba(list(TASK.data.views)), atol=1e-12)
    np.testing.assert_array_equal(classes, model.predict(list(TASK.data.views)))
    assert classes.dtype == model.classes_.dtype


def test_nothing_is_read_before_it_is_asked_for(model):
    read = []

    def note(block, block_id=None):
        read.append(block_id[0])
        return block

    first, second = (view.map_blocks(note, meta=np.empty((0, 0))) for view in lazy(TASK.data.views))
    shares = model.predict_proba([first, second])
    assert read == []
    shares[:40].compute()
    assert set(read) == {0}


@pytest.mark.parametrize("missing", [0, 1])
def test_views_may_be_missing_altogether(model, missing):
    names, views = "ab", list(TASK.data.views)
    rows = TASK.data.observed[:, 1 - missing]
    views = [None if v == missing else view[rows] for v, view in enumerate(views)]
    expected = model.predict_proba(views)
    given = [None if view is None else da.from_array(view, chunks=(50, -1)) for view in views]
    by_name = {names[v]: view for v, view in enumerate(given) if view is not None}
    np.testing.assert_allclose(model.predict_proba(given), expected, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(by_name), expected, atol=1e-12)


def test_names_count_and_not_their_order(model):
    first, second = lazy(TASK.data.views)
    turned = model.predict_proba({"b": second, "a": first})
    np.testing.assert_allclose(turned, model.predict_proba([first, second]), atol=1e-12)


def test_one_array_is_split_as_in_fit(model):
    stacked = da.from_array(TASK.data.stacked(), chunks=(60, 2))
    found = model.predict_proba(stacked)
    np.testing.assert_allclose(found, model.predict_proba(list(TASK.data.views)), atol=1e-12)


@pytest.mark.parametrize("lazily", [False, True])
def test_one_array_is_split_by_view_sizes(lazily):
    table = np.concatenate(TASK.data.views, axis=1)
    chunks = da.from_array(table, chunks=(40, 3))
    model = MendClassifier(n_rounds=1, calibration=None, view_sizes=(4, 3))
    model.fit(chunks if lazily else table, LABELS)
    np.testing.assert_allclose(
        model.predict_proba(chunks).compute(), model.predict_proba(table), atol=1e-6
    )
    assert (model.predict(chunks).compute() == model.predict(table)).all()
    assert model.view_sizes == (4, 3)
    with pytest.raises(InvalidViewsError, match="X has 6 features, but predict is expecting 7"):
        model.predict(chunks[:, :6])
    with pytest.raises(InvalidViewsError, match=r"view_sizes=.* splits one 2-D array"):
        model.predict(lazy(TASK.data.views))


def test_views_of_another_width_are_refused_at_once(model):
    first, second = lazy(TASK.data.views)
    with pytest.raises(InvalidViewsError, match="view 'b' has 2 columns but had 3 in fit"):
        model.predict({"a": first, "b": second[:, :2]})


def test_a_mask_in_chunks_hides_rows(model):
    mask = np.ones((150, 2), dtype=bool)
    mask[:60, 0] = False
    complete = [np.where(np.isnan(view), 1.0, view) for view in TASK.data.views]
    found = model.predict_proba(lazy(complete), da.from_array(mask, chunks=(70, 1)))
    np.testing.assert_allclose(found, model.predict_proba(complete, mask), atol=1e-12)


def test_a_bad_chunk_is_named(model):
    views = [view.copy() for view in TASK.data.views]
    views[0][47, 0] = np.inf
    found = model.predict_proba(lazy(views))
    found[:40].compute()
    with pytest.raises(InvalidViewsError, match="chunk 1, of 40 rows: view 'a' has infinite"):
        found.compute()


def test_a_model_for_prediction_is_small_and_predicts_alike(model, tmp_path):
    light = model.for_prediction()
    assert light.transduction_.shape == (0,)
    assert light.view_graphs_.shape == (2, 0, 16)
    assert model.transduction_.shape == (150,)
    expected = model.predict_proba(list(TASK.data.views))
    np.testing.assert_array_equal(light.predict_proba(list(TASK.data.views)), expected)
    viewmend.save(light, tmp_path / "light.vm")
    loaded = viewmend.load(tmp_path / "light.vm")
    np.testing.assert_array_equal(loaded.predict_proba(list(TASK.data.views)), expected)


def test_what_was_fitted_over_blocks_can_be_saved_for_prediction(tmp_path):
    views = lazy(TASK.data.views)
    fitted = AGFTIClassifier(n_anchors=16, random_state=0, tol=1e-3).fit(views, TASK.y)
    viewmend.save(fitted.for_prediction(), tmp_path / "model.vm")
    loaded = viewmend.load(tmp_path / "model.vm")
    np.testing.assert_array_equal(loaded.predict(views), fitted.predict(views))


@pytest.fixture(scope="module")
def named():
    """Fitted to Dask frames, and frames of the same columns."""
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe", reason="frames of Dask need more than Dask")
    frames = {
        name: dd.from_pandas(pd.DataFrame(view).add_prefix(name), npartitions=3)
        for name, view in zip("ab", TASK.data.views, strict=True)
    }
    settings = {"n_anchors": 16, "random_state": 0, "tol": 1e-2}
    with dask.config.set(scheduler="synchronous"):
        return AGFTIClassifier(**settings).fit(frames, LABELS), frames


def backwards(frame):
    return frame[list(frame.columns[::-1])]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_columns_of_lazy_frames_are_matched_by_name(named):
    model, frames = named
    assert model.view_feature_names_["b"].tolist() == ["b0", "b1", "b2"]
    in_memory = {name: frame.compute() for name, frame in frames.items()}
    expected = model.predict_proba(in_memory)
    turned = [backwards(frame) for frame in frames.values()]
    np.testing.assert_allclose(model.predict_proba(turned), expected, atol=1e-12)
    by_name = {name: backwards(frames[name]) for name in "ba"}
    np.testing.assert_allclose(model.predict_proba(by_name), expected, atol=1e-12)
    in_memory = {name: backwards(frame) for name, frame in in_memory.items()}
    np.testing.assert_array_equal(model.predict_proba(in_memory), expected)
    with pytest.raises(InvalidViewsError, match=r"unseen at fit time: x; .*yet now missing: b1;"):
        model.predict([frames["a"], frames["b"].rename(columns={"b1": "x"})])
    with pytest.raises(InvalidViewsError, match="view 'a' has the columns that view 'b' had in"):
        model.predict([frames["b"], frames["a"]])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_columns_of_one_lazy_table_are_matched_by_name(named):
    dd = pytest.importorskip("dask.dataframe")
    model, frames = named
    table = dd.concat([frames["a"], frames["b"]], axis=1)
    expected = model.predict_proba({name: frame.compute() for name, frame in frames.items()})
    np.testing.assert_allclose(model.predict_proba(backwards(table)), expected, atol=1e-12)
    with pytest.warns(DataWarning, match="X does not have valid feature names"):
        model.predict(lazy(TASK.data.views))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_columns_of_files_are_matched_by_name(named, tmp_path):
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    model, frames = named
    for name, frame in frames.items():
        frame.to_parquet(tmp_path / f"{name}.parquet")
        backwards(frame).to_parquet(tmp_path / f"turned {name}.parquet")
    as_given = open_views({name: tmp_path / f"{name}.parquet" for name in "ab"})
    turned = open_views({name: tmp_path / f"turned {name}.parquet" for name in "ab"})
    assert turned.columns == (("a3", "a2", "a1", "a0"), ("b2", "b1", "b0"))
    expected = model.predict_proba(as_given)
    np.testing.assert_allclose(model.predict_proba(turned), expected, atol=1e-12)
    again = AGFTIClassifier(n_anchors=16, random_state=0, tol=1e-2).fit(as_given, LABELS)
    assert again.view_feature_names_["b"].tolist() == ["b0", "b1", "b2"]


def test_decisions_are_made_in_memory(model):
    with pytest.raises(InvalidParameterError, match="decide takes views in memory"):
        model.decide(lazy(TASK.data.views))
