"""Components of wide sparse views against a decomposition of the dense matrix."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, random_array

from viewmend.core.common.content_order import row_hashes
from viewmend.core.mend import components
from viewmend.core.mend.components import fit_components, rarity, weighed


def counts(n_rows, n_columns, seed=0, density=0.05):
    rng = np.random.default_rng(seed)
    drawn = random_array((n_rows, n_columns), density=density, rng=rng, format="csr")
    drawn.data = np.ceil(4 * drawn.data) * rng.choice([-1, 1, 1], len(drawn.data))
    return csr_array(drawn)


def weighed_by_hand(X):
    X = X.toarray()
    weights = 1 + np.log((1 + len(X)) / (1 + (X != 0).sum(axis=0)))
    T = np.sign(X) * np.sqrt(np.abs(X)) * weights
    lengths = np.linalg.norm(T, axis=1, keepdims=True)
    return T / np.where(lengths == 0, 1, lengths)


def test_rows_are_weighed_by_root_and_rarity():
    X = counts(30, 50)
    assert_allclose(weighed(X, rarity(X)).toarray(), weighed_by_hand(X), atol=1e-12)


def test_components_are_those_of_the_singular_value_decomposition(monkeypatch):
    monkeypatch.setattr(components, "MOST", 7)
    X, new = counts(60, 300), counts(9, 300, seed=1)
    T = weighed_by_hand(X)
    mean = T.mean(axis=0)
    _, _, axes = np.linalg.svd(T - mean, full_matrices=False)
    fitted = fit_components(X)
    signs = np.sign(np.sum(fitted(X) * ((T - mean) @ axes[:7].T), axis=0))
    assert_allclose(fitted(X), signs * ((T - mean) @ axes[:7].T), atol=1e-5)
    mapped = weighed(new, rarity(X)).toarray() - mean
    assert_allclose(fitted(new), signs * (mapped @ axes[:7].T), atol=1e-5)
    assert_array_equal(fitted(new.toarray()), fitted(new))


def test_all_components_keep_all_distances():
    X = counts(50, 400)
    T, mapped = weighed_by_hand(X), fit_components(X)(X)
    squared = ((T[:, None] - T) ** 2).sum(axis=2)
    assert_allclose(((mapped[:, None] - mapped) ** 2).sum(axis=2), squared, atol=1e-5)


def test_many_rows_are_mapped_by_the_components_of_some(monkeypatch):
    """Rows of rank 5: any 40 of them have the same components, up to a rotation."""
    basis = counts(5, 200, density=0.1).toarray()
    picks = np.random.default_rng(2).integers(5, size=400)
    X = csr_array(basis[picks] * np.arange(1, 401)[:, None])
    monkeypatch.setattr(components, "MOST_ROWS", 40)
    mapped, T = fit_components(X)(X), weighed_by_hand(X)
    squared = ((T[:60, None] - T[:60]) ** 2).sum(axis=2)
    assert_allclose(((mapped[:60, None] - mapped[:60]) ** 2).sum(axis=2), squared, atol=1e-5)


@pytest.mark.parametrize("n_rows", [1, 4])
def test_rows_that_are_all_the_same_have_one_component_of_zero(n_rows):
    X = csr_array(np.tile([[0.0, 2.0, 0.0, 1.0]], (n_rows, 1)))
    assert_array_equal(fit_components(X)(X), np.zeros((n_rows, 1)))


def test_sparse_rows_have_the_hashes_of_dense_ones():
    X = counts(40, 90)
    X.data[3] = -0.0
    assert_array_equal(row_hashes(X), row_hashes(X.toarray()))
