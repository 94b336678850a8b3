"""Anchor alignment by orthogonal Procrustes."""

from __future__ import annotations

from viewmend.backend import dispatch
from viewmend.backend.namespace import Array, array_namespace

__all__ = ["align_anchors"]


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
    xp = array_namespace(Z, P)
    return xp.stack([dispatch.polar_factor(Z[v, ...].T @ P) for v in range(Z.shape[0])])
