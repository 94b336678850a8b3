"""Polar factors: the polynomials of the steps, and what the steps make of a matrix."""

import numpy as np
import pytest

from viewmend.backend import dispatch
from viewmend.backend.polar import quintics

RNG = np.random.default_rng(0)


def matrix_of_condition(condition, size=24):
    U, V = (np.linalg.qr(RNG.normal(size=(size, size)))[0] for _ in range(2))
    return 37 * (U * np.geomspace(1, 1 / condition, size)) @ V.T, U @ V.T


@pytest.mark.parametrize("smallest", [0.5, 1e-3, 1e-6])
@pytest.mark.parametrize("precision", [1e-15, 1e-7])
def test_steps_bring_every_singular_value_to_one(smallest, precision):
    """Also a zero stays zero."""
    x = np.append(np.geomspace(smallest, 1, 2000), 0.0)
    for a, b, c in quintics(smallest, precision):
        x = a * x + b * x**3 + c * x**5
    np.testing.assert_allclose(x, np.append(np.ones(2000), 0.0), atol=max(precision, 1e-14))


@pytest.mark.parametrize("smallest", [0.3, 0.05, 1e-3])
def test_the_first_step_is_the_best_of_its_kind(smallest):
    """Its error has the same size and another sign at four points, which only the best has."""
    a, b, c = quintics(smallest, 1e-15)[0]
    x = np.geomspace(smallest, 1, 200_000)
    error = a * x + b * x**3 + c * x**5 - 1
    turns = [0, *(np.flatnonzero(np.diff(np.sign(np.diff(error)))) + 1), x.size - 1]
    assert len(turns) == 4
    np.testing.assert_allclose(error[turns] * [-1, 1, -1, 1], np.abs(error).max(), rtol=1e-6)


def test_few_steps_are_enough_for_the_values_of_an_alignment():
    """As many as the library's time is counted on."""
    assert len(quintics(1e-3, 1e-15)) == 8
    assert len(quintics(1e-3, 1e-7)) == 7


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e4])
def test_factor_in_single_precision_is_that_of_the_singular_vectors(condition):
    """``T`` is orthogonal and ``T^T A`` symmetric positive semi-definite, which is unique."""
    matrix, expected = matrix_of_condition(condition)
    T = dispatch.polar_factors(matrix.astype(np.float32)[None])[0]
    assert T.dtype == np.float32
    np.testing.assert_allclose(T.T @ T, np.eye(24), atol=1e-5)
    np.testing.assert_allclose(T, expected, atol=1e-6 * condition)


@pytest.mark.parametrize("condition", [1.0, 1e2, 3e3, 1e5, 1e9])
def test_factor_in_double_precision_is_that_of_the_singular_vectors(condition):
    """Where squares would lose too many digits, singular values are taken."""
    matrix, expected = matrix_of_condition(condition)
    T = dispatch.polar_factors(matrix[None])[0]
    np.testing.assert_allclose(T.T @ T, np.eye(24), atol=1e-13)
    np.testing.assert_allclose(T, expected, atol=max(1e-15 * condition, 3e-10))


@pytest.mark.parametrize("matrix", [np.diag([2.0, 1.0, 0.0]), np.zeros((3, 3))])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_factor_of_a_singular_matrix_is_still_a_best_rotation(matrix, dtype):
    T = dispatch.polar_factors(matrix.astype(dtype)[None])[0]
    np.testing.assert_allclose(T.T @ T, np.eye(3), atol=1e-6)
    nuclear_norm = np.linalg.svd(matrix, compute_uv=False).sum()
    np.testing.assert_allclose(np.trace(T.T @ matrix), nuclear_norm, atol=1e-6)
