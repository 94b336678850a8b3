"""Tables of a discrete Fourier transform whose frequencies are not kept in order."""

from __future__ import annotations

import numpy as np

__all__ = ["conjugate_pairs", "prime_factors"]


def prime_factors(n: int) -> list[int]:
    """Prime factors of ``n`` in rising order, each as often as it divides; none of 1."""
    factors: list[int] = []
    rest, prime = n, 2
    while rest > 1:
        prime = prime if prime * prime <= rest else rest
        while rest % prime == 0:
            rest //= prime
            factors.append(prime)
        prime += 1
    return factors


def conjugate_pairs(frequencies: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places of ``k`` and of ``-k``, and the smaller of the two, for every pair of frequencies.

    Of the frequency (n,) at every place; the results are (n // 2 + 1,). The first of a pair is met
    first; a frequency that is its own opposite is both.
    """
    n = frequencies.size
    place_of = np.empty(n, dtype=np.int64)
    place_of[frequencies] = np.arange(n)
    opposite = place_of[-frequencies % n]
    firsts = np.flatnonzero(np.arange(n) <= opposite)
    return firsts, opposite[firsts], np.minimum(frequencies, n - frequencies)[firsts]
