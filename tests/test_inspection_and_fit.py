"""An inspection finds an error if and only if a fit refuses the data, on broken tables of any kind.

Both are asked about each table: the commands about files, the functions about frames and arrays.
"""

import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from viewmend import MendClassifier, inspect_data
from viewmend.cli import app
from viewmend.exceptions import InvalidLabelsError, InvalidViewsError

N = 24
IDS = [f"p{i:02}" for i in range(N)]


def invoke(*arguments):
    environment = {"COLUMNS": "100", "TERM": "dumb", "FORCE_COLOR": None}
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env=environment)


def message(result):
    """Standard error without frames and line breaks."""
    return " ".join(re.sub("[│╭╮╰╯─]", " ", result.stderr).split())


def clean():
    """Two tables and labels that nothing is wrong with."""
    rng = np.random.default_rng(0)
    labs = pd.DataFrame(rng.normal(size=(N, 3)), columns=["hb", "crp", "ldh"], index=IDS)
    scan = pd.DataFrame(rng.normal(size=(N, 2)), columns=["v", "w"], index=IDS)
    label = np.where(np.arange(N) < 8, rng.permutation(["a", "b"] * (N // 2)), None)
    return {"labs": labs, "scan": scan, "label": pd.Series(label, index=IDS, dtype=object)}


def cell(value, n=1, column="crp"):
    """Some cells of a column replaced."""

    def broken(data):
        data["labs"][column] = data["labs"][column].astype(object)
        data["labs"].iloc[:n, data["labs"].columns.get_loc(column)] = value
        return data

    return broken


def column(values, name="extra"):
    """One more column, its values repeated down the rows."""

    def broken(data):
        data["labs"][name] = (list(values) * N)[:N]
        return data

    return broken


def label(value, n=3):
    """The first labels replaced."""

    def broken(data):
        data["label"].iloc[:n] = value
        return data

    return broken


def rows(value, view="labs", n=2):
    """Whole rows of a view replaced."""

    def broken(data):
        data[view].iloc[:n] = value
        return data

    return broken


# What is done to the clean tables, and whether a fit refuses them as files.
BROKEN = {
    "nothing": (lambda data: data, False),
    "below the limit": (cell("<0.05"), True),
    "not determined": (cell("n.d.", 3), True),
    "decimal comma": (cell("1,5"), True),
    "question mark": (cell("?"), True),
    "empty cell": (cell(None), False),
    "NA": (cell("NA"), False),
    "blank": (cell("  "), False),
    "infinity": (cell(np.inf), True),
    "huge": (cell(1e200), True),
    "all cells of a column": (cell("x", N), False),
    "empty column": (column([None]), False),
    "category": (column(["red", "blue"]), False),
    "three categories, one rare": (column(["red"] * 12 + ["blue"] * 11 + ["pink"]), False),
    "category with gaps": (column(["red", "blue", None]), False),
    "identifiers": (column([f"note {i}" for i in range(N)]), False),
    "booleans": (column([True, False]), False),
    "booleans with gaps": (column([True, False, None]), False),
    "dates": (column(["2024-01-01", "2024-02-03"]), True),
    "dates with a gap": (column(["2024-01-01", None, "01.02.2024"]), True),
    "numbers with words": (column([1, 2, "low"]), True),
    "words with numbers": (column(["low", "high", 2]), False),
    "constant": (column([7.0]), False),
    "row of nothing in one view": (rows(np.nan), False),
    "blank label": (label(" "), False),
    "NA as label": (label("NA"), False),
    "question mark as label": (label("?"), True),
    "minus one as label": (label("-1"), True),
    "unknown as label": (label("unknown"), False),
    "one class": (label("a", 8), True),
    "no label": (label(None, 8), True),
}


def written(data, folder):
    """A folder of CSV files."""
    for name in ("labs", "scan"):
        data[name].rename_axis("id").to_csv(folder / f"{name}.csv")
    data["label"].rename("label").rename_axis("id").to_csv(folder / "labels.csv")
    return folder


@pytest.mark.parametrize(("broken", "refused"), BROKEN.values(), ids=BROKEN)
def test_the_commands_agree_on_files(broken, refused, tmp_path):
    folder = written(broken(clean()), tmp_path)
    fit = invoke("fit", folder, "--predictions", tmp_path.parent / "p.csv", "--set", "n_rounds=0")
    strict = invoke("inspect", folder, "--json", "--strict")
    assert (fit.exit_code, strict.exit_code) == ((2, 1) if refused else (0, 0)), fit.output
    errors = [f for f in json.loads(strict.stdout)["findings"] if f["severity"] == "error"]
    assert bool(errors) == refused
    # In the same words, as far as they are about cells or labels.
    for error in errors:
        if " cells that are " in error["message"] or error["subject"] == "labels":
            assert " ".join(error["message"].split()) in message(fit)


@pytest.mark.filterwarnings("ignore::viewmend.exceptions.DataWarning")
@pytest.mark.parametrize("broken", [broken for broken, _ in BROKEN.values()], ids=BROKEN)
@pytest.mark.parametrize("form", ["frames", "arrays"])
def test_the_functions_agree_on_frames_and_arrays(broken, form):
    data = broken(clean())
    y = data.pop("label").to_numpy()
    views = data if form == "frames" else {name: v.to_numpy() for name, v in data.items()}
    try:
        MendClassifier(n_rounds=0).fit(views, y)
        refused = False
    except (InvalidViewsError, InvalidLabelsError):
        refused = True
    try:
        found = inspect_data(views, y).findings
        errors = [finding for finding in found if finding.severity == "error"]
    except InvalidViewsError as error:
        errors = [error]
    assert bool(errors) == refused


def test_labels_of_other_samples_are_not_taken_for_no_labels(tmp_path):
    data = clean()
    data["label"].index = data["label"].index.str.upper()
    folder = written(data, tmp_path)
    told = json.loads(invoke("inspect", folder, "--json").stdout)
    (error,) = [f for f in told["findings"] if f["severity"] == "error"]
    assert error["subject"] == "labels"
    assert "such as 'P00', is among those of the views, such as 'p00'" in error["message"]
    assert error["message"] in message(invoke("fit", folder, "-o", tmp_path.parent / "m.vm"))


def test_what_is_forgiven_is_no_error(tmp_path):
    folder = written(cell("<0.05", 2)(clean()), tmp_path)
    out = ("--predictions", tmp_path.parent / "p.csv", "--set", "n_rounds=0")
    assert invoke("fit", folder, *out).exit_code == 2
    fit = invoke("fit", folder, *out, "--unreadable-as-missing")
    assert fit.exit_code == 0
    assert "column 'crp' has 2 of 24 cells that are no numbers ('<0.05')" in message(fit)
    strict = invoke("inspect", folder, "--strict", "--unreadable-as-missing")
    assert strict.exit_code == 0


def test_all_broken_columns_are_told_at_once(tmp_path):
    data = column(["2024-01-01"], "day")(cell("n.d.", 3)(cell("<5", 2, "hb")(clean())))
    told = json.loads(invoke("inspect", written(data, tmp_path), "--json").stdout)
    errors = [f for f in told["findings"] if f["severity"] == "error"]
    assert [(f["subject"], f["message"]) for f in errors] == [
        ("labs", "column 'hb' has 2 of 24 cells that are no numbers ('<5')"),
        ("labs", "column 'crp' has 3 of 24 cells that are no numbers ('n.d.')"),
        ("labs", "column 'day' has 24 of 24 cells that are dates or durations ('2024-01-01')"),
    ]


def test_a_table_that_holds_nothing_but_dates_is_an_error_and_not_lost(tmp_path):
    folder = written(clean(), tmp_path)
    days = pd.date_range("2024-01-01", periods=N).astype(str)
    pd.DataFrame({"id": IDS, "day": days}).to_csv(folder / "visits.csv", index=False)
    told = json.loads(invoke("inspect", folder, "--json").stdout)
    errors = [f for f in told["findings"] if f["severity"] == "error"]
    assert [f["subject"] for f in errors] == ["visits"]
    assert "cells that are dates or durations" in errors[0]["message"]
    refused = invoke("fit", folder, "-o", tmp_path.parent / "m.vm")
    assert refused.exit_code == 2
    assert "view 'visits': column 'day' has" in message(refused)
    out = ("--predictions", tmp_path.parent / "p.csv", "--set", "n_rounds=0")
    assert invoke("fit", folder, *out, "--leave-out", "day").exit_code == 0


def test_a_column_of_words_that_gives_the_classes_away_is_suspected(tmp_path):
    data = clean()
    rng = np.random.default_rng(1)
    data["label"][:] = rng.permutation(["a", "b", "c"] * (N // 3))
    names = {"a": "mild", "b": "moderate", "c": "severe"}
    data["labs"]["grade"] = data["label"].map(names)
    data["labs"]["site"] = rng.permutation(["n", "s", "w"] * (N // 3))
    told = json.loads(invoke("inspect", written(data, tmp_path), "--json").stdout)
    assert [f["message"] for f in told["findings"] if "one value per class" in f["message"]] == [
        "column(s) grade have one value per class in all labelled rows"
    ]
