"""Transformers per view: observed rows alone, missing rows stay missing."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from viewmend import MendClassifier, MultiViewData, PerView
from viewmend.data import from_frames
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import InvalidLabelsError, InvalidParameterError, InvalidViewsError
from viewmend.model_selection import LabelledStratifiedKFold

BLOBS = make_multiview_blobs(120, n_views=2, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.3, random_state=0)
DATA, OBSERVED = TASK.data, TASK.data.observed
A, B = DATA.views
HOLES = np.where(np.random.default_rng(0).random(A.shape) < 0.1, np.nan, A)
HOLES[:, 0] = A[:, 0]


def named(data):
    return dict(zip(data.names, data.views, strict=True))


def test_an_imputer_of_cells_leaves_missing_rows_missing():
    made = PerView(SimpleImputer()).fit_transform([HOLES, B])
    seen = OBSERVED[:, 0]
    assert np.isnan(HOLES[seen]).any()
    assert np.isfinite(made.views[0][seen]).all()
    assert np.isnan(made.views[0][~seen]).all()
    assert_array_equal(made.observed, OBSERVED)


@pytest.mark.parametrize(
    "inner",
    [StandardScaler(), PCA(2, random_state=0), make_pipeline(SimpleImputer(), PCA(3))],
    ids=["scaler", "pca", "pipeline"],
)
def test_it_is_the_transformer_by_hand_on_observed_rows(inner):
    per_view = PerView(inner)
    made = per_view.fit_transform(DATA)
    again = per_view.transform(DATA)
    for v, view in enumerate(DATA.views):
        seen = OBSERVED[:, v]
        expected = clone(inner).fit(view[seen]).transform(view[seen])
        for views in (made.views, again.views):
            assert_allclose(views[v][seen], expected, atol=1e-12)
            assert np.isnan(views[v][~seen]).all()
    assert not hasattr(inner, "n_features_in_")


def test_views_have_transformers_of_their_own_or_none():
    by_name = PerView({"view 0": PCA(2)}).fit_transform(DATA)
    by_place = PerView([PCA(2), "passthrough"]).fit_transform([A, B])
    assert by_name.n_features == by_place.n_features == (2, B.shape[1])
    assert_array_equal(by_name.views[1], B)
    assert_array_equal(by_name.views[0], by_place.views[0])


def test_sparse_views_are_never_made_dense():
    text = csr_array(np.eye(60, 5000) + np.eye(60, 5000, 7))
    made = PerView({"text": NoDense(3)}).fit_transform({"text": text, "other": np.ones((60, 2))})
    assert made.n_features == (3, 2)
    mask = np.ones((60, 2), dtype=bool)
    mask[:10, 0] = False
    missing = PerView({"text": NoDense(3)}).fit_transform(
        {"text": text, "other": np.ones((60, 2))}, mask=mask
    )
    expected = NoDense(3).fit_transform(text[10:])
    assert_allclose(missing.views[0][10:], expected, atol=1e-8)
    assert np.isnan(missing.views[0][:10]).all()


class NoDense(TruncatedSVD):
    def __init__(self, n_components=2):
        super().__init__(n_components, random_state=0)

    def fit_transform(self, X, y=None):
        assert not isinstance(X, np.ndarray)
        return super().fit_transform(X, y)


def test_frames_reach_the_transformer_with_their_columns():
    index = ["a", "b", "c"]
    kind = pd.DataFrame({"kind": ["x", None, "y"]}, index=index)
    size = pd.DataFrame({"w": [1.0, 2.0, 3.0]}, index=index)
    per_view = PerView({"kind": OneHotEncoder()}).fit({"kind": kind, "size": size})
    made = per_view.transform({"kind": kind, "size": size})
    assert_array_equal(made.views[0], [[1, 0], [np.nan, np.nan], [0, 1]])
    assert per_view.get_feature_names_out().tolist() == ["kind__kind_x", "kind__kind_y", "size__w"]
    assert made.columns == (("kind_x", "kind_y"), ("w",))


def test_what_a_container_holds_beside_its_views_stays():
    data = MultiViewData(DATA.views, OBSERVED, ("a", "b"), np.arange(120) + 7, y=TASK.y, name="n")
    made = PerView(PCA(2)).fit_transform(data)
    assert_array_equal(made.ids, data.ids)
    assert_array_equal(made.y, data.y)
    assert (made.names, made.name) == (("a", "b"), "n")
    assert made.columns == (("pca0", "pca1"),) * 2


def test_the_index_of_frames_stays():
    pd = pytest.importorskip("pandas")
    names = [f"p{i}" for i in range(120)]
    given = {"a": pd.DataFrame(A, index=names), "b": pd.DataFrame(B, index=names)}
    made = PerView(StandardScaler()).fit_transform(given)
    assert made.ids.tolist() == names
    assert PerView(StandardScaler()).fit_transform({"a": A, "b": B}).ids is None
    with pytest.raises(InvalidLabelsError, match="y must have its rows in the order of the views"):
        MendClassifier(n_rounds=0).fit(made, pd.Series(TASK.y, index=names[::-1]))


def test_new_samples_may_miss_whole_views_and_come_in_any_order():
    per_view = PerView(StandardScaler()).fit({"a": A, "b": B})
    swapped = per_view.transform({"b": B, "a": A})
    assert swapped.names == ("a", "b")
    assert_array_equal(swapped.views[0], per_view.transform([A, B]).views[0])
    alone = per_view.transform({"b": B[OBSERVED[:, 1]]})
    assert np.isnan(alone.views[0]).all()
    assert alone.views[0].shape[1] == A.shape[1]


def test_stacked_arrays_are_split():
    stacked = PerView(StandardScaler(), view_sizes=DATA.n_features).fit(DATA.stacked())
    expected = PerView(StandardScaler()).fit_transform([A, B])
    assert_array_equal(stacked.transform(DATA.stacked()).stacked(), expected.stacked())


def test_inner_parameters_can_be_read_and_set():
    one = PerView(PCA(2))
    assert clone(one).set_params(transformer__n_components=3).transformer.n_components == 3
    assert one.transformer.n_components == 2
    several = PerView({"view 0": PCA(2), "view 1": StandardScaler()})
    params = several.get_params()
    assert params["transformer__view 0__n_components"] == 2
    changed = clone(several).set_params(
        **{"transformer__view 0__n_components": 1, "transformer__view 1": "passthrough"}
    )
    assert changed.fit_transform(DATA).n_features == (1, B.shape[1])
    assert several.fit_transform(DATA).n_features == (2, B.shape[1])
    with pytest.raises(ValueError, match="Invalid parameter"):
        several.set_params(transformers=3)
    with pytest.raises(InvalidParameterError, match=r"views with a .* are \['view 0', 'view 1'\]"):
        several.set_params(**{"transformer__view 2__n_components": 3})


def test_in_a_pipeline_it_learns_from_the_training_part_alone():
    inner = make_pipeline(SimpleImputer(), StandardScaler())
    pipeline = make_pipeline(PerView(inner), MendClassifier(n_rounds=1))
    data = MultiViewData((HOLES, B), OBSERVED, ("a", "b"))
    folds = LabelledStratifiedKFold(3)
    found = cross_validate(pipeline, data, TASK.y_true, cv=folds, return_estimator=True)
    assert found["test_score"].mean() > 0.8
    train = next(iter(folds.split(data, TASK.y_true)))[0]
    imputer, scaler = found["estimator"][0][0].transformers_["a"].named_steps.values()
    assert_allclose(imputer.statistics_, np.nanmean(HOLES[train], axis=0))
    assert_allclose(scaler.mean_, np.nanmean(HOLES[train], axis=0))


def test_a_search_reaches_the_inner_parameters():
    pipeline = make_pipeline(PerView(PCA()), MendClassifier(n_rounds=0))
    grid = {"perview__transformer__n_components": [1, 2]}
    search = GridSearchCV(pipeline, grid, cv=LabelledStratifiedKFold(2)).fit(DATA, TASK.y_true)
    assert set(search.cv_results_["param_perview__transformer__n_components"]) == {1, 2}
    assert search.best_estimator_[0].transformers_["view 0"].n_components_ in (1, 2)


class Doubler(TransformerMixin, BaseEstimator):
    def fit(self, _X, _y=None):
        return self

    def transform(self, X):
        return np.vstack([X, X])


@pytest.mark.parametrize(
    ("transformer", "message"),
    [
        ({"sound": PCA()}, r"unknown view 'sound': the views are \['view 0', 'view 1'\]"),
        ([PCA()], r"one entry per view, 2 for .* but has 1"),
        (PCA, "with fit and transform, or 'passthrough'"),
        ("drop", "with fit and transform, or 'passthrough'"),
        (LinearDiscriminantAnalysis(), "LinearDiscriminantAnalysis, which learns from labels"),
    ],
    ids=["name", "length", "class", "word", "supervised"],
)
def test_wrong_transformers_are_refused(transformer, message):
    with pytest.raises(InvalidParameterError, match=message):
        PerView(transformer).fit(DATA)


def test_what_a_transformer_cannot_do_is_told_with_its_view():
    with pytest.raises(InvalidViewsError, match=r"view 0: Doubler made \d+ rows of"):
        PerView(Doubler()).fit(DATA)
    with pytest.raises(InvalidViewsError, match=r"view 0: PCA cannot be applied.*NaN"):
        PerView(PCA()).fit([HOLES, B])
    with pytest.raises(NotFittedError):
        PerView(PCA()).transform(DATA)
    with pytest.raises(InvalidViewsError, match="view 1 has no observed sample"):
        PerView(PCA()).fit([A, np.full_like(B, np.nan)])
    fitted = PerView(StandardScaler()).fit({"a": A, "b": B})
    with pytest.raises(InvalidViewsError, match="unknown view 'c': fit saw"):
        fitted.transform({"c": A})
    with pytest.raises(InvalidViewsError, match="view 'a' has 1 columns but had"):
        fitted.transform({"a": A[:, :1]})
    with pytest.raises(InvalidViewsError, match="view 'a' must be 2-D"):
        fitted.transform({"a": pd.Series(A[:, 0])})


def test_rows_joined_by_identifier_can_be_transformed():
    frames = {
        "a": pd.DataFrame(A[:5], index=list("vwxyz")),
        "b": pd.DataFrame(B[:5], list("vwxyz")),
    }
    data = from_frames(frames)
    made = PerView(StandardScaler()).fit_transform(data)
    assert_array_equal(made.ids, data.ids)
