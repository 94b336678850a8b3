"""What the views say by the given labels alone, for rare classes that the rounds would lose.

A round learns from what it found itself. Where a class is a group of samples, rounds find the rest
of it. Where it is one end of a continuum, as the samples of largest risk are, there is no group to
find: every round moves the few labelled samples of a rare class further out of sight. A regression
that has seen no other labels than the given ones does not move. It is asked for where a class is
rare and the regressions of the first round explain little of what the graphs say.
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

# Labels are read where the best view explains less than this share of what the graphs say, each
# sample left out; the less it does, the more they count.
LITTLE_EXPLAINED = 0.15
# A difference of one between scores as a difference of log shares, where nothing is explained.
SHARPNESS = 20.0
# A class is rare whose labels are fewer than an equal share by so many standard deviations of it.
RARE = 4.0
# With more labels than this the rounds are not alone with a few of them.
MOST_LABELS = 1000
# Of the regression, per label and in units of the kernel, which is at most one.
RIDGE = 1e-2
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
    ``inverse`` (n_labels, n_labels) is that of their kernel plus ridge, and ``weights``
    (n_classes,) are those of a label of each class.
    """

    coefficients: tuple[np.ndarray, ...]
    intercept: np.ndarray
    Phi: np.ndarray
    inverse: np.ndarray
    weights: np.ndarray

    @property
    def ridge(self) -> float:
        """Of a sample of weight one."""
        return RIDGE * len(self.Phi)


def reading_of_labels(
    rows: Rows, blocks: Column, Y: Column, explained: Sequence[float]
) -> LabelReading | None:
    """The reading of the given labels where the rounds need one, None elsewhere.

    Parameters
    ----------
    rows : Rows
    blocks : column of MendBlock
    Y : column of array (n_rows, n_classes)
        One-hot rows of labelled samples, zero rows of the others.
    explained : sequence of float
        Shares of the targets' variance that the views explain in the first round; empty before.
    """
    # In this order: labels are not even counted where the views explain enough.
    if not explained or max(explained) >= LITTLE_EXPLAINED:
        return None
    counts = on_host(rows.sums(class_sums, Y, shared=None))["labels"]
    if not has_rare_class(counts):
        return None
    regression = regress_labels(rows, blocks, Y)
    sharpness = SHARPNESS * (1 - max(explained) / LITTLE_EXPLAINED)
    Z = rows.map(reading_rows, blocks, Y, shared=(regression, sharpness))
    coefficients = tuple(sharpness * of_view for of_view in regression.coefficients)
    return LabelReading(coefficients, sharpness * regression.intercept, Z)


def has_rare_class(counts: np.ndarray) -> bool:
    """Whether labels (n_classes,) are not too many, and too few of some class to be chance."""
    equal = counts.mean()
    return bool(counts.min() < equal - RARE * np.sqrt(equal) and counts.sum() <= MOST_LABELS)


def regress_labels(rows: Rows, blocks: Column, Y: Column) -> LabelRegression:
    """Ridge regression of one-hot labels on all views, in which all classes weigh the same.

    With ``K`` the kernel of the labelled samples, the sum over the views both have, and weights
    ``w``, it is ``Phi^T (K + ridge / w)^{-1} Y``.
    """
    parts = rows.gather(labelled_features, blocks, Y, shared=None)
    features = [
        np.concatenate(of_view) for of_view in zip(*(part[0] for part in parts), strict=True)
    ]
    Phi = np.concatenate(features, axis=1)
    targets = np.concatenate([part[1] for part in parts])
    counts = targets.sum(axis=0)
    weights = len(targets) / (np.count_nonzero(counts) * np.maximum(counts, 1))
    system = Phi @ Phi.T + INTERCEPT
    system[np.diag_indices_from(system)] += RIDGE * len(targets) / (targets @ weights)
    inverse = scipy.linalg.inv(system)
    dual = inverse @ targets
    coefficients = tuple(of_view.T @ dual for of_view in features)
    intercept = INTERCEPT * dual.sum(axis=0)
    return LabelRegression(coefficients, intercept, Phi, inverse, weights)


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
    k = Phi @ regression.Phi.T + INTERCEPT
    own = np.einsum("if,if->i", Phi, Phi) + INTERCEPT
    h = (own - np.einsum("ij,ij->i", k @ regression.inverse, k)) * (Y @ regression.weights)
    h = np.clip(h / regression.ridge, 0, MOST_LEVERAGE)[:, None]
    fitted = Phi @ np.concatenate(regression.coefficients) + regression.intercept
    return np.asarray((fitted - Y) * h / (1 - h))
