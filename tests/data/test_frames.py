"""Frames are joined by identifier: what one view does not hold is missing there, nothing moves."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from viewmend import LabelSearchCV, MendClassifier, check_views
from viewmend.baselines import UnionGraphClassifier
from viewmend.data import from_arrays, from_frames, result_frame
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import (
    DataWarning,
    InvalidLabelsError,
    InvalidParameterError,
    InvalidViewsError,
    TooLargeError,
)

pd = pytest.importorskip("pandas", reason="frames need pandas")

PHOTO = pd.DataFrame(
    {"id": ["a", "b", "007"], "x": [1.0, 2.0, 3.0], "y": [4, 5, 6], "kind": ["cat", "dog", None]}
)
SOUND = pd.DataFrame({"id": ["c", "b"], "w": [7.0, 8.0]})


def as_pandas_index(frame):
    return frame.set_index("id")


def as_polars(frame):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    columns = {name: frame[name].astype(object) for name in frame.columns}
    return polars.DataFrame(
        {name: values.where(values.notna(), None).tolist() for name, values in columns.items()}
    )


def as_lazy_polars(frame):
    return as_polars(frame).lazy()


def unchanged(frame):
    return frame


FORMS = {
    "index": (as_pandas_index, None),
    "column": (unchanged, "id"),
    "polars": (as_polars, "id"),
    "lazy polars": (as_lazy_polars, "id"),
    "index named like the column": (as_pandas_index, "id"),
}


@pytest.mark.parametrize(("convert", "on"), FORMS.values(), ids=FORMS)
def test_an_outer_join_worked_out_by_hand(convert, on):
    found = from_frames({"photo": convert(PHOTO), "sound": convert(SOUND)}, labels="kind", on=on)
    nan = np.nan
    assert found.ids.tolist() == ["a", "b", "007", "c"]
    assert found.names == ("photo", "sound")
    assert found.columns == (("x", "y"), ("w",))
    assert_array_equal(found.views[0], [[1, 4], [2, 5], [3, 6], [nan, nan]])
    assert_array_equal(found.views[1], [[nan], [8], [nan], [7]])
    assert_array_equal(found.observed.T, [[1, 1, 1, 0], [0, 1, 0, 1]])
    assert found.y.tolist() == ["cat", "dog", None, None]


def test_pandas_and_polars_frames_are_joined_with_each_other():
    mixed = from_frames({"photo": PHOTO, "sound": as_polars(SOUND)}, labels="kind", on="id")
    plain = from_frames({"photo": PHOTO, "sound": SOUND}, labels="kind", on="id")
    assert_array_equal(mixed.ids, plain.ids)
    assert_array_equal(mixed.stacked(), plain.stacked())


def test_empty_rows_are_absent_and_cells_beside_them_keep_their_type():
    polars = pytest.importorskip("polars", reason="polars is not installed")
    gaps = polars.DataFrame(
        {"id": [1, 2, 3], "u": [5, None, 7], "v": [True, None, False], "kind": [10, None, 30]}
    ).with_columns(polars.col("u").cast(polars.Decimal(10, 2)).alias("d"))
    full = polars.DataFrame({"id": [3, 2, 1], "w": [1.5, 2.5, 3.5]})
    nan = np.nan
    found = from_frames([gaps, full], on="id", labels="kind")
    assert_array_equal(found.views[0], [[5, 1, 5], [nan, nan, nan], [7, 0, 7]])
    assert_array_equal(found.views[1], [[3.5], [2.5], [1.5]])
    assert found.y.tolist() == [10, None, 30]
    assert [type(label) for label in found.y] == [int, type(None), int]


def test_identifiers_of_several_levels_are_joined_as_one():
    sites = pd.MultiIndex.from_tuples([("oslo", 1), ("oslo", 2), ("rome", 1)])
    left = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=sites)
    right = pd.DataFrame({"w": [5.0, 4.0]}, index=sites[[2, 0]])
    found = from_frames([left, right], labels={("rome", 1): "wet"})
    assert found.ids.tolist() == sites.tolist()
    assert_array_equal(found.views[1], [[4], [np.nan], [5]])
    assert found.y.tolist() == [None, None, "wet"]


def named(*names):
    return pd.DataFrame({"x": np.arange(len(names)) + 1.0}, index=list(names))


@pytest.mark.parametrize(
    ("names", "others", "told"),
    [
        (("P1", "b", "c"), ("p1", "b", "c"), "1 identifier.* as 'P1' and 'p1'"),
        (("a", "b ", "c"), ("a ", "b", "c"), "2 identifier.* as 'a' and 'a '"),
        (("007", "08", "c"), ("7", "8", "c"), "2 identifier.* as '007' and '7'"),
    ],
)
def test_samples_that_are_spelt_another_way_in_another_view_are_told(names, others, told):
    with pytest.warns(DataWarning, match=told):
        joined = from_frames([named(*names), named(*others)])
    assert joined.n_samples > 3


def test_samples_that_a_view_tells_apart_are_different():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_frames([named("A1", "a1", "b"), named("A1", "b", "c")])
        from_frames([named("A1", "b"), named("b", "c"), named("a1", "A1")])


def test_numbers_and_their_text_in_one_view_are_the_same_twice():
    with pytest.raises(InvalidViewsError, match="view 'view 0' must hold every identifier once, "):
        from_frames([named(7, "7", "b")])


@st.composite
def held_rows(draw):
    """Samples of three views in any order; the first sample is in all of them."""
    owners = draw(st.lists(st.sets(st.integers(0, 2), min_size=1), min_size=1, max_size=6))
    held = [[0] + [i for i, views in enumerate(owners, 1) if v in views] for v in range(3)]
    return [draw(st.permutations(rows)) for rows in held]


@settings(max_examples=25, deadline=None)
@given(held_rows(), st.sampled_from([int, str, float]))
def test_every_value_is_found_under_its_identifier_and_nothing_else(held, identifier):
    def value(v, i):
        return 10.0 * v + i + 1

    frames = {
        f"v{v}": pd.DataFrame(
            {"x": [value(v, i) for i in rows]}, index=pd.Index([identifier(i) for i in rows])
        )
        for v, rows in enumerate(held)
    }
    everyone = {i for rows in held for i in rows}
    found = from_frames(frames, labels={identifier(i): i % 2 for i in everyone})
    assert sorted(found.ids.tolist()) == sorted(identifier(i) for i in everyone)
    for row, key in enumerate(found.ids):
        i = int(key)
        assert found.y[row] == i % 2
        for v, rows in enumerate(held):
            expected = value(v, i) if i in rows else np.nan
            assert_array_equal(found.views[v][row], [expected])


def test_new_frames_take_the_columns_of_the_fitted_ones():
    fitted = from_frames({"photo": PHOTO, "sound": SOUND}, labels="kind", on="id")
    more = pd.DataFrame({"id": ["z"], "y": [40], "extra": [0.5], "x": [10.0]})
    new = from_frames({"photo": more}, on="id", like=fitted)
    assert_array_equal(new.views[0], [[10, 40]])
    with pytest.raises(InvalidViewsError, match=r"lacks 1 of them, \['y'\]"):
        from_frames({"photo": more.drop(columns="y")}, on="id", like=fitted)
    with pytest.raises(InvalidViewsError, match=r"'smell' is not among the views"):
        from_frames({"smell": more}, on="id", like=fitted)


@pytest.fixture(scope="module")
def blobs():
    made = make_multiview_blobs(80, n_views=2, random_state=0)
    task = hide(made.views, made.y, missing_rate=0.3, label_rate=0.2, random_state=0)
    names = np.array([f"s{i}" for i in range(80)])
    frames = {
        name: pd.DataFrame(view[seen], index=names[seen]).sample(frac=1, random_state=v)
        for v, (name, view, seen) in enumerate(
            zip(("left", "right"), task.data.views, task.data.observed.T, strict=True)
        )
    }
    labels = {names[i]: f"class {c}" for i, c in enumerate(task.y) if c >= 0}
    return task, names, frames, labels


def test_a_fit_on_shuffled_frames_says_the_same_as_one_on_arrays(blobs):
    task, names, frames, labels = blobs
    aligned = from_frames(frames, labels=labels)
    model = MendClassifier().fit(aligned)
    results = result_frame(model, aligned.ids).loc[names]
    direct = MendClassifier().fit(task.data, task.y)
    assert results["class"].tolist() == [f"class {c}" for c in direct.transduction_]
    shares = results[["p_class 0", "p_class 1", "p_class 2"]].to_numpy()
    assert_allclose(shares, direct.label_distributions_, atol=1e-6)
    assert_array_equal(results["confidence"], shares[np.arange(80), results["class"].cat.codes])


def test_results_in_another_order_than_that_of_fit_are_refused(blobs):
    _, _, frames, labels = blobs
    data = from_frames(frames, labels=labels)
    search = LabelSearchCV(MendClassifier(n_rounds=0), {"spreading": [0.9]}).fit(data)
    for model in (search, search.best_estimator_):
        assert result_frame(model, data.ids).index.tolist() == data.ids.tolist()
        with pytest.raises(InvalidViewsError, match=r"ids must be in the order .*\.sample_ids_"):
            result_frame(model, data.ids[::-1])
        # Other names are new names.
        assert result_frame(model, np.arange(80)).index.tolist() == list(range(80))


def test_results_of_new_samples_are_the_predictions_with_views_left_out(blobs):
    _, _, frames, labels = blobs
    aligned = from_frames(frames, labels=labels)
    model = MendClassifier().fit(aligned)
    new = from_frames({"right": frames["right"].iloc[:7]}, like=aligned)
    results = result_frame(model, new=new)
    expected = model.predict_proba({"right": frames["right"].iloc[:7].to_numpy()})
    assert results.index.tolist() == frames["right"].index[:7].tolist()
    assert_allclose(results.iloc[:, 2:], expected)
    assert results["class"].tolist() == model.classes_[expected.argmax(axis=1)].tolist()


def test_results_of_new_samples_need_a_method_that_predicts_them(blobs):
    _, _, frames, labels = blobs
    aligned = from_frames(frames, labels=labels)
    model = UnionGraphClassifier().fit(aligned)
    with pytest.raises(InvalidParameterError, match="labels the samples of its fit only"):
        result_frame(model, new=aligned[:5])


def test_results_of_a_wrong_number_of_identifiers_are_refused(blobs):
    task, names, _, _ = blobs
    model = MendClassifier(n_rounds=0).fit(task.data, task.y)
    with pytest.raises(InvalidViewsError, match=r"got 79 for 80 samples"):
        result_frame(model, names[1:])


REFUSED = {
    "repeated": ({"v": pd.DataFrame({"x": [1.0, 2.0]}, index=["a", "a"])}, {}, r"'a' more than"),
    "empty": ({"v": pd.DataFrame({"x": [1.0, 2.0]}, index=["a", None])}, {}, r"is row 2 of 2"),
    "not shared": (
        {"v": PHOTO[["id", "x"]], "w": SOUND.assign(id=["A", "B"])},
        {"on": "id"},
        r"such as 'a', are in none \(view 'w' has 'A'\)",
    ),
    "of two types": (
        {"v": SOUND, "w": pd.DataFrame({"id": [1, 2], "x": [1.0, 2.0]})},
        {"on": "id"},
        r"'w' are integer \(1\) and those of view 'v' are string \('c'\)",
    ),
    "row numbers only": (
        {"v": SOUND[["w"]], "w": PHOTO[["x"]]},
        {},
        r"lengths \{'v': 2, 'w': 3\}.*on=",
    ),
    "complex numbers": (
        {"v": pd.DataFrame({"z": [1j, 2j]}, index=["a", "b"])},
        {},
        r"view 'v': column 'z' has 2 of 2 cells that are complex numbers",
    ),
    "no such column": ({"v": PHOTO}, {"on": "key"}, r"must have the column 'key'"),
    "columns of one name": (
        {"v": pd.DataFrame([[1.0, 2.0]], columns=["x", "x"])},
        {},
        r"'x' more than once",
    ),
    "no frame": ({"v": np.eye(2)}, {}, r"got a ndarray.*from_arrays"),
    "no frames": ({}, {}, r"at least one frame"),
    "one frame": (SOUND, {}, r"got DataFrame"),
}


@pytest.mark.parametrize(("frames", "options", "message"), REFUSED.values(), ids=REFUSED)
def test_frames_that_cannot_be_joined_are_refused_with_a_reason(frames, options, message):
    with pytest.raises(InvalidViewsError, match=message):
        from_frames(frames, **options)


def test_polars_frames_need_a_column_of_identifiers():
    with pytest.raises(InvalidViewsError, match=r"no index.*on='id'"):
        from_frames({"sound": as_polars(SOUND)})


BAD_LABELS = {
    "no such column": ("sort", r"'sort' is none of their columns"),
    "strangers": ({"A": 1, "B": 2}, r"none of their 2 identifiers, such as 'A'"),
    "without identifiers": ([1, 2], r"got a list.*dict\(zip\(ids, labels\)\)"),
}


@pytest.mark.parametrize(("labels", "message"), BAD_LABELS.values(), ids=BAD_LABELS)
def test_labels_that_belong_to_no_sample_are_refused(labels, message):
    with pytest.raises(InvalidLabelsError, match=message):
        from_frames({"sound": SOUND}, labels=labels, on="id")


def test_labels_that_contradict_each_other_are_refused():
    frames = {"v": SOUND.assign(kind=["cat", "dog"]), "w": PHOTO}
    assert from_frames(frames, labels="kind", on="id").y.tolist() == ["cat", "dog", "cat", None]
    frames["v"] = SOUND.assign(kind=["cat", "cat"])
    with pytest.raises(InvalidLabelsError, match=r"'b' has the labels \['cat', 'dog'\]"):
        from_frames(frames, labels="kind", on="id")


def test_labels_of_unknown_samples_are_left_out_with_a_warning():
    with pytest.warns(DataWarning, match=r"1 labelled samples of the data, such as 'q'"):
        found = from_frames({"sound": SOUND}, labels={"q": 1, "b": 2}, on="id")
    assert found.y.tolist() == [None, 2]


@pytest.mark.parametrize(
    ("one", "other", "shown"),
    [("p1", "P1 ", "'p1' and 'P1 '"), ("M\u00fc", "Mu\u0308", r"'M\\xfc' and 'Mu\\u0308'")],
)
def test_identifiers_that_look_alike_are_told(one, other, shown):
    """They count as two samples, each without the views of the other."""
    frames = {"v": SOUND.assign(id=[one, "q"]), "w": SOUND.assign(id=[other, "q"])}
    with pytest.warns(DataWarning, match=f"1 identifier.* what cannot be seen, as {shown}, and"):
        assert from_frames(frames, on="id").n_samples == 3


def test_results_of_new_samples_take_views_in_any_form():
    X = {"v": frame_of(12), "w": frame_of(12)}
    model = MendClassifier(n_rounds=0, calibration=None).fit(X, [0, 1] + [None] * 10)
    new = {name: view[:3] for name, view in X.items()}
    results = result_frame(model, new=new)
    assert results.index.tolist() == ["a", "b", "c"]
    by_position = result_frame(model, new=check_views(new)[:])
    pd.testing.assert_frame_equal(results, by_position)


def test_classes_of_one_text_have_columns_of_their_own():
    with pytest.warns(DataWarning, match="differ only in their types"):
        model = MendClassifier(n_rounds=0, calibration=None).fit(
            frame_of(12), [1, "1"] + [None] * 10
        )
    results = result_frame(model)
    assert results.columns.tolist() == ["class", "confidence", "p_1", "p_'1'"]
    assert_array_equal(results.iloc[:, 2:], model.label_distributions_)


def frame_of(n):
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.normal(size=(n, 3)), index=list("abcdefghijkl")[:n], columns=[*"xyz"])


def test_frames_are_left_as_they_are():
    photo, before = PHOTO.copy(), PHOTO.copy()
    from_frames({"photo": photo}, labels="kind", on="id")
    pd.testing.assert_frame_equal(photo, before)


NUMBERS = np.array([[0.0, 1.5], [2.0, 0.0], [0.0, -3.25]])


def as_tensor(array, dtype="float32", **options):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    return torch.tensor(array, dtype=getattr(torch, dtype), **options)


# All numbers above are exact in the smallest of these types.
ARRAYS = {
    "numpy": np.asarray,
    "list": np.ndarray.tolist,
    "csr": scipy.sparse.csr_array,
    "coo matrix": scipy.sparse.coo_matrix,
    "tensor": as_tensor,
    "tensor with gradient": lambda array: as_tensor(array, requires_grad=True),
    "bfloat16 tensor": lambda array: as_tensor(array, "bfloat16"),
    "sparse tensor": lambda array: as_tensor(array).to_sparse(),
    "csr tensor": lambda array: as_tensor(array).to_sparse_csr(),
}


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize("convert", ARRAYS.values(), ids=ARRAYS)
def test_every_kind_of_array_is_joined_by_identifier(convert):
    arrays = {"left": convert(NUMBERS), "right": convert(NUMBERS[:2] + 1)}
    found = from_arrays(arrays, {"q": 1}, ids={"left": ["p", "q", "r"], "right": ["s", "p"]})
    nan = np.full((1, 2), np.nan)
    assert found.ids.tolist() == ["p", "q", "r", "s"]
    assert found.y.tolist() == [None, 1, None, None]
    assert_array_equal(found.views[0], np.vstack([NUMBERS, nan]))
    assert_array_equal(found.views[1], np.vstack([NUMBERS[1] + 1, nan, nan, NUMBERS[0] + 1]))


def test_arrays_without_identifiers_have_the_same_rows_and_labels_in_their_order():
    blank = np.where([[True], [False], [True]], NUMBERS, np.nan)
    found = from_arrays({"left": scipy.sparse.csr_array(NUMBERS), "right": blank}, ["a", None, "b"])
    assert found.ids.tolist() == [0, 1, 2]
    assert found.y.tolist() == ["a", None, "b"]
    assert_array_equal(found.observed[:, 1], [True, False, True])


def test_frames_among_arrays_are_identified_by_their_index():
    """Else a label would be given to the row of that number."""
    numbered = ORDERED.set_axis([2, 0, 1])
    found = from_arrays({"left": numbered, "right": NUMBERS}, pd.Series(["x", "y"], index=[2, 1]))
    assert found.ids.tolist() == [2, 0, 1]
    assert found.y.tolist() == ["x", None, "y"]


@pytest.mark.parametrize(
    "convert",
    [
        lambda array: array.astype(">f8"),
        lambda array: array.astype(str),
        lambda array: np.where(array == 0, None, array),
    ],
    ids=["another byte order", "text", "objects"],
)
def test_arrays_are_joined_by_the_numbers_that_they_hold(convert):
    array = convert(NUMBERS)
    numbers = np.array([[np.nan if cell is None else float(cell) for cell in row] for row in array])
    assert_array_equal(from_arrays({"left": array}).views[0], numbers)


def test_new_arrays_have_as_many_columns_as_the_fitted_ones():
    fitted = from_arrays({"left": NUMBERS, "right": NUMBERS})
    new = from_arrays({"right": NUMBERS[:1]}, like=fitted)
    assert_array_equal(new.views[0], NUMBERS[:1])
    with pytest.raises(InvalidViewsError, match=r"must have 2 columns, as in like, but has 4"):
        from_arrays({"right": np.hstack([NUMBERS, NUMBERS])}, like=fitted)


ORDERED = pd.DataFrame(NUMBERS, index=["p", "q", "r"])
BAD_ARRAYS = {
    "lengths": ({"l": NUMBERS, "r": NUMBERS[:2]}, {}, r"\{'l': 3, 'r': 2\}.*pass ids"),
    "1-D": ({"l": NUMBERS[0]}, {}, r"1-D of shape \(2,\)"),
    "too few ids": ({"l": NUMBERS}, {"ids": {"l": ["p"]}}, r"got 1 for 3 rows"),
    "no ids": ({"l": NUMBERS}, {"ids": {}}, r"an entry for view 'l'"),
    "complex": ({"l": NUMBERS * 1j}, {}, r"view 'l' must be real, got dtype complex128"),
    "another order": (
        {"l": ORDERED, "r": ORDERED[::-1]},
        {},
        r"different row indices.*from_frames joins them",
    ),
    "another order than ids": (
        {"l": ORDERED},
        {"ids": {"l": ["r", "q", "p"]}},
        r"ids of view 'l' must be in the order of its rows, .* from 'r'; pass frame.index",
    ),
    "list of views": ([NUMBERS], {}, r"got list"),
}


@pytest.mark.parametrize(("arrays", "options", "message"), BAD_ARRAYS.values(), ids=BAD_ARRAYS)
def test_arrays_that_cannot_be_joined_are_refused_with_a_reason(arrays, options, message):
    with pytest.raises(InvalidViewsError, match=message):
        from_arrays(arrays, **options)


def test_labels_by_row_must_be_one_per_row():
    with pytest.raises(InvalidLabelsError, match=r"got shape \(2,\) for 3 samples"):
        from_arrays({"l": NUMBERS}, ["a", "b"])


def test_a_sparse_view_that_would_fill_the_memory_is_refused_before_it_does():
    huge = scipy.sparse.csr_array((10**5, 10**9))
    with pytest.raises(TooLargeError, match=r"the 1000000000 of view 'huge'.*TruncatedSVD"):
        from_arrays({"huge": huge, "small": np.ones((10**5, 1))})
