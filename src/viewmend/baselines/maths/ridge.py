"""Ridge regression on the cheaper side, and what it leaves unexplained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg


def ridge_coefficients(X: np.ndarray, F: np.ndarray, ridge: float) -> np.ndarray:
    """Argmin over ``W`` of ``|X W - F|^2 + ridge |W|^2``, by the smaller Gram matrix.

    ``X`` (n_samples, n_features), ``F`` (n_samples, n_classes), ``W`` (n_features, n_classes).
    """
    wide = X.shape[1] > X.shape[0]
    gram = X @ X.T if wide else X.T @ X
    gram[np.diag_indices_from(gram)] += ridge
    factor = scipy.linalg.cho_factor(gram, overwrite_a=True, check_finite=False)
    if wide:
        return np.asarray(X.T @ scipy.linalg.cho_solve(factor, F, check_finite=False))
    return np.asarray(scipy.linalg.cho_solve(factor, X.T @ F, check_finite=False))


@dataclass(frozen=True, eq=False)
class RegressionResidual:
    """``R`` with ``tr(F^T R F) = min over B, b of |X B + 1 b^T - F|^2 + ridge |B|^2``.

    With ``X_c`` the centred features, ``R = I - 11^T/n - X_c (X_c^T X_c + ridge I)^{-1} X_c^T``:
    the identity less ``basis diag(shares) basis^T``, and applied as such. The basis (n_samples,
    rank + 1) are the left singular vectors of ``X_c``, whose singular values are (rank,), and the
    constant vector that stands for the intercept.
    """

    X: np.ndarray
    ridge: float
    singular_values: np.ndarray
    basis: np.ndarray

    @property
    def shares(self) -> np.ndarray:
        """Part of each basis vector that the regression explains, (rank + 1,)."""
        squares = self.singular_values**2
        return np.append(squares / (squares + self.ridge), 1.0)

    def __matmul__(self, F: np.ndarray) -> np.ndarray:
        return np.asarray(F - self.basis @ (self.shares[:, None] * (self.basis.T @ F)))

    def coefficients(self, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The minimisers ``B`` (n_features, n_classes) and ``b`` (n_classes,) for given ``F``."""
        vectors, scale = self.basis[:, :-1], self.singular_values**2 + self.ridge
        centre = self.X.mean(axis=0)
        dual = vectors @ ((vectors.T @ F) / scale[:, None])
        B = self.X.T @ dual - np.outer(centre, dual.sum(axis=0))
        return B, F.mean(axis=0) - centre @ B


def regression_residual(X: np.ndarray, ridge: float) -> RegressionResidual:
    """`RegressionResidual` of features (n_samples, n_features) and a positive ridge."""
    vectors, values, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    significant = values > np.finfo(float).eps * max(X.shape) * values[0]
    intercept = np.full((len(X), 1), len(X) ** -0.5)
    basis = np.hstack([vectors[:, significant], intercept])
    return RegressionResidual(X, ridge, values[significant], basis)
