"""Indices of frames of Dask: rows of different samples are not joined by their position."""

import warnings

import dask
import numpy as np
import pytest

from viewmend import MendClassifier
from viewmend.data import MultiViewData
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.distributed import open_views
from viewmend.distributed.row_indices import read_index
from viewmend.exceptions import DataWarning, InvalidLabelsError, InvalidViewsError

pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe", reason="frames of Dask need more than Dask")

BLOBS = make_multiview_blobs(120, noise=2.0, random_state=1)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.3, label_rate=0.2, random_state=1)
NAMES = np.array([f"patient {i}" for i in range(120)])
BACKWARDS = np.arange(120)[::-1]
FEW = {"n_rounds": 1, "calibration": None}


@pytest.fixture(autouse=True)
def one_process():
    with dask.config.set(scheduler="synchronous"):
        yield


def frames(*indices, npartitions=(3, 4)):
    """The views, each with its rows named by an index."""
    made = zip(TASK.data.views, indices, npartitions, strict=True)
    return [
        dd.from_pandas(pd.DataFrame(view, index=index), npartitions=n, sort=False)
        for view, index, n in made
    ]


def fitted(X, y=TASK.y, **others):
    return MendClassifier(**FEW).fit(X, y, **others)


EXPECTED = fitted(TASK.data)


def assert_as_by_position(model):
    found, expected = model.label_distributions_, EXPECTED.label_distributions_
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_views_with_rows_in_another_order_are_refused():
    with pytest.raises(InvalidViewsError, match=r"view 1 and view 0 .* different row indices"):
        fitted(frames(NAMES, NAMES[::-1]))
    assert_as_by_position(fitted(frames(NAMES, NAMES)))


def test_new_samples_with_rows_in_another_order_are_refused():
    with pytest.raises(InvalidViewsError, match="different row indices"):
        EXPECTED.predict(frames(NAMES, NAMES[::-1]))


def test_frames_in_memory_count_too():
    first, second = frames(NAMES, NAMES)
    in_memory = second.compute()
    with pytest.raises(InvalidViewsError, match="different row indices"):
        fitted([first, in_memory[::-1]])
    assert_as_by_position(fitted([first, in_memory]))


@pytest.mark.parametrize("lazy", [False, True])
def test_labels_in_another_order_are_refused(lazy):
    y = pd.Series(TASK.y, index=NAMES)

    def given(labels):
        return dd.from_pandas(labels, npartitions=2, sort=False) if lazy else labels

    views = frames(NAMES, NAMES)
    assert_as_by_position(fitted(views, given(y)))
    with pytest.raises(InvalidLabelsError, match="y must have its rows in the order of the views"):
        fitted(views, given(y[::-1]))
    with pytest.raises(InvalidLabelsError, match="groups must have its rows in the order"):
        fitted(views, given(y), groups=given(y[::-1]))


@pytest.mark.parametrize("lazy", [False, True])
def test_labels_in_another_order_are_not_scored(lazy):
    y = pd.Series(BLOBS.y, index=NAMES)

    def given(labels):
        return dd.from_pandas(labels, npartitions=2, sort=False) if lazy else labels

    for X in (frames(NAMES, NAMES), dict(zip("ab", frames(NAMES, NAMES), strict=True))):
        model = fitted(X)
        assert model.score(X, given(y)) == model.score(X, BLOBS.y)
        with pytest.raises(InvalidLabelsError, match="y must have its rows in the order of the v"):
            model.score(X, given(y[::-1]))


def test_numbers_of_other_rows_are_refused_as_in_memory():
    # As the index of rows that were shuffled.
    shuffled = pd.Series(TASK.y, index=BACKWARDS)
    with pytest.raises(InvalidLabelsError):
        fitted(frames(None, None), shuffled)
    with pytest.raises(InvalidLabelsError):
        fitted([view.compute() for view in frames(None, None)], shuffled)


def test_other_identifiers_are_told():
    y = pd.Series(TASK.y, index=[f"sample {i}" for i in range(120)])
    with pytest.warns(DataWarning, match="y and the views have different row indices"):
        assert_as_by_position(fitted(frames(NAMES, NAMES), y))


@pytest.mark.parametrize("kind", ["restart", "count", "mixed"])
def test_an_index_that_counts_rows_says_nothing(kind):
    views = frames(None, None)
    anew = [view.map_partitions(lambda part: part.reset_index(drop=True)) for view in views]
    X = {"restart": anew, "count": views, "mixed": [views[0], anew[1]]}[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        for y in (TASK.y, pd.Series(TASK.y), pd.Series(TASK.y, index=NAMES)):
            assert_as_by_position(fitted(X, y))


def test_partitions_do_not_change_what_is_known_of_an_index():
    for index in (NAMES, BACKWARDS, None):
        few, many = frames(index, index, npartitions=(1, 7))
        assert read_index(few)[1] == read_index(many)[1] == read_index(few.compute())[1]
        assert sum(read_index(many)[0]) == 120


def test_files_in_another_order_are_refused(tmp_path):
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    paths = {name: tmp_path / f"{name}.parquet" for name in "ab"}
    for path, view, names in zip(
        paths.values(), TASK.data.views, (NAMES, NAMES[::-1]), strict=True
    ):
        pd.DataFrame(view, index=names).add_prefix("column ").to_parquet(path)
    with pytest.raises(InvalidViewsError, match="view 'b' and view 'a' are frames with different"):
        open_views(paths)


def parquet_files(folder, *indices):
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    paths = {name: folder / f"{name}.parquet" for name in "ab"}
    for path, view, index in zip(paths.values(), TASK.data.views, indices, strict=True):
        frame = pd.DataFrame(view, index=index).add_prefix("column ")
        path.mkdir(parents=True)
        for part, rows in enumerate((slice(50), slice(50, None))):
            frame.iloc[rows].to_parquet(path / f"part.{part}.parquet")
    return paths


def test_the_index_of_files_tells_whose_labels_are_given(tmp_path):
    data = open_views(parquet_files(tmp_path, NAMES, NAMES))
    assert data.ids.tolist() == NAMES.tolist()
    y = pd.Series(TASK.y, index=NAMES)
    model = fitted(data, y)
    assert_as_by_position(model)
    assert model.sample_ids_.tolist() == NAMES.tolist()
    for turned in (y[::-1], dd.from_pandas(y[::-1], npartitions=2, sort=False)):
        with pytest.raises(InvalidLabelsError, match="y must have its rows in the order of the v"):
            fitted(data, turned)
    mask = pd.DataFrame(TASK.data.observed, index=NAMES, columns=["a", "b"])
    assert_as_by_position(fitted(data, y, mask=mask))
    for turned in (mask[::-1], dd.from_pandas(mask[::-1], npartitions=2, sort=False)):
        with pytest.raises(InvalidViewsError, match="mask must have its rows in the order"):
            fitted(data, y, mask=turned)


@pytest.mark.parametrize("anew", [False, True])
def test_the_index_of_files_that_counts_rows_names_none(tmp_path, anew):
    counts = np.r_[:50, :70] if anew else np.arange(120)
    data = open_views(parquet_files(tmp_path, counts, counts))
    assert data.ids is None
    # What one file does not know another one may.
    paths = parquet_files(tmp_path / "named", np.r_[:50, :70], NAMES)
    assert open_views(paths).ids.tolist() == NAMES.tolist()


def test_numbers_and_their_text_are_the_same_rows():
    numbers = np.random.default_rng(0).permutation(120) + 1000
    first, second = frames(numbers, numbers.astype(str))
    y = pd.Series(TASK.y, index=numbers.astype(str))
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        assert_as_by_position(fitted([first, second], y))
    with pytest.raises(InvalidViewsError, match="different row indices"):
        fitted(frames(numbers, numbers[::-1].astype(str)))
    with pytest.raises(InvalidLabelsError, match="y must have its rows in the order"):
        fitted(frames(numbers, numbers), y[::-1])


def test_columns_of_a_mask_are_matched_by_name():
    views = [np.where(np.isnan(view), 1.0, view) for view in TASK.data.views]
    names = ("text", "image")
    given = {
        name: dd.from_pandas(pd.DataFrame(view), npartitions=3)
        for name, view in zip(names, views, strict=True)
    }
    mask = pd.DataFrame(TASK.data.observed, columns=names)[["image", "text"]]
    for each in (mask, dd.from_pandas(mask, npartitions=2)):
        model = fitted(given, mask=each)
        np.testing.assert_array_equal(model.observed_, TASK.data.observed)
    with pytest.raises(InvalidViewsError, match="mask must have a column for each of the views"):
        fitted(given, mask=mask.rename(columns={"text": "sound"}))
    with pytest.raises(InvalidViewsError, match="mask must have its rows in the order"):
        fitted(given, mask=mask[::-1])


def test_a_mask_beside_lazy_data_hides_more_of_it():
    views = tuple(frame.to_dask_array(lengths=True) for frame in frames(None, None))
    data, mask = MultiViewData(views, TASK.data.observed, ("a", "b")), np.ones((120, 2), dtype=bool)
    both = np.flatnonzero(TASK.data.observed.all(axis=1))[0]
    mask[both, 1] = False
    np.testing.assert_array_equal(fitted(data, mask=mask).observed_, TASK.data.observed & mask)
