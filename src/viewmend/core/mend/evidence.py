"""Evidence for the class of every sample from the views it has, by regression on each of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.special import softmax

from viewmend.backend.threads import parallel_map
from viewmend.core.common.class_shares import normalise_rows
from viewmend.core.graphs.nearest import neighbour_search
from viewmend.core.graphs.neighbours import graph_from_neighbours
from viewmend.core.mend.geometry import MendGeometry, MendView
from viewmend.core.mend.loo_ridge import LeaveOneOut, leave_one_out_ridge
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

    Rows of ``P`` (n_samples, n_classes) sum to one. There is one fit per view, and one Gaussian of
    the scores of all views.
    """

    P: np.ndarray
    fits: tuple[LeaveOneOut, ...]
    gaussian: ViewGaussian

    @property
    def view_weights(self) -> np.ndarray:
        """Explained over unexplained variance of every view, (n_views,)."""
        return np.array([fit.weight for fit in self.fits])


def gather_evidence(
    geometry: MendGeometry, T: np.ndarray, classes: np.ndarray, prior: np.ndarray
) -> Evidence:
    """Regress the targets on every view, predict each sample without itself, fuse the scores.

    The soft targets ``T`` (n_samples, n_classes) of samples whose class is unknown, -1 in
    ``classes`` (n_samples,), are not used.
    """

    def regress(view: MendView) -> LeaveOneOut:
        return leave_one_out_ridge(view.features, T[view.rows], known=classes[view.rows] >= 0)

    fits = parallel_map(regress, geometry.views)
    # Scores (n_samples, n_views, n_classes), zero where a view is missing. The scores are
    # leave-one-out predictions: those of the fit would only repeat the targets.
    Z = np.zeros((*geometry.observed.shape, T.shape[1]))
    for v, (view, fit) in enumerate(zip(geometry.views, fits, strict=True)):
        Z[view.rows, v] = fit.scores
    gaussian = fit_view_gaussian(Z, geometry.observed, classes, prior, SHRINKAGE)
    weights = np.array([fit.weight for fit in fits])
    P = evidence_shares(Z, geometry.observed, weights, gaussian)
    return Evidence(P, tuple(fits), gaussian)


def evidence_shares(
    Z: np.ndarray, observed: np.ndarray, weights: np.ndarray, gaussian: ViewGaussian
) -> np.ndarray:
    """Geometric mean of two class shares made of the scores: by their mean, by a Gaussian model.

    The weighted mean is robust where views are few or poor. The Gaussian model accounts for views
    that repeat each other, and for the classes that a view confuses.

    Scores ``Z`` (n_samples, n_views, n_classes) are zero where not ``observed`` (n_samples,
    n_views). Rows of the result (n_samples, n_classes) sum to one.
    """
    shares = observed * weights
    mean = np.einsum("iv,ivc->ic", shares, Z) / shares.sum(axis=1, keepdims=True)
    # Half the sum of two logarithms is the logarithm of the geometric mean.
    log_shares = SHARPNESS * mean + log_posterior(gaussian, Z, observed) / TEMPERATURE
    return np.asarray(softmax(log_shares / 2, axis=1))


def consensus_graph(P: np.ndarray, k: int) -> csr_array:
    """Neighbour graph of the evidence, which has all samples, whatever views they miss.

    Class shares ``P`` (n_samples, n_classes) are compared by Hellinger's distance.
    """
    # One more than k: the weights are relative to the distance of the next neighbour.
    near = neighbour_search({"evidence": hellinger_points(P)}, k + 1)["evidence"]
    return graph_from_neighbours(near, k)


def hellinger_points(P: np.ndarray) -> np.ndarray:
    """Square roots, of float32: their Euclidean distance is Hellinger's between class shares."""
    return np.asarray(np.sqrt(P), dtype=np.float32)


def combine(P: np.ndarray, evidence: np.ndarray, prior: np.ndarray, power: float) -> np.ndarray:
    """``p_i e_i^power``, rows scaled to sum one; where ``p_i`` is zero, the prior stands in for it.

    ``P`` are the scores of the graph, ``evidence`` class shares, both (n_samples, n_classes).
    """
    shares = normalise_rows(P)
    # No label reaches such a sample over the graph, so the evidence alone decides.
    shares = np.where(shares.any(axis=1, keepdims=True), shares, prior)
    return normalise_rows(shares * evidence**power)
