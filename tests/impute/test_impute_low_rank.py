"""softImpute and the iterative SVD."""

import numpy as np
import pytest

from viewmend.data.container import MultiViewData
from viewmend.exceptions import InvalidParameterError
from viewmend.impute import ColumnMeanImputer, LowRankImputer
from viewmend.impute.low_rank import shrink_singular_values, soft_impute


def low_rank_data(n=60, sizes=(12, 10, 9), rank=3, seed=0):
    """Views of a matrix of low rank with a third of the pairs missing, and that matrix."""
    rng = np.random.default_rng(seed)
    full = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, sum(sizes)))
    observed = rng.random((n, len(sizes))) < 0.67
    observed[np.arange(n), rng.integers(len(sizes), size=n)] = True
    blocks = np.split(full, np.cumsum(sizes)[:-1], axis=1)
    views = [np.where(seen[:, None], X, np.nan) for seen, X in zip(observed.T, blocks, strict=True)]
    return MultiViewData(tuple(views), observed, ("a", "b", "c")), full


DATA, FULL = low_rank_data()
HIDDEN = np.repeat(~DATA.observed, DATA.n_features, axis=1)
X = np.where(HIDDEN, 0, FULL)
THRESHOLD = 0.1 * np.linalg.norm(X, 2)


def shrunk_by_svd(A, threshold, rank=None):
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    kept = np.maximum(s - threshold, 0)[:rank]
    return (U[:, : len(kept)] * kept) @ Vt[: len(kept)]


@pytest.mark.parametrize("shape", [(40, 12), (12, 40), (15, 15)])
@pytest.mark.parametrize(("threshold", "rank"), [(3.0, None), (0.0, 4), (3.0, 2), (1e3, None)])
def test_shrinking_is_that_of_a_full_svd(shape, threshold, rank):
    A = np.random.default_rng(0).normal(size=shape)
    M, components = shrink_singular_values(A, threshold, rank)
    expected = shrunk_by_svd(A, threshold, rank)
    np.testing.assert_allclose(M, expected, atol=1e-10)
    # The components are a square root of M^T M, through which a new row is regressed.
    values = np.linalg.svd(expected, compute_uv=False)
    gram = components @ components.T
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-8)
    np.testing.assert_allclose(
        np.sort(np.diag(gram)), np.sort(values)[len(values) - len(components) :], atol=1e-8
    )


def test_soft_impute_satisfies_the_optimality_conditions():
    """O * (X - M) = threshold * (U V^T + W), U^T W = 0, W V = 0, |W| <= 1: M is the optimum."""
    found = soft_impute(X, HIDDEN, THRESHOLD, None, max_iter=5000, tol=1e-12)
    assert found.status == "converged"
    residual = np.where(HIDDEN, 0, X - found.M) / THRESHOLD
    U, s, Vt = np.linalg.svd(found.M, full_matrices=False)
    U, Vt = U[:, s > 1e-6], Vt[s > 1e-6]
    W = residual - U @ Vt
    np.testing.assert_allclose(U.T @ W, 0, atol=1e-6)
    np.testing.assert_allclose(W @ Vt.T, 0, atol=1e-6)
    assert np.linalg.norm(W, 2) <= 1 + 1e-6
    assert 0 < len(Vt) < min(X.shape)


def test_soft_impute_closes_the_duality_gap():
    """Any R on O with |R| <= threshold bounds the optimum by 1/2 |X|^2 - 1/2 |X - R|^2."""
    found = soft_impute(X, HIDDEN, THRESHOLD, None, max_iter=5000, tol=1e-12)
    R = np.where(HIDDEN, 0, X - found.M)
    R *= min(1, THRESHOLD / np.linalg.norm(R, 2))
    primal = 0.5 * np.sum((X - found.M)[~HIDDEN] ** 2) + THRESHOLD * np.linalg.norm(found.M, "nuc")
    dual = 0.5 * np.sum(X**2) - 0.5 * np.sum((X - R) ** 2)
    np.testing.assert_allclose(primal, dual, rtol=1e-6)


def test_momentum_ends_where_plain_rounds_end():
    found = soft_impute(X, HIDDEN, THRESHOLD, None, max_iter=5000, tol=1e-12)
    M = np.zeros_like(X)
    for _ in range(3000):
        M = shrunk_by_svd(np.where(HIDDEN, M, X), THRESHOLD)
    np.testing.assert_allclose(found.M, M, atol=1e-6)


@pytest.mark.parametrize("options", [{"rank": 3, "shrinkage": 0}, {"shrinkage": 1e-6}])
def test_hidden_rows_of_a_low_rank_matrix_are_recovered(options):
    model = LowRankImputer(center=False, max_iter=20000, tol=1e-9, **options)
    completed = model.fit_transform(DATA)
    np.testing.assert_allclose(completed.stacked(), FULL, atol=1e-2)
    assert model.rank_ == 3


def test_full_shrinkage_is_the_column_mean():
    flat = LowRankImputer(shrinkage=1).fit(DATA)
    means = ColumnMeanImputer().fit(DATA)
    np.testing.assert_allclose(
        flat.transform(DATA).stacked(), means.transform(DATA).stacked(), atol=1e-10
    )
    assert flat.rank_ == 0


def test_new_samples_get_the_rows_that_fit_would_give_them():
    """At the optimum the rows of M solve the ridge problem that new rows are given."""
    model = LowRankImputer(tol=1e-12, max_iter=5000)
    fitted = model.fit_transform(DATA)
    np.testing.assert_allclose(model.transform(DATA).stacked(), fitted.stacked(), atol=1e-5)


def test_new_samples_of_a_low_rank_matrix_are_recovered():
    model = LowRankImputer(rank=3, shrinkage=0, center=False, max_iter=20000, tol=1e-10).fit(DATA)
    weights = np.random.default_rng(5).normal(size=(6, 60)) / 8
    new = np.split(weights @ FULL, np.cumsum(DATA.n_features)[:-1], axis=1)
    completed = model.transform([new[0], None, None])
    np.testing.assert_allclose(completed.stacked(), weights @ FULL, atol=1e-3)


def test_nothing_to_bound_the_hidden_entries_is_an_error():
    with pytest.raises(InvalidParameterError, match="set one of them"):
        LowRankImputer(shrinkage=0).fit(DATA)
