"""One Gaussian per class over the scores of all views; missing views are integrated out exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg

# Pseudo-counts that draw the covariance between two views, known from the samples that have both,
# towards zero.
PRIOR_PAIRS = 20


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
    Z: np.ndarray, observed: np.ndarray, classes: np.ndarray, prior: np.ndarray, shrinkage: float
) -> ViewGaussian:
    """Class means and shared covariance from what every sample has.

    Scores ``Z`` (n_samples, n_views, n_classes) are zero where not ``observed`` (n_samples,
    n_views). Samples of unknown class, -1, are left out. The share ``shrinkage`` of the mean
    variance is added to the diagonal.
    """
    known = classes >= 0
    Z, observed, classes = Z[known], observed[known], classes[known]
    n_samples, n_views, n_classes = Z.shape
    means = _class_means(Z, observed, classes, len(prior))
    residuals = (Z - means[classes]) * observed[:, :, None]
    flat = residuals.reshape(n_samples, n_views * n_classes)
    # Samples that have both views of a pair, (n_views, n_views); pseudo-counts off the diagonal.
    seen = observed.astype(np.float64)
    pairs = seen.T @ seen + PRIOR_PAIRS * (1 - np.eye(n_views))
    # Missing residuals are zero, so one product sums over the samples of every pair of views; the
    # Kronecker product divides each block by its own count.
    covariance = (flat.T @ flat) / np.kron(np.maximum(pairs, 1), np.ones((n_classes, n_classes)))
    variance = float(np.trace(covariance)) / len(covariance)
    covariance[np.diag_indices_from(covariance)] += shrinkage * variance
    # Half of what was added, so that a block of full rank is left as it is.
    floor = max(shrinkage * variance / 2, np.finfo(float).tiny)
    return ViewGaussian(means.reshape(len(prior), -1), covariance, floor, prior)


def log_posterior(gaussian: ViewGaussian, Z: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Log probability of every class up to a constant per row, from the views a sample has.

    A Gaussian is marginalised by leaving out rows and columns of its covariance. So samples with
    the same pattern of views share one decomposition, and nothing is approximated. Shapes as in
    `fit_view_gaussian`; the largest entry of each row (n_samples, n_classes) is zero.
    """
    n_samples, _, n_classes = Z.shape
    flat = Z.reshape(n_samples, -1)
    scores = np.empty((n_samples, n_classes))
    for views, rows in observed_patterns(observed):
        columns = np.flatnonzero(np.repeat(views, n_classes))
        values, vectors = scipy.linalg.eigh(gaussian.covariance[np.ix_(columns, columns)])
        # In whitened coordinates the log density of class c is x m_c - |m_c|^2 / 2, up to |x|^2,
        # which all classes share.
        whitening = vectors / np.sqrt(np.maximum(values, gaussian.floor))
        x = flat[np.ix_(rows, columns)] @ whitening
        centres = gaussian.means[:, columns] @ whitening
        scores[rows] = x @ centres.T - 0.5 * np.einsum("ij,ij->i", centres, centres)
    scores += np.log(gaussian.prior)
    # The caller exponentiates: with a largest entry of zero nothing overflows.
    return scores - scores.max(axis=1, keepdims=True)


def observed_patterns(observed: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Every distinct row of ``observed``, and the samples that have it."""
    # One sort for all patterns, of which there may be as many as samples.
    patterns, which = np.unique(observed, axis=0, return_inverse=True)
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which, minlength=len(patterns)))[:-1]
    yield from zip(patterns, np.split(order, ends), strict=True)


def _class_means(
    Z: np.ndarray, observed: np.ndarray, classes: np.ndarray, n_classes: int
) -> np.ndarray:
    """Means (n_classes, n_views, n_classes), drawn towards that of all by one pseudo-sample."""
    members = (classes[:, None] == np.arange(n_classes)).astype(np.float64)
    counts = members.T @ observed
    # Scores of missing views are zero and add nothing to the sums.
    sums = np.einsum("ic,ivk->cvk", members, Z, optimize=True)
    overall = Z.sum(axis=0) / np.maximum(observed.sum(axis=0), 1)[:, None]
    return np.asarray((sums + overall) / (counts + 1)[:, :, None])
