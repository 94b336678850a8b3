"""The tensor step is the proximal map of the tensor nuclear norm, for every length."""

import numpy as np
import pytest

from viewmend.core.agfti import released
from viewmend.core.agfti.tensor_nuclear import prox_tnn, tnn

LENGTHS = [1, 2, 7, 8, 12, 13, 31]


def tensor(n_samples, seed=0):
    return np.random.default_rng(seed).normal(size=(3, n_samples, 5))


def spectrum(Y):
    """Full complex transform: slices (n, m, V)."""
    return np.fft.fft(Y, axis=1).transpose(1, 2, 0)


def prox_by_svd(Y, taus):
    """The textbook route: every slice of the full transform by its own SVD."""
    U, sigma, Vh = np.linalg.svd(spectrum(Y), full_matrices=False)
    shrunk = np.maximum(sigma - taus[:, None], 0)
    return np.fft.ifft(((U * shrunk[:, None]) @ Vh).transpose(2, 0, 1), axis=1)


@pytest.mark.parametrize("n_samples", LENGTHS)
def test_norm_is_that_of_definition_1(n_samples):
    Y = tensor(n_samples)
    expected = np.linalg.svd(spectrum(Y), compute_uv=False).sum() / n_samples
    np.testing.assert_allclose(tnn(Y), expected, rtol=1e-12)


@pytest.mark.parametrize("n_samples", LENGTHS)
def test_step_equals_the_textbook_route(n_samples):
    Y = tensor(n_samples)
    G, norm = prox_tnn(Y, 1.7)
    expected = prox_by_svd(Y, np.full(n_samples, 1.7))
    np.testing.assert_allclose(expected.imag, 0, atol=1e-12)
    np.testing.assert_allclose(G, expected.real, atol=1e-12)
    np.testing.assert_allclose(norm, tnn(G), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_samples", LENGTHS)
@pytest.mark.parametrize("tau", [0.3, 2.0, 6.0])
def test_step_satisfies_the_optimality_condition(n_samples, tau):
    """``(Y - G) / tau`` is a subgradient at ``G``: dual norm at most 1, inner product ``|G|``."""
    Y = tensor(n_samples)
    G, norm = prox_tnn(Y, tau)
    largest = np.linalg.svd(spectrum(Y - G), compute_uv=False).max()
    assert largest <= tau * (1 + 1e-9)
    np.testing.assert_allclose(np.sum((Y - G) * G), tau * norm, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("n_samples", [8, 9])
def test_no_nearby_tensor_is_better(n_samples):
    rng = np.random.default_rng(1)
    Y, tau = tensor(n_samples), 1.3
    G, _ = prox_tnn(Y, tau)

    def objective(candidate):
        return tau * tnn(candidate) + 0.5 * np.sum((candidate - Y) ** 2)

    for size in (1e-3, 1e-1, 1.0):
        assert objective(G) < objective(G + size * rng.normal(size=G.shape))


def test_limits_of_the_threshold():
    Y = tensor(9)
    np.testing.assert_allclose(prox_tnn(Y, 0.0)[0], Y, atol=1e-12)
    np.testing.assert_array_equal(prox_tnn(Y, 1e6)[0], 0)


def test_equal_views_stay_equal():
    Y = np.stack([tensor(10)[0]] * 3)
    G, _ = prox_tnn(Y, 1.0)
    np.testing.assert_allclose(G, np.stack([G[0]] * 3), atol=1e-12)


def test_step_commutes_with_shifting_the_rows_but_not_with_permuting_them():
    """**The row-order dependence.** The Fourier basis knows neighbours along the file."""
    Y = tensor(16)
    G, _ = prox_tnn(Y, 2.0)
    np.testing.assert_allclose(prox_tnn(np.roll(Y, 3, axis=1), 2.0)[0], np.roll(G, 3, axis=1))
    order = np.random.default_rng(0).permutation(16)
    permuted, _ = prox_tnn(Y[:, order], 2.0)
    assert np.abs(permuted - G[:, order]).max() > 0.05


@pytest.mark.parametrize("n_samples", [5, 6, 7, 8])
def test_released_step_cuts_the_middle_of_odd_lengths_twice(n_samples):
    Y, taus = tensor(n_samples), np.ones(n_samples)
    if n_samples % 2:
        taus[[n_samples // 2, n_samples // 2 + 1]] = 2
    np.testing.assert_allclose(released.prox_tnn(Y, 1.0)[0], prox_by_svd(Y, taus).real, atol=1e-12)


@pytest.mark.parametrize("n_samples", LENGTHS)
def test_norm_of_the_step_is_that_of_its_answer(n_samples):
    """Frequencies of the real transform stand for all, whether or not they are their own mirror."""
    G, norm = prox_tnn(tensor(n_samples), 0.3)
    np.testing.assert_allclose(norm, tnn(G), rtol=1e-10)


def test_single_precision_keeps_its_dtype_and_agrees():
    Y = tensor(31)
    G, _ = prox_tnn(Y, 1.5)
    G32, _ = prox_tnn(Y.astype(np.float32), 1.5)
    assert G32.dtype == np.float32
    np.testing.assert_allclose(G32, G, atol=1e-5)
