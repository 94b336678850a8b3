"""Views that say the same of the samples as another one."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from viewmend.data.container import MultiViewData
from viewmend.data.magnitudes import LARGEST

# Samples that two views are compared on: at least, and at most.
FEWEST, MOST = 10, 64
# Correlation of the likenesses of all pairs of samples from which on one view repeats the other.
SAME = 0.999


def repeated_views(data: MultiViewData) -> tuple[tuple[str, str], ...]:
    """Pairs of views, named in their order, that hold the same up to scale, rotation and order."""
    return tuple(
        (data.names[v], data.names[w])
        for v, w in combinations(range(data.n_views), 2)
        if _agreement(data, v, w) >= SAME
    )


def _agreement(data: MultiViewData, v: int, w: int) -> float:
    """Correlation of the likenesses of samples in two views; 0 where it cannot be told."""
    common = np.flatnonzero(data.observed[:, v] & data.observed[:, w])
    common = common[_is_whole(data.views[v][common]) & _is_whole(data.views[w][common])]
    if len(common) < FEWEST:
        return 0.0
    # Spread over the file, because neighbours may be alike.
    some = common[np.linspace(0, len(common) - 1, min(MOST, len(common))).astype(int)]
    one, two = (_likenesses(data.views[view][some]) for view in (v, w))
    lengths = float(np.linalg.norm(one) * np.linalg.norm(two))
    return float(one @ two) / lengths if lengths > 0 else 0.0


def _is_whole(rows: np.ndarray) -> np.ndarray:
    """Rows that have every cell, and none too large to be squared, (n_rows,) of bool."""
    return np.asarray((np.abs(rows) <= LARGEST).all(axis=1))


def _likenesses(rows: np.ndarray) -> np.ndarray:
    """Inner products of all pairs of rows with standardised columns, less their mean.

    Products of rows with themselves are left out: in wide views they would outweigh all others, and
    any two wide views would seem to agree.
    """
    peaks = np.abs(rows).max(axis=0)
    centred = rows / np.where(peaks > 0, peaks, 1.0)
    centred = centred - centred.mean(axis=0)
    deviations = centred.std(axis=0)
    # Columns that differ by rounding alone are constant.
    constant = deviations < 1e-12
    scaled = np.where(constant, 0.0, centred / np.where(constant, 1.0, deviations))
    products = (scaled @ scaled.T)[np.triu_indices(len(rows), 1)]
    return np.asarray(products - products.mean())
