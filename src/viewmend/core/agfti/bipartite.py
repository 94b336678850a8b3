"""Bipartite graphs between samples and anchors."""

from __future__ import annotations

from collections.abc import Sequence

from viewmend.backend import dispatch
from viewmend.backend.namespace import Array, array_namespace
from viewmend.backend.threads import blocks_for, for_each
from viewmend.core.common.scaling import far_centre


def anchor_graph(X_v: Array, anchors_v: Array, k: int) -> Array:
    """Closed-form bipartite graph (n_rows, n_anchors) of one view (Eq. anchor_construction).

    Each row solves ``min sum_j e_ij z_ij + gamma z_ij^2`` over the simplex, where ``e_ij`` are
    squared distances and ``gamma`` is the value that leaves exactly ``k < n_anchors`` neighbours::

        z_ij = (e_i,k+1 - e_ij)_+ / (k e_i,k+1 - e_i1 - ... - e_ik)

    ``X_v`` is (n_rows, n_features), ``anchors_v`` (n_anchors, n_features). Where the ``k + 1``
    nearest anchors are equally far, a row is uniform over all that are.
    """
    xp, centre = array_namespace(X_v, anchors_v), far_centre(anchors_v)

    # By blocks of rows, whose distances and weights stay in the cache.
    def weights(rows: slice) -> Array:
        return dispatch.nearest_anchor_weights(
            dispatch.squared_distances(X_v[rows, :], anchors_v, centre), k
        )

    blocks = blocks_for(X_v.shape[0], anchors_v.shape[0], xp)
    parts = for_each(weights, blocks, xp)
    return xp.concat(parts) if len(parts) != 1 else parts[0]


def anchor_graphs(
    views: Sequence[Array], observed: Array, anchors: Sequence[Array], k: int
) -> Array:
    """Stack the graphs of all views; rows of missing samples start uniform, at ``1 / m``.

    Only the observed rows of ``views`` (n_samples, n_features_v each) are read. Returns
    (n_views, n_samples, n_anchors), in the widest number type of the views.
    """
    xp = array_namespace(*views)
    n_samples, n_anchors = views[0].shape[0], anchors[0].shape[0]
    shape, X = (len(views), n_samples, n_anchors), views[0]
    dtype = xp.result_type(*views)
    Z = xp.full(shape, 1 / n_anchors, dtype=dtype, device=X.device)
    for v, (X_v, anchors_v) in enumerate(zip(views, anchors, strict=True)):
        seen = observed[:, v]
        Z_v = Z[v, ...]
        Z_v[seen] = xp.astype(anchor_graph(X_v[seen], anchors_v, k), dtype, copy=False)
    return Z
