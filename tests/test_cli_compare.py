"""``viewmend compare``: the table of the library, in files, words and JSON."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from viewmend import compare_methods
from viewmend.cli import app
from viewmend.data import from_frames
from viewmend.datasets import hide, make_multiview_blobs

NAMES = ["mean + logistic", "late fusion"]
ASKED = ("--labels", "stage", "--methods", "Late Fusion,mean + logistic")


def invoke(*arguments):
    environment = {"COLUMNS": "1000", "TERM": "dumb", "FORCE_COLOR": None}
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env=environment)


def message(result):
    return " ".join(re.sub("[│╭╮╰╯─]", " ", result.stderr).split())


def done(result):
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def frames():
    blobs = make_multiview_blobs(90, n_views=2, noise=4.0, random_state=0)
    task = hide(blobs.views, blobs.y, missing_rate=0.3, label_rate=0.5, random_state=0)
    ids = pd.Index([f"P{i:02d}" for i in range(90)], name="patient")
    tables = {
        name: pd.DataFrame(view, index=ids).add_prefix(name).dropna(how="all")
        for name, view in zip(["labs", "scan"], task.data.views, strict=True)
    }
    stage = np.where(task.labelled, np.array(["a", "b", "c"], dtype=object)[task.y], None)
    for table in tables.values():
        table["stage"] = pd.Series(stage, index=ids)
    return tables


@pytest.fixture(scope="module")
def data(frames, tmp_path_factory):
    path = tmp_path_factory.mktemp("work") / "data"
    path.mkdir()
    for name, table in frames.items():
        table.to_csv(path / f"{name}.csv")
    return path


@pytest.fixture(scope="module")
def by_hand(frames):
    aligned = from_frames(frames, labels="stage")
    return compare_methods(aligned, methods=NAMES, n_splits=3, random_state=1)


def test_all_outputs_say_what_the_library_says(data, by_hand, tmp_path):
    files = ("-o", tmp_path / "table.csv", "--chart", tmp_path / "chart.png")
    few = (*ASKED, "--splits", "3", "--seed", "1")
    told = json.loads(done(invoke("compare", data, *few, *files, "--json")).stdout)
    expected = [row | {"seconds": None} for row in by_hand.records()]
    assert [row | {"seconds": None} for row in told["methods"]] == expected
    assert told["best"] == by_hand.best.name
    assert told["recommended"] == by_hand.recommended.name
    assert told["advice"] == by_hand.advice()
    assert told["n_held_out"] == len(by_hand.best.truth)
    table = pd.read_csv(tmp_path / "table.csv", index_col="method")
    assert list(table.index) == [row.name for row in by_hand.methods]
    np.testing.assert_allclose(table["accuracy"], [row.accuracy for row in by_hand.methods])
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")
    shown = done(invoke("compare", data, *few)).stdout
    assert by_hand.advice() in shown
    for row in by_hand.methods:
        assert re.search(rf"{re.escape(row.name)} +{row.accuracy:.3f} ", shown)


def test_a_method_that_fails_is_told_beside_the_others(data, monkeypatch):
    def refuse(*_args):
        raise MemoryError("no room")

    monkeypatch.setattr("viewmend.baselines.supervised.MeanImputedLogistic._solve", refuse)
    told = json.loads(done(invoke("compare", data, *ASKED, "--json")).stdout)
    assert [(row["method"], row["failure"]) for row in told["methods"]] == [
        ("late fusion", None),
        ("mean + logistic", "MemoryError: no room"),
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--methods", "magic"], "there is no method 'magic'; choose one of Mend"),
        (["--splits", "50"], "--splits 50 must be at most the number of labels"),
        (["--splits", "50"], "lower --splits or label more"),
        (["--chart", "chart.txt"], "must end in a format that can be drawn"),
        (["--output", "no/folder/table.csv"], "there is no folder"),
        (["--output", "{data}/table.csv"], "would be read as a view the next time"),
    ],
)
def test_refusals_name_the_option(data, options, words):
    given = [option.format(data=data) for option in options]
    result = invoke("compare", data, "--labels", "stage", *given)
    assert result.exit_code == 2
    assert words in message(result)
