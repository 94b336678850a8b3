"""Columns belong to their names, rows to their identifiers: never taken by place in silence."""

import copy
import pickle
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from viewmend import (
    AGFTIClassifier,
    LabelSearchCV,
    MendClassifier,
    check_views,
    inspect_data,
    load,
    save,
)
from viewmend.data import from_frames, result_frame
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import DataWarning, InvalidLabelsError, InvalidViewsError
from viewmend.impute import ColumnMeanImputer
from viewmend.model_selection import cross_val_transduce
from viewmend.persistence import ModelFileError

pd = pytest.importorskip("pandas")

BLOBS = make_multiview_blobs(80, n_views=2, n_features=(4, 5), random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.3, label_rate=0.3, random_state=0)
IDS = [f"patient {i}" for i in range(80)]
Y = TASK.y


def frames(views, index=None):
    image, text = (pd.DataFrame(view, index=index) for view in views)
    return {"image": image.add_prefix("pixel "), "text": text.add_prefix("word ")}


def reversed_columns(frame):
    return frame[frame.columns[::-1]]


GIVEN, NEW = frames(TASK.data.views), frames(BLOBS.views)


def mend(**parameters):
    return MendClassifier(n_rounds=0, **parameters)


@pytest.fixture(scope="module")
def model():
    return mend().fit(GIVEN, Y)


@pytest.fixture(scope="module")
def plain():
    return mend().fit(list(TASK.data.views), Y)


@pytest.fixture(scope="module")
def stacked():
    return mend(view_sizes=(4, 5)).fit(side_by_side(GIVEN), Y)


def side_by_side(views):
    return pd.concat(views.values(), axis=1)


# ------------------------------------------------------------------ what is remembered


def test_names_are_kept_by_view(model, plain):
    assert {view: names.tolist() for view, names in model.view_feature_names_.items()} == {
        "image": [f"pixel {j}" for j in range(4)],
        "text": [f"word {j}" for j in range(5)],
    }
    assert not hasattr(model, "feature_names_in_")
    assert not hasattr(plain, "view_feature_names_")
    assert not hasattr(plain, "feature_names_in_")
    assert not hasattr(mend(), "feature_names_in_")


def test_names_of_one_table_are_those_of_scikit_learn(stacked):
    names = stacked.feature_names_in_
    assert isinstance(names, np.ndarray)
    assert names.dtype == object
    assert names.tolist() == side_by_side(GIVEN).columns.tolist()
    one_view = mend(calibration=None).fit(pd.DataFrame(BLOBS.views[0]).add_prefix("pixel "), Y)
    assert one_view.feature_names_in_.tolist() == [f"pixel {j}" for j in range(4)]


def test_another_fit_forgets_the_names():
    again = mend().fit(GIVEN, Y).fit(list(TASK.data.views), Y)
    assert not hasattr(again, "view_feature_names_")


def test_numbers_of_columns_are_no_names_but_other_numbers_are():
    frame = pd.DataFrame(BLOBS.views[0])
    assert check_views([frame]).columns is None
    wavelengths = frame.set_axis([400, 410, 420, 430], axis=1)
    assert check_views([frame, wavelengths]).columns == ((0, 1, 2, 3), ("400", "410", "420", "430"))


# ------------------------------------------------------------------ columns in another order

SHUFFLES = {
    "dict": lambda: {name: reversed_columns(frame) for name, frame in NEW.items()},
    "dict in another order": lambda: {
        name: reversed_columns(NEW[name]) for name in ("text", "image")
    },
    "list": lambda: [reversed_columns(frame) for frame in NEW.values()],
    "one of them": lambda: [NEW["image"], reversed_columns(NEW["text"])],
    "container": lambda: check_views(
        {name: reversed_columns(frame) for name, frame in NEW.items()}
    ),
    "one table": lambda: reversed_columns(side_by_side(NEW)),
}


@pytest.mark.parametrize("shuffle", SHUFFLES.values(), ids=SHUFFLES)
def test_columns_are_put_in_the_order_of_fit(model, shuffle):
    expected = model.predict_proba(NEW)
    assert_array_equal(model.predict_proba(shuffle()), expected)
    assert_array_equal(model.predict(shuffle()), model.classes_[expected.argmax(axis=1)])
    assert model.score(shuffle(), BLOBS.y) == model.score(NEW, BLOBS.y)
    # By place it would be another answer.
    by_place = [reversed_columns(frame).to_numpy() for frame in NEW.values()]
    with pytest.warns(DataWarning, match="does not have valid feature names"):
        assert np.any(model.predict_proba(by_place) != expected)


def test_a_stacked_table_and_its_views_agree(stacked):
    expected = stacked.predict_proba(side_by_side(NEW))
    assert_array_equal(stacked.predict_proba(reversed_columns(side_by_side(NEW))), expected)


def test_frames_of_polars_have_names_too(model):
    polars = pytest.importorskip("polars")
    new = [polars.DataFrame(reversed_columns(frame).to_dict("list")) for frame in NEW.values()]
    assert_array_equal(model.predict_proba(new), model.predict_proba(NEW))
    lazy = [frame.lazy() for frame in new]
    assert_array_equal(model.predict_proba(lazy), model.predict_proba(NEW))


def test_joined_frames_keep_their_names():
    data = from_frames(frames(TASK.data.views, IDS), dict(zip(IDS, Y, strict=True)))
    fitted = mend().fit(data)
    backwards = {n: reversed_columns(f) for n, f in frames(BLOBS.views, IDS).items()}
    new = from_frames(backwards)
    assert_array_equal(
        fitted.predict_proba(new), fitted.predict_proba(from_frames(frames(BLOBS.views, IDS)))
    )
    told = result_frame(fitted, new=new)
    assert told.index.tolist() == IDS
    assert_array_equal(told["class"].to_numpy(), fitted.predict(new))


def test_numbered_columns_in_another_order(plain):
    numbered = [pd.DataFrame(view) for view in BLOBS.views]
    expected = plain.predict_proba(list(BLOBS.views))
    assert_array_equal(plain.predict_proba(numbered), expected)
    assert_array_equal(plain.predict_proba([reversed_columns(f) for f in numbered]), expected)
    table = pd.DataFrame(np.hstack(BLOBS.views))
    assert_array_equal(plain.predict_proba(reversed_columns(table)), expected)


OTHERS = {
    "AGF-TI": lambda: AGFTIClassifier(tol=1.0, random_state=0),
    "search": lambda: LabelSearchCV(mend(), {"spreading": [0.5]}, cv=2),
    "behind an imputer": lambda: make_pipeline(ColumnMeanImputer(), mend()),
}


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_other_estimators_match_columns_as_well(make):
    fitted = make().fit(GIVEN, Y)
    expected = fitted.predict_proba(NEW)
    assert_array_equal(fitted.predict_proba(SHUFFLES["list"]()), expected)
    with pytest.raises(InvalidViewsError, match="yet now missing: pixel 0;"):
        fitted.predict([NEW["image"].drop(columns="pixel 0"), NEW["text"]])


def test_a_search_knows_the_names():
    search = LabelSearchCV(mend(), {"spreading": [0.5]}, cv=2)
    assert list(search.fit(GIVEN, Y).view_feature_names_) == ["image", "text"]
    assert not hasattr(search, "feature_names_in_")
    search.set_params(estimator=mend(view_sizes=(4, 5))).fit(side_by_side(GIVEN), Y)
    assert search.feature_names_in_.tolist() == side_by_side(GIVEN).columns.tolist()


def test_an_imputer_matches_columns_and_hands_the_names_on():
    imputer = ColumnMeanImputer().fit(GIVEN)
    half = {"image": reversed_columns(NEW["image"])}
    filled = imputer.transform(half)
    assert_array_equal(filled.views[0], NEW["image"].to_numpy())
    assert filled.columns == tuple(tuple(frame.columns) for frame in NEW.values())
    assert imputer.fit_transform(GIVEN).columns == filled.columns
    with pytest.raises(InvalidViewsError, match="unseen at fit time: hue;"):
        imputer.transform({"image": NEW["image"].assign(hue=1.0)})


# ------------------------------------------------------------------ columns that fit did not see

WRONG = {
    "renamed": (
        lambda: [NEW["image"].rename(columns={"pixel 1": "hue"}), NEW["text"]],
        "view 'image' must have the 4 columns of fit; feature names unseen at fit time: hue; "
        "feature names seen at fit time, yet now missing: pixel 1; rename",
    ),
    "one too many": (
        lambda: {"text": NEW["text"].assign(extra=1.0)},
        "view 'text' must have the 5 columns of fit; feature names unseen at fit time: extra; ren",
    ),
    "many": (
        lambda: {"text": NEW["text"].add_prefix("old ").assign(extra=1.0)},
        "unseen at fit time: extra, old word 0, old word 1, old word 2, old word 3, ...; feature",
    ),
    "one table": (
        lambda: side_by_side(NEW).drop(columns=["pixel 3", "word 2"]),
        "X must have the 9 columns of fit; feature names seen at fit time, yet now missing: "
        "pixel 3, word 2; rename",
    ),
    "views in another order": (
        lambda: [NEW["text"], NEW["image"]],
        "view 'image' has the columns that view 'text' had in fit; pass the views in the order of "
        "fit, image, text, or as a dict under these names",
    ),
    "names of views changed over": (
        lambda: {"text": NEW["image"], "image": NEW["text"]},
        "view 'image' has the columns that view 'text' had in fit",
    ),
    "twice": (
        lambda: {"image": NEW["image"][["pixel 0", "pixel 0", "pixel 1", "pixel 2", "pixel 3"]]},
        "view 'image' must have columns of different names .* has 'pixel 0' more than once",
    ),
}


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=WRONG)
def test_other_columns_are_refused_with_a_list(model, wrong, message):
    for method in (model.predict, model.predict_proba, model.decide):
        with pytest.raises(InvalidViewsError, match=message):
            method(wrong())
    with pytest.raises(InvalidViewsError, match=message):
        model.score(wrong(), BLOBS.y)


def test_equal_names_go_by_place_only_in_the_order_of_fit():
    alike = [pd.DataFrame(view, columns=list("aab")) for view in (BLOBS.views[0][:, :3],) * 2]
    fitted, values = mend(calibration=None).fit(alike, Y), [frame.to_numpy() for frame in alike]
    assert_array_equal(
        fitted.predict_proba(alike),
        mend(calibration=None).fit(values, Y).predict_proba(values),
    )
    with pytest.raises(InvalidViewsError, match="has 'a' more than once"):
        fitted.predict([reversed_columns(frame) for frame in alike])


def test_names_on_one_side_are_warned_of_as_scikit_learn_does(model, plain):
    expected = plain.predict_proba(list(BLOBS.views))
    message = r"X does not have valid feature names, but fit saw some \(view 'image', view 'text'\)"
    with pytest.warns(DataWarning, match=message):
        assert_array_equal(model.predict_proba(list(BLOBS.views)), expected)
    with pytest.warns(DataWarning, match=r"valid feature names, but fit saw some \(view 'image'\)"):
        model.predict([BLOBS.views[0], NEW["text"]])
    message = r"X has feature names, but fit saw none \(view 0, view 1\)"
    with pytest.warns(DataWarning, match=message):
        assert_array_equal(plain.predict_proba(list(NEW.values())), expected)
    with pytest.warns(UserWarning, match="X has feature names"):
        plain.predict(side_by_side(NEW))


# ------------------------------------------------------------------ views by name


def test_views_of_a_container_are_matched_by_name(model):
    swapped = check_views({name: NEW[name] for name in ("text", "image")})
    assert_array_equal(model.predict_proba(swapped), model.predict_proba(NEW))
    only = check_views({"text": NEW["text"]})
    assert_array_equal(model.predict_proba(only), model.predict_proba({"text": NEW["text"]}))
    with pytest.raises(InvalidViewsError, match="unknown view 'sound': fit saw the views"):
        model.predict(replace(swapped, names=("text", "sound")))


def test_views_of_a_dict_are_matched_by_name(model):
    with pytest.raises(InvalidViewsError, match="unknown view 'sound'"):
        model.predict({**NEW, "sound": BLOBS.views[0]})
    missing = model.predict_proba({"image": NEW["image"], "text": None})
    assert_array_equal(missing, model.predict_proba({"image": NEW["image"]}))


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (pd.MultiIndex.from_product([["p", "q"], [1, 2]]), ["('p', 1)", "('q', 2)"]),
        ([10.0, 20.0, 30.0, 40.0], ["10", "40"]),
        (pd.date_range("2024-01-01", periods=4), ["2024-01-01", "2024-01-04"]),
    ],
)
def test_names_that_are_no_text_are_spelt_in_one_way(names, told):
    fitted = mend(calibration=None).fit(pd.DataFrame(BLOBS.views[0], columns=names), Y)
    seen = fitted.view_feature_names_["view 0"].tolist()
    assert [seen[0], seen[-1]] == told
    new = pd.DataFrame(BLOBS.views[0], columns=names)
    expected = fitted.predict_proba(new)
    assert_array_equal(fitted.predict_proba(new[new.columns[::-1]]), expected)
    assert_array_equal(fitted.predict_proba(new.set_axis(seen, axis=1)), expected)


# ------------------------------------------------------------------ rows by identifier


def test_labels_in_another_order_than_the_frames_are_refused():
    labels = pd.Series(Y, index=IDS)
    given = frames(TASK.data.views, IDS)
    fitted = mend().fit(given, labels)
    message = r"y must have its rows in the order of the views.*\(row 0 is 'patient 79' there and "
    for wrong in (labels[::-1], labels[::-1].to_frame()):
        with pytest.raises(InvalidLabelsError, match=message):
            mend().fit(given, wrong)
    with pytest.raises(InvalidLabelsError, match=message):
        mend().fit(check_views(given), labels[::-1])
    with pytest.raises(InvalidLabelsError, match=message):
        fitted.score(given, labels[::-1])
    with pytest.raises(InvalidLabelsError, match=message):
        cross_val_transduce(mend(), given, labels[::-1])
    (finding,) = (f for f in inspect_data(given, labels[::-1]).findings if f.subject == "labels")
    assert finding.severity == "error"
    assert "the same identifiers in another order" in finding.message
    right = mend().fit(given, labels[::-1].loc[given["image"].index])
    assert_array_equal(right.label_distributions_, fitted.label_distributions_)


def test_numbers_in_another_order_are_refused_but_just_numbered_labels_are_not():
    shuffled = np.random.default_rng(0).permutation(80)
    given = frames(TASK.data.views, shuffled)
    with pytest.raises(InvalidLabelsError, match="the same identifiers in another order"):
        mend().fit(given, pd.Series(Y))
    by_place = mend().fit(frames(TASK.data.views, IDS), pd.Series(Y))
    again = mend().fit(given, Y)
    assert_array_equal(by_place.transduction_, again.transduction_)
    # Arrays have no identifiers to be told from those of the labels.
    again = mend().fit(list(TASK.data.views), pd.Series(Y, index=shuffled))
    assert_array_equal(by_place.transduction_, again.transduction_)


def test_labels_of_partly_other_samples_are_warned_of():
    labels = pd.Series(Y, index=[*IDS[1:], "somebody else"])
    with pytest.warns(DataWarning, match="y and the views have different row indices"):
        mend().fit(frames(TASK.data.views, IDS), labels)


def test_rows_of_new_frames_must_be_the_same_in_all_views(model):
    new = frames(BLOBS.views, IDS)
    with pytest.raises(InvalidViewsError, match="different row indices"):
        model.predict({"image": new["image"], "text": new["text"][::-1]})


def test_a_mask_is_matched_by_the_names_of_views_and_rows(model):
    seen = TASK.data.observed
    full, mask = frames(BLOBS.views, IDS), pd.DataFrame(seen, IDS, ["image", "text"])
    expected = check_views(full, mask=seen)
    for frame in (mask, reversed_columns(mask), mask.set_axis([0, 1], axis=1)):
        assert_array_equal(check_views(full, mask=frame).observed, expected.observed)
    assert_array_equal(
        model.predict_proba(full, reversed_columns(mask)), model.predict_proba(full, seen)
    )
    with pytest.raises(InvalidViewsError, match="mask must have its rows in the order"):
        check_views(full, mask=mask[::-1])
    with pytest.raises(InvalidViewsError, match=r"mask must have a column for each of the views"):
        check_views(full, mask=mask.rename(columns={"text": "sound"}))


def test_identifiers_stay_with_the_rows():
    data = check_views(frames(TASK.data.views, IDS))
    assert data.ids.tolist() == IDS
    assert check_views(GIVEN).ids is None
    assert data[[3, 1]].ids.tolist() == ["patient 3", "patient 1"]
    broken = frames(BLOBS.views, IDS)
    broken["image"].iloc[7, 0] = np.nan
    told = [f.message for f in inspect_data(broken).findings]
    assert any("patient 7" in message for message in told)


# ------------------------------------------------------------------ after a while


def saved_and_loaded(model):
    file = BytesIO()
    save(model, file)
    file.seek(0)
    return load(file)


@pytest.mark.parametrize("keep", [saved_and_loaded, lambda m: pickle.loads(pickle.dumps(m))])
def test_names_survive_a_file(keep, model, stacked):
    kept = keep(model)
    assert_array_equal(kept.predict_proba(SHUFFLES["list"]()), model.predict_proba(NEW))
    with pytest.raises(InvalidViewsError, match="unseen at fit time: hue"):
        kept.predict([NEW["image"].assign(hue=1.0), NEW["text"]])
    assert_array_equal(keep(stacked).feature_names_in_, stacked.feature_names_in_)


def test_a_clone_knows_no_names(model):
    assert not hasattr(clone(model), "view_feature_names_")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            {"image": np.array(["a", "b", "c"], dtype=object)},
            r"shape of view_feature_names_.*\(4,\)",
        ),
        ({"sound": np.array(["a"], dtype=object)}, "view_feature_names_ .*sound"),
        ({"image": np.array([1, 2, 3, 4], dtype=object)}, "view_feature_names_ .*text"),
        ({"image": np.arange(4)}, "dtype of view_feature_names_"),
    ],
)
def test_a_file_cannot_claim_names_that_its_views_do_not_have(model, names, message):
    forged = copy.copy(model)
    forged.view_feature_names_ = names
    with pytest.raises(ModelFileError, match=message):
        save(forged, BytesIO())
