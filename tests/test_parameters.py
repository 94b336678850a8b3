"""Rules of parameters, and what every refusal says."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator

from viewmend.exceptions import InvalidParameterError
from viewmend.parameters import AnyOf, Each, Integer, OneOf, Real, check_parameters


class Grapher(BaseEstimator):
    def __init__(self, n_anchors="auto", method="bkhk", tol=1e-4, sizes=(2, 3)):
        self.n_anchors = n_anchors
        self.method = method
        self.tol = tol
        self.sizes = sizes


RULES = {
    "n_anchors": AnyOf(Integer(2), OneOf("auto")),
    "method": OneOf("bkhk", "kmeans", "random"),
    "tol": Real(low=0, low_open=True),
    "sizes": AnyOf(OneOf(None), Each(Integer(1))),
}


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        (Real(), -3),
        (Real(low=0), 0),
        (Real(low=0), np.float32(0.5)),
        (Real(low=0), np.longdouble(0.5)),
        (Real(low=0), 2**63 - 1),
        (Real(low=0, high=1), 1),
        (Real(low=0, high=1, low_open=True, high_open=True), 0.5),
        (Real(high=2), -1e300),
        (Integer(2), 2),
        (Integer(2), np.int8(7)),
        (Integer(None, 5), -10),
        (Integer(2, 4), 4),
        (OneOf("a", "b"), np.str_("b")),
        (OneOf(None), None),
        (OneOf(True, False), np.True_),
        (OneOf(0.5, 1.0), 1),
        (AnyOf(Integer(2), OneOf("auto")), "auto"),
        (AnyOf(Integer(2), OneOf("auto")), 3),
        (Each(Integer(1)), [1, np.int64(2)]),
        (Each(OneOf("a")), ("a", "a")),
    ],
)
def test_rule_accepts(rule, value):
    assert rule.accepts(value)


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        (Real(), True),
        (Real(), np.True_),
        (Real(), "1"),
        (Real(), None),
        (Real(), 1j),
        (Real(), np.array([1.0])),
        (Real(low=0), 10**400),
        (Real(), math.nan),
        (Real(), math.inf),
        (Real(low=0, low_open=True), 0),
        (Real(low=0), -1e-300),
        (Real(high=1, high_open=True), 1.0),
        (Real(low=0, high=1), 1.5),
        (Integer(2), 1),
        (Integer(2), 2.0),
        (Integer(2), 2**31),
        (Integer(0), True),
        (Integer(0), np.False_),
        (Integer(2, 4), 5),
        (OneOf(0, 1), True),
        (OneOf(True, False), 1),
        (OneOf("a"), "b"),
        (OneOf("a"), np.array(["a", "a"])),
        (OneOf(1), np.array([1, 1])),
        (AnyOf(Integer(2), OneOf("auto")), "automatic"),
        (Each(Integer(1)), (1, 0)),
        (Each(Integer(1)), ()),
        (Each(Integer(1)), 3),
        (Each(OneOf("a", "b")), "ab"),
    ],
)
def test_rule_refuses(rule, value):
    assert not rule.accepts(value)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Real(), "a number"),
        (Real(low=0), "a number >= 0"),
        (Real(low=0, low_open=True), "a number > 0"),
        (Real(high=1), "a number <= 1"),
        (Real(high=1, high_open=True), "a number < 1"),
        (Real(low=0, high=1), "a number in [0, 1]"),
        (Real(low=0, high=1, low_open=True), "a number in (0, 1]"),
        (Real(low=0, high=1, high_open=True), "a number in [0, 1)"),
        (Integer(2), "an integer >= 2"),
        (Integer(2, 5), "an integer in [2, 5]"),
        (OneOf("auto"), "'auto'"),
        (OneOf("bkhk", "kmeans", "random"), "one of 'bkhk', 'kmeans', 'random'"),
        (AnyOf(Integer(2), OneOf("auto")), "an integer >= 2 or 'auto'"),
        (Each(Integer(1)), "a non-empty tuple or list with every entry an integer >= 1"),
    ],
)
def test_rule_says_what_it_expects(rule, expected):
    assert rule.expected == expected


@given(low=st.integers(-5, 5), width=st.integers(0, 5), value=st.integers(-12, 12))
def test_integer_bounds_are_those_of_a_range(low, width, value):
    assert Integer(low, low + width).accepts(value) == (value in range(low, low + width + 1))


@given(value=st.floats(allow_nan=False, allow_infinity=False), bound=st.floats(-1e3, 1e3))
def test_open_and_closed_bounds_split_the_line(value, bound):
    below = Real(high=bound, high_open=True).accepts(value)
    assert below != Real(low=bound).accepts(value)
    above = Real(low=bound, low_open=True).accepts(value)
    assert above != Real(high=bound).accepts(value)


def test_valid_parameters_pass():
    check_parameters(Grapher(), RULES)
    check_parameters(Grapher(n_anchors=np.int32(16), sizes=None), RULES)


def test_message_names_owner_parameter_expectation_and_value():
    message = r"^n_anchors of Grapher must be an integer >= 2 or 'auto', got 1; .*set_params"
    with pytest.raises(InvalidParameterError, match=message):
        check_parameters(Grapher(n_anchors=np.int64(1)), RULES)


def test_message_shows_a_wrong_choice_among_the_right_ones():
    message = "method of Grapher must be one of 'bkhk', 'kmeans', 'random', got 'ward'; "
    with pytest.raises(InvalidParameterError, match=message):
        check_parameters(Grapher(method="ward"), RULES)


def test_message_lists_all_faults_and_only_those():
    with pytest.raises(InvalidParameterError) as caught:
        check_parameters(Grapher(method=None, tol=0.0, sizes=[3, -1]), RULES)
    assert str(caught.value) == (
        "method of Grapher must be one of 'bkhk', 'kmeans', 'random', got None; "
        "tol of Grapher must be a number > 0, got 0.0; "
        "sizes of Grapher must be None or a non-empty tuple or list with every entry an integer "
        ">= 1, got [3, -1]; change it with set_params(method=..., tol=..., sizes=...)"
    )


def test_message_shortens_a_long_value():
    with pytest.raises(InvalidParameterError, match=r"got \[0, 0, 0, 0, 0, 0, \.\.\.\]; "):
        check_parameters(Grapher(sizes=[0] * 1000), RULES)
