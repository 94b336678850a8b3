"""Rows of zeros are data, and samples without any view are kept: in fits, searches, predictions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from viewmend import (
    AGFTIClassifier,
    LabelSearchCV,
    MendClassifier,
    check_views,
    load,
    save,
)
from viewmend.baselines import (
    FMSELClassifier,
    MeanImputedLabelSpreading,
    NaNBoostingClassifier,
    SelfTrainingLogistic,
    SimilarityFusionClassifier,
    UnionGraphClassifier,
)
from viewmend.core.common.zero_rows import with_evidence, zero_row_evidence
from viewmend.exceptions import DataWarning, InvalidLabelsError, InvalidViewsError
from viewmend.impute import (
    ColumnMeanImputer,
    DeepMatrixFactorization,
    LowRankImputer,
    NeighbourImputer,
)

MEND = {"n_rounds": 2, "n_landmarks": 60}
AGFTI = {"random_state": 0, "n_anchors": 8, "max_iter": 3, "tol": 1.0}
CLASSIFIERS = {
    "mend": lambda: MendClassifier(**MEND),
    "agfti": lambda: AGFTIClassifier(**AGFTI),
    "search": lambda: LabelSearchCV(MendClassifier(**MEND), {"spreading": [0.9]}, cv=2),
    "union": UnionGraphClassifier,
    "snf": SimilarityFusionClassifier,
    "mean": MeanImputedLabelSpreading,
    "fmsel": lambda: FMSELClassifier(imputer=ColumnMeanImputer(), max_iter=3),
    "boosting": lambda: NaNBoostingClassifier(max_iter=5, random_state=0),
    "self-training": SelfTrainingLogistic,
}
IMPUTERS = [
    ColumnMeanImputer(),
    NeighbourImputer(n_neighbors=3),
    LowRankImputer(),
    DeepMatrixFactorization(n_components=2, n_hidden=4, max_iter=5, random_state=0),
]


def sparse_samples(n=90, seed=0):
    """Words of three topics, a fifth of the texts empty at random, beside a view of reals."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    words = rng.poisson(0.1 + 1.5 * (np.arange(30) // 10 == y[:, None])).astype(float)
    words[rng.random(n) < 0.2] = 0
    reals = rng.normal(size=(n, 5)) + 2 * np.eye(5)[y]
    labels = np.where(np.arange(n) < 45, y, -1)
    return [words, reals], y, labels


def with_unseen(views, labels, rows):
    """The same with samples that have no view put in at some rows, labelled 0, -1, 1, -1, ..."""
    seen = np.setdiff1d(np.arange(len(labels) + len(rows)), rows)
    padded = [np.full((len(seen) + len(rows), view.shape[1]), np.nan) for view in views]
    for view, part in zip(padded, views, strict=True):
        view[seen] = part
    y = np.full(len(seen) + len(rows), -1)
    y[seen] = labels
    y[rows[::2]] = np.arange(len(rows[::2])) % 2
    return padded, y, seen


def silently(fit):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit()


# ------------------------------------------------------------------ samples without any view


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_samples_without_any_view_change_nothing_for_the_others_and_get_the_prior(name):
    views, _, labels = sparse_samples()
    rows = np.array([0, 7, 50, 93])
    padded, y, seen = with_unseen(views, labels, rows)
    alone = silently(lambda: CLASSIFIERS[name]().fit(views, labels))
    with pytest.warns(DataWarning, match="have no view at all") as caught:
        model = CLASSIFIERS[name]().fit(padded, y)
    told = [str(w.message) for w in caught if "no view at all" in str(w.message)]
    assert len(told) == 1
    assert "4 of" in told[0]

    np.testing.assert_array_equal(model.label_distributions_[seen], alone.label_distributions_)
    np.testing.assert_array_equal(model.transduction_[seen], alone.transduction_)
    shares = np.bincount(y[y >= 0]) / np.sum(y >= 0)
    np.testing.assert_allclose(model.label_distributions_[rows], np.tile(shares, (4, 1)))
    np.testing.assert_array_equal(model.transduction_[rows[::2]], [0, 1])
    fitted = getattr(model, "best_estimator_", model)
    assert fitted.unreachable_[rows].all()
    assert not fitted.observed_[rows].any()
    assert fitted.observed_[seen].sum() == 2 * len(seen)


@pytest.mark.parametrize("name", ["mend", "agfti", "boosting", "self-training", "fmsel"])
def test_new_samples_without_any_view_get_the_prior_and_are_counted(name):
    views, _, labels = sparse_samples()
    model = silently(lambda: CLASSIFIERS[name]().fit(views, labels))
    new = [view[:6].copy() for view in views]
    expected = model.predict_proba(new)
    for view in new:
        view[[1, 4]] = np.nan
    with pytest.warns(DataWarning, match=r"2 of 6 samples have no view at all"):
        shares = model.predict_proba(new)
    prior = np.bincount(labels[labels >= 0]) / np.sum(labels >= 0)
    np.testing.assert_allclose(shares[[1, 4]], np.tile(prior, (2, 1)))
    np.testing.assert_allclose(shares[[0, 2, 3, 5]], expected[[0, 2, 3, 5]], rtol=1e-4)
    with pytest.warns(DataWarning, match=r"2 of 2 samples have no view at all"):
        np.testing.assert_allclose(model.predict_proba([v[[1, 4]] for v in new])[0], prior)


def test_samples_without_any_view_are_counted_together_with_other_unreachable_ones():
    rng = np.random.default_rng(0)
    far = rng.normal(size=(40, 2)) + np.repeat([[0, 0], [1000, 0]], 20, axis=0)
    y = np.where(np.arange(40) < 6, np.arange(40) % 2, -1)
    padded, labels, _ = with_unseen([far], y, np.array([3, 11]))
    with pytest.warns(DataWarning) as caught:
        model = UnionGraphClassifier(n_neighbors=3, normalize=None).fit(padded, labels)
    assert len(caught) == 1
    assert model.unreachable_.sum() == 22
    assert "22 of 42" in str(caught[0].message)
    assert "2 of them because they have no view at all" in str(caught[0].message)


def test_attributes_of_samples_have_a_row_for_every_sample():
    views, _, labels = sparse_samples()
    rows = np.array([0, 7, 50, 93])
    padded, y, seen = with_unseen(views, labels, rows)
    mend, alone = silently(
        lambda: [MendClassifier(**MEND).fit(*d) for d in ((padded, y), (views, labels))]
    )
    assert mend.graph_.shape == (94, 94)
    assert mend.graph_[rows].nnz == 0
    assert (mend.graph_[seen][:, seen] != alone.graph_).nnz == 0
    np.testing.assert_array_equal(mend.off_graph_[rows], True)
    agfti = silently(lambda: AGFTIClassifier(**AGFTI).fit(padded, y))
    assert agfti.fused_graph_.shape == (94, 8)
    assert agfti.view_graphs_.shape == (2, 94, 8)
    np.testing.assert_allclose(agfti.fused_graph_.sum(axis=1), np.isin(np.arange(94), seen))


@pytest.mark.parametrize("name", ["mend", "agfti"])
def test_explanations_add_up_also_for_samples_set_apart(name):
    views, _, labels = sparse_samples()
    padded, y, _ = with_unseen(views, labels, np.array([0, 7, 50, 93]))
    padded[1][[1, 60]] = np.nan
    padded[0][[1, 60, 61]] = 0
    model = silently(lambda: CLASSIFIERS[name]().fit(padded, y))
    told = model.explain(np.arange(94))
    shares, turn = model.label_distributions_, np.arange(94)
    codes = np.searchsorted(model.classes_, told.labels)
    rivals = np.searchsorted(model.classes_, told.rivals)
    expected = np.log(shares[turn, codes]) - np.log(shares[turn, rivals])
    # Mend's scores are of float32, and so are those that its reasons come from.
    tolerance = 1e-3 if name == "mend" else 1e-6
    np.testing.assert_allclose(told.log_odds.sum(axis=1), expected, rtol=1e-6, atol=tolerance)
    apart = [0, 1, 7, 50, 60, 93]
    assert not told.support[apart].any()
    assert not told.borrowed[apart].any()
    assert told.reasons[-1] == "zero rows"


def test_models_with_samples_set_apart_come_back_from_files(tmp_path):
    views, _, labels = sparse_samples()
    padded, y, _ = with_unseen(views, labels, np.array([0, 7]))
    for model in (MendClassifier(**MEND), AGFTIClassifier(**AGFTI)):
        silently(lambda model=model: model.fit(padded, y))
        save(model, tmp_path / "model.vm")
        again = load(tmp_path / "model.vm")
        np.testing.assert_array_equal(again.unreachable_, model.unreachable_)
        np.testing.assert_array_equal(again.predict_proba(views), model.predict_proba(views))
        np.testing.assert_array_equal(
            again.explain([0, 3]).log_odds, model.explain([0, 3]).log_odds
        )


def test_a_class_whose_labelled_samples_have_no_view_is_named():
    views, _, labels = sparse_samples()
    for view in views:
        view[labels == 2] = np.nan
    message = r"class 2 has labels, but only of samples without any view.*label another one"
    with pytest.raises(InvalidLabelsError, match=message):
        MendClassifier().fit(views, labels)
    with pytest.raises(InvalidViewsError, match="view 0 has no observed sample"):
        MendClassifier().fit([view * np.nan for view in views], labels)


@pytest.mark.parametrize("imputer", IMPUTERS, ids=lambda imputer: type(imputer).__name__)
def test_imputers_leave_samples_without_any_view_missing(imputer):
    views, _, labels = sparse_samples()
    views[1][::4] = np.nan
    rows = np.array([0, 7, 50])
    padded, _, seen = with_unseen(views, labels, rows)
    alone = imputer.fit_transform(views)
    with pytest.warns(DataWarning, match=r"3 of 93 samples have no view at all and stay missing"):
        filled = imputer.fit_transform(padded)
    np.testing.assert_array_equal(filled.observed.any(axis=1), np.isin(np.arange(93), seen))
    for view, expected in zip(filled.views, alone.views, strict=True):
        np.testing.assert_array_equal(view[seen], expected)
        assert np.isnan(view[rows]).all()
    with pytest.warns(DataWarning, match="stay missing"):
        again = imputer.transform(padded)
    np.testing.assert_array_equal(again.observed, filled.observed)


# ------------------------------------------------------------------ rows of zeros


def test_zero_rows_are_observed_without_a_word():
    views, _, labels = sparse_samples()
    zero = ~views[0].any(axis=1)
    assert 0.1 < zero.mean() < 0.4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_views(views).observed.all()
        model = MendClassifier(**MEND).fit(views, labels)
        model.predict_proba(views)
    assert model.observed_.all()
    assert not model.unreachable_.any()


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_zero_rows_are_nobodys_neighbours(name):
    """What a method says of the others is what it says where zero rows are missing."""
    views, _, labels = sparse_samples()
    zero = ~views[0].any(axis=1)
    missing = [views[0].copy(), views[1]]
    missing[0][zero] = np.nan
    model, other = silently(lambda: [CLASSIFIERS[name]().fit(v, labels) for v in (views, missing)])
    np.testing.assert_array_equal(
        model.label_distributions_[~zero], other.label_distributions_[~zero]
    )


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_that_a_row_is_zero_tells_the_class_that_zero_rows_have(name):
    """Class 0 has no words, and its other view tells nothing."""
    views, y, labels = sparse_samples(120)
    rng = np.random.default_rng(1)
    words, noise = views[0], rng.normal(size=(120, 5))
    words[:, 29] = 1
    words[y == 0] = 0
    model = silently(lambda: CLASSIFIERS[name]().fit([words, noise], labels))
    unlabelled = labels < 0
    assert np.mean(model.transduction_[unlabelled & (y == 0)] == 0) > 0.9
    if hasattr(model, "predict"):
        new = [np.zeros((3, 30)), rng.normal(size=(3, 5))]
        assert model.predict(new).tolist() == [0, 0, 0]
        assert model.predict([np.zeros((3, 30)), None]).tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", ["mend", "agfti", "boosting"])
def test_a_class_of_zero_rows_alone_is_told_in_a_single_view(name):
    """No labelled sample of class 0 has anything but zeros: the rows are then compared."""
    views, y, labels = sparse_samples(120)
    words = views[0]
    words[:, 29] = 1
    words[y == 0] = 0
    model = silently(lambda: CLASSIFIERS[name]().fit([words], labels))
    assert model.zero_row_evidence_ is None
    unlabelled = labels < 0
    assert (model.transduction_[unlabelled & (y == 0)] == 0).all()
    assert np.mean(model.transduction_[unlabelled] == y[unlabelled]) > 0.8
    assert model.predict([np.zeros((2, 30))]).tolist() == [0, 0]


def test_samples_of_zeros_alone_get_what_zero_rows_say():
    """A single view with many texts of no word, which are of class 0 three times out of four."""
    rng = np.random.default_rng(0)
    views, y, _ = sparse_samples(300)
    words = views[0]
    words[:, 29] += 1
    words[rng.random(300) < np.where(y == 0, 0.6, 0.1)] = 0
    zero = ~words.any(axis=1)
    labels = np.where(np.arange(300) < 150, y, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MendClassifier(**MEND).fit([words], labels)
    told = model.label_distributions_[zero & (labels < 0)]
    share = np.mean(y[zero & (labels >= 0)] == 0)
    np.testing.assert_allclose(told[:, 0], share, atol=0.05)
    assert not model.unreachable_.any()
    assert model.off_graph_[zero].all()


def test_the_evidence_of_zero_rows_is_their_likelihood_and_vanishes_by_chance():
    # 40 of 50 rows of class 0 and 10 of 50 of class 1 are zero: 0.8 and 0.2 against 0.5.
    zero = np.r_[np.arange(50) < 40, np.arange(50) < 10][:, None]
    Q = np.repeat(np.eye(2), 50, axis=0)
    found = zero_row_evidence(zero, np.ones_like(zero), Q)
    # X^2 = 36 of a mean of 1: 2 of 36 are taken off.
    np.testing.assert_allclose(found, 34 / 36 * np.log([[1.6, 0.4]]), atol=0.03)
    # 26 and 24 of 50: less than chance alone would do.
    even = np.r_[np.arange(50) < 26, np.arange(50) < 24][:, None]
    np.testing.assert_array_equal(zero_row_evidence(even, np.ones_like(even), Q), [[0, 0]])
    # Rows without label, or missing, are not counted.
    more = np.r_[zero, np.ones((30, 1), bool)]
    for observed, Y in (
        (np.ones_like(more), np.r_[Q, np.zeros((30, 2))]),
        (np.arange(130)[:, None] < 100, np.r_[Q, np.eye(2)[[0] * 30]]),
    ):
        np.testing.assert_array_equal(zero_row_evidence(more, observed, Y), found)
    shares = with_evidence(np.array([[0.5, 0.5], [0.3, 0.7]]), np.array([[True], [False]]), found)
    np.testing.assert_allclose(shares, [[0.8, 0.2], [0.3, 0.7]], atol=0.02)


@pytest.mark.parametrize("name", ["mend", "agfti", "union"])
def test_the_order_of_rows_does_not_matter_with_zero_rows_and_unseen_samples(name):
    views, _, labels = sparse_samples()
    padded, y, _ = with_unseen(views, labels, np.array([0, 7, 50, 93]))
    padded[1][[1, 60]] = np.nan
    padded[0][[1, 60, 61]] = 0
    order = np.random.default_rng(5).permutation(94)
    model, other = silently(
        lambda: [
            CLASSIFIERS[name]().fit(padded, y),
            CLASSIFIERS[name]().fit([view[order] for view in padded], y[order]),
        ]
    )
    compare = np.testing.assert_allclose if name == "union" else np.testing.assert_array_equal
    compare(other.label_distributions_, model.label_distributions_[order])
    np.testing.assert_array_equal(other.unreachable_, model.unreachable_[order])
    np.testing.assert_array_equal(other.transduction_, model.transduction_[order])


def test_to_the_released_code_zero_rows_are_missing():
    views, _, labels = sparse_samples()
    zero = ~views[0].any(axis=1)
    model = AGFTIClassifier.from_paper(compat="released", **AGFTI)
    with pytest.warns(DataWarning, match="all-zero row.*count as missing to the released code"):
        model.fit(views, labels)
    np.testing.assert_array_equal(model.observed_[:, 0], ~zero)
    with pytest.warns(DataWarning, match="count as missing to the released code"):
        model.predict(views)


def test_a_view_of_nothing_but_zeros_is_refused_by_name():
    views, _, labels = sparse_samples()
    message = "view 'words' has nothing but zeros in all of its 90 rows.*leave the view out"
    with pytest.raises(InvalidViewsError, match=message):
        MendClassifier().fit({"words": 0 * views[0], "reals": views[1]}, labels)


def test_neighbours_for_imputation_take_equal_zero_rows_for_equal():
    """Rows 0 to 3 have no words; row 0 misses the other view, and is filled from 1 to 3."""
    words = np.r_[np.zeros((4, 3)), np.eye(3), np.eye(3)]
    other = np.r_[np.full((4, 2), 5.0), np.full((6, 2), -1.0)]
    other[0] = np.nan
    filled = NeighbourImputer(n_neighbors=3).fit_transform([words, other])
    np.testing.assert_array_equal(filled.views[1][0], [5.0, 5.0])
