"""The commands that tell what to do next and what to doubt, by the names of the samples."""

import dataclasses
import json
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from typer.testing import CliRunner

import viewmend
from viewmend import MendClassifier
from viewmend.cli import app
from viewmend.data import Request, from_frames, read_views
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.models.suspects import SuspectLabels

NAMES = np.array(["léger", "moyen", "sévère"])
FLIPPED = "P002"


def invoke(*arguments):
    environment = {"COLUMNS": "200", "TERM": "dumb", "FORCE_COLOR": None}
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env=environment)


def done(*arguments):
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result


def told(*arguments):
    return json.loads(done(*arguments, "--json").stdout)


def refused(*arguments):
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    return " ".join(re.sub("[│╭╮╰╯─]", " ", result.output).split())


@pytest.fixture(scope="module")
def tables():
    """Two views of 120 patients, a third of them labelled, and one label wrong."""
    blobs = make_multiview_blobs(120, n_views=2, noise=2.0, random_state=0)
    task = hide(blobs.views, blobs.y, missing_rate=0.3, label_rate=0.3, random_state=0)
    ids = np.array([f"P{i:03d}" for i in range(120)])
    given = pd.Series(NAMES[task.y], index=ids).where(task.labelled)
    given[FLIPPED] = NAMES[(task.y[2] + 1) % 3]
    views = {}
    for v, name in enumerate(["labs", "scan"]):
        # Rows in another order in every file, so that a row number is no identifier.
        seen = np.random.default_rng(v).permutation(np.flatnonzero(task.data.observed[:, v]))
        values = pd.DataFrame(task.data.views[v][seen], index=pd.Index(ids[seen], name="patient"))
        views[name] = values.add_prefix(name).assign(stage=given)
    return views


@pytest.fixture(scope="module")
def work(tables, tmp_path_factory):
    """Folders of the data, with labels and without any, and a model that knows its samples."""
    path = tmp_path_factory.mktemp("work")
    for folder, left_out in {"data": [], "cold": ["stage"]}.items():
        (path / folder).mkdir()
        for name, table in tables.items():
            table.drop(columns=left_out).to_csv(path / folder / f"{name}.csv")
    fit = ("fit", path / "data", "-l", "stage", "-o", path / "model.vm", "--set", "n_rounds=2")
    done(*fit)
    aligned = read_views(path / "data", Request(labels="stage"))
    nameless = dataclasses.replace(aligned, ids=None)
    viewmend.save(MendClassifier(n_rounds=2).fit(nameless, aligned.y), path / "python.vm")
    viewmend.save(MendClassifier(n_rounds=2).fit(aligned, aligned.y), path / "named.vm")
    return path


@pytest.fixture(scope="module")
def by_hand(tables):
    aligned = from_frames(tables, labels="stage")
    return MendClassifier(n_rounds=2).fit(aligned.data, aligned.y), aligned.ids


def test_samples_to_label_are_named_by_their_identifiers(work, by_hand):
    model, ids = by_hand
    expected = model.suggest_labels(5)
    done("suggest", "labels", work / "model.vm", "-n", 5, "-o", work / "labels.csv")
    table = pd.read_csv(work / "labels.csv", index_col="patient")
    assert table.index.tolist() == ids[expected.samples].tolist()
    assert table["reason"].tolist() == list(expected.reasons)
    assert_allclose(table["score"], expected.scores, rtol=1e-5)


def test_pairs_to_measure_are_of_samples_that_miss_the_view(work, by_hand, tables):
    model, ids = by_hand
    expected = model.suggest_views(6, costs={"scan": 3.0})
    summary = told("suggest", "views", work / "model.vm", "-n", 6, "--cost", "scan=3")
    pairs = [(row["sample"], row["view"]) for row in summary["suggestions"]]
    assert pairs == list(zip(ids[expected.samples].tolist(), expected.views.tolist(), strict=True))
    assert not any(sample in tables[view].index for sample, view in pairs)
    assert sum(worth["n_pairs"] for worth in summary["by_view"]) == 6


def test_views_are_summed_up_in_a_line(work):
    said = done("suggest", "views", work / "model.vm", "--budget", 4).stdout
    assert re.search(r"(labs|scan): \d samples, \d\.\d more correct predictions expected", said)


def test_a_wrong_label_is_the_first_to_be_doubted(work, tables):
    said = done("doubt", work / "model.vm", "-o", work / "doubt.csv").stdout
    table = pd.read_csv(work / "doubt.csv", index_col="patient")
    given = pd.concat([view["stage"] for view in tables.values()]).dropna()
    first = table.iloc[0]
    assert table.index[0] == FLIPPED
    assert first["given"] == pd.unique(given[[FLIPPED]])[0]
    assert first["suggested"] != first["given"]
    # The file has every label, the screen those that are contradicted.
    assert set(table.index) == set(given.index)
    lines = [line for line in said.splitlines() if re.match(r"P\d", line)]
    assert lines[0].startswith(FLIPPED)
    assert len(lines) == (table["given"] != table["suggested"]).sum()
    assert re.search(r"estimated number of wrong labels: \d+ of 36 \(\d", said)


def test_data_without_labels_is_enough_to_begin(work, tables):
    unlabelled = {name: table.drop(columns="stage") for name, table in tables.items()}
    aligned = from_frames(unlabelled)
    expected = MendClassifier().suggest_first_labels(aligned.data, 4)
    summary = told("suggest", "labels", work / "cold", "-n", 4)
    samples = [row["sample"] for row in summary["suggestions"]]
    assert samples == aligned.ids[expected.samples].tolist()
    assert summary["notes"] == []


def test_data_with_labels_points_to_a_model(work, tables):
    summary = told("suggest", "labels", work / "data", "-l", "stage", "-n", 4)
    labelled = pd.concat([table["stage"] for table in tables.values()]).dropna().index
    assert not {row["sample"] for row in summary["suggestions"]} & set(labelled)
    assert "viewmend fit -o" in summary["notes"][0]


def test_costs_turn_the_choice_and_samples_without_one_are_left_out(work, by_hand):
    model, names = by_hand
    best = [row["sample"] for row in told("suggest", "labels", work / "model.vm")["suggestions"]]
    ids = [f"P{i:03d}" for i in range(120)]
    costs = pd.Series(1.0, index=pd.Index(ids, name="patient"), name="minutes")
    costs[best[0]] = 1e6
    costs[best[1]] = np.nan
    costs.to_frame().to_csv(work / "costs.csv")
    summary = told(
        "suggest", "labels", work / "model.vm", "-n", 8, "--costs", work / "costs.csv:minutes"
    )
    chosen = [row["sample"] for row in summary["suggestions"]]
    assert not {best[0], best[1]} & set(chosen)
    prices = costs[names].fillna(1).to_numpy()
    expected = model.suggest_labels(8, costs=prices, exclude=names == best[1])
    assert chosen == names[expected.samples].tolist()
    assert "1 sample cannot be suggested" in summary["notes"][0]


def test_a_column_of_costs_is_no_feature(work, tables):
    folder = work / "priced"
    folder.mkdir()
    for name, table in tables.items():
        # A column of this size would decide who is near to whom.
        table.drop(columns="stage").assign(fee=7.0).to_csv(folder / f"{name}.csv")
    summary = told("suggest", "labels", folder, "-n", 4, "--costs", "fee")
    cold = told("suggest", "labels", work / "cold", "-n", 4)["suggestions"]
    assert [row["sample"] for row in summary["suggestions"]] == [row["sample"] for row in cold]
    assert summary["suggestions"][0]["score"] == pytest.approx(cold[0]["score"] / 7)


def test_a_table_of_costs_is_no_view(work, tables, monkeypatch):
    folder = work / "with costs"
    folder.mkdir()
    for name, table in tables.items():
        table.drop(columns="stage").to_csv(folder / f"{name}.csv")
    noise = np.random.default_rng(0).normal(size=(120, 3))
    ids = pd.Index([f"P{i:03d}" for i in range(120)], name="patient")
    pd.DataFrame(noise, index=ids).assign(fee=7.0).to_csv(folder / "costs.csv")
    monkeypatch.chdir(work)
    cold = told("suggest", "labels", work / "cold", "-n", 4)["suggestions"]
    for asked in (folder, folder.name):
        costs = f"{folder.name}/costs.csv:fee"
        found = told("suggest", "labels", asked, "-n", 4, "--costs", costs)["suggestions"]
        assert [row["sample"] for row in found] == [row["sample"] for row in cold]
        assert found[0]["score"] == pytest.approx(cold[0]["score"] / 7)


def test_a_model_of_python_takes_the_names_from_its_data(work):
    expected = told("doubt", work / "model.vm")["suspects"][0]
    named = told("doubt", work / "python.vm", work / "data")
    assert named["suspects"][0]["sample"] == expected["sample"] == FLIPPED
    assert not any("order of the fit" in note for note in named["notes"])
    rows = told("doubt", work / "python.vm")
    ids = read_views(work / "data", Request(labels="stage")).ids
    assert ids[rows["suspects"][0]["sample"]] == FLIPPED
    assert "pass the data of the fit" in rows["notes"][0]


def test_a_model_of_python_that_saw_identifiers_needs_no_data(work):
    found = told("doubt", work / "named.vm")
    assert found["suspects"][0]["sample"] == FLIPPED
    assert found["notes"] == []


def test_columns_of_a_view_by_name_and_by_class(work, by_hand):
    model, _ = by_hand
    expected = model.explain_view("scan")
    asked = ("explain", "view", work / "model.vm", "scan")
    found = told(*asked, "-n", 3, "-o", work / "columns.csv", "--chart", work / "columns.png")
    best = expected.ranking()
    assert [row["column"] for row in found["columns"]] == expected.columns[best[:3]].tolist()
    assert_allclose(
        [row["importance"] for row in found["columns"]], expected.importances[best[:3]], atol=1e-4
    )
    assert (work / "columns.png").stat().st_size > 5000
    table = pd.read_csv(work / "columns.csv")
    assert len(table) == len(expected.columns) * 3
    one = told(*asked, "--class", "moyen")
    code = expected.classes.tolist().index("moyen")
    assert one["columns"][0]["column"] == expected.columns[expected.ranking("moyen")[0]]
    assert one["columns"][0]["direction"] == round(
        float(expected.directions[expected.ranking("moyen")[0], code]), 2
    )
    assert "columns of scan" in done(*asked).output
    assert "view must be one of" in refused("explain", "view", work / "model.vm", "rna")
    assert "--class must be one of léger, moyen" in refused(*asked, "--class", "grave")


def test_samples_are_explained_by_name_of_the_fit_and_new_ones(work, by_hand):
    model, ids = by_hand
    row = ids.tolist().index("P010")
    found = told("explain", "samples", work / "model.vm", "P010")["samples"][0]
    expected = model.explain(row)
    assert found["sample"] == "P010"
    assert found["class"] == expected.labels[0]
    assert_allclose(sum(found["log_odds"].values()), expected.log_odds.sum(), rtol=1e-4)
    new = told("explain", "samples", work / "model.vm", "P011", "P010", "--new", work / "data")
    assert [sample["sample"] for sample in new["samples"]] == ["P011", "P010"]
    lines = done("explain", "samples", work / "model.vm", "P010").output.splitlines()
    assert lines[0].startswith("sample P010: class ")
    assert lines[1].startswith("  labels that count most: sample P")
    assert "which fit did not see" in refused("explain", "samples", work / "model.vm", "nobody")
    said = refused("explain", "samples", work / "model.vm", "nobody", "--new", work / "data")
    assert "has no sample 'nobody'" in said


def test_data_of_another_fit_is_refused(work, tables):
    other = work / "other"
    other.mkdir()
    for name, table in tables.items():
        table[5:].to_csv(other / f"{name}.csv")
    for model in ("model.vm", "python.vm"):
        said = refused("doubt", work / model, other)
        assert "must be what the model was fitted on" in said


def test_samples_in_another_order_are_noticed_though_the_model_has_no_names(work, tables):
    """Who has which view is the same, so that nothing but the content can tell."""
    whole = tables["labs"]
    for folder, table in {"straight": whole, "turned": whole[::-1]}.items():
        (work / folder).mkdir()
        table.to_csv(work / folder / "labs.csv")
    aligned = read_views(work / "straight", Request(labels="stage"))
    model = MendClassifier(n_rounds=0).fit(aligned, aligned.y)
    viewmend.save(model, work / "one_view.vm")

    def doubts(folder):
        notes = told("doubt", work / "one_view.vm", work / folder)["notes"]
        return any("order of the fit" in note for note in notes)

    assert doubts("turned")
    # The column of labels is text, and no number that could be taken for a feature.
    assert not doubts("straight")


def test_mistakes_are_told_with_their_remedy(work):
    model = work / "model.vm"
    assert "costs.csv:minutes" in refused("suggest", "labels", model, "--costs", "minutes")
    assert "none of" in refused("suggest", "labels", model, work / "data", "--costs", "minutes")
    assert "fit it first" in refused("suggest", "labels", work / "cold", "--strategy", "margin")
    assert "choose one of" in refused("suggest", "labels", model, "--strategy", "best")
    assert "as in scan=3" in refused("suggest", "views", model, "--cost", "scan=much")
    assert "no view of fit" in refused("suggest", "views", model, "--cost", "blood=2")
    inside = work / "data" / "next.csv"
    assert "read as a view" in refused("suggest", "labels", work / "data", "-o", inside)


def test_a_model_that_gives_no_advice_is_refused(work):
    slow = work / "slow.vm"
    settings = ("--method", "AGF-TI", "--set", "max_iter=2", "--set", "n_anchors=8")
    done("fit", work / "data", "-l", "stage", "-o", slow, *settings)
    for command in (("doubt",), ("suggest", "labels"), ("suggest", "views")):
        assert "--method Mend" in refused(*command, slow)


def test_a_model_without_its_samples_says_so_in_words_of_the_command_line(work):
    viewmend.save(viewmend.load(work / "model.vm").for_prediction(), work / "bare.vm")
    for command in (("doubt",), ("suggest", "labels"), ("suggest", "views")):
        said = refused(*command, work / "bare.vm")
        assert "fit again with viewmend fit -o" in said
        assert "for_prediction" not in said


def test_samples_of_no_class_are_marked_and_have_none(work, tables):
    """Strange ones far from all others; those of the data of the fit mostly are not."""
    folder = work / "strange"
    folder.mkdir()
    for name, table in tables.items():
        rows = table.drop(columns="stage").iloc[:8] * 40
        rows.set_axis([f"N{i}" for i in range(8)]).rename_axis("patient").to_csv(
            folder / f"{name}.csv"
        )
    asked = ("predict", work / "model.vm")
    found = told(*asked, folder, "-o", work / "s.csv", "--unknown-rate", 0.1)
    table = pd.read_csv(work / "s.csv", index_col="patient")
    assert table["unknown"].sum() >= 6
    assert (table["class"].isna() == table["unknown"]).all()
    assert found["n_unknown"] == found["n_abstained"] == table["unknown"].sum()
    found = told(*asked, work / "data", "-o", work / "d.csv", "--unknown-rate", 0.1)
    assert found["n_of_fit"] == 120
    assert found["n_unknown"] < 36
    assert told(*asked, folder, "-o", work / "s.csv")["n_unknown"] is None
    assert "unknown" not in pd.read_csv(work / "s.csv")
    assert "--unknown-rate must be" in refused(
        *asked, folder, "-o", work / "s.csv", "--unknown-rate", 2
    )


def test_sets_of_classes_are_those_of_the_model(work, tables):
    """Of samples of the fit and of new ones in one file, by name and most probable first."""
    model = viewmend.load(work / "model.vm")
    both = work / "both"
    both.mkdir()
    new = {}
    for name, table in tables.items():
        rows = table.drop(columns="stage").iloc[:9] + 0.5
        new[name] = rows.set_axis([f"N{i}" for i in range(9)])
        pd.concat([table, new[name]]).rename_axis("patient").to_csv(both / f"{name}.csv")
    done("predict", work / "model.vm", both, "-o", work / "sets.csv", "--sets", 0.03)
    found = pd.read_csv(work / "sets.csv", index_col="patient", keep_default_na=False)
    names = found["set"].map(lambda text: text.split(" | ") if text else [])
    assert names.map(len).gt(1).any()
    shares = found[[f"p_{label}" for label in model.classes_]].set_axis(model.classes_, axis=1)
    for patient, chosen in names.items():
        assert shares.loc[patient, chosen].is_monotonic_decreasing
    hot = np.array([[label in chosen for label in model.classes_] for chosen in names])
    of_fit = found.index.get_indexer(model.sample_ids_)
    assert_array_equal(hot[of_fit], model.predict_set(alpha=0.03))
    asked = from_frames(new)
    of_new = found.index.get_indexer(asked.ids)
    assert_array_equal(hot[of_new], model.predict_set(asked, alpha=0.03))


def test_no_advice_is_written_over_what_is_read(work, tmp_path):
    for path in [*work.glob("data/*.csv"), work / "model.vm"]:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    model, table = tmp_path / "model.vm", next(tmp_path.glob("*.csv"))
    table = table.rename(tmp_path / "costs.csv")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    view = viewmend.load(model).view_names_[0]
    for command, output in [
        (("doubt", model), model),
        (("explain", "view", model, view), model),
        (("suggest", "views", model), model),
        (("suggest", "labels", model), model),
        (("suggest", "labels", model, "--costs", table), table),
        (("compare", work / "data", "--labels", f"{table}:stage"), table),
    ]:
        assert "is read by this command" in refused(*command, "-o", output)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_samples_are_explained_in_lines(work):
    """Names with the end of a line in them stay in theirs."""
    lines = done("explain", "samples", work / "model.vm", "P010", "P011").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["sample", "labels", "edges", "log"] * 2
    assert "\\n" not in "".join(lines)


@pytest.mark.parametrize("name", ["²", "9" * 25, "1.5", "120"])
def test_what_is_no_row_of_a_nameless_fit_is_refused(work, name):
    said = refused("explain", "samples", work / "python.vm", name)
    assert "samples" in said
    assert "frames" not in said


def test_labels_are_listed_where_the_data_suggests_another_class(work, monkeypatch):
    """Also below one whose sample it suggests the given class for."""
    found = SuspectLabels(
        samples=np.arange(4),
        given=NAMES[[0, 1, 2, 0]],
        suggested=NAMES[[1, 1, 0, 0]],
        scores=np.array([0.9, 0.45, 0.4, 0.1]),
        noise_rate=0.25,
        counts=np.eye(3),
        classes=NAMES,
        names=np.arange(4),
    )
    monkeypatch.setattr(MendClassifier, "suspect_labels", lambda _: found)
    suspects = told("doubt", work / "model.vm")["suspects"]
    assert [row["score"] for row in suspects] == [0.9, 0.4]
    assert all(row["given"] != row["suggested"] for row in suspects)


def test_refusals_speak_of_options(work, tables, tmp_path):
    ids = list(dict.fromkeys(name for view in tables.values() for name in view.index))
    costs = tmp_path / "costs.csv"
    pd.DataFrame({"patient": ids, "minutes": [1.0] * 119 + [-3]}).to_csv(costs, index=False)
    said = refused("suggest", "labels", work / "model.vm", "--costs", costs)
    assert f"--costs must be positive numbers, but that of sample '{ids[-1]}' is -3.0" in said
    assert "leave the cell empty" in said
    measured = ("suggest", "views", work / "model.vm", "--cost")
    assert "--cost must be a positive number, but that of view 'scan'" in refused(
        *measured, "scan=0"
    )
    assert "names 'scan' twice" in refused(*measured, "scan=1", "--cost", "scan=2")
    assert "--cost names ['rna']" in refused(*measured, "rna=2")
    assert "number, got" not in refused("explain", "view", work / "model.vm", "1")
    assert "--new DATA" in refused("explain", "samples", work / "model.vm", "nobody")


def test_it_is_told_why_nothing_is_suggested(work):
    said = done("suggest", "views", work / "model.vm", "--budget", "1e-9").stdout
    assert "by the budget" in said


def test_costs_are_found_by_the_identifiers_of_the_fit(work, tables, tmp_path):
    """Another column would be taken for them, and its numbers are those of other samples."""
    numbers = {f"P{i:03d}": i for i in range(120)}
    cheap = tables["labs"].index[tables["labs"]["stage"].isna()][0]
    for name, table in tables.items():
        table = table.copy()
        table.insert(0, "number", [numbers[sample] for sample in table.index])
        table.insert(0, "id", [119 - numbers[sample] for sample in table.index])
        costs = [1.0 if sample == cheap else 1000.0 for sample in table.index]
        table.assign(minutes=costs).to_csv(tmp_path / f"{name}.csv", index=False)
    model = work / "numbers.vm"
    left_out = ("--leave-out", "id", "--leave-out", "minutes")
    done("fit", tmp_path, "--id", "number", "-l", "stage", *left_out, "-o", model)
    found = told("suggest", "labels", model, tmp_path, "-n", 1, "--costs", "minutes")
    assert str(found["suggestions"][0]["sample"]) == str(numbers[cheap])
