"""Evidence for the class of every sample from the views it has, by regression on each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from viewmend.backend.namespace import Array, array_namespace, row_maxima
from viewmend.core.common.class_shares import normalise_rows
from viewmend.core.common.rows import Column, Rows
from viewmend.core.common.small_sums import beside
from viewmend.core.mend.blocks import MendBlock
from viewmend.core.mend.label_reading import LabelReading
from viewmend.core.mend.loo_ridge import RidgeFit, regress_views
from viewmend.core.mend.view_gaussian import ViewGaussian, fit_view_gaussian, log_posterior

# A difference of one between mean scores, which are class shares, as a difference of log shares.
SHARPNESS = 6.0
# Log shares of the Gaussian model are divided by this: fitted to soft targets, it is too confident.
TEMPERATURE = 2.0
# Share of the mean variance added to the diagonal of the shared covariance.
SHRINKAGE = 0.1


@dataclass(frozen=True, eq=False)
class Evidence:
    """Class shares by regression on the views, and the parts they come from.

    Attributes
    ----------
    P : column of array (n_rows, n_classes) of float32
        Class shares; rows sum to one.
    Z : column of array (n_rows, n_views, n_classes) of float32
        Scores by view, each without the sample itself; zero where a view is missing.
    fits : tuple of RidgeFit
        One per view.
    gaussian : ViewGaussian
        Of the scores of all views.
    by_labels : LabelReading or None
        What given labels alone say, where that counts too.
    """

    P: Column
    Z: Column
    fits: tuple[RidgeFit, ...]
    gaussian: ViewGaussian
    by_labels: LabelReading | None = None

    @property
    def explained(self) -> tuple[float, ...]:
        """Share of the targets' variance that every view explains."""
        return tuple(fit.r2 for fit in self.fits)

    @property
    def view_weights(self) -> np.ndarray:
        """Explained over unexplained variance of every view, (n_views,)."""
        return np.array([fit.weight for fit in self.fits])


def gather_evidence(
    rows: Rows,
    blocks: Column,
    spectra: Sequence[np.ndarray],
    T: Column,
    classes: Column,
    prior: np.ndarray,
    outlines: Column | None = None,
) -> Evidence:
    """Regress the targets on every view, predict each sample without itself, fuse the scores.

    Parameters
    ----------
    rows : Rows
    blocks : column of MendBlock
    spectra : sequence of array (n_features_v,)
        Of the kernel features of the views, see `KernelMap`.
    T : column of array (n_rows, n_classes)
        Soft targets; those of samples of unknown class are not used.
    classes : column of array (n_rows,) of int
        -1 if unknown.
    prior : array (n_classes,)
    outlines : column of MendBlock, optional
        The blocks without their features, which most of this does not need.
    """
    outlines = blocks if outlines is None else outlines
    # The scores are leave-one-out predictions: those of the fit would only repeat the targets.
    fits, Z = regress_views(rows, blocks, spectra, T, classes)
    gaussian = fit_view_gaussian(rows, outlines, Z, classes, prior, SHRINKAGE)
    weights = np.array([fit.weight for fit in fits])
    P = rows.map(evidence_rows, outlines, Z, shared=(weights, gaussian))
    return Evidence(P, Z, fits, gaussian)


def evidence_rows(block: MendBlock, Z: Array, shared: tuple[np.ndarray, ViewGaussian]) -> Array:
    """`evidence_shares` as a task, for ``shared = (weights, gaussian)``."""
    return evidence_shares(Z, block.observed, *shared)


def evidence_shares(
    Z: Array, observed: Array, weights: np.ndarray, gaussian: ViewGaussian
) -> Array:
    """Geometric mean of two class shares made of the scores: by their mean, by a Gaussian model.

    The weighted mean is robust where views are few or poor. The Gaussian model accounts for views
    that repeat each other, and for the classes that a view confuses.

    Scores ``Z`` (n_rows, n_views, n_classes) are zero where not ``observed`` (n_rows, n_views).
    Rows of the result (n_rows, n_classes) sum to one.
    """
    xp = array_namespace(Z)
    shares = normalise_rows(xp.astype(observed, Z.dtype) * beside(weights, Z))
    # A product of a row with a matrix per sample: the mean over views.
    mean = (shares[:, None] @ Z)[:, 0]
    # Half the sum of two logarithms is the logarithm of the geometric mean.
    logs = (SHARPNESS * mean + log_posterior(gaussian, Z, observed) / TEMPERATURE) / 2
    return normalise_rows(xp.exp(logs - row_maxima(logs)))


def with_labels(rows: Rows, evidence: Evidence, reading: LabelReading | None) -> Evidence:
    """The evidence together with what given labels alone say, if these are read."""
    if reading is None:
        return evidence
    P = rows.map(read_rows, evidence.P, reading.Z, shared=reading.intercept)
    return replace(evidence, P=P, by_labels=reading)


def read_rows(P: Array, Z: Array, intercept: np.ndarray) -> Array:
    """`labelled_shares` as a task, of a reading's parts ``Z`` (n_rows, n_views, n_classes)."""
    return labelled_shares(P, array_namespace(Z).sum(Z, axis=1) + beside(intercept, Z))


def labelled_shares(P: Array, logs: Array) -> Array:
    """Class shares times those that given labels alone lead to, by their logarithms.

    Both are (n_rows, n_classes).
    """
    xp = array_namespace(P)
    return normalise_rows(P * xp.exp(logs - row_maxima(logs)))


def hellinger_points(P: Array) -> Array:
    """Square roots, of float32: their Euclidean distance is Hellinger's between class shares."""
    xp = array_namespace(P)
    return xp.astype(xp.sqrt(P), xp.float32, copy=False)


def combine(P: Array, evidence: Array, prior: np.ndarray, power: float) -> Array:
    """``p_i e_i^power``, rows scaled to sum one; where ``p_i`` is zero, the prior stands in for it.

    ``P`` are the scores of the graph, ``evidence`` class shares, both (n_rows, n_classes).
    """
    xp = array_namespace(P)
    shares = normalise_rows(P)
    # No label reaches such a sample over the graph, so the evidence alone decides.
    shares = xp.where(xp.any(P != 0, axis=1, keepdims=True), shares, beside(prior, P))
    if power > 1:
        # Only ratios count: the largest share must not vanish in single precision.
        largest = row_maxima(evidence)
        evidence = evidence / xp.where(largest > 0, largest, xp.ones_like(largest))
    products = shares * evidence**power
    # Where one rules out all that the other allows, as a wrong label and its view do, that is zero.
    return normalise_rows(xp.where(xp.any(products != 0, axis=1, keepdims=True), products, shares))


def combined_rows(P: Array, evidence: Array, shared: tuple[np.ndarray, float]) -> Array:
    """`combine` as a task, for ``shared = (prior, power)``."""
    return combine(P, evidence, *shared)
