"""The paper's tensor step over blocks of rows: a transform along all rows of every column.

Rows are turned into columns and back by Dask's own rechunking. Between the two, a frequency needs
of its columns only their Gram matrix (n_views, n_views), which is a sum over blocks of columns; so
nothing is turned a second time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed

from viewmend.core.agfti.graph_fourier import shrinkage
from viewmend.core.agfti.tensor_nuclear import (
    filtered_columns,
    frequency_grams,
    mean_over_frequencies,
)
from viewmend.distributed.rows import tree


def shrunk_by_columns(
    Y: Sequence[Delayed], sizes: tuple[int, ...], like: np.ndarray, tau: float
) -> tuple[list[Delayed], Delayed]:
    """`viewmend.core.agfti.tensor_nuclear.prox_tnn` of an array in blocks of rows, and its norm.

    Arrays of ``Y``, as of the answer, are (n_views, n_rows, n_anchors), with rows as in ``sizes``
    and the rest as in ``like`` (n_views, 0, n_anchors). Nothing is computed yet.
    """
    n_views, _, n_anchors = like.shape
    n_samples, dtype = sum(sizes), like.dtype
    width = -(-n_anchors // min(len(sizes), n_anchors))
    rows = [
        da.from_delayed(block, (n_views, size, n_anchors), dtype=dtype)
        for block, size in zip(Y, sizes, strict=True)
    ]
    # In tasks, for Dask to compute again what a lost worker had of them.
    with dask.config.set({"array.rechunk.method": "tasks"}):
        columns = da.concatenate(rows, axis=1).rechunk({1: -1, 2: width})
        # Non-negative frequencies of every column.
        spectra = [delayed(np.fft.rfft)(block, axis=1) for block in columns.to_delayed().ravel()]
        grams = tree([delayed(frequency_grams)(spectrum) for spectrum in spectra], total)
        mixing, norm = delayed(mixed_views, nout=2)(grams, tau, n_samples)
        back = [
            da.from_delayed(
                delayed(restored)(spectrum, mixing, (n_samples, dtype)),
                (n_views, n_samples, columns.chunks[2][j]),
                dtype=dtype,
            )
            for j, spectrum in enumerate(spectra)
        ]
        G = da.concatenate(back, axis=2).rechunk({1: sizes, 2: -1})
        return list(G.to_delayed().ravel()), norm


def total(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Sum of arrays, in their order."""
    return np.sum(parts, axis=0)


def mixed_views(grams: np.ndarray, tau: float, n_samples: int) -> tuple[np.ndarray, float]:
    """How every frequency mixes its views, and the norm that is left."""
    mixing, left = shrinkage(grams, tau)
    return mixing, float(mean_over_frequencies(left, n_samples, np))


def restored(Y_hat: np.ndarray, mixing: np.ndarray, shape: tuple[int, Any]) -> np.ndarray:
    """Columns of ``G``."""
    n_samples, dtype = shape
    G = np.fft.irfft(filtered_columns(Y_hat, mixing), n=n_samples, axis=1)
    return G.astype(dtype, copy=False)
