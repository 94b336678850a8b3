"""Every implementation of a kernel equals the agnostic one on NumPy arrays."""

import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from viewmend.backend import agnostic, dispatch
from viewmend.backend.namespace import array_namespace, to_numpy

RNG = np.random.default_rng(0)
B = RNG.normal(size=(40, 13)) * 2
PREVIOUS = np.abs(RNG.normal(size=B.shape))
# Rows where projections are delicate: no positive entry, all equal, ties, huge numbers.
HARD = np.array(
    [
        [-3.0, -1.0, -2.0],
        [0.5, 0.5, 0.5],
        [0.0, 0.0, 0.0],
        [1e9, 1e9 + 0.25, -1e9],
        [0.1, 0.0, -5.0],
    ]
)
X, A = RNG.normal(size=(30, 4)), RNG.normal(size=(9, 4))
DISTANCES = agnostic.squared_distances(X, A, xp=array_namespace(X))
TIES = np.array([[1.0, 1.0, 1.0, 2.0], [0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 3.0]])
SPD = A.T @ A + np.eye(4)

GRAPHS = RNG.dirichlet(np.full(13, 0.3), size=(3, 40))
TENSOR = RNG.normal(size=(3, 12, 7))
SPECTRUM = np.fft.rfft(TENSOR, axis=1)

# Rows without entries, with few, as observed rows of a graph have, and with all.
WIDE = RNG.normal(size=(3, 40, 50))
WIDE[:, :30] *= RNG.random((3, 30, 50)) < 0.05
WIDE[0, :2] = 0.0

TALL = TENSOR.repeat(10)[: GRAPHS.size].reshape(GRAPHS.shape)

CASES = {
    "best_response_rows": [
        (GRAPHS, PREVIOUS, np.array([2.0, 0.5, 0.0]), 0.3),
        (GRAPHS[:1], 0 * PREVIOUS, np.ones(1), 20.0),
    ],
    "ascend": [(TALL, GRAPHS, GRAPHS[::-1], 0.7)],
    "squared_gap": [(GRAPHS, GRAPHS[::-1])],
    "shifted": [(GRAPHS, TALL, 0.3), (B, PREVIOUS, -2.0)],
    "multiply": [
        (GRAPHS, TENSOR.transpose(0, 2, 1)[:, :1].repeat(13, axis=1)),
        (B, B[:13]),
        (WIDE, WIDE.transpose(0, 2, 1).copy()),
        (WIDE[:, :30], WIDE[:, :1].repeat(50, axis=1)),
    ],
    "cross_products": [
        (WIDE, WIDE[1]),
        (WIDE[:2, :30], WIDE[2, :30]),
        (GRAPHS, B),
        (B, PREVIOUS[:, :2]),
    ],
    "sparse_cross_products": [(np.maximum(B, 2.0) - 2.0, PREVIOUS[:, :2])],
    "column_sums": [(B,), (WIDE[0],)],
    "gram": [(B, PREVIOUS[:, 0])],
    "shrink_fourier": [
        (RNG.normal(size=(2, 67 * 2, 5)), 3.0),
        (TENSOR, 2.0),
        (TENSOR[:, :11, :6], np.linspace(0, 9, 6)),
        (TENSOR[:1, :1], 0.1),
        (np.stack([TENSOR[0]] * 3), 1.0),
    ],
    "shrink_slices": [
        (TENSOR, np.linspace(0, 4, 12)),
        (SPECTRUM, 3.0),
        (np.zeros((2, 3, 4)), 1.0),
        (np.repeat(TENSOR[:2], 3, axis=0), 0.5),
    ],
    "project_simplex_rows": [(B,), (HARD,)],
    "project_positive_rows": [(B, PREVIOUS), (HARD, np.full_like(HARD, 1 / 3))],
    "project_ragged_rows": [(B[:3].ravel(), np.array([0, 5, 5, 20, 39]))],
    "squared_distances": [(X, A)],
    "nearest_anchor_weights": [(DISTANCES, 3), (TIES, 2), (DISTANCES, 8)],
    "inners": [([(B, PREVIOUS), (PREVIOUS, PREVIOUS)],)],
    "aim_rows": [(B, PREVIOUS, np.array([3, 0, 39]), B[5:8], 0.7, 2.0)],
    "imputed_rows": [(B, PREVIOUS, np.array([3, 0, 39]), B[5:8], 0.7, 2.0)],
    "solve_spd": [(SPD, A.T)],
    "polar_factors": [(np.stack([SPD + A[:4], A[4:8]]),)],
}
# What has no answer to compare number by number, see test_parts.py.
ELSEWHERE = ["leading_eigenvectors", "split_parts"]
CALLS = [(name, arguments) for name, calls in CASES.items() for arguments in calls]


def test_every_kernel_has_a_case():
    assert sorted([*CASES, *ELSEWHERE]) == sorted(agnostic.__all__) == sorted(dispatch.__all__)


def test_numpy_has_versions_of_its_own_of_all_but_three_kernels():
    """A version that its module no longer names would give way to the slow one without a word."""
    plain = set(dispatch.__all__) - set(dispatch.NUMPY_KERNELS)
    assert plain == {"aim_rows", "split_parts", "squared_distances"}


def kernel(name):
    return getattr(dispatch, name)


def assert_same(got, expected, tol):
    """Of numbers, arrays of any library, and tuples of them."""
    if isinstance(expected, tuple):
        assert len(got) == len(expected)
        for a, b in zip(got, expected, strict=True):
            assert_same(a, b, tol)
        return
    got = got if isinstance(got, float) else to_numpy(got)
    np.testing.assert_allclose(got, expected, rtol=tol, atol=tol)


def is_float(argument):
    return isinstance(argument, np.ndarray) and argument.dtype.kind == "f"


def read_only(array):
    if isinstance(array, np.ndarray):
        array = array.copy()
        array.flags.writeable = False
    return array


@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-10), ("float32", 2e-4)])
@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_numpy_kernel_equals_agnostic_and_writes_to_nothing(name, arguments, dtype, rtol):
    expected = getattr(agnostic, name)(*arguments, xp=array_namespace(B))
    cast = [a.astype(dtype) if is_float(a) else a for a in arguments]
    if dtype == "float32" and np.abs(arguments[0]).max() > 1e6:
        pytest.skip("a quarter at 1e9 is below the resolution of float32")
    assert_same(kernel(name)(*map(read_only, cast)), expected, rtol)


@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_agnostic_kernel_keeps_to_the_array_api_standard(name, arguments):
    strict = [array_api_strict.asarray(a) if isinstance(a, np.ndarray) else a for a in arguments]
    expected = getattr(agnostic, name)(*arguments, xp=array_namespace(B))
    assert_same(kernel(name)(*strict), expected, 1e-12)


def test_rows_so_large_that_one_is_lost_to_rounding_have_a_spread():
    """Such a row may be projected to zero, and a mean over no entries would be NaN."""
    arguments = (1e30 * GRAPHS, PREVIOUS, np.ones(3), 1.0)
    *_, expected = agnostic.best_response_rows(*arguments, xp=array_namespace(B))
    *_, spread = kernel("best_response_rows")(*arguments)
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(spread, expected, atol=1e60 * 1e-10)


@given(arrays(np.float64, (5, 6), elements=st.floats(-1e3, 1e3)))
@settings(deadline=None)
def test_projections_agree_on_any_rows(rows):
    xp = array_namespace(rows)
    previous = np.full_like(rows, 1 / 6)
    np.testing.assert_allclose(
        dispatch.project_simplex_rows(rows),
        agnostic.project_simplex_rows(rows, xp=xp),
        atol=1e-9,
    )
    np.testing.assert_allclose(
        dispatch.project_positive_rows(rows, previous),
        agnostic.project_positive_rows(rows, previous, xp=xp),
        atol=1e-9,
    )


def test_mixed_array_libraries_are_refused():
    with pytest.raises(TypeError):
        dispatch.squared_distances(X, array_api_strict.asarray(A))
