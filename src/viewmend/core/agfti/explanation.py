"""Which labels, and which views, a soft label of AGF-TI comes from."""

from __future__ import annotations

import numpy as np

from viewmend.core.agfti.propagation import propagate_labels
from viewmend.core.common.class_shares import normalise_rows
from viewmend.core.common.held_out import unit_columns


def propagation_influence(
    P: np.ndarray,
    B_samples: np.ndarray,
    B_anchors: np.ndarray,
    rows: np.ndarray,
    labelled: np.ndarray,
) -> np.ndarray:
    """Weights (n_rows, n_labelled) of the labels: ``F[rows] = influence @ Y[labelled]``.

    The system of `propagate_labels` is symmetric but for the factor ``B`` of its right side, which
    is positive. So the influence of label ``l`` on sample ``i`` is that of a label of ``i`` on
    ``l``, times ``B_l / B_i``: one column to solve for every sample that is explained.
    """
    # Transposed and rescaled: solved for the few explained rows, not for the many labels.
    K, _ = propagate_labels(P, unit_columns(rows, len(P)), B_samples, B_anchors)
    return np.asarray(K[labelled].T * (B_samples[labelled] / B_samples[rows][:, None]))


def fusion_shares(P: np.ndarray, A: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Share of every view in rows of the fused graph: ``alpha_v^2 <p_i, a_vi>``, scaled.

    Takes ``P`` (n_rows, n_anchors) and the aligned graphs ``A`` (n_views, n_rows, n_anchors).
    Returns (n_rows, n_views).
    """
    return normalise_rows(alpha**2 * np.einsum("ij,vij->iv", P, A))
