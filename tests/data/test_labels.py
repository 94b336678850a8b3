"""Labels and class priors, and what every refusal says."""

import warnings
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import DataConversionWarning

from viewmend.data.labels import check_class_prior, check_labels
from viewmend.exceptions import DataWarning, InvalidLabelsError, InvalidParameterError

NAN = np.nan


class NAType:
    """Looks like ``pandas.NA``: cannot be compared or cast."""

    def __eq__(self, other):
        raise TypeError("boolean value of NA is ambiguous")

    __ne__ = __eq__
    __hash__ = object.__hash__


LABEL_SETS = [
    st.sampled_from([0, 3, 7]),
    st.sampled_from(["a", "bb", "-2"]),
    st.booleans(),
    st.sampled_from([(0, "x"), (1, "x"), (0, "y")]),
    st.sampled_from([1, "1", ("1",), b"1"]),
    st.sampled_from([frozenset("a"), frozenset("b"), frozenset("c")]),
]
MARKERS = [-1, -1.0, np.int8(-1), None, NAN, np.float32(NAN), NAType()]


spelt_at_will = pytest.mark.filterwarnings("ignore:classes .* differ only in")


@st.composite
def partial_labels(draw):
    """An object array of labels of at least two classes and markers, and which ones are labels."""
    label = draw(st.sampled_from(LABEL_SETS))
    values = draw(st.lists(label, min_size=2, max_size=12).filter(lambda v: len(set(v)) > 1))
    values += draw(st.lists(st.sampled_from(MARKERS), max_size=5))
    known = np.array([all(value is not marker for marker in MARKERS) for value in values])
    order = draw(st.permutations(range(len(values))))
    y = np.fromiter((values[i] for i in order), dtype=object, count=len(values))
    return y, known[list(order)]


@spelt_at_will
@given(partial_labels())
def test_classes_and_codes_give_the_labels_back(drawn):
    y, known = drawn
    y.flags.writeable = False
    labels = check_labels(y, len(y))
    np.testing.assert_array_equal(labels.labelled, known)
    np.testing.assert_array_equal(labels.codes == -1, ~known)
    assert labels.classes[labels.codes[known]].tolist() == y[known].tolist()
    assert len(set(labels.classes.tolist())) == labels.n_classes == len(set(y[known]))


@spelt_at_will
@given(partial_labels(), st.randoms(use_true_random=False))
def test_labels_do_not_depend_on_the_order_of_rows(drawn, random):
    y, _ = drawn
    order = list(range(len(y)))
    random.shuffle(order)
    labels, shuffled = check_labels(y, len(y)), check_labels(y[order], len(y))
    assert shuffled.classes.tolist() == labels.classes.tolist()
    np.testing.assert_array_equal(shuffled.codes, labels.codes[order])


@pytest.mark.parametrize(
    ("y", "classes", "codes"),
    [
        (np.array([5, -1, 2], dtype=np.int8), np.array([2, 5], dtype=np.int8), [1, -1, 0]),
        (np.array([5, 255, 2], dtype=np.uint8), np.array([2, 5, 255], dtype=np.uint8), [1, 2, 0]),
        ([0.0, 1.0, NAN], np.array([0, 1]), [0, 1, -1]),
        (np.array([2.0, -1.0, 0.0]), np.array([0, 2]), [1, -1, 0]),
        (np.array([2, NAN, 0], dtype=np.float32), np.array([0, 2]), [1, -1, 0]),
        ([True, None, False], np.array([False, True]), [1, -1, 0]),
        ([True, -1, False], np.array([False, True]), [1, -1, 0]),
        (np.array([True, False]), np.array([False, True]), [1, 0]),
        (["b", -1, "a"], np.array(["a", "b"]), [1, -1, 0]),
        (("b", NAN, "a"), np.array(["a", "b"]), [1, -1, 0]),
        (np.array(["-2", "1"]), np.array(["-2", "1"]), [0, 1]),
        (np.array([b"b", b"a"]), np.array([b"a", b"b"]), [1, 0]),
        (np.array([2, -1, 0], dtype=np.float16), np.array([0, 2]), [1, -1, 0]),
        (
            np.array(["2024-05-02", "NaT", "2024-05-01"], dtype="M8[D]"),
            np.array(["2024-05-01", "2024-05-02"], dtype="M8[D]"),
            [1, -1, 0],
        ),
    ],
)
def test_classes_are_sorted_and_keep_their_dtype(y, classes, codes):
    labels = check_labels(y, len(y))
    np.testing.assert_array_equal(labels.classes, classes)
    assert labels.classes.dtype == classes.dtype
    assert labels.codes.tolist() == codes
    assert labels.codes.dtype == np.int64


def test_labels_that_cannot_be_compared_go_by_type_and_repr():
    labels = check_labels(["b", 2, 1, None, "a"], 5)
    assert labels.classes.tolist() == [1, 2, "a", "b"]
    assert labels.codes.tolist() == [3, 1, 0, -1, 2]


def test_objects_that_can_be_compared_go_by_value():
    y = np.fromiter([(10,), (9,), None], dtype=object, count=3)
    labels = check_labels(y, 3)
    assert labels.classes.tolist() == [(9,), (10,)]
    assert labels.codes.tolist() == [1, 0, -1]


def test_masked_labels_are_unlabelled():
    y = np.ma.masked_array([0, 1, 1, 0], mask=[False, False, True, True])
    assert check_labels(y, 4).codes.tolist() == [0, 1, -1, -1]


def test_column_of_labels_is_flattened_with_a_warning():
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed") as caught:
        labels = check_labels(np.array([[1], [0], [-1]]), 3)
    assert labels.codes.tolist() == [1, 0, -1]
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("y", "classes", "codes"),
    [
        ([("b", 1), ("a", 1), ("a", 1)], [("a", 1), ("b", 1)], [1, 0, 0]),
        ([("b", 1), ("a",), None], [("a",), ("b", 1)], [1, 0, -1]),
        ([(1,), (0,), (-1,)], [0, 1], [1, 0, -1]),
        ([np.array(1), np.array(0), np.array(-1)], [0, 1], [1, 0, -1]),
        ([Decimal(1), Decimal("NaN"), Decimal(0)], [0, 1], [1, -1, 0]),
        ([Decimal(1), Decimal(-1), Decimal(0)], [0, 1], [1, -1, 0]),
        ([True, None, False], [False, True], [1, -1, 0]),
        ([*np.array([2, "NaT", 1], "M8[D]")], [*np.array([1, 2], "M8[D]")], [1, -1, 0]),
        ([2j, complex("nan"), 1j], [1j, 2j], [1, -1, 0]),
        (np.array([(1,), (-1,), (0,)], dtype=[("kind", int)]), [0, 1], [1, -1, 0]),
    ],
)
@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_every_value_of_a_list_is_one_label(y, classes, codes):
    labels = check_labels(y, 3)
    assert labels.classes.tolist() == classes
    assert labels.codes.tolist() == codes


def test_tensors_are_labels_wherever_they_are():
    torch = pytest.importorskip("torch")
    y = torch.tensor([1.0, 0.0, -1.0, 1.0])
    # Tensors of the same number are not equal, and would be as many classes.
    for form in (y, y.to(torch.bfloat16), y.clone().requires_grad_(), [*y], y.int(), [*y.int()]):
        labels = check_labels(form, 4)
        assert labels.classes.tolist() == [0, 1]
        assert labels.codes.tolist() == [1, 0, -1, 1]
    assert check_labels(y > 0, 4).classes.tolist() == [False, True]


@pytest.mark.parametrize(
    ("y", "told"),
    [
        ([1, "1", 2, "a"], "classes 1, '1' differ only in their types"),
        ([b"a", "a", "b", None], "classes b'a', 'a' differ only in their types"),
        # Names of files on a Mac have accents as signs of their own.
        (["\u00e9", "e\u0301", "b", None], r"classes .* differ only in what cannot be seen"),
        (
            ["a", "a\u200b", "b", None],
            r"classes 'a', 'a\\u200b' differ only in what cannot be seen",
        ),
        ([True, "true", False, None], "classes True, 'true' differ only in their types"),
    ],
)
def test_classes_of_the_same_text_are_told(y, told):
    with pytest.warns(DataWarning, match=f"{told} and are treated as different"):
        check_labels(y, 4)


def test_pandas_labels():
    pd = pytest.importorskip("pandas")
    assert check_labels(pd.Series([3, pd.NA, 2], dtype="Int64"), 3).codes.tolist() == [1, -1, 0]
    assert check_labels(pd.Categorical(["b", None, "a"]), 3).classes.tolist() == ["a", "b"]


def test_categories_that_no_sample_has_are_named():
    """Samples of such a class are there, most likely, and would all be taken for another."""
    pd = pytest.importorskip("pandas")
    cells = pd.Series(["b", None, "a"], dtype=pd.CategoricalDtype(["a", "b", "c", "d"]))
    with pytest.warns(DataWarning, match=r"no sample is labelled \['c', 'd'\].*label at least one"):
        labels = check_labels(cells, 3)
    assert labels.classes.tolist() == ["a", "b"]


def test_marks_of_unlabelled_samples_are_no_categories_to_miss():
    pd = pytest.importorskip("pandas")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_labels(pd.Categorical([2, -1, 1], categories=[-1, 1, 2]), 3)
        check_labels(pd.Categorical(["b", "", "a"]), 3)


@spelt_at_will
@given(partial_labels())
def test_shares_and_indicators_count_the_labelled_samples(drawn):
    y, known = drawn
    labels = check_labels(y, len(y))
    indicator = labels.one_hot(np.float32)
    assert indicator.dtype == np.float32
    np.testing.assert_array_equal(indicator.sum(axis=1), known)
    np.testing.assert_array_equal(indicator[known].argmax(axis=1), labels.codes[known])
    np.testing.assert_allclose(labels.shares() * known.sum(), indicator.sum(axis=0), rtol=1e-12)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed, but the target y is None; pass one label per sample"),
        ([0, 1], "y has 2 labels but X has 3 samples; .*-1 for unlabelled"),
        (np.eye(3), r"y must be 1-D \(n_samples,\), got 2-D of shape \(3, 3\); .*argmax"),
        ("abc", r"y must be 1-D .* got 'abc', a str; .* frame\[y\] if y is the name of a column"),
        ({"p": 1, "q": 2}, r"y must be 1-D .* a dict; pass a list"),
        ([-1, None, NAN], "at least 2 classes, got no label at all for 3 samples; label more"),
        ([-1, 1, 1], r"at least 2 classes, got 1 class \(1\) for 3 samples; .*recode y .*-1"),
        (["a", None, "a"], r"at least 2 classes, got 1 class \('a'\) for 3 samples"),
        ([[1], [1, 2], None], "labels must be hashable, got unhashable type: 'list'; use numbers"),
        ([0.5, 1.0, 2.0], "Unknown label type: continuous.* got 0.5; .*digitize"),
        ([0, 1, np.inf], "Unknown label type: continuous.* got inf"),
        # Beyond 2^53 not every integer is a float, and two classes could become one.
        ([0, 1, 2.0**53], "Unknown label type: continuous.* got 9007199254740992"),
    ],
)
def test_refused_labels(y, message):
    with pytest.raises(InvalidLabelsError, match=message):
        check_labels(y, 3)


# ------------------------------------------------------------------ class prior

LABELS = check_labels(["a", "b", "b", "b", None], 5)


def test_no_prior():
    assert check_class_prior(None, LABELS) is None


def test_named_priors():
    np.testing.assert_array_equal(check_class_prior("uniform", LABELS), [0.5, 0.5])
    np.testing.assert_array_equal(check_class_prior("labeled", LABELS), [0.25, 0.75])


@pytest.mark.parametrize(
    "class_prior", [[0.4, 0.6], np.array([0.4, 0.6]), {"b": 0.6, "a": 0.4}, {"a": 0.4, "b": 0.6}]
)
def test_given_prior_is_in_the_order_of_the_classes(class_prior):
    np.testing.assert_array_equal(check_class_prior(class_prior, LABELS), [0.4, 0.6])


@pytest.mark.parametrize("y", [[0, 1, -1], [False, True, None], [1.0, 2.0, NAN]])
def test_prior_by_label_of_any_type(y):
    labels = check_labels(y, 3)
    prior = {labels.classes[1]: 0.9, y[0]: 0.1}
    np.testing.assert_array_equal(check_class_prior(prior, labels), [0.1, 0.9])


def test_prior_may_miss_one_by_rounding():
    shares = [0.4, 0.6 + 9e-7]
    np.testing.assert_array_equal(check_class_prior(shares, LABELS), shares)


@pytest.mark.parametrize(
    ("class_prior", "message"),
    [
        ("equal", "must be None, 'labeled', 'uniform', a dict or an array, got 'equal'"),
        ([0.5, 0.5 + 2e-6], r"2 positive shares.* got \[0.5, 0.500002\], of sum 1; divide"),
        ([0.5, 0.6], r"that sum to 1, got \[0.5, 0.6\], of sum 1.1; divide them by their sum"),
        ([0.2, 0.3, 0.5], r"must hold 2 positive shares, .* got \[0.2, 0.3, 0.5\]"),
        ([0.0, 1.0], r"must hold 2 positive shares, .* got \[0.0, 1.0\]"),
        ([-0.5, 1.5], r"must hold 2 positive shares, .* got \[-0.5, 1.5\]"),
        ([NAN, 1.0], r"must hold 2 positive shares, .* got \[nan, 1.0\]"),
        (0.5, "must hold 2 positive shares, .* got 0.5"),
        (["x", "y"], r"must hold 2 positive shares, .* got \['x', 'y'\]; pass numbers"),
        ({"a": 0.4, "b": "most"}, r"must hold 2 positive shares, .* got \[0.4, 'most'\]"),
        (
            {"a": 0.4, "b": 0.4, "c": 0.2},
            r"names \['c'\], but the labels seen are \['a', 'b'\]; label at least one sample of it",
        ),
        ({"a": 1.0}, r"leaves out \['b'\], expected a share for each of \['a', 'b'\]; add"),
    ],
)
def test_refused_prior(class_prior, message):
    with pytest.raises(InvalidParameterError, match=message):
        check_class_prior(class_prior, LABELS)
