"""Transforms of whole rows: any length, any width, and the same digits on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from viewmend.backend import numba_fourier
from viewmend.backend.frequencies import conjugate_pairs, prime_factors
from viewmend.backend.numba_fourier import transform, transform_back, transform_plan
from viewmend.backend.threads import limited_threads

# Steps of radix 2 to 5, of other primes, of levels, of one and two convolutions.
LENGTHS = [1, 2, 3, 4, 5, 7, 61, 67, 2 * 3 * 5 * 7, 4**4 * 3, 6 * 1693, 67 * 71]


def packed(n: int, n_pairs: int, dtype: type = np.float64) -> np.ndarray:
    rng = np.random.default_rng(n)
    return rng.standard_normal((2, n, 2 * n_pairs)).astype(dtype)


def as_complex(rows: np.ndarray) -> np.ndarray:
    half = rows.shape[2] // 2
    return rows[:, :, :half] + 1j * rows[:, :, half:]


def largest_gap(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max() / np.abs(b).max())


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize(("dtype", "tol"), [(np.float64, 1e-14), (np.float32, 1e-6)])
def test_frequencies_are_those_of_the_library(n: int, dtype: type, tol: float) -> None:
    rows = packed(n, 3, dtype)
    plan = transform_plan(n, rows.dtype)
    expected = np.fft.fft(as_complex(rows.astype(np.float64)), axis=1)[:, plan.frequencies]
    transform(rows, plan)
    assert largest_gap(as_complex(rows), expected) < tol


@settings(deadline=None)
@given(n=st.integers(1, 700), n_pairs=st.integers(1, 9))
@example(n=6 * 1693, n_pairs=2)
@example(n=130, n_pairs=300)
def test_the_way_back_leads_to_the_start(n: int, n_pairs: int) -> None:
    start = packed(n, n_pairs)
    rows = start.copy()
    plan = transform_plan(n, rows.dtype)
    transform(rows, plan)
    transform_back(rows, plan)
    assert largest_gap(rows / n, start) < 1e-13


def test_runs_of_columns_do_not_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns are transformed one by one or side by side with the same digits."""
    rows = packed(2 * 67 * 15, 5)
    alone = rows.copy()
    transform(rows, transform_plan(rows.shape[1], rows.dtype))
    monkeypatch.setattr(numba_fourier, "RUN_BYTES", 2 * rows.itemsize)
    transform_plan.cache_clear()
    transform(alone, transform_plan(rows.shape[1], rows.dtype))
    transform_plan.cache_clear()
    np.testing.assert_array_equal(alone, rows)


@pytest.mark.parametrize("n", [600, 6 * 1693])
def test_threads_change_no_digit(n: int) -> None:
    found = []
    for n_jobs in (1, 2):
        rows = packed(n, 40)
        with limited_threads(n_jobs):
            transform(rows, transform_plan(n, rows.dtype))
        found.append(rows)
    np.testing.assert_array_equal(*found)


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
