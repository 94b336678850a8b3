"""Graphs between samples that are made of anchors, ``I - S S^T``, and are never formed."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from scipy.sparse import csr_array, diags_array

from viewmend.core.agfti.bipartite import anchor_graph
from viewmend.core.agfti.propagation import anchor_scale

# Added to systems that are singular where no label reaches an anchor.
RIDGE = 1e-10


def scaled_anchor_graph(X_v: np.ndarray, anchors_v: np.ndarray, k: int) -> csr_array:
    """``S = Z Lambda^{-1/2}`` (n_samples, n_anchors), so that ``S S^T`` is doubly stochastic.

    ``Z`` joins every row of ``X_v`` to the ``k`` nearest rows of ``anchors_v``.
    """
    Z_v = anchor_graph(X_v, anchors_v, k)
    return csr_array(Z_v * anchor_scale(Z_v))


def smoothness(S_v: csr_array, F: np.ndarray) -> float:
    """``tr(F^T (I - S S^T) F)``."""
    return max(float(np.sum(F**2) - np.sum((S_v.T @ F) ** 2)), 0.0)


def solve_anchored(diagonal: np.ndarray, S: csr_array, R: np.ndarray) -> np.ndarray:
    """Solution of ``(D - S S^T) X = R`` by Woodbury's identity, as large as the anchors::

        X = D^{-1} R + D^{-1} S (I - S^T D^{-1} S)^{-1} S^T D^{-1} R

    ``D = diag(diagonal)`` is positive, ``D - S S^T`` positive semi-definite, ``S`` (n_samples,
    n_anchors), ``R`` and ``X`` (n_samples, n_columns).
    """
    inverse = 1 / diagonal
    start = inverse[:, None] * R
    system = -(S.T @ (diags_array(inverse) @ S)).toarray()
    system[np.diag_indices_from(system)] += 1 + RIDGE
    factor = scipy.linalg.cho_factor(system, overwrite_a=True, check_finite=False)
    return start + inverse[:, None] * (S @ scipy.linalg.cho_solve(factor, S.T @ start))
