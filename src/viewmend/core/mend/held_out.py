"""What Mend says of a labelled sample once its own label is left out, over the graph it found.

Soft labels are linear in the given ones, so that leaving one out is a correction, not another fit.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from viewmend.core.common.held_out import unit_columns
from viewmend.core.graphs.spreading import spread_labels

__all__ = ["spread_without_own"]

# Relative residual of the influence of a label on its own sample, which is known long before that
# on all others.
TOLERANCE = 1e-2


def spread_without_own(
    W: csr_array, Y: np.ndarray, F: np.ndarray, held_out: np.ndarray, spreading: float
) -> np.ndarray:
    """Columns of ``F`` scaled to sum one, for labelled samples, each as if it had no label.

    ``F = K Y`` with a symmetric ``K``, so that the label of sample ``i`` gives it ``K_ii``, and its
    class ``(K 1)_i`` in all.

    Parameters
    ----------
    W : sparse array (n_samples, n_samples)
    Y, F : array (n_samples, n_classes)
        Given labels, and those of `spread_labels`.
    held_out : array (n_held_out,) of int
        Labelled samples.
    spreading : float

    Returns
    -------
    array (n_held_out, n_classes)
    """
    K, y = spread_labels(W, unit_columns(held_out, len(Y)), spreading, TOLERANCE), Y[held_out]
    own = K[held_out, np.arange(len(held_out))]
    left = np.maximum(F[held_out] - own[:, None] * y, 0)
    sums = spread_labels(W, np.ones((len(Y), 1)), spreading)[held_out]
    mass = F.sum(axis=0) - sums * y
    return np.divide(left, mass, out=np.zeros_like(left), where=mass > 0)
