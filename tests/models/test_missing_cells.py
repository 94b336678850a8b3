"""Every estimator takes rows that are empty in part, in fit and in predict."""

import io

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import cross_validate

import viewmend
from viewmend import AGFTIClassifier, LabelSearchCV, MendClassifier, check_views
from viewmend.baselines import (
    NaNBoostingClassifier,
    SelfTrainingLogistic,
    UnionGraphClassifier,
)
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import DataWarning, InvalidParameterError, InvalidViewsError
from viewmend.impute import (
    ColumnMeanImputer,
    DeepMatrixFactorization,
    LowRankImputer,
    NeighbourImputer,
)
from viewmend.model_selection import LabelledStratifiedKFold

BLOBS = make_multiview_blobs(150, n_views=2, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.3, label_rate=0.2, random_state=0)
RNG = np.random.default_rng(0)
HOLES = [np.where(RNG.random(view.shape) < 0.2, np.nan, view) for view in TASK.data.views]
# Every row that was there keeps a cell.
for _view, _holes in zip(TASK.data.views, HOLES, strict=True):
    _holes[:, 0] = _view[:, 0]
NEW = [view[:6] + 0.1 for view in HOLES]

MODELS = [
    MendClassifier(n_rounds=2),
    AGFTIClassifier(n_anchors=16, max_iter=3, tol=1.0, random_state=0),
]
BASELINES = [UnionGraphClassifier(), SelfTrainingLogistic(), NaNBoostingClassifier()]
IMPUTERS = [
    ColumnMeanImputer(),
    NeighbourImputer(),
    LowRankImputer(),
    DeepMatrixFactorization(2, 8, max_iter=5, random_state=0),
]

pytestmark = pytest.mark.filterwarnings("ignore::viewmend.exceptions.DataWarning")


def name(thing):
    return type(thing).__name__


@pytest.mark.parametrize("model", [*MODELS, *BASELINES], ids=name)
def test_classifiers_fit_and_predict(model):
    fitted = clone(model).fit(HOLES, TASK.y)
    hits = (fitted.transduction_ == TASK.y_true)[TASK.unlabelled]
    assert hits.mean() > 0.8
    if hasattr(fitted, "predict"):
        shares = fitted.predict_proba(NEW)
        assert_allclose(shares.sum(axis=1), 1)
        assert (fitted.predict(NEW) == TASK.y_true[:6]).mean() > 0.6


@pytest.mark.parametrize("imputer", IMPUTERS, ids=name)
def test_imputers_fill_cells_first(imputer):
    fitted = clone(imputer)
    for made in (fitted.fit_transform(HOLES), fitted.transform(HOLES)):
        assert np.isfinite(made.stacked()).all()
        there = ~np.isnan(HOLES[0])
        assert_array_equal(made.views[0][there], HOLES[0][there])


@pytest.mark.parametrize("model", MODELS, ids=name)
def test_rows_in_another_order_give_the_same_model(model):
    order = np.random.default_rng(1).permutation(len(TASK.y))
    one = clone(model).fit(HOLES, TASK.y)
    other = clone(model).fit([view[order] for view in HOLES], TASK.y[order])
    assert_array_equal(other.label_distributions_, one.label_distributions_[order])


@pytest.mark.parametrize("how", ["low_rank", "median"])
def test_new_rows_do_not_depend_on_each_other(how):
    model = MendClassifier(n_rounds=1, missing_cells=how).fit(HOLES, TASK.y)
    together = model.predict_proba(NEW)
    alone = [model.predict_proba([view[[i]] for view in NEW])[0] for i in range(6)]
    assert_allclose(alone, together, atol=1e-5)


def test_medians_are_those_of_the_fit():
    model = MendClassifier(n_rounds=1, missing_cells="median").fit(HOLES, TASK.y)
    medians = [np.nanmedian(view, axis=0) for view in HOLES]

    def by_hand(views):
        gaps = [np.isnan(view) & ~np.isnan(view).all(axis=1)[:, None] for view in views]
        return [np.where(g, m, v) for g, m, v in zip(gaps, medians, views, strict=True)]

    expected = MendClassifier(n_rounds=1).fit(by_hand(HOLES), TASK.y)
    assert_array_equal(model.label_distributions_, expected.label_distributions_)
    assert_array_equal(model.predict_proba(NEW), expected.predict_proba(by_hand(NEW)))


@pytest.mark.parametrize("model", MODELS, ids=name)
def test_what_fills_cells_is_saved(model):
    fitted, file = clone(model).fit(HOLES, TASK.y), io.BytesIO()
    viewmend.save(fitted, file)
    file.seek(0)
    loaded = viewmend.load(file)
    assert_array_equal(loaded.predict_proba(NEW), fitted.predict_proba(NEW))


def test_a_fit_on_complete_rows_can_predict_others():
    model = MendClassifier(n_rounds=1).fit(TASK.data, TASK.y)
    assert_array_equal(model.predict(NEW)[:3], TASK.y_true[:3])


@pytest.mark.parametrize("model", MODELS, ids=name)
def test_missing_cells_can_be_an_error(model):
    strict = clone(model).set_params(missing_cells="error")
    with pytest.raises(InvalidViewsError, match="partly NaN"):
        strict.fit(HOLES, TASK.y)
    fitted = strict.fit(TASK.data, TASK.y)
    with pytest.raises(InvalidViewsError, match="partly NaN"):
        fitted.predict(NEW)
    with pytest.raises(InvalidParameterError, match="missing_cells"):
        clone(model).set_params(missing_cells="mean").fit(TASK.data, TASK.y)


@pytest.mark.filterwarnings("default::viewmend.exceptions.DataWarning")
def test_a_fit_tells_once_what_it_filled():
    with pytest.warns(DataWarning) as caught:
        MendClassifier(n_rounds=1).fit(HOLES, TASK.y)
    told = [str(entry.message) for entry in caught if "missing cell" in str(entry.message)]
    assert len(told) == 1
    gaps = np.isnan(HOLES[0][TASK.data.observed[:, 0]]).sum()
    assert f"view 0: {gaps} missing cell(s)" in told[0]


def test_searches_and_folds_take_them_too():
    search = LabelSearchCV(MendClassifier(n_rounds=1), {"spreading": [0.9]}, cv=2)
    found = search.fit(HOLES, TASK.y)
    assert_allclose(found.predict_proba(NEW).sum(axis=1), 1)
    scores = cross_validate(
        MendClassifier(n_rounds=1), check_views(HOLES), TASK.y_true, cv=LabelledStratifiedKFold(2)
    )
    assert scores["test_score"].min() > 0.7
    with pytest.raises(InvalidParameterError, match=r"missing_cells.*how the data is read"):
        LabelSearchCV(MendClassifier(), {"missing_cells": ["median"]}).fit(HOLES, TASK.y)
