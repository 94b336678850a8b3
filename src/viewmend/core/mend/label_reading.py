"""What the views say by the given labels alone, for rare classes that the rounds would lose.

A round learns from what it found itself. Where a class is a group of samples, rounds find the rest
of it. Where it is one end of a continuum, as the samples of largest risk are, there is no group to
find: every round moves the few labelled samples of a rare class further out of sight. A regression
that has seen no other labels than the given ones does not move. It is asked for where a class is
rare and no graph joins samples of one class much more often than chance does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from viewmend.backend.namespace import Array, array_namespace, to_numpy
from viewmend.core.common.rows import Column, Rows, Sums
from viewmend.core.common.small_sums import beside, on_host, total
from viewmend.core.mend.blocks import MendBlock

# Homophily of the best graph above chance, see `homophily_above_chance`: labels are read in full up
# to the first, and not at all from the second on. Half way from chance there are groups.
FEW_WITHIN, ENOUGH_WITHIN = 0.45, 0.5
# A difference of one between scores as a difference of log shares, where labels are read in full.
SHARPNESS = 24.0
# A class is rare whose labels are fewer than an equal share by so many standard deviations of it.
RARE = 3.0
# With more labels than this the rounds are not alone with a few of them.
MOST_LABELS = 1000
# Of the regression, per label and in units of the kernel, which is at most one.
RIDGE = 3e-2
# Variance of the intercept before any label, in the same units: it is hardly shrunk.
INTERCEPT = 1.0
# A leverage of one would divide by zero.
MOST_LEVERAGE = 0.999


@dataclass(frozen=True, eq=False)
class LabelReading:
    """Log shares by one regression on all views together, from samples with a given label.

    Attributes
    ----------
    coefficients : tuple of array (n_features_v, n_classes)
        Of the kernel features of every view; those of a missing view count as zero, their mean.
    intercept : array (n_classes,)
    Z : column of array (n_rows, n_views, n_classes) of float32
        What each view adds to the intercept; zero where it is missing. A labelled sample is
        predicted without its own label, and the difference dealt out to its views.
    """

    coefficients: tuple[np.ndarray, ...]
    intercept: np.ndarray
    Z: Column


@dataclass(frozen=True, eq=False)
class LabelRegression:
    """The regression before it is applied.

    ``Phi`` (n_labels, n_features) are the features of the labelled samples in all views,
    ``factors`` (n_features,) those of the features in the kernel, ``inverse`` (n_labels, n_labels)
    is that of this kernel plus ridge, and ``weights`` (n_classes,) are those of a label of each
    class.
    """

    coefficients: tuple[np.ndarray, ...]
    intercept: np.ndarray
    Phi: np.ndarray
    factors: np.ndarray
    inverse: np.ndarray
    weights: np.ndarray

    @property
    def ridge(self) -> float:
        """Of a sample of weight one."""
        return RIDGE * len(self.Phi)


def rare_class_in(rows: Rows, Y: Column) -> bool:
    """Whether `has_rare_class` is true of the labels ``Y`` of arrays (n_rows, n_classes)."""
    return has_rare_class(on_host(rows.sums(class_sums, Y, shared=None))["labels"])


def has_rare_class(counts: np.ndarray) -> bool:
    """Whether labels (n_classes,) are not too many, and too few of some class to be chance."""
    equal = counts.mean()
    return bool(counts.min() < equal - RARE * np.sqrt(equal) and counts.sum() <= MOST_LABELS)


def reading_of_labels(
    rows: Rows, blocks: Column, spectra: Sequence[np.ndarray], Y: Column, within: float
) -> LabelReading | None:
    """The reading of the given labels, None where graphs find the classes without it.

    Parameters
    ----------
    rows : Rows
    blocks : column of MendBlock
    spectra : sequence of array (n_features_v,)
        Of the kernel features of the views, see `KernelMap`.
    Y : column of array (n_rows, n_classes)
        One-hot rows of labelled samples, zero rows of the others.
    within : float
        Homophily above chance of the best graph.
    """
    sharpness = SHARPNESS * min((ENOUGH_WITHIN - within) / (ENOUGH_WITHIN - FEW_WITHIN), 1.0)
    if sharpness <= 0:
        return None
    regression = regress_labels(rows, blocks, spectra, Y)
    Z = rows.map(reading_rows, blocks, Y, shared=(regression, sharpness))
    coefficients = tuple(sharpness * of_view for of_view in regression.coefficients)
    return LabelReading(coefficients, sharpness * regression.intercept, Z)


def regress_labels(
    rows: Rows, blocks: Column, spectra: Sequence[np.ndarray], Y: Column
) -> LabelRegression:
    """Ridge regression of one-hot labels on all views, in which all classes weigh the same.

    With features ``Phi`` of the labelled samples, zero where a view is missing, relative deviations
    ``S`` of these over all samples, ``K = Phi S Phi^T`` and weights ``w``, the coefficients are
    ``S Phi^T (K + ridge / w)^{-1} Y``: directions in which all samples vary much count more.
    """
    parts = rows.gather(labelled_features, blocks, Y, shared=None)
    Phi = np.concatenate([np.concatenate(features, axis=1) for features, _ in parts])
    targets = np.concatenate([given for _, given in parts])
    factors = np.concatenate([relative_deviations(spectrum) for spectrum in spectra])
    counts = targets.sum(axis=0)
    weights = len(targets) / (np.count_nonzero(counts) * np.maximum(counts, 1))
    system = (Phi * factors) @ Phi.T + INTERCEPT
    system[np.diag_indices_from(system)] += RIDGE * len(targets) / (targets @ weights)
    inverse = scipy.linalg.inv(system)
    dual = inverse @ targets
    of_all = factors[:, None] * (Phi.T @ dual)
    ends = np.cumsum([len(spectrum) for spectrum in spectra])
    coefficients = tuple(np.split(of_all, ends[:-1]))
    return LabelRegression(
        coefficients, INTERCEPT * dual.sum(axis=0), Phi, factors, inverse, weights
    )


def relative_deviations(spectrum: np.ndarray) -> np.ndarray:
    """Deviations (n_features,) of features of these squared lengths, the largest of them one."""
    largest = max(float(spectrum.max(initial=0)), np.finfo(float).tiny)
    return np.asarray(np.sqrt(spectrum / largest), dtype=np.float64)


# ------------------------------------------------------------------ tasks


def class_sums(Y: Array, _shared: None) -> Sums:
    """Number of labels of every class, (n_classes,)."""
    return {"labels": total(Y)}


def labelled_features(
    block: MendBlock, Y: Array, _shared: None
) -> tuple[list[np.ndarray], np.ndarray]:
    """Features (n_labels, n_features_v) of the labelled rows by view, zero where it is missing.

    With their labels (n_labels, n_classes); both on the host, in double precision.
    """
    xp = array_namespace(Y)
    labelled = xp.any(Y != 0, axis=1)
    rows = xp.nonzero(labelled)[0]
    place = xp.cumulative_sum(xp.astype(labelled, xp.int64)) - 1
    features = []
    for view in block.views:
        Phi = np.zeros((rows.shape[0], view.Phi.shape[1]))
        seen = xp.nonzero(labelled[view.rows])[0]
        Phi[to_numpy(place[view.rows[seen]])] = to_numpy(view.Phi[seen])
        features.append(Phi)
    return features, to_numpy(Y[rows]).astype(np.float64)


def reading_rows(block: MendBlock, Y: Array, shared: tuple[LabelRegression, float]) -> Array:
    """What each view adds to the intercept, (n_rows, n_views, n_classes) of float32.

    For ``shared = (regression, sharpness)``.
    """
    (regression, sharpness), xp = shared, array_namespace(Y)
    shape = (*block.observed.shape, Y.shape[1])
    Z = xp.zeros(shape, dtype=xp.float32, device=Y.device)
    for v, (view, coefficients) in enumerate(
        zip(block.views, regression.coefficients, strict=True)
    ):
        Phi = xp.astype(view.Phi, xp.float32, copy=False)
        Z[view.rows, v] = Phi @ beside(coefficients, Phi)
    labelled = xp.nonzero(xp.any(Y != 0, axis=1))[0]
    missed = beside(_without_own(*labelled_features(block, Y, None), regression), Z)
    observed = xp.astype(block.observed[labelled], xp.float32)
    shares = observed / xp.sum(observed, axis=1, keepdims=True)
    Z[labelled] = Z[labelled] + shares[:, :, None] * missed[:, None]
    return sharpness * Z


def _without_own(
    features: Sequence[np.ndarray], Y: np.ndarray, regression: LabelRegression
) -> np.ndarray:
    """What scores of labelled rows change by without their own labels, (n_labels, n_classes).

    With the kernel ``k`` between a row and the labelled ones, its leverage follows from
    ``k(i, i) - k^T (K + ridge / w)^{-1} k = h ridge / w``, whichever of them it is.
    """
    Phi = np.concatenate(features, axis=1)
    weighted = Phi * regression.factors
    k = weighted @ regression.Phi.T + INTERCEPT
    own = np.einsum("if,if->i", weighted, Phi) + INTERCEPT
    h = (own - np.einsum("ij,ij->i", k @ regression.inverse, k)) * (Y @ regression.weights)
    h = np.clip(h / regression.ridge, 0, MOST_LEVERAGE)[:, None]
    fitted = Phi @ np.concatenate(regression.coefficients) + regression.intercept
    return np.asarray((fitted - Y) * h / (1 - h))
