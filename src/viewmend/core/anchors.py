"""Anchors: a few points that stand for the observed rows of a view."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.cluster import KMeans

__all__ = ["ANCHOR_METHODS", "balanced_hierarchical", "kmeans_anchors", "random_anchors"]

# Rounds of one two-way split; the authors' number, and splits settle earlier as a rule.
SPLIT_ROUNDS = 10


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
        parts = [half for rows in parts for half in _two_means(X_v, rows, split, rng)]
    return np.stack([X_v[rows].mean(axis=0) for rows in parts])


def kmeans_anchors(X_v: np.ndarray, n_anchors: int, rng: np.random.Generator) -> np.ndarray:
    """Centres of k-means, (n_anchors, n_features)."""
    seed = int(rng.integers(2**31))
    return KMeans(n_anchors, n_init=1, random_state=seed).fit(X_v).cluster_centers_


def random_anchors(X_v: np.ndarray, n_anchors: int, rng: np.random.Generator) -> np.ndarray:
    """Rows drawn without replacement, (n_anchors, n_features)."""
    return X_v[rng.choice(X_v.shape[0], n_anchors, replace=False)]


ANCHOR_METHODS: dict[str, Callable[[np.ndarray, int, np.random.Generator], np.ndarray]] = {
    "bkhk": balanced_hierarchical,
    "kmeans": kmeans_anchors,
    "random": random_anchors,
}


def _two_means(
    X_v: np.ndarray,
    rows: np.ndarray,
    split: Callable[[np.ndarray], np.ndarray],
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Split ``rows`` in two by Lloyd's rounds from a random balanced start."""
    X = X_v[rows]
    left = _split_in_half(rng.permutation(len(rows)))
    for _ in range(SPLIT_ROUNDS):
        left_old, left = left, split(_distance_gap(X, left))
        if np.array_equal(left, left_old):
            break
    return rows[left], rows[~left]


def _distance_gap(X: np.ndarray, left: np.ndarray) -> np.ndarray:
    """``q_i = |x_i - c_1|^2 - |x_i - c_2|^2`` for the means of the two sides."""
    centre_1, centre_2 = X[left].mean(axis=0), X[~left].mean(axis=0)
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
