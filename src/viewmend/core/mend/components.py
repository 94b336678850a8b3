"""Leading components of a wide sparse view, which replace it where rows are compared.

Counts of words, peaks or mutations fill thousands of columns with zeros. Compared as they are,
rows differ above all by what each of them has alone. Here entries are weighed as in latent semantic
analysis, by their signed root and by how rare their column is, rows have unit length, and principal
components are taken. These are exact, from products between rows: nothing is drawn at random, and
no array has as many entries as the view has cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.sparse import csr_array, diags_array

from viewmend.core.common.content_order import bottom_rows

# Components at most, and rows that they are computed from at most.
MOST, MOST_ROWS = 256, 4096
# Variance of a component, over that of the first, below which it is rounding.
SMALLEST = 1e-10
# Rows mapped at a time.
BLOCK = 2048


@dataclass(frozen=True, eq=False)
class SparseComponents:
    """``x -> t(x) rows^T loadings - offset``, for the weighed row ``t(x)`` of unit length.

    ``weights`` (n_features,) are those of the columns, ``rows`` (n_rows, n_features) weighed rows
    of the fit, ``loadings`` (n_rows, n_components) and ``offset`` (n_components,). The principal
    axes are ``rows^T loadings``; as a product they would be as wide as the view, and dense.
    """

    weights: np.ndarray
    rows: csr_array
    loadings: np.ndarray
    offset: np.ndarray

    def __call__(self, X: np.ndarray | csr_array) -> np.ndarray:
        """Components (n_new, n_components) of rows (n_new, n_features), numbers of float32."""
        T, across = weighed(csr_array(X), self.weights), self.rows.T.tocsr()
        mapped = np.empty((T.shape[0], self.loadings.shape[1]))
        for start in range(0, T.shape[0], BLOCK):
            products = (T[start : start + BLOCK] @ across).toarray()
            mapped[start : start + BLOCK] = products @ self.loadings - self.offset
        return _as_singles(mapped)


def fit_components(X: csr_array) -> SparseComponents:
    """The `MOST` principal components of the weighed rows of ``X`` (n_rows, n_features)."""
    weights = rarity(X)
    sample = X if X.shape[0] <= MOST_ROWS else X[bottom_rows(X, MOST_ROWS)]
    rows = weighed(sample, weights)
    rows.data = _as_singles(rows.data)
    products = (rows @ rows.T).toarray()
    means = products.mean(axis=0)
    # Products of the rows less their mean, whose eigenvectors lead to those of the covariance.
    gram = products - means - means[:, None] + means.mean()
    last = len(gram) - 1
    values, vectors = scipy.linalg.eigh(gram, subset_by_index=[max(last - MOST + 1, 0), last])
    kept = values > max(SMALLEST * values[-1], np.finfo(float).tiny)
    if not kept.any():
        # Rows that are all the same: one component, which is zero for all of them.
        return SparseComponents(weights, rows, np.zeros((len(gram), 1)), np.zeros(1))
    loadings = _as_singles(vectors[:, kept] / np.sqrt(values[kept]))[:, ::-1]
    return SparseComponents(weights, rows, np.ascontiguousarray(loadings), means @ loadings)


def rarity(X: csr_array) -> np.ndarray:
    """``1 + log((1 + n) / (1 + n_j))`` of every column, which ``n_j`` of the n rows have."""
    counts = np.bincount(X.indices[X.data != 0], minlength=X.shape[1])
    return np.asarray(1 + np.log((1 + X.shape[0]) / (1 + counts)))


def weighed(X: csr_array, weights: np.ndarray) -> csr_array:
    """Signed roots of the entries times the ``weights`` of their columns, rows of unit length."""
    data = np.sign(X.data) * np.sqrt(np.abs(X.data)) * weights[X.indices]
    rows = csr_array((data, X.indices, X.indptr), shape=X.shape)
    lengths = np.sqrt(rows.multiply(rows).sum(axis=1))
    return csr_array(diags_array(1 / np.where(lengths == 0, 1, lengths)) @ rows)


def _as_singles(numbers: np.ndarray) -> np.ndarray:
    """Numbers of float32 in float64: precise enough, and a file keeps them in half the place."""
    return numbers.astype(np.float32).astype(np.float64)


def as_dense_rows(X: np.ndarray | csr_array, components: SparseComponents | None) -> np.ndarray:
    """Rows that can be compared: their components, or themselves where the view has none."""
    if components is not None:
        return components(X)
    return X if isinstance(X, np.ndarray) else X.toarray()
