"""What AGF-TI says of a labelled sample once its own label is left out, over the graph it found.

Soft labels are linear in the given ones, so that leaving one out is a correction of rank one, not
another fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from viewmend.core.agfti.fusion import Game, best_response
from viewmend.core.agfti.propagation import LabelSums, anchor_labels, inverse_roots, label_sums
from viewmend.core.common.class_shares import normalise_rows

__all__ = ["HeldOut", "labels_without_own", "propagated_without_own", "rows_without_labels"]


def rows_without_labels(
    A: np.ndarray, observed: np.ndarray, alpha: np.ndarray, lam: float, beta: float
) -> np.ndarray:
    """Rows of the fused graph as they would be for samples of which nothing but views is known.

    A labelled sample draws its row to the anchors of its class, and views that it misses follow;
    without its label it would have been fused from the views it has, as new samples are.

    Parameters
    ----------
    A : array (n_views, n_rows, n_anchors)
        Aligned graphs.
    observed : array (n_rows, n_views) of bool
    alpha : array (n_views,)
    lam, beta : float

    Returns
    -------
    array (n_rows, n_anchors)
    """
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
    label of sample ``i`` takes its pull from the anchors' labels and lets the sample go: a change
    of rank one, ``C - d s_i s_i^T``, of which Sherman and Morrison know the inverse.

    Parameters
    ----------
    P : array (n_samples, n_anchors)
    Y : array (n_samples, n_classes)
    B : array (n_samples,), array (n_anchors,)
        As in `propagate_labels`.
    held_out : array (n_held_out,) of int
        Labelled samples.
    rows : array (n_held_out, n_anchors)
        Where they read the anchors' labels: their own of ``P``, or `rows_without_labels`.
    damping : float
        ``B`` of a sample without a label.

    Returns
    -------
    F : array (n_held_out, n_classes)
    growth : array (n_held_out, n_classes)
        Mass of every class on the unlabelled samples with the label, over that without it.
    """
    free = P[~Y.any(axis=1)].sum(axis=0)
    held = HeldOut(P[held_out], Y[held_out], B[0][held_out], rows)
    return labels_without_own(label_sums(P, Y, B[0]), free, B[1], held, damping)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Samples that are held out: rows of ``P``, ``Y`` and ``B``, and where they read labels."""

    P: np.ndarray
    Y: np.ndarray
    B: np.ndarray
    rows: np.ndarray


def labels_without_own(
    sums: LabelSums, free: np.ndarray, B_anchors: np.ndarray, held_out: HeldOut, damping: float
) -> tuple[np.ndarray, np.ndarray]:
    """`propagated_without_own` from sums over all samples, ``free`` over the unlabelled ones."""
    y, held, rows = held_out.Y, held_out.B, held_out.rows
    scale = inverse_roots(sums.degrees)[:, None]
    Q = scale * anchor_labels(sums, B_anchors)
    G = scale * anchor_labels(replace(sums, pulled=held_out.P.T), B_anchors)
    pull, let_go = held / (1 + held), 1 / (1 + damping) - 1 / (1 + held)
    leverage = np.einsum("ij,ji->i", held_out.P, G)
    left = held_out.P @ Q - (pull * leverage)[:, None] * y
    left /= (1 - let_go * leverage)[:, None]
    # What leaving out the label adds to the anchors' labels, along the column of the sample in G.
    change = let_go[:, None] * left - pull[:, None] * y
    F = rows @ Q + np.einsum("ij,ji->i", rows, G)[:, None] * change
    mass = free @ Q
    mass_left = mass + (free @ G)[:, None] * change
    return F, np.divide(mass, mass_left, out=np.ones_like(mass_left), where=mass_left > 0)
