"""Scores of Mend for labelled samples, each as if it had no label, on the fitted graph.

Soft labels are linear in the given labels. So leaving one out is a correction and needs no further
fit.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from viewmend.core.common.held_out import unit_columns
from viewmend.core.graphs.spreading import spread_labels

# Relative residual of the conjugate gradients for the influence of a label on its own sample. That
# entry is by far the largest of its column and has its digits long before the others.
TOLERANCE = 1e-2


def spread_without_own(
    W: csr_array, Y: np.ndarray, F: np.ndarray, held_out: np.ndarray, spreading: float
) -> np.ndarray:
    """Columns of ``F`` scaled to sum one, for labelled samples, each as if it had no label.

    ``F = K Y`` with a symmetric ``K``. So the label of sample ``i`` adds ``K_ii`` to its own entry
    of ``F``, and ``sum_j K_ji = (K 1)_i`` to the column sum of its class.

    ``F`` are the soft labels that `spread_labels` makes of ``W``, ``Y`` and ``spreading``;
    ``held_out`` (n_held_out,) are the labelled samples. Returns (n_held_out, n_classes).
    """
    y = Y[held_out]
    columns = spread_labels(W, unit_columns(held_out, len(Y)), spreading, TOLERANCE)
    diagonal = columns[held_out, np.arange(len(held_out))]
    # F is known to its tolerance, K_ii to a lower one: their difference may fall below zero.
    without_label = np.maximum(F[held_out] - diagonal[:, None] * y, 0)
    # By symmetry all column sums of K are one solution, with ones on the right-hand side.
    column_sums = spread_labels(W, np.ones((len(Y), 1)), spreading)[held_out]
    mass = F.sum(axis=0) - column_sums * y
    # A class whose only label is left out has no mass, and no score.
    return np.divide(without_label, mass, out=np.zeros_like(without_label), where=mass > 0)
