"""Compiled looks at tables against the same in NumPy, also where cells are missing or infinite."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from viewmend.backend import numba_scans
from viewmend.backend.numba_scans import column_ends, count_missing_cells, row_ends

TABLES = st.sampled_from([np.float32, np.float64]).flatmap(
    lambda dtype: arrays(
        dtype,
        array_shapes(min_dims=2, max_dims=2, max_side=7),
        elements=st.one_of(
            st.sampled_from([np.nan, 0.0, -0.0, np.inf, -np.inf]), st.floats(-9, 9, width=32)
        ),
    )
)


@pytest.fixture(params=[1, 8, 1 << 19], autouse=True)
def block(request, monkeypatch):
    """Cells per block: one row at a time, a few, all."""
    monkeypatch.setattr(numba_scans, "BLOCK", request.param)


@given(X=TABLES)
def test_ends_pass_over_missing_cells(X):
    for axis, ends in ((1, row_ends(X)), (0, column_ends(X))):
        expected = [extreme.reduce(X, axis=axis) for extreme in (np.fmin, np.fmax)]
        np.testing.assert_array_equal(ends, np.stack(expected))


@given(X=TABLES)
def test_missing_cells_are_counted_by_row(X):
    np.testing.assert_array_equal(count_missing_cells(X), np.isnan(X).sum(axis=1))
