"""Ridge regression that predicts every sample as if its own target had been left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from viewmend.core.mend.kernel_features import KernelFeatures, rotated_axes

# Ridges tried, per row and in units of the kernel, which is at most one.
RIDGES = (1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
# Leverages are cut here: at 1 a sample decides its own fit alone, and the formula divides by zero.
MOST_LEVERAGE = 0.999
# A view that explains nothing keeps a little weight, because some samples have no other view.
LEAST_R2 = 1e-3


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Ridge regression of targets on the features of a view.

    ``scores`` (n_rows, n_classes) are leave-one-out predictions, and ``r2`` is the share of the
    variance of the targets that they explain, at least `LEAST_R2`. ``coefficients`` (n_features,
    n_classes) and ``intercept`` (n_classes,) are of the fit to all rows, for new samples.
    """

    scores: np.ndarray
    r2: float
    ridge: float
    coefficients: np.ndarray
    intercept: np.ndarray

    @property
    def weight(self) -> float:
        """Explained over unexplained variance, the latter at least 5 %."""
        return self.r2 / (1.05 - self.r2)

    def predict(self, Phi: np.ndarray) -> np.ndarray:
        """Scores (n_new, n_classes) of new rows with features ``Phi``."""
        return np.asarray(Phi @ self.coefficients + self.intercept)


def leave_one_out_ridge(
    features: KernelFeatures,
    T: np.ndarray,
    ridges: Sequence[float] = RIDGES,
    *,
    known: np.ndarray | None = None,
) -> LeaveOneOut:
    """Leave-one-out predictions in closed form, with the ridge that makes their error least.

    With fit ``f``, leverages ``h_i = phi_i^T (Phi^T Phi + r I)^{-1} phi_i + 1/n`` and centred
    targets, leaving out sample ``i`` turns its prediction into ``t_i - (t_i - f_i) / (1 - h_i)``.
    On rotated features the inverse is that of a diagonal, so that every ridge costs one product.

    The targets are ``T`` (n_rows, n_classes); ``ridges`` are tried times the number of rows. All
    rows are ``known`` by default; others have no target and are predicted only.
    """
    if known is None or known.all():
        return _leave_one_out(features.Phi, features.spectrum, T, ridges)
    if not known.any():
        return _nothing_known(features.Phi, T.shape[1], ridges)
    # The features are orthogonal over all rows, not over some: rotate anew for the known ones.
    axes = rotated_axes(features.Phi[known])
    Phi = axes(features.Phi)
    fit = _leave_one_out(Phi[known], axes.spectrum, T[known], ridges)
    # A row without a target was left out anyway: its prediction needs no correction.
    scores = fit.predict(Phi)
    scores[known] = fit.scores
    # Back to the features as given, (phi - centre) rotation B + b = phi (rotation B) + b'.
    coefficients = axes.rotation @ fit.coefficients
    intercept = fit.intercept - axes.centre @ coefficients
    return LeaveOneOut(scores, fit.r2, fit.ridge, coefficients, intercept)


def _nothing_known(Phi: np.ndarray, n_classes: int, ridges: Sequence[float]) -> LeaveOneOut:
    """What a view says that has no target to learn from: every class alike."""
    scores = np.full((len(Phi), n_classes), 1 / n_classes)
    coefficients = np.zeros((Phi.shape[1], n_classes), dtype=Phi.dtype)
    return LeaveOneOut(scores, LEAST_R2, ridges[0], coefficients, np.full(n_classes, 1 / n_classes))


def _leave_one_out(
    Phi: np.ndarray, spectrum: np.ndarray, T: np.ndarray, ridges: Sequence[float]
) -> LeaveOneOut:
    """The fit on features whose columns sum to zero and have the diagonal Gram ``spectrum``."""
    n_rows = len(T)
    # Columns of Phi sum to zero, so the intercept is the mean of the targets whatever the ridge.
    mean = T.mean(axis=0)
    centred = (T - mean).astype(Phi.dtype)
    correlations = Phi.T @ centred
    # Inverses of the diagonal Gram matrix plus ridge, one column per ridge: (n_features, n_ridges).
    shrunk = 1 / (spectrum[:, None] + n_rows * np.asarray(ridges))
    # (n_rows, n_ridges); the 1/n is the leverage of the intercept.
    leverages = (Phi**2) @ shrunk.astype(Phi.dtype) + 1 / n_rows
    slack = 1 - np.minimum(leverages, MOST_LEVERAGE)
    coefficients = [(scale[:, None] * correlations).astype(Phi.dtype) for scale in shrunk.T]
    residuals = [
        (centred - Phi @ B) / gap[:, None] for B, gap in zip(coefficients, slack.T, strict=True)
    ]
    errors = [float(np.mean(residual**2, dtype=np.float64)) for residual in residuals]
    best = int(np.argmin(errors))
    variance = float(np.mean(centred**2, dtype=np.float64))
    r2 = max(1 - errors[best] / variance, LEAST_R2) if variance > 0 else LEAST_R2
    return LeaveOneOut(T - residuals[best], r2, ridges[best], coefficients[best], mean)
