"""What a missing view would add to the answer of a sample, by the Gaussian over the scores.

Given the class and the scores of the views that a sample has, those of a missing view are
Gaussian. The covariance is shared by the classes, so that observed scores move the means of all
classes alike: how well a view tells classes apart depends on which views are there, and not on
their scores.
With class shares ``p`` of today and densities ``f_c``, the right answers to expect once the view is
measured are ``E[max_c p_c f_c / sum_c p_c f_c]``, which is never less than ``max_c p_c``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.special import ndtri

from viewmend.core.common.calibration import fit_temperature
from viewmend.core.common.class_shares import normalise_rows
from viewmend.core.mend.view_gaussian import ViewGaussian, log_posterior, observed_patterns

# Log densities of a measurement are divided by a temperature: the Gaussians, fitted to soft
# targets, are too sure. It is that of the view on the labelled samples; with few of them it is
# drawn towards what log densities are divided by in the answers, with the weight of so many labels.
USUAL_TEMPERATURE, PRIOR_LABELS = 8.0, 10
# Classes of a sample that are told apart: the most probable ones.
MOST_CLASSES = 6
# Nodes of the integral, in pairs of opposite sign.
N_NODES = 128
# Part of a budget by which its costs may exceed it.
ROUNDING = 1e-9
# Entries of the integrand that are worked on at a time.
PIECE = 1 << 21


def view_temperatures(
    gaussian: ViewGaussian, Z: np.ndarray, observed: np.ndarray, codes: np.ndarray
) -> np.ndarray:
    """How much too sure the Gaussian of every view is, (n_views,), one or more.

    Scores of a sample are made without it, so that its label can judge them. Views that the model
    learned its classes from are the surest of these classes, right or wrong.

    Parameters
    ----------
    gaussian : ViewGaussian
    Z : array (n_labelled, n_views, n_classes)
        Scores of the labelled samples, zero where not ``observed`` (n_labelled, n_views).
    codes : array (n_labelled,) of int
        Their classes.
    """
    logs = np.full(observed.shape[1], np.log(USUAL_TEMPERATURE))
    for v, seen in enumerate(observed.T):
        if seen.any():
            alone = np.zeros_like(observed[seen])
            alone[:, v] = True
            shares = normalise_rows(np.exp(log_posterior(gaussian, Z[seen], alone)))
            weight = seen.sum() / (seen.sum() + PRIOR_LABELS)
            logs[v] += weight * (np.log(fit_temperature(shares, codes[seen])) - logs[v])
    return np.maximum(np.exp(logs), 1)


def view_gains(
    gaussian: ViewGaussian,
    temperatures: np.ndarray,
    shares: np.ndarray,
    observed: np.ndarray,
    rows: np.ndarray,
) -> np.ndarray:
    """Expected rise of the chance to be right, for each missing view of the samples ``rows``.

    Parameters
    ----------
    gaussian : ViewGaussian
    temperatures : array (n_views,)
        What the log densities of the scores of a view are divided by.
    shares : array (n_samples, n_classes)
        Class shares; rows sum to one.
    observed : array (n_samples, n_views) of bool
    rows : array (n_rows,) of int

    Returns
    -------
    array (n_rows, n_views)
        Zero where a view is there; none of them negative.
    """
    gains = np.zeros((len(rows), observed.shape[1]))
    for views, here in observed_patterns(observed[rows]):
        for v in np.flatnonzero(~views):
            products = separation(gaussian, views, int(v)) / temperatures[v]
            gains[here, v] = expected_gains(shares[rows[here]], products)
    return gains


def separation(gaussian: ViewGaussian, views: np.ndarray, missing: int) -> np.ndarray:
    """Inner products (n_classes, n_classes) of the whitened class means of a missing view.

    The means are those given the scores of the ``views`` (n_views,) that are there, less what
    these scores add to all of them alike.
    """
    width = gaussian.means.shape[1]
    of_view = np.repeat(np.arange(len(views)), width // len(views))
    there, new = np.flatnonzero(views[of_view]), np.flatnonzero(of_view == missing)
    C, floor = gaussian.covariance, gaussian.floor
    means, covariance = gaussian.means[:, new], C[np.ix_(new, new)]
    if len(there):
        values, vectors = scipy.linalg.eigh(C[np.ix_(there, there)])
        solved = vectors / np.maximum(values, floor) @ (vectors.T @ C[np.ix_(there, new)])
        means = means - gaussian.means[:, there] @ solved
        covariance = covariance - C[np.ix_(new, there)] @ solved
    values, vectors = scipy.linalg.eigh((covariance + covariance.T) / 2)
    whitened = (means - means.mean(axis=0)) @ vectors / np.sqrt(np.maximum(values, floor))
    return np.asarray(whitened @ whitened.T)


def expected_gains(shares: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Expected rise of the largest class share by a measurement, (n_rows,).

    Parameters
    ----------
    shares : array (n_rows, n_classes)
    products : array (n_classes, n_classes)
        Inner products of the means of the measurement by class, in units of its noise.
    """
    # Sorted by share, so that classes in another order give the same nodes to the same classes.
    n_classes = min(shares.shape[1], MOST_CLASSES)
    best = np.argsort(-shares, axis=1, kind="stable")[:, :n_classes]
    nodes = normal_nodes(N_NODES, n_classes)
    gains = np.empty(len(shares))
    step = max(PIECE // (len(nodes) * n_classes**2), 1)
    for start in range(0, len(shares), step):
        part = slice(start, start + step)
        top = best[part]
        p = np.take_along_axis(shares[part], top, axis=1)
        likely = _Likely.of(products[top[:, :, None], top[:, None, :]], nodes)
        gains[part] = likely.right(p) - p[:, 0]
    # The integral of a view that tells nothing is right up to rounding.
    return np.maximum(gains, 0)


@dataclass(frozen=True, eq=False)
class _Likely:
    """Log densities of the measurement of some rows, up to what all classes share.

    ``products`` (n_rows, k, k) are those of the classes of a row, ``noise`` (n_rows, n_nodes, k)
    the inner products of the nodes with the means.
    """

    products: np.ndarray
    noise: np.ndarray

    @classmethod
    def of(cls, products: np.ndarray, nodes: np.ndarray) -> _Likely:
        values, vectors = np.linalg.eigh(products)
        roots = vectors * np.sqrt(np.maximum(values, 0))[:, None, :] @ vectors.transpose(0, 2, 1)
        return cls(products, nodes @ roots)

    def right(self, p: np.ndarray) -> np.ndarray:
        """Expected share (n_rows,) of right answers, for shares ``p`` (n_rows, k)."""
        squares = np.diagonal(self.products, axis1=1, axis2=2)
        logs = np.log(np.maximum(p, np.finfo(float).tiny)) - squares / 2
        total = np.zeros(len(p))
        for c in range(p.shape[1]):
            # If the class is c, the measurement is its mean plus noise.
            scores = (logs + self.products[:, c])[:, None, :] + self.noise
            largest = scores.max(axis=2, keepdims=True)
            top = 1 / np.exp(scores - largest).sum(axis=2)
            total += p[:, c] * top.mean(axis=1)
        # Classes that were left out stay as improbable as they are.
        return total


def normal_nodes(n_nodes: int, n_dimensions: int) -> np.ndarray:
    """Nodes (n_nodes, n_dimensions) of the standard normal distribution, the same every time.

    They are a Kronecker sequence of the generalised golden ratio and its mirror image, scaled to
    have the covariance of the distribution exactly.
    """
    ratio = 2.0
    for _ in range(64):
        ratio = (1 + ratio) ** (1 / (n_dimensions + 1))
    steps = ratio ** -np.arange(1.0, n_dimensions + 1)
    half = np.arange(1, n_nodes // 2 + 1)[:, None]
    nodes = ndtri((0.5 + half * steps) % 1)
    factor = np.linalg.cholesky(nodes.T @ nodes / len(nodes))
    nodes = scipy.linalg.solve_triangular(factor, nodes.T, lower=True).T
    return np.concatenate([nodes, -nodes])


@dataclass(frozen=True, eq=False)
class ChosenViews:
    """Pairs worth measuring: ``rows`` and ``views`` (n_pairs,), best first, with their gains."""

    rows: np.ndarray
    views: np.ndarray
    gains: np.ndarray


def choose_views(
    gains: np.ndarray, costs: np.ndarray, n: int | None, budget: float | None
) -> ChosenViews:
    """Pairs of the largest gain per cost, at most one view per sample.

    Two views of a sample are worth less than the sum of both: measure one, and ask again.

    Parameters
    ----------
    gains, costs : array (n_rows, n_views)
        Pairs of no gain are not chosen; costs are positive.
    n : int or None
        Most pairs.
    budget : float or None
        Most that they may cost together; a pair that costs more than is left is passed over, so
        that another view of its sample may be chosen.
    """
    # Three costs of 0.1 are within 0.3, of which rounding must not leave too little.
    limit = np.inf if budget is None else (1 + ROUNDING) * budget
    rates = np.where(costs <= limit, gains / costs, 0.0)
    order = np.argsort(-rates, axis=None, kind="stable")
    rows, views = np.unravel_index(order[rates.ravel()[order] > 0], rates.shape)
    if budget is None:
        # The first pair of every sample is its best.
        taken = np.sort(np.unique(rows, return_index=True)[1])[:n]
    else:
        taken = _within_budget(rows, costs[rows, views], limit)[:n]
    rows, views = rows[taken], views[taken]
    return ChosenViews(rows, views, gains[rows, views])


def _within_budget(rows: np.ndarray, costs: np.ndarray, budget: float) -> np.ndarray:
    """Which of some pairs, best first, are paid for, at most one of each of the ``rows``."""
    taken, left, done = [], budget, set()
    for pair, (row, cost) in enumerate(zip(rows.tolist(), costs.tolist(), strict=True)):
        if cost <= left and row not in done:
            taken.append(pair)
            done.add(row)
            left -= cost
    return np.array(taken, dtype=np.int64)
