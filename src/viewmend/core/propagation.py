"""Label propagation on the bipartite graph of samples and fused anchors."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import block_array, csr_array

from viewmend.backend import dispatch
from viewmend.backend.namespace import Array, array_namespace
from viewmend.core.spreading import joined_to_label

__all__ = ["anchor_scale", "propagate_labels", "reachable_samples", "soft_label_distances"]


def anchor_scale(P: Array) -> Array:
    """``Lambda^{-1/2}`` as a vector (n_anchors,): anchor degrees to the power -1/2.

    An anchor without any sample is isolated; it gets zero, as in the normalised Laplacian.
    """
    xp = array_namespace(P)
    degrees = xp.sum(P, axis=0)
    used = degrees > 0
    return xp.where(
        used, 1 / xp.sqrt(xp.where(used, degrees, xp.ones_like(degrees))), 0.0 * degrees
    )


def propagate_labels(P: Array, Y: Array, B_samples: Array, B_anchors: Array) -> tuple[Array, Array]:
    """Argmax of ``R(F, Q)``: the normal equations of label propagation (Eq. update_F_Q)::

        [ I + B_n          -P Lambda^{-1/2} ] [F]   [B_n Y]
        [ -Lambda^{-1/2} P^T      I + B_m   ] [Q] = [  0  ]

    solved by a Cholesky factorisation of the Schur complement (m, m) of the sample block.

    Parameters
    ----------
    P : array (n_samples, n_anchors)
    Y : array (n_samples, n_classes)
        One-hot rows of labelled samples, zero rows of the others.
    B_samples, B_anchors : array (n_samples,), array (n_anchors,)
        Diagonals of the regularisation.

    Returns
    -------
    F : array (n_samples, n_classes)
    Q : array (n_anchors, n_classes)
    """
    xp = array_namespace(P, Y)
    inverse_1 = 1 / (1 + B_samples)
    pull = (inverse_1 * B_samples)[:, None] * Y
    scale = anchor_scale(P)
    schur = xp.eye(P.shape[1], dtype=P.dtype, device=P.device) * (1 + B_anchors)
    schur = schur - scale[:, None] * dispatch.gram(P, inverse_1) * scale[None, :]
    Q = dispatch.solve_spd(schur, scale[:, None] * dispatch.cross_products(P, pull))
    return pull + inverse_1[:, None] * dispatch.multiply(P, scale[:, None] * Q), Q


def soft_label_distances(F: Array, Q: Array, P: Array) -> Array:
    """``H_ij = |F_i / sqrt(d_i) - Q_j / sqrt(d_{n+j})|^2`` (n_samples, n_anchors).

    ``d`` are the degrees of samples and anchors in the bipartite graph of ``P``. A distance of
    zero may come out below it by its rounding.
    """
    xp = array_namespace(P)
    rows, columns = F / xp.sqrt(xp.sum(P, axis=1))[:, None], Q * anchor_scale(P)[:, None]
    # |f|^2 - 2 f q + |q|^2 as one product of (c + 2) columns, which needs no passes over H.
    left = xp.concat([-2 * rows, _squares(rows, xp), xp.ones_like(rows[:, :1])], axis=1)
    right = xp.concat([columns, xp.ones_like(columns[:, :1]), _squares(columns, xp)], axis=1)
    return dispatch.multiply(left, right.T)


def _squares(rows: Array, xp: Any) -> Array:
    return xp.sum(rows * rows, axis=1, keepdims=True)


def reachable_samples(P: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    """Samples (n_samples,) of bool joined by a path of the graph ``P`` to some labelled sample."""
    graph = csr_array(P)
    nodes = block_array([[None, graph], [graph.T, None]], format="csr")
    n_samples, n_anchors = P.shape
    return joined_to_label(nodes, np.r_[labelled, np.zeros(n_anchors, dtype=bool)])[:n_samples]
