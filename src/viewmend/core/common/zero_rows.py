"""Rows of zeros: where they are, and what they reveal about the class of a sample.

A row of zeros has no direction, and all of them are the same point. Compared like others they would
be the nearest neighbours of almost every sparse row, and of one another whatever their classes. So
no method compares them; that a row is zero is evidence for a class by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from viewmend.backend.numba_scans import count_missing_cells, row_ends
from viewmend.core.common.class_shares import normalise_rows

# Samples that the share of zero rows in a class is drawn to that in all classes by.
PSEUDO_SAMPLES = 1.0
# Differences between classes count as far as they are beyond that many times those of chance: with
# one, zero rows that tell nothing cost up to seven points of their accuracy, with two none.
CAUTION = 2.0


def find_zero_rows(views: Sequence[np.ndarray | csr_array], observed: np.ndarray) -> np.ndarray:
    """Observed rows without any entry but zero, (n_samples, n_views) of bool.

    ``views`` are (n_samples, n_features_v) each, ``observed`` is (n_samples, n_views).
    """
    return observed & np.stack([_without_entries(view) for view in views], axis=1)


def _without_entries(view: np.ndarray | csr_array) -> np.ndarray:
    # A missing row is NaN, which is not zero, or if the view is sparse has no entry.
    if not isinstance(view, np.ndarray):
        return np.asarray(np.diff(view.indptr) == 0)
    low, high = row_ends(view)
    return (low == 0) & (high == 0) & (count_missing_cells(view) == 0)


def zero_row_evidence(zero: np.ndarray, observed: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Log of the share of zero rows in every class over that in all, (n_views, n_classes).

    ``zero`` and ``observed`` (n_samples, n_views) are of bool. Only labelled samples count, which
    have one-hot rows in ``Y`` (n_samples, n_classes): classes that were found without the zero rows
    would hide what these say.
    """
    labelled = Y.any(axis=1)
    pairs = zip(zero.T, observed.T, strict=True)
    return np.stack([_view_evidence(z[seen & labelled], Y[seen & labelled]) for z, seen in pairs])


def _view_evidence(zero: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Of one view: ``log r_c / r``, shrunk as far as chance may explain the differences.

    Pearson's ``X^2`` of the counts of zero rows by class has the mean ``C - 1`` where all ``C``
    classes have the share ``r`` of them; ``(1 - CAUTION (C - 1) / X^2)_+`` of the log is left.
    """
    rate = float(zero.mean()) if len(zero) else 0.0
    if rate in (0.0, 1.0):
        return np.zeros(Y.shape[1])
    counts, n_zero = Y.sum(axis=0), Y[zero].sum(axis=0)
    spread, gaps = counts * rate * (1 - rate), (n_zero - counts * rate) ** 2
    chi_squared = float(np.divide(gaps, spread, out=np.zeros_like(gaps), where=spread > 0).sum())
    beyond_chance = max(chi_squared - CAUTION * (Y.shape[1] - 1), 0.0)
    rates = (n_zero + PSEUDO_SAMPLES * rate) / (counts + PSEUDO_SAMPLES)
    return np.asarray(beyond_chance / (chi_squared or 1.0) * np.log(rates / rate))


def with_evidence(shares: np.ndarray, zero: np.ndarray, evidence: np.ndarray) -> np.ndarray:
    """Class shares (n_samples, n_classes), times what the zero rows of a sample say.

    Rows of samples without a zero row are left as they are.
    """
    some = zero.any(axis=1, keepdims=True)
    return np.where(some, normalise_rows(shares * np.exp(zero @ evidence)), shares)
