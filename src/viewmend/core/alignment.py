"""Anchor alignment by orthogonal Procrustes."""

from __future__ import annotations

from viewmend.backend import dispatch
from viewmend.backend.namespace import Array, array_namespace, is_numpy
from viewmend.backend.threads import available_threads, parallel_map

__all__ = ["align_anchors"]

# Anchors below which starting threads takes longer than the work.
FEW_ANCHORS = 128


def align_anchors(Z: Array, P: Array) -> Array:
    """Per view, argmax ``tr(T_v^T Z_v^T P)`` subject to ``T_v^T T_v = I`` (Eq. update_T).

    Parameters
    ----------
    Z : array (n_views, n_samples, n_anchors)
    P : array (n_samples, n_anchors)

    Returns
    -------
    T : array (n_views, n_anchors, n_anchors)
        ``T_v = U V^T`` of the singular value decomposition ``Z_v^T P = U S V^T``.
    """

    def align(Z_v: Array) -> Array:
        return dispatch.polar_factor(Z_v.T @ P)

    xp = array_namespace(Z, P)
    views = [Z[v, ...] for v in range(Z.shape[0])]
    threads = is_numpy(xp) and available_threads() > 1 and P.shape[1] >= FEW_ANCHORS
    # A decomposition gains little from threads of its own; views side by side gain all.
    return xp.stack(parallel_map(align, views) if threads else [align(Z_v) for Z_v in views])
