"""``viewmend bench``: a small experiment from the file to its tables."""

import csv
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from viewmend import cli
from viewmend.bench import measures
from viewmend.bench.experiment import read_experiment
from viewmend.bench.methods import CONTESTANTS
from viewmend.bench.plan import Count, Plan
from viewmend.bench.printing import shown_progress
from viewmend.bench.protocols import PROTOCOLS
from viewmend.bench.runner import RunOutcome
from viewmend.bench.runs import Record, RunKey
from viewmend.bench.store import ResultStore
from viewmend.datasets import make_multiview_blobs

TOML = """
name = "small"
title = "A small experiment"
protocols = ["paper", "honest"]
data = ["blobs", "nowhere"]
missing_rates = [0.4]
label_rates = [0.1]
methods = ["union graph", "self-training"]
repetitions = 2

[variants."union graph, 3 neighbours"]
method = "union graph"
setting = { n_neighbors = 3 }

[[leave_out]]
method = "self-training"
data = "blobs"
reason = "to see what is said"
"""
KEY = RunKey("fit", "honest", "blobs", 0.4, 0.1, "union graph", (), 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An experiment, its data, and the results of ``run``."""
    folder = tmp_path_factory.mktemp("bench")
    blobs = make_multiview_blobs(60, n_views=2, noise=3.0, random_state=0)
    views = {f"view_{v}": view for v, view in enumerate(blobs.views)}
    np.savez(folder / "blobs.npz", y=blobs.y, **views)
    (folder / "small.toml").write_text(TOML)
    result = invoke(folder, "run", folder / "small.toml")
    assert result.exit_code == 0, result.output
    return folder


def invoke(folder, *arguments, results="results", **environment):
    environment = {"COLUMNS": "120", "TERM": "dumb", "FORCE_COLOR": None} | environment
    environment = {"VIEWMEND_DATA": str(folder)} | environment
    command = ["bench", *map(str, arguments), "--results", str(folder / results)]
    return CliRunner().invoke(cli.app, command, env=environment)


def counts(result):
    """The table of counts as {row: [done, failed, left out, to do]}."""
    rows = re.findall(r"│ (.+?) +│ +(\d+) │ +(\d+) │ +(\d+) │ +(\d+) │", result.stdout)
    return {name: list(map(int, numbers)) for name, *numbers in rows}


def message(result):
    return " ".join(re.sub("[│╭╮╰╯─]", " ", result.stderr).split())


def test_status_before_counts_every_run_and_names_absent_data(folder):
    result = invoke(folder, "status", folder / "small.toml", results="none")
    assert counts(result) == {
        "union graph": [0, 0, 0, 4],
        "self-training": [0, 0, 4, 0],
        "union graph, 3 neighbours": [0, 0, 0, 4],
        "all": [0, 0, 4, 8],
    }
    assert "Absent, not run: nowhere: " in result.stdout
    assert "nowhere.npz" in result.stdout
    assert not (folder / "none").exists()


def test_run_leaves_a_record_of_every_final_run(folder):
    experiment = read_experiment(folder / "small.toml")
    records = ResultStore(folder / "results").records()
    expected = Plan(replace(experiment, data=("blobs",)), records).final_runs()
    assert {r.key for r in records} == set(expected)
    assert {r.status for r in records} == {"done"}
    assert len(expected) == 8


def test_methods_of_a_repetition_see_the_same_mask(folder):
    by_problem = {}
    for record in ResultStore(folder / "results").records():
        seen = record.result["observed_pairs"], record.result["seeds"]["mask"]
        by_problem.setdefault(record.key.repetition, set()).add(seen)
    assert [len(masks) for masks in by_problem.values()] == [1, 1]


def test_run_again_does_nothing(folder, monkeypatch):
    monkeypatch.setitem(measures.MEASURES, "fit", lambda *_: pytest.fail("must not run"))
    result = invoke(folder, "run", folder / "small.toml")
    assert result.exit_code == 0, result.output
    assert counts(result)["all"] == [8, 0, 4, 0]


def test_failures_are_told_kept_and_tried_again_on_request(folder, monkeypatch):
    fit = measures.MEASURES["fit"]

    def fail_on_paper(key, context):
        if key.protocol == "paper":
            raise ArithmeticError("no [bold] luck")
        return fit(key, context)

    toml = folder / "small.toml"
    with monkeypatch.context() as patch:
        patch.setitem(measures.MEASURES, "fit", fail_on_paper)
        result = invoke(folder, "run", toml, results="failing")
    assert result.exit_code == 1
    assert counts(result)["all"] == [4, 4, 4, 0]
    assert "repetition 0: ArithmeticError: no [bold] luck" in result.stdout
    assert counts(invoke(folder, "resume", toml, results="failing"))["all"] == [4, 4, 4, 0]
    result = invoke(folder, "resume", toml, "--retry-failed", results="failing")
    assert (result.exit_code, counts(result)["all"]) == (0, [8, 0, 4, 0])
    once, twice = (ResultStore(folder / name).records() for name in ("results", "failing"))
    assert [(r.key, r.result) for r in once] == [(r.key, r.result) for r in twice]


def test_a_part_of_an_experiment_and_more_repetitions(folder):
    part = ("--only", "honest", "--only", "union graph", "--repetitions", 3)
    result = invoke(folder, "status", folder / "small.toml", *part)
    assert counts(result)["all"] == [2, 0, 0, 1]
    result = invoke(folder, "status", folder / "small.toml", "--only", "Honest")
    assert result.exit_code == 2
    assert "small has no 'Honest'; choose of paper, honest, blobs" in message(result)


def test_other_repetitions_than_those_reported(folder):
    part = ("--only", "honest", "--only", "union graph", "--first-repetition", 1)
    result = invoke(folder, "status", folder / "small.toml", *part)
    assert counts(result)["all"] == [1, 0, 0, 1]
    result = invoke(
        folder, "table", folder / "small.toml", "--kind", "intervals", *part, "--repetitions", 1
    )
    own = [
        100 * r.result["accuracy"]
        for r in ResultStore(folder / "results").records()
        if (r.key.protocol, r.key.repetition, r.key.setting) == ("honest", 1, ())
    ]
    line = next(line for line in result.stdout.splitlines() if line.startswith("| blobs"))
    assert f"{own[0]:.1f}" in line


def test_table_prints_the_means_of_the_records(folder):
    result = invoke(folder, "table", folder / "small.toml", "--kind", "scores")
    assert result.exit_code == 0, result.output
    line = next(line for line in result.stdout.splitlines() if line.startswith("| blobs"))
    own = [
        100 * r.result["accuracy"]
        for r in ResultStore(folder / "results").records()
        if r.key.protocol == "paper" and not r.key.setting
    ]
    assert f"{np.mean(own):.2f} ± {np.std(own):.2f}" in line
    assert "union graph, 3 neighbours" in result.stdout


def test_tables_of_nothing_name_the_remedy(folder):
    result = invoke(folder, "table", folder / "small.toml", results="none")
    assert result.exit_code == 2
    assert "no run of the experiment 'small' is done" in message(result)


def test_plot_and_report_write_files(folder):
    output = folder / "figures"
    result = invoke(folder, "plot", folder / "small.toml", "--kind", "scores", "--output", output)
    assert result.exit_code == 0, result.output
    names = {f"small_{protocol}_scores_ACC.png" for protocol in ("paper", "honest")}
    assert {path.name for path in output.iterdir()} == names
    page = folder / "report.html"
    result = invoke(folder, "report", folder / "small.toml", "--output", page)
    assert result.exit_code == 0, result.output
    assert "A small experiment" in page.read_text()
    assert "to see what is said" in page.read_text()


def test_comparison_with_the_paper(folder):
    printed = folder / "paper"
    printed.mkdir()
    lines = ["dataset,vmr_percent,lar_percent,method,metric,mean,std"]
    lines.append("blobs,40,10,union graph,acc,12.34,1.00")
    (printed / "main_results.csv").write_text("\n".join(lines) + "\n")
    toml = folder / "small.toml"
    result = invoke(folder, "compare-with-paper", toml, "--paper", printed)
    assert result.exit_code == 0, result.output
    assert "12.34" in result.stdout


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_export_keeps_every_value(folder, form):
    path = folder / f"all.{form}"
    result = invoke(folder, "export", path)
    assert result.exit_code == 0, result.output
    if form == "csv":
        lines = list(csv.DictReader(path.read_text().splitlines()))
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        lines = parquet.read_table(path).to_pylist()
    records = sorted(ResultStore(folder / "results").records(), key=lambda r: r.key.text)
    for line, record in zip(lines, records, strict=True):
        assert float(line["result.accuracy"]) == record.result["accuracy"]
        assert float(line["timings.fit"]) == record.timings["fit"]
        assert json.loads(line["setting"]) == dict(record.key.setting)
        assert (line["protocol"], line["method"]) == (record.key.protocol, record.key.method)
        assert int(line["repetition"]) == record.key.repetition
        assert line["environment.versions.numpy"] == np.__version__


def test_export_of_an_experiment_has_its_rows_and_what_was_left_out(folder):
    path = folder / "final.csv"
    invoke(folder, "export", path, "--experiment", folder / "small.toml")
    lines = list(csv.DictReader(path.read_text().splitlines()))
    names = sorted(line["method"] for line in lines)
    assert names == ["self-training"] * 2 + ["union graph"] * 4 + ["union graph, 3 neighbours"] * 4
    told = [line for line in lines if line["status"] == "left_out"]
    assert {line["message"] for line in told} == {"to see what is said"}


def test_export_of_a_part_of_an_experiment(folder):
    path, part = folder / "part.csv", ("--only", "union graph")
    result = invoke(folder, "export", path, "--experiment", folder / "small.toml", *part)
    assert result.exit_code == 0, result.output
    lines = list(csv.DictReader(path.read_text().splitlines()))
    assert {line["method"] for line in lines} == {"union graph"}
    alone = invoke(folder, "export", path, *part)
    assert alone.exit_code != 0
    assert "pass --experiment too" in alone.output


def test_export_of_numbers_and_text_in_one_column(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    store = ResultStore(tmp_path / "results")
    for i, value in enumerate([1, 0.5, "many", None]):
        store.write(Record(replace(KEY, repetition=i), "done", {"x": value, "y": i / 2}))
    result = invoke(tmp_path, "export", tmp_path / "all.parquet")
    assert result.exit_code == 0, result.output
    table = parquet.read_table(tmp_path / "all.parquet")
    assert table["result.x"].to_pylist() == ["1", "0.5", "many", None]
    assert table["result.y"].to_pylist() == [0.0, 0.5, 1.0, 1.5]


def test_a_run_out_of_time_leaves_the_rest_to_do(folder):
    result = invoke(folder, "run", folder / "small.toml", "--time-limit", 0, results="late")
    assert (result.exit_code, counts(result)["all"]) == (0, [0, 0, 4, 8])


def test_paired_differences_are_from_the_subject(folder, tmp_path):
    out = tmp_path / "paired.md"
    chosen = ("--kind", "paired", "--only", "honest", "--subject", "union graph")
    result = invoke(folder, "table", folder / "small.toml", *chosen, "--output", out)
    assert result.exit_code == 0, result.output
    text = out.read_text()
    assert "**union graph against each by ACC under the protocol 'honest'**" in text
    scores = {
        (r.key.setting == (), r.key.repetition): 100 * r.result["accuracy"]
        for r in ResultStore(folder / "results").records()
        if r.key.protocol == "honest"
    }
    gap = np.mean([scores[True, i] - scores[False, i] for i in range(2)])
    assert re.search(rf"\| blobs \| 40% \| 10% \| {re.escape(f'{gap:+.1f}')} ± ", text)


@pytest.mark.parametrize(
    "command", [("table", "docs/t.md"), ("plot", "docs"), ("report", "docs/r.html")]
)
def test_records_of_uncommitted_code_stay_out_of_the_documentation(folder, tmp_path, command):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "conf.py").touch()
    for record in ResultStore(folder / "results").records():
        dirty = {**record.environment, "revision": "abc-dirty"}
        ResultStore(folder / "dirty").write(replace(record, environment=dirty))
    name, output = command
    arguments = (name, folder / "small.toml", "--output", tmp_path / output)
    result = invoke(folder, *arguments, results="dirty")
    assert result.exit_code == 2
    assert "records come from code that cannot be looked up" in message(result)
    assert "commit the code and do these runs again" in message(result)
    assert [path.name for path in (tmp_path / "docs").iterdir()] == ["conf.py"]


EVERY_COMMAND = ["run", "resume", "status", "table", "plot", "report", "compare-with-paper"]


@pytest.mark.parametrize("command", [*EVERY_COMMAND, "export"])
def test_every_command_takes_the_folder_of_the_data(folder, tmp_path, command):
    printed = folder / "printed"
    printed.mkdir(exist_ok=True)
    lines = ["dataset,vmr_percent,lar_percent,method,metric,mean,std"]
    (printed / "main_results.csv").write_text(f"{lines[0]}\nblobs,40,10,union graph,acc,1,1\n")
    more = {
        "plot": ("--output", tmp_path, "--kind", "scores"),
        "report": ("--output", tmp_path / "page.html"),
        "compare-with-paper": ("--paper", printed),
        "export": ("--experiment", folder / "small.toml"),
    }.get(command, ())
    first = tmp_path / "all.csv" if command == "export" else folder / "small.toml"
    result = invoke(folder, command, first, "--data", folder, *more, VIEWMEND_DATA=None)
    assert result.exit_code == 0, result.output


PLUGIN = """
from pathlib import Path

Path(__file__).with_suffix(".ran").touch()
"""


@pytest.mark.parametrize("command", [*EVERY_COMMAND[:2], *EVERY_COMMAND[2:6], "export"])
def test_plugins_are_loaded_by_no_command_without_trust(folder, tmp_path, command):
    (tmp_path / "plugin_of_test_commands.py").write_text(PLUGIN)
    toml = tmp_path / "with_plugin.toml"
    toml.write_text('plugins = ["plugin_of_test_commands.py"]\n' + TOML)
    first = (tmp_path / "all.csv", "--experiment", toml) if command == "export" else (toml,)
    output = {
        "plot": ("--output", tmp_path, "--kind", "scores"),
        "report": ("--output", tmp_path / "r.html"),
    }
    arguments = (command, *first, *output.get(command, ()))
    result = invoke(folder, *arguments)
    told = message(result) + " ".join(result.stdout.split())
    assert "plugin_of_test_commands.py" in told
    assert "--trust" in told
    assert result.exit_code == (2 if command in ("run", "resume") else 0), result.output
    assert not (tmp_path / "plugin_of_test_commands.ran").exists()
    try:
        trusted = invoke(folder, *arguments, "--trust")
    finally:
        sys.modules.pop("plugin_of_test_commands", None)
    assert trusted.exit_code == 0, trusted.output
    assert (tmp_path / "plugin_of_test_commands.ran").exists()


def test_names_and_messages_cannot_steer_the_terminal(folder, tmp_path):
    """Neither by markup nor by escape characters; also from a lock that was left."""
    toml = tmp_path / "names.toml"
    toml.write_text(TOML.replace("union graph, 3 neighbours", "[/bold] [red]x"))
    store = ResultStore(tmp_path / "results")
    key = replace(KEY, method="union graph", rules=PROTOCOLS["honest"].rules)
    store.write(Record(key, "error", message="a\x1b[2Jb [/bold]"))
    store.claims.mkdir()
    left = replace(KEY, method="[/x]\x1b[2J")
    (store.claims / f"{left.digest}.lock").write_text(left.text)
    (tmp_path / "blobs.npz").touch()
    result = invoke(tmp_path, "status", toml)
    assert result.exit_code == 0, result.output
    assert "[/bold] [red]x" in result.stdout
    assert r"a\x1b[2Jb [/bold]" in result.stdout
    assert r"[/x]\x1b[2J on blobs" in result.stdout
    assert "\x1b[2J" not in result.stdout


def test_status_where_all_data_is_absent(folder, tmp_path):
    result = invoke(tmp_path, "status", folder / "small.toml")
    assert (result.exit_code, counts(result)) == (0, {"all": [0, 0, 0, 0]})


def test_a_record_without_its_scores_is_named(folder, tmp_path):
    for record in ResultStore(folder / "results").records():
        ResultStore(tmp_path / "results").write(replace(record, result={}))
    result = invoke(tmp_path, "table", folder / "small.toml", "--kind", "scores")
    assert result.exit_code == 2
    assert "has no 'accuracy'; remove the file and do the run again" in message(result)


def test_export_to_an_unknown_format_is_refused(folder):
    result = invoke(folder, "export", folder / "all.xlsx")
    assert result.exit_code == 2
    assert "'all.xlsx' must end in one of .csv, .parquet" in message(result)


def test_mistakes_in_the_file_are_short_errors(folder, tmp_path):
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(TOML.replace("repetitions = 2", "repetitions = 0"))
    result = invoke(folder, "run", wrong)
    assert result.exit_code == 2
    assert "wrong.toml: repetitions must be an integer >= 1, got 0" in message(result)
    assert "Traceback" not in result.output


def test_progress_counts_on_a_terminal_and_is_quiet_elsewhere(folder):
    terminal = invoke(
        folder, "run", folder / "small.toml", results="shown", FORCE_COLOR="1", TERM="xterm"
    )
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.stdout)
    assert re.search(r"runs .*8/8 0 failed", text)
    plain = invoke(folder, "run", folder / "small.toml", results="hidden")
    assert plain.exit_code == 0
    assert "/8" not in plain.stdout
    assert "\x1b" not in plain.stdout


def test_progress_tells_failures_apart(tmp_path):
    with (tmp_path / "screen").open("w") as screen:
        console = Console(file=screen, force_terminal=True, width=120)
        with shown_progress(console, Count(done=5, failed=1, to_do=4)) as watch:
            watch(RunOutcome(KEY, "done"))
            watch(RunOutcome(KEY, "error"))
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", (tmp_path / "screen").read_text())
    assert "8/10 2 failed" in text
    assert "union graph on blobs, 40% missing" in text


def test_examples_of_the_documentation_run_and_are_short(tmp_path, monkeypatch):
    """A new method, tuned and on completed views, and a new data set."""
    text = (Path(__file__).parents[2] / "docs" / "bench.md").read_text()
    examples = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", text, re.DOTALL))
    for name, code in examples.items():
        assert len(code.strip().splitlines()) < 25
        (tmp_path / name).write_text(code)
    monkeypatch.chdir(tmp_path)
    exec(examples["save_two_moons.py"], {})
    top = 'plugins = ["nearest_mean.py"]\n' + TOML.split("[variants")[0]
    top = top.replace('"union graph", "self-training"', '"nearest mean"')
    (tmp_path / "moons.toml").write_text(top.replace('"blobs", "nowhere"', '"two moons"'))
    try:
        result = invoke(tmp_path, "run", tmp_path / "moons.toml", "--trust")
    finally:
        CONTESTANTS.pop("nearest mean", None)
        sys.modules.pop("nearest_mean", None)
    assert result.exit_code == 0, result.output
    assert counts(result)["all"] == [3 + 2, 0, 0, 0]
    records = ResultStore(tmp_path / "results").records()
    assert min(r.result["accuracy"] for r in records) > 0.6
    assert {r.key.setting for r in records} == {(), (("power", 1),), (("power", 2),)}


def test_a_folder_is_all_its_experiments(folder, tmp_path):
    """One command for several; those that lack a name of --only are left out."""
    first = TOML.replace('"nowhere"', '"blobs (copy)"').replace('"paper", ', "")
    other = 'methods = ["mean + spreading"]'
    second = first.replace('"small"', '"other"').replace(TOML.split("\n")[7], other)
    second = second[: second.index("[variants")]
    (tmp_path / "a.toml").write_text(first)
    (tmp_path / "b.toml").write_text(second)
    result = invoke(folder, "run", tmp_path, "--only", "blobs", results="all")
    assert result.exit_code == 0, result.output
    assert counts(result) == counts(invoke(folder, "status", tmp_path, results="all"))
    rows = {record.key.method for record in ResultStore(folder / "all").records()}
    assert rows == {"union graph", "mean + spreading"}
    alone = invoke(folder, "status", tmp_path, "--only", "mean + spreading", results="all")
    assert list(counts(alone)) == ["mean + spreading", "all"]
    nobody = invoke(folder, "run", tmp_path, "--only", "nobody", results="all")
    assert (nobody.exit_code, "has no 'nobody'" in message(nobody)) == (2, True)
    empty = invoke(folder, "run", folder / "results" / "runs", results="all")
    assert (empty.exit_code, "there is no experiment in the folder" in message(empty)) == (2, True)


def test_verify_does_runs_of_a_table_again(folder, tmp_path):
    """Of the export and of the store; a variant of another name is found by its seed."""
    table = tmp_path / "small.csv"
    invoke(folder, "export", table, "--experiment", folder / "small.toml")
    for source in (table, folder / "small.toml"):
        result = invoke(folder, "verify", source, "--n", 5, "--seed", 1)
        assert result.exit_code == 0, result.output
        assert "5 of 5 runs equal within 1e-09, drawn with seed 1 from 8 of 8" in result.stdout
    everything = invoke(folder, "verify", table).stdout
    assert everything.count("union graph (n_neighbors=3) on blobs") == 4


def test_verify_finds_a_number_that_was_changed(folder, tmp_path):
    table = tmp_path / "small.csv"
    invoke(folder, "export", table, "--experiment", folder / "small.toml")
    with table.open() as file:
        rows = list(csv.DictReader(file))
    changed = next(row for row in rows if row["status"] == "done")
    was = float(changed["result.macro_f1"])
    changed["result.macro_f1"] = was - 0.01
    with table.open("w") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    result = invoke(folder, "verify", table)
    assert (result.exit_code, "7 of 8 runs equal" in result.stdout) == (1, True)
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("DIFFERS")]
    assert f"macro_f1 {was - 0.01:g} became {was:g}" in line
    assert invoke(folder, "verify", table, "--tolerance", 0.02).exit_code == 0


def test_verify_refuses_what_it_cannot_do(folder, tmp_path):
    table = tmp_path / "other.csv"
    table.write_text("data,accuracy\nblobs,0.5\n")
    result = invoke(folder, "verify", table)
    assert (result.exit_code, "no rows with a column 'measure'" in message(result)) == (2, True)
    invoke(folder, "export", table, "--experiment", folder / "small.toml")
    result = invoke(folder, "verify", table, VIEWMEND_DATA=str(tmp_path))
    assert (result.exit_code, "its data is not in" in message(result)) == (2, True)
