"""Label propagation on the bipartite graph of samples and fused anchors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import block_array, csr_array

from viewmend.backend import dispatch
from viewmend.backend.namespace import Array, array_namespace
from viewmend.core.graphs.spreading import joined_to_label

# A damping below this many roundings of one is lost when one is added to it, and without damping
# the labels of a part of the graph that has none are not determined.
ROUNDINGS = 64


@dataclass(frozen=True, eq=False)
class LabelSums:
    """Sums over the samples that determine the anchors' labels; those of blocks of rows add up.

    ``degrees`` (n_anchors,) are ``P^T 1``, ``gram`` (n_anchors, n_anchors) is
    ``P^T (I + B_n)^{-1} P``, ``pulled`` (n_anchors, n_classes) is ``P^T (I + B_n)^{-1} B_n Y``.
    """

    degrees: Array
    gram: Array
    pulled: Array


def anchor_scale(P: Array) -> Array:
    """``Lambda^{-1/2}`` as a vector (n_anchors,): anchor degrees to the power -1/2."""
    return inverse_roots(dispatch.column_sums(P))


def inverse_roots(degrees: Array) -> Array:
    """Degrees to the power -1/2.

    An anchor without any sample is isolated; it gets zero, as in the normalised Laplacian.
    """
    xp = array_namespace(degrees)
    used = degrees > 0
    return xp.where(
        used, 1 / xp.sqrt(xp.where(used, degrees, xp.ones_like(degrees))), 0.0 * degrees
    )


def propagate_labels(P: Array, Y: Array, B_samples: Array, B_anchors: Array) -> tuple[Array, Array]:
    """Argmax of ``R(F, Q)``: the normal equations of label propagation (Eq. update_F_Q)::

        [ I + B_n          -P Lambda^{-1/2} ] [F]   [B_n Y]
        [ -Lambda^{-1/2} P^T      I + B_m   ] [Q] = [  0  ]

    solved by a Cholesky factorisation of the Schur complement (m, m) of the sample block.

    ``P`` is (n_samples, n_anchors). ``Y`` (n_samples, n_classes) has one-hot rows of labelled
    samples, zero rows of the others. ``B`` is given by its diagonals (n_samples,), (n_anchors,).
    Returns ``F`` (n_samples, n_classes) and ``Q`` (n_anchors, n_classes).
    """
    sums = label_sums(P, Y, B_samples)
    Q, scaled_Q = anchor_labels(sums, B_anchors)
    return sample_labels(P, Y, B_samples, scaled_Q), Q


def label_sums(P: Array, Y: Array, B_samples: Array) -> LabelSums:
    """Sums over samples that `anchor_labels` needs; arguments as in `propagate_labels`."""
    # The sample block I + B_n of the system is diagonal, and inverted entry by entry.
    inverse_1 = 1 / (1 + B_samples)
    return LabelSums(
        degrees=dispatch.column_sums(P),
        gram=dispatch.gram(P, inverse_1),
        pulled=dispatch.cross_products(P, _pull(Y, B_samples)),
    )


def anchor_labels(sums: LabelSums, B_anchors: Array) -> tuple[Array, Array]:
    """``Q`` (n_anchors, n_classes) of `propagate_labels`, and ``Lambda^{-1/2} Q``."""
    xp = array_namespace(sums.gram)
    scale = inverse_roots(sums.degrees)
    # I + B_m - S^T (I + B_n)^{-1} S with S = P Lambda^{-1/2}: positive definite for B > 0.
    schur = xp.eye(scale.shape[0], dtype=scale.dtype, device=scale.device) * (1 + B_anchors)
    schur = schur - scale[:, None] * sums.gram * scale[None, :]
    Q = dispatch.solve_spd(schur, scale[:, None] * sums.pulled)
    return Q, scale[:, None] * Q


def sample_labels(P: Array, Y: Array, B_samples: Array, scaled_Q: Array) -> Array:
    """``F`` (n_samples, n_classes) of `propagate_labels` from ``Lambda^{-1/2} Q``, row by row."""
    inverse_1 = 1 / (1 + B_samples)
    return _pull(Y, B_samples) + inverse_1[:, None] * dispatch.multiply(P, scaled_Q)


def _pull(Y: Array, B_samples: Array) -> Array:
    return (1 / (1 + B_samples) * B_samples)[:, None] * Y


def soft_label_distances(F: Array, Q: Array, P: Array) -> Array:
    """``H_ij = |F_i / sqrt(d_i) - Q_j / sqrt(d_{n+j})|^2`` (n_samples, n_anchors).

    ``d`` are the degrees of samples and anchors in the bipartite graph of ``P``; those of samples
    are one, since rows of ``P`` lie on the simplex. A distance of zero may come out below it by
    its rounding.
    """
    return label_distances(F, Q * anchor_scale(P)[:, None])


def label_distances(rows: Array, columns: Array) -> Array:
    """Squared distances between ``rows = F`` and ``columns = Lambda^{-1/2} Q``."""
    xp = array_namespace(rows)
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


def damping_diagonals(
    label_strength: float, damping: Any, labelled: np.ndarray, graphs: Array
) -> tuple[Array, Array]:
    """Diagonals of ``B`` for the samples and for the anchors, as arrays like the graphs.

    The strength is that of labelled samples, the damping that of unlabelled ones and of anchors,
    one number or two, at least `ROUNDINGS` of the number type. Returns (n_samples,) and
    (n_anchors,).
    """
    least = ROUNDINGS * np.finfo(str(graphs.dtype).rpartition(".")[2]).eps
    of_samples, of_anchors = np.maximum(damping, least) + np.zeros(2)
    B_samples = np.where(labelled, label_strength, of_samples)
    B_anchors = np.full(graphs.shape[2], of_anchors)
    xp, like = array_namespace(graphs), {"dtype": graphs.dtype, "device": graphs.device}
    return xp.asarray(B_samples, **like), xp.asarray(B_anchors, **like)
