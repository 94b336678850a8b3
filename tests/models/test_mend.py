"""MendClassifier: symmetries, determinism, class shares, prediction, errors."""

import io

import numpy as np
import pytest
from scipy.sparse import block_array
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from viewmend import MendClassifier
from viewmend.baselines import UnionGraphClassifier
from viewmend.callbacks import LogRounds, TimeLimit
from viewmend.core.mend.representations import REPRESENTATIONS
from viewmend.datasets import hide, make_broken_moons, make_multiview_blobs
from viewmend.exceptions import (
    DataWarning,
    InvalidLabelsError,
    InvalidParameterError,
    InvalidViewsError,
)
from viewmend.models.mend_problem import make_geometry_settings, views_told_of

N_SAMPLES = 150
BLOBS = make_multiview_blobs(N_SAMPLES, n_views=3, noise=1.5, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.1, random_state=0)
VIEWS, OBSERVED = list(TASK.data.views), TASK.data.observed
# With classes that overlap, for symmetries: here a difference would show.
BLURRED = make_multiview_blobs(N_SAMPLES, n_views=3, noise=3.0, random_state=0)
HARD = hide(BLURRED.views, BLURRED.y, missing_rate=0.4, label_rate=0.1, random_state=0)


def small(**parameters):
    """Fewer landmarks than rows, so that they have to be chosen."""
    return MendClassifier(**({"n_landmarks": 40} | parameters))


def accuracy(model, task=TASK):
    return np.mean((model.transduction_ == task.y_true)[task.unlabelled])


def same_fit(one, other, rows=slice(None)):
    """``one`` equals ``other`` with its samples in the order ``rows``, to the last bit."""
    np.testing.assert_array_equal(one.label_distributions_, other.label_distributions_[rows])
    np.testing.assert_array_equal(one.transduction_, other.transduction_[rows])


@pytest.fixture(scope="module")
def fitted():
    return small().fit(TASK.data, TASK.y)


# ------------------------------------------------------------------ symmetries


@pytest.fixture(scope="module")
def hard():
    return small().fit(HARD.data, HARD.y)


@pytest.mark.parametrize("seed", range(3))
def test_order_of_the_samples_does_not_matter_at_all(hard, seed):
    rows = np.random.default_rng(seed).permutation(N_SAMPLES)
    mixed = small().fit(HARD.data[rows], HARD.y[rows])
    same_fit(mixed, hard, rows)
    np.testing.assert_array_equal(mixed.graph_.toarray(), hard.graph_.toarray()[rows][:, rows])
    new = make_multiview_blobs(40, n_views=3, noise=3.0, random_state=0)
    np.testing.assert_array_equal(mixed.predict_proba(new.views), hard.predict_proba(new.views))


def test_order_does_not_matter_among_duplicates_of_different_labels():
    """Rows that are equal in all but their label: the label decides which of them comes first."""
    twice = np.r_[np.arange(60), np.arange(20)]
    views = [view[twice] for view in BLURRED.views]
    y = np.full(80, -1)
    y[:20] = BLURRED.y[:20]
    # Some copies are unlabelled, some contradict.
    y[70:] = (BLURRED.y[10:20] + 1) % 3
    model = small().fit(views, y)
    for seed in range(3):
        rows = np.random.default_rng(seed).permutation(80)
        same_fit(small().fit([view[rows] for view in views], y[rows]), model, rows)


def test_samples_equal_in_everything_stand_for_one_another():
    """No rule can tell them apart, so they may change places and nothing else may."""
    twice = np.repeat(np.arange(60), 2)
    views, y = [view[twice] for view in BLURRED.views], np.full(120, -1)
    y[:24] = BLURRED.y[twice[:24]]
    model = small().fit(views, y)
    rows = np.random.default_rng(0).permutation(120)
    mixed = small().fit([view[rows] for view in views], y[rows])
    found = np.empty_like(mixed.label_distributions_)
    found[rows] = mixed.label_distributions_
    pairs, expected = (
        np.sort(P.reshape(60, 2, 3), axis=1) for P in (found, model.label_distributions_)
    )
    np.testing.assert_array_equal(pairs, expected)


@pytest.mark.parametrize("order", [(2, 0, 1), (1, 0, 2)])
def test_order_of_the_views_does_not_matter(hard, order):
    turned = small().fit([HARD.data.views[v] for v in order], HARD.y)
    np.testing.assert_allclose(turned.label_distributions_, hard.label_distributions_, atol=1e-4)
    np.testing.assert_array_equal(turned.transduction_, hard.transduction_)
    np.testing.assert_allclose(turned.view_weights_, hard.view_weights_[list(order)], rtol=1e-3)


@pytest.mark.parametrize("names", [[2, 0, 1], [1, 0, 2], ["z", "b", "m"]], ids=str)
def test_names_of_the_classes_do_not_matter(hard, names):
    coded = np.array([None if c == -1 else names[c] for c in HARD.y], dtype=object)
    model = small().fit(HARD.data, coded)
    columns = [list(model.classes_).index(name) for name in names]
    np.testing.assert_allclose(
        model.label_distributions_[:, columns], hard.label_distributions_, atol=1e-4
    )
    assert [names.index(c) for c in model.transduction_] == list(hard.transduction_)


def test_units_of_a_view_do_not_matter():
    """Of every row a landmark, because landmarks are drawn by content, which changes here."""
    scaled = [view * scale for view, scale in zip(HARD.data.views, (1e-3, 1.0, 1e4), strict=True)]
    one, two = (MendClassifier().fit(views, HARD.y) for views in (HARD.data, scaled))
    np.testing.assert_allclose(one.label_distributions_, two.label_distributions_, atol=1e-2)
    np.testing.assert_array_equal(one.transduction_, two.transduction_)


# ------------------------------------------------------------------ determinism


def test_same_seed_same_model_and_another_seed_other_landmarks(fitted):
    same_fit(small().fit(TASK.data, TASK.y), fitted)
    other = small(random_state=1).fit(TASK.data, TASK.y)
    assert not np.array_equal(other.label_distributions_, fitted.label_distributions_)
    assert np.mean(other.transduction_ == fitted.transduction_) > 0.97


def test_seed_does_not_matter_where_every_row_is_a_landmark():
    one, two = (small(n_landmarks=500, random_state=s).fit(TASK.data, TASK.y) for s in (0, 1))
    np.testing.assert_allclose(one.label_distributions_, two.label_distributions_, atol=1e-3)


@pytest.fixture(scope="module")
def threaded():
    """Large enough that linear algebra uses the threads it is given."""
    blobs = make_multiview_blobs(600, n_views=2, noise=2.0, random_state=0)
    task = hide(blobs.views, blobs.y, missing_rate=0.3, label_rate=0.05, random_state=0)

    def fit(**parameters):
        return (MendClassifier(n_jobs=n, **parameters).fit(task.data, task.y) for n in (1, 2))

    return fit


def test_threads_do_not_change_the_model(threaded):
    same_fit(*threaded(n_rounds=2, n_landmarks=200))


@pytest.mark.parametrize(
    "form",
    [
        lambda: {"X": tuple(VIEWS)},
        lambda: {"X": {"a": VIEWS[0], "b": VIEWS[1], "c": VIEWS[2]}},
        lambda: {"X": [np.nan_to_num(view, nan=7.0) for view in VIEWS], "mask": OBSERVED},
        lambda: {"X": np.hstack(VIEWS), "view_sizes": (8, 8, 8)},
    ],
    ids=["tuple", "dict", "mask", "stacked"],
)
def test_every_form_of_input_gives_the_same_fit(fitted, form):
    arguments = form()
    model = small(view_sizes=arguments.pop("view_sizes", None)).fit(y=TASK.y, **arguments)
    same_fit(model, fitted)


def test_labels_play_no_part_in_the_geometry():
    """Distinct samples: what is computed before the labels is the same whatever they are."""
    model = small()
    others = np.where(TASK.y == -1, TASK.y_true, -1)
    built = [model.build_geometry(*model.prepare(TASK.data, y)) for y in (TASK.y, others)]
    (order, one), (again, two) = built
    np.testing.assert_array_equal(order, again)
    for left, right in zip(one.views, two.views, strict=True):
        np.testing.assert_array_equal(left.kernel.linear, right.kernel.linear)
        for name in REPRESENTATIONS:
            np.testing.assert_array_equal(
                left.neighbours[name].indices, right.neighbours[name].indices
            )
    for left, right in zip(one.blocks.views, two.blocks.views, strict=True):
        np.testing.assert_array_equal(left.Phi, right.Phi)


# ------------------------------------------------------------------ accuracy and weights


@pytest.mark.parametrize("seed", [0, 1])
def test_better_than_spreading_on_the_union_graph(seed):
    blobs = make_multiview_blobs(300, n_views=3, noise=3.0, n_classes=4, random_state=seed)
    task = hide(blobs.views, blobs.y, missing_rate=0.5, label_rate=0.05, random_state=seed)
    mended = MendClassifier().fit(task.data, task.y)
    union = UnionGraphClassifier().fit(task.data, task.y)
    assert accuracy(mended, task) > accuracy(union, task) + 0.02


def test_separated_blobs_are_labelled_right(fitted):
    assert accuracy(fitted) > 0.97
    np.testing.assert_allclose(fitted.label_distributions_.sum(axis=1), 1)
    np.testing.assert_array_equal(fitted.transduction_[TASK.labelled], TASK.y[TASK.labelled])


@pytest.mark.parametrize("seed", range(2))
def test_the_sub_cluster_problem_is_solved(seed):
    """Views of two columns, in which rows of one direction may be of different moons."""
    task = make_broken_moons(random_state=seed)
    assert accuracy(small(calibration=None).fit(task.data, task.y), task) == 1
    asked = small(calibration=None, representations=["unit"]).fit(task.data, task.y)
    assert accuracy(asked, task) < 0.5
    assert [view.representations["unit"].first for view in asked.fitted_state_.induction.views] == [
        "unit",
        "unit",
    ]


def test_given_labels_are_kept_even_where_they_are_wrong():
    y = TASK.y.copy()
    wrong = np.flatnonzero(TASK.labelled)[0]
    y[wrong] = (y[wrong] + 1) % 3
    model = small().fit(TASK.data, y)
    np.testing.assert_array_equal(model.transduction_[TASK.labelled], y[TASK.labelled])


def test_a_useless_view_has_little_weight(fitted):
    noise = np.random.default_rng(0).normal(size=(N_SAMPLES, 8))
    model = small().fit([*VIEWS, noise], TASK.y)
    np.testing.assert_allclose(model.view_weights_.sum(), 1)
    assert model.view_weights_[3] < 0.05 * model.view_weights_[:3].min()
    trust = [np.mean(list(row.values())) for row in model.graph_weights_.values()]
    assert trust[3] < 0.6 * min(trust[:3])
    assert accuracy(model) > 0.95


def test_graph_weights_are_named_and_the_best_is_one(fitted):
    weights = fitted.graph_weights_
    assert list(weights) == list(fitted.view_names_)
    assert all(list(row) == list(REPRESENTATIONS) for row in weights.values())
    flat = [w for row in weights.values() for w in row.values()]
    assert max(flat) == 1.0
    np.testing.assert_array_equal(flat, fitted.history_[-1].graph_weights)
    plain = small(homophily_power=0.0, representations=("unit", "hellinger"))
    weights = plain.fit(TASK.data, TASK.y).graph_weights_
    assert all(row == {"unit": 1.0, "hellinger": 1.0} for row in weights.values())


def test_one_array_is_one_view():
    complete, y = BLOBS.views[0], TASK.y[np.argsort(TASK.order)]
    model = small().fit(complete, y)
    assert list(model.view_weights_) == [1.0]
    assert np.mean(model.transduction_ == BLOBS.y) > 0.9


def test_single_precision_agrees(fitted):
    model = small(dtype="float32").fit(TASK.data, TASK.y)
    assert np.mean(model.transduction_ == fitted.transduction_) > 0.98
    assert np.abs(model.label_distributions_ - fitted.label_distributions_).mean() < 0.02
    assert np.mean(model.predict(TASK.data) == TASK.y_true) > 0.95


# ------------------------------------------------------------------ classes and labels


@pytest.mark.parametrize(
    "prior",
    [{0: 0.6, 1: 0.3, 2: 0.1}, np.array([0.6, 0.3, 0.1]), [0.6, 0.3, 0.1]],
    ids=["dict", "array", "list"],
)
def test_class_sizes_follow_the_prior(prior):
    """Without evidence exactly so; with it the prior pulls, and the views have a say."""
    model = small(class_prior=prior, n_rounds=0).fit(TASK.data, TASK.y)
    np.testing.assert_allclose(model.class_prior_, [0.6, 0.3, 0.1])
    sizes = np.bincount(np.argmax(model.label_distributions_, axis=1), minlength=3)
    np.testing.assert_allclose(sizes, [90, 45, 15], atol=2)


def test_uniform_prior_undoes_uneven_labels():
    """One class with ten labels, the others with two, of classes of the same size."""
    y = np.full(N_SAMPLES, -1)
    for c, count in enumerate([10, 2, 2]):
        y[np.flatnonzero(TASK.y_true == c)[:count]] = c
    labelled, uniform = (
        small(class_prior=prior).fit(TASK.data, y) for prior in ("labeled", "uniform")
    )
    np.testing.assert_allclose(labelled.class_prior_, np.array([10, 2, 2]) / 14)
    np.testing.assert_allclose(uniform.class_prior_, 1 / 3)
    assert np.mean(uniform.transduction_ == TASK.y_true) > 0.95
    assert np.mean(labelled.transduction_ == 0) > 1.5 * np.mean(uniform.transduction_ == 0)
    # By itself the model trusts such labels less than when it is told to.
    auto = small().fit(TASK.data, y)
    assert labelled.class_prior_[0] > auto.class_prior_[0] > uniform.class_prior_[0]
    assert np.mean(auto.transduction_ == TASK.y_true) > np.mean(
        labelled.transduction_ == TASK.y_true
    )


def test_no_prior_means_auto(fitted):
    same_fit(small(class_prior=None).fit(TASK.data, TASK.y), fitted)


@pytest.mark.parametrize("marker", [-1, None, np.nan], ids=str)
def test_every_marker_of_unlabelled_samples(fitted, marker):
    y = np.array([marker if c == -1 else int(c) for c in TASK.y], dtype=object)
    same_fit(small().fit(TASK.data, y), fitted)


def test_samples_that_nothing_reaches_are_told_and_get_the_labelled_shares():
    """Two groups that no edge joins, one of them without labels, and no regression to help."""
    rng = np.random.default_rng(0)
    group = rng.normal(scale=0.1, size=(40, 2))
    X = np.r_[group + 1, group + 1000]
    y = np.full(80, -1)
    y[:7] = [0, 1, 0, 1, 0, 1, 0]
    model = small(representations=("standard",), n_neighbors=3, n_rounds=0)
    with pytest.warns(DataWarning, match="40 of 80 samples are joined to no label"):
        model.fit(X, y)
    np.testing.assert_array_equal(model.unreachable_, np.arange(80) >= 40)
    np.testing.assert_array_equal(model.off_graph_, model.unreachable_)
    np.testing.assert_allclose(model.label_distributions_[40:], [[4 / 7, 3 / 7]] * 40)
    with_evidence = model.set_params(n_rounds=1).fit(X, y)
    assert not with_evidence.unreachable_.any()


@pytest.mark.parametrize("n_views", [1, 3, 7])
def test_views_are_told_of_along_chains_of_samples(n_views):
    """Those in a component, of the graph between samples and views, that has a labelled sample."""
    rng = np.random.default_rng(n_views)
    for _ in range(30):
        observed, labelled = rng.random((9, n_views)) < 0.2, rng.random(9) < 0.2
        _, part = connected_components(block_array([[None, observed], [observed.T, None]]))
        expected = np.isin(part[9:], part[:9][labelled])
        np.testing.assert_array_equal(views_told_of(observed, labelled), expected)


@pytest.mark.parametrize("lazily", [False, True])
def test_samples_that_share_no_view_with_a_label_are_told(lazily):
    """As where two tables name the same samples in two ways, and labels go with one of them."""
    views, y = [view.copy() for view in BLOBS.views[:2]], TASK.y.copy()
    views[0][:40], views[1][40:], y[:40] = np.nan, np.nan, -1

    def fit():
        given = views
        if lazily:
            array = pytest.importorskip("dask.array")
            given = [array.from_array(view, chunks=(90, -1)) for view in views]
        return small(n_rounds=1, calibration=None).fit(given, y)

    with pytest.warns(DataWarning, match=r"40 of \d+ samples \(view 1\) share no view with a lab"):
        model = fit()
    assert not model.unreachable_.any()
    # One sample that has both is enough for regressions.
    views[0][0] = BLOBS.views[0][0]
    fit()


# ------------------------------------------------------------------ prediction


@pytest.fixture(scope="module")
def split():
    """A model of 150 samples, and 100 others."""
    whole = make_multiview_blobs(250, n_views=3, noise=1.5, random_state=3)
    old, new = ([view[part] for view in whole.views] for part in (slice(150), slice(150, None)))
    rates = {"missing_rate": 0.4, "label_rate": 0.1}
    task = hide(old, whole.y[:150], **rates, random_state=0)
    return small().fit(task.data, task.y), new, whole.y[150:]


def test_new_samples_are_classified_through_the_views_they_have(split):
    model, new, truth = split
    assert np.mean(model.predict(new) == truth) > 0.95
    mask = np.random.default_rng(0).random((100, 3)) < 0.5
    mask[~mask.any(axis=1), 0] = True
    blank = [np.where(mask[:, [v]], view, np.nan) for v, view in enumerate(new)]
    shares = model.predict_proba(blank)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(shares, model.predict_proba(new, mask=mask))
    assert np.mean(np.argmax(shares, axis=1) == truth) > 0.9


@pytest.mark.parametrize("seen", [[0], [1, 2]], ids=str)
def test_new_samples_may_lack_a_view_altogether(split, seen):
    model, new, truth = split
    given = [view if v in seen else None for v, view in enumerate(new)]
    mask = np.tile(np.isin(np.arange(3), seen), (100, 1))
    np.testing.assert_array_equal(model.predict(given), model.predict(new, mask=mask))
    assert np.mean(model.predict(given) == truth) > 0.85


def test_copies_of_fitted_samples_keep_their_class(fitted):
    free = TASK.unlabelled
    found = fitted.predict(TASK.data[free])
    assert np.mean(found == fitted.transduction_[free]) > 0.97


def test_prediction_before_fit():
    with pytest.raises(NotFittedError):
        small().predict(VIEWS)


def test_samples_outside_the_graph_are_scored_as_new_ones():
    """Without rounds both have the same edges to the graph, and columns of the same mass."""
    model = small(graph_samples=60, n_rounds=0, calibration=None).fit(HARD.data, HARD.y)
    outside = np.flatnonzero(model.graph_.sum(axis=1) == 0)
    assert len(outside) == N_SAMPLES - 60
    found = model.predict_proba(HARD.data[outside])
    np.testing.assert_allclose(found, model.label_distributions_[outside], atol=1e-6)


def test_two_samples_with_their_labels_are_enough():
    """Their evidence joins them to nothing, and nothing is divided by."""
    model = small(calibration=None).fit([view[:2] for view in BLOBS.views], np.array([1, 0]))
    np.testing.assert_array_equal(model.transduction_, [1, 0])
    assert np.isfinite(model.label_distributions_).all()


# ------------------------------------------------------------------ callbacks and history


def test_history_names_the_stages(fitted):
    names = [record.name for record in fitted.history_]
    assert names == ["neighbours", "homophily"] + ["evidence"] * 8
    assert (fitted.n_iter_, fitted.status_) == (10, "done")
    guided = small(n_rounds=1, edge_power=1.0).fit(TASK.data, TASK.y)
    names = [record.name for record in guided.history_]
    assert names == ["neighbours", "homophily", "guided", "guided", "evidence"]


@pytest.mark.parametrize("n_stages", [1, 4, 5])
def test_a_callback_stops_and_the_model_is_usable(n_stages):
    seen = []
    model = small().set_callbacks(lambda record, _: seen.append(record) or len(seen) == n_stages)
    model.fit(TASK.data, TASK.y)
    assert (model.status_, model.n_iter_, len(seen)) == ("stopped", n_stages, n_stages)
    assert accuracy(model) > 0.9
    assert np.mean(model.predict(TASK.data) == TASK.y_true) > 0.9


def test_stopping_after_the_graphs_equals_asking_for_no_rounds():
    stopped = small().set_callbacks(lambda record, _: record.iteration == 2)
    same_fit(stopped.fit(TASK.data, TASK.y), small(n_rounds=0).fit(TASK.data, TASK.y))


def test_time_limit_stops_after_the_first_stage():
    model = small().set_callbacks(TimeLimit(0.0)).fit(TASK.data, TASK.y)
    assert (model.status_, model.n_iter_) == ("stopped", 1)


def test_log_has_one_line_per_stage(capsys):
    stream = io.StringIO()
    model = small().set_callbacks(LogRounds(stream)).fit(TASK.data, TASK.y)
    lines = stream.getvalue().splitlines()
    rounds = [line for line in lines if "changed" in line]
    told = zip(model.history_, rounds, strict=True)
    assert all(record.name in line for record, line in told)
    assert capsys.readouterr() == ("", "")
    small(verbose=1).fit(TASK.data, TASK.y)
    assert len(capsys.readouterr().err.splitlines()) == len(lines)


# ------------------------------------------------------------------ parameters and errors


def test_clone_and_parameters_round_trip(fitted):
    copy = clone(fitted.set_callbacks(lambda *_: None))
    assert copy.get_params() == fitted.get_params()
    assert copy.callbacks == ()
    assert not hasattr(copy, "classes_")
    fitted.set_callbacks()
    same_fit(copy.fit(TASK.data, TASK.y), fitted)


def test_geometry_parameters_are_those_that_change_the_geometry():
    """A search shares the geometry between settings that differ in the others only."""
    names = set(small().get_params())
    assert set(MendClassifier.geometry_parameters) <= names
    base = make_geometry_settings(small())
    others = {
        "spreading": 0.5,
        "homophily_power": 1.0,
        "edge_power": 1.0,
        "edge_floor": 0.1,
        "n_rounds": 1,
        "consensus_weight": 1.0,
        "evidence_power": 1.0,
        "class_prior": "uniform",
    }
    assert not set(others) & set(MendClassifier.geometry_parameters)
    assert make_geometry_settings(small(**others)) == base


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"representations": "unit"},
            "representations of MendClassifier must be 'all' or .* got 'u",
        ),
        ({"representations": ("unit", "pca")}, "representations .* got"),
        ({"representations": ()}, r"representations .* non-empty .* got \(\)"),
        ({"n_neighbors": 0}, "n_neighbors .* >= 1.* got 0"),
        ({"n_neighbors": (3, 5, 9)}, r"n_neighbors .* 2 values .* got \(3, 5, 9\)"),
        ({"spreading": 1.0}, r"spreading .* in \[0, 1\), got 1.0"),
        ({"homophily_power": -1}, "homophily_power .* >= 0, got -1"),
        ({"edge_power": -0.5}, "edge_power .* >= 0, got -0.5"),
        ({"edge_floor": 0.0}, "edge_floor .* > 0, got 0.0"),
        ({"n_rounds": -1}, "n_rounds .* got -1"),
        ({"n_landmarks": 1}, "n_landmarks .* >= 2, got 1"),
        ({"kernel_width": 0}, "kernel_width .* > 0, got 0"),
        ({"consensus_weight": -1}, "consensus_weight .* got -1"),
        ({"evidence_power": np.nan}, "evidence_power .* got nan"),
        ({"class_prior": "even"}, "class_prior .* got 'even'"),
        ({"class_prior": {0: 0.5, 1: 0.5}}, r"class_prior leaves out \[2\]"),
        ({"class_prior": [0.5, 0.5, 0.5]}, "class_prior .* sum to 1"),
        ({"dtype": "float16"}, "dtype .* got 'float16'"),
        ({"n_jobs": 0}, "n_jobs .* got 0"),
    ],
)
def test_parameters_out_of_range(parameters, message):
    with pytest.raises(InvalidParameterError, match=message):
        MendClassifier(**parameters).fit(TASK.data, TASK.y)


@pytest.mark.parametrize(
    ("X", "y", "error"),
    [
        ([], TASK.y, InvalidViewsError),
        (VIEWS, np.full(N_SAMPLES, -1), InvalidLabelsError),
        (VIEWS, TASK.y[:-1], InvalidLabelsError),
        (VIEWS, np.where(TASK.y == 0, 0, -1), InvalidLabelsError),
    ],
    ids=["no views", "no labels", "short y", "one class"],
)
def test_input_errors_reach_the_user(X, y, error):
    with pytest.raises(error):
        small().fit(X, y)


def test_bounds_of_the_neighbours_are_in_order():
    with pytest.raises(InvalidParameterError, match="n_neighbors"):
        small(n_neighbors=(10, 3)).fit(TASK.data, TASK.y)


@pytest.mark.parametrize("n_seen", [1, 2, 3])
def test_a_view_of_few_samples_is_no_obstacle(n_seen):
    mask = np.ones((N_SAMPLES, 2), dtype=bool)
    mask[n_seen:, 1] = False
    y = TASK.y[np.argsort(TASK.order)]
    model = small().fit(list(BLOBS.views[:2]), y, mask=mask)
    assert np.mean(model.transduction_ == BLOBS.y) > 0.9
    assert np.mean(model.predict(list(BLOBS.views[:2])) == BLOBS.y) > 0.85
