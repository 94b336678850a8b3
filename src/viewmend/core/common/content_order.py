"""An order of the samples by their content, whatever their order in the file.

Breaking ties, drawing samples and summing all depend on some order of the rows. Here it is the
canonical order, in which samples are sorted by a hash of their content. Work that is done in it,
and whose result is put back in the order of the file, is *exactly* equivariant to permutations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

# Of the finaliser of splitmix64 (Steele, Lea, Flood 2014): every input bit reaches every output
# bit. Arithmetic of unsigned integers wraps around, which is what a hash wants.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
# Entries hashed at a time, so that the work array stays small.
BLOCK = 2**20


def row_hashes(X: np.ndarray | csr_array) -> np.ndarray:
    """Hash (n_rows,) of uint64 of the content of every row of ``X`` (n_rows, n_features).

    Equal rows have equal hashes, sparse or not, and rows of float32 the hashes of the same numbers
    in float64; other rows share one with probability ``2**-64``. ``X`` must have no NaN.
    """
    n_rows, n_features = X.shape
    # An odd factor per column: the same number in another column gives another hash.
    salts = _mix(np.arange(1, n_features + 1, dtype=np.uint64) * GOLDEN) | np.uint64(1)
    if not isinstance(X, np.ndarray):
        # Zeros add nothing to the sums.
        bits = _mix((X.data.astype(np.float64) + 0.0).view(np.uint64) * GOLDEN)
        ends = np.concatenate([[np.uint64(0)], np.cumsum(bits * salts[X.indices])])
        return _mix(ends[X.indptr[1:]] - ends[X.indptr[:-1]])
    hashes = np.empty(n_rows, dtype=np.uint64)
    step = max(BLOCK // max(n_features, 1), 1)
    for start in range(0, n_rows, step):
        # Adding zero turns -0.0, which equals 0.0, into it.
        block = np.ascontiguousarray(X[start : start + step], dtype=np.float64) + 0.0
        bits = _mix(block.view(np.uint64) * GOLDEN)
        hashes[start : start + step] = (bits * salts).sum(axis=1, dtype=np.uint64)
    return _mix(hashes)


def canonical_order(
    views: Sequence[np.ndarray | csr_array], observed: np.ndarray, codes: np.ndarray
) -> np.ndarray:
    """Permutation that sorts the samples by their content, whatever the order of rows or views.

    Row ``i`` of the canonical order is row ``order[i]`` of the data. Of ``views`` (n_samples,
    n_features_v each) only observed rows are read. The classes ``codes`` (n_samples,) of int
    distinguish samples of equal features.
    """
    return np.lexsort((codes, sample_hashes(views, observed)))


def sample_hashes(views: Sequence[np.ndarray | csr_array], observed: np.ndarray) -> np.ndarray:
    """Hash (n_samples,) of uint64 of what all views observed of a sample; in any order of views.

    Parameters as in `canonical_order`.
    """
    # A sum forgets the order of the views.
    total = np.zeros(len(observed), dtype=np.uint64)
    for X_v, seen in zip(views, observed.T, strict=True):
        total[seen] += row_hashes(X_v[seen])
    return total


def drawn_rows(hashes: np.ndarray, codes: np.ndarray, first: np.ndarray, size: int) -> np.ndarray:
    """A sample (at most size,) of the rows that does not depend on their order, in canonical order.

    Rows that come ``first`` (n_rows,) of bool are all taken, or those of the smallest ``hashes``
    (n_rows,) of uint64 where they are more than ``size``. The others follow by their hashes, and
    count once where they have the same one. ``codes`` (n_rows,) are as in `canonical_order`. Of
    rows in parts, the sample of the samples of the parts is that of all rows.
    """
    order = np.lexsort((codes, hashes))
    chosen, others = order[first[order]][:size], order[~first[order]]
    # The first row of every hash: the least code, then the least number.
    others = others[np.unique(hashes[others], return_index=True)[1]]
    drawn = np.concatenate([chosen, others[: size - len(chosen)]])
    # By numbers last, because rows that came first may stand behind their like now.
    return np.asarray(drawn[np.lexsort((drawn, codes[drawn], hashes[drawn]))])


def bottom_rows(X: np.ndarray | csr_array, size: int, seed: int = 0) -> np.ndarray:
    """A uniform sample (at most size,) of the distinct rows that does not depend on their order.

    The rows of the smallest seeded hashes are taken, a "bottom-k" sample, in the order of their
    hashes. A row that occurs many times counts once, by its first occurrence.
    """
    keys = _mix(row_hashes(X) ^ _mix(np.array([seed + 1], dtype=np.uint64) * GOLDEN))
    return np.unique(keys, return_index=True)[1][:size]


def _mix(z: np.ndarray) -> np.ndarray:
    z = (z ^ (z >> np.uint64(30))) * MIX_1
    z = (z ^ (z >> np.uint64(27))) * MIX_2
    return z ^ (z >> np.uint64(31))
