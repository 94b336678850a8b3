"""The estimator: forms of input, labels, warnings and errors, prediction."""

import io
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import train_test_split

from viewmend import AGFTIClassifier
from viewmend.callbacks import LogRounds, TimeLimit
from viewmend.core import solve
from viewmend.core.agfti.propagation import propagate_labels
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import (
    DataWarning,
    InvalidLabelsError,
    InvalidParameterError,
    InvalidViewsError,
)
from viewmend.models.agfti_problem import make_problem

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

BLOBS = make_multiview_blobs(150, n_views=2, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.3, label_rate=0.1, random_state=0)
VIEWS, OBSERVED = list(TASK.data.views), TASK.data.observed


QUICK = {"random_state": 0, "max_iter": 4}


def quick(**parameters):
    return AGFTIClassifier(**(QUICK | parameters))


def quick_paper(**parameters):
    return AGFTIClassifier.from_paper(**(QUICK | parameters))


@pytest.fixture(scope="module")
def fitted():
    return quick().fit(TASK.data, TASK.y)


@pytest.mark.parametrize(
    "form",
    [
        lambda: {"X": VIEWS},
        lambda: {"X": tuple(VIEWS)},
        lambda: {"X": {"left": VIEWS[0], "right": VIEWS[1]}},
        lambda: {"X": [np.nan_to_num(view, nan=7.0) for view in VIEWS], "mask": OBSERVED},
        lambda: {"X": np.hstack(VIEWS), "view_sizes": (8, 8)},
    ],
    ids=["list", "tuple", "dict", "mask", "stacked"],
)
def test_every_form_of_input_gives_the_same_fit(fitted, form):
    arguments = form()
    model = quick(view_sizes=arguments.pop("view_sizes", None)).fit(y=TASK.y, **arguments)
    np.testing.assert_array_equal(model.label_distributions_, fitted.label_distributions_)
    np.testing.assert_array_equal(model.transduction_, fitted.transduction_)


@pytest.mark.parametrize(
    "names",
    [["a", "b", "c"], [10, 20, 30], [("x", 1), ("x", 2), ("y", 1)], [2.0, 5.0, 9.0]],
    ids=["str", "int", "tuple", "float"],
)
def test_labels_of_any_kind_relabel_the_classes(fitted, names):
    coded = np.empty(len(TASK.y), dtype=object)
    for i, label in enumerate(TASK.y):
        coded[i] = None if label == -1 else names[label]
    model = quick().fit(TASK.data, coded)
    assert list(model.classes_) == names
    np.testing.assert_array_equal(model.label_distributions_, fitted.label_distributions_)
    assert [names.index(label) for label in model.transduction_] == list(fitted.transduction_)


def test_separated_blobs_are_labelled_right(fitted):
    right = (fitted.transduction_ == TASK.y_true)[TASK.unlabelled]
    assert right.mean() > 0.97


def test_given_labels_are_kept_even_where_they_are_wrong():
    y = TASK.y.copy()
    wrong = np.flatnonzero(TASK.labelled)[0]
    y[wrong] = (y[wrong] + 1) % 3
    model = quick(label_strength=1e-3).fit(TASK.data, y)
    np.testing.assert_array_equal(model.transduction_[TASK.labelled], y[TASK.labelled])


def test_distributions_and_weights_sum_to_one(fitted):
    np.testing.assert_allclose(fitted.label_distributions_.sum(axis=1), 1)
    np.testing.assert_allclose(fitted.view_weights_.sum(), 1)
    np.testing.assert_allclose(fitted.fused_graph_.sum(axis=1), 1)


@pytest.mark.parametrize(
    ("make", "constants"), [(quick, (4.0, 1.0, 100.0)), (quick_paper, (4.0, 4.0, 100.0))]
)
def test_fitted_attributes_are_those_of_the_solver(make, constants):
    """Words map to symbols: solving the same problem by hand gives the attributes."""
    fitted, model = make().fit(TASK.data, TASK.y), make()
    data, labels = model.prepare(TASK.data, TASK.y)
    geometry = model.build_geometry(data, labels)
    problem = make_problem(model, geometry, labels)
    assert (problem.lam, problem.beta, problem.rho) == constants
    result = solve(problem, max_iter=4)
    order = geometry.order
    np.testing.assert_array_equal(fitted.view_weights_, result.alpha)
    np.testing.assert_array_equal(fitted.fused_graph_[order], result.P)
    np.testing.assert_array_equal(fitted.anchor_alignments_, result.T)
    np.testing.assert_array_equal(fitted.view_graphs_[:, order], result.Z)


def start_graphs(model, data):
    graphs = model.view_graphs_.copy()
    graphs[~data.observed.T] = 1 / graphs.shape[2]
    return graphs


def test_missing_rows_start_where_corresponding_anchors_put_them():
    """The auxiliary tensor starts there too, and the penalty is such that a round keeps it."""
    model, paper = quick(), quick_paper()
    data, labels = model.prepare(TASK.data, TASK.y)
    ours, theirs = (
        make_problem(each, each.build_geometry(data, labels), labels) for each in (model, paper)
    )
    np.testing.assert_array_equal(ours.G, ours.Z)
    assert theirs.G is None
    np.testing.assert_array_equal(theirs.Z[theirs.missing.T], 1 / theirs.Z.shape[2])
    missing = ours.missing.T
    moved = [
        np.abs(solve(problem, max_iter=1).Z - ours.Z)[missing].mean()
        for problem in (ours, replace(ours, G=None), replace(ours, eta=theirs.eta))
    ]
    assert moved[0] < min(moved[1:]) / 2


def test_damping_and_strength_reach_the_problem():
    model = quick(propagation_damping=(0.5, 0.25), label_strength=1e4, fusion_weight=3.0)
    data, labels = model.prepare(TASK.data, TASK.y)
    geometry = model.build_geometry(data, labels)
    problem = make_problem(model, geometry, labels)
    strength = np.where(TASK.labelled, 1e4, 0.5)
    np.testing.assert_array_equal(problem.B_samples, strength[geometry.order])
    np.testing.assert_array_equal(problem.B_anchors, 0.25)
    assert (problem.lam, problem.beta) == (3.0, 0.75)


def test_labels_given_out_are_those_of_the_final_damping():
    """They solve the propagation on the fused graph with that damping, not with the solver's."""
    model = quick(
        calibration=None, class_prior=None, final_damping=(0.02, 0.03), label_strength=1e4
    )
    model.fit(TASK.data, TASK.y)
    Y = (TASK.y[:, None] == np.arange(3)).astype(float)
    P = model.fused_graph_
    B_anchors = np.full(P.shape[1], 0.03)
    F, _ = propagate_labels(P, Y, np.where(TASK.labelled, 1e4, 0.02), B_anchors)
    expected = F / F.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.label_distributions_, expected, atol=1e-10)
    F, _ = propagate_labels(P, Y, np.where(TASK.labelled, 1e4, 1.0), np.ones(P.shape[1]))
    kept = quick(calibration=None, class_prior=None, final_damping=None, label_strength=1e4)
    kept.fit(TASK.data, TASK.y)
    expected = F / F.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(kept.label_distributions_, expected, atol=1e-10)


def test_class_prior_moves_the_class_shares():
    prior = {0: 0.6, 1: 0.3, 2: 0.1}
    model = quick(calibration=None, class_prior=prior).fit(TASK.data, TASK.y)
    predicted = np.argmax(model.label_distributions_, axis=1)
    np.testing.assert_allclose(np.bincount(predicted) / 150, [0.6, 0.3, 0.1], atol=0.02)
    new = model.predict_proba(TASK.data)
    plain = quick(calibration=None, class_prior=None).fit(TASK.data, TASK.y)
    plain = plain.predict_proba(TASK.data)
    odds = (new / plain) / (new / plain)[:, [0]]
    np.testing.assert_allclose(odds, np.broadcast_to(odds[0], odds.shape), rtol=1e-6)


def test_prediction_from_any_subset_of_views(fitted):
    """New samples of the blobs, each seen through one view only, in every form of input."""
    new = make_multiview_blobs(150, n_views=2, random_state=0)
    left = fitted.predict([new.views[0], None])
    mask = np.tile([True, False], (150, 1))
    np.testing.assert_array_equal(left, fitted.predict(list(new.views), mask=mask))
    assert (left == new.y).mean() > 0.9
    both = fitted.predict_proba(list(new.views))
    np.testing.assert_allclose(both.sum(axis=1), 1)
    assert (fitted.predict(list(new.views)) == new.y).mean() > 0.95


def test_one_array_is_one_view():
    complete = BLOBS.views[0]
    model = quick().fit(complete, TASK.y[np.argsort(TASK.order)])
    assert model.view_weights_ == [1.0]
    assert model.n_features_in_ == 8
    assert (model.predict(complete) == BLOBS.y).mean() > 0.9


def test_same_seed_same_model_and_another_seed_another():
    first, second, third = (quick(random_state=s).fit(TASK.data, TASK.y) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.label_distributions_, second.label_distributions_)
    assert not np.array_equal(first.label_distributions_, third.label_distributions_)


def test_threads_do_not_change_the_model():
    one, two = (quick(n_jobs=n).fit(TASK.data, TASK.y) for n in (1, 2))
    np.testing.assert_allclose(one.label_distributions_, two.label_distributions_, atol=1e-12)


def test_single_precision_runs_throughout(fitted):
    model = quick(dtype="float32").fit(TASK.data, TASK.y)
    assert model.fused_graph_.dtype == model.view_graphs_.dtype == np.float32
    agree = model.transduction_ == fitted.transduction_
    assert agree.mean() > 0.98


def test_clone_and_parameters_round_trip(fitted):
    copy = clone(fitted.set_callbacks(lambda *_: None))
    assert copy.get_params() == fitted.get_params()
    assert copy.callbacks == ()
    fitted.set_callbacks()


def test_rows_can_be_split_by_scikit_learn():
    split = {"random_state": 0, "stratify": TASK.y_true}
    train, test, y_train, _ = train_test_split(TASK.data, TASK.y, **split)
    model = quick(class_prior="uniform").fit(train, y_train)
    truth = TASK.y_true[train_test_split(np.arange(150), **split)[1]]
    assert (model.predict(test) == truth).mean() > 0.9


# ------------------------------------------------------------------ size of the graphs


def test_anchors_are_lowered_to_what_the_poorest_view_allows():
    n_seen = OBSERVED.sum(axis=0).min()
    with pytest.warns(DataWarning, match=f"lowered from 256 to 64: view .* only {n_seen} observed"):
        model = quick(n_anchors=256).fit(TASK.data, TASK.y)
    assert model.fused_graph_.shape == (150, 64)


@pytest.mark.parametrize("method", ["kmeans", "random"])
def test_other_methods_refuse_more_anchors_than_rows(method):
    with pytest.raises(
        InvalidParameterError, match=r"n_anchors is 140 but view .* has \d+ observed"
    ):
        quick(n_anchors=140, anchor_method=method).fit(TASK.data, TASK.y)


def test_bkhk_wants_a_power_of_two():
    with pytest.raises(InvalidParameterError, match=r"power of two, got 24; take 16 or 32"):
        quick(n_anchors=24).fit(TASK.data, TASK.y)
    assert quick(n_anchors=24, anchor_method="kmeans").fit(TASK.data, TASK.y).anchors_[0].shape == (
        24,
        8,
    )


def test_a_view_with_one_sample_is_refused():
    mask = np.ones((150, 2), dtype=bool)
    mask[1:, 1] = False
    with pytest.raises(InvalidParameterError, match="'auto' but view 1 has 1 observed samples"):
        quick().fit(list(BLOBS.views), TASK.y, mask=mask)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"n_anchors": 1},
            r"n_anchors of AGFTIClassifier must be an integer >= 2 or 'auto', got 1",
        ),
        ({"n_neighbors": 0}, "n_neighbors .* >= 1, got 0"),
        ({"anchor_method": "som"}, "anchor_method .* one of 'bkhk', 'kmeans', 'random', got 'som'"),
        ({"graph_smoothing": 0}, "graph_smoothing .* > 0 or 'auto', got 0"),
        ({"low_rank_weight": -1}, "low_rank_weight .* >= 0, got -1"),
        ({"propagation_damping": (1.0, 0.0)}, "propagation_damping"),
        (
            {"propagation_damping": (1.0, 1.0, 1.0)},
            r"propagation_damping .* or 2 values with .*, got \(1\.0, 1\.0, 1\.0\)",
        ),
        ({"imputation": "dft"}, "imputation .* one of 'graph', 'fourier', got 'dft'"),
        ({"final_damping": 0}, "final_damping .* got 0"),
        (
            {"compat": "released"},
            r"compat='released' .* got imputation='graph'; set imputation='fourier'",
        ),
        ({"class_prior": {0: 0.5, 1: 0.3, 2: 0.1, 9: 0.1}}, r"class_prior names \[9\]"),
        ({"normalize": "l1"}, "normalize .* got 'l1'"),
        ({"max_iter": 2.5}, "max_iter .* got 2.5"),
        ({"ablation": "tensor"}, "ablation .* got 'tensor'"),
        ({"compat": "matlab"}, "compat .* got 'matlab'"),
        ({"dtype": "float16"}, "dtype .* got 'float16'"),
        ({"n_jobs": 0}, "n_jobs .* got 0"),
    ],
)
def test_parameters_out_of_range(parameters, message):
    with pytest.raises(InvalidParameterError, match=message):
        AGFTIClassifier(**parameters).fit(TASK.data, TASK.y)


@pytest.mark.parametrize(
    ("X", "y", "error"),
    [
        ([], TASK.y, InvalidViewsError),
        (VIEWS, np.full(150, -1), InvalidLabelsError),
        (VIEWS, TASK.y[:-1], InvalidLabelsError),
        (VIEWS, np.where(TASK.y == 0, 0, -1), InvalidLabelsError),
    ],
    ids=["no views", "no labels", "short y", "one class"],
)
def test_input_errors_reach_the_user(X, y, error):
    with pytest.raises(error):
        quick().fit(X, y)


def test_prediction_before_fit():
    with pytest.raises(NotFittedError):
        quick().predict(VIEWS)


# ------------------------------------------------------------------ warnings and callbacks


def test_unreachable_samples_are_counted_and_get_the_labelled_shares():
    """Two far groups on anchors of their own; only one of them has labels."""
    rng = np.random.default_rng(0)
    group = rng.normal(scale=0.1, size=(64, 2))
    X = np.r_[group, group + 1000]
    y = np.full(128, -1)
    y[:6] = [0, 1, 0, 1, 0, 1]
    y[6] = 0
    model = quick(normalize=None, n_anchors=16, n_neighbors=3, graph_smoothing=0.4)
    with pytest.warns(DataWarning, match="64 of 128 samples are joined to no label"):
        model.fit(X, y)
    np.testing.assert_array_equal(model.unreachable_, np.arange(128) >= 64)
    np.testing.assert_allclose(model.label_distributions_[64:], [[4 / 7, 3 / 7]] * 64)
    np.testing.assert_array_equal(model.transduction_[64:], 0)


def test_uneven_labels_without_prior_are_told_and_a_prior_helps():
    """One class with ten labels, the others with two: the paper's rule gives it everything."""
    y = np.full(150, -1)
    for c, count in enumerate([10, 2, 2]):
        y[np.flatnonzero(TASK.y_true == c)[:count]] = c
    with pytest.warns(DataWarning, match=r"between 2 and 10 labels.*class_prior='labeled'"):
        plain = quick_paper().fit(TASK.data, y)
    assert np.mean(plain.transduction_ == 0) > 0.9
    balanced = quick_paper(class_prior="uniform").fit(TASK.data, y)
    assert np.mean(balanced.transduction_ == TASK.y_true) > 0.9


def test_ending_without_convergence_is_told():
    with pytest.warns(ConvergenceWarning, match=r"stopped at max_iter=2 .* tol being 1.0e-04"):
        model = quick(max_iter=2).fit(TASK.data, TASK.y)
    assert (model.status_, model.n_iter_, len(model.history_)) == ("max_iter", 2, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert quick(max_iter=50, tol=0.1).fit(TASK.data, TASK.y).status_ == "converged"


def test_callbacks_watch_and_stop():
    seen = []
    model = quick(max_iter=9, tol=0.0)
    model.set_callbacks(lambda round_, _: seen.append(round_.iteration) or len(seen) == 3)
    model.fit(TASK.data, TASK.y)
    assert (seen, model.status_, model.n_iter_) == ([1, 2, 3], "stopped", 3)


def test_time_limit_stops_after_the_round_that_exceeds_it():
    model = quick(max_iter=9, tol=0.0).set_callbacks(TimeLimit(0.0)).fit(TASK.data, TASK.y)
    assert (model.status_, model.n_iter_) == ("stopped", 1)


def test_log_has_one_line_per_round_with_its_change(capsys):
    stream = io.StringIO()
    model = quick().set_callbacks(LogRounds(stream)).fit(TASK.data, TASK.y)
    lines = [line for line in stream.getvalue().splitlines() if " change " in line]
    told = zip(model.history_, lines, strict=True)
    assert all(f"change {round_.change:.1e}" in line for round_, line in told)
    assert capsys.readouterr() == ("", "")
    quick(verbose=1).fit(TASK.data, TASK.y)
    assert capsys.readouterr().err.count(" change ") == 4


@pytest.mark.parametrize("part", ["alignment", "weights", "imputation"])
def test_ablation_by_word(part):
    model = quick_paper(ablation=part).fit(TASK.data, TASK.y)
    both = quick_paper(ablation=("alignment", "weights")).fit(TASK.data, TASK.y)
    if part != "imputation":
        np.testing.assert_array_equal(both.view_weights_, 0.5)
    untouched = {
        "alignment": np.array_equal(
            model.anchor_alignments_[0], np.eye(len(model.fused_graph_[0]))
        ),
        "weights": np.array_equal(model.view_weights_, [0.5, 0.5]),
        "imputation": np.array_equal(model.view_graphs_, start_graphs(model, TASK.data)),
    }
    assert [name for name, same in untouched.items() if same] == [part]
