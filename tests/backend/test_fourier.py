"""The Fourier step on the CPU: any length, any width, in place, the same digits on any threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from viewmend.backend import agnostic
from viewmend.backend.frequencies import conjugate_pairs, prime_factors
from viewmend.backend.namespace import array_namespace
from viewmend.backend.numba_fourier import shrink_fourier
from viewmend.backend.threads import limited_threads


def tensor(n: int, n_columns: int, dtype: type = np.float64) -> np.ndarray:
    rng = np.random.default_rng(n)
    return rng.standard_normal((3, n, n_columns)).astype(dtype)


def largest_gap(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-300))


# Even and odd, prime and not; without and with a large prime factor.
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 67, 2 * 3 * 5 * 7, 6 * 1693, 67 * 71])
@pytest.mark.parametrize(("dtype", "tol"), [(np.float64, 1e-13), (np.float32, 1e-5)])
def test_slices_are_shrunk_as_those_of_complex_transforms(n: int, dtype: type, tol: float) -> None:
    """Each frequency by a threshold of its own."""
    Y, taus = tensor(n, 5), np.linspace(0, 3 * n**0.5, n // 2 + 1)
    expected, expected_norms = agnostic.shrink_fourier(Y, taus, xp=array_namespace(Y))
    G, norms = shrink_fourier(Y.astype(dtype), taus)
    assert G.dtype == dtype
    assert largest_gap(G, expected) < tol
    assert largest_gap(norms, expected_norms) < 10 * tol


@settings(deadline=None)
@given(n=st.integers(1, 700), n_columns=st.integers(1, 18))
@example(n=130, n_columns=300)
def test_without_a_threshold_the_way_back_leads_to_the_start(n: int, n_columns: int) -> None:
    Y = tensor(n, n_columns)
    before = Y.copy()
    assert largest_gap(shrink_fourier(Y, 0.0)[0], Y) < 1e-12
    np.testing.assert_array_equal(Y, before)


def test_the_answer_may_take_the_place_of_the_input() -> None:
    Y = tensor(60, 7)
    expected, _ = shrink_fourier(Y, 2.0)
    G, _ = shrink_fourier(Y, 2.0, out=Y)
    assert G is Y
    np.testing.assert_array_equal(Y, expected)


@pytest.mark.parametrize("n", [600, 6 * 1693])
@pytest.mark.parametrize("n_columns", [7, 67])
def test_threads_change_no_digit(n: int, n_columns: int) -> None:
    answers = []
    for n_jobs in (1, 2):
        with limited_threads(n_jobs):
            answers.append(shrink_fourier(tensor(n, n_columns), 9.0)[0])
    np.testing.assert_array_equal(*answers)


@given(n=st.integers(1, 400), seed=st.integers(0, 9))
def test_pairs_are_opposite_and_complete(n: int, seed: int) -> None:
    frequencies = np.random.default_rng(seed).permutation(n)
    firsts, seconds, smaller = conjugate_pairs(frequencies)
    assert not ((frequencies[firsts] + frequencies[seconds]) % n).any()
    assert sorted(smaller) == list(range(n // 2 + 1))
    np.testing.assert_array_equal(smaller, np.minimum(frequencies[firsts], frequencies[seconds]))
    assert set(firsts) | set(seconds) == set(range(n))


@given(n=st.integers(1, 100_000))
def test_prime_factors_multiply_to_the_number(n: int) -> None:
    factors = prime_factors(n)
    assert np.prod(factors, dtype=np.int64) == n
    assert all(len(prime_factors(prime)) == 1 for prime in factors)
    assert factors == sorted(factors)
