"""What a report says was done to the data, and what it finds to doubt about a fit."""

import html
import re
from dataclasses import dataclass
from datetime import date

import numpy as np
import pytest

from viewmend import MendClassifier, check_views
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.report.context import Provenance, day_of_report, make_case
from viewmend.report.findings import all_findings
from viewmend.report.page import SECTIONS


def section(name, case):
    inside = re.sub(r"<svg.*?</svg>", "", SECTIONS[name][1](case), flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", "\n", inside))


@dataclass
class Clinic:
    """Two telling views and one of noise, which is all that ten samples have."""

    X: dict
    y: np.ndarray
    alone: np.ndarray


@pytest.fixture(scope="module")
def clinic():
    blobs = make_multiview_blobs(120, n_views=2, n_classes=2, random_state=0)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(120, 4))
    alone = np.arange(110, 120)
    views = [view.copy() for view in blobs.views]
    for view in views:
        view[alone] = np.nan
    y = np.where(np.arange(120) < 40, blobs.y, -1)
    return Clinic({"genes": views[0], "scan": views[1], "noise": noise}, y, alone)


@pytest.fixture(scope="module")
def fitted(clinic):
    return MendClassifier(n_rounds=2).fit(clinic.X, clinic.y)


def test_a_view_without_weight_that_samples_depend_on_is_a_warning(fitted, clinic):
    assert fitted.view_weights_[2] < 0.01
    case = make_case(fitted, clinic.X, clinic.y)
    told = [one for one in all_findings(case) if one.subject == "noise"]
    assert told[0].severity == "warning"
    assert "only view of 10 unlabelled samples (110, 111" in told[0].message


def test_without_such_samples_it_is_a_remark(fitted, clinic):
    seen = np.ones((120, 3), dtype=bool)
    case = make_case(fitted, mask=seen, y=clinic.y)
    (told,) = [one for one in all_findings(case) if one.subject == "noise"]
    assert told.severity == "info"


def test_a_class_that_nobody_is_predicted_to_have_is_told(fitted, clinic):
    """One of the two classes is left to the labelled samples."""
    case = make_case(fitted, clinic.X, clinic.y)
    absent = np.where(case.unlabelled, 0, case.told)
    vars(case)["told"] = absent
    messages = [one.message for one in all_findings(case)]
    assert "no unlabelled sample is predicted to be of class 1" in messages


def test_labels_at_random_are_not_shown_to_beat_guessing(clinic):
    rng = np.random.default_rng(1)
    y = np.where(clinic.y < 0, -1, rng.integers(0, 2, 120))
    model = MendClassifier(n_rounds=1)
    with pytest.warns(UserWarning, match="no better than chance"):
        model.fit(clinic.X, y)
    case = make_case(model, clinic.X, y)
    assert any("better than guessing" in one.message for one in all_findings(case))
    assert "The model is not shown to be better than that." in section("result", case)


def test_a_fit_that_was_cut_short_says_so(clinic):
    model = MendClassifier(n_rounds=3).set_callbacks(lambda *_: True).fit(clinic.X, clinic.y)
    case = make_case(model, clinic.X, clinic.y)
    assert any("ended before it was done (stopped)" in one.message for one in all_findings(case))


def test_samples_of_a_class_without_labels_are_found():
    """A fourth of the samples lie far from all labelled ones."""
    blobs = make_multiview_blobs(200, n_views=2, n_classes=4, noise=0.5, random_state=3)
    task = hide(blobs.views, blobs.y, missing_rate=0.2, label_rate=0.5, random_state=0)
    y = np.where(task.y == 3, -1, task.y)
    model = MendClassifier(n_rounds=2).fit(task.data, y)
    text = section("doubt", make_case(model, task.data, y))
    assert "more than expected" in text
    rows = re.findall(r"\n(\d+)\s+[012]\s+\d+\.\d%", text.split("Samples that fit the known")[1])
    named = np.array(rows[:10], dtype=int)
    assert (task.y_true[named] == 3).all()


def test_without_strangers_there_is_no_sign_of_another_class(fitted, clinic):
    text = section("doubt", make_case(fitted, clinic.X, clinic.y))
    assert "There is no sign of a class without labels" in text


def test_notes_of_reading_stand_where_the_data_is_described(fitted, clinic):
    about = Provenance("trial <1>", ("1 column of 'genes' was left out",), date(2026, 1, 31))
    text = section("data", make_case(fitted, clinic.X, clinic.y, provenance=about))
    assert "trial <1>" in text
    assert "2026-01-31" in text
    assert "1 column of 'genes' was left out." in text
    assert "120; 110 have all 3 views, 10 have one" in text
    assert "40 given (33.3% of the samples)" in text
    assert "every sample is classified by the views that it has" in text


def test_without_notes_filled_cells_are_counted(clinic):
    X = {name: view.copy() for name, view in clinic.X.items()}
    X["noise"][:6, 1] = np.nan
    X["noise"][:, 3] = np.nan
    model = MendClassifier(n_rounds=0, missing_cells="median")
    with pytest.warns(UserWarning, match="6 missing cell"):
        model.fit(X, clinic.y)
    text = section("data", make_case(model, X, clinic.y))
    assert "View noise: 6 missing cell(s) were filled with the median of their column." in text
    assert "View noise: 1 column(s) without any value were ignored" in text


def test_a_container_names_its_source(fitted, clinic):
    data = check_views(clinic.X)
    assert "the fit took the data as it is" in section("data", make_case(fitted, data, clinic.y))
    case = make_case(fitted, data, clinic.y)
    assert "arrays or tables passed in Python" in section("data", case)


def test_confidence_is_told_by_number_of_views(fitted, clinic):
    case = make_case(fitted, clinic.X, clinic.y)
    table = section("classes", case).split("Confidence by number of views")[1]
    sure = case.confidence[clinic.alone].mean()
    assert re.search(rf"\n1\s+10\s+{sure:.1%}", table)


def test_the_day_of_a_report_can_be_set(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert day_of_report() == date(1970, 1, 2)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "not a number")
    assert day_of_report().year > 2000


def test_internals_explain_every_way_of_comparison_and_stage(fitted):
    text = section("internals", make_case(fitted))
    for kind in next(iter(fitted.graph_weights_.values())):
        line = text.split("Trust in each way")[1].split(kind.replace("_", " "))[1]
        assert len(line) > 10
    assert "Hellinger" not in text
    assert "square roots of the values" in text
    assert "the classes are also regressed on each view" in text
