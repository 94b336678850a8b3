"""What stands for a missing label is unlabelled or an error, and never a class by accident."""

import numpy as np
import pytest

from viewmend import MendClassifier, inspect_data
from viewmend.data import Request, from_frames, read_views
from viewmend.data.labels import check_labels, labelled_part
from viewmend.exceptions import DataWarning, InvalidLabelsError

pd = pytest.importorskip("pandas", reason="labels of frames need pandas")

BLANKS = ["", " ", "  \t", "\n", b"", b"  ", np.str_(""), None, np.nan, pd.NA, pd.NaT, -1]
MARKS = ["nan", "NaN", "NA", "N/A", "n/a", "null", "NULL", "None", "<NA>", "NaT", "-1", " -1 "]
MARKS += ["?", ".", "unlabelled", b"nan", b"NA"]
FORMS = {
    "list": list,
    "objects": lambda y: np.array(y, dtype=object),
    "series": lambda y: pd.Series(y, dtype=object),
    "categorical": pd.Categorical,
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("blank", BLANKS, ids=repr)
def test_empty_labels_are_unlabelled_in_every_form(blank, form):
    labels = check_labels(form(["b", blank, "a", "b"]), 4)
    assert labels.classes.tolist() == ["a", "b"]
    assert labels.codes.tolist() == [1, -1, 0, 1]


@pytest.mark.parametrize("kind", ["U", "S"])
def test_empty_labels_in_arrays_of_text(kind):
    labels = check_labels(np.array(["b", "", "a", "  "], dtype=kind), 4)
    assert labels.codes.tolist() == [1, -1, 0, -1]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("mark", MARKS, ids=repr)
def test_text_that_looks_like_a_missing_label_is_refused_with_its_count_and_the_remedy(mark, form):
    y = form(["b", mark, "a", mark])
    message = r"\(2 samples\) looks like a mark .*replace it by None .*--unlabelled.*another name"
    with pytest.raises(InvalidLabelsError, match=message) as refusal:
        check_labels(y, 4)
    assert repr(mark) in str(refusal.value)
    with pytest.raises(InvalidLabelsError, match=message):
        labelled_part(y)


@pytest.mark.parametrize("word", ["unknown", "Unknown", "none", "-", "missing", "Na"])
def test_words_that_may_be_a_class_are_one_with_a_warning(word):
    with pytest.warns(DataWarning, match=rf"'{word}' \(2 samples\) is treated as a class"):
        labels = check_labels(["b", word, "a", word], 4)
    assert word in labels.classes.tolist()


@pytest.mark.parametrize("name", ["nano", "NA 1", "north america", "-11", "none of these"])
def test_classes_that_only_begin_like_a_mark_are_classes(name):
    assert name in check_labels(["b", name], 2).classes.tolist()


def rows(n=30, seed=0):
    rng = np.random.default_rng(seed)
    y = np.array(["cat", "dog"] * (n // 2), dtype=object)
    return rng.normal(size=(n, 3)) + 6.0 * (y == "cat")[:, None], y


def test_a_fit_and_its_score_do_not_count_blank_labels():
    X, y = rows()
    partial = y.copy()
    partial[6:] = ""
    model = MendClassifier(n_rounds=1).fit(X, partial)
    assert model.classes_.tolist() == ["cat", "dog"]
    other = MendClassifier(n_rounds=1).fit(X, np.where(partial == "", None, partial))
    np.testing.assert_array_equal(model.label_distributions_, other.label_distributions_)
    assert model.score(X, partial) == model.score(X[:6], y[:6])
    with pytest.raises(InvalidLabelsError, match=r"'nan' \(24 samples\)"):
        model.score(X, np.where(partial == "", "nan", partial))


def test_frames_with_blank_labels_have_samples_without_label():
    left = pd.DataFrame({"x": [1.0, 2, 3], "kind": ["cat", "", "dog"]}, index=list("abc"))
    right = pd.DataFrame({"w": [1.0, 2, 3], "kind": [" ", "dog", -1]}, index=list("abc"))
    # A blank in one table does not contradict the label in the other.
    found = from_frames({"left": left, "right": right}, labels="kind")
    assert found.y.tolist() == ["cat", "dog", "dog"]
    found = from_frames({"left": left[["x"]]}, labels={"a": "cat", "b": "", "c": pd.NA})
    assert found.y.tolist() == ["cat", None, None]


def test_files_with_a_mark_among_the_labels(tmp_path):
    labels = ["a", "b", "?", "a", " ", "NA"]
    table = pd.DataFrame({"id": range(6), "x": np.arange(1.0, 7.0), "label": labels})
    table.to_csv(tmp_path / "v.csv", index=False)
    with pytest.raises(InvalidLabelsError, match=r"'\?' \(1 sample\)"):
        MendClassifier().fit(read_views(tmp_path))
    # NA was an empty cell to the reader; that it is named does no harm.
    told = read_views(tmp_path, Request(unlabelled=("?", "NA")))
    assert told.y.tolist() == ["a", "b", None, "a", None, None]


def messages(severity, y):
    X, _ = rows()
    findings = inspect_data(X, y).findings
    return [f.message for f in findings if f.severity == severity and f.subject == "labels"]


def test_an_inspection_tells_classes_that_look_like_missing_marks():
    _, y = rows()
    y[:4] = "N/A"
    assert "'N/A' (4 samples) looks like a mark" in messages("error", y)[0]
    # The others are looked at as if these had none.
    assert inspect_data(rows()[0], y).class_counts == {"cat": 13, "dog": 13}
    y[:4] = "Unknown"
    assert messages("error", y) == []
    assert messages("warning", y) == ["class(es) Unknown may mean that there is no label"]


def test_an_inspection_tells_classes_that_differ_in_capitals_or_blanks_alone():
    _, y = rows()
    y[:4], y[4:8] = "Cat", "cat "
    assert messages("warning", y) == [
        "classes 'Cat', 'cat', 'cat ' differ only in capitals or blanks"
    ]


@pytest.mark.parametrize(
    ("classes", "told"),
    [([0, 1, -9], ["-9"]), ([1, 2, 999], ["999"]), ([0, 50, 99], []), ([7, 8, 9], [])],
)
def test_an_inspection_tells_numbers_that_often_stand_for_a_missing_value(classes, told):
    y = np.resize(classes, 30)
    expected = [f"class(es) {name} may mean that there is no label" for name in told]
    assert messages("info", y) == expected


def test_classes_that_are_spelt_alike_are_told():
    with pytest.warns(
        DataWarning, match="classes ' tumor', 'Tumor' differ only in capitals or blanks"
    ):
        labels = check_labels(["Tumor", " tumor", "normal", None], 4)
    assert labels.n_classes == 3
