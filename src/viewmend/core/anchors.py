"""Anchors: a few points that stand for the observed rows of a view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from scipy.sparse import csr_array
from sklearn.cluster import KMeans

from viewmend.backend.threads import parallel_map
from viewmend.core.bipartite import anchor_graph, anchor_graphs
from viewmend.core.graph_fourier import (
    diffusion_coordinates,
    graph_spectrum,
    stacked_graph,
    summed_graph,
)

__all__ = [
    "ANCHOR_METHODS",
    "balanced_hierarchical",
    "corresponding_anchors",
    "kmeans_anchors",
    "random_anchors",
]

Select = Callable[[np.ndarray, int, np.random.Generator], np.ndarray]

# Rounds of one two-way split; the authors' number, and splits settle earlier as a rule.
SPLIT_ROUNDS = 10
# The first correspondence comes from anchors that have none, and is worth a second look; a third
# changed nothing on the data we tried. Waves beyond these are noise with a few thousand samples.
CORRESPONDENCE_ROUNDS = 2
N_WAVES = 80
# Weight of a neighbour in the mean of a group, against 1 of a member.
NEIGHBOUR_SHARE = 0.1


def balanced_hierarchical(X_v: np.ndarray, n_anchors: int, rng: np.random.Generator) -> np.ndarray:
    """Balanced hierarchical 2-means (BKHK): halve the rows again and again.

    All splits are balanced but those of the last level, which follow the distances alone. The
    anchors are the means of the last level.

    Parameters
    ----------
    X_v : array (n_observed, n_features)
    n_anchors : int
        A power of two, at most ``n_observed``.
    rng : numpy Generator

    Returns
    -------
    array (n_anchors, n_features)
    """
    parts = [np.arange(X_v.shape[0])]
    n_levels = n_anchors.bit_length() - 1
    for level in range(n_levels):
        split = _split_freely if level == n_levels - 1 else _split_in_half
        # Drawn in the order of the parts, whoever splits them.
        starts = [_split_in_half(rng.permutation(len(rows))) for rows in parts]
        halve = partial(_two_means, X_v, split)
        halves = parallel_map(halve, zip(parts, starts, strict=True))
        parts = [half for pair in halves for half in pair]
    return np.stack([X_v[rows].mean(axis=0) for rows in parts])


def kmeans_anchors(X_v: np.ndarray, n_anchors: int, rng: np.random.Generator) -> np.ndarray:
    """Centres of k-means, (n_anchors, n_features)."""
    seed = int(rng.integers(2**31))
    return KMeans(n_anchors, n_init=1, random_state=seed).fit(X_v).cluster_centers_


def random_anchors(X_v: np.ndarray, n_anchors: int, rng: np.random.Generator) -> np.ndarray:
    """Rows drawn without replacement, (n_anchors, n_features)."""
    return X_v[rng.choice(X_v.shape[0], n_anchors, replace=False)]


ANCHOR_METHODS: dict[str, Select] = {
    "bkhk": balanced_hierarchical,
    "kmeans": kmeans_anchors,
    "random": random_anchors,
}


def corresponding_anchors(
    views: Sequence[np.ndarray],
    observed: np.ndarray,
    own: Sequence[np.ndarray],
    k: int,
    select: Select,
    rng: np.random.Generator,
) -> tuple[list[np.ndarray], np.ndarray]:
    """Anchors of all views such that anchor ``j`` of one view is anchor ``j`` of the others.

    Anchors that every view draws for itself are numbered at random, so that ``T_v = I`` joins
    strangers. Here the views are first joined by the samples they share: the graph of samples
    over the own anchors gives every sample a place in one space, whichever views it has
    (`viewmend.core.graph_fourier.diffusion_coordinates`). Centres are drawn there, every sample
    belongs to its nearest one, and anchor ``j`` of view ``v`` is the mean of the rows of group
    ``j`` that view ``v`` observed, with a little of those near by. A second round starts from
    these anchors.

    Parameters
    ----------
    views : sequence of array (n_samples, n_features_v)
        Only observed rows are read.
    observed : array (n_samples, n_views) of bool
    own : sequence of array (n_anchors, n_features_v)
        Anchors that every view drew for itself.
    k : int
    select : callable
        Of `ANCHOR_METHODS`.
    rng : numpy Generator

    Returns
    -------
    anchors : list of array (n_anchors, n_features_v)
    common : array (n_samples, n_anchors)
        Anchor graph of the common space: what is known of a sample where its view is missing.
    """
    n_anchors = len(own[0])
    N = stacked_graph(anchor_graphs(views, observed, own, k), observed)
    for _ in range(CORRESPONDENCE_ROUNDS):
        places = diffusion_coordinates(graph_spectrum(N, N_WAVES))
        centres = select(places, n_anchors, rng)
        common = anchor_graph(places, centres, k)
        anchors = [
            _group_means(X_v[seen], places[seen], common[seen], centres)
            for X_v, seen in zip(views, observed.T, strict=True)
        ]
        N = summed_graph(anchor_graphs(views, observed, anchors, k), observed)
    return anchors, common.astype(views[0].dtype, copy=False)


def _group_means(
    X_v: np.ndarray, places: np.ndarray, common: np.ndarray, centres: np.ndarray
) -> np.ndarray:
    """Means (n_anchors, n_features) of the rows nearest to every centre, drawn to its surroundings.

    Rows count 1 in the group of their nearest centre and a little in those of their other
    neighbours, which steadies small groups and fills empty ones. Where even that leaves a centre
    without an observed row, it takes that of the nearest sample.
    """
    weights = NEIGHBOUR_SHARE * common
    weights[np.arange(len(common)), common.argmax(axis=1)] += 1
    for j in np.flatnonzero(weights.sum(axis=0) == 0):
        weights[np.argmin(np.sum((places - centres[j]) ** 2, axis=1)), j] = 1
    # Nearly all weights are zero.
    return (csr_array(weights).T @ X_v) / weights.sum(axis=0)[:, None]


def _two_means(
    X_v: np.ndarray,
    split: Callable[[np.ndarray], np.ndarray],
    start: tuple[np.ndarray, np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Split rows in two by Lloyd's rounds.

    ``start`` are the rows (n_rows,) of int, and those of them that begin on the left, (n_rows,)
    of bool.
    """
    rows, left = start
    X = X_v[rows]
    total = X.sum(axis=0)
    for _ in range(SPLIT_ROUNDS):
        left_old, left = left, split(_distance_gap(X, total, left))
        if np.array_equal(left, left_old):
            break
    return rows[left], rows[~left]


def _distance_gap(X: np.ndarray, total: np.ndarray, left: np.ndarray) -> np.ndarray:
    """``q_i = |x_i - c_1|^2 - |x_i - c_2|^2`` for the means of the two sides."""
    n_left = np.count_nonzero(left)
    # A product with the mask reads the rows once and copies none.
    sum_1 = left.astype(X.dtype) @ X
    centre_1, centre_2 = sum_1 / n_left, (total - sum_1) / (len(X) - n_left)
    return 2 * X @ (centre_2 - centre_1) + centre_1 @ centre_1 - centre_2 @ centre_2


def _split_in_half(q: np.ndarray) -> np.ndarray:
    """The floor(n / 2) rows with the smallest gap go left."""
    left = np.zeros(len(q), dtype=bool)
    left[np.argsort(q, kind="stable")[: len(q) // 2]] = True
    return left


def _split_freely(q: np.ndarray) -> np.ndarray:
    """Rows nearer to the first centre go left; equal rows are halved, so that no side is empty."""
    left = q < 0
    return left if left.any() and not left.all() else _split_in_half(q)
