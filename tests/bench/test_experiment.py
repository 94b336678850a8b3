"""Experiment files: what they mean, and what is said about those that mean nothing."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from viewmend.bench import methods
from viewmend.bench.experiment import (
    MOST_RUNS,
    InvalidExperimentError,
    Row,
    UntrustedExperimentError,
    load_plugins,
    narrowed,
    read_experiment,
)
from viewmend.bench.measures import RunFolders
from viewmend.bench.methods import CONTESTANTS
from viewmend.bench.plan import Count, Plan, run_groups
from viewmend.bench.runner import Worker, carry_out, in_turn
from viewmend.bench.runs import Record
from viewmend.bench.store import ResultStore

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PAPER = sorted((BENCHMARKS / "paper").glob("*.toml"))
# Not the claims of the ledger, which are no experiment.
EXPERIMENTS = sorted(set(BENCHMARKS.rglob("*.toml")) - {BENCHMARKS / "ledger" / "claims.toml"})

WHOLE = """
name = "small"
title = "A small one"
protocols = ["paper", "honest"]
data = ["CUB", "UCI-Digit"]
missing_rates = [0, 0.5]
label_rates = [0.05]
methods = ["AGF-TI", "AMGL"]
repetitions = 2
grids = "full"

[settings]
AGF-TI = { max_iter = 5 }

[variants."AGF-TI without imputation"]
method = "AGF-TI"
setting = { ablation = "imputation" }

[[sweep]]
method = "AMGL"
data = ["CUB"]
grid = { n_neighbors = [3, 5], tol = [0.1, 0.2] }

[[leave_out]]
method = "AMGL"
data = "UCI-Digit"
reason = "takes a day"
"""


@pytest.fixture
def read(tmp_path):
    def read_text(text, name="small.toml", trust=False):
        (tmp_path / name).write_text(text)
        return read_experiment(tmp_path / name, trust)

    return read_text


def changed(key, value):
    """The file with another value of a key at the top, or without it."""
    rest = re.sub(rf"^{key} = .*\n", "", WHOLE, count=1, flags=re.MULTILINE)
    return rest if value is None else f"{key} = {value}\n{rest}"


def test_a_file_becomes_rows_of_methods_with_parameters(read):
    experiment = read(WHOLE)
    points = [(3, 0.1), (3, 0.2), (5, 0.1), (5, 0.2)]
    assert experiment.rows == (
        Row("AGF-TI", "AGF-TI"),
        Row("AMGL", "AMGL"),
        Row("AGF-TI without imputation", "AGF-TI", (("ablation", "imputation"),)),
        *(
            Row("AMGL", "AMGL", (("n_neighbors", k), ("tol", t)), False, ("CUB",))
            for k, t in points
        ),
    )
    assert experiment.missing_rates == (0.0, 0.5)
    assert all(isinstance(rate, float) for rate in experiment.missing_rates)
    fixed = [experiment.fixed_setting(row) for row in experiment.rows[:3]]
    assert fixed == [{"max_iter": 5}, {}, {"max_iter": 5, "ablation": "imputation"}]
    assert experiment.reason_against(experiment.rows[1], "UCI-Digit") == "takes a day"
    assert experiment.reason_against(experiment.rows[0], "UCI-Digit") is None


def test_a_variant_may_change_what_is_set_for_its_method(read):
    experiment = read(WHOLE.replace('ablation = "imputation"', "max_iter = 9"))
    assert experiment.fixed_setting(experiment.rows[2]) == {"max_iter": 9}


def test_sweeps_are_for_their_data_only(read):
    swept = [group for group in run_groups(read(WHOLE)) if not group.row.tuned]
    assert {group.data for group in swept} == {"CUB"}
    assert len(swept) == 2 * 2 * 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (changed("repetitions", None), "repetitions is not given; it must be an integer >= 1"),
        (changed("repetitions", 0), "repetitions must be an integer >= 1, got 0"),
        (changed("repetitions", "true"), "repetitions must be an integer >= 1, got True"),
        (changed("missing_rates", "[1.0]"), r"every entry a number in \[0, 1\).*got \[1.0\]"),
        (changed("label_rates", "[0]"), r"every entry a number in \(0, 1\], .*got \[0\]"),
        (changed("missing_rates", "0.3"), "missing_rates must be a non-empty tuple or list"),
        (changed("data", '["CUB", "CUB"]'), "none of them twice"),
        (changed("protocols", '["fair"]'), "no protocol 'fair'; choose one of paper, paper-shuf"),
        (changed("measure", '"speed"'), "no measure 'speed'; choose one of fit, trace"),
        (changed("methods", '["AGF"]'), "no method 'AGF'; choose one of AGF-TI, "),
        (changed("grids", '"wide"'), "grids must be one of 'thinned', 'full', 'none', got 'wide'"),
        ("method = 1" + WHOLE, "unknown key 'method'; the keys are name, title"),
        (changed("data", '["CUB", "AwA"]'), r"no data set in \[\[leave_out\]\] 'UCI-Digit'"),
        (changed("data", '["UCI-Digit"]'), r"no data set in \[\[sweep\]\] 'CUB'"),
        (WHOLE.replace('reason = "takes a day"', ""), r"\[\[leave_out\]\]: reason is not given"),
        (WHOLE.replace("AGF-TI without imputation", "AMGL"), "the variant 'AMGL' has the name of"),
        (WHOLE.replace("setting =", "settings ="), "unknown key 'settings'; the keys are method"),
        (WHOLE.replace("tol = [0.1, 0.2]", "tol = 0.1"), "grid must be a table with every value"),
        (WHOLE.replace("AGF-TI = {", "CFMSC = {"), r"no method in \[settings\] 'CFMSC'"),
        (WHOLE + "\n[[leave_out]", "small.toml is not TOML"),
        ("deep = " + "[" * 5000, "small.toml is not TOML"),
        (changed("name", '"../outside"'), "name must be a file name without folder"),
        (changed("name", '"/outside"'), "name must be a file name without folder"),
        (changed("title", r'"a\u001b[2J"'), "title must be printable text on one line"),
        (changed("methods", r'["AGF-TI\n"]'), "methods must be .*every entry printable text"),
        (changed("data", f'["{"x" * 300}"]'), "of at most 200 bytes"),
        (WHOLE.replace("AGF-TI without imputation", r"a\nb"), "variants must be .*printable keys"),
        (WHOLE.replace('"imputation"', "1979-05-27"), "setting must be a table with every value a"),
        (WHOLE.replace('"imputation"', "nan"), "setting must be a table with every value a number"),
        (WHOLE.replace('"imputation"', "{ a = 1 }"), "setting must be a table with every value a"),
        (WHOLE.replace("max_iter = 5", "max_iter = [[1], nan]"), "settings must be a table"),
        (changed("methods", '["os.path: join"]'), "there is no method 'os.path: join'"),
        (changed("repetitions", 10**9), f"small: it asks for more than {MOST_RUNS} runs; lower"),
        (changed("repetitions", 10**12), "repetitions must be .* got 1000000000000, which is too"),
        (changed("repetitions", "0x" + "f" * 5000), "got int of thousands of digits, which is too"),
        (changed("grids", "0x" + "f" * 5000), "grids must be .* got int of thousands of digits"),
        (
            WHOLE.replace("tol = [0.1, 0.2]", ", ".join(f"a{i} = [1, 2]" for i in range(40))),
            f"small.toml, .*sweep.*: it asks for more than {MOST_RUNS} runs",
        ),
    ],
)
def test_mistakes_are_named_with_what_may_stand_there(read, text, expected):
    with pytest.raises(InvalidExperimentError, match=expected):
        read(text)


def test_more_repetitions_than_a_plan_can_hold_are_refused(read):
    with pytest.raises(InvalidExperimentError, match="asks for more than"):
        narrowed(read(WHOLE), repetitions=10**12)


def test_lists_in_lists_can_be_part_of_a_setting(read):
    """Settings are keys of dictionaries, and their records must be found again."""
    experiment = read(WHOLE.replace('ablation = "imputation"', "widths = [[8, 4], [2]]"))
    assert experiment.rows[2].setting == (("widths", ((8, 4), (2,))),)
    assert len(set(Plan(experiment, ()).known_runs())) > 0


def test_nothing_to_run_is_a_mistake(read):
    top = changed("methods", None).split("[settings]")[0]
    with pytest.raises(InvalidExperimentError, match="there is nothing to run"):
        read(top)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InvalidExperimentError, match=r"there is no experiment .*none\.toml"):
        read_experiment(tmp_path / "none.toml")


def test_plugins_add_methods_once(read, tmp_path, monkeypatch):
    plugin = tmp_path / "plugin_of_a_test.py"
    plugin.write_text(
        "from viewmend.bench.methods import CONTESTANTS, Contestant\n"
        'assert "Mine" not in CONTESTANTS\n'
        'CONTESTANTS["Mine"] = Contestant("plugin_of_a_test:Mine")\n'
    )
    top = changed("methods", '["Mine"]').split("[settings]")[0]
    monkeypatch.setattr("sys.modules", dict(sys.modules))
    try:
        named = top.replace("\nname", '\nplugins = ["plugin_of_a_test.py"]\nname')
        experiment = read(named, trust=True)
        assert experiment.plugins == (str(plugin),)
        load_plugins(experiment.plugins)
        assert [row.method for row in experiment.rows] == ["Mine"]
    finally:
        CONTESTANTS.pop("Mine", None)


CANARY = """
from pathlib import Path

from viewmend.bench.methods import CONTESTANTS, Contestant

Path(__file__).with_suffix(".ran").touch()
CONTESTANTS["Mine"] = Contestant("canary_of_a_test:run", thinned={"a": (1, 2)})


def run(**settings):
    Path(__file__).with_suffix(".ran").touch()
"""


@pytest.fixture
def canary(tmp_path, monkeypatch):
    """A module that can be imported, and the file that tells that it was."""
    (tmp_path / "canary_of_a_test.py").write_text(CANARY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(methods, "CONTESTANTS", dict(CONTESTANTS))
    yield tmp_path / "canary_of_a_test.ran"
    sys.modules.pop("canary_of_a_test", None)
    CONTESTANTS.pop("Mine", None)


UNTRUSTED = {
    "a class": (changed("methods", '["canary_of_a_test:run"]'), "method canary_of_a_test:run"),
    "a module": (changed("methods", '["canary_of_a_test:"]'), "method canary_of_a_test:"),
    "a variant": (
        WHOLE.replace('method = "AGF-TI"', 'method = "canary_of_a_test:run"'),
        "method canary_of_a_test:run",
    ),
    "a sweep": (
        WHOLE.split("[[leave_out]]")[0].replace('method = "AMGL"', 'method = "canary_of_a_test:a"'),
        "method canary_of_a_test:a",
    ),
    "a plugin": ('plugins = ["canary_of_a_test.py"]' + WHOLE, r"plugin .*canary_of_a_test\.py"),
}


@pytest.mark.parametrize(("text", "named"), UNTRUSTED.values(), ids=UNTRUSTED)
def test_code_of_others_is_named_and_not_run(read, tmp_path, canary, text, named):
    text = text.split("[settings]")[0] + text[text.find("[variants") :]
    text = text.split("[[leave_out]]")[0]
    experiment = read(text)
    worker = Worker(ResultStore(tmp_path / "results"), RunFolders(tmp_path, tmp_path))
    with pytest.raises(UntrustedExperimentError, match=rf"{named}.* allow it with --trust, in Py"):
        carry_out(experiment, worker, in_turn)
    assert not canary.exists()
    assert not (tmp_path / "results").exists()


def test_records_of_methods_from_plugins_are_read_without_them(read, tmp_path, canary):
    top = WHOLE.split("[settings]")[0].replace('"AGF-TI", "AMGL"', '"Mine"')
    top = 'plugins = ["canary_of_a_test.py"]\n' + top
    honest = read(top.replace('"paper", "honest"', '"honest"'))
    runs = Plan(honest, ()).final_runs()
    records = [Record(key, "done", {"accuracy": 0.5}) for key in runs]
    assert len(runs) == 2 * 2 * 2
    assert Plan(honest, records).counts()["Mine"] == Count(done=8)
    assert Plan(honest, records).final_records() == records
    # Which settings were tried is known by the plugin alone.
    with pytest.raises(UntrustedExperimentError, match="allow it with --trust"):
        Plan(read(top), records).final_records()
    with pytest.raises(UntrustedExperimentError, match="allow it with --trust"):
        read(top.replace('"honest"', '"of the plugin"'))
    assert not canary.exists()


def test_trusted_code_runs(read, canary):
    top = WHOLE.split("[settings]")[0].replace('"AGF-TI", "AMGL"', '"Mine"')
    experiment = read('plugins = ["canary_of_a_test.py"]\n' + top, trust=True)
    assert canary.exists()
    # Trials of both settings under "paper", final runs under "honest".
    assert len(Plan(experiment, ()).known_runs()) == 4 * 2 + 4 * 2


@pytest.mark.parametrize("name", ["numpy.py", "absent_plugin.py"])
def test_plugins_that_hide_a_module_or_are_absent_are_refused(read, tmp_path, name):
    (tmp_path / "numpy.py").write_text("")
    with pytest.raises(InvalidExperimentError, match=f"{name}.* must be a Python file whose name"):
        read(f'plugins = ["{name}"]\n' + WHOLE, trust=True)


def test_a_plugin_that_fails_may_be_tried_again(tmp_path):
    plugin = tmp_path / "failing_plugin_of_a_test.py"
    plugin.write_text("1 / 0")
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            load_plugins([str(plugin)])


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_experiments_can_be_read_and_planned(path, tmp_path, monkeypatch):
    monkeypatch.setattr(methods, "CONTESTANTS", dict(CONTESTANTS))
    experiment = read_experiment(path, trust=True)
    for plugin in experiment.plugins:
        # So that a later test that reads the file has the plugin's methods again.
        sys.modules.pop(Path(plugin).stem)
    assert experiment.name == path.stem
    assert Plan(experiment, ResultStore(tmp_path).records()).known_runs()


def test_every_table_and_figure_of_the_paper_has_a_file():
    assert {path.stem for path in PAPER} == {
        "ablation",
        "alpha",
        "convergence",
        "deep",
        "inner_errors",
        "label_scarcity",
        "main",
        "paper_text",
        "running_time",
        "sensitivity",
        "sensitivity_anchors",
        "sensitivity_lambda",
        "tnn_footprint",
    }
    names = [tomllib.loads(path.read_text())["name"] for path in PAPER]
    assert names == [path.stem for path in PAPER]
