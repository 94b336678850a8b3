"""What commands say when something goes wrong: options and files, never Python."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import viewmend
from viewmend import MendClassifier
from viewmend.callbacks import Checkpoint
from viewmend.cli import app
from viewmend.cli.wording import for_command_line
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import CheckpointError
from viewmend.extras import how_to_install

# What only makes sense to somebody who writes Python.
PYTHON = re.compile(
    r"set_params|set_callbacks|np\.|numpy|fit\(|Traceback|magic|dtype=|astype|from_frames|mask|(?<!')b'|"
    r"InvalidViewsError|DataFrame|persistence"
)
FEW = ("--set", "n_rounds=1")


def invoke(*arguments):
    environment = {"COLUMNS": "1000", "TERM": "dumb", "FORCE_COLOR": None}
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env=environment)


def message(result):
    return " ".join(re.sub("[│╭╮╰╯─]", " ", result.output).split())


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder of good data with a model of it, and files that are wrong, each in its own way."""
    path = tmp_path_factory.mktemp("work")
    blobs = make_multiview_blobs(60, n_views=2, noise=1.0, random_state=0)
    task = hide(blobs.views, blobs.y, missing_rate=0.2, label_rate=0.3, random_state=0)
    ids = pd.Index([f"P{i:02d}" for i in range(60)], name="id")
    tables = [pd.DataFrame(view, index=ids).add_prefix("c") for view in task.data.views]
    tables = [table.dropna(how="all") for table in tables]
    given = np.where(task.labelled, np.array(["a", "b", "c"], dtype=object)[task.y], None)
    tables[0]["stage"] = pd.Series(given, index=ids)

    def write(name, first, second=tables[1]):
        (path / name).mkdir()
        first.to_csv(path / name / "one.csv")
        second.to_csv(path / name / "two.csv")

    write("data", tables[0])
    write("unlabelled", tables[0].assign(stage=None))
    write("one_class", tables[0].assign(stage="a"))
    write("strangers", tables[0], tables[1].set_axis([f"Q{i}" for i in range(len(tables[1]))]))
    write("huge", tables[0], tables[1] * 1e200)
    write("infinite", tables[0], tables[1].replace(tables[1].iloc[3, 2], np.inf))
    write("fractional", tables[0].assign(stage=np.linspace(0.1, 9.7, len(tables[0]))))
    write("fewer_columns", tables[0].drop(columns="c3"), tables[1].drop(columns="c1"))
    write("words", tables[0], tables[1].astype(object).assign(c0="<0.05"))
    write("twice", tables[0], pd.concat([tables[1], tables[1]]))
    (path / "nothing").mkdir()
    (path / "not.vm").write_text("no model")
    (path / "not.npz").write_text("no arrays")
    (path / "not.mat").write_text("no cells")
    (path / "not.h5ad").write_text("no cells")
    np.savez(path / "flat.npz", y=np.arange(9), view_0=np.arange(9.0))
    np.savez(path / "texts.npz", y=np.arange(3), view_0=np.array([["a"], ["b"], ["c"]]))
    np.savez(path / "objects.npz", y=np.arange(3), view_0=np.array([[{}], [{}], [{}]]))
    np.savez(path / "uneven.npz", y=np.arange(4), view_0=np.eye(4), view_1=np.eye(5))
    np.savez(path / "labels.npz", y=np.arange(7) % 2, view_0=np.eye(4))
    fit = ("fit", path / "data", "-l", "stage", "-o", path / "model.vm", *FEW)
    fit = (*fit, "--checkpoint", path / "fit.ckpt")
    assert invoke(*fit).exit_code == 0
    whole = (path / "model.vm").read_bytes()
    (path / "cut.vm").write_bytes(whole[: len(whole) // 2])
    (path / "damaged.vm").write_bytes(whole[:400] + bytes(200) + whole[600:])
    (path / "bad.ckpt").write_bytes((path / "fit.ckpt").read_bytes()[:-80])
    (path / "text.ckpt").write_text("no checkpoint")
    return path


FIT = "fit {data} -l stage -o {out}"
BAD = [
    "fit {data} -l stage",
    "fit {data} -l grade -o {out}",
    "fit {data} -o {out}",
    "fit {nothing} -l stage -o {out}",
    "fit {unlabelled} -l stage -o {out}",
    "fit {one_class} -l stage -o {out}",
    "fit {strangers} -l stage -o {out}",
    "fit {huge} -l stage -o {out}",
    "fit {infinite} -l stage -o {out}",
    "fit {fractional} -l stage -o {out}",
    "fit {twice} -l stage -o {out}",
    "fit {not.npz} -o {out}",
    "fit {not.mat} -o {out}",
    "fit {not.h5ad} -o {out}",
    "fit {flat.npz} -o {out}",
    "fit {texts.npz} -o {out}",
    "fit {objects.npz} -o {out}",
    "fit {uneven.npz} -o {out}",
    "fit {labels.npz} -o {out}",
    f"{FIT} --set n_rounds=-1",
    f"{FIT} --set n_rounds=few",
    f"{FIT} --set spreading=2 --set n_landmarks=0",
    f"{FIT} --set speed=9",
    f"{FIT} --set class_prior=[1,2]",
    f"{FIT} --set representations=none",
    f"{FIT} --set calibration=yes",
    f"{FIT} --set random_state=-1",
    f"{FIT} --set view_sizes=[3,4]",
    f"{FIT} --set n_jobs=0",
    f"{FIT} --method AGF-TI --set device=moon",
    f"{FIT} --method AGF-TI --set compat=released",
    f"{FIT} --method AGF-TI --set max_iter=0",
    f"{FIT} --method SLIM",
    f"{FIT} --method nobody",
    f"{FIT} --id name",
    f"{FIT} --view three",
    f"{FIT} --checkpoint {{bad.ckpt}} --set n_rounds=1",
    f"{FIT} --checkpoint {{text.ckpt}} --set n_rounds=1",
    f"{FIT} --checkpoint {{fit.ckpt}} --set n_rounds=1 --set spreading=0.5",
    f"{FIT} --checkpoint {{fit.ckpt}} --set n_rounds=0",
    "fit {data} -l stage --predictions {out} --method SLIM --checkpoint {new.ckpt}",
    "predict {not.vm} {data} -o {out}",
    "predict {cut.vm} {data} -o {out}",
    "predict {damaged.vm} {data} -o {out}",
    "predict {absent.vm} {data} -o {out}",
    "predict {model.vm} {fewer_columns} -o {out}",
    "predict {model.vm} {infinite} -o {out}",
    "predict {model.vm} {nothing} -o {out}",
    "predict {model.vm} {labels.npz} -o {out}",
    "evaluate {model.vm} {data} -l stage",
    "evaluate {model.vm} {data} -l nowhere.csv",
    "report {model.vm} {fewer_columns} -o {out}",
    "predict {data} {data} -o {out}",
    "doubt {data}",
    "suggest views {data}",
    "explain view {data} one",
    "explain view {model.vm} nine",
    "explain samples {model.vm} P99",
    "suggest labels {model.vm} {fewer_columns}",
    "compare {data} -l stage --methods nobody",
    "compare {unlabelled} -l stage",
    "inspect {not.mat}",
    "inspect {absent}",
    "inspect {objects.npz}",
]


@pytest.mark.parametrize("command", BAD)
def test_mistakes_are_told_in_words_of_the_command_line(work, command):
    places = {name: work / name for name in re.findall(r"{(.*?)}", command)}
    arguments = [
        re.sub(r"{(.*?)}", lambda found: str(places[found[1]]), word) for word in command.split()
    ]
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    said = message(result).replace(str(work), "")
    assert PYTHON.search(said) is None, said
    assert not (work / "out").exists()


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("suggest labels {model.vm} --strategy best", "--strategy best is not known"),
        ("suggest views {model.vm} --budget 0", "--budget must be"),
        ("predict {model.vm} {data} -o {out} --unknown-rate 2", "--unknown-rate must be"),
        ("predict {model.vm} {data} -o {out} --unknown-rate 0.001 --json", "raise --unknown-rate"),
        ("predict {model.vm} {data} -o {out} --sets 1", "--sets must be"),
        ("predict {model.vm} {data} -o {out} --sets 0.001 --json", "raise --sets"),
        ("compare {data} -l stage --groups ward", "--groups must name a column"),
        ("suggest views {model.vm} --cost three=2", "--cost names"),
        ("doubt {data}", "data is a folder, and no model; pass a file that viewmend fit -o wrote"),
    ],
)
def test_advice_speaks_of_its_options(work, command, expected):
    arguments = [
        re.sub(r"{(.*?)}", lambda found: str(work / found[1]), word) for word in command.split()
    ]
    said = message(invoke(*arguments))
    (work / "out").unlink(missing_ok=True)
    assert expected in said, said
    assert PYTHON.search(said.replace(str(work), "")) is None, said


def test_an_inspection_speaks_of_commands_and_options(work, tmp_path):
    said = message(invoke("inspect", work / "one_class", "-l", "stage"))
    assert "label more samples (viewmend suggest labels DATA says which)" in said
    table = pd.DataFrame({"id": [f"P{i:02d}" for i in range(60)], "day": "2024-01-01"})
    (tmp_path / "data").mkdir()
    table.to_csv(tmp_path / "data" / "visits.csv", index=False)
    (tmp_path / "data" / "one.csv").write_bytes((work / "data" / "one.csv").read_bytes())
    dates = message(invoke("inspect", tmp_path / "data", "-l", "stage"))
    assert "or leave the column out with --leave-out" in dates
    for text in (said, dates):
        assert re.search(r"MendClassifier|\.dt\.|\by must", text) is None, text


def test_a_wrong_parameter_is_put_right_by_an_option(work):
    wrong = ("--set", "spreading=2", "--set", "n_landmarks=0")
    said = message(invoke("fit", work / "data", "-l", "stage", "-o", work / "out", *wrong))
    assert "change it with --set spreading=... --set n_landmarks=..." in said


def test_notes_speak_of_options(work):
    arguments = ("--method", "AGF-TI", "--set", "max_iter=1", "--set", "n_anchors=8")
    result = invoke(
        "fit", work / "data", "-l", "stage", "-o", work / "slow.vm", *arguments, "--json"
    )
    notes = json.loads(result.stdout)["notes"]
    assert any("--set tol=" in note for note in notes), notes
    assert PYTHON.search(" ".join(notes)) is None


def test_the_note_on_columns_of_text_names_the_option_that_leaves_them_out(work, tmp_path):
    for path in (work / "data").glob("*.csv"):
        table = pd.read_csv(path)
        table["site"] = np.resize(["north", "south"], len(table))
        table.to_csv(tmp_path / path.name, index=False)
    notes = json.loads(invoke("inspect", tmp_path, "-l", "stage", "--json").stdout)["notes"]
    assert any("leave out with --leave-out what is no feature" in note for note in notes), notes


def test_text_without_python_is_left_as_it_is():
    said = "view 'labs' has no column 'age'; pass the columns of the fit, or fit again"
    assert for_command_line(said) == said


# ------------------------------------------------------------------ files that are damaged


def test_a_damaged_checkpoint_is_not_called_a_model(tmp_path):
    blobs = make_multiview_blobs(60, random_state=0)
    path = tmp_path / "fit.ckpt"
    model = MendClassifier(n_rounds=1).set_callbacks(Checkpoint(path)).fit(blobs.views, blobs.y)
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(CheckpointError, match="Delete the file to start again") as caught:
        model.fit(blobs.views, blobs.y)
    assert "model" not in str(caught.value).replace(str(tmp_path), "")


# ------------------------------------------------------------------ extras


def told_origin(monkeypatch, origin):
    class Installed:
        def read_text(self, name):
            return json.dumps(origin) if name == "direct_url.json" and origin else None

    monkeypatch.setattr("viewmend.extras.distribution", lambda _: Installed())
    return how_to_install("plot", "cli")


def test_hints_for_extras_are_true_for_the_way_of_the_install(monkeypatch, tmp_path):
    source = tmp_path / "my source"
    source.mkdir()
    editable = {"url": source.as_uri(), "dir_info": {"editable": True}}
    assert told_origin(monkeypatch, editable) == f"run: pip install -e '{source}[plot,cli]'"
    copied = {"url": source.as_uri(), "dir_info": {}}
    assert told_origin(monkeypatch, copied) == f"run: pip install '{source}[plot,cli]'"
    gone = {"url": (tmp_path / "gone").as_uri(), "dir_info": {}}
    for origin in (None, gone):
        assert told_origin(monkeypatch, origin) == "run: pip install 'viewmend[plot,cli]'"


def test_nowhere_else_is_the_library_named_to_pip():
    folder = Path(viewmend.__file__).parent
    hints = [
        path.name
        for path in folder.rglob("*.py")
        if re.search(r"pip install '?viewmend", path.read_text())
    ]
    assert hints == ["extras.py"]


def test_a_package_that_is_not_there_is_named_with_its_extra(work, monkeypatch):
    def without_pandas(*_):
        raise ModuleNotFoundError("No module named 'pandas'", name="pandas")

    monkeypatch.setattr("viewmend.cli.inspect.read_view_tables", without_pandas)
    said = message(invoke("inspect", work / "data"))
    assert re.search(
        r"this needs pandas, which is not installed; run: pip install .*\[frames\]'", said
    )


# ------------------------------------------------------------------ experiments without data

EXPERIMENT = """
name = "small"
title = "Two data sets"
protocols = ["honest"]
data = ["CUB", "UCI-Digit"]
missing_rates = [0.5]
label_rates = [0.05]
methods = ["Mend"]
repetitions = 1
"""


@pytest.mark.parametrize("command", ["run", "table", "plot", "report"])
def test_experiments_without_data_say_which_is_absent_and_how_to_have_it(command, tmp_path):
    (tmp_path / "small.toml").write_text(EXPERIMENT)
    places = ("--data", tmp_path / "no data", "--results", tmp_path / "results")
    result = invoke("bench", command, tmp_path / "small.toml", *places)
    assert result.exit_code == 2
    said = message(result)
    assert f"absent in {tmp_path / 'no data'}: CUB, UCI-Digit." in said
    assert "--data DIR" in said


# ------------------------------------------------------------------ Ctrl-C


def interrupted(*_args, **_more):
    raise KeyboardInterrupt


def test_ctrl_c_before_the_fit_says_that_nothing_was_kept(work, monkeypatch):
    monkeypatch.setattr("viewmend.cli.fit.read_view_tables", interrupted)
    result = invoke("fit", work / "data", "-l", "stage", "-o", work / "never.vm")
    assert result.exit_code == 130
    assert "you stopped" in message(result)
    assert "Nothing was kept" in message(result)
    assert not (work / "never.vm").exists()


def test_ctrl_c_within_a_round_tells_the_round_and_the_file_to_go_on_from(work, monkeypatch):
    from viewmend.core.mend import recipe

    gather, calls = recipe.gather_evidence, []

    def second_is_stopped(*arguments):
        calls.append(arguments)
        return interrupted() if len(calls) == 2 else gather(*arguments)

    monkeypatch.setattr(recipe, "gather_evidence", second_is_stopped)
    kept = work / "kept.ckpt"
    fit = ("fit", work / "data", "-l", "stage", "-o", work / "kept.vm", "--set", "n_rounds=3")
    result = invoke(*fit, "--checkpoint", kept)
    assert result.exit_code == 130
    assert "It was at: round 4 of 5" in message(result)
    assert f"saved in {kept}, {kept}.geometry; the same command resumes" in message(result)
    monkeypatch.setattr(recipe, "gather_evidence", gather)
    again = invoke(*fit, "--checkpoint", kept, "--json")
    assert json.loads(again.stdout)["n_iter"] == 5


def test_ctrl_c_after_the_model_names_what_was_written(work, monkeypatch):
    monkeypatch.setitem(sys.modules["viewmend.cli.fit"].WRITERS, "report", interrupted)
    files = ("-o", work / "first.vm", "--report", work / "page.html")
    result = invoke("fit", work / "data", "-l", "stage", *files, *FEW)
    assert result.exit_code == 130
    assert f"Already written: {work / 'first.vm'}" in message(result)


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_ctrl_c_in_other_commands_says_that_no_file_changed(work, command, monkeypatch):
    monkeypatch.setattr(f"viewmend.cli.{command}.load", interrupted)
    output = ("-o", work / "p.csv") if command == "predict" else ()
    result = invoke(command, work / "model.vm", work / "data", *output)
    assert result.exit_code == 130
    assert "No file was written or changed." in message(result)


def test_ctrl_c_while_the_library_loads_is_two_lines():
    # Loading NumPy, which all else needs, is where the interrupt comes.
    code = (
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Press:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'numpy':\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Press())\n"
        "import viewmend_command\n"
        "viewmend_command.main()\n"
    )
    source = str(Path(viewmend.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": source}
    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 128 + signal.SIGINT
    assert "while it was starting" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_command_is_the_module_that_can_be_stopped_while_it_loads():
    pyproject = Path(viewmend.__file__).parents[2] / "pyproject.toml"
    if not pyproject.exists():
        pytest.skip("installed without its source")
    assert 'viewmend = "viewmend_command:main"' in pyproject.read_text()
