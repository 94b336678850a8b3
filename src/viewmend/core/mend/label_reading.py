"""What the views say by the given labels alone, for rare classes that the rounds would lose.

A round learns from what it found itself. Where a class is a group of samples, rounds find the rest
of it. Where it is one end of a continuum, as the samples of largest risk are, there is no group to
find: every round moves the few labelled samples of a rare class further out of sight. A regression
that has seen no other labels than the given ones does not move. It is linear in the columns of the
views, as little more can be learned from a few labels, and is asked for where a class is rare and
the views do not agree about groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from viewmend.backend.namespace import Array, array_namespace, to_numpy
from viewmend.core.common.rows import Column, Rows, RowsInMemory, Sums
from viewmend.core.common.small_sums import beside, on_host, total
from viewmend.core.mend.geometry import MendView, RawBlock
from viewmend.core.mend.representations import Representation, represent

# Limits of the agreement of the views, see `viewmend.core.mend.groups`: labels are read in full up
# to the first, and not at all from the second on.
AGREEMENT = 0.2, 0.3
# The same of the homophily of the best graph above chance, for a group that one view alone sees. It
# is larger than the agreement, because the classes come from the same graphs.
WITHIN = 0.55, 0.6
# The same where there is no agreement to compare.
WITHIN_ALONE = 0.45, 0.5
# A difference of one between scores as a difference of log shares, where labels are read in full.
SHARPNESS = 24.0
# A class is rare whose labels are fewer than an equal share by so many standard deviations of it.
RARE = 3.0
# With more labels than this the rounds are not alone with a few of them.
MOST_LABELS = 1000
# Of the regression, per label and in units of the kernel, which is one on average.
RIDGE = 0.1
# Variance of the intercept before any label, in the same units: it is hardly shrunk.
INTERCEPT = 1.0
# A value that is more deviations away from the mean of its column counts as one that is so many.
MOST_DEVIATIONS = 4.0
# A leverage of one would divide by zero.
MOST_LEVERAGE = 0.999


@dataclass(frozen=True, eq=False)
class LabelReading:
    """Log shares by one regression on all views together, from samples with a given label.

    Attributes
    ----------
    columns : tuple of Representation
        Standardised columns of every view, before they are cut; see `columns_read`.
    coefficients : tuple of array (n_columns_v, n_classes)
        Of these; those of a missing view count as zero, their mean.
    intercept : array (n_classes,)
    Z : column of array (n_rows, n_views, n_classes) of float32
        What each view adds to the intercept; zero where it is missing. A labelled sample is
        predicted without its own label, and the difference dealt out to its views.
    """

    columns: tuple[Representation, ...]
    coefficients: tuple[np.ndarray, ...]
    intercept: np.ndarray
    Z: Column


@dataclass(frozen=True, eq=False)
class ViewReading:
    """What a view adds to the reading of given labels alone.

    ``columns`` and ``coefficients`` (n_columns, n_classes) are those of a `LabelReading`, the
    ``scores`` (n_rows, n_classes) those of the rows of fit.
    """

    columns: Representation
    coefficients: np.ndarray
    scores: np.ndarray

    def __call__(self, X: Array) -> Array:
        """What it adds for new rows ``X`` (n_new, n_columns), (n_new, n_classes)."""
        Phi = columns_read(X, self.columns)
        return Phi @ beside(self.coefficients, Phi)


@dataclass(frozen=True, eq=False)
class LabelRegression:
    """The regression before it is applied.

    ``columns``, ``coefficients`` and ``intercept`` are those of a `LabelReading`. ``Phi``
    (n_labels, n_columns_v) are the columns of the labelled samples, ``factors`` those of the views
    in the kernel, ``inverse`` (n_labels, n_labels) is that of this kernel plus ridge, and
    ``weights`` (n_classes,) are those of a label of each class.
    """

    columns: tuple[Representation, ...]
    coefficients: tuple[np.ndarray, ...]
    intercept: np.ndarray
    Phi: tuple[np.ndarray, ...]
    factors: tuple[float, ...]
    inverse: np.ndarray
    weights: np.ndarray

    @property
    def ridge(self) -> float:
        """Of a sample of weight one."""
        return RIDGE * len(self.inverse)


def rare_class_in(rows: Rows, Y: Column) -> bool:
    """Whether `has_rare_class` is true of the labels ``Y`` of arrays (n_rows, n_classes)."""
    return has_rare_class(on_host(rows.sums(class_sums, Y, shared=None))["labels"])


def has_rare_class(counts: np.ndarray) -> bool:
    """Whether labels (n_classes,) are not too many, and too few of some class to be chance."""
    equal = counts.mean()
    return bool(counts.min() < equal - RARE * np.sqrt(equal) and counts.sum() <= MOST_LABELS)


def share_read(agreement: float | None, within: float) -> float:
    """How far labels are read, from 0 to 1.

    By the agreement of the views, None where they cannot be compared, and the homophily ``within``
    classes of the best graph above chance.
    """
    if agreement is None:
        return _falling(within, *WITHIN_ALONE)
    return min(_falling(agreement, *AGREEMENT), _falling(within, *WITHIN))


def _falling(value: float, first: float, last: float) -> float:
    """1 up to the first limit, 0 from the last one on, a line between them."""
    return min(max((last - value) / (last - first), 0.0), 1.0)


def reading_of_labels(
    rows: Rows, raw: Column, views: Sequence[MendView], Y: Column, share: float
) -> LabelReading:
    """The reading of the given labels.

    Parameters
    ----------
    rows : Rows
    raw : column of RawBlock
    views : sequence of MendView
        Of the graph sample, whose columns are standardised.
    Y : column of array (n_rows, n_classes)
        One-hot rows of labelled samples, zero rows of the others.
    share : float
        How far labels are read, above 0 and at most 1.
    """
    columns, sharpness = tuple(map(standard_columns, views)), SHARPNESS * share
    regression = regress_labels(rows, raw, columns, Y)
    Z = rows.map(reading_rows, raw, Y, shared=(regression, sharpness))
    coefficients = tuple(sharpness * of_view for of_view in regression.coefficients)
    return LabelReading(columns, coefficients, sharpness * regression.intercept, Z)


def standard_columns(view: MendView) -> Representation:
    """Columns of mean 0 and deviation 1; components keep their proportions, on average 1."""
    host = np.empty((0, view.X.shape[1]))
    columns = represent(RowsInMemory(), view.X, ("standard",), host)["standard"]
    varies = columns.linear > 0
    if view.components is None or not varies.any():
        return columns
    # Components have one unit, and the first of them tell most.
    deviation = np.sqrt(np.mean(columns.linear[varies] ** -2.0))
    return replace(columns, linear=np.where(varies, 1 / deviation, 0))


def regress_labels(
    rows: Rows, raw: Column, columns: Sequence[Representation], Y: Column
) -> LabelRegression:
    """Ridge regression of one-hot labels on all views, in which all classes weigh the same.

    With columns ``Phi`` of the labelled samples, zero where a view is missing, factors ``s`` by
    which all views count alike, ``K = Phi s Phi^T`` and weights ``w``, the coefficients are
    ``s Phi^T (K + ridge / w)^{-1} Y``.
    """
    parts = rows.gather(labelled_columns, raw, Y, shared=columns)
    Phi = tuple(map(np.concatenate, zip(*(features for features, _ in parts), strict=True)))
    targets = np.concatenate([given for _, given in parts])
    n_columns = [max(int(np.count_nonzero(each.linear)), 1) for each in columns]
    factors = tuple(1 / (len(columns) * n_columns_v) for n_columns_v in n_columns)
    counts = targets.sum(axis=0)
    weights = len(targets) / (np.count_nonzero(counts) * np.maximum(counts, 1))
    system = _kernel(Phi, Phi, factors)
    system[np.diag_indices_from(system)] += RIDGE * len(targets) / (targets @ weights)
    inverse = scipy.linalg.inv(system)
    dual = inverse @ targets
    coefficients = tuple(
        factor * (of_view.T @ dual) for factor, of_view in zip(factors, Phi, strict=True)
    )
    intercept = INTERCEPT * dual.sum(axis=0)
    known = tuple(columns), coefficients, intercept, Phi, factors
    return LabelRegression(*known, inverse, weights)


def _kernel(
    A: Sequence[np.ndarray], B: Sequence[np.ndarray], factors: Sequence[float]
) -> np.ndarray:
    """Kernel (n_rows, n_others) of the regression between rows and others, by their columns."""
    views = zip(A, B, factors, strict=True)
    return np.asarray(sum(factor * (a @ b.T) for a, b, factor in views) + INTERCEPT)


def columns_read(X: Array, columns: Representation) -> Array:
    """Standardised columns (n_rows, n_columns) of rows ``X``, cut at `MOST_DEVIATIONS`."""
    return array_namespace(X).clip(columns(X), -MOST_DEVIATIONS, MOST_DEVIATIONS)


# ------------------------------------------------------------------ tasks


def class_sums(Y: Array, _shared: None) -> Sums:
    """Number of labels of every class, (n_classes,)."""
    return {"labels": total(Y)}


def labelled_columns(
    block: RawBlock, Y: Array, columns: Sequence[Representation]
) -> tuple[list[np.ndarray], np.ndarray]:
    """Columns (n_labels, n_columns_v) of the labelled rows by view, zero where it is missing.

    With their labels (n_labels, n_classes); both on the host, in double precision.
    """
    xp = array_namespace(Y)
    labelled = xp.any(Y != 0, axis=1)
    rows = xp.nonzero(labelled)[0]
    place = xp.cumulative_sum(xp.astype(labelled, xp.int64)) - 1
    features = []
    for v, (X_v, of_view) in enumerate(zip(block.views, columns, strict=True)):
        here = xp.nonzero(block.observed[:, v])[0]
        seen = xp.nonzero(labelled[here])[0]
        Phi = np.zeros((rows.shape[0], X_v.shape[1]))
        Phi[to_numpy(place[here[seen]])] = to_numpy(columns_read(X_v[seen], of_view))
        features.append(Phi)
    return features, to_numpy(Y[rows]).astype(np.float64)


def reading_rows(block: RawBlock, Y: Array, shared: tuple[LabelRegression, float]) -> Array:
    """What each view adds to the intercept, (n_rows, n_views, n_classes) of float32.

    For ``shared = (regression, sharpness)``.
    """
    (regression, sharpness), xp = shared, array_namespace(Y)
    shape = (*block.observed.shape, Y.shape[1])
    Z = xp.zeros(shape, dtype=xp.float32, device=Y.device)
    views = zip(block.views, regression.columns, regression.coefficients, strict=True)
    for v, (X_v, columns, coefficients) in enumerate(views):
        Phi = columns_read(X_v, columns)
        Z[xp.nonzero(block.observed[:, v])[0], v] = Phi @ beside(coefficients, Phi)
    labelled = xp.nonzero(xp.any(Y != 0, axis=1))[0]
    missed = _without_own(*labelled_columns(block, Y, regression.columns), regression)
    observed = xp.astype(block.observed[labelled], xp.float32)
    shares = observed / xp.sum(observed, axis=1, keepdims=True)
    Z[labelled] = Z[labelled] + shares[:, :, None] * beside(missed, Z)[:, None]
    return sharpness * Z


def _without_own(
    Phi: Sequence[np.ndarray], Y: np.ndarray, regression: LabelRegression
) -> np.ndarray:
    """What scores of labelled rows change by without their own labels, (n_labels, n_classes).

    With the kernel ``k`` between a row and the labelled ones, its leverage follows from
    ``k(i, i) - k^T (K + ridge / w)^{-1} k = h ridge / w``, whichever of them it is.
    """
    views = list(zip(Phi, regression.factors, regression.coefficients, strict=True))
    k = _kernel(Phi, regression.Phi, regression.factors)
    own = sum(factor * np.einsum("if,if->i", each, each) for each, factor, _ in views) + INTERCEPT
    h = (own - np.einsum("ij,ij->i", k @ regression.inverse, k)) * (Y @ regression.weights)
    h = np.clip(h / regression.ridge, 0, MOST_LEVERAGE)[:, None]
    fitted = sum(each @ coefficients for each, _, coefficients in views) + regression.intercept
    return np.asarray((fitted - Y) * h / (1 - h))
