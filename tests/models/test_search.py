"""LabelSearchCV: folds, what a fold may know, sharing, common graphs, the race, errors."""

import warnings
from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags

from viewmend import AGFTIClassifier, LabelSearchCV, MendClassifier
from viewmend.core.common.content_order import canonical_order
from viewmend.data.labels import Labels
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import DataWarning, InvalidLabelsError, InvalidParameterError
from viewmend.models import agfti, agfti_problem, search_contests
from viewmend.models.label_folds import label_folds
from viewmend.models.search_contests import (
    CONFIRMING,
    CommonGraphs,
    Run,
    SharedGeometry,
    ShortFits,
    classes_found,
    contest_for,
    leader,
    learned_graph,
    short_limits,
    still_racing,
    surely_better,
)

N_SAMPLES = 120
BLOBS = make_multiview_blobs(N_SAMPLES, n_views=3, noise=3.0, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.15, random_state=0)
GRID = {"spreading": [0.5, 0.9], "edge_power": [0.0, 1.0]}


def small(**parameters):
    return MendClassifier(**({"n_landmarks": 40, "representations": ("unit",)} | parameters))


def poor(**parameters):
    """Labels do not travel: all but the labelled samples are guessed."""
    return small(spreading=0.0, n_rounds=0, **parameters)


def order_free(**parameters):
    return AGFTIClassifier(**({"n_anchors": 16, "random_state": 0} | parameters))


def shared(estimator, y=TASK.y):
    data, labels = clone(estimator).prepare(TASK.data, y)
    order = canonical_order(data.views, data.observed, labels.codes)
    return SharedGeometry(estimator, data, labels), label_folds(labels.codes, order, 3)


def run(*hits, full=False):
    hits = [np.array(fold, dtype=bool) for fold in hits]
    return Run({}, [], hits) if full else Run({}, hits)


@pytest.fixture
def built(monkeypatch):
    """Geometries computed, by the parameters that they depend on."""
    seen, compute = Counter(), MendClassifier.build_geometry

    def counted(self, data, labels):
        seen[str([getattr(self, name) for name in self.geometry_parameters])] += 1
        return compute(self, data, labels)

    monkeypatch.setattr(MendClassifier, "build_geometry", counted)
    return seen


@pytest.fixture
def fits(monkeypatch):
    """Labels and parameters of every fit, in turn."""
    seen, fit = [], MendClassifier._fit_labels

    def recorded(self, geometry, labels):
        seen.append((labels.codes.copy(), self.get_params()))
        fit(self, geometry, labels)

    monkeypatch.setattr(MendClassifier, "_fit_labels", recorded)
    return seen


@pytest.fixture
def solved(monkeypatch):
    """Rounds asked for, labels, and precision of every solution of AGF-TI, in turn."""
    seen, solve = [], agfti_problem.solve_problem

    def recorded(model, problem, callbacks=()):
        seen.append((model.max_iter, int(problem.Y.sum()), problem.Z.dtype))
        return solve(model, problem, callbacks)

    for module in (agfti, search_contests):
        monkeypatch.setattr(module, "solve_problem", recorded)
    return seen


# ------------------------------------------------------------------ folds

CODES = st.lists(st.integers(-1, 3), min_size=2, max_size=40).map(np.array)


@given(CODES, st.integers(2, 6), st.integers(0, 2**32 - 1))
@settings(max_examples=80, deadline=None)
def test_folds_partition_the_labels_and_leave_every_class_one(codes, n_folds, seed):
    order = np.random.default_rng(seed).permutation(len(codes))
    counts = np.bincount(codes[codes >= 0], minlength=4)
    if counts.max() < 2:
        with pytest.raises(InvalidLabelsError, match="every class has a single label"):
            label_folds(codes, order, n_folds)
        return
    folds = label_folds(codes, order, n_folds)
    # Once each, all labels but those that are alone in their class.
    assert sorted(np.concatenate(folds)) == list(
        np.flatnonzero((codes >= 0) & np.isin(codes, np.flatnonzero(counts > 1)))
    )
    sizes = [len(fold) for fold in folds]
    assert max(sizes) - min(sizes) <= 1
    assert len(folds) >= 2
    assert min(sizes) > 0
    for code in np.flatnonzero(counts):
        held = [int(np.sum(codes[fold] == code)) for fold in folds]
        assert max(held) - min(held) <= 1
        assert max(held) < counts[code]


@given(CODES, st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_folds_follow_the_samples_through_a_permutation(codes, seed):
    if np.bincount(codes[codes >= 0], minlength=1).max() < 2:
        return
    rng = np.random.default_rng(seed)
    order, rows = rng.permutation(len(codes)), rng.permutation(len(codes))
    # Sample rows[i] is now in row i.
    moved = label_folds(codes[rows], np.argsort(rows)[order], 3)
    for fold, other in zip(label_folds(codes, order, 3), moved, strict=True):
        np.testing.assert_array_equal(fold, rows[other])


@given(CODES, st.permutations(range(4)), st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_other_names_of_the_classes_give_the_same_folds(codes, names, seed):
    if np.bincount(codes[codes >= 0], minlength=1).max() < 2:
        return
    order = np.random.default_rng(seed).permutation(len(codes))
    renamed = np.r_[names, -1][codes]
    for fold, other in zip(
        label_folds(codes, order, 3), label_folds(renamed, order, 3), strict=True
    ):
        np.testing.assert_array_equal(fold, other)


# ------------------------------------------------------------------ what a fold may know


@pytest.mark.parametrize("limits", [{}, {"n_rounds": 1}], ids=["full", "short"])
def test_a_fit_in_a_fold_is_the_fit_by_hand_without_its_labels(limits):
    estimator = small()
    search, folds = shared(estimator)
    point = {"spreading": 0.9, "edge_power": 1.0}
    for fold in folds:
        y = TASK.y.copy()
        y[fold] = -1
        hand = small(**point, **limits, calibration=None).fit(TASK.data, y)
        model = search.fit_without(fold, point, limits)
        np.testing.assert_array_equal(model.label_distributions_, hand.label_distributions_)
        np.testing.assert_array_equal(model.transduction_, hand.transduction_)
        expected = hand.transduction_[fold] == TASK.y[fold]
        np.testing.assert_array_equal(search.hits(fold, point, limits), expected)


def test_a_fold_cannot_see_the_labels_it_holds_out():
    """Whatever these labels are, the fit without them is the same, and only the hits change."""
    estimator = small(n_rounds=1)
    search, (fold, *_) = shared(estimator)
    codes = search.labels.codes.copy()
    codes[fold] = (codes[fold] + 1) % 3
    wrong = SharedGeometry(estimator, search.data, Labels(search.labels.classes, codes))
    one, two = (s.fit_without(fold, {}, {}) for s in (search, wrong))
    np.testing.assert_array_equal(one.label_distributions_, two.label_distributions_)
    assert not np.any(search.hits(fold, {}, {}) & wrong.hits(fold, {}, {}))


def test_every_fit_but_the_last_lacks_one_fold(fits):
    search = LabelSearchCV(small(), GRID).fit(TASK.data, TASK.y)
    folds = label_folds(TASK.y, _order(TASK.data, TASK.y), 3)
    without = {tuple(sorted(fold)) for fold in folds}
    for codes, _ in fits[:-1]:
        held_out = np.flatnonzero(codes != TASK.y)
        assert tuple(held_out) in without
        assert np.all(codes[held_out] == -1)
    np.testing.assert_array_equal(fits[-1][0], TASK.y)
    assert fits[-1][1] == search.best_estimator_.get_params()


def _order(data, codes):
    return canonical_order(data.views, data.observed, codes)


SEARCHES = {
    "mend": LabelSearchCV(small(n_rounds=1), GRID, margin=0.0),
    "agfti": LabelSearchCV(
        order_free(max_iter=3, tol=0.0), {"graph_smoothing": [1.0, 30.0]}, margin=0.0
    ),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("seed", [0, 1])
def test_order_of_the_samples_does_not_matter(name, seed):
    rows = np.random.default_rng(seed).permutation(N_SAMPLES)
    one = clone(SEARCHES[name]).fit(TASK.data, TASK.y)
    two = clone(SEARCHES[name]).fit(TASK.data[rows], TASK.y[rows])
    assert one.best_params_ == two.best_params_
    assert_same_scores(one, two)
    np.testing.assert_array_equal(one.label_distributions_[rows], two.label_distributions_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", SEARCHES)
def test_names_of_the_classes_do_not_matter(name):
    # One class is left with five labels, so that the next one is dealt from another fold on.
    y = TASK.y.copy()
    y[np.flatnonzero(y == 0)[0]] = -1
    names = np.array([2, 0, 1])
    one = clone(SEARCHES[name]).fit(TASK.data, y)
    two = clone(SEARCHES[name]).fit(TASK.data, np.r_[names, -1][y])
    assert one.best_params_ == two.best_params_
    assert_same_scores(one, two)
    np.testing.assert_array_equal(names[one.transduction_], two.transduction_)


def assert_same_scores(one, two):
    for key in ("mean_test_score", "full_test_score", "rank_test_score", "split1_test_score"):
        np.testing.assert_array_equal(one.cv_results_[key], two.cv_results_[key])


# ------------------------------------------------------------------ sharing


def test_the_best_estimator_is_a_plain_fit_with_the_best_parameters():
    search = LabelSearchCV(poor(), GRID | {"n_rounds": [2]}).fit(TASK.data, TASK.y)
    assert search.best_index_ > 0
    plain = poor().set_params(**search.best_params_).fit(TASK.data, TASK.y)
    np.testing.assert_array_equal(search.label_distributions_, plain.label_distributions_)
    new = make_multiview_blobs(30, n_views=3, noise=3.0, random_state=0)
    np.testing.assert_array_equal(search.predict_proba(new.views), plain.predict_proba(new.views))
    assert search.score(new.views, new.y) == np.mean(plain.predict(new.views) == new.y)


def test_scores_are_those_of_separate_fits():
    search = LabelSearchCV(small(n_rounds=2), GRID).fit(TASK.data, TASK.y)
    results = search.cv_results_
    folds = label_folds(TASK.y, _order(TASK.data, TASK.y), 3)
    for i in (0, search.cv_results_["rank_test_score"].argmin()):
        short, full = [], []
        for fold in folds:
            y = TASK.y.copy()
            y[fold] = -1
            for n_rounds, hits in ((1, short), (2, full)):
                model = small(**results["params"][i] | {"n_rounds": n_rounds}).fit(TASK.data, y)
                hits.append(model.transduction_[fold] == TASK.y[fold])
        splits = [results[f"split{k}_test_score"][i] for k in range(3)]
        np.testing.assert_allclose(splits, [np.mean(hits) for hits in short])
        np.testing.assert_allclose(results["mean_test_score"][i], np.mean(np.concatenate(short)))
        np.testing.assert_allclose(results["full_test_score"][i], np.mean(np.concatenate(full)))


def test_points_that_differ_in_what_follows_the_labels_share_one_geometry(built):
    LabelSearchCV(small(n_rounds=0), GRID).fit(TASK.data, TASK.y)
    assert list(built.values()) == [1]


def test_every_other_geometry_is_computed_once(built, fits):
    grid = {"n_neighbors": [4, (3, 6)], "kernel_width": [0.1, 0.2], "edge_power": [0.0, 1.0]}
    search = LabelSearchCV(small(n_rounds=1), grid).fit(TASK.data, TASK.y)
    # The four combinations, and the neighbours of the estimator as given.
    assert sorted(built.values()) == [1] * 5
    assert len(fits) > 12
    assert search.cv_results_["param_n_neighbors"].tolist().count((3, 6)) == 4
    i = int(search.cv_results_["rank_test_score"].argmin())
    point = search.cv_results_["params"][i]
    y = TASK.y.copy()
    fold = label_folds(TASK.y, _order(TASK.data, TASK.y), 3)[0]
    y[fold] = -1
    model = small(**{"n_rounds": 1} | point).fit(TASK.data, y)
    found = np.mean(model.transduction_[fold] == TASK.y[fold])
    assert search.cv_results_["split0_test_score"][i] == found


def test_seeds_that_are_generators_are_told_apart_by_their_state(built):
    """Two generators of one state are one seed, wherever in memory they are."""
    search, (fold, *_) = shared(small(n_rounds=1))
    found = [
        search.fit_without(fold, {"random_state": np.random.default_rng(seed)}, {})
        for seed in (0, 1, 0)
    ]
    assert sum(built.values()) == 2
    one, other, again = (model.label_distributions_ for model in found)
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


# ------------------------------------------------------------------ common graphs of AGF-TI


def no_labels(search):
    return Labels(search.labels.classes, np.full_like(search.labels.codes, -1))


def test_graphs_that_labels_cannot_shape_are_those_of_fits_with_labels():
    """Held to zero on all but labelled samples, soft labels are equally far from all anchors.

    Then what a fold finds over the common graph is what a fit without its labels finds.
    """
    estimator = order_free(propagation_damping=1e12, tol=0.0)
    search, folds = shared(estimator)
    contest = CommonGraphs(search, folds, {"max_iter": 2})
    for point in ({"graph_smoothing": 1.0}, {"low_rank_weight": 1.0}, {"class_prior": None}):
        run = Run(point)
        for k, fold in enumerate(folds):
            fit = search.fit_without(fold, point, {"max_iter": 2})
            geometry = search.geometry(fit)
            P = learned_graph(fit, geometry, no_labels(search))
            np.testing.assert_allclose(P, fit.fused_graph_[geometry.order], atol=1e-4)
            found = np.argmax(fit.label_distributions_[fold], axis=1)
            expected = found == search.labels.codes[fold]
            np.testing.assert_array_equal(contest.short_hits(k, run), expected)


def test_the_last_comparison_is_of_fits_with_the_other_labels():
    search, folds = shared(order_free(propagation_damping=0.01, tol=0.0))
    contest = CommonGraphs(search, folds, {"max_iter": 2})
    for point in ({"graph_smoothing": 1.0}, {"final_damping": None}):
        for k, fold in enumerate(folds):
            expected = search.hits(fold, point, CONFIRMING)
            np.testing.assert_array_equal(contest.longer_hits(k, Run(point)), expected)


def test_labels_do_shape_graphs_else():
    search, (fold, *_) = shared(order_free(propagation_damping=0.01, tol=0.0))
    fit = search.fit_without(fold, {}, {"max_iter": 2})
    geometry = search.geometry(fit)
    P = learned_graph(fit, geometry, no_labels(search))
    assert np.abs(P - fit.fused_graph_[geometry.order]).max() > 1e-2


def test_over_a_common_graph_a_fold_cannot_see_the_labels_it_holds_out():
    """If these were others, every soft label would be the same, and only the hits change."""
    estimator = order_free()
    search, folds = shared(estimator)
    codes = search.labels.codes.copy()
    codes[folds[0]] = (codes[folds[0]] + 1) % 3
    wrong = SharedGeometry(estimator, search.data, Labels(search.labels.classes, codes))
    runs = Run({}), Run({})
    contests = [CommonGraphs(s, folds, {"max_iter": 2}) for s in (search, wrong)]
    hits = [contest.short_hits(0, run) for contest, run in zip(contests, runs, strict=True)]
    soft = [contest._soft[run] for contest, run in zip(contests, runs, strict=True)]
    np.testing.assert_array_equal(soft[0][0], soft[1][0])
    assert not np.array_equal(soft[0][1], soft[1][1])
    assert hits[0].any()
    assert not np.any(hits[0] & hits[1])


@pytest.mark.parametrize("prior", [None, "labeled"])
def test_samples_that_no_label_reaches_get_the_largest_class(prior):
    labels = Labels(np.arange(3), np.array([0, 1, 2, 2, -1, -1]))
    soft = np.vstack([np.eye(3)[[0, 1, 2, 2]], [0.2, 0.1, 0.1], np.zeros(3)])
    found = classes_found(soft, labels, order_free(class_prior=prior))
    np.testing.assert_array_equal(found[[0, 1, 2, 3, 5]], [0, 1, 2, 2, 2])


def test_classes_of_a_race_are_weighted_to_the_class_prior():
    """A class of small scores would otherwise never be found: 0.9 against 0.1 everywhere."""
    labels = Labels(np.arange(2), np.array([0, 1] + [-1] * 18))
    lean = np.linspace(-0.05, 0.05, 20)
    soft = np.column_stack([0.9 - lean, 0.1 + lean])
    shares = [
        np.mean(classes_found(soft, labels, order_free(class_prior=prior)) == 1)
        for prior in (None, "uniform")
    ]
    assert shares == [0.0, 0.5]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_race_solves_once_per_point_and_without_labels(solved):
    estimator = order_free(max_iter=4, tol=0.0)
    grid = {"low_rank_weight": [1.0, 10.0], "graph_smoothing": [1.0, 2.0, 4.0]}
    search = LabelSearchCV(estimator, grid, margin=0.0).fit(TASK.data, TASK.y)
    n_points, n_labels = len(search.cv_results_["params"]), int(np.sum(TASK.y >= 0))
    assert sorted(search.cv_results_["n_folds"]) == [1] * 4 + [2] + [3, 3]
    assert solved[:n_points] == [(2, 0, np.float32)] * n_points
    assert all(n == (3, n_labels * 2 // 3, np.float32) for n in solved[n_points:-1])
    assert len(solved[n_points:-1]) in (0, 2, 4, 6)
    assert solved[-1] == (4, n_labels, np.float64)


def test_points_that_need_labels_to_differ_are_fitted_with_labels():
    """Over common graphs they would be one and the same point."""
    search, folds = shared(order_free())
    points = [{"propagation_damping": 1.0}, {"propagation_damping": 0.01}]
    runs = [Run(point) for point in points]
    common = CommonGraphs(search, folds, {"max_iter": 2})
    for run in runs:
        common.short_hits(0, run)
    np.testing.assert_array_equal(*(common._soft[run][0] for run in runs))
    assert isinstance(contest_for(search, folds, points), ShortFits)
    fits = [search.fit_without(folds[0], point, {"max_iter": 2}) for point in points]
    one, other = (fit.label_distributions_ for fit in fits)
    assert not np.allclose(one, other, atol=1e-3)


@pytest.mark.parametrize(
    ("estimator", "grid", "contest"),
    [
        (order_free(), {"graph_smoothing": 1.0, "n_neighbors": 5}, CommonGraphs),
        (order_free(), {"graph_smoothing": 1.0, "tol": 0.1}, ShortFits),
        (order_free(), {"imputation": "fourier"}, ShortFits),
        (AGFTIClassifier.from_paper(), {"graph_smoothing": 1.0}, ShortFits),
        (small(), {"spreading": 0.5}, ShortFits),
    ],
)
def test_common_graphs_are_for_grids_that_they_tell_apart(estimator, grid, contest):
    search, folds = shared(estimator)
    assert type(contest_for(search, folds, [grid])) is contest


class Script(CommonGraphs):
    """Hits of the longer fits as they are written down, instead of fits."""

    def __init__(self, **hits):
        self.folds, self.written, self.asked = range(3), hits, []

    def longer_hits(self, fold, run):
        self.asked.append((run.point["name"], fold))
        return self.written[run.point["name"]][fold]


@pytest.mark.parametrize(
    ("in_race", "in_fits", "n_folds", "better"),
    [
        # Not better in the race by more than one standard error.
        (([1, 0], [0, 0], [0, 0]), None, 0, False),
        (([1, 1], [1, -1], [0, 0]), None, 0, False),
        # Confirmed in every fold.
        (([1, 1], [1, 0], [0, 0]), ([1, 1], [1, 0], [0, 0]), 3, True),
        # Three labels more than the other are one after the first fold, none after the second.
        (([1, 1], [1, 0], [0, 0]), ([0, 0], [0, 0], [1, 1]), 2, False),
        # In the end one more, which is no more than one standard error.
        (([1, 1], [1, 0], [0, 0]), ([0, 0], [1, 0], [0, 0]), 3, False),
    ],
)
def test_the_last_comparison_goes_on_while_the_rival_is_better(in_race, in_fits, n_folds, better):
    """Entries are labels that only the rival finds (1), or only the estimator as given (-1)."""
    own, rival = (
        Run({"name": name}, [np.array(fold) * sign > 0 for fold in in_race])
        for name, sign in (("own", -1), ("rival", 1))
    )
    script = Script(
        own=[np.array(fold) < 0 for fold in in_fits or ()],
        rival=[np.array(fold) > 0 for fold in in_fits or ()],
    )
    best = script.last_comparison(own, rival, margin=1.0)
    assert (best is rival) is better
    assert script.asked == [(name, k) for k in range(n_folds) for name in ("own", "rival")]
    assert len(own.full_hits) == len(rival.full_hits) == n_folds


# ------------------------------------------------------------------ the race


def test_the_better_third_of_the_others_survives_a_fold():
    own = run([0, 0, 0, 0])
    others = [run([1] * n + [0] * (4 - n)) for n in (1, 3, 0, 2, 4, 1, 3)]
    alive = still_racing([own, *others])
    assert alive == [own, others[4], others[1], others[6]]


def test_nobody_leaves_before_the_first_fold_and_none_comes_back():
    runs = [run(), run(), run()]
    assert still_racing(runs) == runs
    own, stayed, left = run([1], [0]), run([0], [0]), run([1])
    assert still_racing([own, stayed, left]) == [own, stayed]
    assert leader([own, stayed, left]) is own


def test_of_equals_the_first_leads():
    first, second = run([1, 0]), run([0, 1])
    assert leader([first, second]) is first


def test_the_race_keeps_the_best_and_the_estimator_as_given():
    grid = {"spreading": [0.1, 0.2, 0.3, 0.4, 0.5, 0.9, 0.99]}
    results = LabelSearchCV(poor(), grid).fit(TASK.data, TASK.y).cv_results_
    n_folds, first = results["n_folds"], results["split0_test_score"]
    assert n_folds[0] == 3
    assert sorted(n_folds[1:]) == [1, 1, 1, 1, 2, 2, 3]
    # Who went on was at no fold worse than who left.
    for before, k in ((1, 2), (2, 3)):
        score = np.nansum([results[f"split{j}_test_score"] for j in range(before)], axis=0)
        assert score[1:][n_folds[1:] >= k].min() >= score[1:][n_folds[1:] == before].max() - 1e-12
    assert np.isnan(results["split2_test_score"][n_folds < 3]).all()
    assert not np.isnan(first).any()
    rank = results["rank_test_score"]
    assert all(n_folds[i] >= n_folds[j] for i, j in pairwise(np.argsort(rank, kind="stable")))


@pytest.mark.filterwarnings("ignore:.*joined to no label:viewmend.exceptions.DataWarning")
def test_short_fits_are_never_longer_than_asked_for(fits):
    LabelSearchCV(small(n_rounds=3), {"spreading": [0.5, 0.9]}).fit(TASK.data, TASK.y)
    rounds = Counter(parameters["n_rounds"] for _, parameters in fits)
    assert rounds[1] == 3 + 2 + 1 + 1
    assert set(rounds) == {1, 3}
    fits.clear()
    LabelSearchCV(poor(), {"spreading": [0.5, 0.9]}).fit(TASK.data, TASK.y)
    # No limit, so that the comparison in full has been made already.
    assert Counter(p["n_rounds"] for _, p in fits) == {0: 3 + 2 + 2 + 1}
    fits.clear()
    LabelSearchCV(poor(), {"n_rounds": [3]}, margin=100).fit(TASK.data, TASK.y)
    # Without rounds the estimator as given is cut down to none, not raised to one.
    assert [p["n_rounds"] for _, p in fits[:6]] == [0, 1] * 3


@pytest.mark.parametrize(
    ("own", "values", "limits"),
    [
        (5, None, {"n_rounds": 1}),
        (1, None, {}),
        (0, None, {}),
        (0, [5], {"n_rounds": 1}),
        (5, [0, 5], {"n_rounds": 1}),
        (5, [2, 5], {}),
        (5, [1, 2], {}),
    ],
)
def test_limits_are_set_where_they_shorten_and_hide_no_difference(own, values, limits):
    points = [{"spreading": 0.5}] if values is None else [{"n_rounds": n} for n in values]
    assert short_limits(small(n_rounds=own), points) == limits


# ------------------------------------------------------------------ the margin


@pytest.mark.parametrize(
    ("wins", "losses", "margin", "better"),
    [
        (0, 0, 0.0, False),
        (1, 1, 0.0, False),
        (1, 0, 0.0, True),
        # One label more is one standard error, and not more than that.
        (1, 0, 1.0, False),
        (2, 0, 1.0, True),
        (2, 0, 1.5, False),
        (3, 1, 1.0, False),
        (4, 1, 1.0, True),
        (9, 0, 2.9, True),
        (9, 0, 3.1, False),
        (0, 5, 0.0, False),
    ],
)
def test_margin_is_in_standard_errors_of_the_difference(wins, losses, margin, better):
    rival = run([1] * wins + [0] * losses, [1, 0, 1], full=True)
    own = run([0] * wins + [1] * losses, [1, 0, 1], full=True)
    assert surely_better(rival, own, margin) is better


@pytest.mark.filterwarnings("ignore:.*joined to no label:viewmend.exceptions.DataWarning")
def test_a_poor_estimator_is_replaced_unless_the_margin_is_beyond_reach():
    truth, free = TASK.y_true, TASK.unlabelled
    before = np.mean((poor().fit(TASK.data, TASK.y).transduction_ == truth)[free])
    search = LabelSearchCV(poor()).fit(TASK.data, TASK.y)
    assert search.best_params_["n_rounds"] == max(MendClassifier.grid["n_rounds"])
    assert np.mean((search.transduction_ == truth)[free]) > before + 0.05
    kept = LabelSearchCV(poor(), margin=100.0).fit(TASK.data, TASK.y)
    assert (kept.best_index_, kept.best_params_["n_rounds"]) == (0, 0)
    np.testing.assert_array_equal(
        kept.label_distributions_, poor().fit(TASK.data, TASK.y).label_distributions_
    )
    assert kept.best_score_ == kept.cv_results_["full_test_score"][0] < search.best_score_


def test_points_that_change_nothing_are_not_tried_and_little_change_comes_first():
    grid = [{"spreading": [0.9, 0.5], "edge_power": [1.0, 0.0]}, {"homophily_power": [3.0]}]
    search = LabelSearchCV(small(spreading=0.5, n_rounds=0), grid).fit(TASK.data, TASK.y)
    params = search.cv_results_["params"]
    assert params[0] == {"spreading": 0.5, "edge_power": 0.0, "homophily_power": 2.0}
    changes = [sum(params[0][name] != point[name] for name in point) for point in params]
    assert changes == [0, 1, 1, 1, 2]
    masked = search.cv_results_["param_homophily_power"].mask
    assert masked.tolist() == ["homophily_power" not in point for point in params]


# ------------------------------------------------------------------ as scikit-learn has it


def test_parameters_clone_and_page():
    search = LabelSearchCV(small(), GRID, cv=4, margin=2.0)
    copy = clone(search.set_params(estimator__spreading=0.7))
    assert copy.estimator is not search.estimator
    assert copy.estimator.spreading == 0.7
    assert (copy.param_grid, copy.cv, copy.margin) == (GRID, 4, 2.0)
    assert is_classifier(search)
    assert get_tags(search).input_tags.allow_nan
    page = search._repr_html_()
    assert "LabelSearchCV" in page
    assert "MendClassifier" in page
    with pytest.raises(NotFittedError):
        search.predict(TASK.data)


def test_the_given_estimator_is_left_alone_and_a_second_fit_is_the_same():
    estimator = small(n_rounds=1)
    before = estimator.get_params()
    search = LabelSearchCV(estimator, GRID).fit(TASK.data, TASK.y)
    assert estimator.get_params() == before
    assert not hasattr(estimator, "classes_")
    first = search.label_distributions_
    np.testing.assert_array_equal(search.fit(TASK.data, TASK.y).label_distributions_, first)
    assert search.n_features_in_ == sum(view.shape[1] for view in TASK.data.views)
    assert list(search.classes_) == [0, 1, 2]


def test_callbacks_and_log_are_those_of_the_final_fit(capsys):
    seen = []
    estimator = small(n_rounds=2, verbose=1)
    estimator.set_callbacks(lambda record, _: seen.append(record.name) or len(seen) == 3)
    search = LabelSearchCV(estimator, GRID, margin=100).fit(TASK.data, TASK.y)
    assert seen == ["neighbours", "homophily", "evidence"]
    assert search.best_estimator_.status_ == "stopped"
    assert capsys.readouterr().err.count(" changed ") == 3


def test_what_the_final_fit_warns_of_is_warned_of_once():
    """Two groups that no edge joins, one of them without labels."""
    group = np.random.default_rng(0).normal(scale=0.1, size=(40, 2))
    X, y = np.r_[group + 1, group + 1000], np.full(80, -1)
    y[:8] = [0, 1] * 4
    estimator = MendClassifier(representations=("standard",), n_neighbors=3, n_rounds=0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        LabelSearchCV(estimator, {"spreading": [0.5]}).fit(X, y)
    assert [warning.category for warning in told] == [DataWarning]


def test_threads_do_not_change_the_choice():
    searches = [LabelSearchCV(small(n_jobs=n), GRID).fit(TASK.data, TASK.y) for n in (1, 2)]
    assert searches[0].best_params_ == searches[1].best_params_
    np.testing.assert_array_equal(*(search.label_distributions_ for search in searches))


@pytest.mark.parametrize("imputation", ["graph", "fourier"])
def test_agfti_is_searched_as_well(imputation):
    estimator = order_free(max_iter=5, tol=1e-2, imputation=imputation)
    grid = {"low_rank_weight": [1.0, 100.0], "n_neighbors": [5]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = LabelSearchCV(estimator, grid, margin=0.0).fit(TASK.data, TASK.y)
        plain = clone(estimator).set_params(**search.best_params_).fit(TASK.data, TASK.y)
    np.testing.assert_array_equal(search.label_distributions_, plain.label_distributions_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_poor_agfti_is_replaced():
    """Two anchors cannot tell three classes apart."""
    truth, free = TASK.y_true, TASK.unlabelled
    poor = order_free(n_anchors=2, max_iter=4)
    search = LabelSearchCV(poor, {"n_anchors": [2, 16]}).fit(TASK.data, TASK.y)
    assert search.best_index_ > 0
    before = np.mean((poor.fit(TASK.data, TASK.y).transduction_ == truth)[free])
    assert np.mean((search.transduction_ == truth)[free]) > before + 0.05
    full = search.cv_results_["full_test_score"]
    assert search.best_score_ == full[search.best_index_] > full[0]


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"estimator": LogisticRegression()}, "must be a MendClassifier .* got LogisticRegression"),
        ({"param_grid": {"speed": [1]}}, "names 'speed', which is no parameter of MendClassifier"),
        ({"param_grid": {"dtype": ["float32"]}}, "'dtype', which decides how the data is read"),
        ({"param_grid": {"spreading": [0.5, 1.5]}}, r"spreading .* in \[0, 1\), got 1.5"),
        ({"estimator": MendClassifier(spreading=2.0)}, r"spreading .* in \[0, 1\), got 2.0"),
        ({"cv": 1}, "cv of LabelSearchCV must be an integer >= 2, got 1"),
        ({"margin": -1}, "margin of LabelSearchCV must be a number >= 0, got -1"),
    ],
)
def test_parameters_are_checked_before_anything_is_computed(built, arguments, message):
    with pytest.raises(InvalidParameterError, match=message):
        LabelSearchCV(**({"estimator": small()} | arguments)).fit(TASK.data, TASK.y)
    assert not built


def test_single_labels_cannot_be_held_out(built):
    y = np.full(N_SAMPLES, -1)
    for code in range(3):
        y[np.flatnonzero(TASK.y_true == code)[0]] = code
    with pytest.raises(InvalidLabelsError, match="every class has a single label"):
        LabelSearchCV(small(), GRID).fit(TASK.data, y)
    assert not built


def test_the_best_estimator_knows_the_identifiers_of_the_samples():
    ids = [f"p{i}" for i in range(60)]
    blobs = make_multiview_blobs(60, random_state=0)
    frames = {str(v): pd.DataFrame(view, index=ids) for v, view in enumerate(blobs.views)}
    y = pd.Series(np.where(np.arange(60) % 3 == 0, blobs.y, -1), index=ids)
    search = LabelSearchCV(MendClassifier(n_rounds=1), {"spreading": [0.9]}, cv=2).fit(frames, y)
    best = search.best_estimator_
    assert best.explain("p7").samples.tolist() == [7]
    found = best.suggest_labels(3)
    assert found.names.tolist() == [ids[row] for row in found.samples]
