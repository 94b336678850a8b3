"""One Gaussian per class over the scores of all views; missing views are integrated out exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from viewmend.backend.namespace import Array, array_namespace, row_maxima, to_numpy
from viewmend.backend.threads import for_each
from viewmend.core.common.rows import Column, Rows, Sums
from viewmend.core.common.small_sums import beside, on_host, summed_in_pieces
from viewmend.core.mend.blocks import MendBlock

# Pseudo-counts that draw the covariance between two views, known from the samples that have both,
# towards zero.
PRIOR_PAIRS = 20
# Views whose pattern fits into one integer.
MOST_BITS = 62


@dataclass(frozen=True, eq=False)
class ViewGaussian:
    """``z | class c ~ N(mean_c, covariance)`` for the scores ``z`` of all views, side by side.

    ``means`` is (n_classes, n_views * n_classes). The covariance is shared by the classes; its
    blocks are estimated from different samples, so it need not be positive definite. Eigenvalues of
    its blocks are raised to ``floor`` at least.
    """

    means: np.ndarray
    covariance: np.ndarray
    floor: float
    prior: np.ndarray


def fit_view_gaussian(
    rows: Rows,
    blocks: Column,
    Z: Column,
    classes: Column,
    prior: np.ndarray,
    shrinkage: float,
) -> ViewGaussian:
    """Class means and shared covariance from what every sample has.

    Parameters
    ----------
    rows : Rows
    blocks : column of MendBlock
        Say which views a sample has.
    Z : column of array (n_rows, n_views, n_classes)
        Scores, zero where a view is missing.
    classes : column of array (n_rows,) of int
        Samples of unknown class, -1, are left out.
    prior : array (n_classes,)
    shrinkage : float
        Share of the mean variance that is added to the diagonal.
    """
    first = on_host(rows.sums(score_sums, blocks, Z, classes, shared=len(prior)))
    means = _class_means(first["scores"], first["counts"])
    products = on_host(rows.sums(residual_sums, blocks, Z, classes, shared=means))["products"]
    n_views, n_classes = means.shape[1:]
    # Samples that have both views of a pair, (n_views, n_views); pseudo-counts off the diagonal.
    pairs = first["pairs"] + PRIOR_PAIRS * (1 - np.eye(n_views))
    # The Kronecker product divides each block by its own count.
    covariance = products / np.kron(np.maximum(pairs, 1), np.ones((n_classes, n_classes)))
    variance = float(np.trace(covariance)) / len(covariance)
    covariance[np.diag_indices_from(covariance)] += shrinkage * variance
    # Half of what was added, so that a block of full rank is left as it is.
    floor = max(shrinkage * variance / 2, np.finfo(float).tiny)
    return ViewGaussian(means.reshape(len(prior), -1), covariance, floor, prior)


def log_posterior(gaussian: ViewGaussian, Z: Array, observed: Array) -> Array:
    """Log probability of every class up to a constant per row, from the views a sample has.

    A Gaussian is marginalised by leaving out rows and columns of its covariance. So samples with
    the same pattern of views share one decomposition, and nothing is approximated. Scores ``Z``
    (n_rows, n_views, n_classes) are finite also where not ``observed`` (n_rows, n_views); the
    largest entry of each row (n_rows, n_classes) is zero.
    """
    xp = array_namespace(Z)
    flat = _side_by_side(Z)
    scores = xp.empty((Z.shape[0], Z.shape[2]), dtype=Z.dtype, device=Z.device)

    def score(pattern: tuple[np.ndarray, Array]) -> None:
        views, here = pattern
        directions, offsets = _discriminant(gaussian, views)
        scores[here] = flat[here] @ beside(directions, Z) + beside(offsets, Z)

    for_each(score, observed_patterns(observed), xp)
    # The caller exponentiates: with a largest entry of zero nothing overflows.
    return scores - row_maxima(scores)


def observed_patterns(observed: Array) -> Iterator[tuple[np.ndarray, Array]]:
    """Every distinct row of ``observed``, on the host, and the positions of the rows that have it.

    The rows are (n_rows, n_views) of bool.
    """
    xp = array_namespace(observed)
    codes = _codes(observed)
    # One sort for all patterns, of which there may be as many as samples.
    order = xp.argsort(codes, stable=True)
    _, counts = xp.unique_counts(codes)
    ends = np.cumsum(to_numpy(counts))
    starts = ends - to_numpy(counts)
    patterns = to_numpy(observed[order[xp.asarray(starts, device=observed.device)]])
    for pattern, start, end in zip(patterns, starts, ends, strict=True):
        yield pattern, order[int(start) : int(end)]


# ------------------------------------------------------------------ tasks


def score_sums(block: MendBlock, Z: Array, classes: Array, n_classes: int) -> Sums:
    """By class: sums of scores, counts by view; and how often two views are both there."""
    xp = array_namespace(Z)

    def piece(part: slice) -> Sums:
        members = _members(classes[part], n_classes, Z)
        seen = xp.astype(block.observed[part], Z.dtype)
        known = seen * xp.sum(members, axis=1, keepdims=True)
        # Scores of missing views are zero and add nothing to the sums.
        return {
            "scores": _double(members.T @ _side_by_side(Z[part])),
            "counts": _double(members.T @ seen),
            "pairs": _double(known.T @ known),
        }

    sums = summed_in_pieces(piece, Z)
    return {**sums, "scores": xp.reshape(sums["scores"], (n_classes, *Z.shape[1:]))}


def residual_sums(block: MendBlock, Z: Array, classes: Array, means: np.ndarray) -> Sums:
    """Products of what is left of the scores without the ``means`` of their class.

    The means are (n_classes, n_views, n_classes), the products those of all views side by side.
    """
    xp = array_namespace(Z)
    centres = beside(means, Z)

    def piece(part: slice) -> Sums:
        here = classes[part]
        there = xp.astype(block.observed[part] & (here >= 0)[:, None], Z.dtype)
        # Missing residuals are zero, so one product sums over the samples of every pair of views.
        gaps = Z[part] - xp.take(centres, xp.clip(here, 0, None), axis=0)
        residuals = _side_by_side(gaps * there[:, :, None])
        return {"products": _double(residuals.T @ residuals)}

    return summed_in_pieces(piece, Z)


def _side_by_side(Z: Array) -> Array:
    """Scores of all views as one row, (n_rows, n_views * n_classes)."""
    return array_namespace(Z).reshape(Z, (Z.shape[0], Z.shape[1] * Z.shape[2]))


def _members(classes: Array, n_classes: int, like: Array) -> Array:
    xp = array_namespace(like)
    numbers = xp.arange(n_classes, device=like.device)
    return xp.astype(classes[:, None] == numbers, like.dtype)


def _double(X: Array) -> Array:
    xp = array_namespace(X)
    return xp.astype(X, xp.float64, copy=False)


# ------------------------------------------------------------------ between the passes


def _class_means(scores: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Means (n_classes, n_views, n_classes), drawn towards that of all by one pseudo-sample."""
    overall = scores.sum(axis=0) / np.maximum(counts.sum(axis=0), 1)[:, None]
    return np.asarray((scores + overall) / (counts + 1)[:, :, None])


def _discriminant(gaussian: ViewGaussian, views: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``D`` (n_views * n_classes, n_classes) and ``d`` (n_classes,): log shares are ``z D + d``.

    For class ``c`` of mean ``m_c`` that is ``<z - (m_c + m) / 2, C^{-1} (m_c - m)>`` plus the log
    prior, with the covariance ``C`` of the ``views`` that are there and the mean ``m`` of all
    classes: what is left out is the same for all classes. It would be large, because scores of a
    view sum to one, which ``C`` has learned, and in single precision it would hide the rest.
    """
    n_classes, width = gaussian.means.shape
    columns = np.flatnonzero(np.repeat(views, width // len(views)))
    means = gaussian.means[:, columns]
    middle = means.mean(axis=0)
    solved = _solved(gaussian.covariance[np.ix_(columns, columns)], gaussian.floor, means - middle)
    directions = np.zeros((width, n_classes))
    directions[columns] = solved.T
    return directions, np.log(gaussian.prior) - np.einsum("ck,ck->c", means + middle, solved) / 2


def _solved(C: np.ndarray, floor: float, B: np.ndarray) -> np.ndarray:
    """``B C^{-1}``, with eigenvalues of ``C`` (width, width) below the floor raised to it."""
    lowered = C.copy()
    lowered[np.diag_indices_from(C)] -= floor
    try:
        # It has a factor where no eigenvalue of C is below the floor, which is nearly always so.
        scipy.linalg.cholesky(lowered, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        values, vectors = scipy.linalg.eigh(C)
        return np.asarray((B @ vectors / np.maximum(values, floor)) @ vectors.T)
    factor = scipy.linalg.cho_factor(C, check_finite=False)
    return np.asarray(scipy.linalg.cho_solve(factor, B.T, check_finite=False).T)


def _codes(observed: Array) -> Array:
    """An integer (n_rows,) per pattern; equal for equal rows alone."""
    xp = array_namespace(observed)
    n_rows, n_views = observed.shape
    codes = xp.zeros(n_rows, dtype=xp.int64, device=observed.device)
    for start in range(0, n_views, MOST_BITS // 2):
        bits = xp.astype(observed[:, start : start + MOST_BITS // 2], xp.int64)
        powers = 2 ** xp.arange(bits.shape[1], dtype=xp.int64, device=observed.device)
        # Numbers of the patterns so far leave room for those of the next views.
        codes = xp.unique_inverse(codes)[1] if start else codes
        codes = codes * 2 ** (MOST_BITS // 2) + xp.sum(bits * powers, axis=1)
    return codes
