"""Ridge regression on every view that predicts each sample as if its own target were left out.

With fit ``f``, leverages ``h_i = phi_i^T (Phi^T Phi + r I)^{-1} phi_i + 1/n`` and centred targets,
leaving out sample ``i`` turns its prediction into ``t_i - (t_i - f_i) / (1 - h_i)``. On features
whose Gram matrix is a diagonal, the coefficients of every ridge ``r`` are products with one over
it. So two sums over rows, of ``Phi^T T`` and of the squared errors of all ridges, are a fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from viewmend.backend.namespace import Array, array_namespace, fetched, is_numpy
from viewmend.backend.threads import for_each, parallel_map, row_blocks
from viewmend.core.common.rows import Column, Rows, Sums
from viewmend.core.common.small_sums import beside, on_host, total
from viewmend.core.mend.blocks import MendBlock, ViewRows

# Ridges tried, per row and in units of the kernel, which is at most one.
RIDGES = (1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
# Leverages are cut here: at 1 a sample decides its own fit alone, and the formula divides by zero.
# In views of few rows all are close to it. Scores then stay near the targets, which says nothing
# new; without them they would say the opposite, as the mean of the others does. What such a view
# explains is measured with the second number, which hardly cuts.
MOST_LEVERAGE, NEARLY_ALL = 0.999, 1 - 1e-6
# A view that explains nothing keeps a little weight, because some samples have no other view.
LEAST_R2 = 1e-3
# Share of the squares of targets below which their variance is rounding.
LEAST_SCATTER = 1e-6
# Rows of a view, about, on which ridges are compared; the error of the chosen one is that of all.
COMPARED_ROWS = 8192
# Entries of the features that are worked on at a time: in NumPy, and elsewhere.
PIECE, LARGE_PIECE = 1 << 20, 1 << 28


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """Ridge regression of targets on the features of a view, fitted to all rows with a target.

    ``coefficients`` (n_features, n_classes) and ``intercept`` (n_classes,); ``r2`` is the share of
    the variance of the targets that leave-one-out predictions explain, at least `LEAST_R2`.
    """

    coefficients: np.ndarray
    intercept: np.ndarray
    r2: float
    ridge: float

    @property
    def weight(self) -> float:
        """Explained over unexplained variance, the latter at least 5 %."""
        return self.r2 / (1.05 - self.r2)

    def predict(self, Phi: Array) -> Array:
        """Scores (n_new, n_classes) of new rows with features ``Phi``."""
        return Phi @ beside(self.coefficients, Phi) + beside(self.intercept, Phi)


@dataclass(frozen=True, eq=False)
class Tried:
    """The regressions on a view with some ridges.

    ``coefficients`` (n_features, n_ridges, n_classes) and ``intercepts`` (n_ridges, n_classes).
    The columns ``chosen`` of leverages belong to the ridges. ``axes`` are those of the rows that
    have a target, None where all have.
    """

    coefficients: np.ndarray
    intercepts: np.ndarray
    chosen: slice
    axes: Axes | None

    def only(self, ridge: int) -> Tried:
        """The regression with one of the ridges."""
        one = slice(ridge, ridge + 1)
        axes = None if self.axes is None else replace(self.axes, shrunk=self.axes.shrunk[:, one])
        return Tried(self.coefficients[:, one], self.intercepts[one], one, axes)

    def fit(self, targets: _Targets, error: float, ridges: Sequence[float]) -> RidgeFit:
        """Of the one ridge that is left, with the sum of its squared errors."""
        some = targets.scatter > 0
        r2 = max(1 - error / targets.scatter, LEAST_R2) if some else LEAST_R2
        ridge = ridges[self.chosen.start]
        return RidgeFit(self.coefficients[:, 0], self.intercepts[0], r2, ridge)


@dataclass(frozen=True, eq=False)
class Axes:
    """Axes on which the Gram matrix of features of some rows, less their mean, is a diagonal.

    ``centre`` is (n_features,), ``rotation`` (n_features, n_features), ``shrunk`` (n_features,
    n_ridges) one over the diagonal plus ridge, and ``n_rows`` the number of those rows.
    """

    centre: np.ndarray
    rotation: np.ndarray
    shrunk: np.ndarray
    n_rows: float


def regress_views(
    rows: Rows,
    blocks: Column,
    spectra: Sequence[np.ndarray],
    T: Column,
    classes: Column,
    ridges: Sequence[float] = RIDGES,
) -> tuple[tuple[RidgeFit, ...], Column]:
    """Regress targets on every view, each with the ridge of least leave-one-out error.

    Parameters
    ----------
    rows : Rows
    blocks : column of MendBlock
    spectra : sequence of array (n_features_v,)
        Diagonals of the Gram matrices of the features of all rows.
    T : column of array (n_rows, n_classes)
        Targets.
    classes : column of array (n_rows,) of int
        Rows of class -1 have no target, and are predicted only.
    ridges : sequence of float
        Tried times the number of rows; those that the leverages of the blocks were computed for.

    Returns
    -------
    tuple of RidgeFit
        One per view.
    column of array (n_rows, n_views, n_classes)
        Leave-one-out predictions, zero where a view is missing.
    """
    sums = on_host(rows.sums(target_sums, blocks, T, classes, shared=None))
    targets = [_Targets.of_view(v, sums) for v in range(len(spectra))]
    partial = [v for v, of_view in enumerate(targets) if not of_view.is_whole]
    grams = {}
    if partial:
        grams = on_host(rows.sums(gram_sums, blocks, T, classes, shared=partial))
    tried = parallel_map(
        lambda v: _solved(targets[v], spectra[v], grams.get(f"gram {v}"), ridges),
        range(len(spectra)),
    )
    steps = [max(round(of_view.n_known / COMPARED_ROWS), 1) for of_view in targets]
    errors = on_host(rows.sums(error_sums, blocks, T, classes, shared=(tried, steps)))
    chosen = [each.only(int(np.argmin(errors[f"errors {v}"]))) for v, each in enumerate(tried)]
    Z, errors = rows.both(score_rows, blocks, T, classes, shared=chosen)
    totals = map(float, fetched(list(errors.values())))
    known = zip(chosen, targets, totals, strict=True)
    return tuple(one.fit(of_view, error, ridges) for one, of_view, error in known), Z


def leverages_of(
    Phi: Array, spectrum: np.ndarray, n_rows: float, ridges: Sequence[float] = RIDGES
) -> Array:
    """Leverages (n, n_ridges) of rows ``Phi`` (n, n_features) in the fit of ``n_rows`` rows.

    Columns of the features of all rows sum to zero, and have the diagonal Gram ``spectrum``.
    """
    shrunk = _shrunk(spectrum, n_rows, ridges)
    # The 1/n is the leverage of the intercept.
    return Phi**2 @ beside(shrunk, Phi) + 1 / n_rows


# ------------------------------------------------------------------ tasks


def target_sums(block: MendBlock, T: Array, classes: Array, _shared: None) -> Sums:
    """By view: number of targets, their sums and squares, and products with the features."""

    def of_piece(_view: int, piece: _Piece) -> Sums:
        xp = array_namespace(piece.Phi)
        known, t = piece.known, piece.centred_targets
        # In this order a third faster than its transpose.
        sides = xp.concat([known, t], axis=1).T @ piece.Phi
        return {
            "n_known": total(known, axis=None),
            "n_seen": len(piece.Phi),
            "targets": total(t),
            "squares": total(t * t, axis=None),
            "features": xp.astype(sides[0], xp.float64),
            "products": xp.astype(sides[1:].T, xp.float64),
        }

    return _sums_by_view(block, T, classes, of_piece)


def gram_sums(block: MendBlock, T: Array, classes: Array, views: Sequence[int]) -> Sums:
    """Gram matrices of the features of the rows that have a target, of some ``views``."""

    def of_piece(view: int, piece: _Piece) -> Sums:
        xp = array_namespace(piece.Phi)
        if view not in views:
            return {}
        known = piece.Phi * piece.known
        return {"gram": xp.astype(known.T @ known, xp.float64)}

    return _sums_by_view(block, T, classes, of_piece)


def error_sums(
    block: MendBlock, T: Array, classes: Array, shared: tuple[Sequence[Tried], Sequence[int]]
) -> Sums:
    """By view: squared leave-one-out errors with every ridge, (n_ridges,).

    ``shared`` are the regressions, and the steps from one row that is compared to the next.
    """
    tried, steps = shared

    def of_piece(view: int, piece: _Piece) -> Sums:
        return {"errors": piece.squared_errors(piece.gaps(tried[view]), tried[view])}

    return _sums_by_view(block, T, classes, of_piece, steps)


def score_rows(
    block: MendBlock, T: Array, classes: Array, chosen: Sequence[Tried]
) -> tuple[Array, Sums]:
    """Leave-one-out predictions (n_rows, n_views, n_classes), zero where a view is missing.

    Beside them, by view, the sum of their squared errors.
    """
    xp = array_namespace(T)
    kind = block.views[0].leverages.dtype
    Z = xp.zeros((*block.observed.shape, T.shape[1]), dtype=kind, device=T.device)

    def fill(job: tuple[int, slice]) -> tuple[int, Array]:
        v, part = job
        piece = _Piece.cut(block.views[v], part, T, classes)
        gaps = piece.gaps(chosen[v])
        Z[block.views[v].rows[part], v] = piece.targets + gaps[:, 0] / piece.slack(chosen[v])
        return v, piece.squared_errors(gaps, chosen[v], NEARLY_ALL)[0]

    sums = {f"errors {v}": 0.0 * total(T[:0], axis=None) for v in range(len(chosen))}
    # In the order of the rows, whatever the threads.
    for v, error in for_each(fill, _jobs(block), xp):
        sums[f"errors {v}"] = sums[f"errors {v}"] + error
    return Z, sums


@dataclass(frozen=True, eq=False)
class _Piece:
    """Some rows of a view: features, targets, and 1 where the target is known, (n, 1), else 0."""

    Phi: Array
    targets: Array
    known: Array
    leverages: Array

    @classmethod
    def cut(cls, view: ViewRows, part: slice, T: Array, classes: Array) -> _Piece:
        xp = array_namespace(view.Phi)
        here = view.rows[part]
        # Those of features that wait in half precision.
        kind = view.leverages.dtype
        known = xp.astype((classes[here] >= 0)[:, None], kind)
        targets = xp.astype(T[here], kind, copy=False)
        Phi = xp.astype(view.Phi[part], kind, copy=False)
        return cls(Phi, targets, known, view.leverages[part])

    @property
    def centred_targets(self) -> Array:
        """Less what they would be if all classes were alike; zero where none is known."""
        return (self.targets - 1 / self.targets.shape[1]) * self.known

    def gaps(self, tried: Tried) -> Array:
        """``f - t`` with every ridge, (n, n_ridges, n_classes)."""
        xp = array_namespace(self.Phi)
        n_features, n_ridges, n_classes = tried.coefficients.shape
        flat = tried.coefficients.reshape(n_features, n_ridges * n_classes)
        fitted = self.Phi @ beside(flat, self.Phi)
        gaps = xp.reshape(fitted, (self.Phi.shape[0], n_ridges, n_classes))
        gaps += beside(tried.intercepts, self.Phi)
        gaps -= self.targets[:, None]
        return gaps

    def squared_errors(self, gaps: Array, tried: Tried, most: float = MOST_LEVERAGE) -> Array:
        """Sums (n_ridges,) over rows with a target of ``((f - t) / (1 - h))^2``."""
        xp = array_namespace(gaps)
        factors = self.known / self.slack(tried, most)
        return total(xp.sum(gaps * gaps, axis=2) * factors**2)

    def slack(self, tried: Tried, most: float = MOST_LEVERAGE) -> Array:
        """``1 - h`` with every ridge, (n, n_ridges), ``h`` cut at ``most``; 1 without a target."""
        xp = array_namespace(self.Phi)
        # A row without a target was left out anyway: its prediction needs no correction.
        return 1 - xp.clip(self._leverages(tried), None, most) * self.known

    def _leverages(self, tried: Tried) -> Array:
        if tried.axes is None:
            return self.leverages[:, tried.chosen]
        turned = self.Phi - beside(tried.axes.centre, self.Phi)
        turned = turned @ beside(tried.axes.rotation, self.Phi)
        return turned**2 @ beside(tried.axes.shrunk, self.Phi) + 1 / tried.axes.n_rows


def _sums_by_view(
    block: MendBlock,
    T: Array,
    classes: Array,
    of_piece: Callable[[int, _Piece], Sums],
    steps: Sequence[int] | None = None,
) -> Sums:
    """Sums over the rows of every view, with the number of the view after their names.

    Of a view every row is looked at, or one in so many ``steps``.
    """

    def work(job: tuple[int, slice]) -> Sums:
        v, part = job
        sums = of_piece(v, _Piece.cut(block.views[v], part, T, classes))
        return {f"{name} {v}": number for name, number in sums.items()}

    together: dict[str, Array] = {}
    # In the order of the rows, whatever the threads.
    for sums in for_each(work, _jobs(block, steps), array_namespace(T)):
        for name, number in sums.items():
            together[name] = together[name] + number if name in together else number
    return together


def _jobs(block: MendBlock, steps: Sequence[int] | None = None) -> list[tuple[int, slice]]:
    size = PIECE if is_numpy(array_namespace(block.observed)) else LARGE_PIECE
    return [
        (v, slice(part.start, part.stop, step))
        for v, (view, step) in enumerate(
            zip(block.views, steps or [1] * len(block.views), strict=True)
        )
        for part in row_blocks(view.Phi.shape[0], view.Phi.shape[1], step * size)
    ]


# ------------------------------------------------------------------ between the passes


@dataclass(frozen=True, eq=False)
class _Targets:
    """What the first pass says of a view.

    The targets, less one over their number of classes, have the ``mean`` (n_classes,); ``scatter``
    is the sum of their squared distances from it. ``features`` (n_features,) is the mean of the
    features of ``n_known`` rows, ``products`` (n_features, n_classes) that of the targets, less
    their mean, with these.
    """

    n_known: float
    is_whole: bool
    mean: np.ndarray
    scatter: float
    features: np.ndarray
    products: np.ndarray

    @classmethod
    def of_view(cls, v: int, sums: dict[str, np.ndarray]) -> _Targets:
        n_known = max(float(sums[f"n_known {v}"]), 1.0)
        mean = sums[f"targets {v}"] / n_known
        features, squares = sums[f"features {v}"], float(sums[f"squares {v}"])
        scatter = squares - n_known * float(mean @ mean)
        return cls(
            n_known,
            bool(sums[f"n_known {v}"] == sums[f"n_seen {v}"]),
            mean,
            # Targets, of float32, that differ by rounding alone have no variance.
            scatter if scatter > LEAST_SCATTER * squares else 0.0,
            features / n_known,
            sums[f"products {v}"] - np.outer(features, mean),
        )


def _solved(
    targets: _Targets, spectrum: np.ndarray, gram: np.ndarray | None, ridges: Sequence[float]
) -> Tried:
    """Coefficients for every ridge, on features with the diagonal Gram ``spectrum``.

    That is of all rows. Over some of them the features are not orthogonal, so that their ``gram``
    is needed, and axes of their own.
    """
    mean = targets.mean + 1 / len(targets.mean)
    if gram is None:
        shrunk = _shrunk(spectrum, targets.n_known, ridges)
        coefficients = shrunk[:, :, None] * targets.products[:, None]
        return Tried(coefficients, np.tile(mean, (len(ridges), 1)), slice(None), None)
    centre = targets.features
    gram = gram - targets.n_known * np.outer(centre, centre)
    spectrum, rotation = scipy.linalg.eigh(gram, driver="evd")
    shrunk = _shrunk(np.maximum(spectrum, 0), targets.n_known, ridges)
    turned = shrunk[:, :, None] * (rotation.T @ targets.products)[:, None]
    coefficients = np.tensordot(rotation, turned, axes=1)
    intercepts = mean - np.tensordot(centre, coefficients, axes=1)
    return Tried(
        coefficients, intercepts, slice(None), Axes(centre, rotation, shrunk, targets.n_known)
    )


def _shrunk(spectrum: np.ndarray, n_rows: float, ridges: Sequence[float]) -> np.ndarray:
    """Inverses of the diagonal Gram matrix plus ridge, (n_features, n_ridges)."""
    return np.asarray(1 / (spectrum[:, None] + n_rows * np.asarray(ridges)))
