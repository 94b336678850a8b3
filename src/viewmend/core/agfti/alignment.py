"""Anchor alignment by orthogonal Procrustes."""

from __future__ import annotations

from viewmend.backend import dispatch
from viewmend.backend.namespace import Array, array_namespace
from viewmend.core.agfti.fusion import agreements


def align_anchors(Z: Array, P: Array) -> tuple[Array, Array]:
    """Per view, argmax ``tr(T_v^T Z_v^T P)`` subject to ``T_v^T T_v = I`` (Eq. update_T).

    With the singular value decomposition ``Z_v^T P = U S V^T`` (m, m) it is ``T_v = U V^T``. The
    values of the maxima, ``<P, Z_v T_v>`` (n_views,), come second.
    """
    return align_products(dispatch.cross_products(Z, P))


def align_products(C: Array) -> tuple[Array, Array]:
    """`align_anchors` from the products ``Z_v^T P`` (n_views, n_anchors, n_anchors)."""
    T = dispatch.polar_factors(C)
    xp = array_namespace(C)
    # <P, Z_v T_v> = tr(T_v^T Z_v^T P) = <C_v, T_v>: no further pass over the samples.
    return T, xp.sum(C * T, axis=(1, 2), dtype=xp.float64)


def keep_anchors(Z: Array, P: Array, T: Array) -> tuple[Array, Array]:
    """The ablation "without alignment", where ``T_v = I``: ``T`` as it is, and ``<P, Z_v>``."""
    return T, agreements(Z, P)
