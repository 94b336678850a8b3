"""An order of the samples by their content, whatever their order in the file.

Breaking ties, drawing samples and summing all depend on some order of the rows. Here it is the
canonical order, in which samples are sorted by a hash of their content. Work that is done in it,
and whose result is put back in the order of the file, is *exactly* equivariant to permutations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from viewmend.backend.numba_scans import GOLDEN, MIX_1, MIX_2, hash_rows

# Rows of every class that come before further ones of any: a class without a row in the sample
# would not be found. One of three can be held out without the others.
LEAST_OF_CLASS = 3


def row_hashes(X: np.ndarray | csr_array) -> np.ndarray:
    """Hash (n_rows,) of uint64 of the content of every row of ``X`` (n_rows, n_features).

    Equal rows have equal hashes, sparse or not, and rows of float32 the hashes of the same numbers
    in float64; other rows share one with probability ``2**-64``. All NaN count as the same.
    """
    n_features = X.shape[1]
    # An odd factor per column: the same number in another column gives another hash.
    salts = _mix(np.arange(1, n_features + 1, dtype=np.uint64) * GOLDEN) | np.uint64(1)
    if not isinstance(X, np.ndarray):
        # Zeros add nothing to the sums.
        bits = _mix((X.data.astype(np.float64) + 0.0).view(np.uint64) * GOLDEN)
        ends = np.concatenate([[np.uint64(0)], np.cumsum(bits * salts[X.indices])])
        return _mix(ends[X.indptr[1:]] - ends[X.indptr[:-1]])
    X = np.ascontiguousarray(X, dtype=np.result_type(X, np.float32))
    return _mix(hash_rows(X, salts))


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
    total: np.ndarray = sum(hashes_by_view(views, observed), np.zeros(len(observed), np.uint64))
    return total


def hashes_by_view(
    views: Sequence[np.ndarray | csr_array], observed: np.ndarray
) -> list[np.ndarray]:
    """Hashes (n_samples,) of uint64 of the rows of every view, zero where it was not observed."""
    # Of missing rows too, which is less work than a copy of the others.
    pairs = zip(views, observed.T, strict=True)
    return [np.where(seen, row_hashes(X_v), np.uint64(0)) for X_v, seen in pairs]


def drawn_rows(hashes: np.ndarray, codes: np.ndarray, first: np.ndarray, size: int) -> np.ndarray:
    """A sample (at most size,) of the rows that does not depend on their order, in canonical order.

    Rows that come ``first`` (n_rows,) of bool are all taken, or those of the smallest ``hashes``
    (n_rows,) of uint64 where they are more than ``size``, of which up to `LEAST_OF_CLASS` of every
    class in turn are the first. The others follow by their hashes, and count once where they have
    the same one. ``codes`` (n_rows,) are as in `canonical_order`. Of rows in parts, the sample of
    the samples of the parts is that of all rows.
    """
    order = np.lexsort((codes, hashes))
    chosen, others = order[first[order]], order[~first[order]]
    if len(chosen) > size:
        turns = np.minimum(_places_in_class(codes[chosen]), LEAST_OF_CLASS)
        chosen = chosen[np.argsort(turns, kind="stable")[:size]]
    # The first row of every hash: the least code, then the least number.
    others = others[np.unique(hashes[others], return_index=True)[1]]
    drawn = np.concatenate([chosen, others[: size - len(chosen)]])
    # By numbers last, because rows that came first may stand behind their like now.
    return np.asarray(drawn[np.lexsort((drawn, codes[drawn], hashes[drawn]))])


def bottom_rows(
    X: np.ndarray | csr_array, size: int, seed: int = 0, among: np.ndarray | None = None
) -> np.ndarray:
    """A uniform sample (at most size,) of the distinct rows that does not depend on their order.

    The rows of the smallest seeded hashes are taken, a "bottom-k" sample, in the order of their
    hashes. A row that occurs many times counts once, by its first occurrence. Only the rows
    ``among`` (n_rows,) of bool are looked at, by default all.
    """
    keys = _mix(row_hashes(X) ^ _mix(np.array([seed + 1], dtype=np.uint64) * GOLDEN))
    if among is None:
        return np.unique(keys, return_index=True)[1][:size]
    rows = np.flatnonzero(among)
    return rows[np.unique(keys[rows], return_index=True)[1][:size]]


def _places_in_class(codes: np.ndarray) -> np.ndarray:
    """How many rows before each, (n_rows,), have the same of the ``codes`` (n_rows,)."""
    by_class = np.argsort(codes, kind="stable")
    _, starts, sizes = np.unique(codes[by_class], return_index=True, return_counts=True)
    places = np.empty(len(codes), dtype=np.intp)
    places[by_class] = np.arange(len(codes)) - np.repeat(starts, sizes)
    return places


def _mix(z: np.ndarray) -> np.ndarray:
    z = (z ^ (z >> np.uint64(30))) * MIX_1
    z = (z ^ (z >> np.uint64(27))) * MIX_2
    return z ^ (z >> np.uint64(31))
