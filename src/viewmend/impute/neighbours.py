"""Imputation by the nearest samples that have the view."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from viewmend.core.common.scaling import unit_rows
from viewmend.core.common.zero_rows import find_zero_rows
from viewmend.data.container import MultiViewData
from viewmend.impute.base import ViewImputer
from viewmend.impute.column_mean import column_means
from viewmend.parameters import Integer, Rule

# Distances held at once: 128 MiB.
_CHUNK = 2**24


@dataclass(eq=False, repr=False)
class NeighbourImputer(ViewImputer):
    """Fill a missing row by the mean of the rows of the nearest samples that have the view.

    Two samples are compared in the views that both have, by the mean over these views of the
    squared distance of their rows, scaled to unit length::

        d(i, j) = mean over views u that i and j share of |x_iu / |x_iu| - x_ju / |x_ju||^2

    If no sample with the view can be compared, the mean of its columns is used.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of nearest samples; all of them if fewer can be compared.
    view_sizes : sequence of int, optional
        Number of columns of every view, if ``X`` is one stacked array.

    Attributes
    ----------
    donors_ : MultiViewData
        The samples of fit.
    view_names_, view_n_features_, n_features_in_
    """

    n_neighbors: int = 5
    view_sizes: Sequence[int] | None = None

    _rules: ClassVar[dict[str, Rule]] = {"n_neighbors": Integer(1)}

    def _learn(self, data: MultiViewData) -> list[np.ndarray]:
        # A copy, since the views may be the arrays of the caller.
        self.donors_ = data[:]
        return self._complete(data)

    def _complete(self, data: MultiViewData) -> list[np.ndarray]:
        means = column_means(self.donors_)
        filled = [np.tile(mean, (data.n_samples, 1)) for mean in means]
        for rows, distances in shared_distances(data, self.donors_):
            for v in range(data.n_views):
                lacking = ~data.observed[rows, v]
                has_view = self.donors_.observed[:, v]
                filled[v][rows[lacking]] = mean_of_nearest(
                    distances[np.ix_(lacking, has_view)],
                    self.donors_.rows_seen(v),
                    self.n_neighbors,
                    otherwise=means[v],
                )
        return filled


def shared_distances(
    data: MultiViewData, donors: MultiViewData
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Distances of incomplete samples to all donors, some rows at a time.

    On unit rows ``|a - b|^2 = 2 - 2 a.b``, so that with zeros for missing rows one product sums
    over the shared views. A row of zeros has a direction of its own, and equals other such rows.

    Yields positions (n_rows,) in ``data`` and distances (n_rows, n_donors), infinite where two
    samples share no view.
    """
    ours, theirs = _unit_stack(data), _unit_stack(donors)
    our_zero, their_zero = (
        find_zero_rows(samples.views, samples.observed).astype(float) for samples in (data, donors)
    )
    lacking = np.flatnonzero(~data.observed.all(axis=1))
    n_rows = max(_CHUNK // len(theirs), 1)
    for start in range(0, len(lacking), n_rows):
        rows = lacking[start : start + n_rows]
        n_shared = data.observed[rows].astype(float) @ donors.observed.T
        with np.errstate(divide="ignore", invalid="ignore"):
            cosines = ours[rows] @ theirs.T + our_zero[rows] @ their_zero.T
            distances = 2 - 2 * cosines / n_shared
        yield rows, np.where(n_shared > 0, distances, np.inf)


def mean_of_nearest(
    distances: np.ndarray, values: np.ndarray, n_neighbors: int, otherwise: np.ndarray
) -> np.ndarray:
    """Mean of the ``values`` (n_donors, n_features) at the smallest distances of every row.

    Of ``distances`` (n_rows, n_donors) only finite ones count; a row without any is ``otherwise``.
    """
    if n_neighbors < distances.shape[1]:
        nearest = np.argpartition(distances, n_neighbors - 1, axis=1)[:, :n_neighbors]
    else:
        nearest = np.broadcast_to(np.arange(distances.shape[1]), distances.shape)
    weights = np.isfinite(np.take_along_axis(distances, nearest, axis=1)).astype(float)
    n_used = weights.sum(axis=1, keepdims=True)
    total = np.zeros((len(distances), values.shape[1]))
    for weight, donor in zip(weights.T, nearest.T, strict=True):
        total += weight[:, None] * values[donor]
    return np.where(n_used > 0, total / np.maximum(n_used, 1), otherwise)


def _unit_stack(data: MultiViewData) -> np.ndarray:
    """Views side by side, rows of unit length in every view and zero where missing."""
    return np.nan_to_num(np.hstack([unit_rows(view) for view in data.views]), copy=False)
