"""The graph Fourier basis, and a tensor norm in it that does not depend on the order of the rows.

The paper transforms the graphs along the samples by a discrete Fourier transform, that is, in the
eigenvectors of a *cycle through the rows of the file*. Here the cycle gives way to the graph of
the samples themselves. With ``N`` (n, q) the observed bipartite graphs of all views together and
``d`` its row sums, ::

    S = diag(d)^{-1/2} N Lambda^{-1/2},        S S^T = U diag(mu) U^T

is the normalised adjacency of the samples over shared anchors. Its eigenvectors ``U`` (n, r), those
of the ``r`` largest ``mu``, are the *graph Fourier basis*. We call its columns *waves*: like sines
on a cycle, they vary over the graph from smooth to rough, and ``mu`` falls as their frequency
rises. A permutation of the rows permutes their entries and nothing else. They cost ``O(n q^2)``
through the Gram matrix ``S^T S``.

Where ``r`` is the rank of ``S``, the ``n - r`` directions that are left all have the eigenvalue 0:
any rotation of a basis of them is as good as any other, and a norm must not depend on it. They
enter as one block, whose nuclear norm over the views measures the same, whether the views share
their pattern, and does not change with a rotation.
With ``Y_k`` (m, V) the slices of ``U^T Y`` and ``Y_rest = Y - U U^T Y`` unfolded to (n m, V)::

    |Y|_graph = (|Y_1|_* + ... + |Y_r|_* + |Y_rest|_*) / sqrt(n)

The terms act on orthogonal parts of ``Y``, each an isometric image of it, so the proximal map is
exact and shrinks the singular values of each by ``tau / sqrt(n)``. The factor is that of the
paper's Definition 1, ``1/n`` times the ``sqrt(n)`` of its un-normalised transform, and gives
``rho`` the same meaning in both norms.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from viewmend.backend import dispatch
from viewmend.backend.namespace import Array, array_namespace, to_numpy
from viewmend.backend.threads import blocks_for, for_each
from viewmend.core.agfti.propagation import anchor_scale

# Frequencies whose share of the largest is below this are rounding, not data.
SMALLEST_FREQUENCY = 1e-9

# Frequencies nearer to each other than this are one.
TIE = 1e-8


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Leading eigenvectors ``U`` (n_samples, n_frequencies) of the graph, from smooth to rough.

    ``mu`` (n_frequencies,) are eigenvalues of ``S S^T`` in [0, 1], falling; ``degrees``
    (n_samples,) are the row sums of ``N``.
    """

    U: Array
    mu: Array
    degrees: Array


@dataclass(frozen=True, eq=False)
class Shrunk:
    """The tensor step as a map of rows: ``G_i = mixing Y_i + U_i change``.

    ``mixing`` (n_views, n_views) acts on the views of every row and is exact outside the span of
    the waves; ``change`` (n_views, n_frequencies, n_anchors) corrects within it. ``norm`` () is
    ``|G|_graph``.
    """

    mixing: Array
    change: Array
    norm: Array


def stacked_graph(Z: Array, observed: Array) -> Array:
    """``N`` of views whose anchors do not correspond: their graphs side by side.

    Rows of missing samples in ``Z`` (n_views, n_samples, n_anchors) are not read. Returns
    (n_samples, n_views * n_anchors).
    """
    seen = _observed_part(Z, observed)
    return array_namespace(Z).concat([seen[v, ...] for v in range(Z.shape[0])], axis=1)


def summed_graph(Z: Array, observed: Array) -> Array:
    """``N`` (n_samples, n_anchors) of views whose anchors correspond: the sum of their graphs."""
    return array_namespace(Z).sum(_observed_part(Z, observed), axis=0)


def graph_spectrum(N: Array, n_frequencies: int) -> Spectrum:
    """Eigenvectors of the ``n_frequencies`` largest eigenvalues of ``S S^T``, fewer at low rank.

    ``N`` (n_samples, n_columns) is non-negative, without zero rows.
    """
    xp = array_namespace(N)
    N = xp.astype(N, xp.float64, copy=False)
    degrees = xp.sum(N, axis=1)
    ones = xp.ones_like(degrees)
    S = normalised_graph(N, anchor_scale(N))
    # S^T S = R diag(mu) R^T is small (q, q), and U = S R diag(mu)^{-1/2}.
    basis, mu = leading_waves(dispatch.gram(S, ones), n_frequencies)
    U = dispatch.multiply(S, basis)
    # Orthonormal up to rounding over mu; dividing by the Cholesky factor makes them so to rounding.
    factor = xp.linalg.cholesky(dispatch.gram(U, ones))
    return Spectrum(dispatch.multiply(U, xp.linalg.inv(factor).T), mu, degrees)


def normalised_graph(N: Array, scale: Array) -> Array:
    """Rows of ``S`` in double precision, from those of ``N`` and ``scale = Lambda^{-1/2}``."""
    xp = array_namespace(N)
    N = xp.astype(N, xp.float64, copy=False)
    return N * scale / xp.sqrt(xp.sum(N, axis=1))[:, None]


def leading_waves(gram: Array, n_frequencies: int) -> tuple[Array, Array]:
    """``R diag(mu)^{-1/2}``, which ``S`` turns into ``U``, and ``mu``, from ``S^T S``."""
    xp = array_namespace(gram)
    mu, R = dispatch.leading_eigenvectors(gram, n_frequencies)
    # Below that, dividing by sqrt(mu) would blow rounding up to waves.
    rank = int(xp.sum(xp.astype(mu > SMALLEST_FREQUENCY * mu[0], xp.int64)))
    mu, R = mu[:rank], _without_ties(mu[:rank], R[:, :rank], xp)
    return R / xp.sqrt(mu), mu


def _without_ties(mu: Array, R: Array, xp: Any) -> Array:
    """Eigenvectors ``R`` (m, r) of falling ``mu``, with a fixed basis where eigenvalues are equal.

    A graph of several components has as many eigenvalues 1, and any basis of their eigenspace is
    valid: rounding would choose one. We take the basis that diagonalises the multiplication by a
    slope over the anchors; for components, each of its vectors lives on one of them.
    """
    slope = xp.linspace(0, 1, R.shape[0], dtype=R.dtype, device=R.device)[:, None]
    starts = np.flatnonzero(-np.diff(to_numpy(mu)) > TIE) + 1
    bases = []
    for start, stop in pairwise([0, *map(int, starts), R.shape[1]]):
        basis = R[:, start:stop]
        if stop - start > 1:
            basis = basis @ xp.linalg.eigh(basis.T @ (slope * basis))[1]
        bases.append(basis)
    return xp.concat(bases, axis=1)


def diffusion_coordinates(spectrum: Spectrum) -> Array:
    """Coordinates of the diffusion map: near samples are those whose random walks end alike.

    A step of the walk from samples to anchors and back multiplies wave ``k`` by ``mu_k``, which
    gives the coordinates ``mu_k U_ik / sqrt(d_i)`` (n_samples, n_frequencies): one space for all
    samples, whichever views they have.
    """
    lengths = array_namespace(spectrum.degrees).sqrt(spectrum.degrees)
    return spectrum.U * spectrum.mu / lengths[:, None]


def graph_norm(Y: Array, U: Array) -> float:
    """``|Y|_graph`` as defined at the top of this module; shapes as in `prox_graph_norm`."""
    xp = array_namespace(Y)
    Y_hat = U.T @ Y
    sigma = xp.linalg.svdvals(xp.permute_dims(Y_hat, (1, 2, 0)))
    rest = xp.linalg.svdvals(xp.reshape(Y - U @ Y_hat, (Y.shape[0], -1)))
    return float(xp.sum(sigma) + xp.sum(rest)) / Y.shape[1] ** 0.5


def prox_graph_norm(U: Array, Y: Array, tau: float, out: Array = None) -> tuple[Array, Array]:
    """Argmin over ``G`` of ``tau |G|_graph + |G - Y|_F^2 / 2``, and ``|G|_graph`` of that ``G``.

    ``U`` (n_samples, n_frequencies) has orthonormal columns. ``out``, if given, is memory for ``G``
    and may be ``Y`` (n_views, n_samples, n_anchors) itself. The norm () stays on the device, so
    that the host need not wait for it.
    """
    shrunk = shrink_waves(*wave_sums(U, Y), tau, Y.shape[1])
    return restored(U, Y, shrunk, out), shrunk.norm


def wave_sums(U: Array, Y: Array) -> tuple[Array, Array]:
    """The sums over samples that the tensor step needs; those of blocks of rows add up.

    They are ``U^T Y_v`` (n_views, n_frequencies, n_anchors), and the inner products of the views
    (n_views, n_views).
    """
    xp = array_namespace(Y)
    return xp.matrix_transpose(dispatch.cross_products(Y, U)), _gram(Y, xp)


def shrink_waves(Y_hat: Array, gram: Array, tau: float, n_samples: int) -> Shrunk:
    """Shrink every frequency and the rest; the first arguments are those that `wave_sums` gives."""
    xp, scale = array_namespace(Y_hat), n_samples**-0.5
    tau = tau * scale
    G_hat, norms = dispatch.shrink_slices(Y_hat, tau)
    # Y_rest = Y - U Y_hat is never formed: its Gram matrix is a difference, by orthogonality, and
    # what mixes the views of it mixes those of Y and of Y_hat.
    mixing, norm_rest = shrinkage(gram - _gram(Y_hat, xp), tau)
    norm = scale * (xp.sum(norms) + norm_rest)
    return Shrunk(mixing, G_hat - _mixed(Y_hat, mixing, xp), norm)


def restored(U: Array, Y: Array, shrunk: Shrunk, out: Array = None) -> Array:
    """``G`` from ``U`` and ``Y``, row by row; ``out`` as in `prox_graph_norm`."""
    xp = array_namespace(Y)
    G = xp.empty_like(Y) if out is None else out

    def restore(rows: slice) -> None:
        mixed = _mixed(Y[:, rows, :], shrunk.mixing, xp)
        G[:, rows, :] = mixed + U[rows, :] @ shrunk.change

    for_each(restore, _blocks(Y, xp), xp)
    return G


def _blocks(Y: Array, xp: Any) -> list[slice]:
    n_views, n_rows, n_columns = Y.shape
    return blocks_for(n_rows, n_views * n_columns, xp)


def _gram(Y: Array, xp: Any) -> Array:
    """Inner products of the views, (n_views, n_views).

    In double precision, for differences of them to have digits left.
    """

    def part(rows: slice) -> Array:
        views = xp.reshape(Y[:, rows, :], (Y.shape[0], -1))
        views = xp.astype(views, xp.float64, copy=False)
        return views @ views.T

    parts = for_each(part, _blocks(Y, xp), xp)
    return sum(parts[1:], parts[0])


def _mixed(Y: Array, mixing: Array, xp: Any) -> Array:
    """``sum_v mixing_uv Y_v`` for every view ``u``."""
    return xp.reshape(xp.astype(mixing, Y.dtype) @ xp.reshape(Y, (Y.shape[0], -1)), Y.shape)


def shrinkage(gram: Array, tau: float) -> tuple[Array, Array]:
    """The mixing of the views that lowers singular values by ``tau``, and the sum that is left.

    Takes ``gram = R diag(sigma^2) R^H`` (..., n_views, n_views) in double precision. Returns
    ``R diag((1 - tau/sigma)_+) R^H``, of the same shape, and the sums (...).
    """
    xp = array_namespace(gram)
    squares, R = xp.linalg.eigh(gram)
    zeros = xp.zeros_like(squares)
    # Rounding may take an eigenvalue of zero below it.
    sigma = xp.sqrt(xp.maximum(squares, zeros))
    left = xp.maximum(sigma - tau, zeros)
    share = left / xp.where(sigma > 0, sigma, xp.ones_like(sigma))
    filtered = R * xp.astype(share[..., None, :], R.dtype)
    return filtered @ xp.conj(xp.matrix_transpose(R)), xp.sum(left, axis=-1)


def _observed_part(Z: Array, observed: Array) -> Array:
    # (n, V) -> (V, n, 1), to match Z; missing rows hold a start, not data.
    return array_namespace(Z).where(observed.T[:, :, None], Z, 0.0)
