"""The projections satisfy the optimality conditions of their problems."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from viewmend.core.agfti.released import project_positive
from viewmend.core.common.simplex import project_simplex

ROWS = arrays(np.float64, (4, 7), elements=st.floats(-50, 50))


def assert_kkt(p, b):
    """``p`` minimises ``|p - b|^2`` on the simplex: a multiplier ``tau`` with ``p = (b - tau)_+``.

    Stationarity ``p - b + tau - mu = 0``, ``mu >= 0``, ``mu p = 0``, feasibility.
    """
    assert p.min() >= 0
    np.testing.assert_allclose(p.sum(), 1, atol=1e-9)
    active = p > 0
    tau = np.mean((b - p)[active])
    np.testing.assert_allclose((b - p)[active], tau, atol=1e-9)
    assert np.all(b[~active] <= tau + 1e-9)


@given(ROWS)
def test_projection_satisfies_kkt(B):
    for p, b in zip(project_simplex(B), B, strict=True):
        assert_kkt(p, b)


@given(ROWS)
def test_projection_is_idempotent_and_shift_invariant(B):
    P = project_simplex(B)
    np.testing.assert_allclose(project_simplex(P), P, atol=1e-9)
    np.testing.assert_allclose(project_simplex(B + 3.25), P, atol=1e-9)


@given(ROWS, ROWS)
def test_projection_does_not_expand_distances(B, C):
    moved = np.linalg.norm(project_simplex(B) - project_simplex(C))
    assert moved <= np.linalg.norm(B - C) + 1e-9


@given(ROWS)
def test_released_projection_satisfies_kkt_on_its_face(B):
    previous = np.full_like(B, 1 / B.shape[1])
    for p, b in zip(project_positive(B, previous), B, strict=True):
        face = b > 0
        if face.any():
            assert np.all(p[~face] == 0)
            assert_kkt(p[face], b[face])
        else:
            np.testing.assert_array_equal(p, 1 / B.shape[1])


def test_released_projection_differs_where_positive_entries_sum_to_less_than_one():
    """The exact projection raises small negative entries too; the released one cannot."""
    b = np.array([[0.3, 0.1, -0.01]])
    exact, released = project_simplex(b), project_positive(b, b)
    np.testing.assert_allclose(exact, b + (1 - b.sum()) / 3)
    np.testing.assert_allclose(released, [[0.6, 0.4, 0.0]])
