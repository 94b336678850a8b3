"""With ``make bounds``, kernels notice an index outside of their arrays."""

import numba
import numpy as np
import pytest

from viewmend.backend import numba_neighbours


@pytest.mark.skipif(not numba.config.BOUNDSCHECK, reason="for make bounds, which checks indices")
@pytest.mark.parametrize("row", [3, 10**6])
def test_an_index_of_no_row_is_noticed(row):
    X, candidates = np.zeros((3, 2)), np.array([[0, row]], dtype=np.int32)
    distances, indices = np.empty((1, 1)), np.empty((1, 1), dtype=np.int32)
    with pytest.raises(IndexError):
        numba_neighbours.measure_candidates(X[:1], X, candidates, distances, indices)
