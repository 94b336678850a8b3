"""Anchors: a few points that represent the observed rows of a view."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.cluster import KMeans

from viewmend.backend import dispatch
from viewmend.backend.namespace import Array, array_namespace, to_numpy
from viewmend.core.agfti.bipartite import anchor_graph, anchor_graphs
from viewmend.core.agfti.graph_fourier import (
    diffusion_coordinates,
    graph_spectrum,
    stacked_graph,
    summed_graph,
)
from viewmend.core.common.scaling import far_centre

Select = Callable[[Array, int, np.random.Generator], Array]

# The first round starts from anchors that do not correspond, which a second improves on; a third
# changed nothing on the data we tried.
CORRESPONDENCE_ROUNDS = 2
# Columns of the graph Fourier basis: beyond these they are noise with a few thousand samples.
N_WAVES = 80
# Rows that tell whether all lie far from the origin.
GLANCE = 4096
# Weight of a neighbour in the mean of a group, against 1 of a member.
NEIGHBOUR_SHARE = 0.1


def balanced_hierarchical(X_v: Array, n_anchors: int, rng: np.random.Generator) -> Array:
    """Balanced hierarchical 2-means (BKHK): halve the rows again and again.

    All splits are balanced but those of the last level, which follow the distances alone. The
    anchors (n_anchors, n_features) are the means of the last level. Their number is a power of two,
    at most that of the rows of ``X_v`` (n_observed, n_features).
    """
    xp = array_namespace(X_v)
    parts = [xp.arange(X_v.shape[0], device=X_v.device)]
    centre = far_centre(X_v[:: max(1, X_v.shape[0] // GLANCE), :])
    near_zero = X_v if centre is None else X_v - centre
    n_levels = n_anchors.bit_length() - 1
    for level in range(n_levels):
        # All draws come before the splits, which may run on several threads or on a GPU.
        starts = [rng.permutation(rows.shape[0]) < rows.shape[0] // 2 for rows in parts]
        parts = dispatch.split_parts(near_zero, parts, starts, level < n_levels - 1)
    return xp.stack([xp.mean(xp.take(X_v, rows, axis=0), axis=0) for rows in parts])


def kmeans_anchors(X_v: Array, n_anchors: int, rng: np.random.Generator) -> Array:
    """Centres of k-means, (n_anchors, n_features); found on the host."""
    means = KMeans(n_anchors, n_init=1, random_state=int(rng.integers(2**31))).fit(to_numpy(X_v))
    return array_namespace(X_v).asarray(means.cluster_centers_, device=X_v.device)


def random_anchors(X_v: Array, n_anchors: int, rng: np.random.Generator) -> Array:
    """Rows drawn without replacement, (n_anchors, n_features)."""
    rows, xp = rng.choice(X_v.shape[0], n_anchors, replace=False), array_namespace(X_v)
    return xp.take(X_v, xp.asarray(rows, device=X_v.device), axis=0)


ANCHOR_METHODS: dict[str, Select] = {
    "bkhk": balanced_hierarchical,
    "kmeans": kmeans_anchors,
    "random": random_anchors,
}


def corresponding_anchors(
    views: Sequence[Array],
    observed: Array,
    start: Sequence[Array],
    k: int,
    select: Select,
    rng: np.random.Generator,
) -> tuple[list[Array], Array]:
    """Anchors of all views such that anchor ``j`` of one view is anchor ``j`` of the others.

    Anchors that every view draws for itself are numbered at random, so that ``T_v = I`` would
    pair unrelated anchors. Here the views are first joined by the samples they share: the graph
    of samples over the anchors of all views gives every sample a point in one space, whichever
    views it has (`diffusion_coordinates`). Centres are drawn there, every sample belongs to its
    nearest one, and anchor ``j`` of view ``v`` is the mean of the rows of group ``j`` that view
    ``v`` observed, with a little of those near by. A second round starts from these anchors.

    Of ``views`` (n_samples, n_features_v each) only observed rows are read; ``start`` are the
    anchors (n_anchors, n_features_v) that every view drew for itself, ``select`` is one of
    `ANCHOR_METHODS`.

    Returns
    -------
    anchors : list of array (n_anchors, n_features_v)
    common : array (n_samples, n_anchors)
        Anchor graph of the common space: what is known of a sample where its view is missing.
    """
    n_anchors, xp = start[0].shape[0], array_namespace(*views)
    # Side by side, because the anchors do not correspond yet; summed in the rounds, since they do.
    N = stacked_graph(anchor_graphs(views, observed, start, k), observed)
    for _ in range(CORRESPONDENCE_ROUNDS):
        points = diffusion_coordinates(graph_spectrum(N, N_WAVES))
        centres = select(points, n_anchors, rng)
        common = anchor_graph(points, centres, k)
        anchors = [
            _group_means(X_v[observed[:, v]], points, common, centres, observed[:, v])
            for v, X_v in enumerate(views)
        ]
        N = summed_graph(anchor_graphs(views, observed, anchors, k), observed)
    return anchors, xp.astype(common, xp.result_type(*views), copy=False)


def group_weights(common: Array) -> Array:
    """Weight of a row in the mean of every group, (n_rows, n_anchors); see `_group_means`."""
    xp = array_namespace(common)
    nearest = xp.argmax(common, axis=1)[:, None]
    groups = xp.arange(common.shape[1], device=common.device)
    return NEIGHBOUR_SHARE * common + xp.astype(nearest == groups, common.dtype)


def _group_means(X_v: Array, points: Array, common: Array, centres: Array, seen: Array) -> Array:
    """Means (n_anchors, n_features) of the rows nearest to every centre, drawn to its surroundings.

    Rows count 1 in the group of their nearest centre and a little in those of their other
    neighbours, which steadies small groups and fills empty ones. A centre that has no observed row
    even so gets the row of the nearest sample.
    """
    xp, points, weights = array_namespace(X_v), points[seen], group_weights(common[seen])
    for j in np.flatnonzero(to_numpy(xp.sum(weights, axis=0)) == 0):
        weights[int(xp.argmin(xp.sum((points - centres[j, :]) ** 2, axis=1))), int(j)] = 1
    # A row has weight in k groups of n_anchors: nearly all products would be with zero.
    sums = dispatch.sparse_cross_products(weights, X_v)
    return xp.astype(sums / xp.sum(weights, axis=0)[:, None], X_v.dtype, copy=False)
