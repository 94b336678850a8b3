"""The tensor nuclear norm (TNN) and its proximal step.

The graphs ``Z`` (V, n, m) are read as the tensor ``m x V x n`` of the paper: the discrete Fourier
transform runs along the *samples*, and each frequency holds an ``m x V`` slice. So the step mixes
neighbouring rows of the file, and **its result depends on the order of the rows**. The norm that
does not is in `viewmend.core.agfti.graph_fourier`.
"""

from __future__ import annotations

from typing import Any

from viewmend.backend import dispatch
from viewmend.backend.namespace import Array, array_namespace


def tnn(Y: Array) -> float:
    """Tensor nuclear norm ``(1/n) sum_k sum_i sigma_i(Y_hat_k)`` (Definition 1)."""
    xp = array_namespace(Y)
    # Not through Gram matrices: their square roots turn zeros of rounding size into 1e-8.
    slices = xp.permute_dims(xp.fft.rfft(Y, axis=1), (1, 2, 0))
    norms = xp.sum(xp.linalg.svdvals(slices), axis=1)
    return float(mean_over_frequencies(norms, Y.shape[1], xp))


def prox_tnn(Y: Array, tau: Any, out: Array = None) -> tuple[Array, Array]:
    """Argmin over ``G`` of ``tau |G|_tnn + |G - Y|_F^2 / 2``, and ``|G|_tnn`` of that ``G``.

    Singular values of every Fourier slice fall by ``tau``. With the ``1/n`` of Definition 1 this
    is the right threshold in the un-normalised Fourier domain; Theorem 2's ``n tau`` belongs to a
    norm without that factor. An array ``tau`` (n_samples // 2 + 1,) has one threshold for each
    non-negative frequency.

    ``out``, if given, is memory for ``G`` and may be ``Y`` (n_views, n_samples, n_anchors) itself.
    The norm () stays on the device, so that the host need not wait for it.
    """
    G, norms = dispatch.shrink_fourier(Y, tau, out)
    return G, mean_over_frequencies(norms, Y.shape[1], array_namespace(Y))


def frequency_grams(Y_hat: Array) -> Array:
    """Gram matrices (n_frequencies, n_views, n_views) of the slices, in double precision.

    They determine the shrinkage. Those of blocks of columns add up, so that no machine needs all
    columns of a frequency. ``Y_hat`` (n_views, n_frequencies, n_columns) is complex.
    """
    xp = array_namespace(Y_hat)
    slices = xp.permute_dims(xp.astype(Y_hat, xp.complex128, copy=False), (1, 0, 2))
    return xp.conj(slices) @ xp.matrix_transpose(slices)


def filtered_columns(Y_hat: Array, mixing: Array) -> Array:
    """Slices shrunk by what `shrinkage` makes of their Gram matrices; shapes as above."""
    xp = array_namespace(Y_hat)
    mixing = xp.astype(xp.matrix_transpose(mixing), Y_hat.dtype, copy=False)
    return xp.permute_dims(mixing @ xp.permute_dims(Y_hat, (1, 0, 2)), (1, 0, 2))


def mean_over_frequencies(norms: Array, n_samples: int, xp: Any) -> Array:
    """Mean over all frequencies of what the non-negative ones have."""
    # Y is real: frequencies k and n - k have the same norm, so each of the non-negative ones
    # counts twice; but 0, and n / 2 for even n, are their own mirror image.
    twice = 2 * xp.sum(norms) - norms[0] - (norms[-1] if n_samples % 2 == 0 else 0)
    return twice / n_samples
