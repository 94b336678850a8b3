"""Anchor alignment by orthogonal Procrustes."""

from __future__ import annotations

from viewmend.backend import dispatch
from viewmend.backend.namespace import Array, array_namespace


def align_products(C: Array) -> tuple[Array, Array]:
    """Per view, argmax ``tr(T_v^T Z_v^T P)`` subject to ``T_v^T T_v = I`` (Eq. update_T).

    With the singular value decomposition ``C_v = Z_v^T P = U S V^T``, of ``C`` (n_views, n_anchors,
    n_anchors), it is ``T_v = U V^T``. The products are sums over samples, so that those of blocks
    of rows add up. The values of the maxima, ``<P, Z_v T_v>`` (n_views,), come second.
    """
    T = dispatch.polar_factors(C)
    xp = array_namespace(C)
    # <P, Z_v T_v> = tr(T_v^T Z_v^T P) = <C_v, T_v>: no further pass over the samples.
    return T, xp.sum(C * T, axis=(1, 2), dtype=xp.float64)
