"""Completion by low rank: steps of it against the same by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from viewmend.core.common.soft_impute import SubspaceShrink, complete, fill_hidden
from viewmend.impute.low_rank import shrink_singular_values

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) @ RNG.normal(size=(3, 12))


def test_the_subspace_finds_what_the_whole_decomposition_finds():
    noisy = X + 0.01 * RNG.normal(size=X.shape)
    shrink = SubspaceShrink(noisy, rank=5, shrinkage=0.1)
    assert_allclose(shrink.threshold, 0.1 * np.linalg.norm(noisy, 2), rtol=1e-6)
    M, components = shrink(noisy)
    expected, theirs = shrink_singular_values(noisy, shrink.threshold)
    assert_allclose(M, expected, atol=1e-5)
    assert_allclose(components.T @ components, theirs.T @ theirs, atol=1e-5)


@pytest.mark.parametrize("n_hidden", [1, 5, 8, 11])
def test_a_row_is_filled_by_its_ridge_regression(n_hidden):
    components, threshold = RNG.normal(size=(3, 12)), 0.7
    hidden = np.zeros((2, 12), dtype=bool)
    hidden[1, RNG.permutation(12)[:n_hidden]] = True
    rows = np.where(hidden, 0.0, RNG.normal(size=(2, 12)))
    filled = fill_hidden(rows, hidden, components, threshold)
    there = ~hidden[1]
    system = np.vstack([components[:, there].T, np.sqrt(threshold) * np.eye(3)])
    scores = np.linalg.lstsq(system, np.append(rows[1, there], np.zeros(3)))[0]
    expected = np.where(there, rows[1], scores @ components)
    assert_allclose(filled, [rows[0], expected], atol=1e-10)
    assert_allclose(fill_hidden(rows[1:], hidden[1:], components, threshold), filled[1:], atol=0)


def test_entries_of_a_matrix_of_low_rank_come_back():
    hidden = RNG.random(X.shape) < 0.2
    shrink = SubspaceShrink(np.where(hidden, 0.0, X), rank=6, shrinkage=0.01)
    found = complete(np.where(hidden, 0.0, X), hidden, shrink, max_iter=500, tol=1e-5)
    assert np.linalg.norm((found.M - X)[hidden]) < 0.2 * np.linalg.norm(X[hidden])
