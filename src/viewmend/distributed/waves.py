"""Waves of the graph of the samples, whose rows are made where the rows are.

`graph_fourier.graph_spectrum` in three sums over blocks: the degrees of the anchors,
the Gram matrix of ``S``, and that of ``U``, which takes its rounding out. What is left of it is a
small matrix, the ``basis``, which makes rows of ``U`` of rows of ``N``::

    U = diag(d)^{-1/2} N basis
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from viewmend.backend import dispatch
from viewmend.core.agfti.graph_fourier import (
    Spectrum,
    diffusion_coordinates,
    leading_waves,
    normalised_graph,
)
from viewmend.core.agfti.propagation import inverse_roots

# Sum over the blocks of what a task makes of their rows of N and of what it is told.
SumOf = Callable[[Callable[..., np.ndarray], object], np.ndarray]


def wave_rows(N: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Rows of ``U`` from those of ``N``, in the precision of both."""
    return dispatch.multiply(N, basis) / np.sqrt(N.sum(axis=1))[:, None]


def places(N: np.ndarray, basis: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """Places of the rows in the common space of all views, (n_rows, n_frequencies)."""
    N = N.astype(np.float64, copy=False)
    return diffusion_coordinates(Spectrum(wave_rows(N, basis), mu, N.sum(axis=1)))


def found_waves(sum_of: SumOf, n_frequencies: int) -> tuple[np.ndarray, np.ndarray]:
    """Basis (n_columns, n_frequencies) of the leading waves, and their eigenvalues."""
    scale = inverse_roots(sum_of(_degrees, None))
    of_S, mu = leading_waves(sum_of(_gram_of_graph, scale), n_frequencies)
    basis = scale[:, None] * of_S
    factor = np.linalg.cholesky(sum_of(_gram_of_waves, basis))
    return basis @ np.linalg.inv(factor).T, mu


def known_waves(N: np.ndarray, U: np.ndarray) -> np.ndarray:
    """Basis of the waves ``U`` that were found on the graph ``N``.

    Where eigenvalues are equal, which waves stand for them is a matter of rounding; so all waves
    are found again, and turned into those that are known.
    """
    basis, _ = found_waves(lambda task, told: task(N, told), N.shape[1])
    U_found = wave_rows(N.astype(np.float64, copy=False), basis)
    return basis @ dispatch.cross_products(U_found, U.astype(np.float64))


def _degrees(N: np.ndarray, _told: None) -> np.ndarray:
    return N.sum(axis=0, dtype=np.float64)


def _gram_of_graph(N: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return dispatch.gram(normalised_graph(N, scale), np.ones(len(N)))


def _gram_of_waves(N: np.ndarray, basis: np.ndarray) -> np.ndarray:
    return dispatch.gram(wave_rows(N.astype(np.float64, copy=False), basis), np.ones(len(N)))
