"""Labels of one group are held out together, and intervals count groups."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone

from viewmend import AGFTIClassifier, LabelSearchCV, MendClassifier, compare_methods, load, save
from viewmend.core.advice import unknown
from viewmend.core.advice.unknown import label_reach, typical_samples
from viewmend.core.common.accuracy import AccuracyEstimate
from viewmend.core.common.calibration import Calibration
from viewmend.datasets import make_multiview_blobs
from viewmend.exceptions import DataWarning, InvalidLabelsError, InvalidParameterError
from viewmend.model_selection import LabelledStratifiedKFold
from viewmend.models.label_folds import label_folds, some_can_be_held_out

MODEL = MendClassifier(n_landmarks=40, n_rounds=2)
N_PATIENTS, N_ROWS = 60, 4


def repeated_rows(noise):
    """Views of rows of patients, their patients, and classes that nothing but the patient tells."""
    rng = np.random.default_rng(0)
    patients = np.repeat(np.arange(N_PATIENTS), N_ROWS)
    views = [rng.normal(size=(N_PATIENTS, 5))[patients] for _ in range(2)]
    views = [view + noise * rng.normal(size=view.shape) for view in views]
    y = rng.integers(0, 2, N_PATIENTS)[patients]
    return views, np.where(patients < 40, y, -1), patients


VIEWS, Y, PATIENTS = repeated_rows(0.01)


@pytest.fixture(scope="module")
def by_rows():
    return clone(MODEL).fit(VIEWS, Y)


@pytest.fixture(scope="module")
def by_patients():
    with pytest.warns(DataWarning, match="no better than chance"):
        return clone(MODEL).fit(VIEWS, Y, groups=PATIENTS)


def test_one_group_of_labels_has_nothing_to_be_compared_with():
    """It would look like no other sample, or like all of them."""
    with pytest.warns(DataWarning, match="in another group if there are groups"):
        model = clone(MODEL).fit(VIEWS, Y, groups=np.zeros(len(Y)))
    for X in (None, VIEWS):
        with pytest.warns(DataWarning, match="all labels are of one group"):
            assert np.isnan(model.unknown_score(X)).all()
        with pytest.warns(DataWarning, match="cannot be promised with 1 labelled group"):
            assert not model.decide(X, unknown_rate=0.4).unknown.any()


# ------------------------------------------------------------------ folds


@st.composite
def labelled_groups(draw):
    n = draw(st.integers(2, 40))
    codes = draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n))
    groups = draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    return np.array(codes), np.array(groups)


@given(labelled_groups(), st.integers(2, 5), st.randoms(use_true_random=False))
def test_folds_keep_groups_together_and_leave_every_class_a_label(drawn, n_folds, random):
    codes, groups = drawn
    order = np.array(random.sample(range(len(codes)), len(codes)))
    if not some_can_be_held_out(codes, groups):
        with pytest.raises(InvalidLabelsError, match="single group"):
            label_folds(codes, order, n_folds, groups)
        return
    folds = label_folds(codes, order, n_folds, groups)
    assert 1 <= len(folds) <= n_folds
    held_out = np.concatenate(folds)
    assert len(set(held_out)) == len(held_out)
    for fold in folds:
        assert len(fold)
        others = np.setdiff1d(np.flatnonzero(codes >= 0), fold)
        assert not np.intersect1d(groups[fold], groups[others]).size
        assert set(codes[fold]) <= set(codes[others])


@given(labelled_groups(), st.integers(2, 5), st.permutations(range(10)))
def test_names_of_groups_and_the_order_of_the_rows_change_no_fold(drawn, n_folds, names):
    codes, groups = drawn
    if not some_can_be_held_out(codes, groups):
        return
    order, rows = np.arange(len(codes)), np.argsort(np.sin(np.arange(len(codes))))
    moved = np.argsort(rows)
    renamed = np.array(names)[groups]
    expected = label_folds(codes, order, n_folds, groups)
    found = label_folds(codes[rows], moved[order], n_folds, renamed[rows])
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, rows[other])


@given(labelled_groups(), st.integers(2, 5), st.permutations(range(4)))
def test_names_of_classes_change_no_fold(drawn, n_folds, names):
    """Groups with as many labels of one class as of another are dealt alike, whatever the names."""
    codes, groups = drawn
    if not some_can_be_held_out(codes, groups):
        return
    order, renamed = np.arange(len(codes)), np.where(codes >= 0, np.array(names)[codes], -1)
    expected = label_folds(codes, order, n_folds, groups)
    found = label_folds(renamed, order, n_folds, groups)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_folds_of_groups_have_about_as_many_labels_of_every_class():
    groups = np.repeat(np.arange(30), 3)
    codes = groups % 3
    for fold in label_folds(codes, np.arange(90), 5, groups):
        np.testing.assert_array_equal(np.bincount(codes[fold]), [6, 6, 6])


# ------------------------------------------------------------------ estimates


def test_rows_of_a_patient_do_not_vouch_for_each_other(by_rows, by_patients):
    """The classes of patients are drawn at random: of another patient, nobody can tell one."""
    assert by_rows.estimated_accuracy_.interval[0] > 0.75
    low, high = by_patients.estimated_accuracy_.interval
    assert low < 0.5 < high
    assert by_patients.confidence_[Y < 0].mean() < 0.7 < by_rows.confidence_[Y < 0].mean()


def test_groups_change_no_class_but_what_is_held_out(by_rows, by_patients):
    np.testing.assert_array_equal(by_rows.transduction_, by_patients.transduction_)
    np.testing.assert_array_equal(by_rows.graph_.data, by_patients.graph_.data)


def test_groups_of_one_sample_are_no_groups(by_rows):
    alone = clone(MODEL).fit(VIEWS, Y, groups=[None] * len(Y))
    one, other = by_rows.estimated_accuracy_, alone.estimated_accuracy_
    assert other.n_groups == one.n_held_out == other.n_held_out
    assert other.interval == AccuracyEstimate(other.n_right, other.class_counts).interval
    np.testing.assert_array_equal(alone.unknown_score(), by_rows.unknown_score())


def test_the_order_of_the_rows_and_names_of_groups_do_not_matter(by_patients):
    rows = np.random.default_rng(1).permutation(len(Y))
    names = np.array([f"patient {number}" for number in -PATIENTS])
    with pytest.warns(DataWarning, match="no better than chance"):
        moved = clone(MODEL).fit([view[rows] for view in VIEWS], Y[rows], groups=names[rows])
    assert moved.estimated_accuracy_ == by_patients.estimated_accuracy_
    assert moved.calibration_.temperature == by_patients.calibration_.temperature
    told, again = by_patients.unknown_score(), moved.unknown_score()
    np.testing.assert_allclose(again, told[rows], atol=1e-4)


@given(st.integers(1, 30), st.integers(0, 30), st.integers(2, 9))
def test_an_interval_counts_groups(n_right, n_wrong, size):
    """Labels that are the same within groups tell as much as one label of each."""
    grouped = AccuracyEstimate(
        size * n_right, (size * n_right, size * n_wrong), n_groups=n_right + n_wrong
    )
    of_one_each = AccuracyEstimate(n_right, (n_right, n_wrong))
    assert grouped.interval == pytest.approx(of_one_each.interval, abs=1e-9)
    assert grouped.accuracy == pytest.approx(of_one_each.accuracy)
    assert grouped.is_guessing == of_one_each.is_guessing


def test_a_threshold_counts_groups():
    """Forty labels that were all found promise more than ten groups of four of them."""
    shares = np.tile([0.9, 0.1], (40, 1))
    codes = np.zeros(40, dtype=int)
    alone, grouped = (Calibration(1.0, shares, codes, n_groups=n) for n in (None, 10))
    assert alone.threshold_for(0.9) == pytest.approx(0.9)
    with pytest.raises(ValueError, match="cannot be promised"):
        grouped.threshold_for(0.9)
    assert grouped.threshold_for(0.75) == pytest.approx(0.9)


def test_labels_of_a_single_group_give_no_estimate():
    with pytest.warns(DataWarning, match="none can"):
        model = clone(MODEL).fit(VIEWS, Y, groups=np.zeros(len(Y)))
    assert model.estimated_accuracy_ is None


def test_a_saved_model_remembers_groups(by_patients, tmp_path):
    save(by_patients, tmp_path / "model.vm")
    again = load(tmp_path / "model.vm")
    assert again.estimated_accuracy_ == by_patients.estimated_accuracy_
    scores = by_patients.unknown_score(VIEWS)
    np.testing.assert_array_equal(again.unknown_score(VIEWS), scores)
    np.testing.assert_array_equal(by_patients.for_prediction().unknown_score(VIEWS), scores)


# ------------------------------------------------------------------ other places


@pytest.mark.filterwarnings("ignore:the model is no better")
def test_agfti_holds_groups_out_if_it_holds_labels_out():
    model = AGFTIClassifier(random_state=0, max_iter=3, tol=1.0)
    with pytest.raises(InvalidParameterError, match="cross_fit"):
        clone(model).fit(VIEWS, Y, groups=PATIENTS)
    model.set_params(calibration="cross_fit")
    found = [clone(model).fit(VIEWS, Y, groups=groups) for groups in (None, PATIENTS)]
    one, other = (each.estimated_accuracy_ for each in found)
    assert one.interval[0] > 0.6
    assert other.interval[0] < 0.5 < other.interval[1]
    assert other.n_groups <= 40


def test_folds_of_cross_validation_take_groups():
    for train, test in LabelledStratifiedKFold(4).split(VIEWS[0], Y, PATIENTS):
        assert not np.intersect1d(PATIENTS[train], PATIENTS[test]).size
    with pytest.raises(InvalidLabelsError, match="number of groups of labels"):
        next(LabelledStratifiedKFold(4).split(VIEWS[0], Y, PATIENTS % 3))


def test_a_search_holds_groups_out_together():
    search = LabelSearchCV(MODEL, {"spreading": [0.9]})
    by_rows = clone(search).fit(VIEWS, Y).best_score_
    with pytest.warns(DataWarning, match="no better than chance"):
        by_patients = clone(search).fit(VIEWS, Y, groups=PATIENTS).best_score_
    assert by_patients < 0.75 < by_rows


def test_a_comparison_holds_groups_out_together():
    methods = ["late fusion", "union graph"]
    by_rows = compare_methods(VIEWS, Y, methods=methods)
    by_patients = compare_methods(VIEWS, Y, methods=methods, groups=PATIENTS)
    assert by_rows.beats_guessing
    assert not by_patients.beats_guessing
    assert by_patients.best.n_groups == 40
    assert "160 labels of 40 groups held out" in by_patients.summary()
    (low, high), (lower, higher) = (
        found.best.balanced_interval for found in (by_rows, by_patients)
    )
    assert higher - lower > high - low


def test_a_class_of_one_group_is_never_held_out():
    blobs = make_multiview_blobs(90, n_classes=3, random_state=0)
    groups = np.where(blobs.y == 2, 0, 1 + np.arange(90) // 3)
    y = np.where(np.arange(90) < 60, blobs.y, -1)
    found = compare_methods(blobs.views, y, methods=["late fusion"], groups=groups)
    assert found.never_held_out == (2,)
    assert "they have labels of a single group: 2" in found.summary()


def test_names_under_another_index_are_refused():
    frame = pytest.importorskip("pandas")
    views = {"a": frame.DataFrame(VIEWS[0], index=[f"s{i}" for i in range(len(Y))])}
    groups = frame.Series(PATIENTS, index=[f"s{i}" for i in range(len(Y))][::-1])
    with pytest.raises(InvalidLabelsError, match="groups"):
        clone(MODEL).fit(views, Y, groups=groups)


def test_a_column_of_obs_has_the_groups(by_patients):
    anndata = pytest.importorskip("anndata")
    pandas = pytest.importorskip("pandas")
    obs = pandas.DataFrame({"patient": PATIENTS}, index=[f"cell {i}" for i in range(len(Y))])
    obs["patient"] = obs["patient"].astype("category")
    cells = anndata.AnnData(obs=obs, obsm={"a": VIEWS[0], "b": VIEWS[1]})
    with pytest.warns(DataWarning, match="no better than chance"):
        model = clone(MODEL).fit(cells, Y, groups="patient")
    assert model.estimated_accuracy_ == by_patients.estimated_accuracy_


def test_sets_of_classes_count_groups(by_rows):
    """A promise of 15 in 16 takes 15 labels: 160 make one, but not if they are of 12 patients."""
    few = np.where(PATIENTS < 40, PATIENTS % 12, PATIENTS)
    model = clone(MODEL).fit(VIEWS, Y, groups=few)
    with pytest.warns(DataWarning, match="with 12 held-out groups of labels, which takes 15"):
        assert model.predict_set(alpha=1 / 16)[Y < 0].all()
    assert not by_rows.predict_set(alpha=1 / 16)[Y < 0].all()


def test_rows_of_new_patients_are_of_known_classes(by_rows, by_patients):
    """Rows of a patient are close to each other, which does not make those of others strange."""
    rng = np.random.default_rng(1)
    new = [np.repeat(rng.normal(size=(50, 5)), 2, axis=0) for _ in range(2)]
    for rows, samples in ((Y < 0, None), (slice(None), new)):
        alarms = [(m.unknown_score(samples)[rows] >= 0.95).mean() for m in (by_rows, by_patients)]
        assert alarms[0] > 0.9
        assert alarms[1] < 0.15
    far = [100 * view for view in new]
    assert by_patients.decide(far, unknown_rate=0.05).unknown.all()


def test_groups_of_any_size_are_left_out_of_the_search(by_patients, monkeypatch):
    """Small groups by a search for more rows than they have, large ones by one without them."""
    found = []
    for most in (0, 2, 32):
        monkeypatch.setattr(unknown, "MOST_SEARCHED", most)
        state = by_patients.fitted_state_
        groups = np.where(state.label_groups < 10, 0, state.label_groups)
        found.append(typical_samples(state.induction, state.labelled, groups))
    for other in found[1:]:
        np.testing.assert_array_equal(other.centres, found[0].centres)
        np.testing.assert_array_equal(other.strangeness, found[0].strangeness)


def test_false_alarms_are_promised_by_groups(by_patients):
    """The 160 labels are of 40 patients."""
    with pytest.warns(DataWarning, match="with 40 labelled groups to compare with"):
        assert not by_patients.decide(unknown_rate=1 / 50).unknown.any()


def test_a_label_reaches_no_sample_of_its_group():
    """Two pairs that nothing joins: in each, the other label is of the same group."""
    graph = csr_array(np.kron(np.eye(2), np.array([[0.0, 1.0], [1.0, 0.0]])))
    codes, prior = np.array([0, 0, 1, 1]), np.array([0.5, 0.5])
    reach = label_reach(graph, codes, np.array([0, 0, 1, 1]), prior, 0.9)
    np.testing.assert_allclose(reach, 0, atol=1e-9)
    assert (label_reach(graph, codes, np.arange(4), prior, 0.9) > 0.1).all()


def test_a_promise_by_class_counts_the_groups_of_each_class():
    """One class has 64 labels of eight patients, the other 96 of as many patients."""
    y = np.where(np.arange(len(Y)) < 160, (np.arange(len(Y)) >= 64).astype(int), -1)
    groups = np.arange(len(Y))
    groups[:64] = groups[:64] % 8
    views = [view + 5 * (np.arange(len(Y)) % 160 >= 64)[:, None] for view in VIEWS]
    model = clone(MODEL).fit(views, y, groups=groups)
    assert model.calibration_.class_groups.tolist() == [8, 96]
    assert model.calibration_.n_groups == 104
    shared = model.predict_set(alpha=0.05)
    np.testing.assert_array_equal(shared, model.predict_set(alpha=0.05, by_class=False))
    with pytest.warns(DataWarning, match="with 8 held-out groups of labels of a class"):
        assert model.predict_set(alpha=0.05, by_class=True)[y < 0, 0].all()


def test_a_search_refuses_groups_that_the_final_fit_could_not_hold_out():
    """The leave-one-out temperature of AGF-TI would let rows of a patient vouch for each other."""
    search = LabelSearchCV(AGFTIClassifier(random_state=0), {"label_strength": [1.0, 2.0]}, cv=2)
    with pytest.raises(InvalidParameterError, match="groups are held out together"):
        search.fit(VIEWS, Y, groups=PATIENTS)


def test_fit_predict_takes_groups_as_fit_does(by_patients):
    again = clone(MODEL)
    with pytest.warns(DataWarning, match="no better than chance"):
        found = again.fit_predict(VIEWS, Y, groups=PATIENTS)
    np.testing.assert_array_equal(found, by_patients.transduction_)
    assert again.estimated_accuracy_ == by_patients.estimated_accuracy_
