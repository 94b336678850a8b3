"""Linear systems with one right-hand side per class: conjugate gradients, harmonic labels."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.sparse import issparse, sparray

from viewmend.backend.namespace import Array, array_namespace


def block_cg(A: sparray, B: np.ndarray, tol: float = 1e-6, max_iter: int = 1000) -> np.ndarray:
    """Solution of ``A X = B`` by conjugate gradients, all columns in one pass over ``A``.

    The sparse ``A`` (n, n) is symmetric and positive definite; its diagonal preconditions. ``tol``
    is the residual of a column relative to its right-hand side in ``B`` (n, n_columns).
    """
    # X solution, R residual, D direction, S preconditioned residual; a column each per class.
    inverse_diagonal = 1 / A.diagonal()[:, None]
    X = np.zeros_like(B)
    R = B.copy()
    D = S = inverse_diagonal * R
    energy = np.einsum("ij,ij->j", R, S)
    enough = tol**2 * np.einsum("ij,ij->j", B, B)
    for _ in range(max_iter):
        if np.all(np.einsum("ij,ij->j", R, R) <= enough):
            break
        A_D = A @ D
        # A column that is solved has no direction left: a zero step, not 0 / 0.
        step = column_ratio(energy, np.einsum("ij,ij->j", D, A_D))
        X += step * D
        R -= step * A_D
        S = inverse_diagonal * R
        energy_old, energy = energy, np.einsum("ij,ij->j", R, S)
        D = S + column_ratio(energy, energy_old) * D
    return X


def harmonic_labels(
    L: np.ndarray | sparray, Y: np.ndarray, labelled: np.ndarray, ridge: float = 1e-10
) -> np.ndarray:
    """Minimise ``tr(F^T L F)`` with ``F = Y`` on labelled rows: ``L_uu F_u = -L_ul Y_l``.

    ``L`` (n_samples, n_samples), dense or sparse, is symmetric and positive semi-definite, such as
    a graph Laplacian; ``Y`` and ``F`` are (n_samples, n_classes). The ridge is added to the
    diagonal of ``L_uu``, which is singular where a component has no label.
    """
    F = np.where(labelled[:, None], Y, 0.0)
    known, unknown = np.flatnonzero(labelled), np.flatnonzero(~labelled)
    right = -(L[unknown][:, known] @ Y[known])
    L_uu = L[unknown][:, unknown]
    if issparse(L_uu):
        F[unknown] = block_cg(L_uu + ridge * scipy.sparse.eye_array(len(unknown)), right)
    else:
        L_uu[np.diag_indices(len(unknown))] += ridge
        factor = scipy.linalg.cho_factor(L_uu, overwrite_a=True, check_finite=False)
        F[unknown] = scipy.linalg.cho_solve(factor, right, check_finite=False)
    return F


def column_ratio(a: Array, b: Array) -> Array:
    """``a / b`` where ``b`` is positive, else zero: a column that is solved moves no further."""
    xp = array_namespace(a, b)
    positive = b > 0
    return xp.where(positive, a / xp.where(positive, b, xp.ones_like(b)), xp.zeros_like(a))
