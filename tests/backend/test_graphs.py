"""Kernels of graphs: the same numbers from Numba and PyTorch, and what they mean."""

import numpy as np
import pytest

from viewmend.backend import numba_graphs
from viewmend.backend.graphs import kernels_for
from viewmend.backend.namespace import to_numpy

RNG = np.random.default_rng(0)
# More rows than a block of threads has, and than a piece of a product on a GPU.
N, C = 9000, 11
X, R, P, Q = (RNG.normal(size=(N, C)).astype(np.float32) for _ in range(4))
DEGREES = RNG.uniform(0.5, 2, N).astype(np.float32)
GROUPS = RNG.integers(-1, 5, N).astype(np.int32)


@pytest.fixture(params=["numpy", "torch"])
def move(request):
    """A function that copies an array to a library."""
    if request.param == "numpy":
        return np.copy
    return pytest.importorskip("torch").tensor


def test_dots_and_energies_are_sums_over_columns(move):
    kernels = kernels_for(move(X))
    dots = to_numpy(kernels.column_dots(move(P), move(Q)))
    assert dots.dtype == np.float64
    np.testing.assert_allclose(dots, (P.astype(float) * Q).sum(axis=0), rtol=1e-4)
    energies = to_numpy(kernels.energies(move(R), move(DEGREES)))
    np.testing.assert_allclose(
        energies, (R.astype(float) ** 2 / DEGREES[:, None]).sum(axis=0), rtol=1e-5
    )


@pytest.mark.parametrize("n_groups", [0, 5, 9])
def test_group_sums_leave_out_rows_of_no_group(move, n_groups):
    groups = np.minimum(GROUPS, n_groups - 1)
    sums = to_numpy(kernels_for(move(R)).group_sums(move(R), move(groups), n_groups))
    expected = np.zeros((n_groups, C))
    np.add.at(expected, groups[groups >= 0], R[groups >= 0])
    assert sums.dtype == np.float64
    np.testing.assert_allclose(sums, expected, atol=1e-3)


def test_a_step_moves_both_and_tells_the_largest_change(move):
    step = RNG.uniform(0, 1, C)
    G, residual = move(X), move(R)
    change = kernels_for(G).cg_step(G, residual, move(P), move(Q), move(step))
    np.testing.assert_allclose(to_numpy(G), X + step * P, atol=1e-5)
    np.testing.assert_allclose(to_numpy(residual), R - step * Q, atol=1e-5)
    rows = np.abs(step * P).max(axis=1) / np.abs(X + step * P).max(axis=1)
    np.testing.assert_allclose(float(change), rows.max(), rtol=1e-4)


def test_rows_of_zeros_do_not_change(move):
    zeros = move(np.zeros((3, 2), dtype=np.float32))
    change = kernels_for(zeros).cg_step(
        *(move(to_numpy(zeros)) for _ in range(4)), move(np.ones(2))
    )
    assert float(change) == 0


def test_a_direction_has_the_correction_of_its_group(move):
    corrections, beta = RNG.normal(size=(5, C)), RNG.uniform(0, 1, C)
    direction = move(P)
    coarse = (move(GROUPS), move(corrections))
    kernels_for(direction).cg_direction(direction, move(R), move(DEGREES), coarse, move(beta))
    expected = R / DEGREES[:, None] + beta * P
    expected[GROUPS >= 0] += corrections[GROUPS[GROUPS >= 0]]
    np.testing.assert_allclose(to_numpy(direction), expected, atol=1e-4)


def test_both_libraries_have_the_same_kernels():
    torch = pytest.importorskip("torch")
    assert kernels_for(torch.ones(1)).__all__ == numba_graphs.__all__
    assert kernels_for(np.ones(1)) is numba_graphs


def test_arrays_of_other_libraries_are_refused():
    strict = pytest.importorskip("array_api_strict")
    with pytest.raises(TypeError, match="NumPy or PyTorch arrays, got those of array_api_strict"):
        kernels_for(strict.ones(1))
