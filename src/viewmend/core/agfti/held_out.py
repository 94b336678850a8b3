"""Soft labels of AGF-TI for labelled samples, each as if it had no label, on the fitted graph.

Soft labels are linear in the given labels. So leaving one out is a correction of rank one and needs
no further fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from viewmend.core.agfti.fusion import Game, best_response
from viewmend.core.agfti.propagation import LabelSums, anchor_labels, label_sums
from viewmend.core.common.class_shares import normalise_rows


def rows_without_labels(
    A: np.ndarray, observed: np.ndarray, alpha: np.ndarray, lam: float, beta: float
) -> np.ndarray:
    """Rows (n_rows, n_anchors) of the fused graph as they would be if these samples had no label.

    During the fit, the label of a sample pulls its row of ``P``, and with it the imputed rows of
    its missing views, towards the anchors of its class. Without the label, the row would be fused
    from the observed views alone, as that of a new sample is; so it is computed here, from the
    aligned graphs ``A`` (n_views, n_rows, n_anchors) and ``observed`` (n_rows, n_views) of bool.
    """
    # The weights of the observed views, scaled up to the sum over all, as in `fused_rows`.
    weights = normalise_rows(observed * alpha**2) * np.sum(alpha**2)
    fused = np.einsum("iv,vij->ij", weights, A)
    return np.asarray(best_response(Game(fused[None], np.zeros_like(fused), lam, beta), np.ones(1)))


def propagated_without_own(
    P: np.ndarray,
    Y: np.ndarray,
    B: tuple[np.ndarray, np.ndarray],
    held_out: np.ndarray,
    rows: np.ndarray,
    damping: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Soft labels of labelled samples, each as if it had no label, up to the scale of a row.

    With ``S = P Lambda^{-1/2}`` and ``C`` the Schur complement of the anchors, leaving out the
    label of sample ``i`` does two things: its pull vanishes from the right-hand side, and its
    entry of ``B`` falls from that of a label to ``damping``. The second changes ``C`` by a matrix
    of rank one, to ``C - d s_i s_i^T``, whose inverse the formula of Sherman and Morrison gives.

    ``P``, ``Y`` and both of ``B`` as in `propagate_labels`. The samples ``held_out`` (n_held_out,)
    read the anchors' labels by ``rows`` (n_held_out, n_anchors): their own of ``P``, or those of
    `rows_without_labels`.

    Returns
    -------
    F : array (n_held_out, n_classes)
    growth : array (n_held_out, n_classes)
        Mass of every class over the unlabelled samples with the label, divided by that without
        it. Class weights are fitted to the former; this factor carries them over.
    """
    free = P[~Y.any(axis=1)].sum(axis=0)
    held = HeldOut(P[held_out], Y[held_out], B[0][held_out], rows)
    return labels_without_own(label_sums(P, Y, B[0]), free, B[1], held, damping)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out samples: their rows of ``P``, ``Y`` and ``B``, and the rows that read labels."""

    P: np.ndarray
    Y: np.ndarray
    B: np.ndarray
    rows: np.ndarray


def labels_without_own(
    sums: LabelSums, free: np.ndarray, B_anchors: np.ndarray, held_out: HeldOut, damping: float
) -> tuple[np.ndarray, np.ndarray]:
    """`propagated_without_own` from sums over all samples, ``free`` over the unlabelled ones."""
    y, B, rows = held_out.Y, held_out.B, held_out.rows
    # Lambda^{-1/2} C^{-1} S^T applied to the labels' pull (m, c), and to every held-out sample
    # alone (m, n_held_out): column i of G is what the anchors would get from a unit pull of i.
    _, Q = anchor_labels(sums, B_anchors)
    _, G = anchor_labels(replace(sums, pulled=held_out.P.T), B_anchors)
    # The pull of the label B / (1 + B), and the d of the rank-one change of C.
    pull, d = B / (1 + B), 1 / (1 + damping) - 1 / (1 + B)
    # s_i^T C^{-1} s_i: how much of its own pull a sample reads back from the anchors.
    leverage = np.einsum("ij,ji->i", held_out.P, G)
    # What sample i reads from the anchors without its pull, then without its old entry of B.
    without_label = held_out.P @ Q - (pull * leverage)[:, None] * y
    without_label /= (1 - d * leverage)[:, None]
    # The new anchor labels are those of Q plus column i of G times this row, (n_held_out, c).
    change = d[:, None] * without_label - pull[:, None] * y
    F = rows @ Q + np.einsum("ij,ji->i", rows, G)[:, None] * change
    mass = free @ Q
    mass_left = mass + (free @ G)[:, None] * change
    return F, np.divide(mass, mass_left, out=np.ones_like(mass_left), where=mass_left > 0)
