"""Sparse products with their gradients, dropout, and steps of an optimiser."""

import numpy as np
import pytest
from scipy.sparse import csr_array

torch = pytest.importorskip("torch")

from viewmend.baselines.torch_support import SparseConstant, TorchRun  # noqa: E402

RNG = np.random.default_rng(0)
RUN = TorchRun.start("cpu", np.random.default_rng(0))
N = 40


def normal(*shape):
    return torch.tensor(RNG.normal(size=shape), dtype=torch.float32, requires_grad=True)


def assert_same(found, expected, parameters):
    """Equal values, and equal gradients of a random weighing of them."""
    np.testing.assert_allclose(found.detach(), expected.detach(), atol=1e-4)
    weights = torch.tensor(RNG.normal(size=found.shape), dtype=torch.float32)
    fast, naive = (
        torch.autograd.grad((weights * value).sum(), parameters) for value in (found, expected)
    )
    for one, other in zip(fast, naive, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4 * (1 + other.abs().max()))


def test_constant_product_and_its_gradient():
    matrix = csr_array(RNG.normal(size=(N, 30)) * (RNG.random((N, 30)) < 0.3))
    H = normal(30, 4)
    full = torch.tensor(matrix.toarray(), dtype=torch.float32)
    assert_same(SparseConstant(RUN, matrix) @ H, full @ H, [H])


@pytest.mark.parametrize("n_columns", [1, 6, 64])
def test_kept_units_have_mean_one_and_the_share_asked_for(n_columns):
    kept = (
        TorchRun.start("cpu", np.random.default_rng(3))
        .dropout_factors(5000, n_columns, 0.3)
        .numpy()
    )
    assert kept.shape == (5000, n_columns)
    np.testing.assert_allclose(np.unique(kept), [0, 1 / 0.7], rtol=1e-6)
    # Five standard deviations of a binomial share.
    np.testing.assert_allclose(np.mean(kept == 0), 0.3, atol=5 * (0.21 / kept.size) ** 0.5)
    columns = np.mean(kept == 0, axis=0)
    np.testing.assert_allclose(columns, 0.3, atol=5 * (0.21 / 5000) ** 0.5)


def test_columns_are_kept_independently():
    """Four factors share a draw, of which each has its own bits."""
    kept = TorchRun.start("cpu", np.random.default_rng(4)).dropout_factors(20_000, 8, 0.5).numpy()
    correlations = np.corrcoef(kept.T) - np.eye(8)
    np.testing.assert_allclose(correlations, 0, atol=5 / 20_000**0.5)


def test_no_dropout_keeps_all():
    np.testing.assert_array_equal(RUN.dropout_factors(9, 5, 0.0), np.ones((9, 5)))


def test_adam_takes_the_steps_of_its_formula():
    start, rate, decay = RNG.normal(size=8), 0.1, 0.01
    target = torch.tensor(RNG.normal(size=8), dtype=torch.float32)
    w = torch.tensor(start, dtype=torch.float32, requires_grad=True)
    optimiser = RUN.adam([w], rate, decay)
    expected, m, s = start.copy(), np.zeros(8), np.zeros(8)
    for t in range(1, 6):
        RUN.step(optimiser, ((w - target) ** 2).sum())
        gradient = 2 * (expected - target.numpy()) + decay * expected
        m, s = 0.9 * m + 0.1 * gradient, 0.999 * s + 0.001 * gradient**2
        expected -= rate * (m / (1 - 0.9**t)) / (np.sqrt(s / (1 - 0.999**t)) + 1e-8)
    np.testing.assert_allclose(w.detach(), expected, atol=1e-5)


def test_a_step_has_the_gradients_of_its_own_parameters_only():
    a, b = normal(5), normal(5)
    before = b.detach().clone()
    RUN.step(RUN.adam([a], 0.1), (a * b).square().sum())
    assert b.grad is None
    np.testing.assert_array_equal(b.detach(), before)
    assert a.grad is not None
