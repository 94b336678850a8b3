"""Views as users give them: what is read, and what every refusal says."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from viewmend import MultiViewData
from viewmend.data.matching import ViewsOfFit
from viewmend.data.validation import check_new_views, check_views, without_zero_rows
from viewmend.exceptions import DataWarning, InvalidViewsError

NAN = np.nan
FIT = {"fit": ViewsOfFit(("image", "text"), (2, 1))}


class NAType:
    """Looks like ``pandas.NA``: cannot be compared or cast."""

    def __eq__(self, other):
        raise TypeError("boolean value of NA is ambiguous")

    __ne__ = __eq__
    __hash__ = object.__hash__


def image(n_samples=4):
    return np.arange(1.0, 2 * n_samples + 1).reshape(n_samples, 2)


def text(n_samples=4):
    return -np.arange(1.0, n_samples + 1)[:, None]


def assert_same(data, other):
    assert data.names == other.names
    np.testing.assert_array_equal(data.observed, other.observed)
    for view, expected in zip(data.views, other.views, strict=True):
        np.testing.assert_array_equal(view, expected)
        assert view.dtype == expected.dtype


@st.composite
def views_and_mask(draw):
    """Views without zeros, read-only, and a mask that leaves every sample and view something."""
    n_samples, n_views = draw(st.tuples(st.integers(1, 8), st.integers(1, 4)))
    values = st.floats(0.5, 9.0)
    sizes = draw(st.lists(st.integers(1, 3), min_size=n_views, max_size=n_views))
    views = [draw(npst.arrays(np.float64, (n_samples, size), elements=values)) for size in sizes]
    mask = draw(npst.arrays(np.bool_, (n_samples, n_views)))
    mask[np.arange(n_samples), np.arange(n_samples) % n_views] = True
    mask[0] = True
    for array in [*views, mask]:
        array.flags.writeable = False
    return views, mask


# ------------------------------------------------------------------ accepted forms of views


@given(views_and_mask())
def test_mask_and_nan_rows_say_the_same(drawn):
    views, mask = drawn
    blanked = [np.where(mask[:, [v]], view, NAN) for v, view in enumerate(views)]
    from_mask = check_views(views, mask=mask)
    assert_same(from_mask, check_views(blanked))
    np.testing.assert_array_equal(from_mask.observed, mask)


@given(views_and_mask())
def test_stacking_and_splitting_gives_the_views_back(drawn):
    views, mask = drawn
    data = check_views(views, mask=mask)
    stacked = data.stacked()
    stacked.flags.writeable = False
    assert_same(check_views(stacked, view_sizes=data.n_features), data)
    assert_same(check_views(stacked.tolist(), view_sizes=np.array(data.n_features)), data)
    assert_same(check_views(data), data)


@given(views_and_mask())
def test_seen_rows_are_kept_and_missing_rows_are_nan(drawn):
    views, mask = drawn
    data = check_views(tuple(views), mask=mask)
    for v, view in enumerate(views):
        np.testing.assert_array_equal(data.rows_seen(v), view[mask[:, v]])
        assert np.isnan(data.views[v][~mask[:, v]]).all()


@given(views_and_mask(), st.randoms(use_true_random=False))
def test_new_views_in_any_form_agree(drawn, random):
    views, mask = drawn
    names = tuple("abcd"[: len(views)])
    fitted = check_views(dict(zip(names, views, strict=True)), mask=mask)
    how = {"fit": ViewsOfFit(tuple(names), fitted.n_features)}
    order = list(names)
    random.shuffle(order)
    shuffled = {name: fitted.views[names.index(name)] for name in order}
    assert_same(check_new_views(shuffled, **how), fitted)
    assert_same(check_new_views(check_views(shuffled), **how), fitted)
    assert_same(check_new_views(list(fitted.views), **how), fitted)
    assert_same(check_new_views(fitted.stacked(), **how), fitted)
    assert_same(check_new_views(views, **{**how, "mask": mask}), fitted)


def test_dict_keys_become_names():
    data = check_views({"image": image(), 7: text()})
    assert data.names == ("image", "7")
    np.testing.assert_array_equal(data.views[1], text())


def test_list_gets_default_names():
    assert check_views([image(), text()]).names == ("view 0", "view 1")


def test_one_array_is_one_view():
    data = check_views(image())
    assert data.names == ("view 0",)
    np.testing.assert_array_equal(data.views[0], image())


@pytest.mark.parametrize("container", [scipy.sparse.csr_matrix, scipy.sparse.coo_array])
def test_sparse_views_become_dense(container):
    assert_same(check_views([container(image()), text()]), check_views([image(), text()]))
    assert_same(check_views(container(image())), check_views(image()))


def test_objects_with_array_protocol():
    class Frame:
        def __array__(self, dtype=None, copy=None):
            return np.array(image(), dtype=dtype)

    assert_same(check_views([Frame(), text()]), check_views([image(), text()]))


@pytest.mark.parametrize("given_as", [np.int8, np.float32, np.bool_, object, str])
def test_castable_dtypes_are_cast(given_as):
    ones = np.ones((3, 2)).astype(given_as) if given_as is not str else np.full((3, 2), "1")
    view = check_views([ones]).views[0]
    assert view.dtype == np.float64
    np.testing.assert_array_equal(view, np.ones((3, 2)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_of_the_result(dtype):
    mask = np.array([[True, True], [False, True], [True, True], [True, False]])
    data = check_views([image(), text()], mask=mask, dtype=dtype)
    assert [view.dtype for view in data.views] == [dtype, dtype]


def test_views_are_c_contiguous():
    data = check_views([np.asfortranarray(image()), text()])
    assert data.views[0].flags.c_contiguous
    blocks = check_views(np.hstack([image(), text()]), view_sizes=[2, 1])
    assert all(view.flags.c_contiguous for view in blocks.views)


@pytest.mark.parametrize("missing", [None, NAN, NAType()])
def test_objects_for_missing_values_are_nan(missing):
    view = np.array([[missing, missing], [1, 2]], dtype=object)
    data = check_views([view, text(2)])
    np.testing.assert_array_equal(data.views[0], [[NAN, NAN], [1, 2]])
    np.testing.assert_array_equal(data.observed, [[False, True], [True, True]])


def test_masked_rows_of_masked_arrays_are_missing():
    view = np.ma.masked_array(image(2), mask=[[True, True], [False, False]])
    assert check_views([view, text(2)]).observed.tolist() == [[False, True], [True, True]]


def test_container_rules_over_the_content_of_its_views():
    observed = np.array([[True, True], [False, True]])
    data = MultiViewData((np.array([[1, 2], [3, 4]]), text(2)), observed, ("a", "b"))
    checked = check_views(data)
    np.testing.assert_array_equal(checked.views[0], [[1, 2], [NAN, NAN]])
    np.testing.assert_array_equal(checked.observed, observed)
    assert checked.names == ("a", "b")


def test_mask_and_nan_rows_add_up():
    views = [image(3), text(3)]
    views[0][0] = NAN
    mask = np.array([[True, True], [True, False], [True, True]])
    data = check_views(views, mask=mask)
    assert data.observed.tolist() == [[False, True], [True, False], [True, True]]


def test_rows_under_the_mask_are_ignored():
    view = image(3)
    view[0] = [NAN, 1]
    view[1] = [np.inf, 0]
    view[2] = 0
    mask = np.array([[False, True], [False, True], [False, True], [True, True]])
    data = check_views([np.vstack([view, [[5, 6]]]), text()], mask=mask)
    np.testing.assert_array_equal(data.views[0], [[NAN, NAN]] * 3 + [[5, 6]])


def test_only_views_that_change_are_copied():
    first, second = image(3), text(3)
    second[1] = NAN
    mask = np.array([[True, True], [True, False], [True, True]])
    mask[0, 0] = False
    data = check_views([first, second], mask=mask)
    assert not np.shares_memory(data.views[0], first)
    assert np.shares_memory(data.views[1], second)
    np.testing.assert_array_equal(first, image(3))


def test_a_masked_entry_of_a_mask_was_not_seen():
    mask = np.ma.masked_array(np.ones((4, 2), dtype=bool), mask=False)
    mask[1, 0] = np.ma.masked
    observed = check_views([image(), text()], mask=mask).observed
    assert observed.tolist() == [[True, True], [False, True], [True, True], [True, True]]


@pytest.mark.parametrize("unknown", [None, NAType()])
def test_an_empty_cell_of_a_mask_was_not_seen(unknown):
    """As objects, in which nullable frames hold their flags."""
    mask = np.array([[True, True], [unknown, True], [True, False]], dtype=object)
    observed = check_views([image(3), text(3)], mask=mask).observed
    assert observed.tolist() == [[True, True], [False, True], [True, False]]
    with pytest.raises(InvalidViewsError, match=r"mask must be bool .* got object"):
        check_views([image(3), text(3)], mask=[[1, True], [None, True], [True, False]])


def test_mask_is_not_modified():
    mask = np.ones((3, 2), dtype=bool)
    mask.flags.writeable = False
    view = image(3)
    view[1] = NAN
    assert check_views([view, text(3)], mask=mask).observed[1].tolist() == [False, True]
    assert mask.all()


def test_pandas_frames_and_their_missing_values():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": [1, 2], "y": [3, 4]}).astype("Int64")
    frame.loc[0] = pd.NA
    data = check_views([frame, pd.DataFrame(text(2))])
    np.testing.assert_array_equal(data.views[0], [[NAN, NAN], [2, 4]])


def test_frames_of_other_samples_are_refused():
    pandas = pytest.importorskip("pandas")
    left = pandas.DataFrame([[1.0], [2.0]], index=["a", "b"])
    right = pandas.DataFrame([[2.0], [1.0]], index=["b", "a"])
    with pytest.raises(InvalidViewsError, match="view 1 and view 0 are frames with different row"):
        check_views([left, right])
    aligned = check_views([left, right.reindex(["a", "b"])])
    np.testing.assert_array_equal(aligned.views[1], [[1.0], [2.0]])


# ------------------------------------------------------------------ zero rows


def test_zero_rows_are_data_unless_mask_or_nan_says_otherwise():
    first, second = image(4), text(4)
    first[[1, 3]] = 0
    second[[0, 2]] = [[0], [NAN]]
    mask = np.ones((4, 2), dtype=bool)
    mask[3, 0] = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = check_views({"image": first, "text": second}, mask=mask)
        new = check_new_views([first, second], **(FIT | {"mask": mask}))
    assert data.observed.tolist() == [[True, True], [True, True], [True, False], [False, True]]
    np.testing.assert_array_equal(data.views[0][1], [0, 0])
    np.testing.assert_array_equal(new.observed, data.observed)
    assert check_views([image(), np.zeros((4, 2))]).observed.all()


def test_zero_rows_can_be_marked_missing_with_one_warning_per_view():
    first, second = image(4), text(4)
    first[[1, 3]] = 0
    second[0] = 0
    data = check_views({"image": first, "text": second})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        marked = without_zero_rows(data, "in this test")
    assert [w.category for w in caught] == [DataWarning, DataWarning]
    assert re.search(
        r"view 'image' has 2 all-zero row\(s\) \(rows 1, 3\).*missing in this test",
        str(caught[0].message),
    )
    assert re.search(r"view 'text' has 1 all-zero row\(s\) \(rows 0\)", str(caught[1].message))
    assert marked.observed.tolist() == [[True, False], [False, True], [True, True], [False, True]]
    np.testing.assert_array_equal(marked.views[0][[1, 3]], np.full((2, 2), NAN))
    np.testing.assert_array_equal(data.views[0][[1, 3]], np.zeros((2, 2)))


# ------------------------------------------------------------------ refused views


def with_value(value, row=2):
    view = image()
    view[row, 0] = value
    return view


REFUSED_VIEWS = [
    ([], "no views: expected at least one array, got an empty list"),
    ({}, "no views: expected at least one array, got an empty dict"),
    ([image(), np.ones(4)], r"view 1 must be 2-D .* got 1-D of shape \(4,\)\. Reshape your data"),
    (np.ones((2, 3, 4)), r"X must be 2-D .* got 3-D of shape \(2, 3, 4\)"),
    ("abc", r"X must be 2-D .* got 0-D of shape \(\)"),
    (
        [[[1, 2], [3]], text(2)],
        "view 0 must be 2-D, got .*inhomogeneous.*pass rows of equal length",
    ),
    (
        [image(), np.ones((4, 0))],
        r"view 1 has 0 feature\(s\) \(shape=\(4, 0\)\) while a minimum of 1",
    ),
    ({"a": image(), "b": text(3)}, "view 'b' has 3 rows but view 'a' has 4; .*NaN"),
    (np.empty((0, 3)), "view 0 has 0 samples, expected at least 1"),
    ([image(), None], "view 1 is None, so it has no observed sample; .*leave the view out"),
    ([image(), np.full((4, 3), NAN)], "view 1 has no observed sample.* got 4 missing rows"),
    ([with_value(np.inf)], r"view 0 has infinite values in 1 row\(s\) \(rows 2\).* float64"),
    ([with_value(-np.inf, row=0)], r"view 0 has infinite values in 1 row\(s\) \(rows 0\)"),
    (
        [image().astype(complex)],
        "Complex data not supported: view 0 must be real, got dtype complex",
    ),
    ([np.array([["1", "red"]])], "view 0 must be numeric, got dtype <U3 .*'red'.*OneHotEncoder"),
    ([np.array([[{}]], dtype=object)], "view 0 must be numeric, got dtype object .*'dict'"),
    ([np.array([[10**400]], dtype=object)], r"view 0 must be numeric, got dtype object \(int too"),
    (
        [np.array([["2024-05-01"]], dtype="M8[D]")],
        r"view 0 must be numeric, got dtype datetime64\[D\]",
    ),
    # NumPy would count days since 1970.
    (
        [np.array([[np.datetime64("2024-05-01")]], dtype=object)],
        r"view 0 must be numeric, got dtype object \(datetime64 needs a unit\)",
    ),
    (
        [np.array([[1.5, np.timedelta64(7, "D")]], dtype=object)],
        r"view 0 must be numeric, got dtype object \(timedelta64 needs a unit\)",
    ),
    ({1: image(), "1": text()}, r"two views have the same name, got names \['1', '1'\]"),
]


@pytest.mark.parametrize(("views", "message"), REFUSED_VIEWS)
def test_refused_views(views, message):
    with pytest.raises(InvalidViewsError, match=message):
        check_views(views)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_frames_that_are_no_numbers_are_named(library):
    frames = pytest.importorskip(library)
    table = frames.DataFrame({"crp": [1.5, 2.0], "site": ["north", "south"], "kind": ["a", "1"]})
    told = r"view 'labs' must be numeric, but its column\(s\) site, kind are not; .*from_frames"
    with pytest.raises(InvalidViewsError, match=told):
        check_views({"labs": table})


def test_objects_are_also_a_type_error():
    with pytest.raises(TypeError, match="argument must be a string or a real number, not 'dict'"):
        check_views(np.array([[{}]], dtype=object))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_whose_squares_overflow_are_refused_by_view_row_and_size(dtype):
    message = r"view 0 has values beyond 1e\+140 in 1 row\(s\) \(rows 2\), the largest 1e\+300"
    with pytest.raises(InvalidViewsError, match=message):
        check_views([with_value(1e300)], dtype=dtype)
    mask = np.ones((4, 2), dtype=bool)
    mask[2, 0] = False
    np.testing.assert_array_equal(
        check_views([with_value(1e300), image()], mask=mask, dtype=dtype).observed, mask
    )


def test_a_view_whose_squares_vanish_is_refused_but_tiny_rows_are_not():
    with pytest.raises(InvalidViewsError, match=r"no value above 1e-140, its largest is 1e-200"):
        check_views([np.full((3, 2), 1e-200)])
    view = np.array([[1.0, 2.0], [1e-300, 3e-300]])
    np.testing.assert_array_equal(check_views([view]).views[0], view)


@pytest.mark.parametrize(
    ("view", "dtype"),
    [
        (np.array([[1.0, 5.0], [2.0, 5.0]]), np.float32),
        (np.array([[1.0, 5.0], [2.0, 5.0], [NAN, NAN]]), np.float32),
        (1e9 + np.array([[1.0, 5.0], [2.0, 5.0]]), np.float64),
        (np.array([[1.0, 1e6], [2.0, 1e6 + 1]], dtype=np.float32), np.float64),
        (np.array([[1.0, 1e20], [2.0, 2e20]]), np.float64),
        (np.array([[1e-20, 1e-20], [2e-20, 3e-20]]), np.float64),
    ],
)
def test_float32_is_for_views_that_it_can_hold(view, dtype):
    given = check_views([view, np.ones((len(view), 1))], dtype=np.float32).views
    assert [kept.dtype for kept in given] == [dtype, np.float32]
    np.testing.assert_array_equal(given[0], view)


def test_new_values_beyond_float32_are_refused_where_the_fit_kept_float32():
    X = [with_value(1e39)]
    like = {"fit": ViewsOfFit(("a",), (X[0].shape[1],))}
    assert check_new_views(X, **like).views[0].dtype == np.float64
    with pytest.raises(InvalidViewsError, match=r"'a' has values beyond 3e\+38 in 1 row\(s\)"):
        check_new_views(X, **like, dtypes=[np.float32])


def test_many_offending_rows_are_counted_and_the_first_named():
    view = image(9)
    view[1:, 0] = np.inf
    message = r"infinite values in 8 row\(s\) \(rows 1, 2, 3, 4, 5, \.\.\.\)"
    with pytest.raises(InvalidViewsError, match=message):
        check_views([view])


def test_samples_without_any_view_are_kept_but_some_view_must_be_there():
    mask = np.ones((9, 2), dtype=bool)
    mask[2:] = False
    data = check_views([image(9), text(9)], mask=mask)
    np.testing.assert_array_equal(data.unseen, ~mask[:, 0])
    with pytest.raises(InvalidViewsError, match="view 0 has no observed sample"):
        check_views([image(9), text(9)], mask=np.zeros((9, 2), dtype=bool))


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.ones((2, 4), dtype=bool), r"shape \(4, 2\) .*got bool of shape \(2, 4\)"),
        (np.ones(4, dtype=bool), r"mask must be bool of shape \(4, 2\) .*got bool of shape \(4,\)"),
        (np.ones((4, 2), dtype=np.int64), r"got int64 of shape \(4, 2\); .*dtype=bool"),
    ],
)
def test_refused_mask(mask, message):
    with pytest.raises(InvalidViewsError, match=message):
        check_views([image(), text()], mask=mask)


@pytest.mark.parametrize(
    ("view_sizes", "message"),
    [
        ((2, 2), r"view_sizes=\(2, 2\) must sum .* sums to 4 and X has 3"),
        ((3, 0), r"every entry an integer >= 1, got \(3, 0\)"),
        ((1.5, 1.5), r"every entry an integer >= 1, got \(1\.5, 1\.5\)"),
        ((True, 2), r"every entry an integer >= 1, got \(True, 2\)"),
        ((), r"view_sizes must be a non-empty tuple or list .* got \(\)"),
        (3, "view_sizes must be a non-empty tuple or list .* got 3"),
    ],
)
def test_refused_view_sizes(view_sizes, message):
    with pytest.raises(InvalidViewsError, match=message):
        check_views(np.hstack([image(), text()]), view_sizes=view_sizes)


@pytest.mark.parametrize("collect", [list, dict, check_views])
def test_view_sizes_are_only_for_one_array(collect):
    views = {"a": image(), "b": text()}
    X = views if collect is dict else collect(list(views.values()))
    message = rf"view_sizes=\(1, 2\) splits one 2-D array, but X is a {type(X).__name__}"
    with pytest.raises(InvalidViewsError, match=message):
        check_views(X, view_sizes=(1, 2))


# ------------------------------------------------------------------ new views


def test_views_left_out_of_a_dict_are_missing():
    data = check_new_views({"text": text(2)}, **FIT)
    assert data.names == ("image", "text")
    assert data.observed.tolist() == [[False, True], [False, True]]
    np.testing.assert_array_equal(data.views[0], np.full((2, 2), NAN))
    np.testing.assert_array_equal(data.views[1], text(2))


def test_none_in_a_list_is_a_missing_view():
    assert_same(check_new_views([None, text(2)], **FIT), check_new_views({"text": text(2)}, **FIT))


def test_all_nan_view_is_allowed_in_new_data():
    data = check_new_views([image(2), np.full((2, 1), NAN)], **FIT)
    assert data.observed.tolist() == [[True, False], [True, False]]


def test_lists_go_by_position_even_if_names_look_like_the_default():
    fit = ViewsOfFit(("view 1", "view 0"), (2, 1))
    data = check_new_views([image(2), text(2)], fit)
    assert data.names == ("view 1", "view 0")
    np.testing.assert_array_equal(data.views[0], image(2))


def test_containers_of_other_names_go_by_position():
    data = check_new_views(check_views([image(2), text(2)]), **FIT)
    assert data.names == ("image", "text")
    np.testing.assert_array_equal(data.views[1], text(2))


def test_new_mask_follows_the_order_of_fit():
    mask = np.array([[True, False], [True, True]])
    data = check_new_views({"text": text(2), "image": image(2)}, **{**FIT, "mask": mask})
    np.testing.assert_array_equal(data.observed, mask)
    np.testing.assert_array_equal(data.views[1], [[NAN], [-2]])


def test_fitted_sizes_split_new_arrays():
    stacked = np.hstack([image(2), text(2)])
    data = check_new_views(stacked, **{**FIT, "view_sizes": (2, 1)})
    np.testing.assert_array_equal(data.views[0], image(2))
    np.testing.assert_array_equal(data.views[1], text(2))


def test_new_views_get_the_dtype_asked_for():
    data = check_new_views({"text": text(2)}, dtypes=[np.float32, np.float64], **FIT)
    assert [view.dtype for view in data.views] == [np.float32, np.float64]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (image(2), r"X has 2 features, but predict is expecting 3 features as input.*\(2, 1\)"),
        ([image(2)], r"X has 1 view, but fit saw 2 \(image, text\)"),
        ([text(2), text(2)], "view 'image' has 1 columns but had 2 in fit"),
        ({"text": image(2)}, "view 'text' has 2 columns but had 1 in fit"),
        ({"sound": text(2)}, r"unknown view 'sound': fit saw the views \['image', 'text'\]"),
        ([None, None], "no views: expected at least one array, got None for every view"),
        ({}, "no views: expected at least one array, got an empty dict"),
        ([image(2), text(3)], "view 'text' has 3 rows but view 'image' has 2"),
    ],
)
def test_refused_new_views(X, message):
    with pytest.raises(InvalidViewsError, match=message):
        check_new_views(X, **FIT)
