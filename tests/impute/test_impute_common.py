"""What all imputers promise."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from viewmend.data.container import MultiViewData
from viewmend.exceptions import InvalidParameterError, InvalidViewsError
from viewmend.impute import (
    ColumnMeanImputer,
    DeepMatrixFactorization,
    LowRankImputer,
    NeighbourImputer,
)

RNG = np.random.default_rng(0)
SIZES = (5, 4, 6)
OBSERVED = RNG.random((40, 3)) < 0.5
OBSERVED[np.arange(40), np.arange(40) % 3] = True
FULL = [RNG.normal(size=(40, 2)) @ RNG.normal(size=(2, d)) + RNG.normal(size=d) for d in SIZES]
DATA = MultiViewData(
    tuple(np.where(seen[:, None], X, np.nan) for seen, X in zip(OBSERVED.T, FULL, strict=True)),
    OBSERVED,
    ("a", "b", "c"),
)
IMPUTERS = [
    ColumnMeanImputer(),
    NeighbourImputer(3),
    LowRankImputer(tol=1e-10, max_iter=2000),
    DeepMatrixFactorization(2, 8, max_iter=15, random_state=0, dtype="float64"),
]
every = pytest.mark.parametrize("imputer", IMPUTERS, ids=lambda imputer: type(imputer).__name__)


# Version, sum and norm of all fills of `DATA`.
FILLS = {
    "ColumnMeanImputer": (1, -19.01635838, 19.84642859),
    "NeighbourImputer": (1, -38.44292821, 22.31982212),
    "LowRankImputer": (1, -23.57554550, 20.13407466),
    "DeepMatrixFactorization": (2, -31.34457301, 22.74482211),
}


def stacked(imputer, *args, **kwargs):
    return clone(imputer).fit_transform(*args, **kwargs).stacked()


@every
def test_observed_rows_stay_and_all_others_are_filled(imputer):
    before = [view.copy() for view in DATA.views]
    model = clone(imputer)
    for completed in (model.fit_transform(DATA), model.transform(DATA)):
        assert completed.observed.all()
        assert completed.names == DATA.names
        for v, view in enumerate(completed.views):
            np.testing.assert_array_equal(view[OBSERVED[:, v]], FULL[v][OBSERVED[:, v]])
            assert np.isfinite(view).all()
    for view, copy in zip(DATA.views, before, strict=True):
        np.testing.assert_array_equal(view, copy)


@every
def test_fills_are_closer_than_zero(imputer):
    lost = np.repeat(~OBSERVED, SIZES, axis=1)
    truth = np.hstack(FULL)[lost]
    assert np.linalg.norm(stacked(imputer, DATA)[lost] - truth) < np.linalg.norm(truth)


@every
def test_all_forms_of_input_are_the_same(imputer):
    expected = stacked(imputer, DATA)
    sized = clone(imputer).set_params(view_sizes=SIZES)
    np.testing.assert_array_equal(stacked(imputer, list(DATA.views)), expected)
    np.testing.assert_array_equal(stacked(imputer, FULL, mask=OBSERVED), expected)
    np.testing.assert_array_equal(stacked(sized, DATA.stacked()), expected)
    named = dict(zip("abc", DATA.views, strict=True))
    np.testing.assert_array_equal(stacked(imputer, named), expected)


@every
def test_hidden_values_do_not_leak(imputer):
    other = [np.where(seen[:, None], X, 7.0) for seen, X in zip(OBSERVED.T, FULL, strict=True)]
    np.testing.assert_array_equal(
        stacked(imputer, other, mask=OBSERVED), stacked(imputer, FULL, mask=OBSERVED)
    )


@every
def test_rows_permute(imputer):
    """Short of chaos: deep factorisation follows signs, so rounding grows with the rounds."""
    order = RNG.permutation(40)
    np.testing.assert_allclose(
        stacked(imputer, DATA[order]), stacked(imputer, DATA)[order], atol=1e-8
    )


@pytest.mark.parametrize("imputer", IMPUTERS[:-1], ids=lambda imputer: type(imputer).__name__)
def test_views_permute(imputer):
    """All but deep factorisation, whose first weights are drawn column by column."""
    turned = MultiViewData(DATA.views[::-1], OBSERVED[:, ::-1], DATA.names[::-1])
    found = clone(imputer).fit_transform(turned).views[::-1]
    np.testing.assert_allclose(np.hstack(found), stacked(imputer, DATA), atol=1e-8)


@every
def test_same_seed_same_fill(imputer):
    np.testing.assert_array_equal(stacked(imputer, DATA), stacked(imputer, DATA))


def test_other_seed_other_fill():
    imputer = IMPUTERS[-1]
    other = clone(imputer).set_params(random_state=1)
    assert np.abs(stacked(imputer, DATA) - stacked(other, DATA)).max() > 1e-3


@every
def test_new_samples_may_miss_whole_views(imputer):
    model = clone(imputer).fit(DATA)
    expected = model.transform([FULL[0][:3], None, None])
    named = model.transform({"a": FULL[0][:3]})
    np.testing.assert_array_equal(named.stacked(), expected.stacked())
    np.testing.assert_array_equal(named.views[0], FULL[0][:3])
    assert np.isfinite(named.stacked()).all()


@every
def test_complete_samples_come_back_in_arrays_of_their_own(imputer):
    model = clone(imputer).fit(DATA)
    completed = model.transform(FULL)
    for view, X in zip(completed.views, FULL, strict=True):
        np.testing.assert_array_equal(view, X)
        assert not np.shares_memory(view, X)


@every
def test_works_in_a_pipeline_and_keeps_its_parameters(imputer):
    params = imputer.get_params()
    pipeline = make_pipeline(clone(imputer), ColumnMeanImputer())
    np.testing.assert_array_equal(pipeline.fit_transform(DATA).stacked(), stacked(imputer, DATA))
    assert clone(imputer).get_params() == imputer.get_params() == params


@every
def test_unfitted_and_mismatched_input_are_errors(imputer):
    with pytest.raises(NotFittedError):
        clone(imputer).transform(DATA)
    model = clone(imputer).fit(DATA)
    with pytest.raises(InvalidViewsError, match="had 5 in fit"):
        model.transform([FULL[0][:, :2], FULL[1], FULL[2]])


@pytest.mark.parametrize(
    ("imputer", "name"),
    [
        (NeighbourImputer(0), "n_neighbors"),
        (LowRankImputer(rank=0), "rank"),
        (LowRankImputer(shrinkage=1.5), "shrinkage"),
        (LowRankImputer(center="yes"), "center"),
        (DeepMatrixFactorization(n_components=0), "n_components"),
        (DeepMatrixFactorization(n_hidden=2.5), "n_hidden"),
        (DeepMatrixFactorization(weight_decay=-1), "weight_decay"),
        (DeepMatrixFactorization(dtype="int"), "dtype"),
    ],
    ids=str,
)
def test_wrong_parameters_are_named(imputer, name):
    with pytest.raises(InvalidParameterError, match=name):
        imputer.fit(DATA)


@every
def test_other_numbers_come_with_another_version(imputer):
    """Completions are cached by version: whoever changes the fills raises it."""
    fills = stacked(imputer, DATA)[np.repeat(~OBSERVED, SIZES, axis=1)]
    found = imputer.version, fills.sum(), np.linalg.norm(fills)
    assert found == pytest.approx(FILLS[type(imputer).__name__], rel=1e-6)
