"""The tensor nuclear norm (TNN) and its proximal step.

The graphs ``Z`` (V, n, m) are read as the tensor ``m x V x n`` of the paper: the discrete Fourier
transform runs along the *samples*, and each frequency holds an ``m x V`` slice. So the step mixes
neighbouring rows of the file, and **its result depends on the order of the rows**. The norm that
does not is in `viewmend.core.graph_fourier`.
"""

from __future__ import annotations

from typing import Any

from viewmend.backend.namespace import Array, array_namespace

__all__ = ["frequency_weights", "prox_tnn", "shrink_slices", "tnn"]


def tnn(Y: Array) -> float:
    """Tensor nuclear norm ``(1/n) sum_k sum_i sigma_i(Y_hat_k)`` (Definition 1).

    Parameters
    ----------
    Y : array (n_views, n_samples, n_anchors)
    """
    xp = array_namespace(Y)
    # Not through Gram matrices: their square roots turn zeros of rounding size into 1e-8.
    sigma = xp.linalg.svdvals(_slices(Y, xp))
    return _mean_over_frequencies(sigma, Y.shape[1], xp)


def prox_tnn(Y: Array, tau: Any) -> tuple[Array, float]:
    """Argmin over ``G`` of ``tau |G|_tnn + |G - Y|_F^2 / 2``, and ``|G|_tnn`` of that ``G``.

    Singular values of every Fourier slice fall by ``tau``. With the ``1/n`` of Definition 1 this
    is the right threshold in the un-normalised Fourier domain; Theorem 2's ``n tau`` belongs to a
    norm without that factor.

    Parameters
    ----------
    Y : array (n_views, n_samples, n_anchors)
    tau : float or array (n_samples // 2 + 1,)
        One threshold, or one for each non-negative frequency.

    Returns
    -------
    G : array (n_views, n_samples, n_anchors)
    norm : float
    """
    xp = array_namespace(Y)
    G_hat, kept = shrink_slices(_slices(Y, xp), tau)
    G = xp.fft.irfft(xp.permute_dims(G_hat, (2, 0, 1)), n=Y.shape[1], axis=1)
    return xp.astype(G, Y.dtype, copy=False), _mean_over_frequencies(kept, Y.shape[1], xp)


def shrink_slices(Y_hat: Array, tau: Any) -> tuple[Array, Array]:
    """Argmin of ``tau |G_k|_* + |G_k - Y_k|_F^2 / 2`` for every slice, and its singular values.

    A slice ``A`` (m, V) is shrunk through its small Gram matrix ``A^H A = R diag(sigma^2) R^H``:
    the answer is ``A R diag((1 - tau/sigma)_+) R^H``.

    Parameters
    ----------
    Y_hat : array (n_slices, m, V)
        Real or complex.
    tau : float or array (n_slices,)

    Returns
    -------
    G_hat : array (n_slices, m, V)
    kept : array (n_slices, V)
    """
    xp = array_namespace(Y_hat)
    sigma, R = _slice_spectra(Y_hat, xp)
    tau = xp.asarray(tau, dtype=sigma.dtype)[..., None] + xp.zeros_like(sigma)
    kept = xp.maximum(sigma - tau, xp.zeros_like(sigma))
    shrink = kept / xp.where(sigma > 0, sigma, xp.ones_like(sigma))
    filters = (R * xp.astype(shrink[:, None, :], R.dtype)) @ xp.conj(xp.matrix_transpose(R))
    return Y_hat @ xp.astype(filters, Y_hat.dtype), kept


def frequency_weights(n_samples: int, xp: Any) -> Array:
    """How often each frequency of the real transform stands in the full one.

    Zero and, for even ``n``, Nyquist are their own mirror; the others stand for a conjugate pair.
    """
    n_frequencies = n_samples // 2 + 1
    own_mirror = [k == 0 or 2 * k == n_samples for k in range(n_frequencies)]
    return xp.asarray([1.0 if own else 2.0 for own in own_mirror])


def _slices(Y: Array, xp: Any) -> Array:
    """Fourier slices (n_frequencies, m, V) of the non-negative frequencies."""
    return xp.permute_dims(xp.fft.rfft(Y, axis=1), (1, 2, 0))


def _slice_spectra(Y_hat: Array, xp: Any) -> tuple[Array, Array]:
    """Singular values (n_slices, V) and right vectors (n_slices, V, V) of the slices."""
    gram = xp.conj(xp.matrix_transpose(Y_hat)) @ Y_hat
    # Small singular values are square roots of small differences: keep them in double precision.
    double = xp.complex128 if xp.isdtype(gram.dtype, "complex floating") else xp.float64
    squares, R = xp.linalg.eigh(xp.astype(gram, double))
    return xp.sqrt(xp.maximum(squares, xp.zeros_like(squares))), R


def _mean_over_frequencies(sigma: Array, n_samples: int, xp: Any) -> float:
    weights = xp.astype(frequency_weights(n_samples, xp), sigma.dtype)
    return float(xp.sum(weights * xp.sum(sigma, axis=1))) / n_samples
