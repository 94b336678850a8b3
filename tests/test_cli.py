"""The command line: what it prints, writes and refuses."""

import errno
import importlib.util
import os
import re
import runpy
import sys
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

from viewmend import __version__, cli
from viewmend.datasets import make_multiview_blobs
from viewmend.demo import run_demo
from viewmend.exceptions import DataWarning


@pytest.fixture(autouse=True)
def _small_run(monkeypatch):
    """Overlapping blobs in place of the digits."""
    blobs = make_multiview_blobs(150, n_views=3, noise=4.0, random_state=3)
    monkeypatch.setattr("viewmend.demo.load_uci_digits", lambda: blobs)


@pytest.fixture
def no_fit(monkeypatch):
    """Fail if a command gets as far as fitting."""

    def refuse(*_args, **_kwargs):
        raise AssertionError("the demo must not run")

    monkeypatch.setattr("viewmend.cli.demo.run_demo", refuse)


def invoke(*arguments, **environment):
    environment = {"COLUMNS": "100", "TERM": "dumb", "FORCE_COLOR": None} | environment
    return CliRunner().invoke(cli.app, list(arguments), env=environment)


def message(result):
    """Standard error without colours, frames and line breaks."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", result.stderr)
    return " ".join(re.sub("[│╭╮╰╯─]", " ", text).split())


def test_demo_prints_the_scores_of_run_demo():
    result = invoke(
        "demo", "--seed", "1", "--missing-rate", "0.4", "--label-rate", "0.1", "--no-figure"
    )
    assert result.exit_code == 0, result.output
    expected = run_demo(seed=1, missing_rate=0.4, label_rate=0.1)
    for score in expected.scores:
        (line,) = (
            line for line in result.stdout.splitlines() if score.name in line and "│" in line
        )
        cells = [cell.strip() for cell in line.strip("│").split("│")]
        assert cells[:3] == [score.name, f"{score.accuracy:.3f}", f"{score.macro_f1:.3f}"]
        assert re.fullmatch(r"\d+\.\d", cells[3])


def test_demo_says_what_was_hidden_how_long_it_took_and_what_to_do_next():
    result = invoke("demo", "--label-rate", "0.1", "--no-figure")
    observed = run_demo(label_rate=0.1).task.data.observed
    text = " ".join(result.stdout.split())
    assert f"{observed.mean():.1%} are left" in text
    assert f"{np.mean(observed.all(axis=1)):.1%} of the samples have every view" in text
    assert "the 135 unlabelled samples, whose classes no fit has seen" in text
    assert re.search(r"This took \d+ seconds", text)
    assert "viewmend fit FOLDER --labels COLUMN" in text


def test_help_names_as_many_tools_as_are_compared():
    text = " ".join(invoke("demo", "--help").stdout.split())
    assert "MendClassifier with three familiar tools" in text
    assert len(run_demo(label_rate=0.1).scores) == 1 + 3


def test_demo_writes_the_figure_and_names_it(tmp_path):
    output = tmp_path / "picture.png"
    result = invoke("demo", "--label-rate", "0.1", "--output", str(output))
    assert result.exit_code == 0, result.output
    assert output.read_bytes().startswith(b"\x89PNG")
    assert f"Figure: {output}\n" in result.stdout


def test_no_figure_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke("demo", "--label-rate", "0.1", "--no-figure")
    assert result.exit_code == 0
    assert "Figure" not in result.stdout
    assert not list(tmp_path.iterdir())


def test_best_value_of_every_column_is_bold():
    result = invoke(
        "demo", "--label-rate", "0.1", "--no-figure", FORCE_COLOR="1", TERM="xterm-256color"
    )
    rows = [
        line
        for line in result.stdout.splitlines()
        if re.search(r"MendClassifier +│|late fusion +│|regression +│|spreading +│", line)
    ]
    assert len(rows) == 4
    cells = [row.split("│")[2:4] for row in rows]
    for column in zip(*cells, strict=True):
        values = [float(re.search(r"\d\.\d{3}", cell)[0]) for cell in column]
        bold = ["\x1b[1m" in cell for cell in column]
        assert bold == [value == max(values) for value in values]


def test_progress_bar_only_on_a_terminal():
    plain = invoke("demo", "--label-rate", "0.1", "--no-figure")
    assert "/3" not in plain.stdout
    assert "\x1b" not in plain.stdout
    terminal = invoke(
        "demo", "--label-rate", "0.1", "--no-figure", FORCE_COLOR="1", TERM="xterm-256color"
    )
    assert re.search(r"MendClassifier: .*1 of", re.sub(r"\x1b\[[0-9;]*m", "", terminal.stdout))


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("--missing-rate", "1.5", "the missing rate must lie in [0, 1) but is 1.5"),
        ("--missing-rate", "-0.1", "the missing rate must lie in [0, 1) but is -0.1"),
        ("--missing-rate", "nan", "the missing rate must lie in [0, 1) but is nan"),
        ("--label-rate", "0", "the label rate must lie in (0, 1] but is 0.0"),
        ("--label-rate", "1.01", "the label rate must lie in (0, 1] but is 1.01"),
    ],
)
def test_rates_out_of_range_are_short_errors(option, value, expected):
    result = invoke("demo", option, value, "--no-figure")
    assert result.exit_code == 2
    assert expected in message(result)
    assert "Traceback" not in result.output
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("demo.doc", "'demo.doc' must end in a format that can be drawn"),
        ("demo", "'demo' must end in a format that can be drawn"),
        ("nowhere/demo.png", "there is no folder 'nowhere'; make it first"),
    ],
)
def test_figures_that_cannot_be_written_are_refused_before_the_fit(
    no_fit, tmp_path, monkeypatch, output, expected
):
    monkeypatch.chdir(tmp_path)
    result = invoke("demo", "--output", output)
    assert result.exit_code == 2
    assert expected in message(result)


def test_negative_seed_is_refused(no_fit):
    assert invoke("demo", "--seed", "-1").exit_code == 2


def test_without_matplotlib_the_figure_is_refused_before_the_fit(no_fit, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = invoke("demo")
    assert result.exit_code == 2
    assert re.search(r"pip install .*\[plot\]', or pass --no-figure", message(result))


def test_warnings_of_the_library_are_one_line_notes(monkeypatch):
    finished = run_demo(label_rate=0.1)

    def warn_and_return(*_args):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn(
                "3 of 150 samples [bold] are joined to no label", DataWarning, stacklevel=1
            )
        return finished

    monkeypatch.setattr("viewmend.cli.demo.run_demo", warn_and_return)
    result = invoke("demo", "--no-figure")
    assert result.stdout.startswith("Note: 3 of 150 samples [bold] are joined to no label\n")
    assert "test_cli.py" not in result.output


def test_version():
    result = invoke("--version")
    assert (result.exit_code, result.stdout) == (0, f"viewmend {__version__}\n")


def test_the_package_can_be_run_as_the_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["viewmend", "--version"])
    monkeypatch.delitem(sys.modules, "viewmend.__main__", raising=False)
    with pytest.raises(SystemExit) as end:
        runpy.run_module("viewmend", run_name="__main__")
    assert (end.value.code, capsys.readouterr().out) == (0, f"viewmend {__version__}\n")


def test_a_full_disk_behind_standard_output_is_told_in_a_line(monkeypatch):
    def full(*_args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("viewmend.cli.methods.show_table", full)
    result = invoke("methods")
    assert result.exit_code == 1
    assert result.stderr == f"Error: the result cannot be printed: {os.strerror(errno.ENOSPC)}.\n"


def test_bare_command_shows_the_commands():
    result = invoke()
    assert "demo" in result.output
    assert "Usage: " in result.output


@pytest.mark.parametrize("absent", ["typer", "rich"])
def test_without_the_extra_the_entry_point_names_the_remedy(absent, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == absent]:
        monkeypatch.setitem(sys.modules, name, None)
    for name in [name for name in sys.modules if name.startswith("viewmend.cli.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, absent, None)
    spec = importlib.util.spec_from_file_location("cli_without_extra", cli.__file__)
    bare = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bare)
    with pytest.raises(SystemExit, match=r"pip install .*\[cli\]'") as stop:
        bare.app()
    assert f"needs {absent}" in str(stop.value)
