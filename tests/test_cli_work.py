"""The commands of daily work: files in, files out, and nothing that the library would not say."""

import json
import re
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    log_loss,
    roc_auc_score,
)
from typer.testing import CliRunner

import viewmend
from viewmend import MendClassifier
from viewmend.cli import app
from viewmend.core.common.calibration import calibration_error
from viewmend.data import from_frames, result_frame
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import DataWarning

NAMES = np.array(["léger", "moyen", "sévère"])
COLOURS = ["green", "red", "yellow"]
FEW = ("--set", "n_rounds=2")


def invoke(*arguments, **environment):
    environment = {"COLUMNS": "100", "TERM": "dumb", "FORCE_COLOR": None} | environment
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env=environment)


def message(result):
    """Standard error without colours, frames and line breaks."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", result.stderr)
    return " ".join(re.sub("[│╭╮╰╯─]", " ", text).split())


def done(result):
    assert result.exit_code == 0, result.output
    return result


def predictions(path):
    return pd.read_csv(path, index_col=0)


@pytest.fixture(scope="module")
def frames():
    """Two views of 90 patients, in different orders, and all true stages."""
    blobs = make_multiview_blobs(90, n_views=2, noise=2.0, random_state=0)
    task = hide(blobs.views, blobs.y, missing_rate=0.3, label_rate=0.2, random_state=0)
    ids = np.array([f"P{i:03d}" for i in range(90)])
    tables = {}
    for v, name in enumerate(["labs", "scan"]):
        seen = np.random.default_rng(v).permutation(np.flatnonzero(task.data.observed[:, v]))
        values = pd.DataFrame(task.data.views[v][seen], index=pd.Index(ids[seen], name="patient"))
        tables[name] = values.add_prefix(name)
    given = pd.Series(NAMES[task.y], index=ids).where(task.labelled)
    tables["labs"]["stage"] = given
    tables["scan"]["stage"] = given
    truth = pd.Series(NAMES[task.y_true], index=pd.Index(ids, name="patient"), name="stage")
    return tables, truth


@pytest.fixture(scope="module")
def work(frames, tmp_path_factory):
    """A folder with data, the true stages, and what one fit made of the data."""
    tables, truth = frames
    path = tmp_path_factory.mktemp("work")
    (path / "data").mkdir()
    tables["labs"].to_csv(path / "data" / "labs.csv", sep=";", decimal=",", encoding="utf-8-sig")
    tables["scan"].to_csv(path / "data" / "scan.csv")
    truth.to_csv(path / "truth.csv")
    outputs = ("-o", path / "model.vm", "--predictions", path / "classes.csv")
    done(invoke("fit", path / "data", "--labels", "stage", *outputs, *FEW))
    return path


@pytest.fixture(scope="module")
def by_hand(frames):
    """The same fit through the library."""
    aligned = from_frames(frames[0], labels="stage")
    return MendClassifier(n_rounds=2).fit(aligned.data, aligned.y), aligned


def test_fit_writes_what_the_library_says(work, by_hand):
    model, aligned = by_hand
    table = predictions(work / "classes.csv")
    expected = result_frame(model, aligned.ids)
    assert list(table) == ["class", "labelled", "confidence", *(f"p_{name}" for name in NAMES)]
    assert table.index.name == "patient"
    assert table.index.tolist() == expected.index.tolist()
    assert table["class"].tolist() == expected["class"].tolist()
    assert_allclose(table.iloc[:, 2:], expected.iloc[:, 1:], rtol=1e-5)
    assert_array_equal(table["labelled"] == 1, [label is not None for label in aligned.y])


def test_the_model_is_one_that_the_library_loads(work, by_hand):
    model, aligned = by_hand
    loaded = viewmend.load(work / "model.vm")
    assert_array_equal(loaded.predict_proba(aligned.data), model.predict_proba(aligned.data))


def test_samples_of_the_fit_keep_the_classes_it_found(work):
    done(invoke("predict", work / "model.vm", work / "data", "-o", work / "again.csv"))
    pd.testing.assert_frame_equal(
        predictions(work / "again.csv"), predictions(work / "classes.csv").drop(columns="labelled")
    )


def test_new_samples_are_predicted_whatever_the_layout_of_their_files(work, by_hand, frames):
    model, _ = by_hand
    rows = frames[0]["labs"].drop(columns="stage")[:6] + 0.01
    new = rows.rename(index=lambda name: f"new {name}")
    folder = work / "new"
    folder.mkdir()
    new[new.columns[::-1]].assign(site="north").to_csv(folder / "labs.csv")
    result = done(invoke("predict", work / "model.vm", folder, "-o", work / "new.csv", "--json"))
    told = json.loads(result.stdout)
    assert (told["n_samples"], told["n_of_fit"]) == (6, 0)
    table = predictions(work / "new.csv")
    assert table.index.tolist() == new.index.tolist()
    shares = model.predict_proba({"labs": new})
    assert_allclose(table.iloc[:, 2:], shares, rtol=1e-5)
    assert table["class"].tolist() == model.classes_[shares.argmax(axis=1)].tolist()


def test_samples_without_any_value_are_answered_with_the_class_shares(work, frames, tmp_path):
    tables = {name: table.copy() for name, table in frames[0].items()}
    values = [column for column in tables["labs"] if column != "stage"]
    empty = pd.DataFrame(np.nan, index=["Q1", "Q2"], columns=values).assign(stage=["moyen", None])
    tables["labs"] = pd.concat([tables["labs"], empty.rename_axis("patient")])
    (tmp_path / "data").mkdir()
    for name, table in tables.items():
        table.to_csv(tmp_path / "data" / f"{name}.csv", index_label="patient")
    outputs = ("-o", tmp_path / "model.vm", "--predictions", tmp_path / "classes.csv")
    fit = done(invoke("fit", tmp_path / "data", "--labels", "stage", *outputs, *FEW))
    assert "2 of 92 samples have no view at all" in message(fit)
    table = predictions(tmp_path / "classes.csv")
    assert len(table) == len(predictions(work / "classes.csv")) + 2
    given = tables["scan"]["stage"].combine_first(tables["labs"]["stage"]).dropna()
    shares = given.value_counts(normalize=True)[NAMES]
    assert_allclose(table.loc[["Q1", "Q2"], [f"p_{name}" for name in NAMES]], [shares] * 2, 1e-5)
    assert table.loc["Q1", "class"] == "moyen"
    again = tmp_path / "again.csv"
    predict = done(invoke("predict", tmp_path / "model.vm", tmp_path / "data", "-o", again))
    assert "2 of 2 samples have no view at all" in message(predict)
    columns = [f"p_{name}" for name in NAMES]
    assert_allclose(predictions(again)[columns], table[columns], rtol=1e-5)


def test_empty_cells_of_new_samples_are_filled_as_the_library_does(work, by_hand, frames):
    labs = frames[0]["labs"].drop(columns="stage")
    new = (labs[:2] + 0.01).mask(np.eye(2, labs.shape[1], dtype=bool))
    (work / "gap").mkdir()
    new.to_csv(work / "gap" / "labs.csv")
    done(invoke("predict", work / "model.vm", work / "gap", "-o", work / "gap.csv"))
    with pytest.warns(DataWarning, match=r"'labs': 2 missing cell\(s\) in 2 row\(s\)"):
        shares = by_hand[0].predict_proba({"labs": new})
    assert_allclose(predictions(work / "gap.csv").iloc[:, 2:], shares, rtol=1e-5)


def test_empty_cells_get_the_medians_of_the_fit_if_asked(work, frames):
    """A table with holes gives the model of the same table with medians in them, also later."""
    tables = frames[0]
    labs = tables["labs"].drop(columns="stage")
    holes = np.random.default_rng(0).random(labs.shape) < 0.2
    holes[holes.all(axis=1)] = False
    gaps = labs.mask(holes)
    folder = shutil.copytree(work / "data", work / "holes")
    gaps.join(tables["labs"]["stage"]).to_csv(folder / "labs.csv")
    model, out = work / "medians.vm", work / "medians.csv"
    how = ("--set", "missing_cells=median", *FEW)
    told = done(invoke("fit", folder, "-l", "stage", "-o", model, *how, "--json"))
    assert f"{holes.sum()} missing cell(s)" in " ".join(json.loads(told.stdout)["notes"])
    done(invoke("predict", model, folder, "-o", out))
    labs = gaps.fillna(gaps.median()).join(tables["labs"]["stage"])
    data = from_frames({"labs": labs, "scan": tables["scan"]}, labels="stage")
    shares = MendClassifier(n_rounds=2).fit(data).label_distributions_
    assert_allclose(predictions(out).loc[data.ids].iloc[:, 2:], shares, rtol=1e-5)


def test_unsure_classes_are_withheld_and_given_ones_never(work):
    fitted = predictions(work / "classes.csv")
    threshold = float(np.median(fitted["confidence"]))
    result = done(
        invoke(
            *("predict", work / "model.vm", work / "data", "-o", work / "sure.csv"),
            *("--threshold", threshold, "--json"),
        )
    )
    sure = predictions(work / "sure.csv")
    expected = (fitted["confidence"] < threshold) & (fitted["labelled"] == 0)
    assert 0 < expected.sum() < len(expected)
    assert_array_equal(sure["class"].isna(), expected)
    assert json.loads(result.stdout)["n_abstained"] == expected.sum()


def test_evaluate_counts_no_label_that_was_given(work, by_hand, frames):
    model, aligned = by_hand
    result = done(
        invoke("evaluate", work / "model.vm", work / "data", "-l", work / "truth.csv", "--json")
    )
    told = json.loads(result.stdout)
    judged = np.array([label is None for label in aligned.y])
    truth = frames[1][aligned.ids].to_numpy(dtype=object)[judged]
    found, shares = model.transduction_[judged], model.label_distributions_[judged]
    assert (told["n_judged"], told["n_given"]) == (judged.sum(), (~judged).sum())
    assert told["accuracy"] == pytest.approx(accuracy_score(truth, found))
    assert told["macro_f1"] == pytest.approx(f1_score(truth, found, average="macro"))
    assert told["log_loss"] == pytest.approx(log_loss(truth, shares))
    codes = np.searchsorted(NAMES, truth.astype(str))
    assert told["calibration_error"] == pytest.approx(calibration_error(shares, codes))
    assert told["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(truth, found))
    assert told["auc"] == pytest.approx(roc_auc_score(truth, shares, multi_class="ovr"))
    precisions = [
        average_precision_score(truth == name, shares[:, c]) for c, name in enumerate(NAMES)
    ]
    assert told["average_precision"] == pytest.approx(np.mean(precisions))
    assert told["classes_not_ranked"] == []
    recalls = {entry["label"]: entry["recall"] for entry in told["classes"]}
    assert recalls["moyen"] == pytest.approx(np.mean(found[truth == "moyen"] == "moyen"))


def test_evaluate_tells_classes_that_no_judged_sample_has(work, by_hand, frames):
    model, aligned = by_hand
    two = frames[1][frames[1] != "moyen"]
    two.to_csv(work / "two.csv")
    evaluate = ("evaluate", work / "model.vm", work / "data", "-l", work / "two.csv")
    told = json.loads(done(invoke(*evaluate, "--json")).stdout)
    assert told["classes_not_ranked"] == ["moyen"]
    unlabelled = np.array([label is None for label in aligned.y])
    judged = unlabelled & np.isin(aligned.ids, two.index)
    truth = two[aligned.ids[judged]].to_numpy()
    ranked = [
        roc_auc_score(truth == name, model.label_distributions_[judged, c])
        for c, name in ((0, "léger"), (2, "sévère"))
    ]
    assert told["auc"] == pytest.approx(np.mean(ranked))
    text = " ".join(done(invoke(*evaluate)).stdout.split())
    assert f"area under the ROC curve, mean over classes: {told['auc']:.3f}" in text
    assert "the means over classes leave out ['moyen'], because none or all of" in text
    one = frames[1][frames[1] == "moyen"]
    one.to_csv(work / "one.csv")
    evaluate = (*evaluate[:-1], work / "one.csv")
    told = json.loads(done(invoke(*evaluate, "--json")).stdout)
    assert (told["auc"], told["average_precision"]) == (None, None)
    assert "ROC" not in done(invoke(*evaluate)).stdout


def test_false_labels_of_given_samples_change_nothing(work, by_hand, frames):
    """They are known by what they hold and, where that was changed, by their identifiers."""
    aligned, truth = by_hand[1], frames[1].copy()
    given = aligned.ids[[label is not None for label in aligned.y]]
    truth[given] = np.roll(NAMES, 1)[np.searchsorted(NAMES, truth[given].to_numpy(str))]
    truth.to_csv(work / "false.csv")
    changed = shutil.copytree(work / "data", work / "changed")
    scan = pd.read_csv(changed / "scan.csv", index_col=0, dtype=str)
    moved = scan.index.intersection(given)
    scan.loc[moved, "scan0"] = [repr(float(x) + 0.5) for x in scan.loc[moved, "scan0"]]
    scan.to_csv(changed / "scan.csv")
    outcomes = [
        json.loads(done(invoke("evaluate", work / "model.vm", *pair, "--json")).stdout)
        for pair in (
            (work / "data", "-l", work / "truth.csv"),
            (work / "data", "-l", work / "false.csv"),
            (changed, "-l", work / "false.csv"),
        )
    ]
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_a_model_without_its_origin_predicts_but_is_not_judged(work, by_hand):
    model, aligned = by_hand
    viewmend.save(model, work / "alone.vm")
    done(invoke("predict", work / "alone.vm", work / "data", "-o", work / "alone.csv"))
    shares = model.predict_proba(aligned.data)
    assert_allclose(predictions(work / "alone.csv").iloc[:, 2:], shares, rtol=1e-5)
    refused = invoke("evaluate", work / "alone.vm", work / "data", "-l", work / "truth.csv")
    assert refused.exit_code == 2
    assert "alone.vm does not name the samples" in message(refused)


def test_columns_of_a_model_saved_in_python_are_matched_as_the_note_says(work, by_hand, frames):
    _, aligned = by_hand
    turned, found = work / "turned", {}
    turned.mkdir()
    for name, table in frames[0].items():
        table[table.columns[::-1]].to_csv(turned / f"{name}.csv")
    for how, X in {"by name": aligned, "by position": list(aligned.views)}.items():
        viewmend.save(MendClassifier(n_rounds=2).fit(X, aligned.y), work / "alone.vm")
        for folder in (work / "data", turned):
            result = done(invoke("predict", work / "alone.vm", folder, "-o", work / "alone.csv"))
            assert f"matched {how}" in message(result)
            found[how, folder] = predictions(work / "alone.csv")["confidence"].sort_index()
    assert_allclose(found["by name", turned], found["by name", work / "data"])
    assert np.abs(found["by position", turned] - found["by position", work / "data"]).max() > 0.1


def test_a_model_is_one_file_and_no_other_can_be_taken_for_a_part_of_it(work):
    """A model with the JSON file of another one gave other classes."""
    alone = work / "copied" / "model.vm"
    alone.parent.mkdir()
    shutil.copy(work / "model.vm", alone)
    alone.with_name("model.vm.json").write_text("[1]")
    truth = (work / "data", "-l", work / "truth.csv", "--json")
    assert [entry.name for entry in work.glob("model.vm*")] == ["model.vm"]
    expected = done(invoke("evaluate", work / "model.vm", *truth)).stdout
    assert done(invoke("evaluate", alone, *truth)).stdout == expected
    viewmend.save(viewmend.load(alone), work / "again.vm")
    assert (work / "again.vm").read_bytes() == alone.read_bytes()


def test_another_fit_forgets_the_origin_of_the_last(work, by_hand):
    _, aligned = by_hand
    model = viewmend.load(work / "model.vm")
    assert model.fitted_state_.origin.column_names["labs"][0] == "labs0"
    assert model.fit(aligned.data, aligned.y).fitted_state_.origin is None


def test_a_model_can_be_passed_on_without_names_as_the_guide_says(work):
    page = (Path(__file__).parents[1] / "docs" / "guide" / "saving.md").read_text()
    recipe = page.rsplit("```python\n", 1)[1].partition("```")[0]
    again, path = viewmend.load(work / "model.vm"), work / "model_without_names.vm"
    recipe = recipe.replace('"model_without_names.vm"', "path")
    exec(recipe, {"viewmend": viewmend, "again": again, "path": path})
    before, after = text_in(work / "model.vm"), text_in(path)
    for name in ("P012", "labs0", "scan1", "patient"):
        assert name in before
        assert name not in after
    assert viewmend.load(path).classes_.tolist() == again.classes_.tolist()


def text_in(path):
    """All text in a model file, whether a letter has one byte or four."""
    with zipfile.ZipFile(path) as archive:
        content = b"".join(archive.read(name) for name in archive.namelist())
    return content.replace(b"\0", b"").decode("latin-1")


def test_reports_of_fit_and_of_the_model_file(work, frames):
    pytest.importorskip("matplotlib")
    page = ("--report", work / "fit.html")
    done(invoke("fit", work / "data", "--labels", "stage", *page, *FEW))
    done(invoke("report", work / "model.vm", work / "data", "-o", work / "report.html"))
    changes = re.compile(r"<h3>Changes before the fit</h3>(.*?)</section>", re.DOTALL)
    of_fit, of_model = ((work / name).read_text() for name in ("fit.html", "report.html"))
    assert changes.sub("", of_model) == changes.sub("", of_fit)
    # Only the fit heard which columns were left out.
    assert "None: the fit took the data as it is" in changes.search(of_fit)[1]
    assert "Which columns were left out" in changes.search(of_model)[1]
    truth = ("--labels", work / "truth.csv")
    done(invoke("report", work / "model.vm", work / "data", "-o", work / "judged.html", *truth))
    assert (work / "judged.html").read_text() != (work / "fit.html").read_text()
    other = shutil.copytree(work / "data", work / "other")
    (other / "scan.csv").write_text((work / "data" / "scan.csv").read_text().replace("0.", "1.", 1))
    refused = invoke("report", work / "model.vm", other, "-o", work / "no.html")
    assert refused.exit_code == 2
    assert "1 of its 90 samples" in message(refused)


def test_fit_in_json(work):
    result = done(
        invoke("fit", work / "data", "-l", "stage", "-o", work / "second.vm", "--json", *FEW)
    )
    told = json.loads(result.stdout)
    assert told["files"] == {"model": str(work / "second.vm")}
    assert (told["method"], told["status"], told["id_column"]) == ("Mend", "done", "patient")
    assert [view["name"] for view in told["views"]] == ["labs", "scan"]
    assert sum(view["weight"] for view in told["views"]) == pytest.approx(1)
    counted = sum(entry["n_labelled"] + entry["n_predicted"] for entry in told["classes"])
    assert counted == told["n_samples"] == 90
    assert (work / "second.vm").read_bytes() == (work / "model.vm").read_bytes()


def test_settings_seed_and_time_limit_reach_the_model(work):
    result = done(
        invoke(
            *("fit", work / "data", "-l", "stage", "-o", work / "agf.vm", "--method", "agf-ti"),
            *("--set", "n_anchors=8", "--set", "class_prior=uniform", "--seed", "3"),
            *("--time-limit", "0", "--json"),
        )
    )
    assert json.loads(result.stdout)["status"] == "stopped"
    model = viewmend.load(work / "agf.vm")
    assert (model.n_anchors, model.class_prior, model.random_state) == (8, "uniform", 3)


def test_a_fit_that_ran_out_of_time_goes_on_from_its_checkpoint(work):
    def fit(name, *more):
        rest = ("--checkpoint", work / "fit.ckpt", "--set", "n_rounds=2", "--json", *more)
        result = done(invoke("fit", work / "data", "-l", "stage", "-o", work / name, *rest))
        return json.loads(result.stdout)["status"]

    assert fit("half.vm", "--time-limit", "0") == "stopped"
    assert fit("whole.vm") == "done"
    assert (work / "whole.vm").read_bytes() == (work / "model.vm").read_bytes()


def test_a_checkpoint_needs_a_method_with_rounds(work):
    method = ("--method", "UnionGraphClassifier", "--checkpoint", work / "union.ckpt")
    result = invoke("fit", work / "data", "-l", "stage", "--predictions", work / "p.csv", *method)
    assert result.exit_code != 0
    assert "--checkpoint needs a method that works in rounds" in " ".join(result.stderr.split())


def test_any_method_predicts_though_few_can_be_saved(work):
    out = ("--predictions", work / "union.csv")
    done(invoke("fit", work / "data", "-l", "stage", "--method", "UnionGraphClassifier", *out))
    given = predictions(work / "classes.csv").query("labelled == 1")["class"]
    assert predictions(work / "union.csv")["class"][given.index].tolist() == given.tolist()


def test_inspect_tells_findings_by_sample(work, frames):
    folder = shutil.copytree(work / "data", work / "flawed")
    scan = frames[0]["scan"].copy()
    scan.iloc[0, 1], scan.iloc[1, 1] = np.nan, np.inf
    scan.to_csv(folder / "scan.csv")
    told = json.loads(done(invoke("inspect", folder, "--labels", "stage", "--json")).stdout)
    (hint,) = [entry for entry in told["findings"] if "empty in part" in entry["message"]]
    assert (hint["severity"], hint["subject"]) == ("info", "scan")
    assert scan.index[0] in hint["message"]
    assert sum(entry["n_samples"] for entry in told["patterns"]) == told["n_samples"] == 90
    strict = invoke("inspect", folder, "--labels", "stage", "--strict")
    assert strict.exit_code == 1
    assert "error: scan: 1 row(s) hold values that are infinite" in strict.stdout
    assert f"beyond 1e+140 ({scan.index[1]})" in strict.stdout
    assert invoke("inspect", work / "data", "-l", "stage", "--strict").exit_code == 0


def test_numbers_that_mean_unlabelled_are_no_labels(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, -1], [5, 5, 30])
    np.savez(tmp_path / "d.npz", a=rng.normal(size=(40, 3)) + 4 * y[:, None], y=y)
    out = ("-o", tmp_path / "m.vm", "--json", *FEW)
    told = json.loads(done(invoke("fit", tmp_path / "d.npz", *out)).stdout)
    assert told["n_labelled"] == 10
    assert [entry["n_labelled"] for entry in told["classes"]] == [5, 5]


def test_the_documentation_names_all_keys(work):
    page = (Path(__file__).parents[1] / "docs" / "command_line.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (`.*`) \|$", page, re.MULTILINE))
    out, model, data = work / "keys", work / "model.vm", work / "data"
    for command in (
        ("inspect", data),
        ("fit", data, "-l", "stage", "--predictions", out, *FEW),
        ("predict", model, data, "-o", out),
        ("evaluate", model, data, "-l", work / "truth.csv"),
        ("methods",),
    ):
        told = json.loads(done(invoke(*command, "--json")).stdout)
        assert sorted(told) == sorted(re.findall(r"`(\w+)`", rows[command[0]]))


def test_tables_keep_their_columns_in_narrow_terminals(work):
    wide, narrow = (
        done(invoke("inspect", work / "data", "-l", "stage", COLUMNS=columns)).stdout
        for columns in ("100", "50")
    )
    assert max(map(len, narrow.splitlines())) <= 50
    header = ["name", "columns", "samples", "coverage", "labelled"]
    assert any(line.split() == header for line in narrow.splitlines())
    assert wide.split() == narrow.split()


REFUSALS = [
    (["fit", "{data}", "-l", "stage"], "nothing would be kept"),
    (["fit", "{data}", "-l", "grade", "-o", "{out}"], "'grade' is none of their columns"),
    (["fit", "{data}", "-o", "{out}"], "the data holds no labels; name their column"),
    (["fit", "{data}", "-l", "stage", "-o", "nowhere/m.vm"], "there is no folder 'nowhere'"),
    (["fit", "{data}", "-l", "stage", "--predictions", "{data}/p.csv"], "read as a view"),
    (["fit", "{data}", "-l", "stage", "-o", "{out}", "--method", "SLIM"], "SLIM cannot be saved"),
    (["fit", "{data}", "-l", "stage", "-o", "{out}", "--method", "best"], "no method 'best'"),
    (["fit", "{data}", "-l", "stage", "-o", "{out}", "--set", "speed=9"], "got 'speed=9'"),
    (["fit", "{data}", "-l", "stage", "-o", "{out}", "--set", "n_rounds=-1"], "n_rounds"),
    (["fit", "{data}", "-l", "stage", "-o", "{out}", "--view", "x"], "no view 'x'"),
    (["fit", "{data}", "-l", "stage", "-o", "{out}", "--id", "name"], "no column 'name'"),
    (["fit", "{data}/none", "-o", "{out}"], "there is no file or folder"),
    (["predict", "{model}", "{data}", "-o", "{data}/p.csv"], "read as a view"),
    (
        ["predict", "{data}/labs.csv", "{data}", "-o", "{out}"],
        "does not begin as a file of viewmend does",
    ),
    (["predict", "{model}", "{data}/../nothing", "-o", "{out}"], "there is no file or folder"),
    (["evaluate", "{model}", "{data}", "-l", "stage"], "model was given all of them"),
]


@pytest.mark.parametrize(("arguments", "expected"), REFUSALS)
def test_mistakes_are_short_errors(work, arguments, expected):
    places = {"data": work / "data", "model": work / "model.vm", "out": work / "refused"}
    result = invoke(*(argument.format(**places) for argument in arguments), COLUMNS="1000")
    assert result.exit_code == 2
    assert expected in message(result)
    assert "Traceback" not in result.output
    assert result.stdout == ""
    assert not (work / "refused").exists()


OVERWRITING = [
    ("fit", "data/labs.csv", "-l", "stage", "--predictions", "data/labs.csv"),
    ("fit", "data", "-l", "stage", "-o", "data/scan.csv"),
    ("fit", "data", "-l", "stage", "--report", "data/scan.csv"),
    ("fit", "data", "-l", "stage", "-o", "same", "--predictions", "same"),
    ("fit", "data", "-l", "stage", "-o", "same", "--report", "data/../same"),
    ("fit", "data", "-l", "stage", "-o", "same", "--checkpoint", "same"),
    ("fit", "data", "-l", "truth.csv:stage", "--predictions", "truth.csv"),
    ("fit", "data", "-l", "stage", "-o", "truth.csv", "--groups", "truth.csv:stage"),
    ("predict", "model.vm", "data", "-o", "model.vm"),
    ("predict", "model.vm", "data/labs.csv", "-o", "data/labs.csv"),
    ("report", "model.vm", "data", "-o", "model.vm"),
    ("report", "model.vm", "data", "-o", "data/labs.csv"),
    ("report", "model.vm", "data", "-o", "truth.csv", "--labels", "truth.csv"),
    ("compare", "data/labs.csv", "-l", "stage", "-o", "data/labs.csv"),
]


@pytest.mark.parametrize("command", OVERWRITING, ids=" ".join)
def test_no_file_that_is_read_or_written_already_is_written_over(work, command, monkeypatch):
    monkeypatch.chdir(work)
    files = [file for file in work.rglob("*") if file.is_file()]
    before = {file: file.read_bytes() for file in files}
    result = invoke(*command)
    assert result.exit_code == 2
    assert re.search(
        "is (read by this command|written by --output already); write to", message(result)
    )
    assert {file: file.read_bytes() for file in work.rglob("*") if file.is_file()} == before


def test_a_model_may_be_replaced_where_it_lies(work, tmp_path):
    data = shutil.copytree(work / "data", tmp_path / "data")
    for _ in range(2):
        done(invoke("fit", data, "--labels", "stage", "-o", data / "model.vm", *FEW))


def test_a_report_takes_cells_for_missing_as_the_fit_did(frames, tmp_path):
    pytest.importorskip("matplotlib")
    labs = frames[0]["labs"].astype({"labs0": object})
    labs.iloc[0, 0] = "<0.05"
    (tmp_path / "data").mkdir()
    labs.to_csv(tmp_path / "data" / "labs.csv")
    frames[0]["scan"].to_csv(tmp_path / "data" / "scan.csv")
    how = "--unreadable-as-missing"
    model, page = tmp_path / "model.vm", tmp_path / "page.html"
    done(invoke("fit", tmp_path / "data", "-l", "stage", "-o", model, how, *FEW))
    refused = invoke("report", model, tmp_path / "data", "-o", page)
    assert refused.exit_code == 2
    assert how in message(refused)
    done(invoke("report", model, tmp_path / "data", "-o", page, how))


def test_true_labels_are_those_of_the_fit_however_their_file_reads_them(frames, tmp_path):
    """Beside the class 2b, pandas reads the class 1 as text; in a file of its own, as a number."""
    tables, truth = frames
    short = dict(zip(NAMES, ["1", "2", "2b"], strict=True))
    (tmp_path / "data").mkdir()
    for name, table in tables.items():
        table.assign(stage=table["stage"].map(short)).to_csv(tmp_path / "data" / f"{name}.csv")
    truth.map(short)[truth != NAMES[2]].to_csv(tmp_path / "truth.csv")
    model, data = tmp_path / "model.vm", tmp_path / "data"
    done(invoke("fit", data, "-l", "stage", "-o", model, "--predictions", tmp_path / "p.csv", *FEW))
    told = invoke("evaluate", model, data, "--labels", tmp_path / "truth.csv", "--json")
    classes = pd.read_csv(tmp_path / "p.csv", index_col=0)
    fresh = classes.index[(classes["labelled"] == 0)].intersection(truth.index[truth != NAMES[2]])
    right = (classes.loc[fresh, "class"] == truth[fresh].map(short)).mean()
    assert json.loads(done(told).stdout)["accuracy"] == pytest.approx(right)
    assert json.loads(told.stdout)["n_judged"] == len(fresh)


def test_a_report_refuses_true_labels_of_other_names(work, tmp_path):
    truth = pd.read_csv(work / "truth.csv", index_col=0)["stage"].str.upper()
    truth.to_csv(tmp_path / "truth.csv")
    page = tmp_path / "page.html"
    told = invoke(
        "report", work / "model.vm", work / "data", "-o", page, "-l", tmp_path / "truth.csv"
    )
    assert told.exit_code == 2
    assert "the labels must hold classes of the model" in message(told)
    assert not page.exists()


def test_an_interrupt_is_no_error_of_ours(work, monkeypatch):
    def interrupted(*_args):
        raise KeyboardInterrupt

    monkeypatch.setattr("viewmend.cli.fit.read_view_tables", interrupted)
    result = invoke("fit", work / "data", "-l", "stage", "-o", work / "never.vm")
    assert result.exit_code == 130
    assert "Traceback" not in result.output


def test_shells_can_complete():
    assert "--install-completion" in invoke("--help").stdout
    asked = {"_VIEWMEND_COMPLETE": "complete_bash", "COMP_WORDS": "viewmend ev", "COMP_CWORD": "1"}
    answer = CliRunner().invoke(app, [], env=asked, prog_name="viewmend")
    assert answer.stdout.split() == ["evaluate"]


def test_categories_of_a_fit_are_those_of_its_predictions(frames, tmp_path):
    """Also where a category is new, stands in another order, or is missing from a file."""
    tables, truth = frames
    rng = np.random.default_rng(0)
    (tmp_path / "data").mkdir()
    stages = truth.where(rng.random(len(truth)) < 0.8, "léger")
    for name, table in tables.items():
        kind = stages[table.index].map({"léger": "green", "moyen": "yellow", "sévère": "red"})
        table.assign(kind=kind).to_csv(tmp_path / "data" / f"{name}.csv")
    model, classes = tmp_path / "model.vm", tmp_path / "classes.csv"
    out = ("-o", model, "--predictions", classes)
    fit = done(invoke("fit", tmp_path / "data", "-l", "stage", *out, *FEW, "--json"))
    assert [view["n_columns"] for view in json.loads(fit.stdout)["views"]] == [11, 11]
    assert "view 'labs' became columns of 0 and 1, one per category ({'kind': 3})" in message(fit)
    again = tmp_path / "again.csv"
    done(invoke("predict", model, tmp_path / "data", "-o", again))
    pd.testing.assert_frame_equal(predictions(again), predictions(classes).drop(columns="labelled"))
    new = tables["labs"].drop(columns="stage").iloc[:, ::-1]
    new.insert(0, "kind", np.resize(["yellow", "violet", "red"], len(new)))
    new.index = [f"N{i}" for i in range(len(new))]
    (tmp_path / "new").mkdir()
    new.rename_axis("patient").to_csv(tmp_path / "new" / "labs.csv")
    done(invoke("predict", model, tmp_path / "new", "-o", again))
    ones = {f"kind={name}": (new["kind"] == name).astype(float) for name in COLOURS}
    by_hand = new.drop(columns="kind").iloc[:, ::-1].assign(**ones)
    expected = viewmend.load(model).predict({"labs": by_hand})
    assert predictions(again)["class"].tolist() == expected.tolist()
