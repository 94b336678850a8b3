"""``--groups``: a column that tells which samples belong together, and is no feature."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from viewmend import MendClassifier, load
from viewmend.cli import app
from viewmend.data import Request, from_frames, read_view_tables

N_PATIENTS, N_ROWS = 60, 3
FEW = ("--set", "n_rounds=2", "--set", "n_landmarks=40")


def invoke(*arguments):
    environment = {"COLUMNS": "1000", "TERM": "dumb", "FORCE_COLOR": None}
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env=environment)


def done(*arguments):
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def frames():
    """Visits of patients: classes that only the patient tells, of every fifth nothing is known."""
    rng = np.random.default_rng(0)
    patients = np.repeat(np.arange(N_PATIENTS), N_ROWS)
    ids = pd.Index([f"visit {i}" for i in range(len(patients))], name="id")
    tables = {
        name: pd.DataFrame(
            rng.normal(size=(N_PATIENTS, 4))[patients] + 0.01 * rng.normal(size=(len(ids), 4)),
            index=ids,
        ).add_prefix(name)
        for name in ("labs", "scan")
    }
    stage = rng.choice(["early", "late"], N_PATIENTS)[patients]
    tables["labs"]["stage"] = np.where(patients % 5 == 0, None, stage)
    tables["labs"]["patient"] = [f"patient {number}" for number in patients]
    return tables


@pytest.fixture(scope="module")
def folder(frames, tmp_path_factory):
    path = tmp_path_factory.mktemp("work") / "data"
    path.mkdir()
    for name, table in frames.items():
        table.to_csv(path / f"{name}.csv")
    return path


@pytest.mark.filterwarnings("ignore:the model is no better")
def test_a_fit_holds_groups_out_and_leaves_their_column_out(folder, frames, tmp_path):
    model = tmp_path / "model.vm"
    asked = ("--labels", "stage", "--groups", "patient", *FEW, "-o", model, "--json")
    told = json.loads(done("fit", folder, *asked).stdout)
    assert told["estimated_accuracy"]["n_groups"] == 48
    assert "no better than chance" in " ".join(told["notes"])
    labs = frames["labs"].drop(columns="patient")
    data = from_frames({"labs": labs, "scan": frames["scan"]}, labels="stage")
    expected = MendClassifier(n_rounds=2, n_landmarks=40).fit(
        data, groups=frames["labs"]["patient"].to_numpy()
    )
    assert load(model).estimated_accuracy_ == expected.estimated_accuracy_
    assert load(model).estimated_accuracy_.n_groups == 48
    assert "patient" not in load(model).view_feature_names_["labs"]
    done("predict", model, folder, "-o", tmp_path / "classes.csv")


@pytest.mark.filterwarnings("ignore:the model is no better")
def test_words_count_groups(folder, tmp_path):
    asked = ("--labels", "stage", "--groups", "patient", *FEW, "-o", tmp_path / "model.vm")
    assert "of 48 groups" in done("fit", folder, *asked).output


@pytest.mark.filterwarnings("ignore:the model is no better")
@pytest.mark.parametrize("place", ["visits.csv:patient", "data/visits.csv:patient", "alone.csv"])
def test_groups_may_be_in_a_table_of_their_own(frames, tmp_path, monkeypatch, place):
    """Which is no view, also if it is in the folder and its path is written in another way."""
    path = tmp_path / "data"
    path.mkdir()
    labs = frames["labs"]
    labs.drop(columns="patient").to_csv(path / "labs.csv")
    frames["scan"].to_csv(path / "scan.csv")
    turned = labs[["patient"]][::-1]
    turned.to_csv(tmp_path / "alone.csv")
    turned = turned.assign(age=1.0 * np.arange(len(turned)))
    turned.to_csv((tmp_path / place).with_name("visits.csv"))
    monkeypatch.chdir(tmp_path)
    asked = ("--labels", "stage", "--groups", place, *FEW, "-o", "model.vm", "--json")
    told = json.loads(done("fit", path, *asked).stdout)
    assert told["estimated_accuracy"]["n_groups"] == 48
    assert [view["name"] for view in told["views"]] == ["labs", "scan"]


def test_a_table_of_groups_with_several_columns_asks_which_one(folder, frames, tmp_path):
    file = tmp_path / "visits.csv"
    frames["labs"].to_csv(file)
    result = invoke("fit", folder, "--labels", "stage", "--groups", file, "-o", tmp_path / "m.vm")
    assert result.exit_code == 2
    assert "say which one holds the groups, as in visits.csv:" in " ".join(result.output.split())


def test_a_column_of_groups_is_not_taken_for_identifiers(frames, tmp_path):
    """Where nothing is called id, identifiers are the only other column that tables share."""
    for name, table in frames.items():
        visits = table.rename_axis("visit").assign(patient=frames["labs"]["patient"])
        visits.iloc[:, ::-1].reset_index().set_index("patient").to_csv(tmp_path / f"{name}.csv")
    read = read_view_tables(tmp_path, Request(labels="stage", groups="patient"))
    assert read.id_column == "visit"
    assert read.groups.nunique() == N_PATIENTS


def test_a_comparison_holds_groups_out(folder):
    asked = ("--labels", "stage", "--methods", "union graph", "--leave-out", "patient")
    by_rows = done("compare", folder, *asked).output
    by_patients = done("compare", folder, *asked[:-2], "--groups", "patient").output
    assert "144 labels held out" in by_rows
    assert "144 labels of 48 groups held out" in by_patients
    assert "No method is shown to beat guessing" in by_patients
    assert "No method is shown to beat guessing" not in by_rows


def test_a_column_that_is_not_there_is_named(folder, tmp_path):
    asked = ("--labels", "stage", "--groups", "person", "-o", tmp_path / "model.vm")
    result = invoke("fit", folder, *asked)
    assert result.exit_code != 0
    assert "groups must name a column of the data, but 'person'" in result.output
    assert "as in visits.csv:patient" in " ".join(result.output.split())


def test_methods_that_hold_nothing_out_are_refused_groups(folder, tmp_path):
    asked = ("--labels", "stage", "--groups", "patient", "--method", "late fusion")
    result = invoke("fit", folder, *asked, "--predictions", tmp_path / "classes.csv")
    assert result.exit_code != 0
    assert "does not hold labels out" in result.output


def test_a_column_of_many_names_is_told(folder, tmp_path):
    """Otherwise it is learned, and gives the classes of the patients away."""
    asked = ("--labels", "stage", *FEW, "-o", tmp_path / "model.vm", "--json")
    told = " ".join(json.loads(done("fit", folder, *asked).stdout)["notes"])
    assert "pass a column with --groups if it tells which rows are of one patient" in told
    assert "(['patient'])" in told
