"""Imputation by a matrix of low rank.

R. Mazumder, T. Hastie, R. Tibshirani, Spectral regularization algorithms for learning large
incomplete matrices, Journal of Machine Learning Research 11, 2010.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import scipy.linalg

from viewmend.core.common.soft_impute import LowRank, complete
from viewmend.data.container import MultiViewData
from viewmend.exceptions import InvalidParameterError
from viewmend.impute.base import ViewImputer
from viewmend.impute.column_mean import column_means
from viewmend.parameters import AnyOf, Integer, OneOf, Real, Rule


@dataclass(eq=False, repr=False)
class LowRankImputer(ViewImputer):
    """Fill missing views by a low-rank matrix that fits the observed rows (softImpute).

    For the views side by side, ``X``, with observed entries ``O``::

        min over M of  1/2 |O * (X - M)|^2 + threshold |M|_*

    is solved by filling the hidden entries with ``M`` and shrinking the singular values of the
    result by ``threshold``, over and over. With ``rank``, only the largest singular values are
    kept as well; ``shrinkage=0`` then gives the iterative SVD (hard-impute), which is not convex.
    A new sample gets the row of ``M`` that the objective would give it, the columns held fixed.

    Parameters
    ----------
    rank : int or None, default=None
        Largest rank of ``M``; None for no bound.
    shrinkage : float in [0, 1], default=0.1
        ``threshold`` as a share of the largest singular value of ``O * X``. At 1, ``M`` is zero.
    center : bool, default=True
        Subtract the means of the observed rows first and add them back at the end, so that the mean
        is not shrunk. ``shrinkage=1`` then fills like `ColumnMeanImputer`.
    max_iter : int, default=200
        Largest number of rounds.
    tol : float, default=1e-4
        Stop when a round changes ``M`` by less than this share of its norm.
    view_sizes : sequence of int, optional
        Number of columns of every view, if ``X`` is one stacked array.

    Attributes
    ----------
    rank_ : int
        Rank of ``M``.
    threshold_ : float
        The threshold of the singular values.
    components_ : array (rank_, n_features)
        Right singular vectors of ``M``, scaled by the roots of its singular values.
    means_ : array (n_features,)
        What was subtracted from the columns.
    history_ : tuple of float
        Relative change of ``M`` in every round.
    n_iter_ : int
        Number of rounds.
    status_ : {"converged", "max_iter"}
        Why the rounds ended.
    view_names_, view_n_features_, n_features_in_
    """

    rank: int | None = None
    shrinkage: float = 0.1
    center: bool = True
    max_iter: int = 200
    tol: float = 1e-4
    view_sizes: Sequence[int] | None = None

    _rules: ClassVar[dict[str, Rule]] = {
        "rank": AnyOf(Integer(1), OneOf(None)),
        "shrinkage": Real(0, 1),
        "center": OneOf(True, False),
        "max_iter": Integer(1),
        "tol": Real(0),
    }

    def _learn(self, data: MultiViewData) -> list[np.ndarray]:
        if self.rank is None and self.shrinkage == 0:
            msg = (
                "rank=None and shrinkage=0 bound nothing, so hidden entries could be anything; "
                "expected a rank or a positive shrinkage: set one of them"
            )
            raise InvalidParameterError(msg)
        means = np.concatenate(column_means(data))
        self.means_ = means if self.center else np.zeros_like(means)
        X, hidden = _centred(data, self.means_)
        self.threshold_ = float(self.shrinkage * np.linalg.norm(X, 2))
        low_rank = soft_impute(
            X, hidden, self.threshold_, self.rank, max_iter=self.max_iter, tol=self.tol
        )
        self.components_ = low_rank.components
        self.rank_ = len(low_rank.components)
        self.history_, self.status_ = low_rank.changes, low_rank.status
        self.n_iter_ = len(low_rank.changes)
        return _split(low_rank.M + self.means_, data)

    def _complete(self, data: MultiViewData) -> list[np.ndarray]:
        X, hidden = _centred(data, self.means_)
        M = np.empty_like(X)
        for rows, columns in _patterns(hidden):
            scores = ridge_scores(
                X[np.ix_(rows, columns)], self.components_[:, columns], self.threshold_
            )
            M[rows] = scores @ self.components_
        return _split(M + self.means_, data)


def soft_impute(
    X: np.ndarray,
    hidden: np.ndarray,
    threshold: float,
    rank: int | None,
    *,
    max_iter: int,
    tol: float,
) -> LowRank:
    """The completion of ``X`` (n, p), zero where ``hidden``, by `shrink_singular_values`."""
    shrink = partial(shrink_singular_values, threshold=threshold, rank=rank)
    return complete(X, hidden, shrink, max_iter=max_iter, tol=tol)


def shrink_singular_values(
    A: np.ndarray, threshold: float, rank: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Argmin over ``M`` of ``1/2 |A - M|^2 + threshold |M|_*``, of at most the given rank.

    Returned with the components (rank of M, p), as in `LowRank`. Only the leading eigenvectors of
    the smaller Gram matrix are computed.
    """
    tall = A.shape[0] >= A.shape[1]
    gram = A.T @ A if tall else A @ A.T
    singular, vectors = _leading(gram, threshold, rank)
    shares = (singular - threshold) / singular
    if tall:
        M = (A @ (vectors * shares)) @ vectors.T
        right = vectors.T
    else:
        right = (vectors.T @ A) / singular[:, None]
        M = (vectors * (singular - threshold)) @ right
    return M, np.sqrt(singular - threshold)[:, None] * right


def ridge_scores(X: np.ndarray, components: np.ndarray, threshold: float) -> np.ndarray:
    """Argmin over ``S`` of ``|X - S C|^2 + threshold |S|^2``.

    ``threshold |M|_*`` is the least ``threshold/2 (|S|^2 + |C|^2)`` over all ``M = S C``, so this
    is the objective of `LowRankImputer` for rows whose components are known.
    """
    rank = len(components)
    # One tall system instead of the normal equations: fewer columns than components are no trouble.
    system = np.vstack([components.T, np.sqrt(threshold) * np.eye(rank)])
    targets = np.vstack([X.T, np.zeros((rank, len(X)))])
    return np.linalg.lstsq(system, targets)[0].T


def _leading(gram: np.ndarray, threshold: float, rank: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Singular values above the threshold, at most ``rank``, with their eigenvectors."""
    size = len(gram)
    if rank is None or rank >= size:
        eigenvalues, vectors = scipy.linalg.eigh(gram, subset_by_value=(threshold**2, np.inf))
    else:
        eigenvalues, vectors = scipy.linalg.eigh(gram, subset_by_index=(size - rank, size - 1))
    # Rounding lifts eigenvalues that are zero, or at the threshold, by as much as this.
    noise = np.finfo(float).eps * size * np.trace(gram)
    significant = eigenvalues > threshold**2 + noise
    return np.sqrt(eigenvalues[significant]), vectors[:, significant]


def _centred(data: MultiViewData, means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The stacked views less the means, zero where hidden, and where that is."""
    X = data.stacked() - means
    hidden = np.repeat(~data.observed, data.n_features, axis=1)
    X[hidden] = 0
    return X, hidden


def _patterns(hidden: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows that have the same columns, and these columns, for every pattern."""
    patterns, codes = np.unique(hidden, axis=0, return_inverse=True)
    for code, pattern in enumerate(patterns):
        yield np.flatnonzero(codes == code), np.flatnonzero(~pattern)


def _split(stacked: np.ndarray, data: MultiViewData) -> list[np.ndarray]:
    return np.split(stacked, np.cumsum(data.n_features)[:-1], axis=1)
