"""Views as Dask collections: what is refused, and how it is told."""

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from viewmend import AGFTIClassifier
from viewmend.data import MultiViewData
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.distributed import BlockCheckpoint, is_lazy, open_views
from viewmend.exceptions import DataWarning, InvalidParameterError, InvalidViewsError

BLOBS = make_multiview_blobs(120, random_state=1)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.3, label_rate=0.2, random_state=1)
FAST = {"n_anchors": 8, "random_state": 0, "tol": 10.0}


@pytest.fixture(autouse=True)
def one_process():
    with dask.config.set(scheduler="synchronous"):
        yield


def lazy(views, rows=50):
    return [da.from_array(view, chunks=(rows, -1)) for view in views]


LAZY = lazy(TASK.data.views)


def test_only_dask_collections_are_lazy():
    first, second = lazy(TASK.data.views)
    for X in (first, [first, TASK.data.views[1]], {"a": second}):
        assert is_lazy(X)
    for X in (TASK.data, TASK.data.views, TASK.data.views[0], None, "text"):
        assert not is_lazy(X)


@pytest.mark.parametrize(
    ("row", "value", "words"),
    [
        (70, [np.nan, *[1.0] * 7], r"chunk 1 \(rows 50 to 99 .*from 0: .* partly NaN .*rows 20\)"),
        (119, [np.inf, *[1.0] * 7], r"chunk 2 \(rows 100 to 119 .*from 0: .* infinite .*rows 19\)"),
    ],
)
def test_bad_rows_are_named_with_their_chunk(row, value, words):
    views = [view.copy() for view in TASK.data.views]
    views[1][row] = value
    with pytest.raises(InvalidViewsError, match=words):
        AGFTIClassifier(**FAST).fit(lazy(views), TASK.y)


def test_an_offset_hides_no_class_in_float64_and_is_refused_in_float32():
    views = [view + 1e9 for view in TASK.data.views]
    settings = {"n_anchors": 16, "random_state": 0, "max_iter": 3, "tol": 1e-9}
    with pytest.warns(ConvergenceWarning), dask.config.set({"viewmend.sample-rows": 60}):
        model = AGFTIClassifier(**settings).fit(lazy(views), TASK.y)
    assert np.mean((model.transduction_ == TASK.y_true)[TASK.unlabelled]) > 0.8
    with pytest.raises(InvalidViewsError, match=r"view 0 cannot be held in float32.*float64"):
        AGFTIClassifier(**settings, dtype="float32").fit(lazy(views), TASK.y)
    with pytest.raises(InvalidViewsError, match=r"view 0 has no value above 1e-140"):
        AGFTIClassifier(**settings).fit(lazy([1e-160 * view for view in views]), TASK.y)


def test_a_chunk_that_cannot_be_read_is_named():
    def load(block, block_info=None):
        if block_info[0]["chunk-location"][0] == 1:
            msg = "no such file"
            raise OSError(msg)
        return block

    first, second = lazy(TASK.data.views)
    broken = second.map_blocks(load, dtype=second.dtype, meta=np.empty((0, 0)))
    words = r"chunk 1 \(rows 50 to 99 of the data\) cannot be read: OSError: no such file"
    with pytest.raises(InvalidViewsError, match=words):
        AGFTIClassifier(**FAST).fit([first, broken], TASK.y)


def test_a_failed_fit_leaves_no_half_a_model():
    model = AGFTIClassifier(**FAST).fit(lazy(TASK.data.views), TASK.y)
    views = [view.copy() for view in TASK.data.views]
    views[0][3, 0] = np.inf
    with pytest.raises(InvalidViewsError):
        model.fit(lazy(views), TASK.y)
    assert not hasattr(model, "transduction_")


def test_views_of_unequal_length_are_refused():
    first, second = lazy(TASK.data.views)
    words = "view 'view 1' has 119 rows but view 'view 0' has 120"
    with pytest.raises(InvalidViewsError, match=words):
        AGFTIClassifier(**FAST).fit([first, second[:-1]], TASK.y)


@pytest.mark.parametrize("mask", [np.ones((120, 3), dtype=bool), np.ones((120, 2))])
def test_a_mask_of_another_form_is_refused(mask):
    words = r"mask must be bool of shape \(120, 2\)"
    with pytest.raises(InvalidViewsError, match=words):
        AGFTIClassifier(**FAST).fit(lazy(TASK.data.views), TASK.y, mask=mask)


def test_a_view_that_nobody_has_is_refused():
    first, second = lazy(TASK.data.views)
    complete = da.where(da.isnan(first), 1.0, first)
    with pytest.raises(InvalidViewsError, match="view 'view 1' has no observed sample"):
        AGFTIClassifier(**FAST).fit([complete, second * np.nan], TASK.y)


def test_zero_rows_are_told_with_their_chunk():
    views = [view.copy() for view in TASK.data.views]
    both = np.flatnonzero(TASK.data.observed.all(axis=1))
    views[0][both[0]] = 0
    with pytest.warns(DataWarning, match=r"chunk 0 \(rows 0 to 49 of the data\), .*all-zero"):
        AGFTIClassifier(**FAST).fit(lazy(views), TASK.y)


def test_samples_without_any_view_are_refused_with_their_chunk():
    views = [view.copy() for view in TASK.data.views]
    for view in views:
        view[60] = np.nan
    message = r"chunk 1 .*1 sample\(s\) have no view .*\(samples 10\).*a fit in memory can take"
    with pytest.raises(InvalidViewsError, match=message):
        AGFTIClassifier(**FAST).fit(lazy(views), TASK.y)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ablation", "weights"),
        ("device", "cpu"),
        ("calibration", "cross_fit"),
    ],
)
def test_what_only_a_fit_in_memory_can_is_refused(name, value):
    model = AGFTIClassifier(**FAST, **{name: value})
    with pytest.raises(InvalidParameterError, match=f"{name} must be .* got {value!r}"):
        model.fit(lazy(TASK.data.views), TASK.y)


def test_a_checkpoint_of_fits_in_memory_is_refused(tmp_path):
    from viewmend.callbacks import Checkpoint

    model = AGFTIClassifier(**FAST).set_callbacks(Checkpoint(tmp_path / "rounds"))
    with pytest.raises(InvalidParameterError, match=BlockCheckpoint.__name__):
        model.fit(lazy(TASK.data.views), TASK.y)


def test_chunks_without_rows_are_no_trouble():
    views = [view.rechunk(((50, 0, 70, 0), (8,))) for view in lazy(TASK.data.views)]
    model = AGFTIClassifier(**FAST).fit(views, TASK.y)
    expected = AGFTIClassifier(**FAST).fit(TASK.data, TASK.y)
    np.testing.assert_allclose(model.label_distributions_, expected.label_distributions_, atol=1e-9)


def test_unknown_chunks_are_counted():
    views = [view[np.ones(120, dtype=bool)] for view in lazy(TASK.data.views)]
    unknown = [view[da.from_array(np.ones(120, dtype=bool), chunks=50)] for view in views]
    assert np.isnan(unknown[0].shape[0])
    model = AGFTIClassifier(**FAST).fit(unknown, TASK.y)
    assert model.fused_graph_.shape == (120, 8)


@pytest.mark.parametrize("ending", ["zarr", "parquet"])
def test_files_are_opened_and_not_read(tmp_path, ending):
    paths = {name: tmp_path / f"{name}.{ending}" for name in ("text", "image")}
    for path, view in zip(paths.values(), TASK.data.views, strict=True):
        _write(view, path)
    data = open_views(paths)
    assert data.names == ("text", "image")
    assert isinstance(data.observed, da.Array)
    np.testing.assert_array_equal(data.observed.compute(), TASK.data.observed)
    model = AGFTIClassifier(**FAST).fit(data, TASK.y)
    expected = AGFTIClassifier(**FAST).fit(TASK.data, TASK.y)
    np.testing.assert_allclose(model.label_distributions_, expected.label_distributions_, atol=1e-9)
    assert model.view_names_ == ("text", "image")


def _write(view, path):
    if path.suffix == ".zarr":
        pytest.importorskip("zarr")
        da.from_array(view, chunks=(40, -1)).to_zarr(str(path))
    else:
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(view, columns=[f"column {j}" for j in range(view.shape[1])])
        path.mkdir()
        frame[:50].to_parquet(path / "part.0.parquet")
        frame[50:].to_parquet(path / "part.1.parquet")


def test_lazy_data_is_shown_without_reading_it():
    def never(block):
        msg = "this must not be read"
        raise AssertionError(msg)

    views = [view.map_blocks(never, dtype=float, meta=np.empty((0, 0))) for view in LAZY]
    seen = [~da.isnan(view).all(axis=1) for view in views]
    data = MultiViewData(tuple(views), da.stack(seen, axis=1), ("text", "image"))
    assert repr(data) == "MultiViewData(120 samples; text: 8 columns, image: 8 columns)"
    assert "image" in data._repr_html_()


def test_files_that_are_not_there_or_no_views_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file or folder .*absent.parquet"):
        open_views({"a": tmp_path / "absent.parquet"})
    with pytest.raises(InvalidViewsError, match="at least one view"):
        open_views({})
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    (tmp_path / "a.parquet").write_text("no table")
    with pytest.raises(InvalidViewsError, match=r"a.parquet cannot be read as a Parquet table"):
        open_views({"a": tmp_path / "a.parquet"})


def test_columns_of_files_that_are_no_numbers_are_named(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    frame = pd.DataFrame(TASK.data.views[0]).add_prefix("column ")
    frame.assign(patient="p").to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InvalidViewsError, match=r"not numbers: patient; .*frame.set_index"):
        open_views({"a": tmp_path / "a.parquet"})


def test_a_group_of_arrays_is_no_view(tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    with pytest.raises(InvalidViewsError, match=r"a.zarr cannot be read as a Zarr array"):
        open_views({"a": tmp_path / "a.zarr"})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda view: view[:, 0], r"view 1 must be 2-D .* got 1-D of shape \(120,\)"),
        (lambda view: view[:, :, None], "view 1 must be 2-D .* got 3-D"),
        (lambda view: view[:, :0], r"view 1 has 0 feature\(s\)"),
    ],
)
def test_views_of_another_form_are_refused(change, words):
    first, second = LAZY
    with pytest.raises(InvalidViewsError, match=words):
        AGFTIClassifier(**FAST).fit([first, change(second)], TASK.y)


def test_view_sizes_are_checked_as_in_memory():
    table = da.concatenate(LAZY, axis=1)
    for X, sizes in ((LAZY, (8, 8)), (table, (8, 9)), (table, (17, -1))):
        with pytest.raises(InvalidViewsError, match="view_sizes"):
            AGFTIClassifier(**FAST, view_sizes=sizes).fit(X, TASK.y)


@pytest.mark.parametrize("form", ["csr_array", "csc_matrix"])
def test_blocks_may_be_sparse(form):
    sparse = getattr(scipy.sparse, form)
    views = [view.map_blocks(lambda block: sparse(np.nan_to_num(block))) for view in LAZY]
    model = AGFTIClassifier(**FAST).fit(views, TASK.y, mask=TASK.data.observed)
    expected = AGFTIClassifier(**FAST).fit(TASK.data, TASK.y)
    np.testing.assert_allclose(model.label_distributions_, expected.label_distributions_, atol=1e-9)
    new, mask = expected.predict_proba(TASK.data), TASK.data.observed
    np.testing.assert_allclose(model.predict_proba(views, mask), new, atol=1e-9)


def test_files_of_another_kind_are_refused(tmp_path):
    with pytest.raises(InvalidViewsError, match=r"\['.parquet', '.zarr'\], got .*view.csv"):
        open_views({"a": tmp_path / "view.csv"})
