"""The comparison with familiar tools: its tasks, its tools, and that its page shows its runs."""

from pathlib import Path

import familiar
import familiar_page
import numpy as np
import pytest
from familiar_tools import NEEDS, OURS, TOOLS, MofaFactors, late_svms
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from viewmend.datasets import hide, make_multiview_blobs

ROOT = Path(__file__).parents[2]
BLOBS = make_multiview_blobs(120, n_views=2, noise=2.0, random_state=0)
TASK = hide(BLOBS, missing_rate=0.4, label_rate=0.2, random_state=0)


def record(data, setting, labels, seed, method, accuracy):
    told = (data, setting, labels, seed, method, accuracy, 1.0, "abc1234")
    return {k: familiar.shown(v) for k, v in zip(familiar.FIELDS, told, strict=True)}


@pytest.mark.parametrize("name", [name for name in TOOLS if name not in NEEDS])
def test_every_tool_beats_guessing_and_sees_no_hidden_label(name):
    found = TOOLS[name](TASK.data, TASK.y)
    assert np.mean(found == TASK.y_true) > 0.5
    assert set(np.unique(found)) <= {0, 1, 2}


def test_late_svms_on_one_complete_view_are_one_svm():
    task = hide(BLOBS.views[:1], BLOBS.y, missing_rate=0, label_rate=0.3, random_state=0)
    X, rows = task.data.views[0], task.labelled
    scaler = StandardScaler().fit(X[rows])
    alone = SVC().fit(scaler.transform(X[rows]), task.y[rows])
    decided = alone.decision_function(scaler.transform(X)).argmax(axis=1)
    assert_array_equal(late_svms(task.data, task.y), decided)


def test_factors_are_learnt_once_for_tasks_that_differ_in_labels_alone(monkeypatch):
    calls = []

    def factors(data):
        calls.append(data)
        return np.nan_to_num(data.views[0])

    monkeypatch.setattr("familiar_tools.mofa_factors", factors)
    tool = MofaFactors()
    few, many, other = (
        hide(BLOBS, missing_rate=0.4, label_rate=rate, random_state=seed)
        for rate, seed in ((0.1, 0), (0.5, 0), (0.1, 1))
    )
    for task in (few, many, other):
        tool(task.data, task.y)
    assert len(calls) == 2


def test_tasks_of_a_cell_differ_in_labels_alone():
    tasks = list(familiar.pose("linear score", familiar.SETTINGS["half missing"], 0, None))
    assert [task.labelled.sum() for task in tasks] == [50, 200, 500]
    for task in tasks[1:]:
        assert_array_equal(task.data.observed, tasks[0].data.observed)
        assert_array_equal(task.y_true, tasks[0].y_true)
    (alone,) = familiar.pose("linear score", familiar.SETTINGS["one view"], 0, None)
    assert alone.data.n_views == 1


def test_the_threshold_rule_says_nine_of_ten_classes_and_no_column_does():
    views, y = familiar.threshold_rule(np.random.default_rng(0))
    for X in views:
        rule = X[:, 0] * X[:, 1] > 0
        assert 0.87 < np.mean(rule == (y == 1)) < 0.93
        assert np.abs([np.corrcoef(column, y)[0, 1] for column in X.T]).max() < 0.15


def test_means_differences_and_the_best_other_by_hand():
    rows = [
        record("a", "complete", 0.5, seed, method, accuracy)
        for method, scores in {OURS: (0.8, 0.9), "x": (0.7, 0.7), "y": (0.95, 0.95)}.items()
        for seed, accuracy in enumerate(scores)
    ]
    assert_allclose(familiar_page.mean(rows, OURS, data="a"), 85)
    assert familiar_page.best_other(rows, data="a") == "y"
    # Gaps 10 and 20: deviation sqrt(50), over sqrt(2) runs.
    assert familiar_page.difference(rows, "x", data="a") == "+15.0 ± 5.0"


def test_runs_that_are_done_are_not_done_again(tmp_path, monkeypatch):
    ran = []

    def run(name, setting, seed, _folder):
        ran.append((name, setting, seed))
        return [record(name, setting, 0.5, seed, OURS, 0.5)]

    monkeypatch.setattr(familiar, "run", run)
    args = familiar.argparse.Namespace(
        out=tmp_path, data=None, seeds=[0], sets=["linear score"], jobs=1
    )
    familiar.run_all(args)
    args.seeds = [0, 1]
    familiar.run_all(args)
    assert len(ran) == len(set(ran)) == 2 * len(familiar.SETTINGS)
    assert len(familiar.read_rows(tmp_path / "familiar.csv")) == len(ran)


def text_of(*place):
    return ROOT.joinpath(*place).read_text(encoding="utf-8")


def test_the_page_is_that_of_the_records():
    rows = familiar.read_rows(ROOT / "docs" / "results" / "familiar.csv")
    assert text_of("docs", "results", "familiar.md") == familiar_page.page(rows)


def test_the_readme_shows_figures_of_the_records():
    rows = familiar.read_rows(ROOT / "docs" / "results" / "familiar.csv")
    text = text_of("README.md")
    assert familiar_page.with_parts(text, familiar_page.readme_parts(rows)) == text


def test_only_what_stands_between_the_marks_is_written_anew():
    text = "a\n<!-- table -->\nold\n<!-- end of table -->\nb\n"
    once = familiar_page.with_parts(text, {"table": "new"})
    assert once == "a\n<!-- table -->\nnew\n<!-- end of table -->\nb\n"
    assert familiar_page.with_parts(once, {"table": "new"}) == once
