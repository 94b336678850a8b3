"""Calibration, confidence, abstention and explanation of the two classifiers."""

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from viewmend import AGFTIClassifier, LabelSearchCV, MendClassifier, load, save
from viewmend.core.common.calibration import log_loss, tempered
from viewmend.core.common.content_order import canonical_order
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import DataWarning, InvalidParameterError
from viewmend.models.label_folds import label_folds

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N_SAMPLES = 160
BLOBS = make_multiview_blobs(N_SAMPLES, n_views=3, noise=3.0, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.15, random_state=0)
NEW = make_multiview_blobs(40, n_views=3, noise=3.0, random_state=0).views
MODELS = {
    "mend": MendClassifier(n_landmarks=40, n_rounds=2),
    "agfti": AGFTIClassifier(random_state=0, max_iter=5),
}
VARIANTS = MODELS | {
    "mend without evidence": MendClassifier(n_landmarks=40, n_rounds=0),
    "mend with guided edges": MendClassifier(n_landmarks=40, n_rounds=1, edge_power=1.0),
    "mend with a prior": MendClassifier(n_landmarks=40, n_rounds=1, class_prior="uniform"),
    "agfti without a prior": AGFTIClassifier(random_state=0, max_iter=3, class_prior=None),
    "agfti in float32": AGFTIClassifier(random_state=0, max_iter=3, dtype="float32"),
    "agfti of the paper": AGFTIClassifier.from_paper(random_state=0, max_iter=5),
    "agfti uncalibrated": AGFTIClassifier(random_state=0, max_iter=3, calibration=None),
}
KINDS = pytest.mark.parametrize("kind", MODELS)


@pytest.fixture(scope="module")
def fits():
    return {name: clone(model).fit(TASK.data, TASK.y) for name, model in VARIANTS.items()}


@pytest.fixture(scope="module")
def plain():
    """The same without calibration."""
    return {
        kind: clone(model).set_params(calibration=None).fit(TASK.data, TASK.y)
        for kind, model in MODELS.items()
    }


# ------------------------------------------------------------------ calibration


@KINDS
def test_calibration_is_one_temperature_and_changes_no_class(fits, plain, kind):
    model, raw = fits[kind], plain[kind]
    temperature = model.calibration_.temperature
    assert raw.calibration_.temperature == 1
    np.testing.assert_array_equal(model.transduction_, raw.transduction_)
    np.testing.assert_array_equal(
        model.label_distributions_, tempered(raw.label_distributions_, temperature)
    )
    np.testing.assert_array_equal(
        model.predict_proba(NEW), tempered(raw.predict_proba(NEW), temperature)
    )
    np.testing.assert_array_equal(model.predict(NEW), raw.predict(NEW))


@pytest.fixture(scope="module")
def overlapping():
    """Classes that overlap, so that there is something to be unsure of."""
    blobs = make_multiview_blobs(300, n_views=2, noise=4.0, n_classes=4, random_state=1)
    return hide(blobs.views, blobs.y, missing_rate=0.5, label_rate=0.2, random_state=1)


@pytest.mark.parametrize("calibration", ["leave_one_out", "cross_fit"])
def test_calibration_brings_probabilities_closer_to_the_truth(overlapping, calibration):
    """On samples whose labels no fit has seen, of AGF-TI, which is far from sure enough."""
    task = overlapping
    model = clone(MODELS["agfti"]).set_params(calibration=calibration).fit(task.data, task.y)
    raw = clone(MODELS["agfti"]).set_params(calibration=None).fit(task.data, task.y)
    truth = task.y_true[task.unlabelled]
    before, after = (
        log_loss(fit.label_distributions_[task.unlabelled], truth) for fit in (raw, model)
    )
    assert after < 0.9 * before
    # What the held-out labels promise is about what comes.
    assert model.calibration_.log_losses[1] == pytest.approx(after, rel=0.35)


@pytest.mark.parametrize(("kind", "n_folds"), [("mend", 3), ("agfti", 5)])
def test_cross_fits_are_those_of_labels_taken_away(overlapping, kind, n_folds):
    """The first fold by hand: some of the labels, class by class in the order of the content."""
    task = overlapping
    estimator = clone(MODELS[kind]).set_params(calibration="cross_fit", class_prior="uniform")
    model = clone(estimator).fit(task.data, task.y)
    order = canonical_order(task.data.views, task.data.observed, task.y)
    fold = label_folds(task.y, order, n_folds)[0]
    y = task.y.copy()
    y[fold] = -1
    other = clone(estimator).set_params(calibration=None).fit(task.data, y)
    expected = other.label_distributions_[fold]
    np.testing.assert_allclose(model.calibration_.shares[: len(fold)], expected, rtol=1e-12)
    np.testing.assert_array_equal(model.calibration_.codes[: len(fold)], task.y[fold])
    assert model.calibration_.n_samples == task.labelled.sum()


@KINDS
def test_held_out_labels_are_those_of_classes_with_several(fits, kind):
    calibration = fits[kind].calibration_
    assert calibration.n_samples == TASK.labelled.sum()
    np.testing.assert_array_equal(
        np.bincount(calibration.codes), np.bincount(TASK.y[TASK.labelled])
    )


@KINDS
def test_one_label_per_class_leaves_the_shares_as_they_are_and_is_told(kind):
    """None can be held out."""
    y = np.full(N_SAMPLES, -1)
    for c in range(3):
        y[np.flatnonzero(TASK.y == c)[0]] = c
    with pytest.warns(
        DataWarning,
        match="every class has one label, or labels of one group, so that none can be held",
    ):
        model = clone(MODELS[kind]).fit(TASK.data, y)
    raw = clone(MODELS[kind]).set_params(calibration=None).fit(TASK.data, y)
    assert (model.calibration_.temperature, model.calibration_.n_samples) == (1.0, 0)
    assert model.estimated_accuracy_ is None
    np.testing.assert_array_equal(model.label_distributions_, raw.label_distributions_)


@KINDS
def test_order_of_the_samples_does_not_change_the_calibration(fits, kind):
    rows = np.random.default_rng(0).permutation(N_SAMPLES)
    mixed = clone(MODELS[kind]).fit(TASK.data[rows], TASK.y[rows])
    assert mixed.calibration_.temperature == fits[kind].calibration_.temperature
    np.testing.assert_array_equal(mixed.confidence_, fits[kind].confidence_[rows])


@KINDS
def test_held_out_samples_do_not_hear_their_own_label(kind):
    """Clear classes, and one label that is wrong: only there do the others contradict it."""
    clear = make_multiview_blobs(N_SAMPLES, n_views=3, noise=1.0, random_state=0)
    task = hide(clear.views, clear.y, missing_rate=0.3, label_rate=0.15, random_state=0)
    wrong = np.flatnonzero(task.labelled & (task.y == 0))[0]
    y = np.where(np.arange(N_SAMPLES) == wrong, 1, task.y)
    calibration = clone(MODELS[kind]).fit(task.data, y).calibration_
    assert (~calibration.correct).sum() == 1
    np.testing.assert_array_equal(calibration.codes[~calibration.correct], 1)
    right = clone(MODELS[kind]).fit(task.data, task.y).calibration_
    assert right.correct.all()
    assert right.temperature < calibration.temperature


def test_calibration_is_a_word_or_none():
    for model, words in {
        MendClassifier(calibration="leave_one_out"): "'cross_fit', None",
        AGFTIClassifier(calibration=True): "'leave_one_out', 'cross_fit', None",
    }.items():
        with pytest.raises(InvalidParameterError, match=f"calibration of .* {words}"):
            model.fit(TASK.data, TASK.y)


def test_the_model_that_a_search_finds_is_calibrated(fits):
    search = LabelSearchCV(clone(MODELS["mend"]), {"spreading": [0.99]}).fit(TASK.data, TASK.y)
    best = search.best_estimator_
    assert best.calibration_.temperature == fits["mend"].calibration_.temperature
    np.testing.assert_array_equal(search.label_distributions_, fits["mend"].label_distributions_)


# ------------------------------------------------------------------ confidence and abstention


@KINDS
def test_confidence_is_the_probability_of_the_class_given(fits, kind):
    model = fits[kind]
    codes = np.searchsorted(model.classes_, model.transduction_)
    np.testing.assert_array_equal(
        model.confidence_, model.label_distributions_[np.arange(N_SAMPLES), codes]
    )


@KINDS
def test_abstention_follows_the_threshold(fits, kind):
    model = fits[kind]
    threshold = float(np.median(model.confidence_[TASK.unlabelled]))
    decision = model.decide(threshold=threshold)
    free = TASK.unlabelled
    np.testing.assert_array_equal(decision.abstained[free], model.confidence_[free] < threshold)
    assert not decision.abstained[TASK.labelled].any()
    np.testing.assert_array_equal(decision.labels, model.transduction_)
    assert decision.coverage == 1 - decision.abstained.mean()
    hits = model.transduction_[free] == TASK.y_true[free]
    assert hits[~decision.abstained[free]].mean() > hits.mean()
    assert model.decide(threshold=0).coverage == 1
    n_decided = N_SAMPLES - decision.abstained.sum()
    assert repr(decision).startswith(f"<Decision on {n_decided} of 160 samples")


@KINDS
def test_new_samples_are_decided_by_their_probabilities(fits, kind):
    model = fits[kind]
    mask = np.ones((len(NEW[0]), 3), dtype=bool)
    mask[::2, 0] = False
    decision = model.decide(list(NEW), mask, threshold=0.7)
    shares = model.predict_proba(list(NEW), mask)
    np.testing.assert_array_equal(decision.labels, model.predict(list(NEW), mask))
    np.testing.assert_array_equal(decision.confidence, shares.max(axis=1))
    np.testing.assert_array_equal(decision.abstained, shares.max(axis=1) < 0.7)


@pytest.mark.parametrize("threshold", [-0.1, 1.5, "high", None])
def test_thresholds_are_shares(fits, threshold):
    with pytest.raises(InvalidParameterError, match=r"threshold must be .* got"):
        fits["mend"].decide(threshold=threshold)


def test_nothing_before_fit():
    for call in (lambda model: model.decide(), lambda model: model.explain(0)):
        with pytest.raises(NotFittedError):
            call(MendClassifier())


# ------------------------------------------------------------------ explanation


@pytest.mark.parametrize("name", VARIANTS)
def test_reasons_add_up_to_the_odds_of_the_class(fits, name):
    model = fits[name]
    rows = np.r_[np.flatnonzero(TASK.unlabelled)[::9], np.flatnonzero(TASK.labelled)[:2]]
    explained = model.explain(rows)
    shares = model.label_distributions_[rows].astype(np.float64)
    turn = np.arange(len(rows))
    codes, rivals = (
        np.searchsorted(model.classes_, found) for found in (explained.labels, explained.rivals)
    )
    odds = np.log(shares[turn, codes] / shares[turn, rivals])
    close = np.abs(odds) < 15  # Of shares that do not vanish.
    assert close.sum() > 10
    # Mend spreads labels in float32, until no class changes.
    tolerance = 2e-3 if "float32" in name or "mend" in name else 1e-4
    sums = explained.log_odds.sum(axis=1)
    np.testing.assert_allclose(sums[close], odds[close], atol=tolerance)
    # Calibration bounds the others.
    finite = np.isfinite(odds)
    assert (np.abs(sums) >= np.abs(odds) - tolerance)[finite].all()
    np.testing.assert_array_equal(explained.labels, model.transduction_[rows])
    assert (rivals != codes).all()


@pytest.mark.parametrize("name", VARIANTS)
def test_support_of_the_labels_adds_up_to_what_the_graph_says(fits, name):
    explained = fits[name].explain(np.flatnonzero(TASK.unlabelled)[:20])
    np.testing.assert_array_equal(explained.supporters, np.flatnonzero(TASK.labelled))
    np.testing.assert_array_equal(explained.supporter_labels, TASK.y[TASK.labelled])
    for c in range(3):
        of_class = explained.support[:, explained.supporter_labels == c].sum(axis=1)
        np.testing.assert_allclose(of_class, explained.graph_shares[:, c])
    np.testing.assert_allclose(explained.graph_shares.sum(axis=1), 1)


def test_all_that_agfti_says_comes_through_the_graph(fits):
    model, rows = fits["agfti"], np.flatnonzero(TASK.unlabelled)
    said = tempered(model.explain(rows).graph_shares, model.calibration_.temperature)
    np.testing.assert_allclose(said, model.label_distributions_[rows], rtol=1e-6)
    assert model.explain(rows).reasons == ("graph",)


@KINDS
def test_edges_come_through_the_views_a_sample_has_or_are_borrowed(fits, kind):
    explained = fits[kind].explain(np.arange(N_SAMPLES))
    observed = TASK.data.observed
    assert not explained.view_shares[~observed].any()
    assert (explained.view_shares[observed] > 0).all()
    np.testing.assert_allclose(explained.view_shares.sum(axis=1) + explained.borrowed, 1)
    complete = observed.all(axis=1)
    assert explained.borrowed[complete].mean() < explained.borrowed[~complete].mean()


def test_agfti_borrows_only_for_views_that_are_missing(fits):
    complete = np.flatnonzero(TASK.data.observed.all(axis=1))
    np.testing.assert_allclose(fits["agfti"].explain(complete).borrowed, 0, atol=1e-12)


def test_without_rounds_mend_borrows_nothing_and_not_less():
    model = MendClassifier(n_rounds=0, calibration=None).fit(TASK.data, TASK.y)
    explained = model.explain(np.arange(N_SAMPLES))
    np.testing.assert_allclose(explained.borrowed, 0, atol=1e-6)
    assert "borrowed -0%" not in explained.summary()


def test_a_view_of_noise_has_little_say_in_mend():
    """Not so in AGF-TI, whose weights are an adversary's."""
    noise = np.random.default_rng(0).normal(size=(N_SAMPLES, 8))
    clear = make_multiview_blobs(N_SAMPLES, n_views=2, noise=1.0, random_state=0)
    y = np.where(np.arange(N_SAMPLES) % 6 == 0, clear.y, -1)
    model = clone(MODELS["mend"]).fit([*clear.views, noise], y)
    shares = model.explain(np.flatnonzero(y < 0)).view_shares.mean(axis=0)
    assert shares[2] < 0.75 * shares[:2].min()


def test_the_label_of_a_copy_has_the_most_say_in_mend():
    """A sample added twice, once with its label; the anchors of AGF-TI blur such nearness."""
    twin = int(np.flatnonzero(TASK.labelled)[0])
    rows = np.r_[np.arange(N_SAMPLES), twin]
    y = np.r_[TASK.y, -1]
    explained = clone(MODELS["mend"]).fit(TASK.data[rows], y).explain(N_SAMPLES)
    assert explained.supporters[np.argmax(explained.support[0])] == twin


@KINDS
def test_explanations_survive_a_file(fits, kind):
    file = io.BytesIO()
    save(fits[kind], file)
    file.seek(0)
    again = load(file)
    rows = np.arange(5)
    assert again.explain(rows).summary() == fits[kind].explain(rows).summary()
    assert repr(again.calibration_) == repr(fits[kind].calibration_)
    assert again.calibration_.threshold_for(0.5) == fits[kind].calibration_.threshold_for(0.5)
    np.testing.assert_array_equal(
        again.decide(threshold=0.7).abstained, fits[kind].decide(threshold=0.7).abstained
    )


def test_samples_that_no_edge_joins_to_a_label_have_no_supporters():
    rng = np.random.default_rng(0)
    group = rng.normal(scale=0.1, size=(40, 2))
    X = np.r_[group + 1, group + 1000]
    y = np.full(80, -1)
    y[:7] = [0, 1, 0, 1, 0, 1, 0]
    model = MendClassifier(representations=("standard",), n_neighbors=3, n_rounds=1).fit(X, y)
    alone = np.flatnonzero(model.off_graph_)
    explained = model.explain(alone)
    assert len(alone) > 0
    assert not explained.support.any()
    assert "labels that count most: none" in explained.summary()
    np.testing.assert_allclose(explained.graph_shares, [[4 / 7, 3 / 7]] * len(alone))


def test_summary_names_labels_views_and_reasons(fits):
    row = int(np.flatnonzero(TASK.unlabelled)[0])
    lines = fits["mend"].explain(row).summary(most=2).splitlines()
    assert lines[0].startswith(f"sample {row}: class {fits['mend'].transduction_[row]}, confidence")
    assert lines[1].count("of class") == 2
    for name in (*fits["mend"].view_names_, "borrowed"):
        assert name in lines[2]
    assert lines[3].startswith("  log odds against")
    assert "prior" in lines[3]
    assert repr(fits["mend"].explain([1, 2])) == "<Explanation of 2 samples; print its summary()>"


def test_samples_are_rows_or_a_mask(fits):
    mask = np.zeros(N_SAMPLES, dtype=bool)
    mask[[3, 5]] = True
    np.testing.assert_array_equal(fits["agfti"].explain(mask).samples, [3, 5])
    np.testing.assert_array_equal(fits["agfti"].explain(-1).samples, [N_SAMPLES - 1])
    for wrong in (N_SAMPLES, [0.5], mask[1:]):
        with pytest.raises(InvalidParameterError, match=r"samples must be rows below 160"):
            fits["agfti"].explain(wrong)


@pytest.mark.parametrize(
    "wrong", [True, [[0, 1]], [["a", "b"]], [("a", 0)], [[0], [1, 2]], {"a"}, "all", None]
)
def test_what_is_no_list_of_samples_is_refused(fits, wrong):
    with pytest.raises(InvalidParameterError, match="samples"):
        fits["mend"].explain(wrong)


def test_a_mask_under_an_index_is_not_taken_by_position():
    ids = [f"p{i}" for i in range(N_SAMPLES)]
    frames = {str(v): pd.DataFrame(view, index=ids) for v, view in enumerate(TASK.data.views)}
    model = clone(MODELS["mend"]).fit(frames, pd.Series(TASK.y, index=ids))
    mask = pd.Series(np.arange(N_SAMPLES) < 2, index=ids)
    assert model.explain(mask).names.tolist() == ["p0", "p1"]
    with pytest.raises(InvalidParameterError, match="in another order"):
        model.explain(mask[::-1])


def test_identifiers_of_several_parts_are_tuples_or_their_text():
    ids = pd.MultiIndex.from_tuples([(f"p{i // 2}", i % 2) for i in range(N_SAMPLES)])
    frames = {str(v): pd.DataFrame(view, index=ids) for v, view in enumerate(TASK.data.views)}
    model = clone(MODELS["mend"]).fit(frames, pd.Series(TASK.y, index=ids))
    for asked in (("p1", 1), [("p1", 1)], "('p1', 1)", ids[3:4]):
        assert model.explain(asked).samples.tolist() == [3]
    assert model.explain([("p3", 0), ("p1", 1)]).samples.tolist() == [6, 3]
    with pytest.raises(InvalidParameterError, match=r"names .*'p1', 7.* explain_new"):
        model.explain([("p1", 7)])


def test_identifiers_that_are_numbers_are_passed_as_text():
    ids = 1000 + np.arange(N_SAMPLES)
    frames = {str(v): pd.DataFrame(view, index=ids) for v, view in enumerate(TASK.data.views)}
    model = clone(MODELS["mend"]).fit(frames, pd.Series(TASK.y, index=ids))
    assert model.explain("1007").samples.tolist() == [7]
    with pytest.raises(InvalidParameterError, match="pass identifiers as text, such as '1007'"):
        model.explain([1007])


def test_a_name_of_several_samples_is_refused():
    ids = np.array([f"p{i // 2}" for i in range(N_SAMPLES - 1)] + ["alone"])
    model = clone(MODELS["mend"]).fit(replace(TASK.data, ids=ids), TASK.y)
    assert model.explain("alone").samples.tolist() == [N_SAMPLES - 1]
    with pytest.raises(InvalidParameterError, match="2 samples are called 'p1'; pass their rows"):
        model.explain(["alone", "p1"])


def test_samples_outside_the_graph_are_named_and_explained_as_new_ones():
    ids = [f"p{i}" for i in range(N_SAMPLES)]
    frames = {str(v): pd.DataFrame(view, index=ids) for v, view in enumerate(TASK.data.views)}
    model = clone(MODELS["mend"]).set_params(graph_samples=100)
    model.fit(frames, pd.Series(TASK.y, index=ids))
    outside = np.setdiff1d(np.arange(N_SAMPLES), model.fitted_state_.order)[:1]
    with pytest.raises(InvalidParameterError, match=f"samples {ids[outside[0]]}.*explain_new"):
        model.explain(outside)
    told = model.explain_new({name: view.iloc[outside] for name, view in frames.items()})
    assert told.labels.tolist() == model.transduction_[outside].tolist()


def test_zeros_and_ones_are_no_mask(fits):
    mask = np.arange(N_SAMPLES) > 157
    for counted in (mask.astype(int), mask.astype(np.uint8).tolist()):
        with pytest.raises(InvalidParameterError, match=r"samples has 0 or 1 .* dtype=bool"):
            fits["mend"].explain(counted)
    np.testing.assert_array_equal(fits["mend"].explain(mask.tolist()).samples, [158, 159])
    np.testing.assert_array_equal(fits["mend"].explain(mask.astype(object)).samples, [158, 159])


@KINDS
def test_a_copy_for_prediction_does_not_answer_for_samples_that_it_forgot(fits, kind, tmp_path):
    light = fits[kind].for_prediction()
    asked = [light.decide, lambda: light.explain(0), lambda: light.report(tmp_path / "no.html")]
    if kind == "mend":
        asked += [light.predict_set, light.unknown_score]
        assert light.predict_set(NEW).shape == (40, 3)
    for ask in asked:
        with pytest.raises(InvalidParameterError, match="for_prediction has forgotten"):
            ask()
    np.testing.assert_array_equal(light.decide(NEW).labels, fits[kind].decide(NEW).labels)
