"""What a report tells of labels to ask for, views to measure, and what to doubt."""

import html
import re

import numpy as np
import pandas as pd
import pytest

from viewmend import AGFTIClassifier, MendClassifier
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.report.context import make_case
from viewmend.report.page import SECTIONS, report_html

ADVICE = ("classes", "doubt", "next")
CLASSES = np.array(["<b>one</b>", "two & $x$", '"three"'], dtype=object)
VIEWS = ("<script>alert('v')</script>", "plain")


class Task:
    """Blobs with one wrong label, whose classes, views and samples have names to be escaped."""

    def __init__(self):
        blobs = make_multiview_blobs(120, n_views=2, noise=2.0, random_state=0)
        task = hide(blobs.views, blobs.y, missing_rate=0.3, label_rate=0.3, random_state=0)
        self.X = dict(zip(VIEWS, task.data.views, strict=True))
        self.observed = task.data.observed
        self.y = np.where(task.labelled, CLASSES[task.y], None)
        self.flipped = int(np.flatnonzero(task.labelled)[0])
        self.y[self.flipped] = CLASSES[(task.y[self.flipped] + 1) % 3]
        self.ids = np.array([f"<i>P{row:03d}" for row in range(120)])


@pytest.fixture(scope="module")
def task():
    return Task()


@pytest.fixture(scope="module")
def mend(task):
    return MendClassifier(n_rounds=2).fit(task.X, task.y)


@pytest.fixture(scope="module")
def case(mend, task):
    return make_case(mend, task.X, task.y, ids=task.ids)


def inside(name, case):
    return SECTIONS[name][1](case)


def table(name, case, title):
    """Rows of the table of a section that has this title, as texts."""
    found = [part for part in inside(name, case).split("<table>") if f">{title}</caption>" in part]
    body = re.search(r"<tbody>(.*?)</tbody>", found[0], re.DOTALL)[1]
    rows = re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)
    return [list(map(html.unescape, re.findall(r"<td[^>]*>(.*?)</td>", row))) for row in rows]


def test_samples_to_label_are_those_of_the_model_by_their_names(case, mend, task):
    found = mend.suggest_labels(10)
    rows = table("next", case, "Samples to label")
    assert [row[1] for row in rows] == task.ids[found.samples].tolist()
    assert [row[2] for row in rows] == list(found.reasons)


def test_measurements_are_told_by_view_and_by_sample(case, mend, task):
    found = mend.suggest_views()
    by_view = table("next", case, "Views to measure")
    assert [(row[0], int(row[1])) for row in by_view] == [
        (worth.view, worth.n_pairs) for worth in found.by_view
    ]
    for row in by_view:
        for name in row[4].removesuffix(", ...").split(", "):
            assert not task.observed[task.ids.tolist().index(name), VIEWS.index(row[0])]
    pairs = [tuple(row[:2]) for row in table("next", case, "First measurements")]
    expected = zip(task.ids[found.samples[:10]], found.views[:10], strict=True)
    assert pairs == list(expected)


def test_a_wrong_label_is_the_first_suspect(case, mend, task):
    first = table("doubt", case, "Most suspect labels")[0]
    assert first[0] == task.ids[task.flipped]
    assert first[1] == task.y[task.flipped] != first[2]
    assert f"({mend.suspect_labels().noise_rate:.1%})" in inside("doubt", case)


def test_sizes_of_sets_are_counted_over_the_unlabelled_samples(case, mend, task):
    sizes = mend.predict_set(alpha=0.1)[task.y == None].sum(axis=1)  # noqa: E711
    counts = dict(row[:2] for row in table("classes", case, "Sizes of the sets at 90%"))
    expected = [(sizes == 1).sum(), (sizes == 2).sum(), (sizes > 2).sum(), (sizes == 0).sum()]
    assert list(map(int, counts.values())) == expected
    assert sum(expected) == np.sum(case.unlabelled)


def test_names_stay_text(case):
    page = report_html(case)
    for name in (*CLASSES[:2], VIEWS[0], "<i>"):
        assert name not in page
    for name in ADVICE:
        assert f'<section id="{name}">' in page


def test_agfti_gives_no_advice(task):
    model = AGFTIClassifier(random_state=0, max_iter=2, n_anchors=8)
    with pytest.warns(UserWarning, match="max_iter=2"):
        model.fit(task.X, task.y)
    page = report_html(make_case(model, task.X, task.y))
    assert 'id="data"' in page
    assert 'id="next"' not in page
    assert 'href="#next"' not in page
    for title in ("Given labels that", "Samples that fit no", "Sizes of the sets"):
        assert title not in page


@pytest.mark.filterwarnings("error")
def test_too_few_labels_for_sets_are_told_in_words(task):
    labelled = np.flatnonzero([label is not None for label in task.y])
    few = np.full(len(task.y), None)
    some = [row for name in CLASSES for row in labelled[task.y[labelled] == name][:2]]
    few[some] = task.y[some]
    model = MendClassifier(n_rounds=1).fit(task.X, few)
    text = inside("classes", make_case(model, task.X, few))
    told = "Sets of classes are not counted: alpha=0.1 cannot be promised with 6 held-out labels"
    assert told in text
    assert "Sizes of the sets" not in text


def test_what_a_fit_left_out_is_said_and_is_no_error(task):
    model = MendClassifier(n_rounds=0, calibration=None).fit(task.X, task.y)
    case = make_case(model, task.X, task.y)
    assert "calibration is None" in inside("classes", case)
    assert "fit with n_rounds=1 or more" in inside("next", case)
    assert len(table("next", case, "Samples to label")) == 10


def test_complete_views_leave_nothing_to_measure():
    blobs = make_multiview_blobs(60, n_views=2, random_state=0)
    y = np.where(np.arange(60) % 3 == 0, blobs.y, -1)
    model = MendClassifier(n_rounds=1).fit(blobs.views, y)
    text = inside("next", make_case(model, blobs.views, y))
    assert "No missing view is worth measuring" in text
    assert "Views to measure" not in text


@pytest.mark.filterwarnings("error")
def test_where_every_sample_has_a_label_the_page_is_whole(task):
    blobs = make_multiview_blobs(60, random_state=0)
    model = MendClassifier(n_rounds=1).fit(blobs.views, blobs.y)
    page = report_html(make_case(model, blobs.views, blobs.y))
    assert "Every sample has a given label, and its set is that class alone." in page
    for name in ADVICE:
        assert f'<section id="{name}">' in page


def test_samples_are_called_by_the_identifiers_that_fit_saw(task):
    index = [f"P{row:03d}" for row in range(120)]
    frames = {name: pd.DataFrame(view, index=index) for name, view in task.X.items()}
    model = MendClassifier(n_rounds=1).fit(frames, task.y)
    rows = table("next", make_case(model, frames, task.y), "Samples to label")
    assert [row[1] for row in rows] == model.suggest_labels(10).names.tolist()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", [MendClassifier, AGFTIClassifier])
def test_classes_of_several_types_are_drawn(task, kind, tmp_path):
    """Numbers and text cannot be compared, and yet a class may be called 1 and another "one"."""
    names = {CLASSES[0]: 1, CLASSES[1]: "one", CLASSES[2]: 3, None: None}
    y = [names[label] for label in task.y]
    short = {"n_rounds": 1} if kind is MendClassifier else {"max_iter": 2, "random_state": 0}
    page = kind(**short).fit(task.X, y).report(tmp_path / "page.html", task.X, y)
    assert page.read_text(encoding="utf-8").count("<svg") > 3
