"""Names that came from files do nothing where they are shown, and come back as they were."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from attacks.names import CONTROL, HOSTILE, HostileNames
from attacks.outcomes import GOOD
from attacks.running import run_case
from rich.console import Console

from viewmend.bench.tables.table import Entry, Line, Table, write_table
from viewmend.cli.answers import write_sample_table
from viewmend.cli.console import say, show_table, write_json
from viewmend.data import Request, read_view_tables
from viewmend.exceptions import InvalidViewsError
from viewmend.text import csv_cell, from_csv_cell, markdown_text, printable

FORMULAS = ["=1+1", "+1+1", "-x", "@SUM(A1)", "\t=1", "\r=1", "'=1+1", "''-x"]


@pytest.mark.parametrize("case", [0, 5])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_commands_on_hostile_names(tmp_path, case):
    outcome = run_case(HostileNames(), tmp_path, 0, case)
    assert outcome.verdict in GOOD, outcome.detail


@pytest.mark.parametrize("text", [*FORMULAS, *HOSTILE])
def test_cells_of_csv_files_are_no_formulas_and_come_back(text):
    written = csv_cell(text)
    assert written == "-0.5" or written[0] not in "=+-@\t\r"
    assert from_csv_cell(written) == text


@pytest.mark.parametrize("number", ["-1", "+2.5", "-.5e-3", "-inf", -1, -0.5, None])
def test_numbers_stay_numbers(number):
    assert csv_cell(number) is number


def test_predictions_are_read_back_as_labels(tmp_path):
    ids = [f"s{i}" for i in range(6)] + [name for name in FORMULAS if name == name.strip()]
    classes = (["=cmd|' /C calc'!A0", "-x", "a\rb"] * 5)[: len(ids)]
    table = pd.DataFrame({"class": classes, "p_=x": 0.5}, index=pd.Index(ids, name="@id"))
    write_sample_table(table, tmp_path / "classes.csv")
    with (tmp_path / "classes.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell[:1] in tuple("=+-@\t\r")]
    values = pd.DataFrame({"@id": ids, "x": range(len(ids))})
    values.to_parquet(tmp_path / "values.parquet")
    found = read_view_tables(
        tmp_path / "values.parquet", Request(labels=f"{tmp_path / 'classes.csv'}:class")
    )
    assert found.labels.to_dict() == dict(zip(ids, classes, strict=True))


def test_predictions_without_hostile_names_are_written_as_before(tmp_path):
    table = pd.DataFrame(
        {"class": ["cat", "it's", None], "confidence": [0.25, -1e-9, np.nan]},
        index=pd.Index(["a", "b", "c"], name="id"),
    )
    write_sample_table(table, tmp_path / "classes.csv")
    table.to_csv(tmp_path / "plain.csv", float_format="%.6g")
    assert (tmp_path / "classes.csv").read_bytes() == (tmp_path / "plain.csv").read_bytes()


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_that_a_terminal_obeys_is_printed(text, capsys):
    console = Console(width=1000)
    say(console, f"predictions: {text}")
    show_table(console, [{"name": text, "n_samples": 3}])
    write_json({"name": text})
    printed = capsys.readouterr().out
    assert not CONTROL.search(printed)
    # JSON says the same as before.
    assert json.loads(printed[printed.index("{\n") :]) == {"name": text}


def test_printable_text_stays_as_it_is():
    text = "Größe 5 µm, naïve “quotes”, 日本語, emoji 👩\u200d🔬"
    assert printable(text) == text


@pytest.mark.parametrize("text", HOSTILE)
def test_names_make_no_cells_lines_or_markup_of_markdown(text):
    table = Table(text, (text,), (text,), (Line((text,), (Entry(text),)),), (text,))
    title, _, header, rule, row, _, note = write_table(table, "markdown").splitlines()
    # Taken as they are meant, the escaped signs are the text in one line.
    shown = printable(" ".join(text.split()))
    for line in (title[2:-2], note, *header[2:-2].split(" | "), *row[2:-2].split(" | ")):
        assert _unescaped(line) == shown
    assert rule == "| --- | ---: |"


def _unescaped(line):
    signs = iter(line)
    return "".join(next(signs) if sign == "\\" else sign for sign in signs)


def test_names_of_ordinary_methods_are_not_escaped():
    for text in ("n_rounds=4", "Caltech101-20 (3 views)", "0.93 ± 0.01", "-", "#2", "-0.5 %"):
        assert markdown_text(text) == text


def test_halves_of_characters_in_a_file_are_refused_by_name(tmp_path):
    np.savez(tmp_path / "d.npz", a=np.eye(3), ids=np.array(["x", "y\ud800", "z"]))
    with pytest.raises(InvalidViewsError, match=r"'y\\ud800' holds half of a character"):
        read_view_tables(tmp_path / "d.npz")
